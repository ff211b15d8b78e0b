#!/usr/bin/env bash
# A compiler for the thread-safety analysis: clang++ that checks a source and writes an empty object file.
#
# Precompiled headers are compiled as usual. tests/lint/thread_safety.sh uses this compiler. clang finds its headers
# from the path of its program. Bazel does not give every action a PATH, so the path is absolute.
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
  case "$argument" in
    # clang refuses these two. It lists the headers inside a precompiled header anyway.
    -fpch-deps | --param=ggc-*) ;;
    *) arguments+=("$argument") ;;
  esac
  previous=$argument
done

# Programs that run while Bazel builds are compiled in full.
if [[ $object == bazel-out/host/* ]]; then checks=0; fi

if ((precompiles)); then
  # Without times: a header from Bazel's cache may be older than the sources of this clone. Bazel knows if it is stale.
  exec /usr/bin/clang++ "${arguments[@]}" -fpch-instantiate-templates -Xclang -fno-pch-timestamp
elif ((checks)); then
  /usr/bin/clang++ "${arguments[@]}" -fsyntax-only
  : >"$object"
else
  exec /usr/bin/clang++ "${arguments[@]}"
fi
