"""Make the sample report and the sample monitor page that the manual links to."""

from pathlib import Path

import numpy as np

from calibrant import AutoCalibration
from calibrant.datasets import digits_predictions, noisy_simplex
from calibrant.monitoring import CalibrationMonitor
from calibrant.report import monitor_page, render, summarize


def _write_report(path):
    data = digits_predictions()
    report = summarize(
        data.test_labels,
        data.test_proba,
        calibrator=AutoCalibration(),
        calibration=(data.val_proba, data.val_labels),
        method="auto",
        n_resamples=200,
        random_state=0,
    )
    render(report, path)


def _write_monitor(path):
    """Weekly updates of a model that becomes overconfident in the sixth week."""
    names = ["cat", "dog", "owl"]
    data = noisy_simplex(8000, 3, noise=0.0, rng=0)
    labels = np.array(names)[data.labels]
    monitor = CalibrationMonitor(classes=names)
    for week in range(8):
        rows = slice(1000 * week, 1000 * (week + 1))
        proba = data.proba[rows] ** (1.0 if week < 5 else 1.6)
        proba /= proba.sum(axis=1, keepdims=True)
        monitor.update(labels[rows], proba, when=f"2026-week-{30 + week}")
    path.write_text(monitor_page(monitor, name="Sample model"), encoding="utf-8")


def _write_samples(app):
    folder = Path(app.outdir) / "samples"
    folder.mkdir(parents=True, exist_ok=True)
    _write_report(folder / "report.html")
    _write_monitor(folder / "monitor.html")


def setup(app):
    app.connect("builder-inited", _write_samples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
