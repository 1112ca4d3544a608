"""Give printed tables a class of their own, so that sentences are wrapped and tables scroll."""

import re
from itertools import groupby

from docutils import nodes
from sphinx.transforms import SphinxTransform

_ALIGNED = re.compile(r"\S {2,}\S")
"""Several spaces inside a line align columns."""

_COLUMNS = 90
"""A line of this length fits into the content of a wide screen."""


class SplitOutputs(SphinxTransform):
    """Give tables the class "aligned", and separate long sentences from a table in a block.

    If an aligned line does not fit into a wide screen, the table also gets the class "wide".
    """

    default_priority = 502

    def apply(self, **kwargs):
        for block in list(self.document.findall(nodes.literal_block)):
            lines = block.astext().splitlines() if block.get("language") == "text" else []
            if any(map(_ALIGNED.search, lines)):
                runs = [list(run) for _, run in groupby(lines, _is_sentence)]
                block.replace_self([_copy(block, run) for run in runs])


def _is_sentence(line):
    """Whether a line is too long for a wide screen and has no columns."""
    return len(line) > _COLUMNS and not _ALIGNED.search(line)


def _copy(block, lines):
    text = "\n".join(lines).strip("\n")
    copy = nodes.literal_block(text, text, **block.attributes)
    copy["classes"] = list(block["classes"])
    if not _is_sentence(lines[0]):
        copy["classes"].append("aligned")
        longest = max((len(line) for line in lines if _ALIGNED.search(line)), default=0)
        copy["classes"] += ["wide"] * (longest > _COLUMNS)
    return copy


def setup(app):
    app.add_transform(SplitOutputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
