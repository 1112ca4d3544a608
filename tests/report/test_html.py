"""The page: self-contained, small, and with every string of the user escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np

import calibrant
from calibrant.report import summarize, to_html
from calibrant.report._content import Estimate, MetricRow
from calibrant.report._html import MOST_DRAWN, _change, _count_text, _number


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
    assert len(charts) == 2 * len(hostile.reliability) + 2
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
        for name in ("ink", "soft", "link", "good", "bad", "mixed", "before", "after"):
            for ground in ("ground", "panel"):
                assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)


def test_a_hundred_classes_stay_small(rng):
    proba = rng.dirichlet(np.ones(100), 500)
    labels = calibrant.datasets.draw_labels(proba, rng=rng)
    made = summarize(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert len(made.per_class) == 100
    text = to_html(made)
    assert len(text.encode()) < 500_000
    assert text.count('class="panel"') == 1 + 2 * MOST_DRAWN
    assert f"Only the {MOST_DRAWN} classes with the largest errors of 100 classes are drawn" in text


def test_changes_are_coloured_only_where_chance_does_not_explain_them():
    def row(before, after, better, name="m"):
        pair = [Estimate(value, value - 0.02, value + 0.02) for value in (before, after)]
        return MetricRow(name, "M", *pair, better, "")

    assert _change(row(0.2, 0.1, "lower"), "mixed") == "better"
    assert _change(row(0.2, 0.1, "higher"), "mixed") == "worse"
    assert _change(row(0.2, 0.1, "neither"), "good") == ""
    assert _change(row(0.2173, 0.2167, "higher"), "good") == ""
    assert _change(row(0.2, 0.19, "lower", "log_loss"), "good") == "better"
    assert _change(row(0.2, 0.1, "lower", "log_loss"), "mixed") == ""
    alone = MetricRow("m", "M", Estimate(0.5), Estimate(0.1), "lower", "")
    assert _change(alone, "good") == ""


def test_a_missing_number_is_a_dash():
    assert _number(None) == '<td class="number" data-value="">-</td>'
    assert _number(0.25) == '<td class="number" data-value="0.25">0.250</td>'
    assert _number(1234.0, _count_text) == '<td class="number" data-value="1234.0">1,234</td>'
