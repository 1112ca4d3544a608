"""The boundary: every kind of input that is accepted, and the message for every kind that is
not."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._validation import (
    check_classes,
    check_count,
    check_option,
    check_predictions,
    check_same_length,
    check_scores,
    check_weight,
    encode_labels,
    printable,
    printable_lines,
    shortened,
    unknown_name,
)
from calibrant.exceptions import DataWarning

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
        ([[0.5, np.nan]], "proba", r"row 0, column 1 .* is nan: remove or impute"),
        (
            [[0.5, 0.5], [1.2, -0.2]],
            "proba",
            r"row 1, column 0 .* is 1.2, outside \[0, 1\]: pass inputs='logits'",
        ),
        ([[1.0 + 1e-4, -1e-4]], "proba", r"outside \[0, 1\]"),
        (
            [[0.5, 0.5], [0.9, 0.9]],
            "proba",
            r"row 1 of the probabilities sums to 1.8 instead of 1: if .* divide by .*; if not",
        ),
        (
            [[3.1, -2.0, 0.4]],
            "proba",
            r"row 0, column 0 .* is 3.1, .*pass inputs='logits' for raw scores",
        ),
        ([1.5, 0.2], "proba", r"row 0, column 0 .* is 1.5"),
        ([[0.0, np.inf]], "logits", r"row 0 of the logits .* NaN, \+inf and rows of only -inf"),
        ([[0.0, 1.0], [np.nan, 1.0]], "logits", r"row 1 of the logits"),
        ([[-np.inf, -np.inf]], "logits", r"row 0 of the logits"),
        (np.zeros((0, 3)), "proba", r"scores are empty"),
        (
            [[1.0], [1.0]],
            "proba",
            r"one column per class is needed; for a binary problem pass scores\[:, 0\]",
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
    with pytest.raises(TypeError, match="scores must be numbers"):
        check_scores([["a", "b"]])


def test_the_tolerance_of_row_sums_follows_the_dtype():
    off = np.array([[0.5, 0.5005]])
    with pytest.raises(ValueError, match=r"sums to 1.0005"):
        check_scores(off)
    assert check_scores(off.astype(np.float32)).dtype == np.float32


def test_class_wise_claims_need_not_sum_to_one_but_stay_in_the_unit_interval():
    assert check_scores([[0.9, 0.9]], sum_to_one=False).tolist() == [[0.9, 0.9]]
    with pytest.raises(ValueError, match="outside"):
        check_scores([[0.9, 1.9]], sum_to_one=False)


def test_rounded_rows_can_be_renormalised():
    np.testing.assert_allclose(check_scores([[0.3, 0.3]], renormalize=True), [[0.5, 0.5]])
    with pytest.raises(ValueError, match=r"row 0 .* cannot be renormalised"):
        check_scores([[0.0, 0.0]], renormalize=True)


def test_integer_and_boolean_labels_are_column_indices():
    assert encode_labels([0, 2], 3)[0].tolist() == [0, 2]
    assert encode_labels([True, False], 2)[0].tolist() == [1, 0]


def test_integer_labels_of_the_native_type_are_not_copied():
    y = np.array([0, 1, 2])
    assert np.shares_memory(encode_labels(y, 3)[0], y)


def test_text_labels_are_matched_by_classes_in_the_order_of_the_columns():
    codes, classes = encode_labels(["dog", "cat"], 3, ["dog", "owl", "cat"])
    assert codes.tolist() == [0, 2]
    assert classes.tolist() == ["dog", "owl", "cat"]


def test_text_labels_without_classes_are_matched_in_sorted_order():
    with pytest.warns(DataWarning, match="taken to be the classes 'cat', 'dog', 'owl', in sorted"):
        codes, classes = encode_labels(["owl", "cat", "dog"], 3)
    assert codes.tolist() == [2, 0, 1]
    assert classes.tolist() == ["cat", "dog", "owl"]


def test_integer_labels_can_be_given_classes():
    assert encode_labels([10, 30], 3, [30, 20, 10])[0].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("labels", "n_classes", "classes", "message"),
    [
        ([0, 3], 3, None, r"label 3 in row 1 is out of range: .* 0\.\.2; .*classes="),
        ([0, -1], 3, None, r"label -1 in row 1"),
        (["cat", "dog"], 3, None, r"2 different values \('cat', 'dog'\) for 3 columns: .*classes="),
        (
            ["cat", "fox"],
            2,
            ["cat", "dog"],
            r"label 'fox' in row 1 is not among the classes 'cat', 'dog'",
        ),
        ([], 2, None, r"labels are empty"),
        ([[0, 1]], 2, None, r"got shape \(1, 2\); for these one-hot rows pass np.argmax"),
        ([0, 1], 3, ["a", "b"], r"name each of the 3 columns once, got 2"),
        ([0, 1], 2, ["a", "a"], r"must be different from each other"),
    ],
)
def test_bad_labels_are_named_with_the_remedy(labels, n_classes, classes, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(labels, n_classes, classes)


def test_labels_of_another_type_than_the_classes_are_an_error():
    with pytest.raises((TypeError, ValueError), match=r"not among the classes|different types"):
        encode_labels([0, 1], 2, ["a", "b"])


def test_missing_weights_are_ones_without_memory():
    weight = check_weight(None, 10**9)
    assert weight.shape == (10**9,)
    assert weight.strides == (0,)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0, -1.0], r"row 1 is -1.0: weights must be finite and not negative"),
        ([1.0, np.nan], r"row 1 is nan"),
        ([0.0, 0.0], r"all sample weights are zero"),
        ([1.0], r"must have shape \(2,\)"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        check_weight(weight, 2)


def test_lengths_that_differ_are_named():
    with pytest.raises(ValueError, match="y has 3 rows, scores has 2 rows"):
        check_predictions([0, 1, 2], P)
    check_same_length(a=P, b=P)


def test_counts_and_options_say_what_must_hold():
    with pytest.raises(ValueError, match="n_bins must be a whole number of at least 1, got 0"):
        check_count(0, "n_bins")
    with pytest.raises(ValueError, match=r"got 2\.5"):
        check_count(2.5, "n_bins")
    with pytest.raises(ValueError, match="strategy must be one of 'a', 'b'; got 'c'"):
        check_option("c", "strategy", ("a", "b"))


def test_classes_default_to_the_columns():
    assert check_classes(None, 3).tolist() == [0, 1, 2]


def test_long_lists_are_shortened_and_counted():
    assert shortened(["a", "b"]) == "a, b"
    assert shortened(np.arange(2000), 2) == "0, 1 and 1,998 more"
    assert shortened(["a", "b", "c"], 2, show=repr) == "'a', 'b' and 1 more"


def test_an_unknown_name_suggests_the_nearest_and_lists_all():
    said = unknown_name("method", "temprature", ["identity", "temperature"], "a calibrator")
    expected = "did you mean 'temperature'? valid are identity, temperature, or a calibrator"
    assert said == f"unknown method 'temprature'; {expected}"
    assert unknown_name("method", "magic", ["identity"]) == (
        "unknown method 'magic'; valid are identity"
    )


# Text of others


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2Jcleared", "\\x1b[2Jcleared"),
        ("a\nb\tc\rd", "a\\nb\\tc\\rd"),
        ("\x9b31m", "\\x9b31m"),
        ("evil\u202egpj.exe", "evil\\u202egpj.exe"),
        ("half \udc80", "half \\udc80"),
        ("two\u2028lines", "two\\u2028lines"),
        ("straße 東京", "straße 東京"),
        ("👩\u200d🔬", "👩\u200d🔬"),
    ],
)
def test_what_is_unseen_is_written_out(text, shown):
    assert printable(text) == shown


def test_lines_stay_lines():
    assert printable_lines("one\x07\ntwo") == "one\\x07\ntwo"
