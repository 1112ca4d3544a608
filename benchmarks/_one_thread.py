"""Set one thread for BLAS, OpenMP and the package, so that CPU times are comparable.

Import this module before NumPy. The environment variable ``BENCHMARK_THREADS`` sets another number
of threads. Its value "default" keeps the defaults of the libraries.
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
