"""A notion of a user, the set of classes of docs/howto/custom-type.md, in all functions."""

from __future__ import annotations

import ast
import pickle
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import calibrant
from calibrant import (
    HistogramBinning,
    IsotonicCalibration,
    MulticlassToBinary,
    inference,
    metrics,
    save,
)
from calibrant.binning import bin_table
from calibrant.datasets import noisy_simplex
from calibrant.exceptions import DataWarning
from calibrant.notions import ClaimBlock, Notion, as_notion, claims_of

ROOT = Path(__file__).resolve().parents[2]


class Even(Notion):
    """A notion with only the three required members."""

    name = "even"

    def n_quantities(self, n_classes):
        return 1

    def select(self, proba, y=None):
        hit = [] if y is None else np.flatnonzero(y % 2 == 0)
        return ClaimBlock(proba[:, ::2].sum(axis=1, keepdims=True), None, np.asarray(hit, int))


@dataclass(frozen=True)
class Groups(Notion):
    """One claim per group of classes."""

    groups: tuple[tuple[int, ...], ...]
    name = "groups"

    def n_quantities(self, n_classes):
        return len(self.groups)

    def select(self, proba, y=None):
        score = np.stack([proba[:, list(g)].sum(axis=1) for g in self.groups], axis=1)
        hit = (
            np.zeros(score.shape)
            if y is None
            else np.stack([np.isin(y, g) for g in self.groups], axis=1)
        )
        return ClaimBlock(np.asarray(score, float), None, np.flatnonzero(hit))

    def members(self, quantity, n_classes):
        return self.groups[quantity]


ANY = Groups(((2, 3),))
SCORES = [
    metrics.expected_calibration_error,
    metrics.ks_error,
    metrics.kde_calibration_error,
    metrics.smooth_calibration_error,
    metrics.kernel_calibration_error,
    metrics.brier_score,
]


@pytest.fixture(scope="module")
def data():
    return noisy_simplex(3000, 4, noise=0.5, rng=0)


@pytest.fixture(scope="module")
def binary(data):
    """The same claim as a binary problem: outcome and score."""
    return np.isin(data.labels, [2, 3]).astype(int), data.proba[:, 2] + data.proba[:, 3]


# Metrics and inference.


@pytest.mark.parametrize("metric", SCORES, ids=lambda f: f.__name__)
def test_a_metric_of_a_set_is_that_of_the_binary_problem(metric, data, binary):
    rows = slice(0, 500)
    outcome, score = binary
    expected = metric(outcome[rows], score[rows], notion="class-1")
    assert metric(data.labels[rows], data.proba[rows], notion=ANY) == pytest.approx(expected)


def test_two_claims_are_averaged(data):
    parts = [
        metrics.ks_error(data.labels, data.proba, notion=Groups((g,))) for g in ((0, 1), (2, 3))
    ]
    both = Groups(((0, 1), (2, 3)))
    assert metrics.ks_error(data.labels, data.proba, notion=both) == pytest.approx(np.mean(parts))


def test_intervals_tests_and_curves_take_it(data, binary):
    y, p = data.labels[:400], data.proba[:400]
    outcome, score = (part[:400] for part in binary)
    assert inference.debiased_interval(y, p, notion=ANY).estimate == pytest.approx(
        inference.debiased_interval(outcome, score, notion="class-1").estimate
    )
    assert inference.validity_curve(y, p, notion=ANY)(0.05) == pytest.approx(
        inference.validity_curve(outcome, score, notion="class-1")(0.05)
    )
    test = inference.kernel_test(y, p, notion=ANY, n_resamples=19, rng=0)
    assert "groups" in test.test
    assert inference.score_decomposition(y, p, notion=ANY, rng=0).notion == "groups"


# Calibration.


