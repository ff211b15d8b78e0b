#!/usr/bin/env bash
# The bundle of deploy/bundle, without its tests: what it has needs no library from outside but glibc's, and its daemon
# trains a job from a folder that it was not made in.
#
#   tests/integration/bundle.sh [ARCHIVE]    default: one that is made for this
if (($#)); then archive=$(readlink -f "$1"); else archive=""; fi
cd "$(dirname "$0")" || exit
source ./daemon.bash

if [[ -z $archive ]]; then
  command -v patchelf >/dev/null || skip "patchelf is not installed"
  archive=$scratch/bundle.tar.xz
  ../../deploy/bundle --no-tests --output "$archive" --noshow_progress >"$scratch/bundle.log" 2>&1 || {
    tail -n 20 "$scratch/bundle.log" >&2
    die "no bundle was made"
  }
fi
tar -C "$scratch" -xJf "$archive"
root=$scratch/elsewhere
mv "$scratch/tandem" "$root"

glibc='^(linux-vdso|/lib64/ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv))\.so'
while read -r file; do
  head -c 4 "$file" | grep -q ELF || continue
  # As it stands in the bundle, with nothing else to look in.
  while read -r name arrow path _; do
    [[ $name =~ $glibc || $name == statically ]] && continue
    [[ $arrow == "=>" && $(readlink -f "$path") == "$root/lib/"* ]] || die "${file#"$root/"} takes $name from $path"
  done < <(env -u LD_LIBRARY_PATH ldd "$file")
done < <(find "$root" -type f \( -perm -100 -o -name '*.so*' \))

# The programs as the build lays them out.
bin=$scratch/bin
for program in server/daemon/tandemd server/worker/tandem-worker client/cli/tandem; do
  mkdir -p "$bin/${program%/*}"
  ln -s "$root/bin/${program##*/}" "$bin/$program"
done
tandemd=$bin/server/daemon/tandemd
tandem=$bin/client/cli/tandem
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --data-folder "$root/examples/data"
"$tandem" submit "$root/examples/tabular-regression.yaml" --follow --set training.epochs=2 \
  --set replicas.device_kind=DEVICE_KIND_CPU \
  >"$scratch/job.log" 2>&1 || {
  tail -n 20 "$scratch/job.log" >&2
  die "the bundle's daemon did not train a job"
}
"$tandem" shutdown --cancel-jobs >/dev/null
wait "$daemon" || true
echo "$(stat -c %s "$archive") bytes"
