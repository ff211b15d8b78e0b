#!/usr/bin/env bash
# Tests the archive of deploy/bundle. The archive must have all of its files, including everything that its
# tests/gpu/run.sh runs. Its programs must need no library from outside except glibc's. Its daemon must train a job from
# another folder. Its GPU tests must start, and must skip all parts that need a GPU.
#
#   tests/integration/bundle.sh [ARCHIVE]    default: a new archive without tests; with tests if TANDEM_WHOLE=1
if (($#)); then archive=$(readlink -f "$1"); else archive=""; fi
cd "$(dirname "$0")" || exit
source ./daemon.bash

list=$scratch/list
../../deploy/bundle --list >"$list" 2>"$scratch/list.log" || {
  cat "$scratch/list.log" >&2
  die "the bundle does not say what would be in it"
}
# listed PATH: whether it would be in it, itself, as part of a folder or as a folder with something.
listed() {
  awk -v path="$1" '$0 == path || index(path, $0 "/") == 1 || index($0, path "/") == 1 { found = 1 }
                    END { exit !found }' "$list"
}
for path in bin/tandemd bin/tandem-worker bin/tandem share/tandem deploy/examples README.md tests/golden/data; do
  listed "$path" || die "the bundle would be without $path"
done
# Files that run.sh runs, except files outside tests/ and names that are composed of variables.
while IFS=\" read -r kind path _; do
  [[ $path == tests/* ]] || continue
  if [[ $path == tests/engine ]] && grep -q 'no tests of GPUs' "$scratch/list.log"; then continue; fi
  listed "$path" || die "run.sh runs $path, without which the bundle would be"
  if [[ $kind == *script* && ! -e ../../$path ]]; then die "there is no $path, which run.sh runs"; fi
done < <(grep -ohE '(program|script)\("[^"]+"' ../gpu/*.py; echo 'program("tests/engine"')
if ! grep -q 'no tests of GPUs' "$scratch/list.log"; then
  for test in engine/backends/cuda/conformance_test engine/backends/cuda/driver/libraries_test gpu/parity_test; do
    listed "tests/$test" || die "the bundle would be without tests/$test"
  done
fi

whole=(--no-tests --fast)
if ((${TANDEM_WHOLE:-0})); then whole=(); fi
if [[ -z $archive ]]; then
  command -v patchelf >/dev/null || skip "patchelf is not installed"
  archive=$scratch/bundle.tar.xz
  logged "$scratch/bundle.log" ../../deploy/bundle "${whole[@]}" --output "$archive" --noshow_progress ||
    die "no bundle was made"
fi
tar -C "$scratch" -xJf "$archive"
root=$scratch/elsewhere
mv "$scratch/tandem" "$root"

glibc='^(linux-vdso|/lib64/ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv))\.so'
while read -r file; do
  head -c 4 "$file" | grep -q ELF || continue
  # Resolves libraries from the file's own place, without LD_LIBRARY_PATH.
  while read -r name arrow path _; do
    [[ $name =~ $glibc || $name == statically ]] && continue
    [[ $arrow == "=>" && $(readlink -f "$path") == "$root/lib/"* ]] || die "${file#"$root/"} takes $name from $path"
  done < <(env -u LD_LIBRARY_PATH ldd "$file")
done < <(find "$root" -type f \( -perm -100 -o -name '*.so*' \))

# Each test reports its skips. None needs libraries of PyTorch or of the machine.
while read -r test; do
  logged "$scratch/test.log" timeout 600 "$test" || die "${test#"$root/"} of the bundle fails"
done < <(find "$root/tests/engine" "$root/tests/gpu" -name '*_test' 2>/dev/null)

# The programs as the build lays them out.
bin=$scratch/bin
for program in server/daemon/tandemd server/worker/tandem-worker client/cli/tandem; do
  mkdir -p "$bin/${program%/*}"
  ln -s "$root/bin/${program##*/}" "$bin/$program"
done
tandemd=$bin/server/daemon/tandemd
tandem=$bin/client/cli/tandem
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --data-folder "$root/examples/data"
logged "$scratch/job.log" "$tandem" submit "$root/examples/tabular-regression.yaml" --follow --set training.epochs=2 \
  --set replicas.device_kind=DEVICE_KIND_CPU || die "the bundle's daemon did not train a job"
"$tandem" shutdown --cancel-jobs >/dev/null
wait "$daemon" || true
echo "$(stat -c %s "$archive") bytes"
