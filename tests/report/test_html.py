"""The page: self-contained, small, and with every string of the user escaped."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np

import calibrant
from calibrant.report import summarise, to_html
from calibrant.report._content import Estimate, MetricRow
from calibrant.report._html import _change, _number


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
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert not {"b", "iframe", "object", "embed"} & set(page.tags)


def test_a_policy_forbids_everything_from_elsewhere(hostile):
    assert "default-src 'none'" in to_html(hostile)


def test_styles_and_scripts_of_ours_name_no_address(hostile):
    text = to_html(hostile)
    ours = re.sub(
        r"/\*!.*?\*/", "", text, flags=re.DOTALL
    )  # the licence note of the chart library names its home
    assert not re.findall(r"url\(|@import|sourceMappingURL", ours)


def test_the_page_is_small(hostile):
    assert len(to_html(hostile).encode()) < 2_000_000


def test_templates_are_filled_once(hostile):
    text = to_html(hostile)
    assert "$data" in text  # the name of a class
    assert text.count('id="report-data"') == 1


def test_every_table_has_a_caption_and_headings_with_scope(hostile):
    text = to_html(hostile)
    assert text.count("<table") == text.count("<caption")
    assert not re.search(r"<th(?! scope)[ >]", text)


def test_every_canvas_has_the_role_of_an_image(hostile):
    assert all('role="img"' in canvas for canvas in re.findall(r"<canvas[^>]*>", to_html(hostile)))


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
    made = summarise(labels, proba, calibrator=calibrant.TemperatureScaling(), n_resamples=99)
    assert len(made.per_class) == 100
    assert len(to_html(made).encode()) < 2_000_000


def test_changes_are_marked_only_where_they_are_seen_and_one_way_is_better():
    def row(before, after, better):
        return MetricRow("m", "M", Estimate(before), Estimate(after), better, "")

    assert _change(row(0.2, 0.1, "lower")) == "better"
    assert _change(row(0.2, 0.1, "higher")) == "worse"
    assert _change(row(0.2, 0.1, "neither")) == _change(row(0.2, 0.20001, "lower")) == ""


def test_a_missing_number_is_a_dash():
    assert _number(None) == '<td class="number" data-value="">-</td>'
    assert _number(0.25, 2) == '<td class="number " data-value="0.25">0.25</td>'
