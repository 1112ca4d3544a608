"""Write `bad-inputs.md`, which lists messages about bad inputs and the result of their advice.

The script runs every case: the bad call, which must raise or warn, and the call that follows the
advice of the message. The second result must be that of the same data in the correct form.

    python tools/make_bad_inputs.py --write
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax
from sklearn.utils.class_weight import compute_sample_weight

import calibrant
from calibrant import metrics
from calibrant.exceptions import DataWarning, NotFittedError

PAGE = Path(__file__).resolve().parents[1] / "docs" / "development" / "bad-inputs.md"

HEAD = """# Bad inputs

`tools/make_bad_inputs.py` writes this page. The script runs each wrong call and the corrected call,
and compares the result with the result of valid data. An error stops the call. A *warning*
(`calibrant.exceptions.DataWarning`) states what Calibrant assumed or repaired, and the call
continues.

The calls use these variables, which have 600 rows or 600 pixels:

| name | three classes |
|---|---|
| `y`, `text`, `series` | column indices, names ("low", "mid" and "high"), and a Series of names |
| `p`, `z`, `frame` | probabilities, logits, and a data frame with one column per class |
| `pixels`, `pixel_y` | probabilities and labels of 20 images (30 pixels, classes on axis 1) |

| name | two classes |
|---|---|
| `y2`, `yes` | labels as 0 and 1, and as "no" and "yes" |
| `s` | probability of class 1 |

