"""The public path `calibrant.evaluation`."""

from __future__ import annotations

import calibrant
from calibrant import evaluation, metrics


def test_the_public_path_leads_to_the_same_objects():
    assert evaluation.evaluate is calibrant.evaluate
    assert evaluation.Evaluation is calibrant.Evaluation
    assert evaluation.MetricAccumulator is metrics.MetricAccumulator
