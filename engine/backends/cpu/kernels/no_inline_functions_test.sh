#!/bin/bash
# Fails where a library of the command line defines a weak symbol: code for wider instructions that other
# files' calls could be given.
set -euo pipefail
found=0
for library in "$@"; do
  symbols=$(nm -C "$library")
  [[ $symbols == *Kernels* ]] || { echo "$library: no kernels" >&2; exit 1; }
  # DW.ref.* are pointers, to what unwinds for one; sanitizers bring them.
  if grep -E ' [WVu] ' <<<"$symbols" | grep -v ' V DW\.ref\.'; then
    echo "$library: the symbols above are shared with the rest of the program" >&2
    found=1
  fi
done
exit $found
