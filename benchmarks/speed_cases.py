"""Workloads, cases, packages and targets of `speed.py`.

A case has a function for each package. It prepares a `Data` and returns a call without arguments,
and only this call is timed. Each package gets the arrays in the form that it requires, converted in
advance.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

Call = Callable[[], Any]
OURS = "calibrant"


class Data(NamedTuple):
    """Overconfident logits, their probabilities and labels, and the confidences with their
    outcomes.
    """

    logits: np.ndarray
    proba: np.ndarray
    labels: np.ndarray

    @property
    def n_classes(self) -> int:
        return self.logits.shape[1]

    @property
    def top(self) -> np.ndarray:
        return self.proba.max(axis=1)

    @property
    def right(self) -> np.ndarray:
        return (self.proba.argmax(axis=1) == self.labels).astype(np.int64)


SIZES = {
    "1x10": (1, 10),
    "500x10": (500, 10),
    "10kx10": (10_000, 10),
    "10kx100": (10_000, 100),
    "10kx1000": (10_000, 1000),
    "50kx100": (50_000, 100),
    "100kx10": (100_000, 10),
    "100kx100": (100_000, 100),
    "400kx10": (400_000, 10),
    "1Mx10": (1_000_000, 10),
    "25kx1000": (25_000, 1000),
    "1Mx2": (1_000_000, 2),
}
SMALL = ("500x10", "10kx10", "10kx100")
LARGE = ("1Mx10", "25kx1000")
CLASSWISE = ("1Mx10", "100kx100", "10kx1000")
GROWTH = ("10kx10", "100kx10", "1Mx10")


def make_data(workload: str) -> Data:
    """Return the data of a workload, which are the same at every call."""
    n_rows, n_classes = SIZES[workload]
    rng = np.random.default_rng(0)
    logits = 2.0 * rng.normal(size=(n_rows, n_classes))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    logits *= 1.7
    logits += 0.3 * rng.normal(size=logits.shape)
    return Data(logits, softmax(logits), labels)


def softmax(logits: np.ndarray) -> np.ndarray:
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    return odds


# ---------------------------------------------------------------- this package


def exp_pass(data: Data) -> Call:
    """Compute the exponential of every score into an existing array, as the unit of comparison."""
    out = np.empty_like(data.logits)
    return lambda: np.exp(data.logits, out=out)


def fit(make: Callable[[Any], Any], *, logits: bool = False) -> Callable[[Data], Call]:
    """Return a function that prepares the fit of the calibrator that ``make`` creates."""

    def prepare(data: Data) -> Call:
        model, scores = make(import_module(OURS)), data.logits if logits else data.proba
        if logits:
            model.set_params(inputs="logits")
        return lambda: model.fit(scores, data.labels)

    return prepare


def predict(make: Callable[[Any], Any], *, logits: bool = False) -> Callable[[Data], Call]:
    """Return a function that prepares the prediction of a fitted calibrator."""

    def prepare(data: Data) -> Call:
        model = make(import_module(OURS))
        if logits:
            model.set_params(inputs="logits")
        rows = make_data("500x10") if data.n_classes == 10 else data
        model.fit(rows.logits if logits else rows.proba, rows.labels)
        scores = data.logits if logits else data.proba
        return lambda: model.predict_proba(scores)

    return prepare


def binary_fit(make: Callable[[Any], Any]) -> Callable[[Data], Call]:
    """Return a function that prepares the fit of a binary calibrator of the confidence."""

    def prepare(data: Data) -> Call:
        model, top, right = make(import_module(OURS)), data.top, data.right
        return lambda: model.fit(top, right)

    return prepare


def class_wise(name: str, **options: Any) -> Callable[[Any], Any]:
    """Return a function that creates a binary calibrator for every class."""
    return lambda package: package.MulticlassToBinary(
        getattr(package, name)(**options), notion="class-wise", normalize=True
    )


def metric(name: str, **options: Any) -> Callable[[Data], Call]:
    def prepare(data: Data) -> Call:
        function = getattr(import_module(f"{OURS}.metrics"), name)
        return lambda: function(data.labels, data.proba, **options)

    return prepare


def claim_metric(name: str) -> Callable[[Data], Call]:
    """Return a function that prepares a metric of confidences and outcomes, for comparison with
    packages for binary data.
    """

    def prepare(data: Data) -> Call:
        function = getattr(import_module(f"{OURS}.metrics"), name)
        top, right = data.top, data.right
        return lambda: function(right, top, notion="class-1")

    return prepare


def evaluate(data: Data) -> Call:
    package = import_module(OURS)
    return lambda: package.evaluate(data.labels, data.proba)


def consistency(name: str) -> Callable[[Data], Call]:
    def prepare(data: Data) -> Call:
        test = import_module(f"{OURS}.inference").consistency_test
        return lambda: test(data.labels, data.proba, name, 10_000, rng=0)

    return prepare


def bootstrap(data: Data) -> Call:
    interval = import_module(f"{OURS}.inference").bootstrap_interval
    return lambda: interval("log_loss", data.labels, data.proba, n_resamples=1000, rng=0)


# ---------------------------------------------------------------- other packages


def sklearn_temperature(data: Data) -> Call:
    """Fit the estimator behind ``method="temperature"``, without the cost of its wrapper."""
    model = import_module("sklearn.calibration")._TemperatureScaling()
    return lambda: model.fit(data.logits, data.labels)


def sklearn_auto(data: Data) -> Call:
    """Fit scikit-learn's calibrated classifier by temperature around a classifier that returns its
    input.
    """
    calibration, base = import_module("sklearn.calibration"), import_module("sklearn.base")

    class PassThrough(base.ClassifierMixin, base.BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def decision_function(self, X):
            return X

    model = calibration.CalibratedClassifierCV(PassThrough(), method="temperature", cv=5)
    return lambda: model.fit(data.logits, data.labels)


def one_vs_rest(make: Callable[[], Any], column: Callable[[np.ndarray], Any]) -> Any:
    """Fit a binary calibrator of another package to every class in turn."""

    def prepare(data: Data) -> Call:
        targets = [(data.labels == k).astype(np.float64) for k in range(data.n_classes)]
        columns = [column(np.ascontiguousarray(data.proba[:, k])) for k in range(data.n_classes)]

        def call() -> None:
            for score, target in zip(columns, targets, strict=True):
                make().fit(score, target)

        return call

    return prepare


def one_claim(make: Callable[[], Any], column: Callable[[np.ndarray], Any]) -> Any:
    def prepare(data: Data) -> Call:
        score, target = column(data.top), data.right.astype(np.float64)
        return lambda: make().fit(score, target)

    return prepare


def _log_odds(score: np.ndarray) -> np.ndarray:
    p = np.clip(score, 1e-12, 1 - 1e-12)
    return np.log(p) - np.log1p(-p)


def _as_they_are(score: np.ndarray) -> np.ndarray:
    return score


def _as_column(score: np.ndarray) -> np.ndarray:
    return score[:, None]


def _sigmoid() -> Any:
    return import_module("sklearn.calibration")._SigmoidCalibration()


def _isotonic() -> Any:
    return import_module("sklearn.isotonic").IsotonicRegression(out_of_bounds="clip")


def _betacal() -> Any:
    return import_module("betacal").BetaCalibration(parameters="abm")


def sklearn_logistic(solver: str) -> Callable[[Data], Call]:
    """Fit scikit-learn's closest problem, with a penalty on all weights and no intercept."""

    def prepare(data: Data) -> Call:
        linear = import_module("sklearn.linear_model")
        u = np.log(np.maximum(data.proba, 1e-12))
        model = linear.LogisticRegression(
            C=1 / (2e-3 * len(u)), solver=solver, tol=1e-6, max_iter=1000
        )
        return lambda: model.fit(u, data.labels)

    return prepare


