"""Links of pages to files beside `docs/`, as one reads them in the repository, lead to the pages
that show these files.
"""

_PAGES = {
    "../README.md": "index.md",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}


def _lead_inside(app, name, source):
    for outside, page in _PAGES.items():
        source[0] = source[0].replace(f"]({outside}", f"]({page}")


def setup(app):
    app.connect("source-read", _lead_inside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
