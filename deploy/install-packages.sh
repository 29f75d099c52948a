#!/bin/sh
# Installs the packages of the named sections of packages.txt, which lies beside this script. Debian 13, root.
set -eu
list=$(dirname "$0")/packages.txt
names=
for section in "$@"; do
  names="$names $(awk -v want="[$section]" '/^\[/ {on = ($0 == want)} /^[a-z0-9]/ && on {print $1}' "$list")"
done
apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $names >/dev/null
rm -rf /var/lib/apt/lists/* /var/cache/apt/*
