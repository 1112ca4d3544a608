"""Measure the plan of the house from its source: units, edges, sizes, homes of concepts, files to
touch.

    python docs/measure_house.py                                 # prints the table
    python docs/measure_house.py --write                         # puts it into architecture.md
    python docs/measure_house.py before=PATH after=PATH          # other trees, or saved figures
    python docs/measure_house.py --save docs/house-x.json x=PATH # keeps figures of a tree

A tree is the folder of the package, with ``tests`` and ``README.md`` two levels above it. Code is
compared as `ast.unparse` writes it, without docstrings and comments, so that neither prose nor the
breaking of lines counts. Patterns of `CONCEPTS` describe lines of code, some of them by name:
whoever renames such a function follows here.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "architecture.md"
DEFAULT = (f"0.1.0={DOCS / 'house-0.1.0.json'}", f"now={DOCS.parent / 'src' / 'calibrant'}")
MARKS = ("<!-- measured by docs/measure_house.py -->", "<!-- end of measured -->")
WRITTEN_BY_SCRIPT = r"(?s)<!-- written by .*?<!-- end of written -->"
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Concept(NamedTuple):
    """What should have one home, the room that is it, and how a line of code that does it reads."""

    name: str
    home: str
    pattern: str


CONCEPTS = (
    Concept(
        "turns checked scores into probabilities",
        "_simplex",
        r"(?<![\w.])softmax\((finite_logits\(|finite\)|scores\))",
    ),
    Concept(
        "takes the entry of the true class",
        "_simplex",
        r"\[(np\.arange\(len\([\w.]+\)\)|rows|index), (\w+\.)*y(\[\w+\])?\](?! [-+]=)",
    ),
    Concept(
        "gives each row its log-loss or Brier score",
        "_simplex",
        r"-log_floored\((\w+\[|true_class)|einsum\('ij,ij->i', residual, residual\)"
        r"|square - 2\.0 \* (true_class|\w+)",
    ),
    Concept("cuts folds", "_folds", r"def (as_folds|random_folds|deal_folds|_splits)\("),
    Concept(
        "fits a clone on the other folds and predicts",
        "_crossfit",
        r"def (fit_fold|fold_maps|_?out_of_fold)\((?!self, data: _Data)",
    ),
    Concept(
        "asks a notion for the claims of raw input",
        "notions",
        r"check_predictions\(.*sum_to_one=(?!True|False)",
    ),
    Concept(
        "averages over claims with the weights v_c",
        "notions",
        r"\.sum\(\) \* (\w+\.)*n_quantities",
    ),
    Concept(
        "names a claim",
        "notions",
        r"def (_said|claim_names?|claim_text)\(|'top class \(confidence\)'|function sentence\(",
    ),
    Concept(
        "names a metric, or knows whether greater is better",
        "metrics/_registry",
        r"'conf_ece':|Metric\('conf_ece'|_GREATER_IS_BETTER = ",
    ),
    Concept(
        "warns that a fit did not converge", "base", r"warnings\.warn\(.*\bConvergenceWarning\b"
    ),
    Concept("shows progress", "_output", r"from rich\.progress import|_import_rich\(\)"),
    Concept(
        "shortens a list of names for a message",
        "_validation",
        r", \.\.\.[',]|\} more'",
    ),
    Concept(
        "sets a memory budget of a block",
        "_blocks",
        r"(?m)^_?[A-Z_]*(ELEMENTS|SLOTS|AT_ONCE)(: \w+)? = .*\d",
    ),
    Concept("makes a Markdown table", "report/_markdown", r"'\| ' \+ ' \| '\.join"),
)

# What names all of these has to be touched when another one is added.
CALIBRATORS = (
    ("BayesianBinning", "bbq"),
    ("SplineCalibration", "spline"),
    ("VectorScaling", "vector"),
    ("EnsembleTemperatureScaling", "ensemble-temperature"),
)
METRICS = (("ks_error", "ks"), ("overconfidence",), ("log_loss",))
NOTIONS = (("RankNotion",), ("ClassNotion",), ("WithinTopNotion",))


class Module:
    """One file of a tree: its text, its syntax tree, and its code without docstrings."""

    def __init__(self, path: Path, root: Path) -> None:
        self.parts = path.relative_to(root).with_suffix("").parts
        self.name = "/".join(self.parts)
        self.text = path.read_text(encoding="utf-8")

    @property
    def unit(self) -> str:
        """The root module or package that it belongs to; empty for the package's own file."""
        return "" if self.name == "__init__" else self.parts[0]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def docstring_lines(self) -> set[int]:
        """Numbers of the lines of all docstrings, also those that stand below a constant."""
        return {
            line
            for node in ast.walk(self.tree)
            if is_text(node)
            for line in range(node.lineno, node.end_lineno + 1)
        }

    @cached_property
    def code(self) -> str:
        """The code as `ast.unparse` writes it, without texts that stand alone."""
        return ast.unparse(WithoutTexts().visit(ast.parse(self.text)))

    @cached_property
    def words(self) -> set[str]:
        """What it imports and defines, and the words of its texts but for docstrings."""
        return {word for node in ast.walk(ast.parse(self.code)) for word in words_of(node)}

    @cached_property
    def is_door(self) -> bool:
        """Whether it defines nothing: a public path to what stands elsewhere."""
        allowed = ast.Import | ast.ImportFrom | ast.Expr
        return all(
            isinstance(node, allowed) or ast.unparse(node).startswith("__all__")
            for node in self.tree.body
        )

    def functions(self) -> Iterator[Function]:
        return (node for node in ast.walk(self.tree) if isinstance(node, Function))

    def size(self, node: Function) -> int:
        """Lines of a function without its docstring."""
        lines = set(range(node.lineno, node.end_lineno + 1))
        return len(lines - self.docstring_lines)

    def n_comments(self) -> int:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return sum(token.type == tokenize.COMMENT for token in tokens)

    def imports(self) -> Iterator[str]:
        """Dotted names below the package that it imports, wherever in the file."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


class WithoutTexts(ast.NodeTransformer):
    """Removes texts that stand alone: docstrings, and those below constants."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:  # the name that ast calls
        return ast.Pass() if is_text(node) else node


