"""Collect doctests from all modules whose optional packages are installed.

Any other problem with an import is an error.
"""

from __future__ import annotations

from importlib.util import find_spec

_NEEDS = {
    "src/calibrant/cli": ("pyarrow", "rich", "typer"),
    "src/calibrant/io/_arrays.py": ("pyarrow",),
    "src/calibrant/io/_labels.py": ("pyarrow",),
    "src/calibrant/io/_sources.py": ("pyarrow",),
    "src/calibrant/_kernels/_numba.py": ("numba",),
    "src/calibrant/export/_onnx.py": ("onnx",),
    "src/calibrant/export/_onnx_join.py": ("onnx",),
    "src/calibrant/export/_torch.py": ("torch",),
}

collect_ignore = [path for path, packages in _NEEDS.items() if not all(map(find_spec, packages))]
