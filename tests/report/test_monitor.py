"""The page of a monitor."""

from __future__ import annotations

from html.parser import HTMLParser

from calibrant._output.numbers import format_number
from calibrant.monitoring import CalibrationMonitor
from calibrant.report import monitor_page


class Tags(HTMLParser):
    """The elements of a page."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)


def page_of(monitor):
    page = monitor_page(monitor, "<model>")
    tags = Tags()
    tags.feed(page)
    return page, tags.seen


def test_names_of_the_user_are_escaped_and_there_is_no_script():
    monitor = CalibrationMonitor(classes=["<img src=x>", "$css"])
    monitor.update(["$css"] * 3, [[0.3, 0.7]] * 3, group=["<script>"] * 3, when="</svg>")
    page, tags = page_of(monitor)
    assert "script" not in tags
    assert "img" not in tags
    assert "&lt;img src=x&gt;" in page
    assert tags.count("svg") == 4  # two charts, each for wide screens and for phones


def test_a_monitor_that_has_seen_nothing_has_a_page():
    page, tags = page_of(CalibrationMonitor(classes=[0, 1]))
    assert "The monitor has no rows yet." in page
    assert tags.count("table") == 2


def test_claims_that_stand_out_are_marked_and_their_absence_is_said():
    monitor = CalibrationMonitor(classes=["a", "b"])
    monitor.update(["a", "b"], [[0.5, 0.5]] * 2)
    text = "No gap is marked &quot;check&quot;, because no single gap is significant."
    assert text in page_of(monitor)[0]
    monitor.update(["a", "b"] * 500, [[0.95, 0.05]] * 1000)
    page, _ = page_of(monitor)
    assert "The expected share of false marks is at most 5%." in page
    assert '<td class="mark" data-label="Mark">check</td>' in page


def test_dates_of_the_headline_are_not_broken():
    monitor = CalibrationMonitor(classes=["a", "b"])
    monitor.update(["a", "b"] * 500, [[0.95, 0.05]] * 1000, when="2026-11-08")
    page, _ = page_of(monitor)
    assert 'Estimated onset: <span class="date">2026-11-08</span>.' in page


def test_the_page_states_the_threshold_and_the_scale():
    monitor = CalibrationMonitor(classes=["a", "b"])
    monitor.update(["a", "b"], [[0.5, 0.5]] * 2)
    page, _ = page_of(monitor)
    assert f"the dashed line at {format_number(monitor.threshold)}" in page
    assert "logarithmic scale" not in page
    assert "in one period" in page


def test_weighted_rows_have_gaps_of_all_rows():
    monitor = CalibrationMonitor(classes=["a", "b"])
    monitor.update(["a", "b"], [[0.5, 0.5]] * 2, sample_weight=[0.5, 1.0])
    assert (
        "up to an update. Single periods are not shown, because the rows have weights"
        in page_of(monitor)[0]
    )
