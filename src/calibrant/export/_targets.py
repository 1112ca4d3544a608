"""Public export functions, one per target."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from calibrant._output.files import check_writable
from calibrant._validation import check_option
from calibrant.classifier import CalibratedClassifier
from calibrant.export._average import Average, average_of
from calibrant.export._boundary import OUTPUTS
from calibrant.export._emit import program
from calibrant.export._javascript import as_javascript
from calibrant.export._python import as_python
from calibrant.export._sql import as_sql

OnePath = str | os.PathLike[str]


def to_onnx(
    calibrator: Any,
    path: str | os.PathLike[str],
    *,
    opset: int = 17,
    dtype: str = "float64",
    model: OnePath | Sequence[OnePath] | None = None,
    output: str | None = None,
) -> None:
    """Export a fitted calibrator to an ONNX file, alone or combined with a classifier.

    Parameters
    ----------
    calibrator : fitted calibrator or decision, Program, or fitted CalibratedClassifier
        The calibrator or rule to export.
    path : path-like
        The file to write. An existing file is replaced only after the export has succeeded.
    opset : int
        Operator set, at least 13. With ``model``, this argument is ignored, and the operator set of
        the model is used.
    dtype : {"float64", "float32"}
        Type of scores and probabilities. All computations use double precision.
    model : path-like or list of path-like, optional
        ONNX file of the classifier. The new file has the inputs of the classifier and runs both.
        For a `CalibratedClassifier`, pass the files of all its ``estimators_`` in their order.
    output : str, optional
        Name of the classifier output with the scores. By default, it is the first output whose name
        matches the inputs of the calibrator ("prob", "logit", or "log" and "prob"). If no name
        matches, it is the first output whose name contains none of "prob", "log" and "label".

    Raises
    ------
    ImportError
        If the package onnx is not installed: ``pip install "calibrant[onnx]"``.

    See Also
    --------
    to_torch : Export to a PyTorch module.
    to_sql : Export to an SQL query.
    to_python : Export to a Python module without dependencies.
    to_javascript : Export to a JavaScript module.

    Notes
    -----
    The input is ``scores`` (n, K). The outputs are ``probabilities`` (n, K) and ``label`` (n,).
    Labels are strings or integers if the classes are strings or integers, and column numbers
    otherwise. A step function
    with E edges takes O(n sqrt(E)) time and memory.

    A rule of `calibrant.decisions` adds the outputs ``decision`` (n,) with ``answered`` (n,) or
    ``expected_cost`` (n,), or ``in_set`` (n, K).

    For rows that ``predict_proba`` rejects, such as rows with NaN, the probabilities are NaN. The
    label is then an empty string, or -1. If classes are negative integers, the label is an integer
    below all classes.
    """
    models = _as_list(model)
    average = _average(calibrator, len(models))
    check_writable(path)
    try:
        from calibrant.export._onnx_join import write_model
    except ImportError as error:
        raise _missing("onnx", 'pip install "calibrant[onnx]"') from error
    write_model(average, path, opset, dtype, models, output)


def _as_list(model: OnePath | Sequence[OnePath] | None) -> list[OnePath]:
    if model is None:
        return []
    return [model] if isinstance(model, str | os.PathLike) else list(model)


def _average(calibrator: Any, n_models: int) -> Average:
    """Return the programs for the scores of each classifier."""
    if not isinstance(calibrator, CalibratedClassifier):
        if n_models > 1:
            raise ValueError(
                f"model= has {n_models} files, but only a CalibratedClassifier has several "
                "classifiers. Pass one file, or pass the CalibratedClassifier."
            )
        return Average((program(calibrator),), (1.0,))
    average = average_of(calibrator)
    _check_models(calibrator, n_models)
    return average


def _check_models(classifier: CalibratedClassifier, n_models: int) -> None:
    """Raise unless there is a file for each fitted classifier, with a column for every class."""
    n_fits = len(classifier.estimators_)
    if n_models != n_fits:
        fewer = ", or fit with ensemble=False, which has one classifier" if n_fits > 1 else ""
        noun = "file" if n_models == 1 else "files"
        raise ValueError(
            f"This CalibratedClassifier has {n_fits} fitted classifiers, but model= has {n_models} "
            f"{noun}. Convert model.estimators_ with a tool such as skl2onnx and pass the files "
            f"in the same order{fewer}."
        )
    for number, member in enumerate(classifier.estimators_):
        if len(member.classes_) != len(classifier.classes_):
            raise ValueError(
                f"estimators_[{number}] was trained without some classes, so its file has too few "
                f"columns. Fit with fewer folds, or with ensemble=False."
            )


def to_torch(
    calibrator: Any,
    *,
    dtype: str = "float64",
    trainable: bool = False,
    class_axis: int = -1,
    output: str = "proba",
) -> Any:
    """Export a fitted calibrator to a ``torch.nn.Module`` from scores to probabilities.

    Parameters
    ----------
    calibrator : fitted calibrator or decision, or Program
        The calibrator or rule to export.
    dtype : {"float64", "float32"}
        Type of the arithmetic. The result has the dtype of the scores.
    trainable : bool
        Whether temperatures, coefficients and offsets are trainable parameters.
        All other numbers are buffers. ``state_dict`` contains parameters and buffers.
    class_axis : int
        The axis of the classes in the scores: -1 for rows (n, K) and tokens (n, t, K), 1 for images
        (n, K, h, w).
    output : {"proba", "log_proba", "logits"}
        Type of the result. PyTorch losses need logits or log-probabilities.

    Returns
    -------
    torch.nn.Module
        The module. The result of the module has the shape of the scores. The result is NaN for rows
        that ``predict_proba`` rejects, such as rows with NaN. A rule of `calibrant.decisions`
        returns a dictionary with "probabilities" and its named outputs. A decision is an index into
        ``module.outputs[0].labels``.

    Raises
    ------
    ImportError
        If PyTorch is not installed.

    See Also
    --------
    save_torch : Write a calibrator to a file with ``torch.export``.
    to_onnx : Export to an ONNX file.
    """
    steps = program(calibrator)
    check_option(dtype, "dtype", ("float64", "float32"))
    check_option(output, "output", OUTPUTS)
    backend = _torch()
    options = backend.ModuleOptions(dtype, trainable, class_axis, output)
    return backend.CalibratorModule(steps, options)


def save_torch(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator to a file with ``torch.export``.

    Parameters
    ----------
    calibrator : fitted calibrator or decision, or Program
        The calibrator or rule to export.
    path : path-like
        The file to write. Load it with ``torch.export.load(path).module()``, which is a function
        from float64 scores (n, K) to probabilities.

    See Also
    --------
    to_torch : Export to a PyTorch module.
    """
    steps = program(calibrator)
    check_writable(path)
    _torch().save_module(steps, path)


