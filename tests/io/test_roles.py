"""Which columns are scores and labels: as said, or as names and types say; else a question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from calibrant._validation import ParameterError
from calibrant.cli import spell_option
from calibrant.io._roles import FileOptions, ModelScores, choose_columns  # needs pyarrow


def chosen(kinds, needs_label=True, model=None, **said):
    return choose_columns(
        kinds, FileOptions(Path("x.csv"), **said), needs_label=needs_label, model=model
    )


TABLE = {"id": "text", "p_a": "float", "p_b": "float", "y": "text"}


def test_the_star_names_the_classes():
    found = chosen(
        {"id": "text", "prob_a_now": "float", "prob_b_now": "float", "y": "int"},
        label="y",
        proba="prob_*_now",
    )
    assert found.scores == ("prob_a_now", "prob_b_now")
    assert found.names == ("a", "b")
    assert not found.was_guessed


def test_a_list_names_columns_in_its_own_order():
    found = chosen(TABLE, label="y", logits="p_b, p_a")
    assert found.scores == found.names == ("p_b", "p_a")
    assert found.inputs == "logits"


def test_prefixes_and_usual_names_are_guessed_and_said():
    found = chosen(TABLE)
    assert (found.scores, found.names, found.label, found.inputs) == (
        ("p_a", "p_b"),
        ("a", "b"),
        "y",
        "proba",
    )
    assert (
        found.summary() == "Reading p_a, p_b as probabilities of 2 classes, and 'y' as the label."
    )
    assert chosen({"z_a": "float", "z_b": "float", "y": "int"}).inputs == "logits"


def test_one_column_per_class_and_one_label_need_no_names():
    found = chosen({"cat": "float", "dog": "float", "animal": "text"})
    assert (found.names, found.label) == (("cat", "dog"), "animal")


def test_what_could_be_either_is_asked():
    with pytest.raises(
        ValueError, match=r"columns p_\* and z_\*. Pass proba='p_\*' or logits='z_\*'"
    ):
        chosen({"p_a": "float", "p_b": "float", "z_a": "float", "z_b": "float", "y": "int"})
    with pytest.raises(ValueError, match="The label column is ambiguous"):
        chosen({"a": "float", "b": "float", "kind": "text", "place": "text"})
    with pytest.raises(ValueError, match="The score columns are ambiguous"):
        chosen({"a": "float", "b": "float", "year": "int", "y": "text"})


def test_label_and_weight_are_no_scores():
    found = chosen(
        {"a": "float", "b": "float", "w": "float", "y": "int"}, label="y", weight="w", proba="*"
    )
    assert found.scores == ("a", "b")


def test_columns_of_a_model_are_found_by_its_classes_in_its_order():
    model = ModelScores(np.array(["b", "a"]), "proba")
    assert chosen(TABLE, needs_label=False, model=model).scores == ("p_b", "p_a")
    assert chosen({"a": "float", "b": "float"}, needs_label=False, model=model).scores == (
        "b",
        "a",
    )
    numbered = {"p_0": "float", "p_1": "float"}
    assert chosen(numbered, needs_label=False, model=model).scores == ("p_0", "p_1")
    with pytest.raises(
        ValueError,
        match=r"but no columns are named after these classes. Pass proba='a,b,...' with the "
        r"columns",
    ):
        chosen({"s1": "float", "s2": "float"}, needs_label=False, model=model)
    listed = chosen({"s1": "float", "s2": "float"}, needs_label=False, model=model, proba="s2,s1")
    assert listed.scores == ("s2", "s1")
    with pytest.raises(ValueError, match="The model needs probabilities of 2 classes"):
        chosen({"s1": "float", "s2": "float", "s3": "float"}, needs_label=False, model=model)


def test_text_is_no_score():
    with pytest.raises(ValueError, match="Column 'id' must contain numbers, but contains text"):
        chosen(TABLE, label="y", proba="id,p_a")


def test_every_kind_of_scores_can_be_asked_for_by_an_option_that_exists():
    table = {"a": "float", "b": "float"}
    for inputs in ("proba", "logits", "log_proba"):
        with pytest.raises(
            ParameterError, match=f"Pass {inputs}='a,b,...' with the columns"
        ) as caught:
            chosen(table, needs_label=False, model=ModelScores(np.array(["x", "y"]), inputs))
        option = f"--{inputs.replace('_', '-')}"
        assert f"Pass {option} a,b,... with the columns" in caught.value.message.spell(spell_option)
        columns = chosen(
            table,
            needs_label=False,
            model=ModelScores(np.array(["x", "y"]), inputs),
            **{inputs: "b,a"},
        )
        assert columns.scores == ("b", "a")


def test_two_kinds_of_scores_exclude_each_other():
    with pytest.raises(
        ValueError, match=r"either logits or log-probabilities. Pass logits= or log_proba="
    ):
        chosen(TABLE, logits="p_*", log_proba="p_*")


TOP = {"top1_label": "int", "top1_logprob": "float", "top2_label": "int", "top2_logprob": "float"}


def test_columns_of_the_best_classes_are_found_by_their_names():
    columns = chosen({**TOP, "rest_logprob": "float", "y": "int", "id": "text"})
    assert columns.top_labels == ("top1_label", "top2_label")
    assert columns.scores == ("top1_logprob", "top2_logprob", "rest_logprob")
    assert (columns.inputs, columns.label) == ("log_proba", "y")


def test_columns_of_the_best_classes_have_no_gap():
    with pytest.raises(
        ValueError, match=r"needs columns top1_label, top1_logprob, top2_label, ... for every"
    ):
        chosen({**TOP, "top4_label": "int", "top4_logprob": "float", "y": "int"})
    with pytest.raises(
        ValueError, match=r"needs columns top1_label, top1_logprob, top2_label, ... for every"
    ):
        chosen({**TOP, "top3_label": "int", "y": "int"})


def test_columns_that_the_user_names_go_before_those_of_the_best_classes():
    columns = chosen({**TOP, "p_a": "float", "p_b": "float", "y": "int"}, proba="p_*")
    assert (columns.scores, columns.top_labels) == (("p_a", "p_b"), ())


@pytest.mark.parametrize("name", ["p", "a{b}", "it's"])
def test_a_single_column_of_fractions_may_be_probabilities_or_logits(name):
    with pytest.raises(ValueError, match="Only column") as caught:
        chosen({"id": "int", name: "float", "y": "int"})
    assert f"Pass proba={name!r} if these are probabilities of the positive" in str(caught.value)
    assert f"logits={name!r} if these are logits." in str(caught.value)


def test_only_text_may_contain_percentages():
    with pytest.raises(ValueError, match="neither numbers nor text") as caught:
        chosen({"p_a": "other", "p_b": "float", "y": "int"})
    assert "percent" not in str(caught.value)
