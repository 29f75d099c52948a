#!/usr/bin/env bash
# Formatting, static analysis, shell and proto lint. usage, in the environment: lint.sh BUILD_FOLDER
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.." || exit
builds=$1 failed=0
step() { printf 'lint: %s\n' "$1" >&2; shift; "$@" || { failed=1; printf 'lint: FAILED: %s\n' "$*" >&2; }; }

mapfile -t sources < <(git ls-files '*.h' '*.cc' | grep -v '^tests/arch/bad/')
mapfile -t scripts < <(git ls-files 'dev' '.ci/run' '*.sh' 'tests/bench/peers/run' 'tests/bench/peers/setup' 'tests/golden/reference/*' |
  while read -r f; do head -n 2 "$f" | grep -qE '^#!.*(ba)?sh|shellcheck shell' && printf '%s\n' "$f"; done)

step clang-format clang-format --dry-run -Werror "${sources[@]}"
step shellcheck shellcheck -x "${scripts[@]}"
step 'proto lint' npx --yes --package @bufbuild/buf@1.50.0 buf lint proto
if [ ! -f "$builds/dev/compile_commands.json" ]; then
  cmake --preset dev -B "$builds/dev" >/dev/null || exit 1
fi
cmake --build "$builds/dev" --target quire_proto >/dev/null || exit 1
# clang does not know one flag of the kernels.
mkdir -p "$builds/tidy"
sed 's/ -fno-tree-reassoc//g' "$builds/dev/compile_commands.json" >"$builds/tidy/compile_commands.json"
step clang-tidy run-clang-tidy -quiet -p "$builds/tidy" "$PWD/(runtime|scheduler|server)/.*\.cc$"
[ "$failed" = 0 ] && echo 'lint: clean' >&2
exit "$failed"
