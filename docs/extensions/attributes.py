"""Attributes that share a line of a docstring get an entry each, as parameters do."""

import re

_SHARED = re.compile(r"^(\w+(?:, \w+)+) : (.+)$")


def _entries(names, types, text):
    """One entry per name. The types belong to the names one by one if their numbers are equal."""
    kinds = re.split(r", (?![^(\[{]*[)\]}])", types)
    kinds = kinds if len(kinds) == len(names) else [types] * len(names)
    for name, kind in zip(names, kinds, strict=True):
        yield from (f"{name} : {kind}", *text)


def split_attributes(app, what, name, obj, options, lines):
    """Rewrite the lines of a docstring in place, before they are parsed."""
    out, place, is_section = [], 0, False
    while place < len(lines):
        line = lines[place]
        if set(line) == {"-"} and len(line) > 2:
            is_section = lines[place - 1] == "Attributes"
        shared = _SHARED.match(line) if is_section else None
        place += 1
        if shared is None:
            out.append(line)
            continue
        start = place
        while place < len(lines) and lines[place].startswith(" "):
            place += 1
        out += _entries(shared[1].split(", "), shared[2], lines[start:place])
    lines[:] = out


def setup(app):
    app.connect("autodoc-process-docstring", split_attributes, priority=400)  # before napoleon
    return {"parallel_read_safe": True, "parallel_write_safe": True}
