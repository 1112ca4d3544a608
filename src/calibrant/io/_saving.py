"""Saved calibrators: JSON files that hold a fit exactly, and that load without running anything."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant import __version__, binary, multiclass
from calibrant._files import write_text
from calibrant._validation import check_fitted
from calibrant.base import Calibrator
from calibrant.base._training import TrainingSummary
from calibrant.classifier import CalibratedClassifier
from calibrant.inference._gain import Gain
from calibrant.io._codec import Reader, Writer
from calibrant.reductions import MulticlassToBinary
from calibrant.selection import AutoCalibration, CrossFitted

__all__ = ["load", "save"]

FORMAT = "calibrant-model"
SCHEMA = 1
MOST_BYTES = 2**30
"""Larger files are not read: they are no calibrators, or belong elsewhere."""

_CALIBRATORS: tuple[type, ...] = (
    *(getattr(module, name) for module in (binary, multiclass) for name in module.__all__),
    MulticlassToBinary,
    CrossFitted,
    AutoCalibration,
)
_RECORDS: tuple[type, ...] = (TrainingSummary, Gain)
_MAY_BE_NAN = frozenset({"AutoCalibration.losses_"})  # one row cannot be held out
_CLASSES: Mapping[str, type] = {cls.__name__: cls for cls in (*_CALIBRATORS, *_RECORDS)}


def save(calibrator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted calibrator to a JSON file.

    Parameters
    ----------
    calibrator : fitted calibrator of this package, or a composition of them
    path : path of the file
        Written aside and then renamed, so that it is whole or not there.

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
    writer = Writer(_CLASSES, _MAY_BE_NAN)
    writer.model(calibrator)
    training = vars(calibrator).get(
        "training_"
    )  # maps that were fitted one by one and then put together have none
    document = {
        "format": FORMAT,
        "schema": SCHEMA,
        "calibrant": __version__,
        "classes": np.asarray(calibrator.classes_).tolist(),
        "training": None if training is None else training.to_dict(),
        "models": writer.models,
    }
    write_text(path, json.dumps(document, indent=1, allow_nan=False) + "\n")


def _check_calibrator(calibrator: Any) -> None:
    if isinstance(calibrator, Calibrator):
        check_fitted(calibrator)
        return
    hint = "save takes a fitted calibrator such as TemperatureScaling().fit(P, y)"
    if isinstance(calibrator, CalibratedClassifier):
        hint = "save its calibrator_, and keep the classifier inside by its own means"
    raise TypeError(f"a {type(calibrator).__name__} is no calibrator: {hint}")


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
        file is ever executed: it holds names of the calibrators of this package and numbers, and
        what does not fit together is refused.

    Examples
    --------
    >>> load("no-such-model.json")
    Traceback (most recent call last):
    FileNotFoundError: ...
    """
    shown = os.fspath(path)
    try:
        return _from_document(_parsed(Path(path)))
    except RecursionError:
        raise ValueError(f"{shown} is not a saved calibrator: it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{shown} is not a saved calibrator: {error}") from None


def _parsed(path: Path) -> Any:
    size = path.stat().st_size
    if path.is_dir():
        raise ValueError("it is a directory")
    if size > MOST_BYTES:
        raise ValueError(f"it has {size:,} bytes, more than the {MOST_BYTES:,} that are read")
    with path.open("rb") as file:
        raw = file.read(MOST_BYTES + 1)
    return json.loads(raw.decode("utf-8"), parse_constant=_refuse_constant)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not allowed in it")


def _from_document(document: Any) -> Any:
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"it does not begin as one ('format' must be {FORMAT!r})")
    schema = document.get("schema")
    if type(schema) is not int or not 1 <= schema <= SCHEMA:
        raise ValueError(
            f"its schema is {schema!r} and this version of calibrant ({__version__}) reads up to "
            f"{SCHEMA}"
        )
    models = document.get("models")
    if not isinstance(models, list) or not models:
        raise ValueError("it holds no model")
    reader = Reader(_CLASSES, _MAY_BE_NAN)
    for entry in models:
        reader.model(entry)
    loaded = reader.models[-1]
    _check_works(loaded)
    return loaded


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
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise ValueError(f"its parts do not fit together ({said[:300]})") from None


def _check_prediction(loaded: Any) -> None:
    labels = loaded.classes_
    if (
        not isinstance(labels, np.ndarray)
        or labels.ndim != 1
        or len(labels) != loaded.n_classes_
        or len(labels) < 2
    ):
        raise ValueError("classes_ must be the labels of two or more columns")
    if not isinstance(vars(loaded).get("training_", None), TrainingSummary | None):
        raise ValueError("training_ must be a summary of the training data")
    loaded._check_parameters(len(labels))
    proba = np.asarray(loaded.predict_proba(_probe(loaded.inputs, len(labels))))
    if proba.shape != (3, len(labels)) or not (
        np.isfinite(proba).all() and proba.min() >= 0 and proba.max() <= 1 + 1e-6
    ):
        raise ValueError("its predictions are not probabilities")


def _probe(inputs: str, n_classes: int) -> Any:
    """Three rows to try: undecided, sure, and in between."""
    ramp = np.arange(1.0, n_classes + 1.0)
    if inputs == "logits":
        return np.array([np.zeros(n_classes), np.log(ramp), 30.0 * (ramp == 1)])
    return np.array([np.full(n_classes, 1 / n_classes), ramp / ramp.sum(), ramp == 1])
