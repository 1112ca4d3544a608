"""Read the evaluation logs of several tools, which are recognized by their content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from calibrant._validation import check_option
from calibrant.llm import _batch, _helm, _inspect, _lm_eval, _table
from calibrant.llm._archive import is_archive
from calibrant.llm._files import MOST_BYTES, first_record, read_document
from calibrant.llm._run import Run, Runs

_SUFFIXES = frozenset({".jsonl", ".json", ".eval", ".csv", ".parquet"})


def read(
    path: str | PathLike[str],
    *,
    reading: Literal["sum", "char", "byte", "mutual"] = "sum",
    targets: Mapping[str, Any] | None = None,
    percent: bool = False,
) -> Runs:
    r"""Read confidences and correctness from evaluation logs.

    Parameters
    ----------
    path : str or path
        A file, or a folder that is searched with its subfolders. The content of a file determines
        its format, see Notes.
    reading : {"sum", "char", "byte", "mutual"}, default "sum"
        Scores by which lm-evaluation-harness chooses an option. "sum" is the sum of the
        log-probabilities of all tokens (``acc``). "char" and "byte" divide this sum by the number
        of characters (``acc_norm``) or bytes (``acc_bytes``). "mutual" subtracts the unconditional
        log-probability (``acc_mutual_info``). Other formats ignore this parameter.
    targets : dict of custom_id -> correct answer, optional
        Correct answers of a batch file. By default, a CSV file in the folder with the columns
        ``custom_id`` and ``target`` contains the correct answers.
    percent : bool, default False
        Whether numbers without % in the column ``confidence`` of a table are percentages.

    Returns
    -------
    Runs
        One `Run` per task. Files of different models or dates are never merged.

    Raises
    ------
    ValueError
        If no file contains confidences, or if a file is damaged. The error message contains the
        file and the line.

    See Also
    --------
    evaluate : Evaluate the calibration of each task.
    OptionCalibration : Calibrate multiple-choice answers.
    AnswerCalibration : Calibrate stated confidences.

    Notes
    -----
    ================================  ==========================================================
    format                            content that is read
    ================================  ==========================================================
    lm-evaluation-harness             ``samples_*.jsonl`` (``--log_samples``): options
    Inspect                           ``.eval`` and ``.json`` logs: stated confidences, else
                                      log-probabilities of option letters (``--logprobs``), else
                                      the geometric mean of token probabilities
    HELM                              ``per_instance_stats.json``: ``max_prob``, ``exact_match``
    OpenAI-style batches              ``.jsonl`` with ``custom_id``, and a table of targets
    CSV, Parquet, JSON lines          columns ``confidence``, ``correct`` and optionally ``task``
    ================================  ==========================================================

    Files are read line by line, or member by member. Answers without a confidence are counted in
    ``n_missing`` and not imputed. Archives are not extracted to disk, and archives that expand to
    many times their size raise an error.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "trivia.csv").write_text("confidence,correct\n90%,yes\n0.6,no\n,no\n")
    >>> run = read(folder)["trivia"]
    >>> run.confidence.tolist(), run.correct.tolist(), run.n_missing
    ([0.9, 0.6], [True, False], 1)
    """
    check_option(reading, "reading", tuple(_lm_eval.READINGS))
    root = Path(path)
    if not root.exists():
        raise FileNotFoundError(
            f"There is no file or folder {str(root)!r}. Pass the path of a log or of a folder."
        )
    files = _files_of(root)
    reader = _Reader(files, reading, targets, percent=percent)
    runs: list[Run] = []
    ignored: list[str] = []
    for file in files:
        file_runs = reader.read(file)
        runs += file_runs or []
        if file_runs is None:
            ignored.append(str(file))
    if not runs:
        raise ValueError(
            f"{root} contains no evaluation that can be read. Pass lm-evaluation-harness samples, "
            "Inspect logs, HELM run folders, batch output, or a table with the columns confidence "
            "and correct."
        )
    _check_confidences(runs, root)
    return Runs(_by_name(runs), tuple(ignored))


def _files_of(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    files = (file for file in root.rglob("*") if file.suffix in _SUFFIXES and file.is_file())
    return sorted(files)


class _Reader:
    """Reader of files of any format, with the delimiters and targets of their folder."""

    def __init__(self, files: Iterable[Path], reading: str, targets: Any, *, percent: bool) -> None:
        self._reading, self._percent = reading, percent
        self._targets = _batch.as_targets(targets or {})
        self._delimiters: dict[str, str] = {}
        for file in files:
            if file.name.startswith("results") and file.suffix == ".json":
                self._delimiters.update(_lm_eval.read_delimiters(file))
            elif not targets and _contains_targets(file):
                self._targets = {**self._targets, **_table.read_targets(file)}

    def read(self, path: Path) -> list[Run] | None:
        """Return the runs of a file, or None if it contains no evaluation."""
        if path.suffix == ".eval" or is_archive(path):
            return _inspect.read_log(path)
        if path.name == _helm.FILE_NAME:
            return [_helm.read_folder(path)]
        if path.suffix in _table.SUFFIXES:
            is_answers = _table.is_answers(_table.column_names(path))
            return _table.read_answers(path, percent=self._percent) if is_answers else None
        return self._read_json(path)

    def _read_json(self, path: Path) -> list[Run] | None:
        if path.stat().st_size == 0:
            return None  # a run that was interrupted before its first answer
        record = first_record(path) if path.suffix == ".jsonl" else None
        if record is not None:
            return self._read_lines(path, record)
        if path.name.startswith("results") or path.stat().st_size > MOST_BYTES:
            return None
        document = read_document(path)
        if _inspect.is_log(document):
            return _inspect.read_log(path)
        # Version 0.4.0 of lm-evaluation-harness writes one list.
        is_list = isinstance(document, list) and document and isinstance(document[0], dict)
        is_samples = is_list and _lm_eval.is_record(document[0])
        return [self._read_samples(path)] if is_samples else None

    def _read_lines(self, path: Path, record: dict[str, Any]) -> list[Run] | None:
        if _lm_eval.is_record(record):
            return [self._read_samples(path)]
        if _batch.is_record(record):
            return _batch.read_file(path, self._targets)
        is_answers = _table.is_answers(list(record))
        return _table.read_answers(path, percent=self._percent) if is_answers else None

    def _read_samples(self, path: Path) -> Run:
        delimiter = self._delimiters.get(_lm_eval.task_of(path), " ")
        return _lm_eval.read_file(path, _lm_eval.Reading(self._reading, delimiter))


def _contains_targets(file: Path) -> bool:
    return file.suffix in _table.SUFFIXES and _table.is_targets(_table.column_names(file))


def _check_confidences(runs: list[Run], root: Path) -> None:
    if any(len(run) for run in runs):
        return
    missing = sum(run.n_missing for run in runs)
    reasons = sum((Counter(run.skipped) for run in runs), Counter())
    if not missing and reasons:
        counts = ", ".join(f"{reason}: {count:,}" for reason, count in reasons.items())
        raise ValueError(f"{root} contains no answer that can be evaluated ({counts}).")
    raise ValueError(
        f"{root} contains {missing:,} answers, but no confidences. Run the evaluation again with "
        "--logprobs (Inspect) or logprobs=true (OpenAI-style services), or use tasks that score "
        "options (lm-evaluation-harness with --log_samples)."
    )


def _by_name(runs: list[Run]) -> dict[str, Run]:
    """Name runs by their task. If a task occurs twice, add the name of the folder or file."""
    runs_by_name: dict[str, Run] = {}
    for run in runs:
        is_unique = sum(other.task == run.task for other in runs) == 1
        path = Path(run.path)
        name = run.task if is_unique else f"{path.parent.name}/{run.task}"
        if name in runs_by_name:
            name = f"{path.parent.name}/{path.stem}"
        number = 2
        while name in runs_by_name:
            name, number = f"{path.parent.name}/{path.stem} ({number})", number + 1
        runs_by_name[name] = run
    return runs_by_name
