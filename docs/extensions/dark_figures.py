"""Give SVG figures a dark variant: black ink becomes light and white paper dark.

Furo shows images of the class ``only-light`` or ``only-dark`` by the theme of the page. Grays are
inverted, and "before", "after" and "alarm" have the lighter colors that reports have on dark paper.
Other colors of data stay, so that legends and captions remain true.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from calibrant._output import palette

_COLOR = re.compile(r"#([0-9a-fA-F]{6})\b")
_PAPER = 19  # Furo's dark background is #131416

_LIGHTER = {color.lower(): palette.DARK[name] for name, color in palette.LIGHT.items()}


def _invert(match):
    if match[0].lower() in _LIGHTER:
        return _LIGHTER[match[0].lower()]
    red, green, blue = (int(match[1][i : i + 2], 16) for i in (0, 2, 4))
    if max(red, green, blue) - min(red, green, blue) > 24:  # a color of data
        return match[0]
    level = round(_PAPER + (255 - (red + green + blue) / 3) * (225 - _PAPER) / 255)
    return f"#{level:02x}{level:02x}{level:02x}"


def darken(svg):
    """The drawing with inverted grays. Text without a color is black in a browser."""
    svg = _COLOR.sub(_invert, svg)
    return re.sub(r"(<svg\b[^>]*?)>", r'\1 fill="#e1e1e1">', svg, count=1)


class DarkFigures(SphinxPostTransform):
    """Add the dark variant after every SVG figure."""

    default_priority = 5  # before images are collected for copying
    builders = ("html",)

    def run(self, **kwargs):
        for image in list(self.document.findall(nodes.image)):
            if image["uri"].endswith(".svg") and "only-light" not in image.get("classes", []):
                image.parent.insert(image.parent.index(image) + 1, self._dark(image))
                image["classes"].append("only-light")

    def _dark(self, image):
        source = Path(self.env.srcdir) / image["uri"]
        name = f"{source.stem}-dark.svg"
        folder = Path(self.app.outdir) / "_images"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(darken(source.read_text(encoding="utf-8")), encoding="utf-8")
        depth = self.env.docname.count("/")
        text = image.get("alt", "").replace('"', "&quot;")
        html = f'<img alt="{text}" class="only-dark" src="{"../" * depth}_images/{name}" />'
        return nodes.raw("", html, format="html")


def setup(app):
    app.add_post_transform(DarkFigures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
