from __future__ import annotations

import numpy as np
import pytest

from calibrant._optim.solution import Outcome, Solution


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_convergence_is_convergence(outcome):
    assert Solution(np.zeros(1), 0.0, 1, outcome).converged is (outcome is Outcome.CONVERGED)


def test_every_cause_is_another_and_leaves_the_remedy_to_the_estimator():
    assert len({outcome.value for outcome in Outcome}) == len(Outcome)
    for outcome in Outcome:
        assert not any(word in outcome.value for word in ("use ", "check ", "add ", "lam"))
