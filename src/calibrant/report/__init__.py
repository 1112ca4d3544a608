"""Report the effect of calibration on a set of predictions, as HTML, Markdown or JSON."""

from calibrant.report._content import Estimate as Estimate
from calibrant.report._content import Report
from calibrant.report._html import to_html
from calibrant.report._markdown import to_markdown
from calibrant.report._monitor import monitor_page
from calibrant.report._render import check_form as check_form
from calibrant.report._render import render, to_json
from calibrant.report._summarize import count_steps as count_steps
from calibrant.report._summarize import summarize

__all__ = [
    "Report",
    "monitor_page",
    "render",
    "summarize",
    "to_html",
    "to_json",
    "to_markdown",
]
