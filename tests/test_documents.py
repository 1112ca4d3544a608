"""The manual and the README: their code runs, prints what they say, and names what exists."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import sys
from pathlib import Path

import pytest

import calibrant
from clone import only_in_clone

pytestmark = only_in_clone

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def _script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


run_pages = _script("run_pages")

# Pages that take more than half a second, most because they draw: run with the slow tests.
SLOW = {
    *(
        "guide/choose-calibrator.md",
        "guide/choose-metric.md",
        "concepts/stack.md",
        "guide/gallery.md",
    ),
    *("concepts/claim-tests.md", "concepts/cumulative.md", "concepts/decomposition.md"),
    *("concepts/gain.md", "concepts/isotonic.md", "concepts/kernel-test.md"),
    *("concepts/label-shift.md", "concepts/platt-beta.md", "concepts/reductions.md"),
    "concepts/venn-abers.md",
    *("guide/export.md", "howto/custom-type.md", "howto/drift.md", "howto/few-rows.md"),
    *("howto/abstain.md", "howto/costs.md", "howto/how-many-rows.md", "howto/sets.md"),
    *("howto/groups.md", "howto/many-classes.md", "howto/pipelines.md", "guide/report.md"),
    *("guide/monitoring.md", "start/files.md", "start/language-model.md", "start/pytorch.md"),
    *("start/scikit-learn.md", "start/binary.md", "start/what-is-calibration.md", "index.md"),
    *("howto/guarantee.md", "howto/paper.md", "guide/large-data.md"),
    *("tutorials/compare-calibrators.md", "tutorials/drift.md", "tutorials/end-to-end.md"),
}
# Code that is not ours to run, with the reason.
NOT_RUN = {
    "README.md": "make, and pip",
    "index.md": "pip",
    "start/index.md": "pip",
    "development/architecture.md": "walks through the code, in words",
    "guide/large-data.md": "commands about a file of the reader",
    "guide/monitoring.md": "a crontab",
    "guide/report.md": "a command about a file of the reader",
    "howto/guarantee.md": "a command about a file of the reader",
    "howto/top-scores.md": "commands about a file of the reader",
    "guide/export.md": "a page of HTML, run by the tests of exports",
    "guide/citation.md": "CITATION.cff itself",
}


def _title(path):
    return path.relative_to(ROOT).as_posix().removeprefix("docs/")


PAGES = [
    pytest.param(path, id=_title(path), marks=pytest.mark.slow if _title(path) in SLOW else ())
    for path in run_pages.pages()
]
NEEDING = [
    pytest.param(path, needs, id=f"{_title(path)}-{'-'.join(needs)}", marks=pytest.mark.slow)
    for path in run_pages.pages()
    for needs in sorted({block.needs for block in run_pages.blocks_of(path) if block.needs})
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to run in, and no window for pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    yield tmp_path
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


# Packages of which no extra of ours brings any: where all extras are installed, code that needs
# these may be left out, and no other.
NOT_OF_AN_EXTRA = {
    *("torch", "skl2onnx", "onnxruntime", "mlflow", "pandas", "skops"),
    *("betacal", "calibration", "pyspark", "ray"),
}


def _skip(reason):
    """Skip, or fail where all extras are said to be installed."""
    if os.environ.get("CALIBRANT_REQUIRE_EXTRAS"):
        pytest.fail(reason)
    pytest.skip(reason)


def _check(path, **how):
    try:
        pairs = run_pages.run(path, **how)
    except ImportError as error:
        if error.name is not None and error.name.startswith("calibrant"):
            raise
        _skip(f"needs an optional package: {error}")
    for block, printed in pairs:
        assert run_pages.agree(block.body, printed), (
            f"line {block.line} of {_title(path)} says\n{block.body}\nbut there is\n{printed}"
        )


def _lacks_the_command_line(path):
    kinds = {block.kind for block in run_pages.blocks_of(path)}
    return "console" in kinds and any(
        importlib.util.find_spec(name) is None for name in ("typer", "rich", "pyarrow")
    )


@pytest.mark.parametrize("path", PAGES)
def test_the_code_of_a_page_runs_prints_what_the_page_says_and_draws_its_pictures(path, folder):
    if _lacks_the_command_line(path):
        _skip('the page uses the command line: pip install "calibrant[cli]"')
    _check(path, optional=False)
    for saved in sorted(folder.glob("*.[ps][nv]g")):
        _compare(DOCS / "images" / saved.name, saved)


def _compare(kept, drawn):
    """Compare a figure with the one in the manual, if the same matplotlib drew both."""
    import matplotlib as mpl

    if f'"matplotlib=={mpl.__version__}"' not in (ROOT / "pyproject.toml").read_text("utf-8"):
        return
    if kept.suffix == ".svg":
        _compare_svg(kept.read_text(encoding="utf-8"), drawn.read_text(encoding="utf-8"))
        return
    from matplotlib.testing.compare import compare_images

    # as the tests of pictures; other versions of scikit-learn train slightly other models
    assert compare_images(str(kept), str(drawn), tol=10.0) is None


_COORDINATE = re.compile(r"-?\d+\.\d+")


def _compare_svg(kept, drawn):
    """Compare the text of two drawings, and their coordinates up to 3 points on average."""
    words = [re.findall(r"<text[^>]*>([^<]*)</text>", text) for text in (kept, drawn)]
    assert words[0] == words[1]
    numbers = [[float(x) for x in _COORDINATE.findall(text)] for text in (kept, drawn)]
    if len(numbers[0]) == len(numbers[1]):  # models with one bin more have other paths
        gaps = [abs(a - b) for a, b in zip(*numbers, strict=True)]
        assert sum(gaps) / max(len(gaps), 1) < 3


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")
@pytest.mark.parametrize(("path", "needs"), NEEDING)
def test_code_that_needs_other_packages_runs_where_they_are(path, needs, folder):
    for name in needs:
        if importlib.util.find_spec(name) is None:
            (pytest.skip if name in NOT_OF_AN_EXTRA else _skip)(f"{name} is not installed")
    _check(path)


def test_code_that_is_not_run_is_declared():
    found = set()
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        fences = re.findall(r"^```(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)[::2]
        kinds = {re.split(r"[ :]", fence)[0] for fence in fences} - {"python", "console", "text"}
        if kinds - {"{toctree}", "{eval-rst}", "{include}"}:
            found.add(_title(path))
    assert found == set(NOT_RUN)


def test_numbers_of_a_page_are_held_against_those_printed():
    assert run_pages.agree("ECE 0.0543 of 1,000 rows", "ECE  0.0540 of 1,000 rows")
    assert not run_pages.agree("ECE 0.0543", "ECE 0.0643")
    assert not run_pages.agree("ECE 0.0543", "MCE 0.0543")


def test_the_evidence_for_calibrators_is_that_of_the_pages_it_comes_from():
    text = (DOCS / "guide" / "choose-calibrator.md").read_text(encoding="utf-8")
    assert _script("write_methods").page(text) == text, "run python tools/write_methods.py"


# Tasks of users, the page that the landing page sends them to, and the words that answer.
TASKS = {
    "calibrate my random forest": ("start/scikit-learn.md", "CalibratedClassifier(RandomForest"),
    "predictions with confidence 0.9 are correct": (
        "guide/choose-metric.md",
        "evaluate(data.test_labels",
    ),
    "80 rows and 5 classes": ("guide/choose-calibrator.md", "**80 rows and 5 classes**"),
    "numbers of the report": ("guide/numbers.md", "| Cutoff error |"),
    "in production with ONNX": ("guide/export.md", "export.to_onnx("),
    "alert when a deployed model drifts": ("guide/monitoring.md", "CalibrationMonitor("),
    "answers of a language model": ("start/language-model.md", "StructuredScaling("),
    "10 million rows": ("guide/large-data.md", "open_scores("),
    "metric for a paper": ("howto/paper.md", "inference.debiased_interval"),
    "auditor a guarantee": ("howto/guarantee.md", ".guarantee("),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_task_of_a_user_is_one_click_from_the_landing_page(task):
    target, words = TASKS[task]
    front = (DOCS / "index.md").read_text(encoding="utf-8")
    (line,) = [line for line in front.splitlines() if task in line]
    assert f"({target}" in line
    assert words in (DOCS / target).read_text(encoding="utf-8")


def test_the_evidence_pages_are_those_of_the_recorded_benchmarks():
    for name, text in _script("write_evidence").files().items():
        page = (DOCS / "evidence" / name).read_text(encoding="utf-8")
        assert page == text, "run python tools/write_evidence.py"


def test_every_record_of_a_benchmark_has_an_evidence_page():
    used = {name for page in _script("write_evidence").PAGES.values() for name in page.records}
    assert used == {path.stem for path in (ROOT / "benchmarks" / "records").glob("*.md")}


def test_the_page_of_printed_numbers_has_the_glossary_of_the_report():
    text = (DOCS / "guide" / "numbers.md").read_text(encoding="utf-8")
    assert _script("write_glossary").page(text) == text, "run python tools/write_glossary.py"


def test_every_number_that_evaluate_prints_is_explained():
    text = (DOCS / "guide" / "numbers.md").read_text(encoding="utf-8").lower()
    printed = str(calibrant.evaluate([0, 1, 1], [[0.7, 0.3], [0.2, 0.8], [0.6, 0.4]]))
    for line in printed.splitlines():
        name = re.split(r"\s{2,}", line)[0]
        assert f"| {name.lower()} |" in text or f"{name}, " in text or f", {name} |" in text, name


write_notebooks = _script("write_notebooks")
TUTORIALS = [pytest.param(path, id=path.stem) for path in write_notebooks.pages()]


@pytest.mark.parametrize("path", TUTORIALS)
def test_a_notebook_has_the_code_and_the_outputs_of_its_page(path):
    notebook = path.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert notebook == write_notebooks.render(path), "run python tools/write_notebooks.py"


@pytest.mark.slow
@pytest.mark.parametrize("path", TUTORIALS)
def test_the_cells_of_a_notebook_run_in_their_order(path, folder):
    space = {"__name__": "__main__"}
    for cell in json.loads(path.with_suffix(".ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), str(path), "exec"), space)


# What users of calibration libraries complain of, by what the question contains that answers it.
PAINS = {
    "Platt scaling of probabilities": "made my log-loss worse",
    "NaN outside of the predicted class": "a full row from a top-label calibrator",
    "a class without calibration rows": "does not occur in my calibration rows",
    "zeros and ties of isotonic maps": "exact zeros, and ties",
    "rows that do not sum to one": "do not sum to one",
    "edges of bins": "exactly 1.0 change my ECE",
    "many meanings of ECE": "differs from another library",
    "logits or probabilities": "pass logits or probabilities",
    "temperatures that run away": "temperature is 0.01, or 1e7",
    "broken installations": "Calibrant work with my versions",
    "PyTorch for an ECE": "Must I install PyTorch",
    "pickles": "without pickle",
    "export": "ONNX, SQL or JavaScript",
    "no metric in scikit-learn": "scikit-learn scorers",
    "no way to plug in a calibrator": "use my own calibrator",
    "NaN out of histogram binning": "Histogram binning gives NaN",
    "separable data and constant scores": "all predictions are correct or all scores are equal",
    "ties in quantile bins": "collapse my quantile bins",
    "batches with few labels": "in this batch, and the metric crashes",
    "slow fits": "a calibrator or a test slow",
    "the contract of estimators": "`get_params`",
    "multiclass Venn-Abers": "Venn-Abers needs",
    "per-class and per-bin numbers": "results per class and per bin",
    "memory that grows with rows": "runs out of memory",
    "unmaintained and untested": "Calibrant tested and maintained",
}


def test_every_pain_that_users_report_has_an_answer():
    text = (DOCS / "guide" / "faq.md").read_text(encoding="utf-8")
    answers = dict(re.findall(r"^### (.+)\n((?:(?!#).+\n)+)", text, re.MULTILINE))
    for pain, words in PAINS.items():
        assert len([question for question in answers if words in question]) == 1, pain


# -- names


ROOMS = [name for name, home in calibrant._HOMES.items() if not home]
_DOTTED = re.compile(r"\bcalibrant\.([A-Za-z_][\w.]*\w)")
_IN_A_ROOM = re.compile(rf"`((?:{'|'.join(ROOMS)})\.[A-Za-z_]\w*)")
_FILES = {"json", "html", "prom"}
_OF_RESULTS = {"report.how", "report.html"}  # of a variable, and a file


def _is_there(dotted):
    """Whether a name below `calibrant` exists: a module, or an attribute of one."""
    value = calibrant
    for part in dotted.split("."):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:
            value = importlib.import_module(f"{value.__name__}.{part}")
        except (ImportError, AttributeError):
            return False
    return True


WRITTEN = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: _title(path))
def test_every_name_of_ours_on_a_page_exists(path):
    # What a block needs may be missing: the block is then left out.
    text = re.sub(r"^(```\w+) needs: .*$", r"\1", path.read_text(encoding="utf-8"), flags=re.M)
    named = {name for name in _DOTTED.findall(text) if name.split(".")[0] not in _FILES}
    named |= set(_IN_A_ROOM.findall(text)) - _OF_RESULTS
    assert sorted(name for name in named if not _is_there(name)) == []


# Names in code style that are not ours, with whose they are.
_OF_OTHERS = {
    *("CalibratedClassifierCV", "GaussianNB", "HistGradientBoostingClassifier", "MLPClassifier"),
    *("FrozenEstimator", "RandomForestClassifier", "ValueError", "FutureWarning"),
    *("Client", "MatMul"),  # dask, ONNX
    *("NAME_labels", "NAME_logits"),  # arrays of a file
    # Ours, and private: the architecture.
    *("Sample", "ArraySample", "ChunkedSample", "TopSample", "FoldPlan"),
}
_CLASS = re.compile(r"`(?:\w+\.)*([A-Z]\w*[a-z]\w*)(?=[(`.])")
ABOUT_US = [path for path in WRITTEN if path.parent.name != "migration"]


def test_every_class_in_code_style_is_ours_or_known_to_be_of_others():
    ours = {name for room in ROOMS for name in _all(room)} | set(calibrant._HOMES)
    named = {name for path in ABOUT_US for name in _CLASS.findall(path.read_text("utf-8"))}
    assert named - ours == _OF_OTHERS


# Options of other programs than `calibrant`: scripts of ours, pip.
_OTHER_OPTIONS = {"--write"}


def _commands(command):
    """A command and those below it."""
    yield command
    for below in getattr(command, "commands", {}).values():
        yield from _commands(below)


def test_every_option_and_command_of_the_command_line_on_a_page_exists():
    typer = pytest.importorskip("typer")
    from calibrant.cli._app import app

    commands = list(_commands(typer.main.get_command(app)))
    options = {
        word
        for command in commands
        for param in command.params
        for word in (*param.opts, *param.secondary_opts)
    }
    texts = [path.read_text(encoding="utf-8") for path in WRITTEN]
    named = {word for text in texts for word in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
    assert named - options - {"--help"} == _OTHER_OPTIONS
    called = {word for text in texts for word in re.findall(r"(?:`|\$ )calibrant ([a-z]+)\b", text)}
    assert called <= {command.name for command in commands}


def test_every_target_job_and_file_on_a_page_exists():
    texts = [path.read_text(encoding="utf-8") for path in [*WRITTEN, ROOT / "CONTRIBUTING.md"]]
    targets = re.search(r"\.PHONY: (.*)", (ROOT / "Makefile").read_text("utf-8"))[1].split()
    jobs = re.findall(r"^job_(\w+)\(\)", (ROOT / ".ci" / "run").read_text("utf-8"), re.MULTILINE)
    for text in texts:
        assert set(re.findall(r"(?:`|^)make ([a-z]+)", text, re.MULTILINE)) <= set(targets)
        named = {job.replace("-", "_") for job in re.findall(r"\.ci/run ([a-z-]+)", text)}
        assert named <= set(jobs)
        files = re.findall(r"(?:`|python )((?:docs|benchmarks|tests|tools|src)/[\w./-]*\w)", text)
        assert [name for name in files if not (ROOT / name).exists()] == []


def test_every_public_name_has_one_place_in_the_reference():
    seen = []
    for page in sorted((DOCS / "reference").glob("*.md")):
        for room, options in re.findall(
            r"automodule:: calibrant\.(\w+)\n((?:   :.*\n)*)", page.read_text()
        ):
            module = importlib.import_module(f"calibrant.{room}")
            left_out = set(
                re.findall(r"\w+", "".join(re.findall(r"exclude-members:(.*)", options)))
            )
            seen += [getattr(module, name) for name in module.__all__ if name not in left_out]
    assert len({id(value) for value in seen}) == len(seen)
    public = {id(getattr(getattr(calibrant, room), name)) for room in ROOMS for name in _all(room)}
    assert {id(value) for value in seen} == public
    assert {
        id(getattr(calibrant, name)) for name, home in calibrant._HOMES.items() if home
    } <= public


def _all(room):
    return getattr(calibrant, room).__all__
