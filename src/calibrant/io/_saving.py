"""Save and load calibrators and decisions as JSON, exactly and without executing code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import __version__
from calibrant._kernels.simplex import log_of
from calibrant._output.documents import parse_json
from calibrant._output.files import read_limited, write_text
from calibrant._validation import check_fitted
from calibrant.base import Calibrator
from calibrant.io._codec import Reader, Writer
from calibrant.io._registry import registered
from calibrant.io._shapes import check_fitted_values

__all__ = ["load", "read_metadata", "save"]

FORMAT = "calibrant-model"
SCHEMA = 1
MOST_BYTES = 2**30
"""Maximum number of bytes of a file. No calibrator has so many parameters."""

_MOST_PROBED = 32
"""Maximum number of classes in the test prediction of a loaded calibrator."""

_MOST_VALUES = 2**18
"""Maximum number of scores in the test prediction."""

_MAY_BE_NAN = frozenset({"AutoCalibration.losses_"})
"""Attributes that may contain NaN, because a single row cannot be held out and has no loss."""


Metadata = Mapping[str, str | int | float | bool | None]
"""Names with plain values."""


def save(
    calibrator: Any, path: str | os.PathLike[str], *, metadata: Metadata | None = None
) -> None:
    """Write a fitted calibrator or decision to a JSON file.

    Parameters
    ----------
    calibrator : fitted calibrator or decision
        A calibrator of this package, of a class that was registered with `calibrant.io.register`,
        or a composition of such calibrators. A `DecisionRule` is also accepted, and so is a
        `DecisionClassifier`, `SelectiveClassifier` or `PredictionSets` that predicts with a
        calibrator. The file also contains the certificate of a decision.
    path : path-like
        The file to write. An interrupted write leaves no incomplete file.
    metadata : dict, optional
        Names and plain values to store in the file, for example
        ``{"created": "2026-11-18", "data": "validation.parquet"}``. See `read_metadata`.

    Raises
    ------
    TypeError
        If ``calibrator`` is not a calibrator. For a `CalibratedClassifier`, save its
        ``calibrator_``, and store the classifier separately.

    See Also
    --------
    load : Read a calibrator from a file.
    read_metadata : Read the description of a saved calibrator.
    register : Register a calibrator of another package.

    Notes
    -----
    The file contains the parameters, the fitted attributes and the labels of the columns. The file
    also contains a schema version, the version of the library, and a summary of the training data.
    The summary has the number of rows, the number of classes with rows, and the log-loss before and
    after calibration. Arrays are
    stored bit by bit, so predictions of the loaded calibrator are identical.

    Examples
    --------
    >>> import tempfile, os, calibrant
    >>> model = calibrant.TemperatureScaling().fit([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> calibrant.save(model, path)
    >>> calibrant.load(path).temperature_ == model.temperature_
    True
    """
    calibrator = _checked(calibrator)
    _check_metadata(metadata or {})
    writer = Writer(registered(), _MAY_BE_NAN)
    writer.model(calibrator)
    document = {**_header(calibrator, metadata), "models": writer.models}
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def _checked(model: Any) -> Any:
    """Return the object to write for a fitted calibrator or decision, or raise."""
    if isinstance(model, Calibrator):
        check_fitted(model)
        return model
    from calibrant.classifier import CalibratedClassifier  # loading needs no classifiers
    from calibrant.decisions._saved import SavedDecision

    if isinstance(model, SavedDecision):
        return model._portable()
    fix = "Pass a fitted calibrator, for example TemperatureScaling().fit(P, y)."
    if isinstance(model, CalibratedClassifier):
        fix = "Save model.calibrator_, and store the classifier separately."
    raise TypeError(f"A {type(model).__name__} is not a calibrator. {fix}")


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, Mapping):
        raise TypeError(
            f"metadata must be a dict with strings as keys and strings, numbers, booleans or None "
            f"as values, got {metadata!r:.80}. Pass a "
            "dict, for example metadata={'model': 'resnet50'}."
        )
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool | None):
            raise TypeError(
                "metadata must be a dict with strings as keys and strings, numbers, booleans or "
                f"None as values, but {name!r:.80} is {value!r:.80}. Pass strings, for example "
                "str(value)."
            )


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description of a saved calibrator.

    Parameters
    ----------
    path : path-like
        A file that `save` wrote.

    Returns
    -------
    dict
        - "calibrant": the version of the library;
        - "calibrator": the name of the class;
        - "classes": the labels of the columns;
        - "training": rows, class weights and log-losses of the fit, or None;
        - "metadata": the argument of `save`. The command ``calibrant fit`` writes the date, and the
          name and digest of the prediction file.

    See Also
    --------
    save : Write a fitted calibrator to a file.
    load : Read a calibrator from a file.

    Examples
    --------
    >>> import tempfile, os, calibrant
    >>> model = calibrant.TemperatureScaling().fit([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> calibrant.save(model, path, metadata={"data": "march.csv"})
    >>> read_metadata(path)["metadata"]
    {'data': 'march.csv'}
    """
    load(path)  # raises if the file is not a valid calibrator
    document = _read_document(Path(path))
    return {
        "calibrant": document["calibrant"],
        "calibrator": document["models"][-1]["class"],
        "classes": document["classes"],
        "training": document["training"],
        "metadata": document.get("metadata", {}),
    }


def load(path: str | os.PathLike[str]) -> Any:
    """Read a calibrator or a decision from a file that `save` wrote.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    fitted calibrator or decision
        The loaded object. The loaded and the saved object make identical predictions.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    ValueError
        If the file was not written by `save`, or was damaged or modified. Loading never executes or
        imports code from a file. The file contains only numbers and names of calibrators.
        Calibrators must be part of this package or registered, and contradictory values are
        rejected.

    See Also
    --------
    save : Write a fitted calibrator to a file.
    read_metadata : Read the description of a saved calibrator.

    Examples
    --------
    >>> load("no-such-model.json")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    shown = os.fspath(path)
    try:
        return _from_document(_read_document(Path(path)))
    except RecursionError:
        raise ValueError(f"{shown} is not a saved calibrator: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{shown} is not a saved calibrator: {error}") from None
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        # Values of the wrong type raise these errors where they are first used.
        reason = f"it contains invalid or inconsistent values ({type(error).__name__}: {error})"
        raise ValueError(f"{shown} is not a saved calibrator: {reason}") from None


def _read_document(path: Path) -> Any:
    size = path.stat().st_size
    if path.is_dir():
        raise ValueError("it is a directory")
    if size > MOST_BYTES:
        raise ValueError(f"it has {size:,} bytes, but the maximum is {MOST_BYTES:,}")
    return parse_json(read_limited(path, MOST_BYTES).decode("utf-8"))


def _from_document(document: Any) -> Any:
    _check_format(document)
    models = document.get("models")
    if not isinstance(models, list) or not models:
        raise ValueError("it contains no model")
    reader = Reader(registered(), _MAY_BE_NAN, check_fitted_values)
    for entry in models:
        reader.model(entry)
    loaded = reader.models[-1]
    # Composite calibrators have unfitted members as parameters, so only whole models can predict.
    calibrator = getattr(loaded, "estimator", None)
    if not isinstance(loaded, Calibrator) and isinstance(calibrator, Calibrator):
        _check_works(calibrator)
    _check_works(loaded)
    _check_header(document, loaded)
    return loaded


def _check_format(document: Any) -> None:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"its 'format' is not {FORMAT!r}")
    schema = document.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise ValueError(
            f"its schema is {schema!r}, but this version of calibrant ({__version__}) reads schema "
            f"{SCHEMA}"
        )


def _header(calibrator: Any, metadata: Metadata | None) -> dict[str, Any]:
    # Calibrators that were fitted one by one and then put together have no summary.
    training = vars(calibrator).get("training_")
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "calibrant": __version__,
        **({"metadata": dict(metadata)} if metadata else {}),
        "classes": np.asarray(calibrator.classes_).tolist(),
        "training": None if training is None else training.to_dict(),
    }


def _check_header(document: dict[str, Any], loaded: Any) -> None:
    """Raise if the header of a file contradicts its calibrator."""
    _check_metadata(document.get("metadata", {}))
    if not isinstance(document.get("calibrant"), str):
        raise ValueError("the header does not contain the version of Calibrant")
    if document.get("classes") != np.asarray(loaded.classes_).tolist():
        raise ValueError("the classes in the header differ from the classes of the calibrator")
    training = vars(loaded).get("training_")
    values, header = {} if training is None else training.to_dict(), document.get("training") or {}
    if not isinstance(header, dict) or any(values.get(key) != header[key] for key in header):
        raise ValueError("the training summary in the header differs from that of the calibrator")


def _check_works(loaded: Any) -> None:
    """Raise if a calibrator cannot predict.

    Parameters and fitted attributes may each be valid and still contradict each other.
    """
    try:
        with np.errstate(all="ignore"):
            _check_prediction(loaded)
    except RecursionError:
        raise
    except Exception as error:  # an arbitrary combination of values may raise anything
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"it contains invalid or inconsistent values ({reason[:300]})") from None


def _check_prediction(loaded: Any) -> None:
    if not isinstance(loaded, Calibrator):
        loaded._check_loaded()
        return
    labels = loaded.classes_
    loaded._check_parameters(len(labels))
    rows = _probe(loaded.inputs, len(labels))
    plain = loaded._plain()
    proba = np.asarray(plain.predict_proba(rows))
    if proba.shape != rows.shape or not (proba.min() >= 0 and proba.max() <= 1 + 1e-6):
        raise ValueError("its predictions are not probabilities")
    if not plain.is_multilabel_:
        plain.predict(rows)
    loaded.explain()


def _probe(inputs: str, n_classes: int) -> Any:
    """Return uniform, increasing and certain rows for a test prediction."""
    ramp = np.arange(1.0, n_classes + 1.0)
    n_rows = min(n_classes, _MOST_PROBED, max(1, _MOST_VALUES // n_classes))
    certain = np.eye(n_rows, n_classes)
    if inputs == "logits":
        return np.array([np.zeros(n_classes), np.log(ramp), *(30.0 * certain)])
    proba = np.array([np.full(n_classes, 1 / n_classes), ramp / ramp.sum(), *certain])
    return log_of(proba) if inputs == "log_proba" else proba
