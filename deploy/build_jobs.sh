#!/usr/bin/env bash
# The number of compilers to run at once: one per core, with 2 GB of memory each (coroutine units need it).
set -euo pipefail
cores="$(nproc)"
by_memory="$(awk '/^MemAvailable:/ { print int($2 / 2000000) }' /proc/meminfo)"
jobs="$cores"
if ((by_memory < jobs)); then jobs="$by_memory"; fi
if ((jobs < 1)); then jobs=1; fi
echo "$jobs"
