"""``calibrant evaluate --confidence COLUMN --correct COLUMN``."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from calibrant import evaluate_answers
from calibrant.cli import run

CONFIDENCE, CORRECT = [0.95, 0.8, 0.3, 0.6] * 30, [1, 0, 0, 1] * 30
SUBJECT = ["math", "law"] * 60
PAIR = ("--confidence", "stated", "--correct", "right")


def write(path, confidence=CONFIDENCE, correct=CORRECT, sep=","):
    rows = zip(map(str, confidence), map(str, correct), SUBJECT, strict=True)
    path.write_text("\n".join([sep.join(("stated", "right", "subject")), *map(sep.join, rows)]))
    return str(path)


def evaluated(capsys, *arguments):
    assert run(["evaluate", *arguments, "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "spelling",
    [{1: "1", 0: "0"}, {1: "True", 0: "False"}, {1: "yes", 0: "no"}, {1: "1.0", 0: "0.0"}],
)
def test_confidences_of_a_file_are_evaluated_by_group(tmp_path, capsys, spelling):
    path = write(tmp_path / "a.csv", correct=[spelling[value] for value in CORRECT])
    expected = evaluate_answers(CORRECT, CONFIDENCE, by={"subject": SUBJECT})
    assert evaluated(capsys, path, *PAIR, "--by", "subject") == expected.to_dict()
    assert evaluated(capsys, path, *PAIR) == evaluate_answers(CORRECT, CONFIDENCE).to_dict()


@pytest.mark.parametrize("sign", ["", "%", " %"])
def test_percentages_of_confidences_are_read_on_request(tmp_path, capsys, sign):
    path = write(tmp_path / "a.csv", [f"{100 * value:g}{sign}" for value in CONFIDENCE], sep=";")
    shown = evaluated(capsys, path, *PAIR, "--percent", "--sep", ";")
    expected = evaluate_answers(CORRECT, CONFIDENCE).to_dict()
    assert shown == pytest.approx(expected)
    assert run(["evaluate", path, *PAIR, "--sep", ";"]) == 2


def test_percent_signs_of_classes_are_read_on_request(tmp_path, capsys):
    path = tmp_path / "p.csv"
    path.write_text("p_cat,p_dog,y\n" + "90%,10%,cat\n20%,80%,dog\n" * 10)
    assert evaluated(capsys, str(path), "--percent")["accuracy"] == 1.0
    assert run(["evaluate", str(path)]) == 2
    assert "--percent" in capsys.readouterr().err


def test_a_column_that_says_neither_correct_nor_wrong_is_an_error(tmp_path, capsys):
    path = write(tmp_path / "a.csv", correct=["maybe", *CORRECT[1:]])
    assert run(["evaluate", path, *PAIR]) == 2
    assert "Row 0 of column 'right' is 'maybe'" in capsys.readouterr().err


def test_a_pair_needs_both_columns_and_no_others(tmp_path, capsys):
    path = write(tmp_path / "a.csv")
    for wrong in (PAIR[:2], PAIR[2:], (*PAIR, "--label", "right"), (*PAIR, "--model", "m.json")):
        assert run(["evaluate", path, *wrong]) == 2
        assert "--confidence" in capsys.readouterr().err


def test_a_pair_that_is_read_as_classes_gets_a_note(tmp_path, capsys):
    path = tmp_path / "a.csv"
    path.write_text("confidence,correct\n" + "0.9,1\n0.4,0\n" * 20)
    assert run(["evaluate", str(path), "--proba", "confidence", "--label", "correct"]) == 0
    assert "--confidence confidence --correct correct" in capsys.readouterr().err
