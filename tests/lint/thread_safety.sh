#!/usr/bin/env bash
# Checks every C++ source with clang's thread-safety analysis. Nothing is optimised, generated or linked.
#
# With TANDEM_WHOLE=1 the precompiled headers are left out, so that a missing #include is an error, too. This takes
# about three times as long.
set -euo pipefail
cd "$(dirname "$0")/../.."

precompiled=on
if ((${TANDEM_WHOLE:-0})); then precompiled=off; fi
base=$HOME/.cache/tandem/clang
# Bazel's cache knows a compiler by its path: the copy has the same path for every clone.
compiler=$HOME/.cache/tandem/syntax_compiler.$(sha256sum tests/lint/syntax_compiler.sh | head -c 16).sh
mkdir -p "${compiler%/*}"
install -m 755 tests/lint/syntax_compiler.sh "$compiler"

# The folders are named: with another output base, //... would walk into the links that other builds left.
code=0
bazel --output_base="$base" build --config=clang --repo_env=CC="$compiler" --define=precompiled=$precompiled \
  --keep_going --noshow_progress --experimental_convenience_symlinks=ignore \
  //client/... //engine/... //proto/... //server/... //tests/... || code=$?
bazel --output_base="$base" shutdown
exit "$code"
