# Asks a server for one token, with nothing but bash: ask_for_one_token.sh HOST PORT. Ends with 0 where it gets one. The API
# key, where the server has any, is in KEY.
set -euo pipefail
exec 3<>"/dev/tcp/$1/$2"
body='{"prompt": "Once upon a time", "max_tokens": 1}'
authorization=""
[[ -z "${KEY:-}" ]] || authorization="Authorization: Bearer $KEY"$'\r\n'
printf 'POST /v1/completions HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
  "$1" "$authorization" "${#body}" "$body" >&3
answer="$(timeout 60 cat <&3)"
printf '%s\n' "$answer"
[[ "$answer" == "HTTP/1.1 200"* && "$answer" == *'"completion_tokens":1,'* ]]
