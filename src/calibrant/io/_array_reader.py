"""Readers of NumPy files. Headers are checked before memory is allocated for the arrays."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
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
    """The content of a file: scores with their name and type, labels, and all arrays by name."""

    scores: Any
    score_name: str
    inputs: str
    labels: AnyArray | FileArray | None
    by_name: Mapping[str, Any]


class ArrayReader(FileReader):
    """Reader of ``.npz`` and ``.npy`` files.

    An ``.npz`` file contains ``probs`` or ``logits``, ``labels``, and optionally ``class_names``.
    An ``.npy`` file contains the scores. If labels are needed, a second file contains the labels.
    """

    def __init__(
        self, options: FileOptions, *, needs_label: bool, model: ModelScores | None
    ) -> None:
        self.path = options.path
        _reject_column_options(options)
        arrays = _read_arrays(options, model)
        self.scores, self.score_name, self.inputs, self.labels, self.arrays = arrays
        self._check_shapes(needs_label)
        self.weight = self._weights_of(options.weight)
        self.names = self._class_names()
        self._order = None if model is None else self._order_for(model)
        self.n_rows = len(self.scores)
        if self.labels is not None:
            kinds = {"b": "bool", "f": "float", "i": "int", "u": "int"}
            self.label_kind = kinds.get(self.labels.dtype.kind, "text")

    def _class_names(self) -> tuple[str, ...]:
        stored = self.arrays.get("class_names")
        if stored is None:
            return tuple(map(str, range(self.n_classes)))
        if stored.shape != (self.n_classes,):
            raise ValueError(
                f"{self.path}: class_names has shape {stored.shape}, but the scores have "
                f"{self.n_classes} columns. Store one name per column."
            )
        return tuple(map(str, stored.tolist()))

    def _weights_of(self, name: str | None) -> FloatArray | None:
        """The weights, from the array whose name the user passed."""
        if name is None:
            return None
        weight = self.arrays.get(name)
        if weight is None or weight.shape != (len(self.scores),) or weight.dtype.kind not in "fiub":
            raise ParameterError(
                "{path} has no array {name!r} with one number per row. Pass {weight} with one of "
                "{arrays}.",
                {"path": self.path, "name": name, "arrays": shortened(list(self.arrays))},
            )
        return weight.astype(np.float64)

    def _order_for(self, model: ModelScores) -> IntArray | None:
        """Return the positions of the columns of a model's classes, or None for the same order.

        The caller rejects files with another number of classes.
        """
        names, wanted = self.names, model.names
        is_numbered = names == tuple(map(str, range(len(wanted))))
        if names == wanted or is_numbered or len(names) != len(wanted):
            return None
        if sorted(names) != sorted(wanted):
            raise ValueError(
                f"The model has the classes {shortened(wanted)}, but the file has "
                f"{shortened(names)}. Pass a file with scores of the same classes."
            )
        return np.array([names.index(name) for name in wanted], dtype=np.intp)

    def _check_shapes(self, needs_label: bool) -> None:
        if self.scores.ndim not in (1, 2) or self.scores.dtype.kind not in "fiub":
            raise ValueError(
                f"{self.path}: {self.score_name} must be numbers of shape (n_samples, n_classes), "
                f"got shape {self.scores.shape} and dtype {self.scores.dtype}."
            )
        if len(self.scores) == 0:
            raise ValueError(f"{self.path} has no rows.")
        self._check_labels(needs_label)

    def _check_labels(self, needs_label: bool) -> None:
        if needs_label and self.labels is None:
            raise ParameterError(
                "{path} has no labels. Add an array named labels, or pass {labels:'FILE.npy'}.",
                {"path": self.path},
            )
        if self.labels is not None and self.labels.shape != (len(self.scores),):
            raise ValueError(
                f"{self.path}: labels have shape {self.labels.shape}, but the scores have "
                f"{len(self.scores)} rows. Store one label per row."
            )

    @property
    def n_classes(self) -> int:
        return self.scores.shape[1] if self.scores.ndim == 2 else 2

    @property
    def n_features(self) -> int:
        return self.scores.shape[1] if self.scores.ndim == 2 else 1

    def blocks(self, *, all_columns: bool = False) -> Iterator[FileBlock]:
        """Return the rows, with a table of the labels if ``all_columns`` is set."""
        for rows in row_blocks(len(self.scores), self.n_classes, elements=WORK_MEMORY // 2):
            labels = None if self.labels is None else pa.array(self.labels[rows])
            table = pa.table({} if labels is None else {"label": labels}) if all_columns else None
            scores = np.asarray(self.scores[rows])
            if self._order is not None:
                # Use C order, as for arrays in memory. The memory layout determines the order in
                # which BLAS adds numbers, which can change the last bit of a prediction.
                scores = np.ascontiguousarray(scores[:, self._order])
            weight = None if self.weight is None else self.weight[rows]
            yield FileBlock(rows.start, scores, labels, weight, table)

    def _label_blocks(self) -> Iterator[Any]:
        assert self.labels is not None
        for rows in row_blocks(len(self.labels), 1, elements=WORK_MEMORY // 2):
            yield pa.array(self.labels[rows])


def _reject_column_options(options: FileOptions) -> None:
    if options.path.suffix == ".npz" and (options.label or options.inputs):
        raise ParameterError(
            "{label}, {proba} and {logits} apply only to tables with columns. In an .npz file, "
            "name the arrays probs or logits, and labels."
        )


def _read_arrays(options: FileOptions, model: ModelScores | None) -> _Arrays:
    labels = None if options.labels is None else _load_labels(options.labels)
    data = _load(options.path)
    if isinstance(data, ArchiveArrays):
        _reject_output(data, model)
        return _arrays_of_npz(data, options, model, labels)
    inputs = model.inputs if model else options.inputs or "proba"
    name = ARRAY_NAMES[inputs][0]
    return _Arrays(data, name, inputs, labels, {name: data})


def _load_labels(path: Path) -> FileArray:
    labels = _load(path)
    if isinstance(labels, ArchiveArrays) or labels.ndim == 0:
        raise ParameterError("{labels} must be an .npy file of labels, got {path}.", {"path": path})
    return labels


def _reject_output(data: Mapping[str, Any], model: ModelScores | None) -> None:
    """Raise if the probabilities in a file are already calibrated."""
    if model is not None and model.inputs == "proba" and {"probs", "raw_probs"} <= set(data):
        raise ValueError(
            "The file has arrays probs and raw_probs, so calibrant apply wrote it, and its scores "
            "are already calibrated. Apply the model to the original file."
        )


def _arrays_of_npz(
    data: Mapping[str, Any],
    options: FileOptions,
    model: ModelScores | None,
    labels: FileArray | None,
) -> _Arrays:
    start = f"{options.split}_" if options.split else ""
    candidates = [
        (inputs, start + name)
        for inputs, names in ARRAY_NAMES.items()
        for name in names
        if start + name in data and (model is None or inputs == model.inputs)
    ]
    if model and not candidates:  # the file has another type of scores, which the caller rejects
        return _arrays_of_npz(data, options, None, labels)
    if len(candidates) != 1:
        splits = " or ".join(_split_names(data))
        raise ParameterError(
            (
                "{path} must have only one array of scores, but the file has {arrays}. Remove all "
                "but one of the arrays of scores."
                if candidates
                else "{path} must have an array {start}probs or {start}logits, but the file has "
                "{arrays}."
            )
            + (" To select the arrays of one split, pass {split} with {splits}." if splits else ""),
            {
                "path": options.path,
                "start": start,
                "arrays": shortened(list(data)),
                "splits": splits,
            },
        )
    inputs, name = candidates[0]
    stored = next((data[start + n] for n in LABEL_ARRAYS if start + n in data), labels)
    return _Arrays(data[name], name, inputs, stored, data)


def _split_names(data: Mapping[str, Any]) -> list[str]:
    """Names of data splits, such as "test" if there is an array ``test_logits``."""
    return sorted({name.rsplit("_", 1)[0] for name in data if name.endswith(("_logits", "_probs"))})


def _load(path: Path) -> Any:
    """Open the array of an ``.npy`` file, or the arrays of an ``.npz`` file.

    Data are read when needed.
    """
    if not path.exists():
        raise FileNotFoundError(f"File {path} does not exist.")
    if not path.is_file():
        raise ValueError(f"{path} is not a regular file. Pass a file of arrays.")
    try:
        with path.open("rb") as file:
            is_archive = file.read(2) == b"PK"
        return ArchiveArrays(path) if is_archive else FileArray(path)
    except Exception as error:  # a damaged header may raise anything, even a SyntaxError
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> ValueError:
    reason = str(error) or type(error).__name__
    return ValueError(f"{path} cannot be read as NumPy arrays: {reason.rstrip('.')}.")


def as_native(array: AnyArray) -> AnyArray:
    """Convert an array to the byte order of this machine, because Arrow reads no other order."""
    return array.astype(array.dtype.newbyteorder("="), copy=False)


class FileArray:
    """The array of an ``.npy`` file, whose rows are read when they are indexed.

    The file is not memory-mapped, because a file that shrinks while it is read would crash the
    process.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self.shape, self._is_fortran, self.dtype = _read_head(file)
            self._start = file.tell()
        self.ndim = len(self.shape)
        if self.dtype.hasobject:
            raise ValueError(
                "arrays of Python objects are not supported, so save numbers or strings"
            )
        _check_size(self.shape, self.dtype, path.stat().st_size - self._start, "the file")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(len(self))
        n_columns = int(np.prod(self.shape[1:], dtype=np.int64))
        with self.path.open("rb") as file:
            if self._is_fortran:
                columns = [
                    self._read(file, k * len(self) + start, stop - start) for k in range(n_columns)
                ]
                flat = np.stack(columns, axis=1)
                return flat.reshape((stop - start, *self.shape[1:]), order="F")
            flat = self._read(file, start * n_columns, (stop - start) * n_columns)
        return flat.reshape(stop - start, *self.shape[1:])

    def _read(self, file: Any, first: int, count: int) -> AnyArray:
        file.seek(self._start + first * self.dtype.itemsize)
        raw = file.read(count * self.dtype.itemsize)
        if len(raw) != count * self.dtype.itemsize:
            raise ValueError(f"{self.path} became shorter while it was read.")
        return as_native(np.frombuffer(raw, dtype=self.dtype))


