#!/usr/bin/env bash
# Installs the Debian packages that are missing: deploy/install_packages.sh build|run|test…
# The list is deploy/packages.txt. Without permission to install, it prints the command to run and exits with 1.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

wanted=()
for section in "$@"; do
  while IFS= read -r package; do
    wanted+=("$package")
  done < <(awk -v want="[$section]" '/^\[/ { inside = ($1 == want); next } inside && NF && $1 !~ /^#/ { print $1 }' \
    "$here/packages.txt")
done
if ((${#wanted[@]} == 0)); then
  echo "usage: deploy/install_packages.sh build|run|test…" >&2
  exit 2
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "This script installs Debian 12 packages, and there is no apt-get here." >&2
  echo "Install the packages in deploy/packages.txt with your system's package manager, then run: cmake --preset release && ninja -C build/release" >&2
  exit 1
fi

installed="$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)"
missing=()
for package in "${wanted[@]}"; do
  grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
done
((${#missing[@]} == 0)) && exit 0

echo "      missing: ${missing[*]}"
as_root=()
if [[ "$(id -u)" != 0 ]]; then as_root=(sudo -n); fi
stop() {
  echo "$1 Run this, then start again:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
}
if ((${#as_root[@]} > 0)) && ! sudo -n true 2>/dev/null; then
  stop "Packages are missing and this user may not install them."
fi

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=120 "$@" >"$log" 2>&1
}
known() { [[ "$(apt-cache madison "${missing[@]}" 2>/dev/null | awk '{ print $1 }' | sort -u | wc -l)" == "${#missing[@]}" ]]; }

echo "      installing them with apt-get"
known || apt update || true
if ! apt install --no-install-recommends "${missing[@]}"; then
  # The lists may be older than the archive: once more with fresh ones.
  if ! { apt update && apt install --no-install-recommends "${missing[@]}"; }; then
    tail -n 15 "$log" >&2
    stop "apt-get could not install them (its last lines are above)."
  fi
fi
