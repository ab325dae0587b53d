#!/usr/bin/env bash
# Installs what tests need, builds, runs them all: bash tests/run.sh [--full | --gate | --changed] [--only STAGE[,STAGE]] [--until-minute N]
# `bash tests/run.sh --help` says more. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
case " $* " in
  *" --help "* | *" -h "*) ;;
  *) deploy/install_packages.sh build test ;;
esac
exec python3 tests/gate/gate.py "$@"
