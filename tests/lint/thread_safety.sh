#!/usr/bin/env bash
# Checks C++ sources with clang's thread-safety analysis: all programs, and tests that use a lock of their own. Nothing is
# optimised, generated or linked.
#
# With TANDEM_WHOLE=1 all tests are checked, too, and the precompiled headers are left out, so that a missing #include is
# an error. This takes about five times as long.
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
folders=(//client/... //engine/... //proto/... //server/... //tests/...)
flags=(--config=clang --repo_env=CC="$compiler" --define=precompiled=$precompiled --noshow_progress)
targets=$(mktemp)
trap 'rm -f "$targets"' EXIT
if ((${TANDEM_WHOLE:-0})); then
  printf '%s\n' "${folders[@]}" >"$targets"
else
  # Only the sources with a lock, and the tests that include these sources, can break the lock's rules.
  locks=$(git grep -lE 'Mutex|ABSL_GUARDED_BY|ABSL_[A-Z_]*LOCK' -- 'client/*.cc' 'client/*.h' 'engine/*.cc' 'engine/*.h' \
    'server/*.cc' 'server/*.h' 'tests/*.cc' 'tests/*.h')
  bazel --output_base="$base" query "${flags[@]:3}" --output=label "
    let all = kind('cc_(library|binary|test) rule', set(${folders[*]})) in
    let tests = attr(testonly, 1, \$all) in
    let sources = labels(srcs, \$tests) + labels(srcs, labels(srcs, \$tests)) + labels(hdrs, \$tests) in
    attr(testonly, 0, \$all) + (\$tests intersect rdeps(\$tests, \$sources intersect set(${locks//$'\n'/ }), 2))" >"$targets"
fi
code=0
bazel --output_base="$base" build "${flags[@]}" --keep_going --experimental_convenience_symlinks=ignore \
  --target_pattern_file="$targets" || code=$?
bazel --output_base="$base" shutdown
exit "$code"
