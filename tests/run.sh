#!/usr/bin/env bash
# Installs what tests need, builds, runs them all: bash tests/run.sh [--full] [--only STAGE[,STAGE]] [--until-minute N]
# Stages: law release unit python roles asan asan-api tsan; slow ones, with --full: clients fuzz tidy heavy.
# --until-minute begins nothing behind that minute, cuts what is slow, and lists what did not run.
# The last line is `N passed, N failed`: GoogleTest and pytest cases, and one for each file or target of the other checks.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

normal_stages=(law release unit python roles asan asan-api tsan)
slow_stages=(clients fuzz tidy heavy)

main() {
  stages=("${normal_stages[@]}")
  deadline_s=""
  while (($# > 0)); do
    case "$1" in
      --full) stages=("${normal_stages[@]}" "${slow_stages[@]}"); shift ;;
      --only) IFS=, read -ra stages <<<"${2:?--only needs a stage}"; shift 2 ;;
      --until-minute) deadline_s=$((${2:?--until-minute needs a number} * 60)); shift 2 ;;
      -h | --help) sed -n '2,5s/^# //p' "${BASH_SOURCE[0]}"; exit 0 ;;
      *) echo "tests/run.sh: unknown argument $1 (--help lists them)" >&2; exit 2 ;;
    esac
  done
  for stage in "${stages[@]}"; do
    if [[ " ${normal_stages[*]} ${slow_stages[*]} " != *" $stage "* ]]; then
      echo "tests/run.sh: no stage $stage; there are: ${normal_stages[*]} ${slow_stages[*]}" >&2
      exit 2
    fi
  done

  passed=0 failed=0 times=() not_run=() failures=()
  bold="" plain=""
  if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

  say "packages"
  deploy/install_packages.sh build test || exit 1
  jobs="$(deploy/build_jobs.sh)"
  reports="$PWD/build/reports"
  rm -rf "$reports" && mkdir -p "$reports"

  for stage in "${stages[@]}"; do run_stage "$stage"; done
  finish
}

# ---- the stages; each adds to passed and failed

stage_law() { # who may include whom, format, and what of the style is law
  ensure_venv && run_pytest law 600 tests/law
}

stage_release() { # the release build, tests and all
  build_release
}