class ArchiveArrays(Mapping[str, Any]):
    """The arrays of an ``.npz`` file by name, each read when it is accessed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            check_size(path, sum(entry.file_size for entry in entries))
            for entry in entries:
                _check_head(archive, entry)
        self._entries = {entry.filename.removesuffix(".npy"): entry.filename for entry in entries}
        if len(self._entries) < len(entries):
            raise ValueError("two arrays in the file have the same name")

    def __getitem__(self, name: str) -> AnyArray:
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(self._entries[name]) as file:
                array: AnyArray = np.lib.format.read_array(file, allow_pickle=False)
        except KeyError:
            raise
        except Exception as error:  # wrong checksums and lengths of a damaged file
            raise _unreadable(self.path, error) from None
        return as_native(array)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def _read_head(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(
            f"version {version} of the .npy format is not supported, expected (1, 0), (2, 0) or "
            "(3, 0)"
        )
    read = (
        np.lib.format.read_array_header_1_0
        if version == (1, 0)
        else np.lib.format.read_array_header_2_0
    )
    return read(file)


def _check_head(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    with archive.open(entry) as file:
        shape, _, dtype = _read_head(file)
        _check_size(shape, dtype, entry.file_size - file.tell(), entry.filename)


def _check_size(shape: tuple[int, ...], dtype: np.dtype[Any], n_stored: int, name: str) -> None:
    """Raise if the declared size of an array differs from its data, before allocation."""
    # Python integers (dtype=object) do not overflow for the sizes of a damaged header.
    n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if n_bytes != n_stored:
        raise ValueError(
            f"{name} has {n_stored:,} bytes of data, but its header declares {n_bytes:,}"
        )