def netcal_fit(path: str, *options: Any) -> Callable[[Data], Call]:
    module, name = path.rsplit(".", 1)

    def prepare(data: Data) -> Call:
        make = getattr(import_module(f"netcal.{module}"), name)
        return lambda: make(*options).fit(data.proba, data.labels)

    return prepare


def netcal_claim_fit(path: str, *options: Any) -> Callable[[Data], Call]:
    module, name = path.rsplit(".", 1)

    def prepare(data: Data) -> Call:
        make, top, right = (
            getattr(import_module(f"netcal.{module}"), name),
            data.top,
            data.right,
        )
        return lambda: make(*options).fit(top, right)

    return prepare


def netcal_metric(name: str, *options: Any) -> Callable[[Data], Call]:
    def prepare(data: Data) -> Call:
        error = getattr(import_module("netcal.metrics"), name)(*options)
        return lambda: error.measure(data.proba, data.labels)

    return prepare


def probmetrics_fit(name: str) -> Callable[[Data], Call]:
    def prepare(data: Data) -> Call:
        module = import_module("probmetrics.calibrators")
        import_module("torch").set_num_threads(1)
        make = getattr(module, name, None) or (lambda: module.get_calibrator(name))
        return lambda: make().fit(data.proba, data.labels)

    return prepare


