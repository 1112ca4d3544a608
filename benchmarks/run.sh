#!/usr/bin/env bash
# Makes the benchmarks' own environment (BENCH_VENV, default .venv-bench) and runs them: benchmarks/run.sh [options of ece.py]
set -euo pipefail
cd "$(dirname "$0")/.."

python=${BENCH_VENV:-.venv-bench}/bin/python
if [ ! -x "$python" ]; then "${PYTHON:-python3}" -m venv "${BENCH_VENV:-.venv-bench}"; fi

# One at a time: a peer that does not install must not keep out the others. The scripts say which are missing.
for peer in $(grep -v '^#' benchmarks/requirements.txt); do
  "$python" -m pip install --quiet "$peer" || echo "$peer could not be installed; the comparison goes on without it" >&2
done
"$python" -m pip install --quiet --editable .  # last, so that its own requirements hold

"$python" benchmarks/ece.py "$@"
"$python" benchmarks/memory.py
