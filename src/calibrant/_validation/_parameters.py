"""Messages that name parameters, which every front end spells its own way: ``proba=`` in Python,
``--proba`` on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

Spelling = Callable[[str, str], str]
"""How a front end writes a parameter of a name with a value, which is empty if there is none."""

_NOTHING: Mapping[str, object] = MappingProxyType({})


def spell_in_python(name: str, value: str) -> str:
    """A parameter as Python passes it."""
    return f"{name}={value}"


class Message(NamedTuple):
    """Text with fields in braces.

    ``{name}`` is ``values["name"]``. A field that has no value is a parameter: ``{proba}`` mentions
    it, ``{proba:'p_*'}`` shows how to pass it.

    Examples
    --------
    >>> message = Message("{found} is not a column. Pass {proba:'p_*'}.", {"found": "{x}"})
    >>> print(message)
    {x} is not a column. Pass proba='p_*'.
    >>> print(message.spell(lambda name, value: f"--{name} {value}"))
    {x} is not a column. Pass --proba 'p_*'.
    """

    template: str
    values: Mapping[str, object] = _NOTHING

    def spell(self, spelling: Spelling = spell_in_python) -> str:
        """The text, with parameters as a front end writes them."""
        return self.template.format_map(_Fields(self.values, spelling))

    def __str__(self) -> str:
        return self.spell()


class ParameterError(ValueError):
    """A ``ValueError`` that carries a `Message`; ``str(error)`` is for Python."""

    def __init__(self, template: str, values: Mapping[str, object] | None = None) -> None:
        super().__init__(template, values or {})

    @property
    def message(self) -> Message:
        """What a front end spells."""
        return Message(*self.args)

    def __str__(self) -> str:
        return self.message.spell()


class _Fields(dict[str, object]):
    """The values of a message; every other name is a parameter."""

    def __init__(self, values: Mapping[str, object], spelling: Spelling) -> None:
        super().__init__(values)
        self._spelling = spelling

    def __missing__(self, name: str) -> _Parameter:
        return _Parameter(name, self._spelling)


class _Parameter(NamedTuple):
    name: str
    spelling: Spelling

    def __format__(self, value: str) -> str:
        return self.spelling(self.name, value)
