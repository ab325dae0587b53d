# Asks a server for one token, with nothing but bash: ask_for_one_token.sh HOST PORT. Ends with 0 where it gets one.
set -euo pipefail
exec 3<>"/dev/tcp/$1/$2"
body='{"prompt": "Once upon a time", "max_tokens": 1}'
printf 'POST /v1/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
  "$1" "${#body}" "$body" >&3
answer="$(timeout 60 cat <&3)"
printf '%s\n' "$answer"
[[ "$answer" == "HTTP/1.1 200"* && "$answer" == *'"completion_tokens":1,'* ]]