def is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def words_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.alias | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from re.split(r"[ ,]+", node.value)


def quantiles(values: Iterable[int]) -> list[int]:
    """Median, nine tenths and largest."""
    ordered = sorted(values)
    return [ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.9, 1.0)]


def measure(root: Path) -> dict[str, Any]:
    """All figures of a tree."""
    modules = [Module(path, root) for path in sorted(root.rglob("*.py"))]
    return {
        **plan(modules),
        **sizes(modules),
        "homes": {concept.name: homes(concept, modules, root) for concept in CONCEPTS},
        "touched": touched(modules, root),
    }


def plan(modules: list[Module]) -> dict[str, Any]:
    """Units, edges between them, private units."""
    units = {module.unit for module in modules} - {""}
    doors = {module.unit for module in modules if len(module.parts) == 1 and module.is_door} - {""}
    edges = {
        (module.unit, target)
        for module in modules
        for name in module.imports()
        if module.unit and (target := unit_of(name)) in units and target != module.unit
    }
    private = [unit for unit in units if unit.startswith("_") and unit != "__main__"]
    return {
        "all units": len(units),
        "units": len(units - doors),
        "edges": len(edges),
        "private units": len(private),
    }


def unit_of(name: str) -> str:
    package, _, rest = name.partition(".")
    return rest.partition(".")[0] if package == "calibrant" else ""


def sizes(modules: list[Module]) -> dict[str, Any]:
    functions = [(module, node) for module in modules for node in module.functions()]
    n_lines = sum(len(module.text.splitlines()) for module in modules)
    n_annotated = sum(is_annotated(node) for _, node in functions)
    return {
        "files": len(modules),
        "function lines": quantiles(module.size(node) for module, node in functions),
        "module lines": quantiles(
            len(module.text.splitlines()) - len(module.docstring_lines) for module in modules
        ),
        "annotated": n_annotated / len(functions),
        "comments": 100 * sum(module.n_comments() for module in modules) / n_lines,
        "docstrings": sum(len(module.docstring_lines) for module in modules) / n_lines,
    }


def is_annotated(node: Function) -> bool:
    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    named = [argument for argument in given if argument.arg not in ("self", "cls")]
    return node.returns is not None and all(argument.annotation for argument in named)