`loss` is `evaluate(...).log_loss`.
"""


class Case(NamedTuple):
    """A bad call, the call that follows the advice of its message, and a correct call.

    The second call is None if only other data help. The results of the last two calls may differ
    by ``within``.
    """

    call: str
    obeyed: str | None
    right: str
    within: float = 1e-9


CASES = (
    # Frames
    Case("loss(text, frame, classes=['low', 'mid', 'top'])", "loss(text, frame)", "loss(y, p)"),
    Case("loss(text, frame.rename(columns={'high': 'top'}))", "loss(text, frame)", "loss(y, p)"),
    Case(
        "model.predict_proba(frame.rename(columns={'high': 'top'}))",
        "loss(y, model.predict_proba(frame[model.feature_names_in_]))",
        "loss(y, model.predict_proba(p))",
    ),
    Case(
        "shifted.predict_proba(frame[['high', 'low', 'mid']].to_numpy())",
        "loss(y, shifted.predict_proba(frame[['high', 'low', 'mid']]))",
        "loss(y, calibrated)",
    ),
    Case("loss(series, frame[::-1])", "loss(series, frame[::-1].loc[series.index])", "loss(y, p)"),
    # Labels
    Case("loss(yes, s)", "loss(yes, s, classes=['no', 'yes'])", "loss(y2, s)"),
    Case(
        "loss([*text[:-1], np.nan], p, classes=['low', 'mid', 'high'])",
        "loss(text[:-1], p[:-1], classes=['low', 'mid', 'high'])",
        "loss(y[:-1], p[:-1])",
    ),
    Case("loss([None, *y[1:]], p)", "loss(y[1:], p[1:])", "loss(y[1:], p[1:])"),
    Case("loss([*y[:-1], np.nan], p)", "loss(y[:-1], p[:-1])", "loss(y[:-1], p[:-1])"),
    Case("loss(y[:, None], p)", "loss(np.ravel(y[:, None]), p)", "loss(y, p)"),
    Case("loss(np.eye(3)[y], p)", "loss(np.argmax(np.eye(3)[y], axis=1), p)", "loss(y, p)"),
    Case(
        "loss(np.eye(3)[y], p, classes=[7, 0, 1])",
        "loss(np.take([7, 0, 1], np.argmax(np.eye(3)[y], axis=1)), p, classes=[7, 0, 1])",
        "loss(y, p)",
    ),
    Case("loss(p, p)", None, "loss(y, p)"),
    Case("loss(y + 1, p)", "loss(y + 1, p, classes=[1, 2, 3])", "loss(y, p)"),
    Case(
        "loss(y[y < 2] + 1, p[y < 2])",
        "loss(y[y < 2] + 1, p[y < 2], classes=range(1, 4))",
        "loss(y[y < 2], p[y < 2])",
    ),
    Case("loss(y.astype(float), p)", "loss(y.astype(float).astype(int), p)", "loss(y, p)"),
    Case("loss(y + 0.5, p)", "loss(y + 0.5, p, classes=[0.5, 1.5, 2.5])", "loss(y, p)"),
    Case(
        "loss(text[y < 2], p[y < 2])",
        "loss(text[y < 2], p[y < 2], classes=['low', 'mid', 'high'])",
        "loss(y[y < 2], p[y < 2])",
    ),
    Case("loss(['fox', *text[1:]], p, classes=['low', 'mid', 'high'])", None, "loss(y, p)"),
    Case("loss(text, p)", "loss(text, p, classes=['low', 'mid', 'high'])", "loss(y, p)"),
    Case("loss([], p)", None, "loss(y, p)"),
    Case(
        "loss(np.array([*text[:-1], np.nan]), p)",
        "loss(text[:-1], p[:-1], classes=['low', 'mid', 'high'])",
        "loss(y[:-1], p[:-1])",
    ),
    Case(
        "loss(np.ma.masked_equal(y, 2), p)",
        "loss(y[y < 2], p[y < 2], classes=range(3))",
        "loss(y[y < 2], p[y < 2])",
    ),
    Case(
        "loss(np.where(y2 == 1, 1, -1), s)",
        "loss(np.where(y2 == 1, 1, -1), s, classes=[-1, 1])",
        "loss(y2, s)",
    ),
    Case(
        "loss((y + 1).astype(object), p)",
        "loss((y + 1).astype(object), p, classes=[1, 2, 3])",
        "loss(y, p)",
    ),
    Case(
        "loss(text.astype('S'), p, classes=['low', 'mid', 'high'])",
        "loss(text.astype('S').astype(str), p, classes=['low', 'mid', 'high'])",
        "loss(y, p)",
    ),
    Case(
        "loss(days[y2], s)",
        "loss(days[y2], s, classes=[days[0], days[1]])",
        "loss(y2, s)",
    ),
    # Truth and scores
    Case("loss(y[:-1], p)", "loss(y[:-1], p[:-1])", "loss(y[:-1], p[:-1])"),
    Case("loss(y, p.T)", "loss(y, p.T.T)", "loss(y, p)"),
    Case("loss(p, y)", "loss(y, p)", "loss(y, p)"),
    Case("loss(s, y2)", "loss(y2, s)", "loss(y2, s)"),
    Case("model.fit(y, p)", "loss(y, model.fit(p, y).predict_proba(p))", "loss(y, calibrated)"),
    # Scores
    Case("loss(y, p.argmax(axis=1))", "loss(y, p)", "loss(y, p)"),
    Case("loss(y, p, inputs='logits')", "loss(y, p)", "loss(y, p)"),
    Case("loss(y, csr_array(p))", "loss(y, csr_array(p).toarray())", "loss(y, p)"),
    Case("loss(y, p + 0j)", "loss(y, (p + 0j).real)", "loss(y, p)"),
    Case(
        "loss(y, np.ma.masked_where(p == p[3, 1], p))",
        "loss(y[kept], p[kept])",
        "loss(y[kept], p[kept])",
    ),
    Case("loss(text, dict(frame))", "loss(text, frame)", "loss(y, p)"),
    Case("loss([0, 1], [[0.9, 0.1], [0.2]])", None, "loss(y, p)"),
    Case(
        "loss(y, np.where(p == p[3, 1], np.nan, p))",
        "loss(y[kept], p[kept])",
        "loss(y[kept], p[kept])",
    ),
    Case("loss(y, z)", "loss(y, z, inputs='logits')", "loss(y, p)"),
    Case("loss(y, log_p)", "loss(y, log_p, inputs='log_proba')", "loss(y, p)"),
    Case("metrics.log_loss(y, log_p)", "metrics.log_loss(y, np.exp(log_p))", "loss(y, p)"),
    Case("loss(y2, np.log(s))", "loss(y2, np.log(s), inputs='log_proba')", "loss(y2, s)"),
    Case("loss(y2, odds)", "loss(y2, odds, inputs='logits')", "loss(y2, s)"),
    Case("loss(y, 100 * p)", "loss(y, 100 * p / 100)", "loss(y, p)"),
    Case("loss(y2, 100 * s)", "loss(y2, 100 * s / 100)", "loss(y2, s)"),
    Case("loss(y, 1.3 * p)", "loss(y, divided(1.3 * p))", "loss(y, p)"),
    Case("loss(y, 0.7 * p)", "loss(y, 0.7 * p, renormalize=True)", "loss(y, p)"),
    Case("loss(y, p.round(3))", "loss(y, divided(p.round(3)))", "loss(y, p)", 2e-3),
    Case("loss(y, bfloat16)", "loss(y, divided(bfloat16))", "loss(y, p)", 2e-3),
    Case("loss([0, 1], [[1.0, -1e-17], [0, 1]])", None, "loss([0, 1], [[1, 0], [0, 1]])"),
    Case(
        "loss(y, np.log(0.8 * p), inputs='log_proba')",
        "loss(y, np.log(0.8 * p), inputs='logits')",
        "loss(y, p)",
    ),
    Case("loss(y, z, inputs='log_proba')", "loss(y, z, inputs='logits')", "loss(y, p)"),
    Case(
        "loss(y, np.where(z == z[3, 1], np.inf, z), inputs='logits')",
        "loss(y[kept], p[kept])",
        "loss(y[kept], p[kept])",
    ),
    Case("loss(y2, s[:, None])", "loss(y2, s[:, None][:, 0])", "loss(y2, s)"),
    Case("loss(y, p[:, :, None])", None, "loss(y, p)"),
    Case(
        "loss(pixel_y, pixels)",
        "loss(*flatten_predictions(pixel_y, pixels, class_axis=1))",
        "loss(y, p)",
    ),
    Case(
        "model.predict_proba(pixels)",
        "loss(*flatten_predictions(pixel_y, map_scores(model.predict_proba, pixels)))",
        "loss(y, calibrated)",
    ),
    Case(
        "model.predict_proba(p[0])",
        "loss(y[:1], model.predict_proba(p[0][None]))",
        "loss(y[:1], calibrated[:1])",
    ),
    Case("loss(y[0], p[0])", "loss([y[0]], p[0][None])", "loss(y[:1], p[:1])"),
    Case(
        "TemperatureScaling(inputs='logits').fit(cut, y).temperature_",
        "TemperatureScaling(inputs='logits').fit(np.maximum(cut, least), y).temperature_",
        "TemperatureScaling(inputs='logits').fit(z, y).temperature_",
        0.5,
    ),
    # Options
    Case("loss(y, p, inputs='probs')", "loss(y, p, inputs='proba')", "loss(y, p)"),
    Case("ece(y, p, norm='l2')", "ece(y, p, norm=2)", "ece(y, p, norm=2.0)"),
    Case(
        "ece(y, p, notion='clas-wise')",
        "ece(y, p, notion='class-wise')",
        "ece(y, p, notion='class-wise')",
    ),
    Case("ece(y, p, n_bins=0)", "ece(y, p, n_bins=1)", "ece(y, p, n_bins=1)"),
    Case(
        "TemperatureScaling('logits').fit(z, y)",
        "loss(y, TemperatureScaling(inputs='logits').fit(z, y).predict_proba(z))",
        "loss(y, calibrated)",
        1e-6,
    ),
    Case(
        "loss(text, p, classes={'low', 'mid', 'high'})",
        "loss(text, p, classes=['low', 'mid', 'high'])",
        "loss(y, p)",
    ),
    Case(
        "loss(text, p, classes='low,mid,high')",
        "loss(text, p, classes=['low', 'mid', 'high'])",
        "loss(y, p)",
    ),
    Case("loss(y, p, classes=[0, 1, 1])", "loss(y, p, classes=[0, 1, 2])", "loss(y, p)"),
    Case("loss(y, p, classes=[0, 1])", "loss(y, p, classes=[0, 1, 2])", "loss(y, p)"),
    Case(
        "PlattScaling().fit(p, y)",
        "loss(y, one_vs_rest.fit(p, y).predict_proba(p))",
        "loss(y, one_vs_rest.fit(p, y).predict_proba(p))",
    ),
    Case(
        "TemperatureScaling().predict_proba(p)",
        "loss(y, TemperatureScaling().fit(p, y).predict_proba(p))",
        "loss(y, calibrated)",
    ),
    # Weights
    Case(
        "loss(y, p, sample_weight='balanced')",
        "loss(y, p, sample_weight=compute_sample_weight('balanced', y))",
        "np.mean([loss(y[y == k], p[y == k], classes=range(3)) for k in range(3)])",
    ),
    Case(
        "loss(y, p, sample_weight=-np.ones(600))",
        "loss(y, p, sample_weight=np.ones(600))",
        "loss(y, p)",
    ),
    Case("loss(y, p, sample_weight=np.zeros(600))", None, "loss(y, p)"),
    Case(
        "loss(y, p, sample_weight=np.ones(599))",
        "loss(y, p, sample_weight=np.ones(600))",
        "loss(y, p)",
    ),
    Case(
        "metrics.kernel_calibration_error(y, p, sample_weight=w)",
        "metrics.kernel_calibration_error(y, p, sample_weight=w * len(y) / w.sum())",
        "metrics.kernel_calibration_error(y, p)",
    ),
    Case(
        "TemperatureScaling().fit(p, y, sample_weight=w).temperature_",
        "TemperatureScaling().fit(p, y, sample_weight=w * w.sum() / (w**2).sum()).temperature_",
        "TemperatureScaling().fit(p, y).temperature_",
    ),
)


def names() -> dict[str, Any]:
    """Return the names that the calls use."""
    import pandas

    generator = np.random.default_rng(7)
    z = generator.normal(scale=2.0, size=(600, 3))
    y = (0.6 * z + generator.gumbel(size=z.shape)).argmax(axis=1)
    p, odds = softmax(z, axis=1), z[:, 1] - z[:, 0]
    s, labels = 1 / (1 + np.exp(-odds)), np.array(["low", "mid", "high"])
    y2 = (generator.random(600) < s).astype(int)
    cut = np.where(z == z.min(axis=1, keepdims=True), -np.inf, z)
    frame = pandas.DataFrame(p, columns=labels)
    bits = (p.astype(np.float32).view(np.uint32) + 0x8000) & 0xFFFF0000
    one_vs_rest = calibrant.MulticlassToBinary(
        calibrant.PlattScaling(), notion="class-wise", normalize=True
    )
    return {
        **{name: getattr(calibrant, name) for name in calibrant.__all__},
        **{"np": np, "csr_array": csr_array, "series": pandas.Series(labels[y])},
        **{"days": np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")},
        **{"metrics": metrics, "compute_sample_weight": compute_sample_weight},
        **{"y": y, "p": p, "z": z, "y2": y2, "s": s, "odds": odds, "text": labels[y]},
        **{"yes": np.where(y2 == 1, "yes", "no"), "frame": frame, "log_p": log_softmax(z, axis=1)},
        **{"cut": cut, "least": np.where(np.isneginf(cut), np.inf, cut).min(1, keepdims=True)},
        **{"w": np.full(600, 1 / 600), "kept": np.arange(600) != 3, "one_vs_rest": one_vs_rest},
        "bfloat16": bits.view(np.float32),
        "pixels": np.moveaxis(p.reshape(20, 30, 3), -1, 1),
        "pixel_y": y.reshape(20, 30),
        "divided": lambda rows: rows / rows.sum(axis=1, keepdims=True),
        "model": calibrant.TemperatureScaling().fit(frame, labels[y]),
        "shifted": calibrant.TemperatureScaling(classes=labels).fit(
            frame[["high", "low", "mid"]], labels[y]
        ),
        "calibrated": calibrant.TemperatureScaling().fit(p, y).predict_proba(p),
        "loss": lambda *a, **k: calibrant.evaluate(*a, **k).log_loss,
        "ece": metrics.expected_calibration_error,
    }


def value(expression: str, namespace: dict[str, Any]) -> float:
    """Return the number that a call returns. A warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return float(eval(expression, dict(namespace)))


def message_of(case: Case, namespace: dict[str, Any]) -> str:
    """Return the message of the error or warning of the bad call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(case.call, dict(namespace))
        except (ValueError, TypeError, NotFittedError) as error:
            return str(error)
    messages = [str(w.message) for w in caught if issubclass(w.category, DataWarning)]
    if len(messages) != 1:
        raise AssertionError(f"{case.call}: expected one warning, got {messages}")
    return f"*warning*: {messages[0]}"


def page() -> str:
    """Return the text of the page."""
    namespace = names()
    rows = [
        "| wrong call | message | corrected call | result | correct result |",
        "|---|---|---|---|---|",
    ]
    for case in CASES:
        message = message_of(case, namespace).replace("|", "\\|").replace("\n", " ")
        obeyed = "other data" if case.obeyed is None else f"`{case.obeyed}`"
        number = "" if case.obeyed is None else f"{value(case.obeyed, namespace):.4f}"
        right = "" if case.obeyed is None else f"{value(case.right, namespace):.4f}"
        rows.append(f"| `{case.call}` | {message} | {obeyed} | {number} | {right} |")
    return f"{HEAD}\nThe table lists {len(CASES)} inputs.\n\n" + "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the page")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())


if __name__ == "__main__":
    main()
