"""Imported before NumPy: one thread for BLAS, OpenMP and the package, so that CPU times compare.

``BENCHMARK_THREADS`` in the environment says otherwise: a number, or "default" for what a user gets
who says nothing.
"""

import os

for _name in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CALIBRANT_NUM_THREADS",
):
    os.environ[_name] = os.environ.get("BENCHMARK_THREADS", "1")
    if os.environ[_name] == "default":
        del os.environ[_name]
