"""Published tables: the committed results, the page that is made of them, and short runs."""

from __future__ import annotations

import importlib
import os

import numpy as np
import pytest
import reproduction
import wenger_2020

# The share of figures within the stated tolerance, as committed and rounded down: it may rise. The
# page says what is outside, and why where that is known.
SHARES = {
    "gupta_ramdas_2022": 1.0,
    "gupta_2021": 0.65,
    "wenger_2020": 0.8,
    "kull_2019": 0.95,
    "kull_2019_uci": 0.9,
}


def figures(paper):
    return [figure for table in reproduction.tables_of(paper) for figure in table.figures]


@pytest.mark.parametrize("paper", reproduction.PAPERS)
def test_the_share_of_figures_within_their_tolerance_does_not_fall(paper):
    within = [figure.is_within for figure in figures(paper)]
    assert np.mean(within) >= SHARES[paper]


def test_hundreds_of_published_figures_stand_beside_ours():
    assert sum(len(figures(paper)) for paper in reproduction.PAPERS) >= 300


def test_the_page_is_made_of_the_committed_results():
    assert reproduction.PAGE.read_text(encoding="utf-8") == reproduction.page()


def test_each_table_states_its_tolerance_before_its_figures():
    for paper in reproduction.PAPERS:
        for table in reproduction.tables_of(paper):
            shown = reproduction.section(table)
            assert 0 < shown.index("Tolerance: ") < shown.index("| published / ours")


def test_a_figure_outside_is_listed_with_its_reason_or_as_unexplained():
    far = reproduction.rounded("a", "b", 0.12, 0.2, 2)
    explained = {("a", "*"): "Other rows."}
    assert "- Other rows. a, b (off" in reproduction.section(
        reproduction.Table("T", "none", [far], explained)
    )
    assert "- Unexplained. a, b (off" in reproduction.section(
        reproduction.Table("T", "none", [far])
    )


def test_print_precision_is_half_a_unit_of_the_last_digit():
    assert reproduction.rounded("a", "b", 0.12, 0.1249, 2).is_within
    assert not reproduction.rounded("a", "b", 0.12, 0.1251, 2).is_within


def test_draws_allow_two_standard_errors_of_the_difference():
    figure = reproduction.drawn("a", "b", 0.5, [0.0, 2.0], 1, n_published=2)
    assert figure.ours == 1.0
    assert figure.tolerance == pytest.approx(2 * np.sqrt(2) + 0.05)


@pytest.fixture
def data(real_data):
    """The folder, where it is at hand."""
    real_data("kitti_randomforest_pycalib")
    return reproduction.data_folder()


@pytest.mark.slow
@pytest.mark.parametrize("paper", reproduction.PAPERS)
def test_a_short_run_shows_figures_and_keeps_nothing(paper, data, capsys):
    before = sorted(os.walk(reproduction.RESULTS))
    reproduction.run(importlib.import_module(paper), ["--quick", "--data", str(data)])
    assert "| published / ours" in capsys.readouterr().out
    assert sorted(os.walk(reproduction.RESULTS)) == before


SPREAD = {"adaboost": 0.02, "xgboost": 0.005, "randomforest": 0.01}  # over random splits


def mean_error(file, name):
    found = wenger_2020.over_splits(file["probs"], file["labels"], [name])
    return np.mean(found[name]["error"])


@pytest.mark.parametrize("name", ["Isotonic", "Temp."])
@pytest.mark.parametrize("model", SPREAD)
def test_isotonic_and_temperature_reach_the_errors_of_wenger(model, name, real_data):
    case = f"mnist_{model}_pycalib"
    published = dict(zip(wenger_2020.COLUMNS, wenger_2020.ERRORS[case], strict=True))
    assert mean_error(real_data(case), name) == pytest.approx(published[name], abs=SPREAD[model])


def test_the_temperature_of_log_probabilities_is_another_method(real_data):
    error = mean_error(real_data("mnist_adaboost_pycalib"), "Temp., log p")
    assert error == pytest.approx(0.133, abs=0.01)
