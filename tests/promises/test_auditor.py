"""Groups, ordered classes, intervals and figures for users and auditors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import (
    HistogramBinning,
    MetricAccumulator,
    MulticlassToBinary,
    TemperatureScaling,
    compare,
    evaluate,
    inference,
    label_shift,
    metrics,
    plots,
    report,
)
from calibrant.datasets import digits_predictions, noisy_simplex

DATA = digits_predictions()
TRUTH, PROBA = DATA.val_labels, DATA.val_proba


@pytest.fixture(scope="module")
def comparison():
    return compare(TRUTH, PROBA, methods=["temperature", "structured-vector"])


@pytest.fixture(scope="module")
def results(comparison):
    """One of every result that a cell of a notebook may end with."""
    binning = MulticlassToBinary(HistogramBinning()).fit(PROBA, TRUTH)
    scaling = TemperatureScaling().fit(PROBA, TRUTH)
    return [
        comparison,
        evaluate(TRUTH, PROBA),
        evaluate(TRUTH, PROBA, by=TRUTH % 2),
        binning.guarantee(),
        label_shift.adapt(scaling, DATA.test_proba, n_resamples=20, rng=0),
        inference.ks_test(TRUTH, PROBA),
        inference.calibration_line(TRUTH, PROBA),
        inference.debiased_interval(TRUTH, PROBA),
        comparison.difference("temperature", "uncalibrated"),
        report.summarize(TRUTH, PROBA, calibrator=TemperatureScaling(), n_resamples=19),
    ]


def test_accumulators_accept_logits():
    found = MetricAccumulator(inputs="logits").update(TRUTH, np.log(PROBA + 1e-30)).compute()
    assert found.accuracy == evaluate(TRUTH, PROBA).accuracy


def test_accumulators_can_be_added_and_reset_and_have_a_short_representation():
    one = MetricAccumulator().update(TRUTH[:300], PROBA[:300])
    two = MetricAccumulator().update(TRUTH[300:], PROBA[300:])
    assert (one + two).compute().conf_ece == pytest.approx(evaluate(TRUTH, PROBA).conf_ece)
    assert repr(one) == "<MetricAccumulator: 300 rows of proba, 15 bins>"  # as before the sum
    assert repr(one.reset()) == "<MetricAccumulator: 0 rows of proba, 15 bins>"
    assert one.update(TRUTH[300:], PROBA[300:]).compute() == two.compute()


def test_groups_have_simultaneous_intervals_and_small_groups_are_listed():
    found = evaluate(TRUTH, PROBA, by={"digit": TRUTH, "half": np.arange(600) // 300})
    assert len(found) == 20
    assert found["digit=3, half=1"].gap_low <= found["digit=3, half=1"].gap
    assert isinstance(found.too_small, tuple)


def test_months_are_plotted_in_chronological_order():
    pytest.importorskip("matplotlib")
    month = np.array("2026-01", dtype="datetime64[M]") + np.arange(600) // 200
    display = plots.GroupDisplay.from_predictions(TRUTH, PROBA, by=month).plot()
    texts = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert texts == ["2026-01", "2026-02", "2026-03"]


def test_ordered_classes_have_a_proper_score_and_a_type_of_calibration():
    assert metrics.ranked_probability_score([0], [[0.0, 1.0, 0.0]]) == 0.5
    error = metrics.expected_calibration_error(TRUTH, PROBA, notion="at-most-4")
    assert 0 < error < metrics.expected_calibration_error(TRUTH, PROBA)


def test_the_calibration_slope_has_an_interval_and_classical_tests_detect_miscalibration():
    line = inference.calibration_line(TRUTH, PROBA)
    assert line.slope.low < line.slope.estimate < line.slope.high < 1
    tests = (inference.spiegelhalter_test, inference.hosmer_lemeshow_test)
    assert all(test(TRUTH, PROBA).p_value < 0.001 for test in tests)


def test_the_bootstrap_draws_all_rows_of_a_patient_together():
    patient = np.arange(600) // 20
    options = {"groups": patient, "n_resamples": 20, "rng": 0}
    assert inference.bootstrap_interval("brier_score", TRUTH, PROBA, **options).low > 0


def test_results_are_shown_as_html_in_a_notebook(results):
    for result in results:
        assert result._repr_html_().startswith(("<table>", "<pre", "<iframe"))


def test_group_names_are_escaped_in_html():
    found = evaluate(TRUTH, PROBA, by=np.where(TRUTH < 5, "<script>", "b"))
    assert "<script>" not in found._repr_html_()
    assert "&lt;script&gt;" in found._repr_html_()


def test_a_comparison_names_the_best_method_and_compares_pairs_of_methods(comparison):
    assert comparison.best == "structured-vector"
    gain = comparison.difference("structured-vector", "temperature")
    back = comparison.difference("temperature", "structured-vector")
    assert gain.gain == pytest.approx(-back.gain)
    assert gain.low < gain.gain < gain.high
    assert (
        comparison.difference("temperature", "uncalibrated")
        == (comparison.gains["data", "temperature", "log_loss"])
    )
    message = r"Unknown method 'temprature'. Did you mean 'temperature'"
    with pytest.raises(ValueError, match=message):
        comparison.difference("temprature", "uncalibrated")


def test_representations_of_results_are_short(results):
    pytest.importorskip("matplotlib")
    shown = [
        *results,
        metrics.calibration_curve(TRUTH, PROBA),
        plots.ReliabilityDisplay.from_predictions(TRUTH, PROBA, notion="class-wise"),
        plots.CumulativeDisplay.from_predictions(TRUTH, PROBA),
    ]
    for result in shown:
        assert len(repr(result)) <= 500
        assert "\n" not in repr(result)


def test_the_extension_of_the_path_determines_the_format_of_a_saved_report(results, tmp_path):
    made = results[-1]
    for ending, form in (("html", report.to_html), ("md", report.to_markdown)):
        made.save(tmp_path / f"r.{ending}")
        assert (tmp_path / f"r.{ending}").read_text(encoding="utf-8") == form(made)


def test_an_array_of_axes_raises_an_error_that_shows_how_to_pass_a_single_axis():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    display = plots.ReliabilityDisplay.from_predictions(TRUTH, PROBA)
    with pytest.raises(TypeError, match=r"got an array of 2. Pass one element, such as ax=axes"):
        display.plot(figure.subplots(1, 2))


@pytest.mark.slow
@pytest.mark.parametrize("notion", ["confidence", "class-wise", "top-label"])
def test_legends_of_adjacent_figures_do_not_overlap(notion):
    plt = pytest.importorskip("matplotlib.pyplot")
    data, plots = noisy_simplex(300, 3, rng=0), calibrant.plots
    figure, axes = plt.subplots(1, 2, figsize=(10, 5))
    made = []
    for ax in axes:
        before = set(figure.axes)
        plots.ReliabilityDisplay.from_predictions(data.labels, data.proba, notion=notion).plot(ax)
        made.append([ax, *(own for own in figure.axes if own not in before)])
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    for own, others in (made, made[::-1]):
        legends = [a.get_legend().get_window_extent(renderer) for a in own if a.get_legend()]
        assert len(legends) == 1
        assert figure.bbox.x0 <= legends[0].x0 < legends[0].x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= legends[0].y0 < legends[0].y1 <= figure.bbox.y1
        for ax in others:
            assert not legends[0].overlaps(ax.get_tightbbox(renderer)), ax.get_title()
    plt.close(figure)


def test_a_misspelled_type_of_calibration_raises_an_error_with_a_suggestion():
    with pytest.raises(
        ValueError, match=r"Unknown notion 'clas-wise'. Did you mean 'class-wise'\?"
    ):
        metrics.expected_calibration_error(TRUTH, PROBA, notion="clas-wise")


def test_modules_list_only_public_names():
    for name in ("notions", "testing", "guarantees", "label_shift", "datasets", "binning"):
        module = getattr(calibrant, name)
        assert dir(module) == sorted(module.__all__)


def test_the_docstring_of_the_package_names_the_main_functions():
    for name in ("CalibratedClassifier", "evaluate", "compare", "report", "inference"):
        assert f"``{name}``" in calibrant.__doc__


@pytest.mark.slow
def test_type_checkers_report_unknown_names_and_inputs(tmp_path):
    pytest.importorskip("mypy")
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import calibrant\n"
        "calibrant.nonexistent\n"
        'calibrant.TemperatureScaling(inputs="logit")\n'
        'calibrant.evaluate([0], [0.5], inputs="logit")\n'
        "calibrant.evaluate([0], [0.5], by=[1]).groups\n"
    )
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--hide-error-context"]
    found = subprocess.run(
        [*command, f"--cache-dir={tmp_path / 'cache'}", str(wrong)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(Path(calibrant.__file__).parents[1])},
    ).stdout
    lines = {line.split(":")[1] for line in found.splitlines() if ": error:" in line}
    assert lines == {"2", "3", "4"}


def gallery_snippets():
    page = (Path(__file__).resolve().parents[2] / "docs" / "guide" / "gallery.md").read_text(
        encoding="utf-8"
    )
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_code_of_the_gallery_begins_with_imports_and_is_complete():
    for code in gallery_snippets():
        compile(code, "gallery.md", "exec")  # a bare return would not compile
        assert code.startswith(("import ", "from "))
        assert "data." not in code.replace("datasets.", "")  # files that a reader has not


@pytest.mark.slow
@pytest.mark.parametrize("code", gallery_snippets())
def test_code_of_the_gallery_can_be_pasted_and_runs(code, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.chdir(tmp_path)  # the snippets save figures
    scope = {}
    exec(code, scope)  # our own page
    assert scope["display"].figure_ is not None
    plt.close("all")
