#!/usr/bin/env bash
# An upgrade while jobs train: the older daemon is killed, and in a second round asked to stop; the newer programs are installed in
# the older ones' place, and the newer daemon goes on with the same state folder and the older workers. Then the way back.
# README.md says what is shown.
#
#   tests/fault/upgrade.sh [--from BIN_DIR] [--to BIN_DIR]
#
# Folders laid out as bazel-bin; default of both: $TANDEM_BIN_DIR or bazel-bin, an upgrade to the same version. That is short, and
# the daemon is only killed, unless TANDEM_WHOLE=1.
repository=$(cd "$(dirname "$0")/../.." && pwd) || exit
to=${TANDEM_BIN_DIR:-$repository/bazel-bin}
from=""
while (($#)); do
  case "$1" in
    --from) from=$(readlink -f "$2") ;;
    --to) to=$(readlink -f "$2") ;;
    *)
      echo "upgrade.sh: unknown argument '$1'; see the first lines of this file" >&2
      exit 2
      ;;
  esac
  shift 2 || exit 2
done
signals=(KILL TERM)
# How long a job takes where it trains alone, about.
wanted=15
if [[ -z $from ]]; then
  from=$to
  if [[ ${TANDEM_WHOLE:-0} != 1 ]]; then
    signals=(KILL)
    wanted=6
  fi
fi
cd "$repository/tests/fault" || exit
TANDEM_BIN_DIR=$from
source ../integration/daemon.bash
for program in server/daemon/tandemd server/worker/tandem-worker client/cli/tandem; do
  [[ -x $to/$program ]] || die "$to/$program is missing"
done
# Of a machine that has much else to do.
export TANDEM_RECONNECT_TIMEOUT=10m
# A job goes to the same bits on CPUs.
export CUDA_VISIBLE_DEVICES=""
patience=300

state=$scratch/state
installed=$scratch/installed
tandemd=$installed/server/daemon/tandemd
older=$from/client/cli/tandem
newer=$to/client/cli/tandem
mkdir -p "$installed"/server/{daemon,worker}

# install_programs BIN_DIR: as a package does, other files under the same names.
install_programs() {
  local program
  for program in server/daemon/tandemd server/worker/tandem-worker; do
    install -m 755 "$1/$program" "$installed/$program"
  done
}
checks() { ./upgrade_checks.py "$@"; }

# Where both versions have one schema, the older one's database is brought back by a migration, so that there is one: what undoes
# the migration to this schema. Whoever adds a migration says it here; older ones may go.
declare -A undoing=(
  [7]='DROP INDEX jobs_by_state; DROP INDEX jobs_by_state_and_id; CREATE INDEX jobs_by_state ON jobs (state);'
)

job_file=$scratch/job.yaml
cat >"$job_file" <<'END_OF_JOB'
dataset:
  synthetic: {shape: [1, 16, 16], classes: 4, train_samples: 4096, validation_samples: 64, seed: 1}
  augmentation:
    - horizontal_flip: {}
model:
  input: {shape: [1, 16, 16]}
  layers:
    - conv2d: {filters: 8, kernel: [3, 3], activation: relu}
    - dropout: {rate: 0.3}
    - dense: {units: 64, activation: relu}
    - dense: {units: 4}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {momentum: {learning_rate: 0.01}}
  global_batch_size: 32
  seed: 7
  report: {every_seconds: 0.2}
replicas: {count: 2}
checkpoints: {every_steps: 100, keep_last: 2}
max_restarts: 0
END_OF_JOB
steps_an_epoch=128

