#!/usr/bin/env bash
# One question to a server of its own on a private socket. usage, in the environment: ask.sh QUIRE MODEL QUESTION
set -euo pipefail
quire=$1 model=$2 question=$3
system='Answer in one sentence.' # small models wander without it
dir=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ] && kill -TERM "$server" 2>/dev/null; then wait "$server" || true; fi
  rm -rf "$dir"
}
trap finish EXIT

printf 'dev: starting the server\n' >&2
"$quire" serve --model "$model" --listen "unix:$dir/quire.sock" --http-listen 127.0.0.1:0 2>"$dir/log" &
server=$!
for _ in $(seq 300); do
  "$quire" healthcheck --addr "unix:$dir/quire.sock" --timeout 1s >/dev/null 2>&1 && break
  kill -0 "$server" 2>/dev/null || { wait "$server" || status=$?; cat "$dir/log" >&2; exit "${status:-1}"; }
  sleep 0.1
done
grep -oE 'http://[0-9.:]+/metrics' "$dir/log" | head -n 1 | sed 's|^|dev: metrics while it runs: |' >&2 || true
"$quire" generate --addr "unix:$dir/quire.sock" --chat --system "$system" --temperature 0 --stats -p "$question"
kill -TERM "$server"
wait "$server"
server=
