"""Colors have one meaning in figures, reports and on the terminal."""

from __future__ import annotations

from calibrant._output import palette
from calibrant.plots import _style


def test_figures_use_the_colors_of_the_palette():
    assert _style.BEFORE.color == palette.BEFORE == palette.LIGHT["before"]
    assert _style.AFTER.color == palette.AFTER
    assert (_style.REFERENCE, _style.ALARM) == (palette.REFERENCE, palette.ALARM)


def test_light_and_dark_colors_have_the_same_names_and_are_distinct():
    assert list(palette.LIGHT) == list(palette.DARK)
    assert len({*palette.LIGHT.values(), *palette.DARK.values()}) == 8