# submit NAME FLAG...: by the older client; the id goes into job[NAME].
declare -A job watcher
submit() {
  local name=$1
  shift
  "$older" submit "$job_file" --set "name=$name" --set "training.epochs=$epochs" "$@" >"$scratch/submitted" 2>&1 || {
    cat "$scratch/submitted" >&2
    die "$name was not submitted"
  }
  job[$name]=$(grep -oE "$name-[A-Za-z0-9_-]+" "$scratch/submitted" | head -n 1)
  [[ -n ${job[$name]} ]] || die "no job in: $(<"$scratch/submitted")"
}
# watch NAME: the older client looks on, until the job ends, from now.
watch() {
  "$older" watch "${job[$1]}" -o json >"$scratch/$1.watched" 2>"$scratch/$1.watcher" &
  watcher[$1]=$!
}
# field NAME FIELD [SUBFIELD]
field() {
  "$older" describe "${job[$1]}" -o json |
    python3 -c 'import functools, json, sys; print(functools.reduce(lambda m, f: m.get(f, {}), sys.argv[1:], json.load(sys.stdin)) or 0)' "${@:2}"
}
state_is() { [[ $(field "$1" state) == "JOB_STATE_$2" ]]; }
has_ended() { [[ $(field "$1" state) =~ ^JOB_STATE_(SUCCEEDED|FAILED|CANCELLED)$ ]]; }
await_state() {
  await "$patience" eval "state_is $1 $2 || has_ended $1" || true
  state_is "$1" "$2" || [[ $(field "$1" state) == JOB_STATE_SUCCEEDED ]] || die "$1 is not $2 but $(field "$1" state)"
}
goes_beyond() { (($(field "$1" progress step) > $2)) || has_ended "$1"; }
# over NAME WHEN: whether it had trained to its end too early for anything to be shown.
over() {
  has_ended "$1" || return 1
  state_is "$1" SUCCEEDED || die "$1 is $(field "$1" state) $2: $(field "$1" message)"
  echo "   $1 was over $2: again with more epochs"
}
workers_of() { pgrep -f -- "$state/jobs/${job[$1]}/" | sort -n | paste -sd ' ' || true; }
newest_checkpoint() { find "$state/jobs/${job[$1]}" -name 'checkpoint-*.safetensors' | sed 's/.*checkpoint-//; s/\..*//' | sort -n | tail -n 1; }
has_checkpoint_after() { (($(newest_checkpoint "$1") > $2)); }
weights_of() { checks weights "$state/jobs/${job[$1]}/model.safetensors"; }
# stop_daemon SIGNAL
stop_daemon() {
  kill -"$1" "$daemon"
  wait "$daemon" 2>/dev/null || [[ $1 == KILL ]] || die "it ended with $?"
}
begin_anew() {
  stop_daemon KILL
  local process
  for process in "${watcher[@]}" $(pgrep -f -- "$state/jobs/"); do kill -9 "$process" 2>/dev/null || true; done
  rm -rf -- "$state"
  job=() watcher=()
}
start() { start_daemon --listen "$1" --cpu-devices 4 --threads-per-cpu-device 1 --reference-devices 0; }

# train_undisturbed BIN_DIR EPOCHS: what that version makes of the job goes into $weights and the file reference.training, how
# many milliseconds it takes into $taken, its schema into $schema.
train_undisturbed() {
  install_programs "$1"
  start 127.0.0.1:0
  epochs=$2 submit reference
  local begin=${EPOCHREALTIME/[.,]/}
  await_state reference SUCCEEDED
  state_is reference SUCCEEDED || die "the reference is $(field reference state)"
  taken=$(((${EPOCHREALTIME/[.,]/} - begin) / 1000))
  weights=$(weights_of reference)
  "$older" watch "${job[reference]}" -o json >"$scratch/reference.events" 2>/dev/null
  checks training "$scratch/reference.events" >"$scratch/reference.training"
  schema=$(checks schema "$state/tandem.db")
  begin_anew
}
# Both versions' references for so many epochs.
train_references() {
  train_undisturbed "$from" "$epochs"
  older_weights=$weights newer_weights=$weights older_schema=$schema
  cp "$scratch/reference.training" "$scratch/older.training"
  [[ $from == "$to" ]] && return
  train_undisturbed "$to" "$epochs"
  newer_weights=$weights
  ((older_schema <= schema)) || die "the newer version has schema $schema, the older one $older_schema"
}

# expect_listed CLIENT WHEN: all jobs are.
expect_listed() {
  local name
  "$1" list --all -o json >"$scratch/listed"
  for name in running group paused queued ended; do
    grep -q "${job[$name]}" "$scratch/listed" || die "no $name is listed $2: $(<"$scratch/listed")"
  done
}