stage_unit() { # GoogleTest binaries of the release build
  build_release || return
  run_gtests unit build/release/tests/*_test
}

stage_python() { # conformance, wire and golden tests against the release build
  build_release && ensure_venv && run_pytest python 2400 tests --ignore=tests/law -m "not full and not heavy"
}

stage_roles() { # clang proves which thread calls what
  local flags=(-std=c++20 -fsyntax-only -I. -Wthread-safety -Werror -Wno-deprecated-declarations)
  check_files roles "clang++-16 ${flags[*]}" $(find core/engine core/schedule core/kv core/model/decoder_runner.cc -name '*.cc' | sort) \
    tests/thread_roles/right_thread.cc
  # The proof that the check bites: this file breaks the rule and nothing else.
  local out
  if out="$(clang++-16 "${flags[@]}" tests/thread_roles/wrong_thread.cc 2>&1)"; then
    fail 1 "tests/thread_roles/wrong_thread.cc compiles: the thread-role check is blind"
  elif [[ "$out" == *"requires holding role 'engine_role'"* && "$out" == *"1 error generated"* ]]; then
    pass 1
  else
    fail 1 "tests/thread_roles/wrong_thread.cc fails for another reason:" "$out"
  fi
}

stage_asan() { # address and undefined-behaviour sanitizers on core, the GPU in its simulator, and the simulator of schedules
  build_targets asan '\(core_[a-z_]*\|gpu\|sim\)_test' && run_gtests asan "${targets[@]/#/build/asan/tests/}"
}

stage_asan-api() { # address sanitizer on the HTTP side, above the core of the stage before
  build_targets asan api_test && run_gtests asan-api "${targets[@]/#/build/asan/tests/}"
}

stage_tsan() { # thread sanitizer on bridge, engine and session in one binary
  build_targets tsan tsan_test && run_gtests tsan "${targets[@]/#/build/tsan/tests/}"
}

stage_clients() { # client libraries and whatever else is marked full
  build_release && ensure_venv && run_pytest clients "$(time_left 3600)" tests --ignore=tests/law -m full
}

stage_heavy() { # routers, load drivers, images, ten thousand streams: what wants a machine to itself
  build_release && ensure_venv && run_pytest heavy "$(time_left 3600)" tests --ignore=tests/law -m heavy
}

stage_fuzz() { # each target for a minute
  local seed="${QUIRE_FUZZ_SEED:-1}" target # of one tree a gate says one thing; by hand, 0 looks elsewhere each time
  build_targets fuzz '[a-z0-9_]*_fuzz' || return
  for target in "${targets[@]}"; do
    if (($(time_left 75) < 75)); then
      not_run+=("fuzz: $target")
      continue
    fi
    local corpus="build/fuzz/corpus/$target" seeds=()
    mkdir -p "$corpus"
    if [[ -d "tests/fuzz/corpus/${target%_fuzz}" ]]; then seeds=("tests/fuzz/corpus/${target%_fuzz}"); fi
    if fixed_addresses timeout 300 "build/fuzz/tests/$target" -max_total_time=60 -timeout=10 -rss_limit_mb=4096 \
      "-seed=$seed" -print_final_stats=1 "-artifact_prefix=build/fuzz/$target-" "$corpus" ${seeds[@]+"${seeds[@]}"} \
      >"$reports/$target.log" 2>&1; then
      pass 1
      echo "  $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$reports/$target.log") runs"
    else
      fail 1 "$target found something:" "$(tail -n 40 "$reports/$target.log")"
    fi
  done
}

stage_tidy() { # the short clang-tidy list on every source
  build_release || return
  check_files tidy "clang-tidy-16 --quiet -p build/release --extra-arg=-Wno-unknown-warning-option" \
    $(find core api app -name '*.cc' | sort)
}

# ---- what stages are made of

run_stage() {
  local name="$1" began=$SECONDS p=$passed f=$failed
  if [[ -n "$deadline_s" ]] && (($(time_left 90) < 90)); then
    not_run+=("$name")
    return
  fi
  say "$name: $(sed -n "s/^stage_$name() { # //p" "${BASH_SOURCE[0]}")"
  "stage_$name"
  local took=$((SECONDS - began))
  times+=("$(printf '%-9s %5d s   %d passed, %d failed' "$name" "$took" $((passed - p)) $((failed - f)))")
  echo "  $((passed - p)) passed, $((failed - f)) failed in $took s"
}

finish() {
  say "times"
  printf '  %s\n' "${times[@]}" "$(printf '%-9s %5d s' all "$SECONDS")"
  if ((${#not_run[@]} > 0)); then
    say "did not run"
    printf '  %s\n' "${not_run[@]}"
  fi
  if ((${#failures[@]} > 0)); then  # once more, and last: who has only the end of the log still learns what failed
    say "failed"
    printf '%s\n' "${failures[@]}"
  fi
  echo "$passed passed, $failed failed"
  exit $((failed > 0))
}

say() { printf '%s== %s%s\n' "$bold" "$*" "$plain"; }
pass() { passed=$((passed + $1)); }
fail() {
  failed=$((failed + $1))
  printf '  FAILED: %s\n' "$2"
  if (($# > 2)); then printf '%s\n' "${@:3}"; fi
  failures+=("$(printf '  %s\n' "${@:2}" | cut -c 1-300 | head -n 40)")
}

# Seconds until the deadline, at most $1; without a deadline $1.
time_left() {
  local left=$((${deadline_s:-999999} - SECONDS))
  if ((left > $1)); then left=$1; fi
  echo $((left > 1 ? left : 1))  # not 0: that is no limit to timeout
}

configure() {
  local log="$reports/configure-$1.log"
  if ! cmake --preset "$1" -DQUIRE_TESTS=ON >"$log" 2>&1; then
    fail 1 "cmake --preset $1" "$(tail -n 30 "$log")"
    return 1
  fi
}

build() {
  local preset="$1" log="$reports/build-$1.log" began=$SECONDS status=0
  shift
  timeout "$(time_left 7200)" ninja -C "build/$preset" -j "$jobs" -k 20 "$@" >"$log" 2>&1 || status=$?
  if ((status == 124)) && [[ "$preset" != release ]]; then
    not_run+=("the build of $preset: cut by the deadline")
    return 1
  fi
  if ((status != 0)); then
    fail 1 "the build of $preset" "$(grep -A25 -m3 '^FAILED:' "$log" || tail -n 40 "$log")"
    return 1
  fi
  echo "  built in $((SECONDS - began)) s"
}

# Builds the targets of PRESET whose names match PATTERN and leaves them in `targets`. None is a failure: nothing is tested.
build_targets() { # build_targets PRESET PATTERN
  configure "$1" || return
  mapfile -t targets < <(ninja -C "build/$1" -t targets all | sed -n "/^cmake_/d; s/^\($2\): phony\$/\1/p" | sort -u)
  if ((${#targets[@]} == 0)); then
    fail 1 "no target of the preset $1 is called $2"
    return 1
  fi
  build "$1" "${targets[@]}"
}

# Once a run. Without it nothing else makes sense: a failure ends the run.
build_release() {
  [[ "${release_built:-}" == yes ]] && return
  { configure release && build release; } || finish
  release_built=yes
}

# .venv follows tests/requirements.txt: made again when its text changes.
ensure_venv() {
  local want
  want="$(sha256sum <tests/requirements.txt)"
  [[ "$(cat .venv/requirements.sha256 2>/dev/null)" == "$want" ]] && return
  echo "  making .venv from tests/requirements.txt (about 2 minutes)"
  if ! { python3 -m venv .venv && .venv/bin/pip install -q -r tests/requirements.txt; } >"$reports/venv.log" 2>&1; then
    fail 1 "python3 -m venv .venv && .venv/bin/pip install -r tests/requirements.txt" "$(tail -n 15 "$reports/venv.log")"
    return 1
  fi
  echo "$want" >.venv/requirements.sha256
}

# Sanitizers of these compilers want less address randomness than some kernels give.
fixed_addresses() {
  if setarch "$(uname -m)" -R true 2>/dev/null; then setarch "$(uname -m)" -R "$@"; else "$@"; fi
}

run_gtests() { # run_gtests LABEL BINARY…
  local label="$1" binary report status
  shift
  for binary in "$@"; do
    [[ -x "$binary" ]] || continue
    if [[ -n "$deadline_s" ]] && (($(time_left 60) < 60)); then
      not_run+=("$label: $(basename "$binary")")
      continue
    fi
    report="$reports/$label-$(basename "$binary").xml"
    { fixed_addresses timeout "$(time_left 1200)" "$binary" --gtest_brief=1 "--gtest_output=xml:$report" </dev/null; } \
      >"${report%.xml}.log" 2>&1
    status=$?
    if ((status == 124)) && [[ -n "$deadline_s" ]] && (($(time_left 5) < 5)); then
      not_run+=("$label: $(basename "$binary"), cut by the deadline")
      continue
    fi
    if ((status != 0)); then tail -n 200 "${report%.xml}.log"; fi
    count_report "$report" "$status" "$(basename "$binary")"
  done
}

run_pytest() { # run_pytest LABEL SECONDS ARGUMENT…
  local label="$1" limit_s="$2" report="$reports/$1.xml" shared status
  shift 2
  for shared in "${QUIRE_SHARED:-}" ../shared; do
    if [[ -n "$shared" && -d "$shared" ]]; then break; fi
    shared=""
  done
  if [[ -n "$shared" ]]; then
    QUIRE_SHARED="$(realpath "$shared")"
    export QUIRE_SHARED
  else
    unset QUIRE_SHARED
  fi
  QUIRE_BUILD_DIR="$PWD/build/release" PYTHONDONTWRITEBYTECODE=1 timeout "$limit_s" .venv/bin/python -m pytest -q \
    --no-header --tb=short -rs -p no:cacheprovider -o junit_logging=system-out "--junitxml=$report" "$@" \
    </dev/null
  status=$?
  if ((status == 5)) && [[ " ${slow_stages[*]} " == *" $label "* ]]; then
    not_run+=("$label: there is no such test")
    return
  fi
  if ((status == 124)) && [[ -n "$deadline_s" && " ${slow_stages[*]} " == *" $label "* ]]; then
    not_run+=("$label: cut by the deadline")
    return
  fi
  count_report "$report" "$status" "pytest $label"
}

# Adds the cases of a JUnit-like report. A crash, a time-out or a sanitizer's exit status without a failed case is one failure.
count_report() { # count_report FILE EXIT_STATUS NAME
  local counts="" names="" p=0 f=0 s=0
  { read -r counts; names="$(cat)"; } < <(python3 - "$1" 2>/dev/null <<'PYTHON'
import sys
import xml.etree.ElementTree as tree
passed = skipped = 0
failed = []
for case in tree.parse(sys.argv[1]).iter("testcase"):
    failure = next((found for kind in ("failure", "error") if (found := case.find(kind)) is not None), None)
    if failure is not None:
        text = "\n".join(filter(None, [failure.get("message"), failure.text]))
        failed.append(f"{case.get('classname')}.{case.get('name')}\n" + "\n".join(f"  {line}" for line in text.splitlines()[-12:]))
    elif case.find("skipped") is not None or case.get("status") == "notrun" or case.get("result") == "skipped":
        skipped += 1
    else:
        passed += 1
print(passed, len(failed), skipped)
print("\n".join(failed))
PYTHON
  )
  read -r p f s <<<"${counts:-0 0 0}"
  pass "$p"
  if ((f > 0)); then fail "$f" "$3: $f cases" "$names"; fi
  if (($2 != 0 && f == 0)); then
    fail 1 "$3 ended with status $2 ($p cases had passed)" "$(tail -n 30 "${1%.xml}.log" 2>/dev/null)"
  fi
  if ((s > 0)); then echo "  $3: $s skipped"; fi
}

# Runs COMMAND on each file, one check a file, as many at once as there are jobs.
check_files() { # check_files LABEL COMMAND FILE…
  local label="$1" command="$2" log="$reports/$1.log" ok bad
  shift 2
  printf '%s\0' "$@" | timeout "$(time_left 7200)" xargs -0 -P "$jobs" -I{} bash -c \
    'if out=$('"$command"' "$1" 2>&1); then echo "ok $1"; else printf "bad %s\n%s\n" "$1" "$out"; fi' _ {} >"$log"
  ok="$(grep -c '^ok ' "$log")"
  bad="$(grep -c '^bad ' "$log")"
  pass "$ok"
  if ((bad > 0)); then fail "$bad" "$label:" "$(grep -v '^ok ' "$log" | head -n 200)"; fi
  if ((ok + bad < $#)); then not_run+=("$label: $(($# - ok - bad)) of $# files"); fi
}

main "$@"
