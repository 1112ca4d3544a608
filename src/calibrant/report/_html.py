"""A report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from calibrant._output.numbers import format_number
from calibrant._validation import printable_lines
from calibrant.notions import as_notion
from calibrant.report._charts import NOTIONS
from calibrant.report._content import GroupNote, Reliability, Report
from calibrant.report._drawings import (
    decomposition_svg,
    headline_svg,
    ks_svg,
    reliability_svg,
)
from calibrant.report._glossary import glossary
from calibrant.report._group_svg import curve_svgs, forest_svg
from calibrant.report._markup import Markup, fill_page, joined, read_page, tag
from calibrant.report._risk_section import risk_section
from calibrant.report._sentences import (
    audit_facts,
    decomposition_sentence,
    diagram_sentence,
    headline_sentence,
    ks_sentence,
    no_guarantee,
    reduction_sentence,
)
from calibrant.report._tables import (
    MOST_PRINTED,
    checks_table,
    class_table,
    curve_table,
    folded,
    guarantee_tables,
    metric_tables,
    parameter_table,
    plain_table,
)

_SECTIONS = {
    "verdict": "Verdict",
    "metrics": "Before and after",
    "reliability": "Reliability by class",
    "classes": "Classes",
    "ks": "KS graph",
    "decomposition": "Decomposition",
    "risk": "Risk and coverage",
    "tests": "Tests",
    "guarantee": "Guarantee",
    "map": "Calibrator",
    "how": "Methods",
    "code": "Code",
    "glossary": "Glossary",
}

_PER_CLASS = NOTIONS[1:]
"""Types of calibration with a diagram per class. The diagram of the confidence is at the top."""

_FOREST_CAPTION = (
    "Bars are 95% confidence intervals that hold jointly for all groups. A gap of zero means "
    "that the group is calibrated on average."
)
_CURVES_TITLE = "Reliability of each group: observed frequency by predicted probability"

MOST_DRAWN = 12
"""Maximum number of diagrams of a type of calibration with one diagram per class."""


def to_html(report: Report) -> str:
    """Return a report as a self-contained HTML page.

    See Also
    --------
    render : Write a report to a file.
    """
    return fill_page(
        "report.html",
        name=report.name,
        facts=_facts(report),
        nav=joined(tag("a", title, href=f"#{key}") for key, title in _SECTIONS.items()),
        fitted=report.how[0] if report.how else "",
        advice=report.advice,
        action=report.action,
        verdict=report.verdict,
        headline=headline_svg(report.headline, headline_sentence(report)),
        log_loss=_log_loss(report),
        diagram=_figure(report.reliability[0], diagram_sentence(report)),
        warnings=_warnings(report.warnings),
        metrics=metric_tables(report.metrics, report.conclusion),
        notions=joined(map(_radio, _PER_CLASS)),
        panels=joined(_panels(report)),
        left_out=_left_out(report),
        classes=class_table(report),
        groups="" if report.groups is None else _groups(report.groups),
        classes_left_out=_classes_left_out(report),
        ks=ks_svg(report.ks, ks_sentence(report)),
        decomposition=decomposition_svg(report.decomposition, decomposition_sentence(report)),
        ks_label=ks_sentence(report),
        decomposition_label=decomposition_sentence(report),
        risk=risk_section(report),
        tests=checks_table(report),
        detectable=report.detectable.text,
        guarantee=_guarantee(report),
        map_name=report.map.name,
        map_text=report.map.text,
        map_tables=joined(map(parameter_table, report.map.tables)),
        how=joined(tag("li", line) for line in report.how),
        # Keep the line breaks of code, because `tag` would join the lines.
        code=Markup(escape(printable_lines(report.code))),
        glossary=joined(
            part for term, text in glossary(report) for part in (tag("dt", term), tag("dd", text))
        ),
        version=report.version,
        js=read_page("static", "report.js"),
    )


def _facts(report: Report) -> Markup:
    """Return the line with size, date, method, version and digest, for audits."""
    return joined(
        tag("div", tag("dt", name), tag("dd", value)) for name, value in audit_facts(report)
    )


def _log_loss(report: Report) -> Markup:
    """Return the log-loss before and after calibration in large figures."""
    before, after = map(format_number, report.headline.log_loss)
    return joined(
        [
            tag("span", "Log-loss", class_="name"),
            tag("span", before, class_="large before"),
            tag("span", "→", class_="arrow", aria_label="becomes"),
            tag("span", after, class_="large after"),
            tag("span", reduction_sentence(report), class_="detail"),
        ]
    )


def _panels(report: Report) -> Iterator[Markup]:
    """Return the diagrams with the largest errors of each type of calibration."""
    for notion in _PER_CLASS:
        diagrams = [diagram for diagram in report.reliability if diagram.notion == notion]
        for diagram in diagrams[:MOST_DRAWN]:
            assert diagram.column is not None
            name = report.classes[diagram.column]
            place = {"data_notion": notion, "data_column": diagram.column, "data_name": name}
            yield tag("div", _figure(diagram, diagram.question), class_="panel", **place)


def _figure(diagram: Reliability, caption: str) -> Markup:
    chart = reliability_svg(diagram, f"Reliability diagram. {caption}")
    figure = tag("figure", chart, tag("figcaption", caption))
    return joined([figure, folded("Table of this diagram", curve_table(diagram))])


def _left_out(report: Report) -> Markup:
    if report.n_classes <= MOST_DRAWN:
        return Markup("")
    return tag(
        "p",
        f"The diagrams show the {MOST_DRAWN} classes with the largest errors, out of "
        f"{report.n_classes:,} classes. The table below lists all classes.",
        class_="hint",
    )


def _classes_left_out(report: Report) -> Markup:
    if report.n_classes <= MOST_PRINTED:
        return Markup("")
    return tag(
        "p",
        "Classes with the largest errors come first. The printed page lists only the first "
        f"{MOST_PRINTED} of {report.n_classes:,} classes.",
        class_="hint",
    )


def _warnings(lines: Sequence[str]) -> Markup:
    if not lines:
        return Markup("")
    items = tag("ul", *(tag("li", line) for line in lines))
    return tag("section", tag("h2", "Warnings"), items, class_="warnings", aria_label="Warnings")


def _radio(notion: str) -> Markup:
    checked = " checked" if notion == _PER_CLASS[0] else ""
    button = Markup(f'<input type="radio" name="notion" value="{notion}"{checked}>')
    return tag("label", button, as_notion(notion).title)


def _guarantee(report: Report) -> Markup:
    if report.guarantee is None:
        return tag("p", no_guarantee(report))
    return joined([tag("p", report.guarantee.text), guarantee_tables(report.guarantee)])


def _groups(note: GroupNote) -> Markup:
    """Table and charts of groups."""
    if not note.charts:  # all groups are too small to be shown
        return joined([tag("h3", note.caption), tag("p", note.text)])
    curves = (
        tag("figure", chart, tag("figcaption", name)) for name, chart in curve_svgs(note.charts)
    )
    return joined(
        [
            plain_table(note),
            tag("p", note.text),
            tag("figure", forest_svg(note), tag("figcaption", _FOREST_CAPTION)),
            tag("h3", _CURVES_TITLE),
            tag("div", *curves, class_="small"),
        ]
    )
