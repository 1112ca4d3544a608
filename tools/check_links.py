"""Links of the built manual: every one inside leads somewhere, and nothing is loaded from outside.

python tools/check_links.py build/docs
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
    """What is wrong with the links of the pages in a folder, one line each."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    for path, page in pages.items():
        here = path.relative_to(folder.resolve())
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loaded and parts.scheme != "data":
                    yield f"{here}: {link} is loaded from outside"
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                yield f"{here}: {link} leads nowhere"
            elif parts.fragment and target in pages and not _has(pages[target], parts.fragment):
                yield f"{here}: {link} has no such anchor"


def _has(page, fragment):
    return unquote(fragment) in page.anchors


if __name__ == "__main__":
    errors = list(problems(Path(sys.argv[1])))
    print("\n".join(errors) or "all links lead somewhere, and nothing is loaded from outside")
    sys.exit(bool(errors))
