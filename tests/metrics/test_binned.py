"""The binned error: hand-computed cases, theorems, invalid input."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import notion_names
from calibrant import datasets
from calibrant.binning import Bins
from calibrant.metrics import accuracy, calibration_curve, confidence_on_errors, doubt_on_correct
from calibrant.metrics import expected_calibration_error as ece

TWO = np.array([[0.8, 0.2], [0.8, 0.2], [0.8, 0.2], [0.4, 0.6]])


def test_one_bin_by_hand():
    # Three rows predict class 0 with 0.8, two correctly; one predicts class 1 with 0.6, correctly.
    assert ece([0, 0, 1, 1], TWO) == pytest.approx(
        3 / 4 * abs(2 / 3 - 0.8) + 1 / 4 * 0.4, abs=1e-15
    )


def test_norms_by_hand():
    gaps, shares = np.array([abs(2 / 3 - 0.8), 0.4]), np.array([0.75, 0.25])
    assert ece([0, 0, 1, 1], TWO, norm=2) == pytest.approx((shares @ gaps**2) ** 0.5, abs=1e-15)
    assert ece([0, 0, 1, 1], TWO, norm=np.inf) == pytest.approx(0.4, abs=1e-15)


def test_a_confidence_of_exactly_one_counts_like_any_other():
    assert ece([0, 1], [[1.0, 0.0], [1.0, 0.0]]) == 0.5


def test_a_class_score_of_exactly_zero_counts_like_any_other():
    assert ece([1, 0], [[1.0, 0.0], [1.0, 0.0]], notion="class-1") == 0.5


def test_a_score_on_an_edge_belongs_to_the_bin_above():
    # With 5 bins, 0.6 is the lower edge of bin 3, and 0.59 is in bin 2.
    table = calibration_curve([0, 0], [[0.6, 0.4], [0.59, 0.41]], n_bins=5)
    assert table.weight.tolist() == [[0, 0, 1, 1, 0]]


def test_ties_at_the_top_go_to_the_lowest_column():
    tied = [[0.5, 0.5], [0.5, 0.5]]
    assert ece([0, 0], tied) == 0.5
    assert ece([1, 1], tied) == 0.5
    assert ece([0, 1], tied) == 0.0


def test_one_row():
    assert ece([1], [[0.3, 0.7]]) == pytest.approx(0.3)
    assert ece([0], [[0.3, 0.7]], notion="top-label") == pytest.approx(0.7)
    # One row in a bin does not determine a variance.
    assert np.isnan(ece([0], [[0.3, 0.7]], norm=2, debias=True))
    # Such a bin is not counted if there are others.
    alone = ece([0, 0, 1], [0.8, 0.8, 0.1], notion="class-1", norm=2, debias=True)
    assert alone == pytest.approx(0.8)


def test_a_class_never_predicted_and_a_class_never_true():
    proba = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]])
    assert ece([0, 0], proba, notion="top-label") == pytest.approx(0.35)
    by_class = [np.mean([0.3, 0.4]), np.mean([0.2, 0.3]), 0.1]
    assert ece([0, 0], proba, notion="class-wise", n_bins=1) == pytest.approx(np.mean(by_class))


def test_class_wise_is_the_mean_over_classes_and_sum_adds_them(rng):
    proba, y = rng.dirichlet(np.ones(4), 200), rng.integers(4, size=200)
    each = [ece(y, proba, notion=f"class-{k}") for k in range(4)]
    assert ece(y, proba, notion="class-wise") == pytest.approx(np.mean(each), abs=1e-14)
    assert ece(y, proba, notion="class-wise", aggregate="sum") == pytest.approx(
        np.sum(each), abs=1e-14
    )


def test_ranks_weigh_the_same(rng):
    proba, y = rng.dirichlet(np.ones(4), 200), rng.integers(4, size=200)
    each = [ece(y, proba, notion=f"rank-{r}", norm=2) ** 2 for r in (1, 2, 3)]
    assert ece(y, proba, notion="top-3-confidence", norm=2) == pytest.approx(
        np.mean(each) ** 0.5, abs=1e-14
    )


def test_top_label_is_the_mean_over_predicted_classes_weighted_by_rows(rng):
    proba, y = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    predicted = proba.argmax(1)
    total = sum(
        (predicted == k).mean() * ece(y[predicted == k], proba[predicted == k]) for k in range(3)
    )
    assert ece(y, proba, notion="top-label") == pytest.approx(total, abs=1e-14)


def test_aggregate_bin_averages_the_gaps_of_a_bin_before_the_norm():
    # Both rows are in one bin, with gaps 0.4 (correct) and 0.6 (wrong) of different labels.
    proba, y = [[0.6, 0.4], [0.4, 0.6]], [0, 0]
    assert ece(y, proba, notion="top-label", norm=np.inf) == pytest.approx(0.6)
    assert ece(y, proba, notion="top-label", norm=np.inf, aggregate="bin") == pytest.approx(0.5)
    assert ece(y, proba, notion="top-label", norm=2, aggregate="bin") == pytest.approx(0.5)


def test_debiasing_by_hand():
    # Four rows at 0.8, three correct: squared gap 0.05^2 and variance of the mean 0.75 * 0.25 / 3,
    # so the difference is negative.
    assert ece([0, 0, 0, 1], [[0.8, 0.2]] * 4, norm=2, debias=True) == 0.0
    # Four rows at 0.8, none correct: squared gap 0.64 and no variance.
    assert ece([1, 1, 1, 1], [[0.8, 0.2]] * 4, norm=2, debias=True) == pytest.approx(0.8)
    # Four rows at 0.9, two correct: 0.4^2 - 0.25 / 3.
    assert ece([0, 0, 1, 1], [[0.9, 0.1]] * 4, norm=2, debias=True) == pytest.approx(
        (0.16 - 0.25 / 3) ** 0.5
    )


def test_debiasing_floors_each_claim_at_zero():
    # The negative difference of class 0 is floored, so it does not reduce the error of class 1.
    proba = np.column_stack([np.full(4, 0.5), np.full(4, 0.9)])
    one = ece([0, 0, 1, 1], proba, notion="class-1", norm=2, debias=True)
    assert ece([0, 0, 1, 1], proba, notion="class-wise", norm=2, debias=True) == pytest.approx(
        (one**2 / 2) ** 0.5
    )


def test_reported_labels_are_evaluated_with_their_probabilities(rng):
    proba, y = rng.dirichlet(np.ones(4), 100), rng.integers(4, size=100)
    top, label = proba.max(1), proba.argmax(1)
    for notion in ("confidence", "top-label"):
        assert ece(y, top, y_pred=label, notion=notion) == pytest.approx(
            ece(y, proba, notion=notion), abs=1e-14
        )
    ranks = np.argsort(-proba, axis=1)[:, :2]
    scores = np.take_along_axis(proba, ranks, axis=1)
    for notion in ("top-2-confidence", "top-2-label"):
        assert ece(y, scores, y_pred=ranks, notion=notion) == pytest.approx(
            ece(y, proba, notion=notion), abs=1e-14
        )


def test_reported_labels_may_be_text_and_need_not_name_all_classes():
    assert ece(["a", "b"], [0.9, 0.9], y_pred=["a", "a"]) == pytest.approx(0.4)


def test_text_labels_and_columns_in_another_order():
    proba = [[0.9, 0.1], [0.2, 0.8]]
    assert ece(["b", "a"], proba, classes=["b", "a"]) == ece([0, 1], proba)


def test_a_flat_array_is_class_one_of_a_binary_problem():
    assert ece([1, 0], [0.9, 0.2]) == pytest.approx(ece([1, 0], [[0.1, 0.9], [0.8, 0.2]]))


def test_bins_can_be_given(rng):
    proba, y = rng.dirichlet(np.ones(3), 200), rng.integers(3, size=200)
    coarse = ece(y, proba, bins=Bins((np.array([0.5, 1.0]),)))
    low = proba.max(1) <= 0.5
    right = proba.argmax(1) == y
    by_hand = sum(m.mean() * abs(right[m].mean() - proba.max(1)[m].mean()) for m in (low, ~low))
    assert coarse == pytest.approx(by_hand, abs=1e-14)


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "unique"])
@pytest.mark.parametrize("notion", ["confidence", "top-label", "class-wise"])
def test_a_weight_is_a_number_of_copies(notion, strategy, rng):
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(3, size=40)
    copies = rng.integers(0, 3, size=40)
    repeated = np.repeat(np.arange(40), copies)
    options = {"notion": notion, "strategy": strategy, "n_bins": 5}
    weighted = ece(y, proba, sample_weight=copies, **options)
    assert weighted == pytest.approx(ece(y[repeated], proba[repeated], **options), abs=1e-13)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_lower_precision_changes_only_rounding(dtype, rng):
    proba, y = rng.dirichlet(np.ones(5), 500), rng.integers(5, size=500)
    rounded = proba.astype(dtype)
    exact = ece(y, rounded.astype(np.float64) / rounded.astype(np.float64).sum(1, keepdims=True))
    # Renormalizing changes scores by the rounding of a row sum, at most 2e-3 in half precision.
    assert ece(y, rounded) == pytest.approx(exact, abs=2e-3 if dtype == np.float16 else 1e-6)


def test_lists_read_only_arrays_and_memory_maps_give_the_same_number(tmp_path, rng):
    proba, y = rng.dirichlet(np.ones(3), 50), rng.integers(3, size=50)
    mapped = np.memmap(tmp_path / "p", dtype=float, mode="w+", shape=proba.shape)
    mapped[:] = proba
    frozen = proba.copy()
    frozen.flags.writeable = False
    assert (
        len({ece(y, p) for p in (proba, proba.tolist(), frozen, mapped, np.asfortranarray(proba))})
        == 1
    )


def test_example_one_of_gupta_and_ramdas_is_confidence_calibrated_but_not_top_label_calibrated():
    example = datasets.two_label_example(1000)
    assert ece(example.labels, example.proba) == pytest.approx(
        example.errors["confidence-l1"], abs=1e-12
    )
    assert ece(example.labels, example.proba, notion="top-label") == pytest.approx(0.4, abs=1e-12)


simplex_rows = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 30), st.integers(2, 5)), elements=st.integers(0, 6)
).map(lambda a: (a + 0.25) / (a + 0.25).sum(axis=1, keepdims=True))


@st.composite
def predictions(draw):
    proba = draw(simplex_rows)
    return draw(hnp.arrays(np.intp, len(proba), elements=st.integers(0, proba.shape[1] - 1))), proba


@pytest.mark.filterwarnings("ignore:The labels are assumed to be column indices")
@given(predictions(), st.sampled_from([1, 1.5, 2, np.inf]), st.integers(1, 20))
def test_proposition_4_confidence_error_is_at_most_the_top_label_error(data, norm, n_bins):
    y, proba = data
    options = {"norm": norm, "n_bins": n_bins}
    assert ece(y, proba, **options) <= ece(y, proba, notion="top-label", **options) + 1e-12


@pytest.mark.filterwarnings("ignore:The labels are assumed to be column indices")
@given(predictions(), st.integers(1, 20))
def test_wenger_theorem_1_over_and_underconfidence_bound_the_error_and_norms_are_ordered(
    data, n_bins
):
    y, proba = data
    right = accuracy(y, proba)
    balance = abs(confidence_on_errors(y, proba) * (1 - right) - doubt_on_correct(y, proba) * right)
    errors = [ece(y, proba, norm=p, n_bins=n_bins) for p in (1, 1.5, 2, 4, np.inf)]
    assert balance <= errors[0] + 1e-12
    assert all(a <= b + 1e-12 for a, b in pairwise(errors))
    assert errors[-1] <= 1


@settings(max_examples=25)
@given(st.integers(2, 5), st.integers(0, 10**6))
def test_proposition_1_data_calibrated_in_the_canonical_sense_are_calibrated_for_every_notion(
    n_classes, seed
):
    """If labels have exactly the proportions of each distinct vector, all errors are zero."""
    generator = np.random.default_rng(seed)
    counts = generator.integers(0, 4, size=(6, n_classes))
    counts[:, 0] += counts.sum(axis=1) == 0
    total = counts.sum(axis=1)
    proba = np.repeat(counts / total[:, None], total, axis=0)
    y = np.concatenate([np.repeat(np.arange(n_classes), row) for row in counts])
    for notion in notion_names.WITH_PAIRS:
        for strategy in ("uniform", "quantile", "unique"):
            assert ece(y, proba, notion=notion, strategy=strategy, norm=np.inf) <= 1e-12


@pytest.mark.parametrize("family", ["power", "linear"])
@pytest.mark.parametrize("norm", [1, 2])
def test_binary_families_have_the_error_of_their_formula(family, norm):
    data = {"power": datasets.power_family, "linear": datasets.linear_family}[family](
        400_000, 0.4, rng=3
    )
    measured = ece(data.labels, data.proba, notion="class-1", n_bins=50, norm=norm)
    assert measured == pytest.approx(
        data.errors[f"class-1-l{norm}"], abs=0.004
    )  # Monte-Carlo error of 400k rows, 50 bins


def test_the_noisy_simplex_has_the_errors_that_its_formulas_say():
    data = datasets.noisy_simplex(400_000, 5, 0.5, rng=3)
    assert ece(data.labels, data.proba, n_bins=50) == pytest.approx(
        data.errors["confidence-l1"], abs=0.004
    )
    for norm in (1, 2):
        measured = ece(data.labels, data.proba, notion="class-wise", n_bins=50, norm=norm)
        assert measured == pytest.approx(data.errors[f"class-wise-l{norm}"], abs=0.003)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"notion": "top"}, "Unknown notion 'top'. Valid notions are 'confidence'"),
        ({"n_bins": 0}, "n_bins must be an integer of at least 1"),
        ({"norm": 0.5}, "norm must be a number of at least 1, or inf"),
        ({"debias": True}, "debias=True is only defined for norm=2"),
        ({"debias": True, "norm": 2, "aggregate": "bin"}, "debias=True is only defined for norm=2"),
        ({"aggregate": "max"}, "aggregate must be one of 'mean', 'sum', 'bin'"),
        ({"sample_weight": [1, 1, 1, -1]}, "weights must be finite and not negative"),
        (
            {"y_pred": [0, 0, 0, 0]},
            "If y_pred is passed, y_prob must be the probability of each reported label",
        ),
    ],
)
def test_bad_arguments_say_what_must_hold(options, message):
    with pytest.raises(ValueError, match=message):
        ece([0, 0, 1, 1], TWO, **options)


def test_logits_given_to_a_metric_are_told_to_be_turned_into_probabilities():
    with pytest.raises(ValueError, match=r"scipy\.special\.softmax"):
        ece([0, 1], [[2.0, -1.0], [0.5, 3.0]])


def test_reported_labels_do_not_go_with_class_wise_notions():
    with pytest.raises(ValueError, match="y_pred needs the notion 'confidence'"):
        ece([0, 1], [0.5, 0.5], y_pred=[0, 1], notion="class-wise")
    with pytest.raises(ValueError, match=r"in \[0, 1\]"):
        ece([0, 1], [0.5, 1.5], y_pred=[0, 1])
