#!/usr/bin/env bash
# The image's HEALTHCHECK: ends with 0 if the server's /health answers 200, else with 1: 503 while the model is downloaded or
# loaded, during shutdown and after a fault. Prints the answer's body, which `docker inspect` shows. Needs no API key.
# The port is QUIRE_ADMIN_PORT, QUIRE_PORT or 8000: change ports by these variables, not by flags. The port of clients speaks
# TLS where a certificate is set: the admin port does not.
set -euo pipefail
port="${QUIRE_PORT:-8000}"
if [[ "${QUIRE_ADMIN_PORT:-auto}" =~ ^[1-9][0-9]*$ ]]; then port="$QUIRE_ADMIN_PORT"; fi
exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
answer="$(timeout 5 cat <&3)"
printf '%s\n' "${answer##*$'\r\n'}"
[[ "$answer" == "HTTP/1.1 200 "* ]] || exit 1
