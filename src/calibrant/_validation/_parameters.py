"""Messages that name parameters in the spelling of Python or of the command line.

A parameter is ``proba=`` in Python and ``--proba`` on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

Spelling = Callable[[str, str], str]
"""A function of the name and the value (or "") of a parameter that returns its spelling."""

_NOTHING: Mapping[str, object] = MappingProxyType({})


def spell_in_python(name: str, value: str) -> str:
    """Return a parameter as a Python keyword argument."""
    return f"{name}={value}"


class Message(NamedTuple):
    """A message template with fields in braces.

    ``{name}`` is replaced by ``values["name"]``. A field without a value names a
    parameter. ``{proba}`` becomes the name of this parameter, and ``{proba:'p_*'}`` becomes the
    name with a value.

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
        """Return the text, with parameters in the spelling of Python or of the command line."""
        return self.template.format_map(_Fields(self.values, spelling))

    def __str__(self) -> str:
        return self.spell()


class ParameterError(ValueError):
    """A ``ValueError`` with a `Message`. ``str(error)`` writes parameters as in Python."""

    def __init__(self, template: str, values: Mapping[str, object] | None = None) -> None:
        super().__init__(template, values or {})

    @property
    def message(self) -> Message:
        """The message, in which a front end can replace the spelling of parameters."""
        return Message(*self.args)

    def __str__(self) -> str:
        return self.message.spell()


class _Fields(dict[str, object]):
    """The values of a message. A name without a value is treated as a parameter."""

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