def torchmetrics_ece(data: Data) -> Call:
    torch = import_module("torch")
    torch.set_num_threads(1)
    errors = import_module("torchmetrics.functional.classification")
    proba, labels = torch.from_numpy(data.proba), torch.from_numpy(data.labels)
    return lambda: float(errors.multiclass_calibration_error(proba, labels, data.n_classes, 15))


def relplot_smooth(data: Data) -> Call:
    function = import_module("relplot").smECE
    top, right = data.top, data.right.astype(np.float64)
    return lambda: function(top, right)


def mapie_ks(data: Data) -> Call:
    calibration = import_module("mapie.metrics.calibration")
    top, right = data.top, data.right
    return lambda: calibration.kolmogorov_smirnov_statistic(right, top)


def venn_abers_fit(data: Data) -> Call:
    model = import_module("venn_abers").VennAbersMultiClass if data.n_classes > 2 else None
    p, y = data.proba, data.labels
    return lambda: model(p, y) if model else None


def pycalib_classwise(data: Data) -> Call:
    metrics = import_module("pycalib.metrics")
    one_hot = np.eye(data.n_classes, dtype=np.int64)[data.labels]
    return lambda: metrics.classwise_ECE(one_hot, data.proba, bins=15)


def sklearn_metric(name: str) -> Callable[[Data], Call]:
    def prepare(data: Data) -> Call:
        function = getattr(import_module("sklearn.metrics"), name)
        if name == "accuracy_score":
            return lambda: function(data.labels, data.proba.argmax(axis=1))
        return lambda: function(data.labels, data.proba, labels=np.arange(data.n_classes))

    return prepare


class Case(NamedTuple):
    """A case: its name, its workloads, the function of Calibrant and those of other packages."""

    name: str
    workloads: tuple[str, ...]
    ours: Callable[[Data], Call]
    peers: dict[str, Callable[[Data], Call]] = {}  # noqa: RUF012  # never written


_MIDDLE = ("500x10", "10kx10", "10kx100", "400kx10")
_ROW = ("1x10",)


