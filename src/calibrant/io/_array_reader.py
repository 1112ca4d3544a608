"""Files of NumPy arrays: what their heads say is checked before any memory is taken for them."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from calibrant._kernels.blocks import WORK_MEMORY, row_blocks
from calibrant._typing import AnyArray, FloatArray, IntArray
from calibrant._validation import ParameterError, shortened
from calibrant.io._readers import FileBlock, FileReader, check_size
from calibrant.io._roles import FileOptions, ModelScores

ARRAY_NAMES = {
    "proba": ("probs", "proba", "probabilities", "y_prob", "y_proba"),
    "logits": ("logits", "y_logits"),
    "log_proba": ("log_probs", "log_proba", "y_log_proba"),
}
LABEL_ARRAYS = ("labels", "y_true", "y")


class _Arrays(NamedTuple):
    """What a file of arrays holds: the scores, their name and kind, labels, and all by name."""

    scores: AnyArray
    score_name: str
    inputs: str
    labels: AnyArray | None
    by_name: dict[str, AnyArray]


class ArrayReader(FileReader):
    """Reads ``.npz`` with ``probs`` or ``logits`` and ``labels`` (and ``class_names``), or
    ``.npy``, with a file of labels if they are needed.
    """

    def __init__(
        self, options: FileOptions, *, needs_label: bool, model: ModelScores | None
    ) -> None:
        self.path = options.path
        if self.path.suffix == ".npz" and (options.label or options.inputs):
            raise ParameterError(
                "{label}, {proba} and {logits} name columns; an .npz file has arrays probs or "
                "logits, and labels"
            )
        arrays = _read_arrays(options, model)
        self.scores, self.score_name, self.inputs, self.labels, self.arrays = arrays
        self._check_shapes(needs_label)
        self.weight = self._weights_of(options.weight)
        self.names, self._order = self._class_names(), None
        if model is not None and len(self.names) == len(model.names):
            self._order = self._order_for(model)
        self.n_rows = len(self.scores)
        if self.labels is not None:
            self.has_text_labels = self.labels.dtype.kind in "US"

    def _class_names(self) -> tuple[str, ...]:
        given = self.arrays.get("class_names")
        if given is None:
            return tuple(map(str, range(self.n_classes)))
        if given.shape != (self.n_classes,):
            raise ValueError(
                f"{self.path}: class_names have shape {given.shape}, the scores "
                f"{self.n_classes} classes"
            )
        return tuple(map(str, given.tolist()))

    def _weights_of(self, name: str | None) -> FloatArray | None:
        """The array of weights that the user names."""
        if name is None:
            return None
        weight = self.arrays.get(name)
        if weight is None or weight.shape != (len(self.scores),) or weight.dtype.kind not in "fiub":
            raise ParameterError(
                "{path} has no array {name!r} with one number per row. Pass another name by "
                "{weight}; there are {arrays}.",
                {"path": self.path, "name": name, "arrays": shortened(list(self.arrays))},
            )
        return weight.astype(np.float64)

    def _order_for(self, model: ModelScores) -> IntArray | None:
        """The columns in the order of a model's classes, if ``class_names`` have another one."""
        names, wanted = self.names, model.names
        if names == wanted or names == tuple(map(str, range(len(wanted)))):
            return None
        if sorted(names) != sorted(wanted):
            raise ValueError(
                f"the model has the classes {shortened(wanted)} and the file {shortened(names)}"
            )
        return np.array([names.index(name) for name in wanted], dtype=np.intp)

    def _check_shapes(self, needs_label: bool) -> None:
        if self.scores.ndim not in (1, 2) or self.scores.dtype.kind not in "fiub":
            raise ValueError(
                f"{self.path}: {self.score_name} must be numbers of shape (rows, classes), got "
                f"{self.scores.shape}"
            )
        if len(self.scores) == 0:
            raise ValueError(f"{self.path} has no rows")
        if needs_label and self.labels is None:
            raise ParameterError(
                "{path} has no labels: add an array labels, or give {labels:'FILE.npy'}",
                {"path": self.path},
            )
        if self.labels is not None and self.labels.shape != (len(self.scores),):
            raise ValueError(
                f"{self.path}: labels have shape {self.labels.shape}, the scores "
                f"{len(self.scores)} rows"
            )

    @property
    def n_classes(self) -> int:
        return self.scores.shape[1] if self.scores.ndim == 2 else 2

    @property
    def n_features(self) -> int:
        return self.scores.shape[1] if self.scores.ndim == 2 else 1

    def blocks(self, *, all_columns: bool = False) -> Iterator[FileBlock]:
        """The rows, with a table of the labels if all columns are asked for."""
        for rows in row_blocks(len(self.scores), self.n_classes, elements=WORK_MEMORY // 2):
            labels = None if self.labels is None else pa.array(self.labels[rows])
            table = pa.table({} if labels is None else {"label": labels}) if all_columns else None
            scores = np.asarray(self.scores[rows])
            if self._order is not None:
                # Rows in C order, as `predict_proba` gets them: the order of sums decides the last
                # bit.
                scores = np.ascontiguousarray(scores[:, self._order])
            weight = None if self.weight is None else self.weight[rows]
            yield FileBlock(rows.start, scores, labels, weight, table)

    def _label_blocks(self) -> Iterator[Any]:
        yield pa.array(self.labels)


def _read_arrays(options: FileOptions, model: ModelScores | None) -> _Arrays:
    labels = None if options.labels is None else _load(options.labels)
    if isinstance(labels, dict):
        raise ParameterError(
            "{labels} must be an .npy file of labels, got {path}", {"path": options.labels}
        )
    data = _load(options.path)
    if isinstance(data, dict):
        return _arrays_of_npz(data, options, model, labels)
    inputs = model.inputs if model else options.inputs or "proba"
    name = ARRAY_NAMES[inputs][0]
    return _Arrays(data, name, inputs, labels, {name: data})


def _arrays_of_npz(
    data: dict[str, AnyArray],
    options: FileOptions,
    model: ModelScores | None,
    labels: AnyArray | None,
) -> _Arrays:
    start = f"{options.split}_" if options.split else ""
    candidates = [
        (inputs, start + name)
        for inputs, names in ARRAY_NAMES.items()
        for name in names
        if start + name in data and (model is None or inputs == model.inputs)
    ]
    if model and not candidates:  # another kind of scores, which the caller rejects
        return _arrays_of_npz(data, options, None, labels)
    if len(candidates) != 1:
        splits = " or ".join(_split_names(data))
        raise ParameterError(
            "{path} must have an array {start}probs or {start}logits; it has {arrays}"
            + (" (choose {splits} by {split})" if splits else ""),
            {
                "path": options.path,
                "start": start,
                "arrays": shortened(list(data)),
                "splits": splits,
            },
        )
    inputs, name = candidates[0]
    labels = next((data[start + n] for n in LABEL_ARRAYS if start + n in data), labels)
    return _Arrays(data[name], name, inputs, labels, data)


def _split_names(data: dict[str, AnyArray]) -> list[str]:
    """The splits that arrays such as ``test_logits`` are named after."""
    return sorted({name.rsplit("_", 1)[0] for name in data if name.endswith(("_logits", "_probs"))})


def _load(path: Path) -> Any:
    """The array of an ``.npy`` file, mapped and not read, or those of an ``.npz`` file by name."""
    try:
        if path.suffix.lower() == ".npz":
            return _load_archive(path)
        data = np.load(path, mmap_mode="r", allow_pickle=False)
        return data if isinstance(data, np.ndarray) else _load_archive(path)
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}") from None
    except Exception as error:  # a damaged head may end in anything, a SyntaxError among them
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path} cannot be read as NumPy arrays: {reason}") from None


def _load_archive(path: Path) -> dict[str, AnyArray]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            check_size(path, entry.file_size)
            _check_head(archive, entry)
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _check_head(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Raise where the head of an array speaks of other bytes than follow it: memory is taken by
    what it says.
    """
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        left = entry.file_size - file.tell()
    if n_bytes != left:
        raise ValueError(f"{entry.filename} has {left:,} bytes and its head says {n_bytes:,}")
