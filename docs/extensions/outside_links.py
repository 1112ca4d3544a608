"""Lead links to files outside `docs/`, which work in the repository, to pages of the manual."""

import posixpath

_PAGES = {
    "../README.md": "index.md",
    "../CONTRIBUTING.md": "development/contributing.md",
    "../CHANGELOG.md": "development/changelog.md",
}


def _lead_inside(app, name, source):
    folder = posixpath.dirname(name) or "."
    for outside, page in _PAGES.items():
        old, new = (posixpath.relpath(target, folder) for target in (outside, page))
        source[0] = source[0].replace(f"]({old}", f"]({new}")


def setup(app):
    app.connect("source-read", _lead_inside)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
