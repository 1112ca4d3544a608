"""Samples of multilabel data."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant._data.multilabel import MultilabelSample, is_multilabel
from calibrant._data.read import as_sample

Y = np.array([[1, 1], [0, 0], [0, 1]])
P = np.array([[0.9, 0.8], [0.1, 0.2], [0.4, 0.7]])


def test_tables_of_zeros_and_ones_are_multilabel_data_unless_they_are_one_hot():
    assert is_multilabel(Y, P)
    assert is_multilabel(Y.astype(bool), P.tolist())
    assert not is_multilabel(np.eye(2)[[0, 1, 0]], P)
    assert not is_multilabel(Y + 1, P)
    assert not is_multilabel(Y[:, 0], P)
    assert not is_multilabel(Y, P[:, 0])


def test_a_sample_counts_the_rows_of_each_label_and_keeps_its_kind():
    sample, names = as_sample(P, Y, [1.0, 2.0, 3.0], classes=["a", "b"], multilabel=True)
    assert isinstance(sample, MultilabelSample)
    assert sample.class_weights.tolist() == [1.0, 4.0]
    assert (sample.total, sample.n_rows, names.tolist()) == (6.0, 3, ["a", "b"])
    assert isinstance(sample.subset([0, 2]), MultilabelSample)
    assert sample.summary_rows() is None


def test_other_operations_reject_several_labels_per_row():
    with pytest.raises(ValueError, match="multilabel"):
        as_sample(P, Y)
    with pytest.raises(ValueError, match="probabilities"):
        as_sample(P, Y, inputs="logits", multilabel=True)
