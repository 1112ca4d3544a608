"""The public functions, one a target."""

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
    """Write a fitted calibrator as an ONNX model, alone or behind a classifier.

    Parameters
    ----------
    calibrator : fitted calibrator, Program, or fitted CalibratedClassifier
    path : path of the file
        Written aside and then renamed.
    opset : int
        Operator set of a calibrator alone, at least 13; with ``model`` it is that of the model.
    dtype : {"float64", "float32"}
        Of scores and probabilities. The arithmetic is in double precision in any case.
    model : path of an ONNX file or list of such paths, optional
        A classifier: the file that is written takes its inputs and runs both. Of a
        `CalibratedClassifier`, the files of all its ``estimators_``, in their order: the file that
        is written runs them all and gives the same probabilities.
    output : str, optional
        The output of the classifier that holds the scores; by default the first whose name says
        what the calibrator takes ("prob", "logit", or "log" and "prob"), or else says nothing.

    Raises
    ------
    ImportError
        Without the package onnx: ``pip install "calibrant[onnx]"``.

    Notes
    -----
    Input ``scores`` (n, K); outputs ``probabilities`` (n, K) and ``label`` (n,), text or whole
    numbers as the classes are, else the number of the column. A step function of E edges takes
    O(n sqrt(E)) time and memory.

    Rows that ``predict_proba`` rejects, such as those with NaN, have the probabilities NaN. Their
    label is the empty text, or a number below those of all classes: -1 unless there are negative
    ones.
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
    """Programs for the scores of each classifier."""
    if not isinstance(calibrator, CalibratedClassifier):
        if n_models > 1:
            raise ValueError(
                f"one calibrator and {n_models} classifiers: only a CalibratedClassifier, which "
                f"has a calibrator for each, takes several as model="
            )
        return Average((program(calibrator),), (1.0,))
    average = average_of(calibrator)
    _check_models(calibrator, n_models)
    return average


def _check_models(classifier: CalibratedClassifier, n_models: int) -> None:
    """Raise unless there is a file for each fitted classifier, with a column for every class."""
    n_fits = len(classifier.estimators_)
    if n_models != n_fits:
        fewer = ", or fit with ensemble=False, which has one" if n_fits > 1 else ""
        raise ValueError(
            f"this CalibratedClassifier has {n_fits} fitted classifiers, and model= names "
            f"{n_models} files: convert its estimators_ by their own tool, such as skl2onnx, and "
            f"give the files in that order{fewer}"
        )
    for number, member in enumerate(classifier.estimators_):
        if len(member.classes_) != len(classifier.classes_):
            raise ValueError(
                f"estimators_[{number}] has not seen all classes, and its file has fewer columns: "
                f"fit with fewer folds, or with ensemble=False"
            )


def to_torch(
    calibrator: Any,
    *,
    dtype: str = "float64",
    trainable: bool = False,
    class_axis: int = -1,
    output: str = "proba",
) -> Any:
    """A fitted calibrator as a ``torch.nn.Module`` that maps scores to probabilities.

    Parameters
    ----------
    calibrator : fitted calibrator or Program
    dtype : {"float64", "float32"}
        Of the arithmetic; the result has the dtype of the scores.
    trainable : bool
        Make temperatures, coefficients and offsets parameters, to be fine-tuned. All other numbers
        are buffers, and ``state_dict`` holds both.
    class_axis : int
        The axis of the scores that holds the classes: -1 for (n, K) and for tokens (n, t, K), 1 for
        images (n, K, h, w).
    output : {"proba", "log_proba", "logits"}
        What the module returns. Losses of PyTorch take logits or log-probabilities.

    Returns
    -------
    torch.nn.Module
        Its result has the shape of the scores. Rows that ``predict_proba`` rejects, such as those
        with NaN, give NaN.

    Raises
    ------
    ImportError
        Without PyTorch.
    """
    steps = program(calibrator)
    check_option(dtype, "dtype", ("float64", "float32"))
    check_option(output, "output", OUTPUTS)
    backend = _torch()
    options = backend.ModuleOptions(dtype, trainable, class_axis, output)
    return backend.CalibratorModule(steps, options)


def save_torch(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator as an exported program of PyTorch (``torch.export``).

    Parameters
    ----------
    calibrator : fitted calibrator or Program
    path : path of the file
        ``torch.export.load(path).module()`` maps float64 scores (n, K) to probabilities.
    """
    steps = program(calibrator)
    check_writable(path)
    _torch().save_module(steps, path)


def _torch() -> Any:
    try:
        from calibrant.export import _torch as backend
    except ImportError as error:
        raise _missing("torch", "pip install torch, see pytorch.org") from error
    return backend


def to_sql(
    calibrator: Any,
    *,
    table: str,
    columns: Sequence[str],
    dialect: str = "duckdb",
    keep: Sequence[str] = (),
) -> str:
    """A fitted calibrator as one SELECT over a table of scores.

    Parameters
    ----------
    calibrator : fitted calibrator or Program
    table : str
        Name of the table; dots separate schema and table.
    columns : sequence of str
        Its columns of scores, in the order of the classes.
    dialect : {"duckdb", "sqlite", "postgres", "bigquery", "snowflake", "spark"}
    keep : sequence of str
        Other columns to carry over, such as the key.

    Returns
    -------
    str
        The query. Its columns are those to keep, ``calibrated_<class>``, and
        ``calibrated_label``. Rows that ``predict_proba`` rejects, such as those with NULL or NaN,
        have NULL in them.

    Raises
    ------
    ValueError
        If two columns of the result have the same name, regardless of case.

    Notes
    -----
    Names and text are quoted; numbers have all their digits. Probabilities below 1e-304 are zero.
    Engines must know ``ln`` and ``exp``: SQLite does from 3.35 on, where it was built with its
    mathematical functions (``SELECT ln(exp(1))`` tells).

    Examples
    --------
    >>> from calibrant import Identity
    >>> model = Identity(classes=["no", "yes"]).fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
    >>> 'AS "calibrated_yes"' in to_sql(model, table="t", columns=["p_no", "p_yes"])
    True
    """
    return as_sql(program(calibrator), table, columns, dialect, keep)


def to_python(calibrator: Any) -> str:
    """A fitted calibrator as a Python module that needs nothing but ``math``.

    Parameters
    ----------
    calibrator : fitted calibrator or Program

    Returns
    -------
    str
        The text of a module with ``calibrate(row)``, ``predict(row)`` and ``CLASSES``. Rows that
        ``predict_proba`` rejects raise a ValueError.

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
    """A fitted calibrator as an ES module without imports.

    Parameters
    ----------
    calibrator : fitted calibrator or Program

    Returns
    -------
    str
        The text of a module that exports ``calibrate(row)``, ``predict(row)`` and ``CLASSES``.
        Rows that ``predict_proba`` rejects raise a RangeError.

    Examples
    --------
    >>> from calibrant import Identity
    >>> model = Identity(classes=["no", "yes"]).fit([[0.9, 0.1], [0.2, 0.8]], ["no", "yes"])
    >>> 'export const CLASSES = ["no", "yes"];' in to_javascript(model)
    True
    """
    return as_javascript(program(calibrator))


def _missing(package: str, remedy: str) -> ImportError:
    return ImportError(f"this export needs the package {package}: {remedy}")
