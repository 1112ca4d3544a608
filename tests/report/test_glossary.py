"""Every term that a report prints is explained."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest

import calibrant
from calibrant.report import summarize, to_html, to_markdown
from calibrant.report._glossary import COLUMNS, GENERAL, MEASURES, TESTS, glossary


def make_report(data, kind):
    proba, labels = data
    options = {"n_resamples": 19}
    if kind == "auto":
        options |= {"calibration": (proba[:300], labels[:300])}
    elif kind == "groups":
        options |= {"by": {"parity": np.arange(600) % 2}, "calibrator": calibrant.Identity()}
    elif kind == "weights":
        options |= {"sample_weight": np.linspace(0.5, 2, 600), "calibrator": calibrant.Identity()}
    elif kind == "few rows":
        proba, labels = proba[:40], labels[:40]
        options |= {"calibrator": calibrant.TemperatureScaling()}
    elif kind == "binary":
        proba = np.column_stack([1 - proba[:, 0], proba[:, 0]])
        labels = (labels == 0).astype(int)
        options |= {"calibrator": calibrant.PlattScaling()}
    else:
        options |= {"calibrator": calibrant.method(kind)}
    return summarize(labels, proba, classes=None, **options)


KINDS = (
    *("auto", "groups", "weights", "few rows", "binary", "vector", "matrix", "dirichlet"),
    *("structured-vector", "histogram"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_measure_test_and_column_is_explained(data, kind):
    report = make_report(data, kind)
    terms = dict(glossary(report))
    assert all(text.endswith(".") for text in terms.values())
    html, markdown = to_html(report), to_markdown(report)
    names = {*(row.title for row in report.metrics), *(test.title for test in report.tests)}
    labels = {
        unescape(text) for text in re.findall(r'<th scope="col"[^>]*><button[^>]*>([^<]*)', html)
    }
    headers = re.findall(r"^\| (.*) \|\n\| ---", markdown, flags=re.MULTILINE)
    labels |= {label for header in headers for label in header.split(" | ")}
    assert names | (labels - set(report.classes)) <= set(terms)
    for term, text in terms.items():
        assert f"- **{term}**: {text}" in markdown.replace("&gt;", ">").replace("&lt;", "<")
        assert f"<dt>{term}</dt><dd>{text}</dd>" in unescape(html)


def test_measures_tests_and_columns_have_a_tooltip(report):
    page = unescape(to_html(report))
    assert f'<th scope="row" title="{MEASURES["mce"]}">' in page
    assert f'<th scope="row" title="{TESTS["kernel"]}">' in page
    assert f'<th scope="col" class="number" title="{COLUMNS["Predicted rows"]}">' in page


def test_explanations_have_no_duplicates():
    texts = [*MEASURES.values(), *TESTS.values(), *GENERAL.values()]
    assert len(set(texts)) == len(texts)
