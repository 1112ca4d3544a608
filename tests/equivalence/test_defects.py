"""Defects that a review found, and one that the grid found: each is a test that failed before."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from calibrant import (
    AutoCalibration,
    HistogramBinning,
    MulticlassToBinary,
    TemperatureScaling,
    TopScores,
    VectorScaling,
    compare,
    evaluate,
    load,
    report,
)
from calibrant.io import open_scores
from data_kinds import (
    CHUNKED,
    MOST_PASSES,
    OwnChunks,
    Rows,
    as_dask,
    as_own_chunks,
    assert_close,
    folds_by_number,
    in_memory,
    logits_and_labels,
    make_rows,
)

# 1. Selection


def test_a_stack_of_a_dask_array_chooses_the_model_that_memory_chooses():
    rng = np.random.default_rng(0)
    n_classes, n_rows = 50, 195
    y = rng.integers(0, 5, n_rows)
    logits = rng.normal(0, 1, (n_rows, n_classes))
    logits[np.arange(n_rows), y] += 2
    logits[:, 5:] += 2
    rows = Rows(softmax(logits, axis=1), y)
    members = ["bayesian-temperature", "structured-matrix"]
    memory = AutoCalibration(members, cv=folds_by_number(n_rows, 5)).fit(*in_memory(rows))
    chunks = AutoCalibration(members, cv=5).fit(*as_dask(rows, sizes=(150, 150, 150)))
    assert list(chunks.members_) == list(memory.members_)
    assert chunks.weights_[2] == pytest.approx(memory.weights_[2], abs=1e-6)
    assert chunks.weights_[2] > 0.9
    assert chunks.gain_.gain == pytest.approx(memory.gain_.gain, abs=1e-6)


# 2. State of an earlier fit


def fitted_names(model):
    return {name for name in vars(model) if name.endswith("_") and not name.startswith("_")}


@pytest.mark.parametrize("is_chunked_last", [True, False], ids=["chunks last", "memory last"])
def test_nothing_of_an_earlier_fit_survives(is_chunked_last):
    pandas = pytest.importorskip("pandas")
    rows = make_rows(400)
    few = Rows(rows.scores[:100], rows.y[:100])
    names = ["cat", "dog", "eel"]
    frame = pandas.DataFrame(rows.scores, columns=names), np.array(names)[rows.y]
    orders = [as_dask(few), frame] if is_chunked_last else [frame, as_dask(few)]
    last, first = orders
    fresh, again = TemperatureScaling().fit(*last), TemperatureScaling().fit(*first).fit(*last)
    assert fitted_names(again) == fitted_names(fresh)
    assert again.training_.n_samples == (100 if is_chunked_last else 400)
    assert f"{100 if is_chunked_last else 400} rows" in again.explain()


# 3. Arguments of a stack


def test_a_stack_of_chunks_honors_its_time_budget():
    how = {"candidates": ["temperature"], "time_budget": 0.0}
    memory = AutoCalibration(**how).fit(*in_memory(make_rows()))
    chunks = AutoCalibration(cv=2, n_jobs=2, progress=True, **how).fit(*as_dask(make_rows()))
    assert chunks.names_ == memory.names_ == ("identity", "uniform")
    assert chunks.left_out_ == memory.left_out_ == ("temperature",)


# 4. Weights that sum to one


@pytest.mark.filterwarnings("ignore:.*numbers of copies")
def test_a_model_knows_that_chunks_had_weights_that_sum_to_one():
    rows = make_rows(weight="normalized")
    made = MulticlassToBinary(HistogramBinning(n_bins=5, strategy="uniform"))
    assert made.fit(*in_memory(rows)).is_weighted_
    assert made.fit(*as_dask(rows)).is_weighted_


# 5. Files of top scores on the command line


@pytest.fixture
def top_file(tmp_path):
    """A file of the best three of six classes, a model that was fitted to it, and the scores."""
    pytest.importorskip("typer")
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    log_proba = log_softmax(2 * rng.normal(size=(400, 6)), axis=1)
    y = (log_proba + rng.gumbel(size=log_proba.shape)).argmax(axis=1)
    labels = np.argsort(-log_proba, axis=1)[:, :3]
    top = TopScores(labels, np.take_along_axis(log_proba, labels, axis=1), n_classes=6)
    head = [f"top{rank}_{name}" for rank in (1, 2, 3) for name in ("label", "logprob")]
    lines = [
        ",".join([str(y[i]), *(f"{c},{s:.17g}" for c, s in zip(*row, strict=True))])
        for i, row in enumerate(zip(top.labels, top.log_proba, strict=True))
    ]
    path = tmp_path / "top.csv"
    path.write_text("\n".join([",".join(["y", *head]), *lines]) + "\n")
    return path, tmp_path / "model.json", top


def run_command(*arguments):
    from calibrant.cli import run

    return run([str(argument) for argument in arguments])


def fit_top_file(path, model):
    arguments = ("fit", path, "--n-classes", 6, "-m", "temperature", "-o", model)
    assert run_command(*arguments) == 0


def test_a_model_of_a_top_scores_file_is_applied_to_a_top_scores_file(top_file, tmp_path, capsys):
    csv = pytest.importorskip("pyarrow.csv")
    path, model, top = top_file
    fit_top_file(path, model)
    assert run_command("apply", model, path, "-o", tmp_path / "out.csv") == 0, capsys.readouterr()
    table = csv.read_csv(tmp_path / "out.csv")
    expected = load(model).predict_proba(top)
    for rank in range(3):
        assert table[f"top{rank + 1}_label"].to_pylist() == expected.labels[:, rank].tolist()
        found = table[f"top{rank + 1}_logprob"].to_numpy()
        np.testing.assert_allclose(found, expected.log_proba[:, rank], atol=1e-9)


def test_a_fit_of_a_top_scores_file_advises_only_commands_that_accept_it(top_file, capsys):
    fit_top_file(*top_file[:2])
    shown = capsys.readouterr()
    for command in re.findall(r"calibrant (\w+)", shown.out + shown.err):
        assert command in ("evaluate", "fit", "apply"), command


@pytest.mark.parametrize("command", ["compare", "report"])
def test_other_commands_reject_a_top_scores_file_and_say_what_accepts_it(
    command, top_file, tmp_path, capsys
):
    output = ["-o", tmp_path / "out.html"] if command == "report" else []
    assert run_command(command, top_file[0], *output) == 2
    shown = capsys.readouterr().err
    assert re.search(r"(?s)(top|best).*(evaluate|fit)", shown)
    assert "--proba" not in shown


HAS_OPTION = {"evaluate": True, "fit": True, "compare": False, "report": False}
HAS_OPTION |= {"monitor start": False, "monitor update": False}


@pytest.mark.parametrize(
    ("command", "has_option"),
    [pytest.param(name, has, id=name) for name, has in HAS_OPTION.items()],
)
def test_the_number_of_classes_is_an_option_only_where_it_works(command, has_option, capsys):
    pytest.importorskip("typer")
    run_command(*command.split(), "--help")
    assert ("--n-classes" in capsys.readouterr().out) is has_option


# 6. Names of columns in errors


def test_an_error_of_open_scores_names_columns_as_the_file_does(tmp_path):
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    path.write_text("a,b,score--cat,score--dog\nx,y,0.1,0.9\nz,w,0.5,0.5\n")
    with pytest.raises(ValueError, match=r"label=(?s:.*)score--cat, score--dog"):
        open_scores(path)


# 7. Predictions for chunks


@pytest.mark.parametrize("kind", [kind for kind in CHUNKED if kind != "dask array"])
def test_every_fitted_calibrator_predicts_chunks(kind, make):
    rows = make_rows(inputs="logits")
    model = VectorScaling(inputs="logits").fit(*in_memory(rows))
    data = make(kind, rows)
    found = evaluate(data.labels, model.predict_proba(data.scores)).to_dict()
    expected = evaluate(rows.labels, model.predict_proba(rows.scores)).to_dict()
    assert found.pop("ks") == pytest.approx(expected.pop("ks"), abs=0.0075)
    assert_close(found, expected, 1e-10)


# 8. Arguments that do not apply to top scores


@pytest.mark.parametrize("argument", [{"inputs": "logits"}, {"renormalize": True}, {"level": 7}])
def test_evaluate_rejects_arguments_that_do_not_apply_to_top_scores(argument):
    top = TopScores([[0], [1]], np.log([[0.5], [0.8]]), n_classes=3)
    (name,) = argument
    with pytest.raises((TypeError, ValueError), match=name):
        evaluate([0, 1], top, **argument)


# 9. Numbers in the Markdown report


@pytest.fixture(scope="module")
def markdown():
    """A report in which a kernel test finds an error where about none is expected by chance."""
    rng = np.random.default_rng(3)
    logits = 2 * rng.normal(size=(601, 4))
    mixing = np.array([[1, 0.8, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.8], [0, 0, 0, 1]])
    y = (0.9 * logits @ mixing + rng.gumbel(size=logits.shape)).argmax(axis=1)
    how = {"calibrator": TemperatureScaling(), "n_resamples": 99}
    return report.to_markdown(report.summarize(y, softmax(logits, axis=1), **how))


def test_a_markdown_report_writes_counts_as_whole_numbers(markdown):
    lines = [line for line in markdown.splitlines() if line.startswith(("| before", "| after"))]
    counts = [line.split("|")[-2].strip() for line in lines]
    assert len(counts) > 10
    assert all(count.isdigit() for count in counts)


def test_a_markdown_report_has_no_negative_zero(markdown):
    assert not re.search(r"-0\.0+\b(?!\d)", markdown)


# 10. Standard errors of sums


def test_a_nearly_constant_gain_of_chunks_has_the_standard_error_of_memory():
    """Every row is wrong with log-loss 20, but for 1e-7; binning gives each of them log 2."""
    rng = np.random.default_rng(0)
    n_rows = 480
    y = np.arange(n_rows) % 2  # as many of both classes in every fold
    logits = np.zeros((n_rows, 2))
    logits[np.arange(n_rows), 1 - y] = 20 + 1e-7 * rng.normal(size=n_rows)
    rows = Rows(logits, y, inputs="logits")
    binning = {"binning": HistogramBinning(n_bins=1, strategy="uniform")}
    gains = [
        compare(data.labels, data.scores, inputs="logits", methods=binning, cv=cv).gains
        for data, cv in (
            (in_memory(rows), folds_by_number(n_rows, 3, run=n_rows // 12)),
            (as_own_chunks(rows), 3),
        )
    ]
    memory, chunks = (gain["data", "binning", "log_loss"].standard_error for gain in gains)
    assert 1e-9 < memory < 1e-6
    assert chunks == pytest.approx(memory, rel=1e-3)


# 11. Parameters that are no numbers


def test_a_time_budget_that_is_not_a_number_is_named_in_the_error():
    with pytest.raises((TypeError, ValueError), match="time_budget"):
        AutoCalibration(time_budget="x").fit(*in_memory(make_rows()))


# Found by the grid


def test_vector_scaling_of_chunks_ends_after_a_few_passes():
    """About one fit in forty does not end: rounding decides which."""
    for n_classes, seed in product((3, 5), range(20)):
        logits, y = logits_and_labels(n_classes=n_classes, seed=seed)
        rows = Rows(logits, y, inputs="logits")
        chunks = OwnChunks(rows, size=83)
        chunks.n_passes = MOST_PASSES - 50  # 50 passes are left before it raises
        found = VectorScaling(inputs="logits").fit(chunks, None)
        expected = VectorScaling(inputs="logits").fit(*in_memory(rows))
        assert_close(found.predict_proba(logits), expected.predict_proba(logits), 1e-5)
