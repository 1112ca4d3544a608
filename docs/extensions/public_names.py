"""One reference page per public class and function, and a summary table of a module.

    .. public-names:: calibrant.metrics

shows a table of the names in ``__all__``. Each name leads to a page with its documentation and the
pages of the manual that use it. The pages are written into ``docs/reference/generated``.
"""

import importlib
import inspect
import re
from pathlib import Path

from docutils.statemachine import StringList
from sphinx.domains.python import PyObject
from sphinx.ext.autosummary import Autosummary

_USED_IN = ("start", "tutorials", "guide", "howto", "concepts", "migration")
_MOST = 8  # links below a page: more would not help a reader to choose
# Bases whose methods scikit-learn documents.
_FOREIGN = "BaseEstimator, ClassifierMixin, TransformerMixin, tuple, object"


class PublicNames(Autosummary):
    """A summary table of the public names of a module."""

    has_content = False
    required_arguments = 1

    def run(self):
        module = self.arguments[0]  # the current module, so that names need no prefix
        self.content = StringList(_documented(module), source=module)
        self.options = {"toctree": "generated", "nosignatures": None}
        return super().run()


def _documented(name):
    """The public classes and functions of a module. Constants have no docstring of their own."""
    module = importlib.import_module(name)
    return [public for public in module.__all__ if callable(getattr(module, public))]


def _write_pages(app):
    docs = Path(app.srcdir)
    folder = docs / "reference" / "generated"
    folder.mkdir(exist_ok=True)
    pages = _user_pages(docs)
    written = set()
    for page in sorted((docs / "reference").glob("*.md")):
        for module in re.findall(r"public-names:: ([\w.]+)", page.read_text(encoding="utf-8")):
            for name in _documented(module):
                path = folder / f"{module}.{name}.rst"
                _write(path, _text(module, name, pages))
                written.add(path)
    for path in set(folder.glob("*.rst")) - written:
        path.unlink()


def _write(path, text):
    """Write a file if it changed, so that unchanged pages are not built again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _text(module, name, pages):
    value = getattr(importlib.import_module(module), name)
    lines = [name, "=" * len(name), "", f".. currentmodule:: {module}", ""]
    if inspect.isclass(value):
        lines += [f".. autoclass:: {name}", "   :members:", f"   :inherited-members: {_FOREIGN}"]
    else:
        lines += [f".. autofunction:: {name}"]
    used = [page for page, text in pages.items() if _uses(text, name)][:_MOST]
    if used:
        lines += ["", f"Pages that use ``{name}``", "-" * (len(name) + 19), ""]
        lines += [f"- :doc:`/{page}`" for page in used]
    return "\n".join([*lines, ""])


def _user_pages(docs):
    paths = [path for folder in _USED_IN for path in sorted((docs / folder).glob("*.md"))]
    return {
        path.relative_to(docs).with_suffix("").as_posix(): path.read_text(encoding="utf-8")
        for path in paths
    }


def _uses(text, name):
    """Whether a page calls a name, or shows it in code style."""
    return re.search(rf"(?<![\w\"']){re.escape(name)}\(|`(?:\w+\.)*{re.escape(name)}`", text)


def setup(app):
    app.setup_extension("sphinx.ext.autosummary")
    app.add_directive("public-names", PublicNames)
    app.connect("builder-inited", _write_pages)
    for field in PyObject.doc_field_types:
        if field.name == "variable":
            field.label = "Attributes"  # Sphinx calls them variables
    return {"parallel_read_safe": True, "parallel_write_safe": True}
