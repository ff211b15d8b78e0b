#!/usr/bin/env bash
# A compiler for the thread-safety analysis: clang++ that checks a source and writes an empty object file.
#
# Precompiled headers are compiled as usual. .bazelrc's --config=clang and deploy/test.sh use it.
set -euo pipefail

arguments=()
object=
checks=0
precompiles=0
previous=
for argument in "$@"; do
  case "$previous $argument" in
    "-o "*) object=$argument ;;
    *" -c") checks=1 ;;
    *" c++-header") precompiles=1 ;;
  esac
  # clang has no such argument, and lists these headers anyway.
  [[ $argument == -fpch-deps ]] || arguments+=("$argument")
  previous=$argument
done

if ((precompiles)); then
  exec clang++ "${arguments[@]}" -fpch-instantiate-templates
elif ((checks)); then
  clang++ "${arguments[@]}" -fsyntax-only
  : >"$object"
else
  exec clang++ "${arguments[@]}"
fi
