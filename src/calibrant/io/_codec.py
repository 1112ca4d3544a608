"""Encoding of values as JSON, and decoding.

``None``, booleans, finite numbers, text and lists are plain JSON. Every other value is an object
whose first key names its type: ``{"array": ...}``, ``{"float": "inf"}``, ``{"tuple": [...]}``,
``{"map": [[key, value]]}``, ``{"notion": "top-label"}``, ``{"record": ...}`` or ``{"model": 3}``. A
model is a position in the list of calibrators of the file. Classes are stored by name and never by
import path. The list of calibrators is flat, and inner calibrators come before their composites, so
shared calibrators are written once and no calibrator can contain itself.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from calibrant._typing import AnyArray
from calibrant.io._shapes import References
from calibrant.notions import Notion, as_notion, is_named

_NUMERIC = {
    dtype.name: dtype.newbyteorder("<")
    for dtype in map(
        np.dtype, ("f8", "f4", "f2", "i8", "i4", "u8", "u4", "i2", "u2", "i1", "u1", "?")
    )
}
_KINDS = ("array", "float", "tuple", "map", "notion", "record", "model")
"""Keys that name the type of an object in a file. A `Reader` has a method for each key."""


_LONGEST_TEXT = 2**16
"""Maximum number of characters of an entry of an array of text."""

_MOST_TEXT = 2**26
"""Maximum number of bytes of all arrays of text. NumPy pads every entry to the longest entry, so a
small file could otherwise use much memory."""


class Writer:
    """Encoder of values for JSON.

    Calibrators and records must be among ``classes``. NaN is allowed only in the attributes
    ``may_be_nan``, which are written as ``"Class.attribute_"``.
    """

    def __init__(
        self, classes: Mapping[str, type], may_be_nan: frozenset[str] = frozenset()
    ) -> None:
        self.classes = classes
        self.may_be_nan = may_be_nan
        self.models: list[dict[str, Any]] = []
        self._places: dict[int, int] = {}

    def model(self, calibrator: Any) -> int:
        """Add a calibrator and its members to the list, and return its position."""
        if id(calibrator) in self._places:
            return self._places[id(calibrator)]
        name = self._name(calibrator)
        parameters = self._members(name, calibrator.get_params(deep=False))
        fitted = {key: value for key, value in vars(calibrator).items() if _is_fitted(key)}
        entry = {"class": name, "parameters": parameters, "fitted": self._members(name, fitted)}
        self.models.append(entry)
        self._places[id(calibrator)] = len(self.models) - 1
        return len(self.models) - 1

    def _members(self, owner: str, values: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self.value(value, f"{owner}.{key}") for key, value in values.items()}

    def _name(self, instance: Any) -> str:
        cls = type(instance)
        # Files store most classes under their ``__name__``. Check this name first, because the loop
        # below imports all registered classes.
        if cls.__name__ in self.classes and self.classes[cls.__name__] is cls:
            return cls.__name__
        for name, registered in self.classes.items():
            if registered is cls:
                return name
        raise TypeError(
            f"{cls.__module__}.{cls.__qualname__} is not a registered calibrator and cannot be "
            f"saved. Call calibrant.io.register({cls.__name__}) first."
        )

    def value(self, value: Any, where: str) -> Any:
        """Encode a value as JSON. Error messages refer to the value by the name ``where``."""
        if value is None or (
            isinstance(value, bool | int | str) and type(value) in (bool, int, str)
        ):
            return value
        if type(value) is float:
            return _float(value, where)
        if isinstance(value, np.ndarray | np.generic):
            return self._array(np.asarray(value), where)
        return self._composed(value, where)

    def _composed(self, value: Any, where: str) -> Any:
        if isinstance(value, list):
            return [self.value(item, where) for item in value]
        if type(value) is tuple:
            return {"tuple": [self.value(item, where) for item in value]}
        if isinstance(value, dict):
            return {"map": [[key, self.value(item, where)] for key, item in value.items()]}
        if isinstance(value, Notion):
            return {"notion": _notion_name(value, where)}
        if is_dataclass(value) and not isinstance(value, type):
            name = self._name(value)
            values = {f.name: getattr(value, f.name) for f in fields(value)}
            return {"record": name, "fields": self._members(name, values)}
        if isinstance(value, BaseEstimator):
            return {"model": self.model(value)}
        raise TypeError(
            f"{where} is {value!r}, a {type(value).__name__}, which cannot be saved. For a seed, "
            "use an integer"
        )

    def _array(self, array: AnyArray, where: str) -> dict[str, Any]:
        name, shape = array.dtype.name, list(array.shape)
        if array.dtype.kind == "U":
            width = array.dtype.itemsize // 4
            return {"array": f"text{width}", "shape": shape, "data": array.ravel().tolist()}
        if array.dtype.kind == "O":
            data = [self.value(item, where) for item in array.ravel().tolist()]
            return {"array": "any", "shape": shape, "data": data}
        if name not in _NUMERIC:
            raise TypeError(f"{where} is an array of dtype {array.dtype}, which cannot be saved.")
        if where not in self.may_be_nan and array.dtype.kind == "f" and np.isnan(array).any():
            raise ValueError(f"{where} contains NaN, so it cannot be saved. Fit the model again.")
        return {"array": name, "shape": shape, **_encode_numbers(array)}


def _encode_numbers(array: AnyArray) -> dict[str, str]:
    # Keep the memory layout, which determines the order in which BLAS adds numbers. Another order
    # could change the last bit of a prediction.
    is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    order: Literal["C", "F"] = "F" if is_fortran else "C"
    raw = np.asarray(array, dtype=_NUMERIC[array.dtype.name]).tobytes(order)
    return {"order": order, "data": base64.b64encode(raw).decode("ascii")}


def _notion_name(notion: Notion, where: str) -> str:
    if not is_named(notion):
        raise TypeError(
            f"{where} is the notion {notion.name!r}, which has no name in calibrant and cannot be "
            "saved. Use a notion with a name, such as 'top-label'."
        )
    return notion.name


def _float(value: float, where: str) -> Any:
    if math.isnan(value):
        raise ValueError(f"{where} is NaN, so it cannot be saved. Fit the model again.")
    return value if math.isfinite(value) else {"float": "inf" if value > 0 else "-inf"}


def _is_fitted(name: str) -> bool:
    return name.endswith("_") and not name.startswith("_")


def _accept(name: str, calibrator: Any, fitted: dict[str, Any]) -> None:
    """Accept all fitted attributes."""


class Reader:
    """Decode the output of `Writer`. All other input raises a ``ValueError``.

    ``check`` raises if the fitted attributes of a calibrator are invalid.
    """

    def __init__(
        self,
        classes: Mapping[str, type],
        may_be_nan: frozenset[str] = frozenset(),
        check: Callable[[str, Any, dict[str, Any]], None] = _accept,
    ) -> None:
        self.classes = classes
        self.may_be_nan = may_be_nan
        self.check = check
        self.models: list[Any] = []
        self.references = References()
        self._text_bytes = 0

    def model(self, entry: Any) -> None:
        """Add the calibrator of an entry to the list."""
        entry = _object(entry, {"class", "parameters", "fitted"})
        cls = self._class(entry["class"])
        if not issubclass(cls, BaseEstimator):
            raise ValueError(f"{entry['class']} is not a calibrator")
        parameters, fitted = (
            self._members(entry["class"], entry[part]) for part in ("parameters", "fitted")
        )
        # Parameters that were added in later versions get their defaults.
        unknown = sorted(set(parameters) - set(cls._get_param_names()))
        if unknown:
            names = ", ".join(map(_short, unknown[:5]))
            raise ValueError(f"{entry['class']} has no parameters named {names}")
        calibrator = cls(**parameters)
        for name, value in fitted.items():
            if not (_is_fitted(name) and name.isidentifier()) or isinstance(
                getattr(cls, name, None), property
            ):
                raise ValueError(f"{name!r} is not a fitted attribute of {entry['class']}")
            setattr(calibrator, name, value)
        self.check(entry["class"], calibrator, fitted)
        self.references.close()
        self.models.append(calibrator)

    def _class(self, name: Any) -> type[Any]:
        if not isinstance(name, str) or name not in self.classes:
            raise ValueError(
                f"{_short(name)} is not a class of this version of Calibrant. If another package "
                f"defines this class, call calibrant.io.register(TheClass, name={_short(name)}) "
                "first."
            )
        return self.classes[name]

    def _members(self, owner: str, values: Any) -> dict[str, Any]:
        if not isinstance(values, dict):
            raise ValueError(f"expected an object of names and values, got {_short(values)}")
        return {key: self._member(f"{owner}.{key}", value) for key, value in values.items()}

    def _member(self, where: str, value: Any) -> Any:
        decoded = self.value(value)
        if where not in self.may_be_nan and _holds_nan(decoded):
            raise ValueError(f"{where} contains NaN")
        return decoded

    def value(self, value: Any) -> Any:
        """Return the Python value of a JSON value."""
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        kind = next((key for key in _KINDS if key in value), None)
        if kind is None:
            raise ValueError(f"{_short(value)} has no type")
        return getattr(self, f"_{kind}")(value)

    def _float(self, value: dict[str, Any]) -> float:
        if value not in ({"float": "inf"}, {"float": "-inf"}):
            raise ValueError(f"{_short(value)} is not a number")
        return float(value["float"])

    def _tuple(self, value: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(self.value(item) for item in _list(_object(value, {"tuple"})["tuple"]))

    def _map(self, value: dict[str, Any]) -> dict[Any, Any]:
        pairs = [_list(pair) for pair in _list(_object(value, {"map"})["map"])]
        if any(len(pair) != 2 or not isinstance(pair[0], str | int | float) for pair in pairs):
            raise ValueError(
                "a map must be a list of pairs of a key (string or number) and a value"
            )
        return {key: self.value(item) for key, item in pairs}

    def _notion(self, value: dict[str, Any]) -> Notion:
        return as_notion(_object(value, {"notion"})["notion"])

    def _record(self, value: dict[str, Any]) -> Any:
        value = _object(value, {"record", "fields"})
        cls: Any = self._class(value["record"])
        members = self._members(value["record"], value["fields"])
        if issubclass(cls, BaseEstimator) or not _is_complete(cls, set(members)):
            raise ValueError(
                f"{value['record']!r} cannot be created from the fields {sorted(members)}"
            )
        return cls(**members)

    def _model(self, value: dict[str, Any]) -> Any:
        place = _object(value, {"model"})["model"]
        if type(place) is not int or not 0 <= place < len(self.models):
            raise ValueError(f"model {_short(place)} is used before it is defined")
        self.references.refer(place)
        return self.models[place]

    def _array(self, value: dict[str, Any]) -> Any:
        kind, shape, data = value["array"], value.get("shape"), value.get("data")
        if (
            not isinstance(shape, list)
            or len(shape) > 8
            or not all(type(n) is int and 0 <= n < 2**48 for n in shape)
        ):
            raise ValueError(f"{_short(shape)} is not a valid shape of an array")
        if isinstance(kind, str) and kind in _NUMERIC:
            _object(value, {"array", "shape", "order", "data"})
            array = _numbers(kind, tuple(shape), value["order"], data)
        else:
            _object(value, {"array", "shape", "data"})
            array = self._entries(kind, _list(data)).reshape(_fitting(shape, len(_list(data))))
        return array[()] if array.ndim == 0 else array

    def _entries(self, kind: Any, data: list[Any]) -> AnyArray:
        if kind == "any":
            array = np.empty(len(data), dtype=object)
            array[:] = [self.value(item) for item in data]
            return array
        width = _text_width(kind, data)
        self._text_bytes += 4 * width * len(data)
        if self._text_bytes > _MOST_TEXT:
            raise ValueError(f"its arrays of strings need more than {_MOST_TEXT:,} bytes of memory")
        return np.array(data, dtype=f"<U{width}")


def _text_width(kind: Any, data: list[Any]) -> int:
    """Return the number of characters per entry of an array of strings."""
    width = kind.removeprefix("text") if isinstance(kind, str) else ""
    is_width = width.isascii() and width.isdigit() and len(width) <= 9
    if not is_width or not all(isinstance(item, str) for item in data):
        raise ValueError(
            f"{_short(kind)} is not a valid type of array, or the entries are not strings"
        )
    if not max(map(len, data), default=0) <= int(width) <= _LONGEST_TEXT:
        raise ValueError(
            f"the width of {_short(kind)} must be between the length of the longest string and "
            f"{_LONGEST_TEXT}"
        )
    return int(width)


def _is_complete(record: type[Any], names: set[str]) -> bool:
    """Return whether a record can be created from these fields.

    Missing fields may have defaults.
    """
    defaults = {field.name: field.default for field in fields(record)}
    needed = {name for name, default in defaults.items() if default is MISSING}
    return needed <= names <= set(defaults)


def _numbers(kind: str, shape: tuple[int, ...], order: Any, data: Any) -> AnyArray:
    if order not in ("C", "F") or not isinstance(data, str):
        raise ValueError(
            f"an array needs the order 'C' or 'F' and data as a string, got {_short(order)} and "
            f"{_short(data)}"
        )
    raw = _decode_base64(data)
    dtype = _NUMERIC[kind]
    n_bytes = math.prod(shape) * dtype.itemsize
    if len(raw) != n_bytes:
        raise ValueError(
            f"an array of {kind} and shape {shape} needs {n_bytes} bytes, got {len(raw)}"
        )
    return np.frombuffer(raw, dtype=dtype).astype(kind).reshape(shape, order=order)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"the data of an array are damaged ({error})") from None


def _holds_nan(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_holds_nan, value))
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind == "f":
        return bool(np.isnan(value).any())
    return False


def _fitting(shape: list[int], size: int) -> tuple[int, ...]:
    if math.prod(shape) != size:
        raise ValueError(
            f"an array of shape {tuple(shape)} needs {math.prod(shape)} entries, got {size}"
        )
    return tuple(shape)


def _object(value: Any, keys: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != keys:
        raise ValueError(f"expected an object with {', '.join(sorted(keys))}, got {_short(value)}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, got {_short(value)}")
    return value


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
