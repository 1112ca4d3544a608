"""HTML is escaped unless it was built as HTML."""

from __future__ import annotations

from calibrant._output import palette
from calibrant.report._markup import Markup, as_markup, fill_page, joined, style, tag


def test_text_is_escaped_and_markup_is_kept():
    assert as_markup("<b> & \"'") == "&lt;b&gt; &amp; &quot;&#x27;"
    assert as_markup(Markup("<b>")) == "<b>"
    assert joined(["<", tag("i", ">")]) == "&lt;<i>&gt;</i>"
    assert isinstance(joined([]), Markup)


def test_control_characters_are_not_printed():
    assert "\x1b" not in as_markup("a\x1b[31m")
    assert "\u202e" not in tag("p", "a\u202eb", title="\u202e")


def test_attributes_are_escaped_and_left_out_if_they_are_none():
    assert tag("a", href='"><script>') == '<a href="&quot;&gt;&lt;script&gt;"></a>'
    assert tag("a", class_=None, hidden=False, data_value=0) == '<a data-value="0"></a>'
    assert tag("p", hidden=True) == "<p hidden></p>"


def test_values_of_a_page_are_escaped_and_substituted_once():
    names = ("facts", "status", "headline", "sentences", "evidence", "first", "gap", "claims")
    more = ("updates", "marked", "version", "threshold", "gap_hint")
    page = fill_page("monitor.html", name="<$css>", **dict.fromkeys(names + more, ""))
    assert "&lt;$css&gt;" in page
    assert "<$css>" not in page


def test_the_style_sheet_has_the_colors_of_the_palette():
    sheet = style()
    for name in palette.LIGHT:
        assert sheet.count(f"--{name}: {palette.LIGHT[name]};") == 2  # screen and print
        assert sheet.count(f"--{name}: {palette.DARK[name]};") == 1
