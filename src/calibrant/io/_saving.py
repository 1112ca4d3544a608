"""Saved calibrators: JSON files that hold a fit exactly, and that load without running anything."""

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
"""Larger files are not read: they are no calibrators, or belong elsewhere."""

_MOST_PROBED = 32
"""Classes that a loaded calibrator is tried on."""

_MOST_VALUES = 2**18
"""Scores that it is tried on."""

_MAY_BE_NAN = frozenset({"AutoCalibration.losses_"})  # one row cannot be held out


Metadata = Mapping[str, str | int | float | bool | None]
"""Names and plain values."""


def save(
    calibrator: Any, path: str | os.PathLike[str], *, metadata: Metadata | None = None
) -> None:
    """Write a fitted calibrator to a JSON file.

    Parameters
    ----------
    calibrator : fitted calibrator of this package or of a class that was given to
    `calibrant.io.register`, or a composition of them
    path : path of the file
        Written aside and then renamed, so that it is whole or not there.
    metadata : dict of text to plain values, optional
        Kept in the file for people and programs, for example
        ``{"created": "2026-11-18", "data": "validation.parquet"}``. See `read_metadata`.

    Raises
    ------
    TypeError
        For anything else. Of a `CalibratedClassifier` save its ``calibrator_``; the classifier
        inside is yours to keep.

    Notes
    -----
    The file holds a schema version, the version of the library, the labels of the columns, a
    summary of the training data (rows, classes seen, log-loss before and after), and parameters and
    fitted attributes, arrays bit by bit: predictions of the loaded calibrator are identical.

    Examples
    --------
    >>> import tempfile, os, calibrant
    >>> model = calibrant.TemperatureScaling().fit([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> calibrant.save(model, path)
    >>> calibrant.load(path).temperature_ == model.temperature_
    True
    """
    _check_calibrator(calibrator)
    _check_metadata(metadata or {})
    writer = Writer(registered(), _MAY_BE_NAN)
    writer.model(calibrator)
    # Calibrators that were fitted one by one and then put together have no summary.
    training = vars(calibrator).get("training_")
    document = {
        "format": FORMAT,
        "schema": SCHEMA,
        "calibrant": __version__,
        **({"metadata": dict(metadata)} if metadata else {}),
        "classes": np.asarray(calibrator.classes_).tolist(),
        "training": None if training is None else training.to_dict(),
        "models": writer.models,
    }
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def _check_calibrator(calibrator: Any) -> None:
    if isinstance(calibrator, Calibrator):
        check_fitted(calibrator)
        return
    from calibrant.classifier import CalibratedClassifier  # loading needs no classifiers

    hint = "save takes a fitted calibrator such as TemperatureScaling().fit(P, y)"
    if isinstance(calibrator, CalibratedClassifier):
        hint = "save its calibrator_, and keep the classifier inside by its own means"
    raise TypeError(f"a {type(calibrator).__name__} is no calibrator: {hint}")


def _check_metadata(metadata: Any) -> None:
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict of names and plain values, got {metadata!r:.80}")
    for name, value in metadata.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float | bool | None):
            raise TypeError(
                f"metadata must be text, numbers or booleans by name; {name!r:.80} is "
                f"{value!r:.80}. Pass str(...) of other values."
            )


def read_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a saved file says about its calibrator, which is not loaded.

    Parameters
    ----------
    path : path of a file that `save` wrote

    Returns
    -------
    dict
        "calibrant", the version of the library; "calibrator", the name of its class; "classes";
        "training", rows, class weights and log-losses of the fit, or None; "metadata", what was
        passed to `save`. `calibrant fit` writes the date, and name and digest of the file.

    Examples
    --------
    >>> import tempfile, os, calibrant
    >>> model = calibrant.TemperatureScaling().fit([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], [0, 1, 0])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.json")
    >>> calibrant.save(model, path, metadata={"data": "march.csv"})
    >>> read_metadata(path)["metadata"]
    {'data': 'march.csv'}
    """
    load(path)  # nothing is reported about files that cannot be loaded
    document = _read_document(Path(path))
    return {
        "calibrant": document["calibrant"],
        "calibrator": document["models"][-1]["class"],
        "classes": document["classes"],
        "training": document["training"],
        "metadata": document.get("metadata", {}),
    }


def load(path: str | os.PathLike[str]) -> Any:
    """The calibrator that `save` wrote.

    Parameters
    ----------
    path : path of the file

    Returns
    -------
    fitted calibrator
        Its predictions are bit for bit those of the one that was saved.

    Raises
    ------
    FileNotFoundError
        Where there is no file.
    ValueError
        For a file that `save` did not write, or that was damaged or tampered with. Nothing in a
        file is ever executed or imported: it holds numbers and names of calibrators, of this
        package or registered before, and what does not fit together is refused.

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
        # Values of other types than a calibrator has, wherever they are used first.
        reason = f"its values do not fit together ({type(error).__name__}: {error})"
        raise ValueError(f"{shown} is not a saved calibrator: {reason}") from None


