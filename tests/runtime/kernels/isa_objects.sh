#!/usr/bin/env bash
# isa_objects.sh OBJECT...: objects compiled for one instruction set (suffix _avx2 or _avx512) define no weak symbols,
# since the linker could keep that copy for every processor, and those for AVX2 use no 512-bit register.
set -euo pipefail
checked=0 bad=0
for object in "$@"; do
  case ${object##*/} in *_avx2.* | *_avx512*.*) ;; *) continue ;; esac
  checked=$((checked + 1))
  if nm -C --defined-only "$object" | grep -E ' [WVuw] '; then
    echo "weak symbols in $object" >&2 && bad=1
  fi
  case ${object##*/} in *_avx2.*)
    if objdump -d --no-show-raw-insn "$object" | grep -m 3 -E '%zmm|%k[1-7]\b'; then
      echo "AVX-512 code in $object" >&2 && bad=1
    fi ;;
  esac
done
[ "$checked" -ge 2 ] || { echo "no ISA objects among $# files" >&2; exit 1; }
exit "$bad"