def test_claims_are_calibrated_as_the_binary_problem_is(data, binary):
    outcome, score = binary
    lifted = MulticlassToBinary(IsotonicCalibration(), notion=ANY).fit(data.proba, data.labels)
    alone = IsotonicCalibration().fit(score, outcome)
    np.testing.assert_allclose(
        lifted.predict_claims(data.proba)[:, 0], alone.predict_proba(score)[:, 1], atol=1e-12
    )


def test_members_of_the_set_add_up_to_the_claim_in_their_proportions(data):
    model = MulticlassToBinary(HistogramBinning(), notion=ANY).fit(data.proba, data.labels)
    rows, claims = model.predict_proba(data.proba), model.predict_claims(data.proba)[:, 0]
    np.testing.assert_allclose(rows[:, 2:].sum(axis=1), claims)
    np.testing.assert_allclose(rows.sum(axis=1), 1.0)
    np.testing.assert_allclose(rows[:, 2] * data.proba[:, 3], rows[:, 3] * data.proba[:, 2])
    np.testing.assert_allclose(rows[:, 0] * data.proba[:, 1], rows[:, 1] * data.proba[:, 0])


def test_disjoint_groups_are_each_scaled(data):
    notion = Groups(((0,), (1, 2)))
    model = MulticlassToBinary(HistogramBinning(), notion=notion).fit(data.proba, data.labels)
    rows, claims = model.predict_proba(data.proba), model.predict_claims(data.proba)
    fits = claims.sum(axis=1) <= 1
    np.testing.assert_allclose(rows[fits, 0], claims[fits, 0])
    np.testing.assert_allclose(rows[fits, 1] + rows[fits, 2], claims[fits, 1])


@pytest.mark.parametrize("notion", [Even(), Groups(((0, 1), (1, 2)))], ids=["unsaid", "overlap"])
def test_rows_stay_as_they_are_where_a_claim_has_no_place_in_them(notion, data):
    with pytest.warns(DataWarning, match="returns the scores unchanged, because the events of"):
        model = MulticlassToBinary(HistogramBinning(), notion=notion).fit(data.proba, data.labels)
    np.testing.assert_array_equal(model.predict_proba(data.proba), data.proba)
    assert model.predict_claims(data.proba).shape == (3000, notion.n_quantities(4))


def test_the_top_class_is_that_of_the_scores(data):
    model = MulticlassToBinary(HistogramBinning(), notion=ANY).fit(data.proba, data.labels)
    labels, probability = model.predict_top(data.proba)
    np.testing.assert_array_equal(labels, data.proba.argmax(axis=1))
    np.testing.assert_array_equal(
        probability, model.predict_proba(data.proba)[np.arange(3000), labels]
    )


def test_a_calibrator_of_it_clones_and_pickles(data):
    model = MulticlassToBinary(HistogramBinning(), notion=ANY).fit(data.proba, data.labels)
    again = clone(model).fit(data.proba, data.labels)
    copied = pickle.loads(pickle.dumps(model))
    for other in (again, copied):
        np.testing.assert_array_equal(
            other.predict_claims(data.proba), model.predict_claims(data.proba)
        )


def test_a_file_rejects_it_with_the_reason(data, tmp_path):
    model = MulticlassToBinary(HistogramBinning(), notion=ANY).fit(data.proba, data.labels)
    with pytest.raises(TypeError, match="the notion 'groups', which has no name in calibrant"):
        save(model, tmp_path / "model.json")


# Texts.


@pytest.mark.parametrize(
    ("notion", "message"),
    [
        (ANY, "When the reported probability of one of 'c', 'd' is"),
        (Groups(((1,),)), "When the reported probability of 'b' is"),
        (Even(), "When the reported probability of 'even' is"),
    ],
)
@pytest.mark.filterwarnings("ignore:predict_proba returns the scores unchanged")
def test_a_guarantee_names_the_claim(notion, message, data):
    names = np.array(["a", "b", "c", "d"])
    model = MulticlassToBinary(HistogramBinning(), notion=notion, classes=names)
    text = str(model.fit(data.proba, names[data.labels]).guarantee())
    assert message in text
    assert "top class" not in text