def _read_document(path: Path) -> Any:
    size = path.stat().st_size
    if path.is_dir():
        raise ValueError("it is a directory")
    if size > MOST_BYTES:
        raise ValueError(f"it has {size:,} bytes, more than the {MOST_BYTES:,} that are read")
    return parse_json(read_limited(path, MOST_BYTES).decode("utf-8"))


def _from_document(document: Any) -> Any:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"it does not begin as one ('format' must be {FORMAT!r})")
    schema = document.get("schema")
    if type(schema) is not int or schema != SCHEMA:
        raise ValueError(
            f"its schema is {schema!r} and this version of calibrant ({__version__}) reads {SCHEMA}"
        )
    models = document.get("models")
    if not isinstance(models, list) or not models:
        raise ValueError("it holds no model")
    reader = Reader(registered(), _MAY_BE_NAN, check_fitted_values)
    for entry in models:
        reader.model(entry)
    loaded = reader.models[-1]
    _check_works(loaded)
    _check_header(document, loaded)
    return loaded


def _check_header(document: dict[str, Any], loaded: Any) -> None:
    """What is said at the head of a file, for whoever reads it, must be what it holds."""
    _check_metadata(document.get("metadata", {}))
    if not isinstance(document.get("calibrant"), str):
        raise ValueError("it does not name the version that wrote it")
    if document.get("classes") != np.asarray(loaded.classes_).tolist():
        raise ValueError("the classes at its head are not those of its calibrator")
    training = vars(loaded).get("training_")
    values, header = {} if training is None else training.to_dict(), document.get("training") or {}
    if not isinstance(header, dict) or any(values.get(key) != header[key] for key in header):
        raise ValueError("the training at its head is not that of its calibrator")


def _check_works(loaded: Any) -> None:
    """Refuse what cannot predict: parameters and fitted attributes that are each valid and do not
    fit together.
    """
    try:
        with np.errstate(all="ignore"):
            _check_prediction(loaded)
    except RecursionError:
        raise
    except Exception as error:  # whatever a made-up combination of numbers may end in
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"its parts do not fit together ({reason[:300]})") from None


def _check_prediction(loaded: Any) -> None:
    labels = loaded.classes_
    loaded._check_parameters(len(labels))
    rows = _probe(loaded.inputs, len(labels))
    proba = np.asarray(loaded.predict_proba(rows))
    if proba.shape != rows.shape or not (
        np.isfinite(proba).all() and proba.min() >= 0 and proba.max() <= 1 + 1e-6
    ):
        raise ValueError("its predictions are not probabilities")
    loaded.predict(rows)
    loaded.explain()


def _probe(inputs: str, n_classes: int) -> Any:
    """Rows to try: undecided, in between, and sure of each class, of the first ones where there
    are many.
    """
    ramp = np.arange(1.0, n_classes + 1.0)
    n_rows = min(n_classes, _MOST_PROBED, max(1, _MOST_VALUES // n_classes))
    sure = np.eye(n_rows, n_classes)
    if inputs == "logits":
        return np.array([np.zeros(n_classes), np.log(ramp), *(30.0 * sure)])
    proba = np.array([np.full(n_classes, 1 / n_classes), ramp / ramp.sum(), *sure])
    return log_of(proba) if inputs == "log_proba" else proba
