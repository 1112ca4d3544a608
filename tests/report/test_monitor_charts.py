"""Charts of a monitor: ticks, the alarm, and gaps of periods."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from calibrant.monitoring import CalibrationMonitor
from calibrant.monitoring.periods import period_gaps
from calibrant.report._monitor_charts import evidence_charts, gap_charts


def watched(n_weeks, onset=None, rng=None):
    rng = np.random.default_rng(4) if rng is None else rng
    monitor = CalibrationMonitor(classes=[0, 1], horizon=10_000)
    for week in range(n_weeks):
        p = rng.uniform(0.5, 1.0, 100)
        shift = 0.25 if onset is not None and week >= onset else 0.0
        y = (rng.random(100) >= p - shift).astype(int)
        monitor.update(
            y, np.column_stack([p, 1 - p]), when=f"2026-{1 + week // 28:02}-{1 + week % 28:02}"
        )
    return monitor


@pytest.fixture(scope="module")
def alarmed():
    return watched(12, onset=6)


def charts(monitor):
    text = evidence_charts(monitor.history, monitor.threshold) + gap_charts(monitor, 0.02)
    return [ElementTree.fromstring(chart) for chart in re.findall(r"<svg.*?</svg>", text)]


def texts(chart):
    return [element.text for element in chart.iter("text")]


def test_each_chart_is_drawn_for_wide_screens_and_for_phones(alarmed):
    assert [chart.attrib["class"] for chart in charts(alarmed)] == ["wide", "narrow"] * 2


def test_the_alarm_is_drawn_and_named_in_every_chart(alarmed):
    first = next(entry.when for entry in alarmed.history if entry.alarm)
    for chart in charts(alarmed):
        assert f"alarm: {first}" in texts(chart)
        assert any(path.attrib["class"] == "alarm" for path in chart.iter("path"))


def test_axes_have_round_numbers_and_dates(alarmed):
    evidence, _, gap, _ = charts(alarmed)
    assert {"0", "20", "40"} <= set(texts(evidence))
    assert {"0", "-0.2", "0.2"} <= set(texts(gap))
    dates = [text for text in texts(gap) if text.startswith("2026-")]
    assert dates[0] == alarmed.history[0].when
    assert len(dates) > 4


def test_the_gap_of_every_period_is_drawn_with_its_interval(alarmed):
    _, _, gap, _ = charts(alarmed)
    titles = [element.text for element in gap.iter("title")]
    assert len(titles) == len(period_gaps(alarmed.history)) == 12
    assert re.fullmatch(
        r"2026-01-01: [+-][\d.]+ \(95% CI [+-][\d.]+ to [+-][\d.]+\), 100 rows", titles[0]
    )
    beyond = [circle.attrib["class"] for circle in gap.iter("circle")]
    assert beyond[-1] == "alarm-point"
    assert beyond[0] == "ink"


def test_without_an_alarm_there_is_no_mark():
    for chart in charts(watched(3)):
        assert not any(text.startswith("alarm:") for text in texts(chart))


def test_many_updates_are_joined_into_periods_that_can_be_seen():
    _, _, wide, narrow = charts(watched(120))
    assert sum(1 for _ in wide.iter("circle")) == 80
    assert sum(1 for _ in narrow.iter("circle")) == 30


def test_a_monitor_without_rows_has_empty_charts():
    assert len(charts(CalibrationMonitor(classes=[0, 1]))) == 4
