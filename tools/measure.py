"""Print the size and the structure of the package: ``python tools/measure.py [-v] [PACKAGE]``.

PACKAGE is the source folder, by default ``src/calibrant``. The script prints each figure with its
definition and has no limits. With ``-v`` it also lists the counted items.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

DATA_KINDS = {
    *("ArraySample", "ChunkedSample", "PartedSample", "TopSample", "LiftedRows", "ChunkedRows"),
    *("TopPredictions", "TopScores", "ChunkedScores", "PartedScores", "BlockScores", "RowBlocks"),
    *("ScoreParts", "MappedParts", "DaskSource", "ScoreFile", "TopFile", "PassedFile"),
    *("FilePredictions",),
}
"""Types of data. An isinstance call that names one of them is a type branch."""

PREDICATES = {"is_parted", "is_chunked", "is_dask", "is_in_memory", "is_top_scores"}
"""Functions and attributes that distinguish types of data. Each use is a type branch."""

LONG_MODULE, LONG_FUNCTION = 450, 45
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A source file: its name, its syntax tree and its lines by kind."""

    def __init__(self, path: Path, root: Path) -> None:
        self.parts = path.relative_to(root).with_suffix("").parts
        self.name = ".".join(self.parts)
        self.text = path.read_text(encoding="utf-8")
        self.nodes = list(ast.walk(ast.parse(self.text)))
        self.tokens = list(tokenize.generate_tokens(io.StringIO(self.text).readline))

    @cached_property
    def docstrings(self) -> set[int]:
        """Return lines of strings that are statements, such as docstrings."""
        texts = [node for node in self.nodes if isinstance(node, ast.Expr)]
        return {
            line
            for node in texts
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, (node.end_lineno or 0) + 1)
        }

    @cached_property
    def comments(self) -> set[int]:
        """Return lines that contain a comment."""
        return {token.start[0] for token in self.tokens if token.type == tokenize.COMMENT}

    @cached_property
    def n_lines(self) -> int:
        """Return lines that are neither blank nor part of a docstring."""
        lines = enumerate(self.text.splitlines(), start=1)
        return sum(bool(line.strip()) and i not in self.docstrings for i, line in lines)

    @cached_property
    def n_code(self) -> int:
        """Return lines of code: `n_lines` without lines that contain only a comment."""
        lines = self.text.splitlines()
        return self.n_lines - sum(lines[i - 1].lstrip().startswith("#") for i in self.comments)

    def functions(self) -> Iterator[tuple[str, int]]:
        """Yield the name of each function or method, and its lines without the docstring."""
        for node in self.nodes:
            if isinstance(node, Function):
                lines = set(range(node.lineno, (node.end_lineno or 0) + 1))
                yield f"{self.name}:{node.name}", len(lines - self.docstrings)

    def branches(self) -> Iterator[str]:
        """Yield type branches with their lines."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                if node.attr in PREDICATES:
                    yield f"{self.name}:{node.lineno} .{node.attr}"
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                named = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
                kinds = named & DATA_KINDS if node.func.id == "isinstance" else set()
                if kinds or node.func.id in PREDICATES:
                    yield f"{self.name}:{node.lineno} {' '.join([node.func.id, *kinds])}"

    def methods(self, name: str = "Calibrator") -> Iterator[str]:
        """Count the functions in the body of a class."""
        for node in self.nodes:
            if isinstance(node, ast.ClassDef) and node.name == name:
                yield from (item.name for item in node.body if isinstance(item, Function))

    def private_imports(self) -> Iterator[str]:
        """Yield imports from a private module of another subpackage."""
        for node in self.nodes:
            path = (node.module or "").split(".") if isinstance(node, ast.ImportFrom) else []
            is_private = len(path) > 2 and path[0] == "calibrant" and path[2].startswith("_")
            if is_private and path[1] != self.parts[0]:
                yield f"{self.name} <- {'.'.join(path)}"


def summarize(sizes: list[tuple[str, int]], limit: int) -> str:
    """Return the median, the 90% quantile and the maximum, and the items above the limit."""
    ordered = sorted(size for _, size in sizes)
    quantiles = [str(ordered[int(share * (len(ordered) - 1))]) for share in (0.5, 0.9, 1.0)]
    large = [f"{name} {size}" for name, size in sizes if size > limit]
    return f"{'/'.join(quantiles)} (above {limit}: {', '.join(large) or 'none'})"


def figures(modules: list[Module]) -> dict[str, object]:
    """Return all figures by their definitions."""
    n_code = sum(module.n_code for module in modules)
    n_comments = sum(len(module.comments) for module in modules)
    module_sizes = [(module.name, module.n_lines) for module in modules]
    function_sizes = [size for module in modules for size in module.functions()]
    return {
        "files": len(modules),
        "code lines, without docstrings, comments and blank lines": n_code,
        "type branches: isinstance of a data type, uses of is_chunked and the like": sum(
            len(list(module.branches())) for module in modules
        ),
        "methods in the body of Calibrator, with properties and class methods": sum(
            len(list(module.methods())) for module in modules
        ),
        "imports from calibrant.X._y outside of X": sum(
            len(list(module.private_imports())) for module in modules
        ),
        "lines of a module without docstrings and blank lines, median/p90/max": summarize(
            module_sizes, LONG_MODULE
        ),
        "lines of a function with its signature, without its docstring, median/p90/max": summarize(
            function_sizes, LONG_FUNCTION
        ),
        "modules and subpackages in the root, without __init__": len(
            {module.parts[0] for module in modules} - {"__init__"}
        ),
        "lines with a comment per 100 code lines": round(100 * n_comments / n_code, 1),
    }


def main() -> None:
    source = Path(__file__).resolve().parent.parent / "src" / "calibrant"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("package", nargs="?", type=Path, default=source)
    parser.add_argument("-v", "--verbose", action="store_true", help="list the counted items")
    options = parser.parse_args()
    paths = sorted(options.package.rglob("*.py"))
    modules = [Module(path, options.package) for path in paths]
    print("\n".join(f"{name}: {value}" for name, value in figures(modules).items()))
    if options.verbose:
        print(*(name for module in modules for name in module.branches()), sep="\n")
        print(*(name for module in modules for name in module.private_imports()), sep="\n")


if __name__ == "__main__":
    main()
