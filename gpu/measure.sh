#!/usr/bin/env bash
# Measures the GPU backend, from what the device can do to a server under load:
#   bash gpu/measure.sh [--device cuda|cuda:N|simulated]
# Every stage has its own time-out and writes a line of JSON when it ends; a failed stage stops no other; a table comes
# last. All options: tools/gpu_measure/measure.py --help
exec "${PYTHON:-python3}" "$(dirname "${BASH_SOURCE[0]}")/../tools/gpu_measure/measure.py" "$@"
