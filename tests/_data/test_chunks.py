from __future__ import annotations

import numpy as np
import pytest

from calibrant import TemperatureScaling, evaluate
from parts import Slices


@pytest.fixture
def rows(rng):
    logits = 3 * rng.normal(size=(500, 3))
    return logits, (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)


def test_iteration_gives_the_scores_of_each_chunk(rows):
    chunks = list(Slices(*rows, size=200))
    assert [len(chunk) for chunk in chunks] == [200, 200, 100]
    np.testing.assert_array_equal(np.concatenate(chunks), rows[0])


def test_predictions_of_chunked_scores_are_chunked_and_can_be_evaluated(rows):
    model = TemperatureScaling(inputs="logits").fit(*rows)
    expected = model.predict_proba(rows[0])
    predicted = model.predict_proba(Slices(*rows, size=200))
    np.testing.assert_array_equal(np.concatenate(list(predicted)), expected)
    np.testing.assert_array_equal(
        np.concatenate(list(model.predict(Slices(*rows)))), model.predict(rows[0])
    )
    assert evaluate(None, predicted).log_loss == pytest.approx(
        evaluate(rows[1], expected).log_loss, rel=1e-12
    )


def test_chunked_scores_do_not_become_an_array_by_themselves(rows):
    with pytest.raises(TypeError, match="read in chunks"):
        np.asarray(Slices(*rows))
