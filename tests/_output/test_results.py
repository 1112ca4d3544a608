from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calibrant._output.results import AsText, ShortRepr, html_table


@dataclass(repr=False)
class Result(ShortRepr, AsText):
    """Something to show."""

    table: np.ndarray
    level: float
    name: str | None = None
    parts: tuple[int, ...] = ()


def test_a_repr_of_one_line_tells_large_values_by_their_size():
    assert (
        repr(Result(np.zeros((3, 2)), 0.95)) == "Result(table=<array 3 x 2>, level=0.95, parts=())"
    )
    long = Result(np.zeros(3), 0.5, "n" * 100, tuple(range(100)))
    assert repr(long).endswith("nnn..., parts=<tuple of 100>)")


def test_a_result_without_a_table_is_shown_as_its_text_escaped():
    shown = Result(np.zeros(1), 0.5, "<b>")._repr_html_()
    assert shown.startswith("<pre")
    assert "&lt;b&gt;" in shown


def test_a_table_for_a_notebook_is_escaped_in_all_its_parts():
    shown = html_table([["<r>", "<c>"]], header=["<h>", "x"], title="<t>", note="<n>")
    for part in "rchtn":
        assert f"&lt;{part}&gt;" in shown
    assert shown.endswith("</table><p>&lt;n&gt;</p>")