def _cases() -> tuple[Case, ...]:
    temperature_peers = {
        "scikit-learn": sklearn_temperature,
        "probmetrics": probmetrics_fit("temp-scaling"),
        "netcal": netcal_fit("scaling.TemperatureScaling"),
    }
    return (
        Case("np.exp", (*CLASSWISE, "25kx1000"), exp_pass),
        Case(
            "temperature",
            (*SMALL, *LARGE, "1Mx2"),
            fit(lambda c: c.TemperatureScaling(), logits=True),
            temperature_peers,
        ),
        Case("temperature (proba)", (*SMALL, *LARGE), fit(lambda c: c.TemperatureScaling())),
        Case(
            "ensemble temperature",
            SMALL,
            fit(lambda c: c.EnsembleTemperatureScaling()),
            {"probmetrics": probmetrics_fit("ETSCalibrator")},
        ),
        Case(
            "vector",
            _MIDDLE,
            fit(lambda c: c.VectorScaling()),
            {"probmetrics": probmetrics_fit("VectorScalingCalibrator")},
        ),
        Case(
            "matrix",
            _MIDDLE,
            fit(lambda c: c.MatrixScaling()),
            {"probmetrics": probmetrics_fit("MatrixScalingCalibrator")},
        ),
        Case(
            "structured vector",
            _MIDDLE,
            fit(lambda c: c.StructuredScaling("vector")),
            {"probmetrics": probmetrics_fit("svs")},
        ),
        Case(
            "structured matrix",
            _MIDDLE,
            fit(lambda c: c.StructuredScaling()),
            {"probmetrics": probmetrics_fit("sms")},
        ),
        Case(
            "Dirichlet ODIR 1e-3",
            ("500x10", "10kx10"),
            fit(lambda c: c.DirichletCalibration(1e-3)),
            {"scikit-learn": sklearn_logistic("newton-cholesky")},
        ),
        Case(
            "Dirichlet ODIR 1e-3, many classes",
            ("10kx100",),
            fit(lambda c: c.DirichletCalibration(1e-3)),
            {"scikit-learn": sklearn_logistic("newton-cg")},
        ),
        Case(
            "AutoCalibration",
            (*_MIDDLE, "50kx100"),
            fit(lambda c: c.AutoCalibration()),
            {"scikit-learn": sklearn_auto},
        ),
        *_binary_cases(),
        *_metric_cases(),
        Case("consistency cw_ece", ("10kx10", "10kx100"), consistency("cw_ece")),
        Case("consistency conf_ece", ("10kx10", "10kx100"), consistency("conf_ece")),
        Case("bootstrap log_loss", ("10kx10", "10kx100"), bootstrap),
        *_prediction_cases(),
        Case("canonical binning", GROWTH, fit(lambda c: c.CanonicalBinning())),
        Case("Gaussian process", ("500x10",), fit(lambda c: c.GaussianProcessCalibration())),
    )


def _binary_cases() -> tuple[Case, ...]:
    every = (*SMALL, "400kx10", "25kx1000")
    sigmoid = {"scikit-learn": one_vs_rest(_sigmoid, _log_odds)}
    isotonic = {
        "scikit-learn": one_vs_rest(_isotonic, _as_they_are),
        "netcal": netcal_fit("binning.IsotonicRegression"),
    }
    beta = {"betacal": one_vs_rest(_betacal, _as_column)}
    histogram = {"netcal": netcal_fit("binning.HistogramBinning", 15)}
    one = ("1Mx2",)
    return (
        Case("Platt OvR", every, fit(class_wise("PlattScaling")), sigmoid),
        Case("beta OvR", every[:-1], fit(class_wise("BetaCalibration")), beta),
        Case("isotonic OvR", every, fit(class_wise("IsotonicCalibration")), isotonic),
        Case("histogram OvR", every, fit(class_wise("HistogramBinning")), histogram),
        Case(
            "BBQ OvR",
            SMALL[:2],
            fit(class_wise("BayesianBinning")),
            {"netcal": netcal_fit("binning.BBQ")},
        ),
        Case("Venn-Abers OvR", SMALL[:2], fit(class_wise("VennAbers"))),
        Case("spline OvR", SMALL[:2], fit(class_wise("SplineCalibration"))),
        Case(
            "Platt",
            one,
            binary_fit(lambda c: c.PlattScaling()),
            {"scikit-learn": one_claim(_sigmoid, _log_odds)},
        ),
        Case(
            "beta",
            (*GROWTH, *one),
            binary_fit(lambda c: c.BetaCalibration()),
            {"betacal": one_claim(_betacal, _as_column)},
        ),
        Case(
            "isotonic",
            one,
            binary_fit(lambda c: c.IsotonicCalibration()),
            {"scikit-learn": one_claim(_isotonic, _as_they_are)},
        ),
        Case(
            "histogram",
            one,
            binary_fit(lambda c: c.HistogramBinning()),
            {"netcal": netcal_claim_fit("binning.HistogramBinning", 15)},
        ),
        Case("Venn-Abers", one, binary_fit(lambda c: c.VennAbers())),
    )