# upgrade SIGNAL: sets $too_short where a job was over before its time.
upgrade() {
  local name address_before before program version
  local -A pids
  too_short=1
  install_programs "$from"
  start 127.0.0.1:0
  address_before=$address
  "$older" tokens create ann >"$scratch/ann.token" 2>/dev/null

  submit ended --set training.epochs=1
  watch ended
  await_state ended SUCCEEDED
  submit paused
  watch paused
  await "$patience" goes_beyond paused 250 || die "paused does not train"
  "$older" pause "${job[paused]}" >"$scratch/out" 2>&1 || true
  await_state paused PAUSED
  over paused "before it was paused" && return
  for name in running group; do
    submit "$name" --set "replicas.workers=$([[ $name == group ]] && echo 2 || echo 1)"
    watch "$name"
  done
  submit queued
  watch queued
  for name in running group; do
    await "$patience" goes_beyond "$name" 250 || die "$name does not train"
  done
  for name in running group; do
    over "$name" "before the daemon was ended" && return
    pids[$name]=$(workers_of "$name")
  done
  [[ $(wc -w <<<"${pids[running]} ${pids[group]}") == 3 ]] || die "these are no three workers: ${pids[*]}"
  state_is queued QUEUED || die "queued is $(field queued state)"

  local -A at
  stop_daemon "$1"
  for name in running group; do at[$name]=$(newest_checkpoint "$name"); done
  version=$older_schema
  if ((older_schema == schema)); then
    [[ -v undoing[$schema] ]] || die "nothing in $0 undoes the migration to schema $schema"
    version=$((schema - 1))
    checks execute "$state/tandem.db" "${undoing[$schema]} PRAGMA user_version = $version;"
  fi
  [[ $(checks schema "$state/tandem.db") == "$version" ]] || die "the database has schema $(checks schema "$state/tandem.db")"
  install_programs "$to"
  for name in running group; do
    await "$patience" has_checkpoint_after "$name" "${at[$name]}" ||
      { [[ -e $state/jobs/${job[$name]}/model.safetensors ]] || die "$name does not train without a daemon"; }
    echo "   $name trained on without a daemon, from step ${at[$name]} to $(newest_checkpoint "$name") and beyond"
  done

  start "$address_before"
  expect_listed "$older" "by the older client"
  TANDEM_TOKEN_FILE=$scratch/ann.token "$older" list >/dev/null || die "the older version's token is worth nothing"
  for name in running group; do
    before=$(field "$name" progress step)
    await "$patience" goes_beyond "$name" "$((before + 1))" || die "$name does not go on"
    over "$name" "before the newer daemon had heard of it" && return
    before=$(workers_of "$name")
    program=$(readlink "/proc/${pids[$name]%% *}/exe" || true)
    [[ $before == "${pids[$name]}" && $program == *" (deleted)" ]] && continue
    # It may have come to its end between two looks.
    await 5 has_ended "$name" && over "$name" "before its worker was looked at" && return
    die "$name was trained by ${pids[$name]}, and is by $before, of $program"
  done
  state_is paused PAUSED || die "paused is $(field paused state)"
  "$older" resume "${job[paused]}" >/dev/null || die "paused was not resumed"
  too_short=0

  for name in paused queued; do
    await "$patience" eval "state_is $name RUNNING || has_ended $name" || die "$name is $(field "$name" state)"
    state_is "$name" RUNNING || continue
    before=$(workers_of "$name")
    [[ -z $before || $(readlink "/proc/$before/exe") == "$installed/server/worker/tandem-worker" ]] ||
      state_is "$name" SUCCEEDED || die "$name is trained by $(readlink "/proc/$before/exe")"
  done
  for name in running group paused queued ended; do
    await "$patience" has_ended "$name" || die "$name is $(field "$name" state)"
    state_is "$name" SUCCEEDED || die "$name is $(field "$name" state): $(field "$name" message)"
    wait "${watcher[$name]}" || die "the older client that watched $name ended with $?: $(<"$scratch/$name.watcher")"
    "$newer" watch "${job[$name]}" -o json >"$scratch/$name.events" 2>/dev/null || die "the newer client cannot watch $name"
    checks streams "$scratch/$name.watched" "$scratch/$name.events" || die "what was watched of $name is not what there is"
  done

  local total=0 count attempts
  for name in running group paused queued; do
    attempts=1
    [[ $name == paused ]] && attempts="1 2"
    # One word each.
    # shellcheck disable=SC2086
    count=$(checks log "$scratch/$name.events" "$epochs" $attempts) || die "$name: its log"
    total=$((total + count))
    checks training "$scratch/$name.events" >"$scratch/$name.training"
  done
  for name in running group; do
    [[ $(weights_of "$name") == "$older_weights" ]] || die "$name has other weights than a run that nothing disturbed"
    cmp -s "$scratch/$name.training" "$scratch/older.training" || die "$name has other losses than a run that nothing disturbed"
  done
  [[ $(weights_of queued) == "$newer_weights" ]] || die "queued has other weights than a run of the newer version"
  if [[ $older_weights == "$newer_weights" ]]; then
    [[ $(weights_of paused) == "$newer_weights" ]] || die "paused has other weights than a run that nothing disturbed"
  else
    echo "   the versions train to different weights: those of paused have nothing to be compared with"
  fi
  echo "   $epochs epochs; workers ${pids[running]} and ${pids[group]} were taken over; $total events of 4 jobs, none lost or doubled"
  [[ $(checks schema "$state/tandem.db") == "$schema" ]] || die "the database has schema $(checks schema "$state/tandem.db") now"
  local backups=("$state"/backups/*-schema"$version"-*.db)
  migrated=${backups[0]}
  [[ ${#backups[@]} == 1 && -s $migrated ]] || die "these are the backups before the migration: ${backups[*]}"
  (cd "$state/backups" && sha256sum --quiet -c "$(basename "$migrated").sha256") || die "$migrated is not what was written"
  [[ $(checks schema "$migrated") == "$version" ]] || die "$migrated has schema $(checks schema "$migrated")"
  [[ $(checks jobs "$migrated") == 5 ]] || die "$migrated has $(checks jobs "$migrated") jobs"
  echo "   schema $version became $schema; its backup has schema $version and all jobs"
}

# The way back, on what upgrade left.
downgrade() {
  local before code=0
  stop_daemon TERM
  if ((older_schema == schema)); then
    # Of the schema of tomorrow nothing is known but its number.
    checks execute "$state/tandem.db" "PRAGMA user_version = $((schema + 1))"
  fi
  install_programs "$from"
  before=$(sha256sum "$state"/tandem.db*)
  timeout 60 "$tandemd" --state-folder "$state" --listen 127.0.0.1:0 >"$scratch/out" 2>&1 || code=$?
  ((code == 1)) || die "the older daemon ended with $code on a newer schema: $(<"$scratch/out")"
  expect_text 'tandem\.db was written by a newer version of tandemd .schema [0-9]+; this one knows up to [0-9]+' "$scratch/out"
  [[ $(sha256sum "$state"/tandem.db*) == "$before" ]] || die "the older daemon has changed the database"
  echo "   refused: $(grep -oE 'tandem\.db was written.*' "$scratch/out" | head -n 1)"

  if "$tandemd" --help | grep -q -- '--restore-backup'; then
    expect_code 0 "$scratch/out" "$tandemd" --state-folder "$state" --restore-backup "$migrated"
  else
    rm "$state"/tandem.db*
    cp "$migrated" "$state/tandem.db"
  fi
  start 127.0.0.1:0
  expect_listed "$older" "by the older version, from the backup"
  stop_daemon KILL
  install_programs "$to"
  start 127.0.0.1:0
  expect_listed "$newer" "by the newer version, again"
  echo "   the older version started from the backup, and then the newer one"
}

epochs=10
train_undisturbed "$from" "$epochs"
epochs=$((epochs * wanted * 1000 / taken + epochs))
train_references
echo "$epochs epochs of $steps_an_epoch steps take $((taken / 1000)) s"
for signal in "${signals[@]}"; do
  echo "-- upgrade after SIG$signal"
  upgrade "$signal"
  while ((too_short)); do
    begin_anew
    ((epochs < 100000)) || die "jobs end too early, whatever their length"
    epochs=$((epochs * 4))
    train_references
    upgrade "$signal"
  done
  if [[ $signal == "${signals[-1]}" ]]; then
    echo "-- the way back"
    downgrade
  fi
  begin_anew
done
echo "upgrade: passed"
