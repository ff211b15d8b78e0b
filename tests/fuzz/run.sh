#!/usr/bin/env bash
# Runs fuzz targets with libFuzzer (clang's) and the sanitizers of addresses and of undefined behaviour, starting from
# their seeds and kept corpora.
#
#   tests/fuzz/run.sh [--runs N] [--max-bytes N] [--keep] [TARGET...]
#
#   --runs N        Executes each target N times. Default 1000000.
#   --max-bytes N   Limits an input to N bytes. Default 65536.
#   --keep          Replaces the kept corpus by the fewest and smallest inputs that together reach the same code.
#   TARGET          Names a target, such as "csv". Default: all targets.
#
# The kept corpus is tests/fuzz/corpus/TARGET.tar.gz. Inputs that once caused a failure are in tests/fuzz/finds/TARGET/.
# New finds of a target stay in fuzz-finds/TARGET/. The script continues with the next target, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/../.."

runs=1000000
max_bytes=65536
keep=0
targets=()
while (($#)); do
  case "$1" in
    --runs) runs=$2; shift ;;
    --max-bytes) max_bytes=$2; shift ;;
    --keep) keep=1 ;;
    -*) echo "run.sh: unknown argument '$1'; see the first lines of this file" >&2; exit 2 ;;
    *) targets+=("$1") ;;
  esac
  shift
done
if ((${#targets[@]} == 0)); then
  for source in tests/fuzz/*_fuzz.cc; do
    name=${source##*/}
    targets+=("${name%_fuzz.cc}")
  done
fi

# Uses its own output base, because another compiler and other flags would discard the usual build.
base=$HOME/.cache/tandem/fuzz
bazel_fuzz() { bazel --output_base="$base" "$@" --config=fuzz --experimental_convenience_symlinks=ignore; }
labels=()
for target in "${targets[@]}"; do labels+=("//tests/fuzz:${target}_fuzz"); done
bazel_fuzz build --noshow_progress "${labels[@]}"
bin=$(bazel --output_base="$base" info --config=fuzz bazel-bin 2>/dev/null)

# Debian's libraries were not built with the sanitizer, so that containers that cross their border look overflown.
export ASAN_OPTIONS=detect_container_overflow=0:allocator_may_return_null=1:quarantine_size_mb=16
export UBSAN_OPTIONS=print_stacktrace=1
found=0
for target in "${targets[@]}"; do
  program=$bin/tests/fuzz/${target}_fuzz
  work=$(mktemp -d)
  finds=fuzz-finds/$target/
  corpus=tests/fuzz/corpus/$target.tar.gz
  mkdir -p "$finds" tests/fuzz/corpus "$work/new" "$work/kept"
  if [[ -e $corpus ]]; then tar -xzf "$corpus" -C "$work/kept"; fi
  if [[ -d tests/fuzz/finds/$target ]]; then cp "tests/fuzz/finds/$target"/* "$work/kept"; fi
  "$program" --write-seeds="$work/seeds"
  echo "== $target"
  "$program" -runs="$runs" -max_len="$max_bytes" -rss_limit_mb=4096 -timeout=30 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="$finds" "$work/new" "$work/seeds" "$work/kept" 2>&1 | grep -v '# Uses:' | tail -n 25 ||
    { found=1; echo "FOUND: $finds"; }
  if ((keep)); then
    mkdir "$work/least"
    # Counts edges only, not how often they are passed. Keeps only small inputs, because they are stored with the
    # sources.
    find "$work/new" -type f -size +3k -delete
    "$program" -set_cover_merge=1 -use_counters=0 -verbosity=0 "$work/least" "$work/new" "$work/seeds" "$work/kept" 2>/dev/null || true
    tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=644 -C "$work/least" -cf - . | gzip -9n > "$corpus"
    echo "kept: $(find "$work/least" -type f | wc -l) inputs, $(stat -c %s "$corpus") bytes packed"
  fi
  rm -rf "$work"
done
exit $found
