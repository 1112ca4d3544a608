"""``calibrant monitor``: a year of weekly files, exit codes, locks, damaged states."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from calibrant.cli import run
from calibrant.cli._monitor_state import locked
from calibrant.datasets import draw_labels
from streams import draw, sharpened


@pytest.fixture
def weeks(tmp_path, monkeypatch, rng):
    """``weeks(name, beta)`` writes the predictions of a week."""
    monkeypatch.chdir(tmp_path)

    def write(name, beta=1.0, n_rows=400):
        proba = rng.dirichlet(np.full(3, 0.5), n_rows)
        labels = draw(sharpened(proba, beta), rng)
        lines = [
            f"{','.join(map(repr, row))},{'abc'[label]}"
            for row, label in zip(proba.tolist(), labels, strict=True)
        ]
        text = "\n".join(["p_a,p_b,p_c,label", *lines])
        (tmp_path / f"{name}.csv").write_text(text + "\n")

    write("reference", n_rows=1000)
    return write


def command(capsys, *arguments, code=0):
    assert run([str(a) for a in arguments]) == code
    return capsys.readouterr()


@pytest.fixture
def started(weeks, capsys):
    said = command(capsys, "monitor", "start", "reference.csv", "-o", "state.json")
    assert "calibrant monitor update state.json" in said.out
    return weeks


def test_the_start_names_classes_whose_errors_the_tolerance_hides(weeks, capsys, tmp_path, rng):
    rare = rng.uniform(0.0, 0.02, 200)
    rows = np.column_stack([rare, 0.7 - rare, np.full(200, 0.3)])
    lines = [f"{a},{b},{c},{'abc'[k]}" for (a, b, c), k in zip(rows, draw(rows, rng), strict=True)]
    text = "\n".join(["p_a,p_b,p_c,label", *lines])
    (tmp_path / "rare.csv").write_text(text + "\n")
    start = ("monitor", "start", "rare.csv", "-o")
    note = "mean predicted probability of a is below twice the tolerance 0.02"
    assert note in command(capsys, *start, "plain.json").err
    shown = command(capsys, *start, "relative.json", "--relative-tolerance", "0.5")
    assert "note" not in shown.err
    state = json.loads((tmp_path / "relative.json").read_text())
    assert state["rule"]["relative_tolerance"] == 0.5


@pytest.mark.parametrize(
    ("n_weeks", "drift"), [(15, 6), pytest.param(52, 30, marks=pytest.mark.slow)]
)
def test_weeks_with_a_drift_in_one_of_them(started, capsys, tmp_path, n_weeks, drift):
    codes = []
    for week in range(1, n_weeks + 1):
        started(f"week-{week:02d}", beta=0.4 if week >= drift else 1.0, n_rows=150)
        codes.append(run(["monitor", "update", "state.json", f"week-{week:02d}.csv", "-q"]))
    capsys.readouterr()
    assert set(codes[: drift - 1]) == {0}
    assert drift - 1 <= codes.index(3) <= drift + 10
    page = ("-o", "monitor.html", "--title", "credit model")
    said = command(capsys, "monitor", "show", "state.json", *page).out
    assert "Alarm" in said
    assert any(f"week-{week:02d}" in said for week in range(drift - 1, drift + 3))
    written = (tmp_path / "monitor.html").read_text()
    assert "<svg" in written
    assert "<h1>credit model</h1>" in written
    assert not list(tmp_path.glob("*.lock"))


def test_json_and_prometheus(started, capsys, tmp_path):
    started("one")
    out = command(
        capsys, *("monitor", "update", "state.json", "one.csv"), *("--metrics", "m.prom", "--json")
    ).out
    step = json.loads(out)
    assert step["n_seen"] == 400
    assert step["when"] == "one"
    text = (tmp_path / "m.prom").read_text()
    assert "calibrant_monitor_alarm 0\n" in text
    assert 'calibrant_monitor_gap{claim="' in text
    shown = json.loads(command(capsys, "monitor", "show", "state.json", "--json").out)
    assert shown["n_rows"] == 400


def test_a_locked_state_is_an_error_and_stays_as_it_was(started, capsys, tmp_path):
    started("one")
    before = (tmp_path / "state.json").read_bytes()
    with locked(tmp_path / "state.json"):
        said = command(capsys, "monitor", "update", "state.json", "one.csv", code=2)
    assert "locked" in said.err
    assert (tmp_path / "state.json").read_bytes() == before


def test_bad_rows_leave_the_state_as_it_was(started, capsys, tmp_path):
    before = (tmp_path / "state.json").read_bytes()
    (tmp_path / "bad.csv").write_text("p_a,p_b,p_c,label\n0.2,0.3,0.5,z\n")
    said = command(capsys, "monitor", "update", "state.json", "bad.csv", code=2)
    assert "'z'" in said.err
    assert (tmp_path / "state.json").read_bytes() == before
    assert not (tmp_path / "state.json.lock").exists()


@pytest.mark.parametrize("text", ["", "{}", '{"schema": "calibrant.monitor/1"}', "\x00"])
def test_a_damaged_state_is_an_error_that_names_it(started, capsys, tmp_path, text):
    started("one")
    (tmp_path / "state.json").write_text(text)
    for arguments in (("update", "state.json", "one.csv"), ("show", "state.json")):
        assert "state.json" in command(capsys, "monitor", *arguments, code=2).err
    assert (tmp_path / "state.json").read_text() == text


def test_a_reference_that_is_not_calibrated_causes_a_warning_upon(weeks, capsys):
    weeks("worse", beta=0.3, n_rows=4000)
    said = command(capsys, "monitor", "start", "worse.csv", "-o", "s.json", "--horizon", "10000")
    assert "The rows of the reference file raise an alarm (mean gap of confidence: +0." in said.err


def test_a_page_is_html(started, capsys):
    said = command(capsys, "monitor", "show", "state.json", "-o", "page.pdf", code=2)
    assert ".html" in said.err
    assert "has no rows yet" in command(capsys, "monitor", "show", "state.json").out


def test_a_missing_state_says_how_to_begin(weeks, capsys):
    said = command(capsys, "monitor", "update", "no.json", "reference.csv", code=2)
    assert "monitor start" in said.err


def test_weights_of_a_column_count(started, capsys, tmp_path):
    started("one")
    lines = (tmp_path / "one.csv").read_text().splitlines()
    weighted = [f"{lines[0]},w", *(f"{line},{i % 2}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "half.csv").write_text("\n".join(weighted) + "\n")
    half = ("monitor", "update", "state.json", "half.csv", "--weight", "w", "--json")
    assert json.loads(command(capsys, *half).out)["n_seen"] == 200
    heavy = [f"{lines[0]},w", *(f"{line},3" for line in lines[1:])]
    (tmp_path / "heavy.csv").write_text("\n".join(heavy) + "\n")
    said = command(capsys, "monitor", "update", "state.json", "heavy.csv", "--weight", "w", code=2)
    assert "at most 1" in said.err


def with_column(tmp_path, name, column, values):
    """Adds a column to the file of a week."""
    lines = (tmp_path / f"{name}.csv").read_text().splitlines()
    rows = [f"{line},{value}" for line, value in zip(lines[1:], values, strict=True)]
    (tmp_path / f"{name}.csv").write_text("\n".join([f"{lines[0]},{column}", *rows]) + "\n")


def test_the_group_that_is_not_calibrated_is_named(started, capsys, tmp_path):
    for week, beta in (("north", 1.0), ("south", 0.3)):
        started(week, beta, n_rows=1500)
        with_column(tmp_path, week, "region", [week] * 1500)
    lines = [(tmp_path / f"{week}.csv").read_text().splitlines() for week in ("north", "south")]
    (tmp_path / "both.csv").write_text("\n".join([*lines[0], *lines[1][1:]]) + "\n")
    update = ("monitor", "update", "state.json", "both.csv", "--group", "region")
    step = json.loads(command(capsys, *update, "--json", code=3).out)
    assert "group south" in step["listed"]
    assert "group north" not in step["listed"]
    said = command(capsys, "monitor", "show", "state.json").out
    assert "group south" in said


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("area", ["n"] * 400, "has no column 'region'. Pass one of p_a, p_b, p_c"),
        ("region", [0.5] * 400, "must contain strings or integers"),
        ("region", ["n"] * 7 + [""] * 393, "Row 7 has no value in the group column"),
    ],
)
def test_a_group_that_cannot_be_read_is_said(started, capsys, tmp_path, column, values, said):
    started("week")
    with_column(tmp_path, "week", column, values)
    before = (tmp_path / "state.json").read_text()
    update = ("monitor", "update", "state.json", "week.csv", "--group", "region")
    assert said in command(capsys, *update, code=2).err
    assert (tmp_path / "state.json").read_text() == before


def test_the_class_names_of_an_archive_decide_the_order_of_its_columns(started, capsys, rng):
    proba = rng.dirichlet(np.full(3, 0.5), 400)
    names = np.array(list("abc"))
    labels = names[draw(proba, rng)]
    order = [2, 0, 1]
    np.savez("straight.npz", probs=proba, labels=labels, class_names=names)
    np.savez("other.npz", probs=proba[:, order], labels=labels, class_names=names[order])
    state = Path("state.json").read_bytes()
    steps = []
    for name in ("straight", "other"):
        Path("state.json").write_bytes(state)
        arguments = ("monitor", "update", "state.json", f"{name}.npz", "--json")
        steps.append(json.loads(command(capsys, *arguments, "--when", "x").out))
    assert steps[0] == steps[1]


@pytest.fixture
def animals(tmp_path, monkeypatch, rng):
    """A state, and a function that writes a week of rows."""
    monkeypatch.chdir(tmp_path)
    names = np.array(["cat", "dog", "owl"])

    def write(path, columns=("cat", "dog", "owl"), labels=names):
        proba = rng.dirichlet(np.ones(3), 200)
        truth = labels[draw_labels(proba, rng=rng)]
        places = [names.tolist().index(name) for name in columns]
        rows = [",".join(map(repr, row)) for row in proba[:, places].tolist()]
        lines = [f"{row},{label}" for row, label in zip(rows, truth, strict=True)]
        head = ",".join([*(f"p_{name}" for name in columns), "y"])
        Path(path).write_text("\n".join([head, *lines]) + "\n")

    write("ref.csv")
    assert run(["monitor", "start", "ref.csv", "--label", "y", "-o", "s.json", "-q"]) == 0
    return write


def test_columns_in_another_order_are_read_by_name(animals):
    animals("a.csv", columns=("owl", "cat", "dog"))
    assert run(["monitor", "update", "s.json", "a.csv", "--when", "w1", "-q"]) == 0


def test_weeks_may_be_missing_and_late(animals, capsys):
    for week in ("w1", "w4", "w2"):
        animals("a.csv")
        assert run(["monitor", "update", "s.json", "a.csv", "--when", week, "-q"]) == 0
    assert "600 rows" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("labels", "message"),
    [(["cat", "dog", "emu"], "Label 'emu' in row"), (["cat", "", "owl"], "is missing")],
)
def test_labels_that_were_never_seen_or_have_not_arrived_change_nothing(
    animals, capsys, labels, message
):
    before = Path("s.json").read_bytes()
    animals("a.csv", labels=np.array(labels))
    assert run(["monitor", "update", "s.json", "a.csv", "--when", "w1", "-q"]) == 2
    assert message in capsys.readouterr().err
    assert Path("s.json").read_bytes() == before