def _metric_cases() -> tuple[Case, ...]:
    ece, every = "expected_calibration_error", (*SMALL, *LARGE)
    netcal_ece, pycalib = netcal_metric("ECE", 15), {"pycalib": pycalib_classwise}
    return (
        Case("evaluate", every, evaluate),
        Case(
            "ECE confidence",
            every,
            metric(ece),
            {"torchmetrics": torchmetrics_ece, "netcal": netcal_ece},
        ),
        Case("ECE top-label", every, metric(ece, notion="top-label")),
        Case(
            "ECE class-wise",
            (*SMALL, *CLASSWISE, "25kx1000"),
            metric(ece, notion="class-wise"),
            pycalib,
        ),
        Case(
            "ECE confidence, quantile bins",
            every,
            metric(ece, strategy="quantile"),
            {"netcal": netcal_metric("ACE", 15)},
        ),
        Case(
            "ECE class-wise, quantile bins",
            SMALL,
            metric(ece, strategy="quantile", notion="class-wise"),
        ),
        Case("KS confidence", (*every, "100kx10"), metric("ks_error")),
        Case("KS of top scores", every, claim_metric("ks_error"), {"mapie": mapie_ks}),
        Case("smooth ECE", every, metric("smooth_calibration_error")),
        Case(
            "smooth ECE of top scores",
            every,
            claim_metric("smooth_calibration_error"),
            {"relplot": relplot_smooth},
        ),
        Case(
            "SKCE confidence",
            (*SMALL, "100kx10", "1Mx10"),
            metric("kernel_calibration_error", notion="confidence"),
        ),
        Case(
            "accuracy",
            every,
            metric("accuracy"),
            {"scikit-learn": sklearn_metric("accuracy_score")},
        ),
        Case("Brier", every, metric("brier_score")),
        Case("log loss", every, metric("log_loss"), {"scikit-learn": sklearn_metric("log_loss")}),
    )


def _prediction_cases() -> tuple[Case, ...]:
    makers = {
        "temperature": lambda c: c.TemperatureScaling(),
        "ensemble temperature": lambda c: c.EnsembleTemperatureScaling(),
        "vector": lambda c: c.VectorScaling(),
        "matrix": lambda c: c.MatrixScaling(0.01),
        "structured matrix": lambda c: c.StructuredScaling(),
    }
    binary = {
        "Platt OvR": class_wise("PlattScaling"),
        "beta OvR": class_wise("BetaCalibration"),
        "isotonic OvR": class_wise("IsotonicCalibration"),
        "histogram OvR": class_wise("HistogramBinning", n_bins=10),
        "Venn-Abers OvR": class_wise("VennAbers"),
    }
    return (
        *(
            Case(f"predict {name}", _ROW, predict(make, logits=True))
            for name, make in makers.items()
        ),
        *(Case(f"predict {name}", _ROW, predict(make)) for name, make in binary.items()),
        Case("predict temperature, all rows", LARGE, predict(makers["temperature"], logits=True)),
        Case("predict temperature (proba), all rows", LARGE, predict(makers["temperature"])),
        Case("predict Platt OvR, all rows", ("1Mx10",), predict(binary["Platt OvR"])),
    )


CASES = {case.name: case for case in _cases()}
PEERS = (
    "scikit-learn",
    "netcal",
    "probmetrics",
    "torchmetrics",
    "relplot",
    "betacal",
    "mapie",
    "pycalib",
)


def call_of(package: str, case: str, data: Data) -> Call:
    """Return the prepared call of a package for a case. The package is Calibrant or another one."""
    warnings.simplefilter("ignore")
    chosen = CASES[case]
    return (chosen.ours if package == OURS else chosen.peers[package])(data)


# ---------------------------------------------------------------- targets


class Target(NamedTuple):
    """A target of a case: a ratio to another package, a number of passes of np.exp, or
    milliseconds.
    """

    case: str
    workload: str
    kind: str
    default: float
    fast: float | None = None
    peer: str | None = None


def _ratio(
    case: str, workload: str, default: float, fast: float | None = None, peer: Any = None
) -> Target:
    return Target(case, workload, "ratio", default, fast, peer)


