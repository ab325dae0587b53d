#!/usr/bin/env bash
# Runs every scenario and makes docs/scenarios anew, figures, plots and tables: loadtest/run_scenarios.sh [--steps-only]
# --steps-only leaves what takes the time (max-batch, prefix, schedule_bench) as it is: the others are the same everywhere.
# Takes build/release, or QUIRE_BUILD_DIR; run nothing else meanwhile. PYTHON is one with loadtest/requirements.txt.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build="${QUIRE_BUILD_DIR:-build/release}"
quire="$build/quire"
python="${PYTHON:-python3}"
out=docs/scenarios
scenarios=(utilisation waste preemption policies)
case "${1:-}" in
  "") scenarios+=(max-batch prefix) timed=yes ;;
  --steps-only) timed="" ;;
  *) sed -n '2,4s/^# //p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
if [[ ! -x "$quire" || ! -x "$quire-bench" ]]; then
  echo "There is no $quire or no $quire-bench: cmake --preset release && ninja -C build/release quire quire-bench" >&2
  exit 1
fi

mkdir -p "$out"
for scenario in "${scenarios[@]}"; do
  echo "== $scenario"
  "$quire" bench --scenario "$scenario" --runs 5 --csv "$out/$scenario.csv"
done
if [[ -z "$timed" ]]; then
  exec "$python" loadtest/report.py
fi

cpu="$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
echo "$(nproc) processors of ${cpu:-an unknown kind}" >"$out/machine.txt"
if [[ ! -x "$build/tests/schedule_bench" ]]; then
  echo "There is no $build/tests/schedule_bench (it needs libbenchmark-dev): step-cost.csv stays as it is." >&2
  exec "$python" loadtest/report.py
fi
echo "== schedule_bench"
json="$(mktemp)"
trap 'rm -f "$json"' EXIT
"$build/tests/schedule_bench" --benchmark_min_time=0.3 --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
  "--benchmark_out=$json" --benchmark_out_format=json
"$python" loadtest/report.py --step-cost "$json"
