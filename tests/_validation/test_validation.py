"""The boundary: every kind of input that is accepted, and the message for every kind that is
not."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import (
    check_count,
    check_option,
    check_predictions,
    check_same_length,
    check_scores,
    check_weight,
    encode_labels,
    look_like_proba,
)

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])


def test_float32_and_float64_are_taken_without_a_copy():
    for dtype in (np.float32, np.float64):
        array = P.astype(dtype)
        assert np.shares_memory(check_scores(array), array)


def test_float16_becomes_float32_and_its_rounding_is_tolerated(rng):
    half = rng.dirichlet(np.ones(50), 200).astype(np.float16)
    assert np.abs(half.astype(np.float64).sum(1) - 1).max() > 1e-4
    assert check_scores(half).dtype == np.float32


def test_lists_and_integers_give_float64():
    assert check_scores(P.tolist()).dtype == np.float64
    assert check_scores([[1, 0], [0, 1]]).dtype == np.float64


def test_a_flat_array_is_the_probability_of_class_one():
    np.testing.assert_array_equal(check_scores([0.25, 1.0]), [[0.75, 0.25], [0.0, 1.0]])


def test_a_flat_array_of_logits_is_the_log_odds_of_class_one():
    np.testing.assert_array_equal(
        check_scores([2.0, -30.0], inputs="logits"), [[0, 2.0], [0, -30.0]]
    )


def test_read_only_and_strided_arrays_are_taken():
    wide = np.repeat(P, 2, axis=1)[:, ::2]
    wide.flags.writeable = False
    np.testing.assert_array_equal(check_scores(wide), P)


def test_a_memory_map_stays_a_map(tmp_path):
    mapped = np.memmap(tmp_path / "p.bin", dtype=np.float64, mode="w+", shape=P.shape)
    mapped[:] = P
    assert np.shares_memory(check_scores(mapped), mapped)


def test_pandas_frames_and_series_are_taken():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(P, columns=list("abc"))
    proba, y, _, _ = check_predictions(pandas.Series(["a", "c"]), frame, classes=list("abc"))
    np.testing.assert_array_equal(proba, P)
    assert y.tolist() == [0, 2]


def test_polars_frames_and_series_are_taken():
    polars = pytest.importorskip("polars")
    proba, y, _, _ = check_predictions(
        polars.Series(["a", "c"]), polars.DataFrame(P), classes=list("abc")
    )
    np.testing.assert_array_equal(proba, P)
    assert y.tolist() == [0, 2]


def test_torch_tensors_are_taken_also_with_gradients_and_in_half_precision():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(P, requires_grad=True)
    np.testing.assert_array_equal(check_scores(tensor), P)
    assert check_scores(tensor.detach().to(torch.bfloat16), inputs="logits").dtype == np.float32
    assert encode_labels(torch.tensor([2, 0]), 3)[0].tolist() == [2, 0]


def test_minus_infinity_is_a_legal_logit():
    logits = np.array([[0.0, -np.inf]])
    np.testing.assert_array_equal(check_scores(logits, inputs="logits"), logits)


@pytest.mark.parametrize(
    ("scores", "inputs", "message"),
    [
        ([[0.5, np.nan]], "proba", r"Row 0, column 1 .* is nan, but .* Remove or impute"),
        (
            [[0.5, 0.5], [1.2, -0.2]],
            "proba",
            r"Row 1, column 0 .* is 1.2, outside \[0, 1\]. Pass inputs='logits'",
        ),
        ([[1.0 + 1e-4, -1e-4]], "proba", r"outside \[0, 1\]"),
        (
            [[0.5, 0.5], [0.9, 0.9]],
            "proba",
            r"Row 1 of the probabilities sums to 1.8 instead of 1. Pass p / p.sum.* for counts or "
            r"shares, or inputs='logits' for raw scores",
        ),
        (
            [[3.1, -2.0, 0.4]],
            "proba",
            r"Row 0, column 0 .* is 3.1, .*Pass inputs='logits' for raw scores",
        ),
        ([1.5, 0.2], "proba", r"Row 0, column 0 .* is 1.5"),
        (
            [[0.0, np.inf]],
            "logits",
            r"Row 0 of the logits .* NaN, \+inf, values above 1e\+30 and rows with only -inf",
        ),
        ([[0.0, 1.0], [np.nan, 1.0]], "logits", r"Row 1 of the logits"),
        ([[-np.inf, -np.inf]], "logits", r"Row 0 of the logits"),
        (np.zeros((0, 3)), "proba", r"Scores are empty"),
        (
            [[1.0], [1.0]],
            "proba",
            r"one column per class is needed. For a binary problem, pass .* scores\[:, 0\]",
        ),
        (np.ones((2, 2, 2)), "proba", r"got shape \(2, 2, 2\)"),
        (0.5, "proba", r"got shape \(\)"),
        (P, "probs", r"inputs must be 'proba', 'logits' or 'log_proba', got 'probs'"),
    ],
)
def test_bad_scores_are_named_with_the_remedy(scores, inputs, message):
    with pytest.raises(ValueError, match=message):
        check_scores(scores, inputs=inputs)


def test_text_is_no_score():
    with pytest.raises(TypeError, match="Scores must be numbers, but row 0, column 0 is 'a'"):
        check_scores([["a", "b"]])
    with pytest.raises(TypeError, match=r"row 1, column 0 is '0,5'. Pass only the columns of"):
        check_scores([["0.5", "0.5"], ["0,5", "0,5"]])


def test_the_tolerance_of_row_sums_follows_the_dtype():
    off = np.array([[0.5, 0.5005]])
    with pytest.raises(ValueError, match=r"sums to 1.0005"):
        check_scores(off)
    assert check_scores(off.astype(np.float32)).dtype == np.float32


def test_class_wise_claims_need_not_sum_to_one_but_stay_in_the_unit_interval():
    assert check_scores([[0.9, 0.9]], sum_to_one=False).tolist() == [[0.9, 0.9]]
    with pytest.raises(ValueError, match="outside"):
        check_scores([[0.9, 1.9]], sum_to_one=False)


def test_rounded_rows_can_be_renormalized():
    np.testing.assert_allclose(check_scores([[0.3, 0.3]], renormalize=True), [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"Row 0 .* cannot be renormalized"):
        check_scores([[0.0, 0.0]], renormalize=True)


def test_missing_weights_are_ones_without_memory():
    weight = check_weight(None, 10**9)
    assert weight.shape == (10**9,)
    assert weight.strides == (0,)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0], r"row 1 is -1.0, but weights must be finite and not negative"),
        ([1.0, np.nan], r"row 1 is nan"),
        ([0.0, 0.0], r"All sample weights are zero"),
        ([1.0], r"must have shape \(2,\)"),
        ([[1.0], [1.0]], r"must have shape \(2,\), got shape \(2, 1\). Pass np.ravel"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        check_weight(weight, 2)


def test_lengths_that_differ_are_named():
    with pytest.raises(ValueError, match="labels have 3 rows, but the scores have 2 rows"):
        check_predictions([0, 1, 2], P)
    check_same_length(a=P, b=P)


def test_counts_and_options_say_what_must_hold():
    with pytest.raises(ValueError, match="n_bins must be an integer of at least 1, got 0"):
        check_count(0, "n_bins")
    with pytest.raises(ValueError, match=r"got 2\.5"):
        check_count(2.5, "n_bins")
    with pytest.raises(ValueError, match="strategy must be one of 'a', 'b', got 'c'"):
        check_option("c", "strategy", ("a", "b"))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([0.2, 0.8], [0.5, 0.5], True),
        ([0.2, 0.8], [-3.0, 4.0], False),
        ([-3.0, 4.0], [0.5, 0.5], False),
        ([0.2, 0.2], [0.5, 0.5], False),
    ],
)
def test_logits_look_like_probabilities_if_every_row_does(first, second, expected):
    assert look_like_proba(np.array([first, second])) is expected