TARGETS = (
    _ratio("temperature", "10kx10", 10, 10, "scikit-learn"),
    _ratio("temperature", "10kx100", 10, 15, "scikit-learn"),
    _ratio("temperature", "1Mx10", 8, 15, "scikit-learn"),
    _ratio("temperature", "25kx1000", 12, 20, "scikit-learn"),
    _ratio("temperature", "500x10", 5, None, "scikit-learn"),
    *(
        _ratio(f"{name} OvR", w, 2)
        for name in ("Platt", "beta")
        for w in CASES[f"{name} OvR"].workloads
    ),
    *(_ratio("histogram OvR", w, 1.3) for w in CASES["histogram OvR"].workloads),
    _ratio("Platt", "1Mx2", 2),
    _ratio("beta", "1Mx2", 2),
    _ratio("histogram", "1Mx2", 1.3),
    _ratio("structured matrix", "10kx100", 1.5),
    *(_ratio("smooth ECE of top scores", w, 3) for w in (*SMALL, *LARGE)),
    *(_ratio("KS of top scores", w, 1.2) for w in (*SMALL, *LARGE)),
    *(_ratio("isotonic OvR", w, 3, None, "scikit-learn") for w in CASES["isotonic OvR"].workloads),
    _ratio("isotonic", "1Mx2", 3, None, "scikit-learn"),
    *(Target("ECE class-wise", w, "passes", 3, 1.6) for w in CLASSWISE),
    Target("evaluate", "1Mx10", "passes", 11, 5),
    Target("predict temperature, all rows", "1Mx10", "passes", 6, 3.5),
    *(
        Target(f"predict {name}", "1x10", "ms", 0.05)
        for name in ("temperature", "ensemble temperature", "vector", "matrix", "structured matrix")
    ),
    *(
        Target(f"predict {name} OvR", "1x10", "ms", 0.1)
        for name in ("Platt", "beta", "isotonic", "histogram", "Venn-Abers")
    ),
    Target("consistency cw_ece", "10kx10", "ms", 1700, 300),
    Target("consistency cw_ece", "10kx100", "ms", 3500, 1100),
    *(Target("bootstrap log_loss", w, "ms", 70) for w in ("10kx10", "10kx100")),
    *(Target("AutoCalibration", w, "before", 2) for w in ("10kx10", "10kx100")),
    Target("AutoCalibration", "50kx100", "before", 4),
    *(
        Target(name, "1Mx10", "growth", 1.2)
        for name in ("canonical binning", "beta", "KS confidence", "SKCE confidence")
    ),
)

LIMITS = (
    "Temperature, 500x10: the fit takes 0.31 ms. The search takes 0.12 ms (0.025 ms per "
    "exponential of 5,000 numbers, and a dozen calls of NumPy). The summary takes 0.12 ms: the "
    "log-losses before and after the fit, and hashes of 64 rows, which later show whether held-out "
    "rows were used for the fit. Input checks take the remaining time. An earlier version took the "
    "log-losses from the search and needed 0.18 ms, but its search depended on five modules.",
    "AutoCalibration, 500x10 and 10kx10: the ensemble has two more members and a calibrated "
    "confidence compared with the earlier rule, to which the target refers.",
    "ECE class-wise: the unit is the time of one `np.exp`, which is three times as fast with "
    "AVX-512.",
    "Accuracy, 25kx1000: the search for the highest entry of each row takes 11 ms in both "
    "packages. The other package takes 15 ms in total and does not validate probabilities. "
    "Calibrant also finds the smallest entry and the sum of each row, which takes 16 ms because "
    "each reads 200 MB.",
    "A compiled softmax for predictions was not added. It is 1.5 to 1.8 times as fast as the "
    "softmax in NumPy, and would make a prediction 1.3 to 1.5 times as fast. A compiled "
    "evaluation in one pass was not added either, because `evaluate` meets its target without "
    "it.",
)
"""Reasons for targets that are not met in every run, as written on the page."""

WAITS = (
    ("structured matrix", "10kx100"),
    ("Dirichlet ODIR 1e-3, many classes", "10kx100"),
    ("temperature", "25kx1000"),
    ("evaluate", "1Mx10"),
)
"""Cases for which threads can help: matrix products, and passes over large data."""

MOST_WAIT = 1.2
