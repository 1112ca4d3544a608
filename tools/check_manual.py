"""Check the size of the built manual: entries of the sidebar, and words of the user pages.

python tools/check_manual.py build/docs
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
MOST_ENTRIES = 60  # a longer list is hard to scan
MOST_WORDS = 40_000  # of the user pages, without code
USER_FOLDERS = ("start", "tutorials", "guide", "howto", "concepts", "migration")


class _Sidebar(HTMLParser):
    """Counts the links of the navigation tree."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.entries, self._depth = 0, 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "div" and (self._depth or "sidebar-tree" in (dict(attrs).get("class") or "")):
            self._depth += 1
        self.entries += tag == "a" and self._depth > 0

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._depth:
            self._depth -= 1


def longest_sidebar(folder: Path) -> tuple[int, str]:
    """Return the largest number of sidebar entries of a page, and that page."""
    counts = [
        (_Sidebar(path.read_text(encoding="utf-8")).entries, str(path.relative_to(folder)))
        for path in folder.rglob("*.html")
        if "samples" not in path.parts
    ]
    return max(counts)


def user_words() -> int:
    """Count the words of the user pages without code, outputs and tables of contents."""
    paths = [DOCS / "index.md", *(p for name in USER_FOLDERS for p in (DOCS / name).glob("*.md"))]
    texts = (path.read_text(encoding="utf-8") for path in paths)
    return sum(
        len(re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL).split()) for text in texts
    )


def main() -> int:
    entries, page = longest_sidebar(Path(sys.argv[1]))
    words = user_words()
    print(f"sidebar: at most {entries} entries ({page}), user pages: {words:,} words")
    return int(entries > MOST_ENTRIES or words > MOST_WORDS)


if __name__ == "__main__":
    sys.exit(main())
