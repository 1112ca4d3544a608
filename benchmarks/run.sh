#!/usr/bin/env bash
# Makes the benchmarks' own environment (BENCH_VENV, default .venv-bench) and runs every script:
#   benchmarks/run.sh [options of ece.py]
# A script that fails, or whose bar is not met, does not keep out the others; the run then ends with exit code 1.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${BENCH_VENV:-.venv-bench}/bin/python
if [ ! -x "$python" ]; then "${PYTHON:-python3}" -m venv "${BENCH_VENV:-.venv-bench}"; fi

# One at a time: a peer that does not install must not keep out the others. The scripts say which are missing.
for peer in $(grep -v '^#' benchmarks/requirements.txt); do
  "$python" -m pip install --quiet "$peer" || echo "$peer could not be installed; the comparison goes on without it" >&2
done
"$python" -m pip install --quiet --editable ".[cli]"  # last, so that its own requirements hold

failed=()
run() {
  echo "== $*"
  "$python" "$@" || failed+=("$1")
}

run benchmarks/ece.py "$@"
run benchmarks/scaling.py
run benchmarks/gaussian_process.py
run benchmarks/consistency.py
run benchmarks/promises.py
run benchmarks/speed.py --quick
run benchmarks/cli.py
run benchmarks/memory.py
run benchmarks/llm_logs.py --lines 100_000 --splits 1
run benchmarks/cluster.py --rows 40_000

# On real predictions.
data=${CALIBRANT_DATA:-../shared/data}
if [ -d "$data" ]; then
  for paper in gupta_ramdas_2022 gupta_2021 wenger_2020 kull_2019 kull_2019_uci; do
    run "benchmarks/papers/$paper.py" --quick --data "$data"
  done
  run benchmarks/do_no_harm.py --data "$data"
else
  echo "no real predictions in $data: papers/ and do_no_harm.py are left out"
fi

if [ "${#failed[@]}" -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
