"""Give printed tables a class of their own, so that sentences are wrapped and tables scroll."""

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

_ALIGNED = re.compile(r"\S {2,}\S")
"""Several spaces inside a line align columns."""

_COLUMNS = 90
"""A line of this length fits into the content of a wide screen."""


class MarkTables(SphinxTransform):
    """Give blocks of text with aligned columns the class "aligned".

    If an aligned line does not fit into a wide screen, the block also gets the class "wide".
    """

    default_priority = 502

    def apply(self, **kwargs):
        for block in self.document.findall(nodes.literal_block):
            lines = block.astext().splitlines() if block.get("language") == "text" else []
            aligned = [line for line in lines if _ALIGNED.search(line)]
            if aligned:
                block["classes"].append("aligned")
            if max(map(len, aligned), default=0) > _COLUMNS:
                block["classes"].append("wide")


def setup(app):
    app.add_transform(MarkTables)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
