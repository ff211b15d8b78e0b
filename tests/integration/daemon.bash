# A daemon in a scratch folder, for the scripts of this folder. Source this file.
#
# Needs the programs in $TANDEM_BIN_DIR (default: bazel-bin of this repository), laid out as bazel-bin. At the end of
# the script, all started processes are killed and the scratch folder is removed.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=${TANDEM_BIN_DIR:-$here/../../bazel-bin}
tandemd=$bin/server/daemon/tandemd
tandem=$bin/client/cli/tandem

# skip REASON: ends the script, because it cannot run on this machine.
skip() {
  echo "$*"
  exit 77
}

# die REASON: ends it as failed.
die() {
  echo "FAILED: $*" >&2
  if [[ -s ${scratch:-}/tandemd.log ]]; then
    echo "The daemon's last words:" >&2
    tail -n 20 "$scratch/tandemd.log" >&2
  fi
  exit 1
}

for program in "$tandemd" "$bin/server/worker/tandem-worker" "$tandem"; do
  [[ -x $program ]] || die "$program is missing: bazel build //server/daemon:tandemd //server/worker:tandem-worker //client/cli:tandem, or set TANDEM_BIN_DIR"
done

# Short, for the daemon puts a Unix socket into its state folder.
scratch=$(mktemp -d /tmp/tandem-test-XXXXXX)
cleanup() {
  local process pass=0 found=1
  # More than once: before its own end, the daemon may start another worker.
  while ((found && pass++ < 100)); do
    found=0
    for process in /proc/[0-9]*; do
      if [[ ${process#/proc/} != "$$" ]] && grep -qaF -- "$scratch" "$process/cmdline" "$process/environ" 2>/dev/null; then
        kill -9 "${process#/proc/}" 2>/dev/null || true
        found=1
      fi
    done
    ((found == 0)) || sleep 0.05
  done
  if declare -F extra_cleanup >/dev/null; then extra_cleanup; fi
  rm -rf -- "$scratch"
}
trap cleanup EXIT

# logged LOG COMMAND...: runs the command with its output in the file LOG. Prints the end of LOG if the command fails.
logged() {
  local log=$1 code=0
  shift
  "$@" >"$log" 2>&1 || code=$?
  ((code == 0)) || tail -n 100 "$log" >&2
  return "$code"
}

# npm_packages FOLDER: the npm packages of FOLDER/package-lock.json are in $packages, and are kept in
# ~/.cache/tandem/npm. Skips the script without Node.js, or if npm cannot fetch the packages.
npm_packages() {
  command -v node >/dev/null || skip "node is not installed"
  packages=$HOME/.cache/tandem/npm/${1//_/-}-$(sha256sum "$1/package-lock.json" | cut -c 1-16)
  if [[ -e $packages/complete ]]; then return; fi
  command -v npm >/dev/null || skip "npm is not installed"
  mkdir -p "$packages"
  cp "$1/package.json" "$1/package-lock.json" "$packages"
  npm ci --silent --no-fund --no-audit --ignore-scripts --prefix "$packages" >/dev/null || skip "npm cannot fetch the packages"
  touch "$packages/complete"
}

# await SECONDS COMMAND...: repeats the command until it succeeds. Fails at the time limit, which is long: the machine
# may be busy.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}

# start_daemon [PREFIX... --] FLAG...: starts tandemd on $scratch/state and waits until it says where it listens
# ($address). A prefix is a command that runs it, such as `ip netns exec NAME`.
start_daemon() {
  local prefix=()
  if [[ " $* " == *" -- "* ]]; then
    while [[ $1 != -- ]]; do
      prefix+=("$1")
      shift
    done
    shift
  fi
  rm -f "$scratch/state/address"
  "${prefix[@]}" "$tandemd" --state-folder "$scratch/state" "$@" >>"$scratch/tandemd.log" 2>&1 &
  daemon=$!
  listens_or_ended() { [[ -s $scratch/state/address ]] || ! kill -0 "$daemon" 2>/dev/null; }
  await 180 listens_or_ended || true
  if [[ ! -s $scratch/state/address ]]; then
    die "the daemon did not start"
  fi
  address=$(<"$scratch/state/address")
  export TANDEM_ADDRESS=$address TANDEM_TOKEN_FILE=$scratch/state/token
}

# submitted [FILE]: prints the job's name from the output of `tandem submit` in the file (default: standard input).
submitted() { sed -nE 's/^submitted ([^ ]+).*/\1/p' "$@"; }
# The command that field runs `tandem` with, such as (ip netns exec NAME).
on_client=()
# field JOB NAME: prints a field of the job, or nothing.
field() {
  "${on_client[@]}" "$tandem" describe "$1" -o json | python3 -c "import json, sys; print(json.load(sys.stdin).get('$2', ''))"
}
# state_is JOB STATE: whether the job has this state, such as RUNNING.
state_is() { [[ $(field "$1" state) == "JOB_STATE_$2" ]]; }
# await_state JOB STATE [SECONDS]: waits until the job has this state. Fails at the time limit (default: 180 s).
await_state() { await "${3:-180}" state_is "$1" "$2" || die "$1 is not $2 but $(field "$1" state): $(field "$1" message)"; }

# metrics_address: prints the address where the newest daemon serves metrics.
metrics_address() {
  sed -n 's/.*serves metrics address=//p' "$scratch/tandemd.log" | tail -n 1 | grep . ||
    die "the daemon did not say where it serves metrics"
}
# http_get ADDRESS PATH: prints the whole answer of an HTTP server on loopback.
http_get() {
  exec 3<>"/dev/tcp/127.0.0.1/${1##*:}"
  printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
  cat <&3
  exec 3>&-
}

# expect_code CODE OUTPUT COMMAND...: fails unless the command ends with this code. Writes its output to the file
# OUTPUT.
expect_code() {
  local wanted=$1 output=$2 code=0
  shift 2
  timeout "${EXPECT_SECONDS:-300}" "$@" >"$output" 2>&1 || code=$?
  [[ $code == "$wanted" ]] || {
    cat "$output" >&2
    die "exit code $code, not $wanted: $*"
  }
}
# expect_text PATTERN FILE
expect_text() {
  grep -qiE -- "$1" "$2" || {
    cat "$2" >&2
    die "no '$1' in what it said"
  }
}