def _torch() -> Any:
    try:
        from calibrant.export import _torch as backend
    except ImportError as error:
        raise _missing("torch", "pip install torch") from error
    return backend


def to_sql(
    calibrator: Any,
    *,
    table: str,
    columns: Sequence[str],
    dialect: str = "duckdb",
    keep: Sequence[str] = (),
) -> str:
    """Export a fitted calibrator to an SQL query on a table of scores.

    Parameters
    ----------
    calibrator : fitted calibrator or decision, or Program
        The calibrator or rule to export.
    table : str
        Name of the table. Dots separate schema and table.
    columns : sequence of str
        Names of the score columns, in the order of the classes.
    dialect : {"duckdb", "sqlite", "postgres", "bigquery", "snowflake", "spark"}
        SQL dialect. The tests of this package execute queries for DuckDB and SQLite. The other
        dialects are experimental, and their queries begin with a comment that states this.
    keep : sequence of str
        Other columns to include in the result, such as the key.

    Returns
    -------
    str
        The query. The result of the query has the columns in ``keep``, one column
        ``calibrated_<class>`` per class, and ``calibrated_label``. A rule of `calibrant.decisions`
        adds ``decision``, ``answered``, ``expected_cost`` or ``in_set_<class>``. All these columns
        are NULL for rows that ``predict_proba`` rejects, such as rows with NULL or NaN.

    Raises
    ------
    ValueError
        If two columns of the result have the same name, regardless of case.

    See Also
    --------
    to_onnx : Export to an ONNX file.
    to_python : Export to a Python module without dependencies.

    Notes
    -----
    Names and strings are quoted, and numbers are written with all digits. Probabilities below
    1e-304 become zero. The engine needs the functions ``ln`` and ``exp``. SQLite has both functions
    since version 3.35 if it was built with mathematical functions. Run ``SELECT ln(exp(1))`` to
    test your engine.

    Examples
    --------
    >>> from calibrant import Identity
    >>> model = Identity(classes=["no", "yes"]).fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
    >>> 'AS "calibrated_yes"' in to_sql(model, table="t", columns=["p_no", "p_yes"])
    True
    """
    return as_sql(program(calibrator), table, columns, dialect, keep)


def to_python(calibrator: Any) -> str:
    """Export a fitted calibrator to a Python module that imports only ``math``.

    Parameters
    ----------
    calibrator : fitted calibrator or decision, or Program
        The calibrator or rule to export.

    Returns
    -------
    str
        The code of a module with ``calibrate(row)``, ``predict(row)`` and ``CLASSES``, and for a
        rule of `calibrant.decisions` ``decide(row)``. The functions raise a ValueError for rows
        that ``predict_proba`` rejects.

    See Also
    --------
    to_javascript : Export to a JavaScript module.
    to_onnx : Export to an ONNX file.

    Examples
    --------
    >>> from calibrant import TemperatureScaling
    >>> model = TemperatureScaling(inputs="logits").fit([[2.0, 0.0], [1.0, 0.0]], [0, 1])
    >>> space = {}
    >>> exec(to_python(model), space)
    >>> round(sum(space["calibrate"]([0.3, 1.7])), 12)
    1.0
    """
    return as_python(program(calibrator))


def to_javascript(calibrator: Any) -> str:
    """Export a fitted calibrator to a JavaScript (ES) module without imports.

    Parameters
    ----------
    calibrator : fitted calibrator or decision, or Program
        The calibrator or rule to export.

    Returns
    -------
    str
        The code of a module that exports ``calibrate(row)``, ``predict(row)`` and ``CLASSES``, and
        for a rule of `calibrant.decisions` ``decide(row)``. The functions throw a RangeError for
        rows that ``predict_proba`` rejects.

    See Also
    --------
    to_python : Export to a Python module without dependencies.
    to_onnx : Export to an ONNX file.

    Examples
    --------
    >>> from calibrant import Identity
    >>> model = Identity(classes=["no", "yes"]).fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
    >>> 'export const CLASSES = ["no", "yes"];' in to_javascript(model)
    True
    """
    return as_javascript(program(calibrator))


def _missing(package: str, remedy: str) -> ImportError:
    return ImportError(
        f"This export needs the package {package}, which is not installed. Run {remedy}."
    )
