#!/usr/bin/env bash
# Installs what is missing, builds, and serves: bash deploy/quickstart.sh [--model MODEL] [--host ADDRESS] [--port N]
#                                                                         [--build-only] [any flag of `quire serve`]
# Without --model it serves the small embedded model. A second run skips finished steps.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
build="$root/build/release"

model=""
host=127.0.0.1
port=8000
build_only=no
rest=()
need_value() { if (($# < 2)); then echo "quickstart: $1 needs a value" >&2; exit 2; fi; }
while (($# > 0)); do
  case "$1" in
    --model) need_value "$@"; model="$2"; shift 2 ;;
    --model=*) model="${1#*=}"; shift ;;
    --host) need_value "$@"; host="$2"; shift 2 ;;
    --host=*) host="${1#*=}"; shift ;;
    --port) need_value "$@"; port="$2"; shift 2 ;;
    --port=*) port="${1#*=}"; shift ;;
    --build-only) build_only=yes; shift ;;
    -h | --help) sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) rest+=("$1"); shift ;;
  esac
done

bold=""; plain=""
if [[ -t 1 && -z "${NO_COLOR:-}" ]]; then bold=$'\e[1m'; plain=$'\e[0m'; fi
say() { printf '%s%s%s\n' "$bold" "$*" "$plain"; }

say "[1/3] packages"
"$root/deploy/install_packages.sh" build

jobs="$("$root/deploy/build_jobs.sh")"
log="$build/quickstart.log"
mkdir -p "$build"
quietly() {
  if ! "$@" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "quickstart: the build failed; all of its output is in $log" >&2
    exit 1
  fi
}
if [[ ! -x "$build/quire" ]]; then
  say "[2/3] building (about six minutes the first time on two cores, $jobs jobs)"
else
  say "[2/3] building what changed"
fi
in_root() (cd "$root" && "$@")
if [[ ! -f "$build/build.ninja" ]]; then
  quietly in_root cmake --preset release -DQUIRE_TESTS=OFF
fi
if [[ -t 1 ]]; then
  NINJA_STATUS='      [%f/%t] ' ninja -C "$build" -j "$jobs" quire
else
  quietly ninja -C "$build" -j "$jobs" quire
fi
if [[ "$build_only" == yes ]]; then
  say "[3/3] built: build/release/quire"
  exit 0
fi

say "[3/3] serving ${model:-the embedded model} on http://$host:$port; an example curl follows when it is ready"
exec "$build/quire" serve ${model:+"$model"} --host "$host" --port "$port" ${rest[@]+"${rest[@]}"}
