"""Check the links of the built manual.

    python tools/check_links.py build/docs

Every internal link must have a target, and pages must not load external files.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src")}
_NOT_LOADED = {"canonical", "next", "prev", "search", "index"}


class Page(HTMLParser):
    """Anchors, links and loaded files of a page."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        for key in ("src", "href"):
            if (tag, key) in _LOADED and values.get(key) and values.get("rel") not in _NOT_LOADED:
                self.loaded.append(values[key])


def problems(folder):
    """Yield one line per problem with the links of the pages in a folder."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        here = path.relative_to(folder.resolve())
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield f"{here}: {link} is loaded from an external address"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{here}: {link} has no target"
            elif parts.fragment and target in pages and not _has(pages[target], parts.fragment):
                yield f"{here}: {link} has an anchor that does not exist"


def _has(page, fragment):
    return unquote(fragment) in page.anchors


if __name__ == "__main__":
    errors = list(problems(Path(sys.argv[1])))
    print("\n".join(errors) or "All links have targets, and no external files are loaded.")
    sys.exit(bool(errors))