def homes(concept: Concept, modules: list[Module], root: Path) -> list[str]:
    """Places where such code stands; all files of its room are one place."""
    texts = {module.name: module.code for module in modules}
    texts |= {
        str(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in root.rglob("static/report.js")
    }
    found = [name for name, text in texts.items() if re.search(concept.pattern, text)]
    return sorted({concept.home if is_in(name, concept.home) else name for name in found})


def is_in(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}/")


def touched(modules: list[Module], root: Path) -> dict[str, list[str]]:
    """Files that name all examples of a kind, and the file of the new thing itself where it has
    one. The two folders of calibrators are one place; what a script writes is not touched.
    """
    words: dict[str, set[str]] = {}
    for module in modules:
        place = re.sub(r"^(binary|multiclass)/__init__$", "its folder", module.name)
        words[place] = words.get(place, set()) | module.words
    for path in ("tests/calibrators.py", "README.md"):
        text = (root.parent.parent / path).read_text(encoding="utf-8")
        words[path] = set(re.findall(r"[\w-]+", re.sub(WRITTEN_BY_SCRIPT, "", text)))
    return {
        "calibrator": ["its file", *naming(CALIBRATORS, words)],
        "metric": ["its file", *naming(METRICS, words)],
        "notion": naming(NOTIONS, words),
    }


def naming(examples: tuple[tuple[str, ...], ...], words: dict[str, set[str]]) -> list[str]:
    return sorted(
        name for name, found in words.items() if all(found & set(each) for each in examples)
    )


def table(figures: dict[str, dict[str, Any]]) -> str:
    """The page's table: one column a tree, the bar beside it."""
    lines = [["", *figures, "bar"], ["---"] * (len(figures) + 2)]

    def add(title: str, bar: str, *path: str, form: str = "{}") -> None:
        values = []
        for tree in figures.values():
            value: Any = tree
            for key in path:
                value = value[key]
            values.append(shown(value, form))
        lines.append([title, *values, bar])

    add("units (root modules and packages)", "", "all units")
    add("units without doors (modules that only import)", "30", "units")
    add("edges between units", "", "edges")
    add("private units", "11", "private units")
    add("files", "", "files")
    add("lines of a function: median / p90 / largest", "", "function lines")
    add("lines of a module: median / p90 / largest", "", "module lines")
    add("functions fully annotated", "", "annotated", form="{:.0%}")
    add("comments per 100 lines", "", "comments", form="{:.1f}")
    add("share of docstrings", "", "docstrings", form="{:.0%}")
    for concept in CONCEPTS:
        add(f"homes: {concept.name}", "1", "homes", concept.name)
    for kind, bar in (("calibrator", "5"), ("metric", "3"), ("notion", "3")):
        add(f"files to touch for a {kind}, its own test aside", bar, "touched", kind)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def shown(value: Any, form: str) -> str:
    if isinstance(value, list) and value and isinstance(value[0], int):
        return " / ".join(map(str, value))
    return str(len(value)) if isinstance(value, list) else form.format(value)


def read(argument: str) -> tuple[str, dict[str, Any]]:
    """``name=tree`` or ``name=figures.json``."""
    name, _, path = argument.partition("=")
    if path.endswith(".json"):
        return name, json.loads(Path(path).read_text())
    return name, measure(Path(path))


def places(figures: dict[str, Any]) -> str:
    """Where the counted places are, for the one who wants to make them fewer."""
    counted = {**figures["homes"], **{f"add a {k}": v for k, v in figures["touched"].items()}}
    return "\n".join(f"{len(v):3}  {name}: {', '.join(v)}" for name, v in counted.items())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trees", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--write", action="store_true", help="put the table into architecture.md")
    parser.add_argument("--save", type=Path, help="keep the figures of the last tree as JSON")
    given = parser.parse_args()
    figures = dict(map(read, given.trees or DEFAULT))
    last = list(figures.values())[-1]
    if given.save:
        given.save.write_text(json.dumps(last, indent=1) + "\n")
    if given.write:
        page = PAGE.read_text(encoding="utf-8")
        start, end = (page.index(mark) for mark in MARKS)
        made = f"{page[: start + len(MARKS[0])]}\n\n{table(figures)}\n\n{page[end:]}"
        PAGE.write_text(made, encoding="utf-8")
    print(table(figures), places(last), sep="\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