def test_claims_of_another_notion_have_a_caption():
    assert ANY.caption(0, "abcd") == (
        "The figure compares the predicted probability and the observed frequency of one of c, d."
    )
    assert Even().title == "even"


def test_several_claims_without_names_are_numbered():
    class Two(Even):
        def n_quantities(self, n_classes):
            return 2

    assert Two().claim_names("ab") == ("even (1)", "even (2)")
    assert Two().claim_text(1, "ab") == "'even' (2)"


def test_claims_split_by_label_are_called_by_their_class():
    class Split(Even):
        splits_by_label = True

    assert Split().claim_names(["x", "y"]) == ("class x", "class y")
    assert Split().column_of(1, 2) == 1


def test_a_notion_that_splits_must_give_labels(data):
    class Split(Even):
        splits_by_label = True

    claims, _ = claims_of(Split(), data.labels, data.proba)
    with pytest.raises(TypeError, match="must return a label with every score"):
        bin_table(claims)


def test_a_notion_without_select_cannot_be_made():
    class Half(Notion):
        name = "half"

        def n_quantities(self, n_classes):
            return 1

    with pytest.raises(TypeError, match="select"):
        Half()


def test_two_notions_of_ones_own_are_not_taken_for_each_other():
    assert Groups(((0, 1),)) != ANY
    assert Even() != Even()
    assert as_notion(ANY) is ANY


# The page of the manual, and the rule that no module names a type of notion.


def test_the_how_to_page_runs(capsys):
    plt = pytest.importorskip("matplotlib.pyplot")
    text = (ROOT / "docs" / "howto" / "custom-type.md").read_text(encoding="utf-8")
    space: dict[str, object] = {"__name__": "__main__"}
    for code in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(code, "custom-type.md", "exec", dont_inherit=True), space)
    plt.close("all")
    assert "When the reported probability of one of class 2, class 3 is" in capsys.readouterr().out


def _kinds_known(tree):
    """Types of notions that a module refers to."""
    kinds = {name for name in calibrant.notions.__all__ if name.endswith("Notion")} - {"Notion"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id in kinds:
            yield node.id
        if isinstance(node, ast.Attribute) and node.attr in kinds:
            yield node.attr
        if isinstance(node, ast.alias) and node.name in kinds:
            yield node.name


def test_no_room_but_that_of_notions_knows_their_kinds():
    home = Path(calibrant.__file__).parent
    known = {
        path.relative_to(home).as_posix(): sorted(set(result))
        for path in home.rglob("*.py")
        if path.parent.name != "notions"
        and (result := list(_kinds_known(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert known == {}


def test_displays_and_report_take_it(data):
    pytest.importorskip("matplotlib")
    from calibrant.plots import (
        ClassErrorDisplay,
        CumulativeDisplay,
        ReliabilityDisplay,
        ValidityDisplay,
    )
    from calibrant.report import summarize

    names = ["a", "b", "c", "d"]
    y, p = np.array(names)[data.labels], data.proba
    reliability = ReliabilityDisplay.from_predictions(y, p, notion=ANY, classes=names).plot()
    assert reliability.names == ("one of c, d",)
    assert reliability.axes_[1].get_xlabel() == "predicted probability"
    cumulative = CumulativeDisplay.from_predictions(y, p, notion=ANY, classes=names).plot()
    assert cumulative.name == "one of c, d"
    errors = ClassErrorDisplay.from_predictions(y, p, notion=ANY, classes=names).plot()
    assert errors.errors["model"][0] == pytest.approx(reliability.error)
    ValidityDisplay.from_predictions(y, p, notion=ANY, classes=names).plot()
    model = MulticlassToBinary(HistogramBinning(), notion=ANY, classes=names)
    report = summarize(y[:400], p[:400], calibrator=model, classes=names, n_resamples=20)
    assert " of groups calibration." in report.map.text
