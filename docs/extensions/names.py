"""Names of the library that stand in code on a page lead to their entry in the reference."""

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import calibrant

_NAME = re.compile(r"(?:calibrant\.)?([A-Za-z_][\w.]*)(?:\(.*\))?", re.DOTALL)


def _homes():
    """Full names by the short ones that pages use: those of `calibrant`, and `room.name`."""
    homes = {}
    for name, home in calibrant._HOMES.items():
        if home:
            homes[name] = f"calibrant.{home}.{name}"
    for room in (name for name, home in calibrant._HOMES.items() if not home):
        for name in getattr(calibrant, room).__all__:
            homes.setdefault(f"{room}.{name}", f"calibrant.{room}.{name}")
            if name[0].isupper() or "_" in name:
                homes.setdefault(name, f"calibrant.{room}.{name}")
    return homes


class LinkNames(SphinxTransform):
    """Make references of literals that are names of ours."""

    default_priority = 500
    homes = None

    def apply(self, **kwargs):
        if LinkNames.homes is None:
            LinkNames.homes = _homes()
        for literal in list(self.document.findall(nodes.literal)):
            found = _NAME.fullmatch(literal.astext())
            target = LinkNames.homes.get(found[1]) if found else None
            if target is None or _is_linked(literal) or self._is_of_others(literal):
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refwarn=False
            )
            literal.replace_self(link)
            link += literal

    def _is_of_others(self, node):
        """Whether a name stands in the first column of a page about another library."""
        entry = node
        while entry is not None and not isinstance(entry, nodes.entry):
            entry = entry.parent
        is_about_others = self.env.docname.startswith("migration/")
        return is_about_others and entry is not None and entry.parent.index(entry) == 0


def _is_linked(node):
    while node is not None:
        if isinstance(node, nodes.reference | addnodes.pending_xref | nodes.title):
            return True
        node = node.parent
    return False


class CheckLinks(SphinxTransform):
    """Complete short names in links, and turn words of types into plain text.

    Sphinx would link "shape" in "array of shape (n,)" to any attribute with this name.
    """

    default_priority = 501

    def apply(self, **kwargs):
        for link in list(self.document.findall(addnodes.pending_xref)):
            target = link.get("reftarget", "")
            if link.get("refdomain") == "py" and target in LinkNames.homes:
                link["reftarget"] = LinkNames.homes[target]
            elif link.get("reftype") == "class" and target.islower() and "." not in target:
                link.replace_self(link.children)


def setup(app):
    app.add_transform(LinkNames)
    app.add_transform(CheckLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
