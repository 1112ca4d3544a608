"""Show the pages of a section in the sidebar only while the reader is in that section.

The manual has more pages than a sidebar should list. The first level is always there; the second
is cut for other sections, and the pages of single functions are cut everywhere.
"""

from bs4 import BeautifulSoup


def _prune(html):
    tree = BeautifulSoup(html, "html.parser")
    for item in tree.select("li.toctree-l1"):
        is_open = "current" in item.get("class", [])
        for below in item.select(
            "li.toctree-l2 > ul, li.toctree-l2 > input, li.toctree-l2 > label"
        ):
            below.decompose()
        for below in item.find_all(["ul", "input", "label"], recursive=False):
            if not is_open:
                below.decompose()
        for entry in item.select("li.toctree-l2.has-children"):
            entry["class"].remove("has-children")
        if not is_open and "has-children" in item["class"]:
            item["class"].remove("has-children")
    return str(tree)


def _cut_sidebar(app, pagename, templatename, context, doctree):
    if "furo_navigation_tree" in context:
        context["furo_navigation_tree"] = _prune(context["furo_navigation_tree"])


def setup(app):
    app.connect("html-page-context", _cut_sidebar, priority=900)  # after Furo made the tree
    return {"parallel_read_safe": True, "parallel_write_safe": True}
