"""The report as text."""

from __future__ import annotations

from calibrant.report import to_markdown


def test_markdown_shows_hostile_names_as_text(hostile):
    text = to_markdown(hostile)
    assert "<script" not in text
    assert "<img" not in text
    rows = [line for line in text.splitlines() if line.startswith("| x")]
    assert rows
    assert all("x\\|y\\`z\\`" in row for row in rows)


def test_every_section_of_the_page_is_there(hostile):
    text = to_markdown(hostile)
    for title in ("Before and after", "Reliability", "Classes", "Tests", "Guarantee", "The map"):
        assert f"## {title}" in text


def test_rows_of_a_table_have_the_cells_of_its_header(hostile):
    blocks = [b for b in to_markdown(hostile).split("\n\n") if b.startswith("| ")]
    assert len(blocks) > 3
    for block in blocks:
        cells = {line.replace("\\|", "").count("|") for line in block.splitlines()}
        assert len(cells) == 1
