"""Printed tables scroll, printed sentences are wrapped: aligned output gets a class of its own."""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

_ALIGNED = re.compile(r"\S {2,}\S")
"""Several spaces inside a line align columns."""


class MarkTables(SphinxTransform):
    """Give blocks of text with aligned columns the class "aligned"."""

    default_priority = 502

    def apply(self, **kwargs):
        for block in self.document.findall(nodes.literal_block):
            if block.get("language") == "text" and _ALIGNED.search(block.astext()):
                block["classes"].append("aligned")


def setup(app):
    app.add_transform(MarkTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
