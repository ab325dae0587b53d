# Sends SIGHUP to the server whenever a file of these directories has changed: reload_secrets.sh SECONDS DIRECTORY…
# It runs beside the server, as the same user, and sees its processes. Kubernetes changes a Secret's files all at once.
set -euo pipefail
period="$1"
shift
sums() { for directory in "$@"; do sha256sum "$directory"/*; done; }

last="$(sums "$@")"
while sleep "$period"; do
  now="$(sums "$@")" || continue
  [[ "$now" != "$last" ]] || continue
  last="$now"
  for process in /proc/[0-9]*; do
    [[ "$(cat "$process/comm" 2>/dev/null)" == quire ]] || continue
    kill -HUP "${process#/proc/}" && echo "files have changed: sent SIGHUP to process ${process#/proc/}"
  done
done
