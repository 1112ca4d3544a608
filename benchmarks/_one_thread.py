"""Imported before NumPy: one thread for BLAS, OpenMP and the package, so that CPU times compare."""

import os

for _name in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "CALIBRANT_NUM_THREADS",
):
    os.environ[_name] = "1"
