"""How a report was computed, in sentences; `test_chunks` has those of chunked rows."""

from __future__ import annotations

import calibrant
from calibrant.report import _case, summarize


def test_the_first_sentence_tells_which_rows_were_fitted_and_evaluated(report, data):
    proba, labels = data
    assert report.how[0].startswith(
        "The method temperature was cross-fitted with 5 folds. All figures are for held-out "
        "predictions. Each fold of the 600 rows was predicted by a calibrator that was fitted on "
        "the other folds."
    )
    held_out = summarize(
        labels[300:],
        proba[300:],
        calibrator=calibrant.TemperatureScaling(),
        calibration=(proba[:300], labels[:300]),
        n_resamples=19,
    )
    assert "fitted on 300 calibration rows. All figures are for 300 other rows." in held_out.how[0]
    assert "heuristic" in " ".join(report.how)
    assert "heuristic" not in " ".join(held_out.how)


def test_the_number_of_tested_rows_is_given_if_not_all_are_tested(report, data, monkeypatch):
    proba, labels = data
    assert "drawn at random" not in " ".join(report.how)
    monkeypatch.setattr(_case, "_TESTED_ROWS", 200)
    some = summarize(labels, proba, calibrator=calibrant.Identity(), n_resamples=9)
    assert (
        "The tests, the decomposition, the two-bin error, the cutoff error and the guaranteed "
        "shares of answered rows use 200 rows, drawn at random."
    ) in some.how


def test_a_report_shows_how_to_write_about_the_calibrator(report):
    (line,) = [text for text in report.how if text.startswith("Text for a paper")]
    assert "The calibrator was fitted on 600 rows of 4 classes." in line
    assert "The method is temperature scaling (Guo et al. 2017)." in line
    assert "arXiv:1706.04599" in line


def test_the_last_sentence_names_the_versions(report):
    assert report.how[-1].startswith(f"calibrant {calibrant.__version__}, NumPy ")


def test_without_a_guarantee_the_methods_do_not_mention_one(data):
    proba, labels = data
    few, scaling = slice(0, 30), calibrant.TemperatureScaling()
    report = summarize(labels[few], proba[few], calibrator=scaling, n_resamples=19)
    assert report.guarantee is None
    assert not any("guarantee is about" in sentence for sentence in report.how)
