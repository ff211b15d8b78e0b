#!/usr/bin/env bash
# From a clone to a trained network. Installs missing packages, builds, and starts a daemon on loopback. Submits
# deploy/examples/lenet-fashion-mnist.yaml with two replicas, and follows it to its end.
#
#   deploy/quickstart.sh
#
# The programs are installed in $TANDEM_PREFIX/bin (default ~/.local/share/tandem/bin). The daemon's jobs are in
# $TANDEM_STATE (default ~/.local/state/tandem-quickstart). A daemon of an earlier run is used again.
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")/.."
if (($#)); then
  echo "quickstart.sh: unknown argument '$1'; see the first lines of this file" >&2
  exit 2
fi

prefix=${TANDEM_PREFIX:-$HOME/.local/share/tandem}
state=${TANDEM_STATE:-$HOME/.local/state/tandem-quickstart}
[[ $prefix == /* ]] || prefix=$called_from/$prefix
[[ $state == /* ]] || state=$called_from/$state
job=deploy/examples/lenet-fashion-mnist.yaml
bin=$prefix/bin

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[[ -t 1 ]] || step() { printf '\n%s\n' "$*"; }

step "1/4  Packages"
deploy/setup.sh
echo "All there."

step "2/4  Build (the first one takes some minutes)"
# On a terminal, Bazel shows its progress in a few lines. In a log, these would be thousands of lines.
progress=()
[[ -t 2 ]] || progress=(--noshow_progress)
bazel build "${progress[@]}" --show_result=0 \
  //server/daemon:tandemd //server/worker:tandem-worker //client/cli:tandem
mkdir -p "$bin"
for program in server/daemon/tandemd server/worker/tandem-worker client/cli/tandem; do
  if cmp -s "bazel-bin/$program" "$bin/${program##*/}"; then continue; fi
  # Installs a new file and renames it, so that a running daemon keeps the old file.
  install -m 755 "bazel-bin/$program" "$bin/.new-${program##*/}"
  mv -f "$bin/.new-${program##*/}" "$bin/${program##*/}"
done
# `tandem init` finds the schema here.
mkdir -p "$prefix/share/tandem"
for kind in job sweep; do "$bin/tandem" schema "$kind" >"$prefix/share/tandem/$kind.schema.json"; done
echo "Programs are in $bin."

step "3/4  Daemon"
# A daemon uses no folder that others may write to, which some umasks make.
[[ -d $state ]] || install -d -m 0700 "$state"
export TANDEM_STATE=$state   # The command line finds the daemon's address and token there.
# These would name another daemon, or another way to it.
unset TANDEM_ADDRESS TANDEM_TOKEN_FILE TANDEM_TLS_CA TANDEM_TLS_CERT TANDEM_TLS_KEY TANDEM_TLS_SERVER_NAME
running() { "$bin/tandem" --timeout 5s devices >/dev/null 2>&1; }
if running; then
  echo "It runs already at $(<"$state/address")."
  if [[ $(readlink "/proc/$(<"$state/daemon.lock")/exe") == *" (deleted)" ]]; then
    echo "It is of an earlier build. To use this build, run 'tandem shutdown' as below, then this script again."
  fi
else
  devices=$(nproc)
  ((devices >= 2)) || devices=2   # The example trains two replicas.
  # The daemon gets its own session, so that it outlives this script and its terminal.
  setsid "$bin/tandemd" --state-folder "$state" --listen 127.0.0.1:0 --cpu-devices "$devices" \
    </dev/null >>"$state/tandemd.log" 2>&1 &
  daemon=$!
  for ((i = 0; i < 300; ++i)); do
    if running; then break; fi
    if ! kill -0 "$daemon" 2>/dev/null; then
      echo "The daemon ended. The last lines of $state/tandemd.log:" >&2
      tail -n 5 "$state/tandemd.log" >&2
      exit 1
    fi
    sleep 0.1
  done
  running || {
    echo "The daemon did not answer within 30 s; see $state/tandemd.log" >&2
    exit 1
  }
  echo "It listens on $(<"$state/address"); its log is $state/tandemd.log."
fi

step "4/4  Training $job"
"$bin/tandem" submit "$job" --follow
name=$("$bin/tandem" list --limit 1 -o json | sed -nE 's/.*"name": *"jobs\/([^"]+)".*/\1/p' | head -n 1)
folder=$("$bin/tandem" describe "$name" -o json | sed -nE 's/.*"folder": *"([^"]+)".*/\1/p' | head -n 1)

cat <<END

The trained model:    $folder/model.safetensors
To go on, in a shell where this is set:
  export PATH=$(printf %q "$bin"):\$PATH TANDEM_STATE=$(printf %q "$state")
    tandem describe $name
    tandem download $name
    tandem init lenet > my.yaml && tandem submit my.yaml --follow     # the next job
    tandem shutdown                                                  # stop the daemon
    tandemd --data-folder ~/data --data-folder /usr/share/datasets   # start one that also reads data of your own
END
package=$(find . -maxdepth 1 -name 'tandem_*.deb' | sort -V | tail -n 1)
if [[ -n $package ]]; then
  echo "To install Tandem as a service of this machine:  apt install $package"
else
  echo "To make a package that installs Tandem as a service:  deploy/package"
fi
