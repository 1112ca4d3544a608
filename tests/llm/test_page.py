"""The HTML page of runs."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np

from calibrant.llm import AnswerThreshold, Run, Runs, summarize
from calibrant.llm._page import to_html


def runs_of(rng, n_tasks=3, n_rows=120):
    runs = {}
    for number in range(n_tasks):
        confidence = rng.uniform(0.3, 1, n_rows)
        correct = rng.random(n_rows) < confidence - 0.3 * (number % 2)
        name = f"mmlu_task_{number:02d}"
        runs[name] = Run(name, "stated", correct, confidence, figures={"hle/cerr": 0.1})
    return Runs(runs)


class Balance(HTMLParser):
    """Raises if tags are not closed in order."""

    VOID = frozenset({"meta", "link", "br", "circle", "path", "rect", "line", "wbr"})

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_page_is_well_formed_and_loads_nothing(rng):
    page = to_html(summarize(runs_of(rng)))
    parser = Balance()
    parser.feed(page)
    assert not parser.open
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert "Miscalibration was detected in 1 of 3 tasks (1 overconfident" in page
    assert "Calibration significantly reduces the log-loss of 1 task. The largest" in page
    assert page.count("<figure>") == 3
    assert "hle/cerr" in page


def test_names_are_escaped_and_not_substituted(rng):
    confidence = rng.uniform(0.3, 1, 50)
    name = "<script>alert(1)</script> $table"
    run = Run(name, "<i>", rng.random(50) < confidence, confidence, skipped={"<b>": 1})
    page = to_html(summarize(Runs({name: run}), name=name))
    assert "<script>alert" not in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert "$table" in page


def test_thresholds_are_columns(rng):
    report = summarize(runs_of(rng))
    assert "Threshold</button>" not in to_html(report)
    names = [task.task for task in report.evaluation]
    report.thresholds.update(
        {
            names[0]: AnswerThreshold(0.8, 0.05, 0.1, 0.4, 120),
            names[1]: AnswerThreshold(None, 0.05, 0.1, 0.0, 120),
            names[2]: AnswerThreshold(-np.inf, 0.05, 0.1, 1.0, 120),
        }
    )
    page = to_html(report)
    assert "Threshold</button>" in page
    assert "A threshold was proved for 2 of 3 tasks." in page


def test_calibrated_runs_have_a_good_verdict(rng):
    confidence = rng.uniform(0.3, 1, 400)
    run = Run("a", "stated", rng.random(400) < confidence, confidence)
    page = to_html(summarize(Runs({"a": run})))
    assert "No gap between confidence and accuracy was detected" in page
    assert "No significant reduction in log-loss by calibration was detected." in page


def test_page_of_57_tasks_is_below_two_megabytes(rng):
    assert len(to_html(summarize(runs_of(rng, 57))).encode()) < 2_000_000
