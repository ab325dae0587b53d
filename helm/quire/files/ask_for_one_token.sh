# Asks a server for one token, with nothing but bash: ask_for_one_token.sh HOST PORT [CERTIFICATE]. Ends with 0 where it gets
# one. The API key, where the server has any, is in KEY. With a file CERTIFICATE it asks through openssl, and the server has to
# show that certificate or one that it signed; with - for CERTIFICATE, whichever the server shows will do.
set -euo pipefail
body='{"prompt": "Once upon a time", "max_tokens": 1}'
authorization=""
[[ -z "${KEY:-}" ]] || authorization="Authorization: Bearer $KEY"$'\r\n'
request() {
  printf 'POST /v1/completions HTTP/1.1\r\nHost: %s\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
    "$1" "$authorization" "${#body}" "$body"
}
if (($# < 3)); then
  exec 3<>"/dev/tcp/$1/$2"
  request "$1" >&3
  answer="$(timeout 60 cat <&3)"
else
  trust=()
  [[ ! -f "$3" ]] || trust=(-CAfile "$3" -partial_chain -verify_return_error)
  answer="$(request "$1" | timeout 60 openssl s_client -quiet -connect "$1:$2" -servername "$1" "${trust[@]}")"
fi
printf '%s\n' "$answer"
[[ "$answer" == "HTTP/1.1 200"* && "$answer" == *'"completion_tokens":1,'* ]]
