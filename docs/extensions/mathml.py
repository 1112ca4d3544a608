"""Formulas as MathML, which browsers show without a script or a font from elsewhere."""

import re

from docutils.nodes import SkipNode
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)
_OTHER_NAMES = {r"\\dots\b": r"\\ldots", r"\\[Bb]ig[lr]?(?![A-Za-z])": ""}
"""Commands that docutils knows by another name only, or not at all and can do without."""


def _formula(node, as_block):
    tex = node.astext()
    for command, known in _OTHER_NAMES.items():
        tex = re.sub(command, known, tex)
    try:
        return tex2mathml(tex, as_block=as_block)
    except MathError as error:
        logger.warning("%s in %r", error, tex, location=node)
        return tex


def _inline(writer, node):
    writer.body.append(_formula(node, as_block=False))
    raise SkipNode


def _block(writer, node):
    # Wide formulas are scrolled, by keyboard too, and do not widen the page.
    formula = _formula(node, as_block=True)
    writer.body.append(f'<div class="math" role="math" tabindex="0">{formula}</div>')
    raise SkipNode


def setup(app):
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
