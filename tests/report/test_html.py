"""The page: self-contained, small, and with every string of the user escaped."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import calibrant
from calibrant._output.numbers import format_number, format_percent
from calibrant.datasets import digits_predictions
from calibrant.report import summarize, to_html
from calibrant.report._html import MOST_DRAWN


class Elements(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.open = [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [
            value for name, value in attributes if name in ("src", "href", "action", "srcset")
        ]
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(text):
    made = Elements()
    made.feed(text)
    made.close()
    return made


def test_the_page_is_well_formed_and_loads_nothing(hostile):
    page = parsed(to_html(hostile))
    assert page.open == []
    assert all(link.startswith("#") or link == "data:," for link in page.links)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not {"b", "iframe", "object", "embed"} & set(page.tags)


def test_a_policy_forbids_everything_from_elsewhere(hostile):
    assert "default-src 'none'" in to_html(hostile)


def test_styles_and_scripts_of_ours_name_no_address(hostile):
    assert not re.findall(r"url\(|@import|sourceMappingURL|https?:", to_html(hostile))


def test_the_page_is_small(hostile):
    assert len(to_html(hostile).encode()) < 300_000


def test_templates_are_filled_once(hostile):
    text = to_html(hostile)
    assert "$data" in text  # the name of a class
    assert text.count('id="chart-ks"') == 1


def test_every_table_has_a_caption_and_headings_with_scope(hostile):
    text = to_html(hostile)
    assert text.count("<table") == text.count("<caption")
    assert not re.search(r"<th(?! scope)[ >]", text)


def test_every_chart_is_drawn_and_says_what_it_shows(hostile):
    charts = re.findall(r"<svg[^>]*>", to_html(hostile))
    charts = [chart for chart in charts if "aria-hidden" not in chart]  # next to its numbers
    assert len(charts) == len(hostile.reliability) + 4
    assert all(re.search(r'role="img" aria-label="[^"]{20,}"', chart) for chart in charts)


def contrast(one, other):
    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_text_has_enough_contrast_in_light_and_dark(hostile):
    schemes = re.findall(r":root\s*\{(.*?)\}", to_html(hostile), flags=re.DOTALL)[:2]
    for scheme in schemes:
        colours = dict(re.findall(r"--(\w+): (#\w{6})", scheme))
        for name in ("ink", "soft", "link", "good", "mixed", "before", "after", "alarm"):
            for ground in ("ground", "panel"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def test_a_hundred_classes_stay_small(rng):
    proba = rng.dirichlet(np.ones(100), 500)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    made = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert len(made.per_class) == 100
    text = to_html(made)
    assert len(text.encode()) < 500_000
    assert text.count('class="panel"') == 2 * MOST_DRAWN
    assert f"the {MOST_DRAWN} classes with the largest errors, out of 100 classes" in text


def test_the_header_identifies_the_report(report):
    text = to_html(replace(report, data_sha256="ab12"))
    facts = dict(re.findall(r"<dt>([^<]*)</dt><dd>([^<]*)</dd>", text.split("<nav")[0]))
    assert facts == {
        "Rows": "600",
        "Classes": "4",
        "Method": "temperature",
        "Date": report.created,
        "Version": f"calibrant {calibrant.__version__}",
        "SHA-256 of the data": "ab12",
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", report.created)


def test_the_first_screen_has_verdict_bars_log_loss_and_a_large_diagram(report):
    first = to_html(report).split('id="metrics"')[0]
    assert report.action in first
    assert first.count("<svg") == 2
    for value in report.headline.confidence + report.headline.accuracy:
        assert f">{format_percent(value)}</text>" in first
    for value in report.headline.log_loss:
        assert f">{format_number(value)}</span>" in first


def test_six_measures_are_visible_and_the_rest_is_folded(report):
    section = to_html(report).split('id="metrics"')[1].split("</section>")[0]
    shown, rest = section.split("<details>")
    assert shown.count("<tr>") == 1 + 6
    assert rest.count("<tr>") == 1 + len(report.metrics) - 6


def test_parameters_are_a_folded_heat_map(hostile):
    section = to_html(hostile).split('id="map"')[1].split("</section>")[0]
    assert section.count("<details>") == section.count("<table") > 0


def test_the_page_of_the_demo_is_below_300_kilobytes():
    data = digits_predictions()
    made = summarize(
        data.test_labels,
        data.test_proba,
        calibration=(data.val_proba, data.val_labels),
        n_resamples=99,
    )
    assert len(to_html(made).encode()) < 300_000


@pytest.mark.slow
def test_the_page_of_a_thousand_classes_is_below_three_megabytes(rng):
    proba = rng.dirichlet(np.ones(1000), 3000)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    made = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=19)
    assert len(to_html(made).encode()) < 3_000_000
