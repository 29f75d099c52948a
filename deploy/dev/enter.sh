#!/usr/bin/env bash
# Inside a private mount namespace: binds what the root shares with the host, then runs "$@" in it.
# From root.sh: ROOT, CWD, BINDS (one folder a line), HOST_CA, INSTALL (1 while packages are installed).
set -euo pipefail

# shellcheck disable=SC2153
# "/" of the chroot must be a mount point: buildah changes its propagation.
mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc" 2>/dev/null || mount --rbind /proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount --rbind /sys "$ROOT/sys"

bind_file() { # SOURCE TARGET-in-root
  mkdir -p "$ROOT${2%/*}"
  [ ! -L "$ROOT$2" ] || rm "$ROOT$2"
  touch "$ROOT$2"
  mount --bind "$(readlink -f "$1")" "$ROOT$2"
}
[ ! -e /etc/resolv.conf ] || bind_file /etc/resolv.conf /etc/resolv.conf
[ ! -e /etc/hosts ] || bind_file /etc/hosts /etc/hosts
if [ -n "$HOST_CA" ]; then
  bind_file "$HOST_CA" /run/host-ca.crt
  # ca-certificates renames its bundle while it is configured, so the bundle is covered only afterwards.
  [ "$INSTALL" = 1 ] || bind_file "$HOST_CA" /etc/ssl/certs/ca-certificates.crt
fi
while IFS= read -r folder; do
  [ -d "$folder" ] || continue
  mkdir -p "$ROOT$folder"
  mount --rbind "$folder" "$ROOT$folder"
done <<<"$BINDS"

unset PYENV_ROOT PYTHONPATH PYTHONHOME RUSTUP_HOME RUSTC_WRAPPER GOROOT
if [ -e /run/host-ca.crt ] || [ -n "$HOST_CA" ]; then
  export SSL_CERT_FILE=/run/host-ca.crt CARGO_HTTP_CAINFO=/run/host-ca.crt PIP_CERT=/run/host-ca.crt
  export CURL_CA_BUNDLE=/run/host-ca.crt REQUESTS_CA_BUNDLE=/run/host-ca.crt NODE_EXTRA_CA_CERTS=/run/host-ca.crt
  export GIT_SSL_CAINFO=/run/host-ca.crt
fi
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
root=$ROOT cwd=$CWD
unset ROOT CWD BINDS HOST_CA INSTALL
# shellcheck disable=SC2016
exec chroot "$root" /bin/bash -c 'cd "$1" && shift && exec "$@"' -- "$cwd" "$@"
