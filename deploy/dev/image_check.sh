#!/usr/bin/env bash
# Runs an image's file system as the image says: uid 65532, read-only, its environment, the model mounted.
# usage, inside fresh mount, network and process namespaces: image_check.sh TREE MODEL
set -euo pipefail
tree=$1 model=$2 log=$(mktemp)
fail() { printf 'image check: %s\n' "$*" >&2; cat "$log" >&2; exit 1; }

python3 - <<'PY' # the loopback interface of the new network namespace
import fcntl, socket, struct
with socket.socket() as s:
    fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'lo', 0x1 | 0x40))
PY
mount --bind "$tree" "$tree"
mount --bind "$(dirname "$model")" "$tree/mnt/models"
mount -o remount,bind,ro "$tree/mnt/models"
mount -t proc proc "$tree/proc"
mount -t tmpfs tmpfs "$tree/tmp"
mount -o remount,bind,ro "$tree"

in_image() { # CMD...: what a container engine would start
  chroot --userspec=65532:65532 "$tree" env -i PATH=/usr/local/bin:/usr/bin:/bin \
    QUIRE_LISTEN=0.0.0.0:50051 QUIRE_HTTP_LISTEN=0.0.0.0:8080 QUIRE_MODEL=/mnt/models "$@"
}

status=0
in_image quire serve >"$log" 2>&1 || status=$?
[ "$status" = 78 ] || fail "without --trusted-network serve exits $status, not 78"
grep -q -- --trusted-network "$log" || fail "the refusal does not say what to add"

# SIGTERM reaches the server as process 1 of a namespace, as in a container.
unshare --pid --fork --kill-child=TERM chroot --userspec=65532:65532 "$tree" env -i PATH=/usr/local/bin:/usr/bin:/bin \
  QUIRE_LISTEN=0.0.0.0:50051 QUIRE_HTTP_LISTEN=0.0.0.0:8080 QUIRE_MODEL=/mnt/models \
  quire serve --trusted-network >"$log" 2>&1 &
outer=$!
for _ in $(seq 150); do
  in_image quire healthcheck --addr 127.0.0.1:50051 --timeout 2s >/dev/null 2>&1 && break
  kill -0 "$outer" 2>/dev/null || fail "the server ended while it was starting"
  sleep 0.2
done
in_image quire healthcheck --addr 127.0.0.1:50051 --timeout 2s >/dev/null || fail "not healthy after 30 s"
answer=$(in_image quire generate --addr 127.0.0.1:50051 --chat --system 'Answer in one sentence.' --temperature 0 -p 'What is the capital of France?') ||
  fail "the call failed"
grep -q Paris <<<"$answer" || fail "unexpected answer: $answer"
! touch "$tree/etc/written" 2>/dev/null || fail "the file system is writable"
server=$(awk -v parent="$outer" '$4 == parent {print $1; exit}' "$tree"/proc/[0-9]*/stat)
[ -n "$server" ] || fail "the server is gone"
[ "$(awk '/^Uid:/ {print $2}' "$tree/proc/$server/status")" = 65532 ] || fail "the server does not run as uid 65532"
kill -TERM "$server"
status=0
wait "$outer" || status=$?
[ "$status" = 0 ] || fail "SIGTERM ends the server with $status, not 0"
printf 'image check: %s\n' "refused without --trusted-network (78), healthy, answered: $answer, drained (0)" >&2
