#!/usr/bin/env bash
# Fills a small file system at every stage of a job: submission, start, training, checkpoint, model, deletion, backup
# and upload. Errors must name the disk, and states must stay correct. Training must continue or end by its policy. When
# the disk has room again, everything must work. Then tests a read-only disk. Exit code 77: this machine cannot mount a
# file system.
cd "$(dirname "$0")"
source ../integration/daemon.bash

((EUID == 0)) || skip "needs root, to mount a file system"
state=$scratch/state
mkdir "$state"
mount -t tmpfs -o size=64m,mode=0700 tmpfs "$state" 2>/dev/null || skip "may not mount a file system here"
extra_cleanup() { umount -l "$state" 2>/dev/null || true; }

# Takes all room; room gives it back.
fill() {
  local try
  # The daemon may give some back meanwhile.
  for try in 1 2 3 4 5; do
    dd if=/dev/zero of="$state/ballast$try" bs=64k 2>/dev/null || true
    dd if=/dev/zero of="$state/ballast$try" bs=4k oflag=append conv=notrunc 2>/dev/null || true
    [[ $(df --output=avail "$state" | tail -n 1) -eq 0 ]] && return
  done
  die "the disk is not full: $(df "$state" | tail -n 1)"
}
room() { rm -f "$state"/ballast*; }
# Words that a user would search for.
disk_words='disk|space|room'

job_file=$scratch/job.yaml
cat >"$job_file" <<'END'
name: filler
dataset:
  synthetic: {shape: [1, 16, 16], classes: 4, train_samples: 4096, validation_samples: 64, seed: 1}
model:
  input: {shape: [1, 16, 16]}
  layers:
    - conv2d: {filters: 8, kernel: [3, 3], activation: relu}
    - dense: {units: 128, activation: relu}
    - dense: {units: 4}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.01}}
  global_batch_size: 32
  epochs: 1
  report: {every_seconds: 0.1}
END

# submit FLAG...: the id of the new job, in $job.
submit() {
  logged "$scratch/submitted" "$tandem" submit "$job_file" "$@" || die "not submitted"
  job=$(submitted "$scratch/submitted")
  [[ -n $job ]] || die "no job in: $(<"$scratch/submitted")"
}
step_of() { "$tandem" describe "$1" -o json | python3 -c "import json, sys; print(json.load(sys.stdin).get('progress', {}).get('step', 0))"; }
goes_on() { (($(step_of "$1") > $2)); }

start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --reference-devices 0 --metrics-listen 127.0.0.1:0
metrics=$(metrics_address)
ready() {
  http_get "$metrics" /readyz >"$scratch/ready"
  grep -q "^HTTP/1.[01] $1" "$scratch/ready"
}
await 180 ready 200 || die "not ready: $(<"$scratch/ready")"

echo "-- submission"
fill
await 180 ready 503 || die "ready on a full disk"
expect_text "$disk_words" "$scratch/ready"
code=0
"$tandem" submit "$job_file" >"$scratch/out" 2>&1 || code=$?
((code != 0)) || die "a full disk took a job: $(<"$scratch/out")"
expect_text "$disk_words" "$scratch/out"
[[ $("$tandem" list --all -o json | tr -d "[:space:]") == "[]" ]] || die "there is a job that was not accepted"
room
await 180 ready 200 || die "not ready again: $(<"$scratch/ready")"
submit --set training.epochs=1
await_state "$job" SUCCEEDED
echo "   refused, then accepted"

echo "-- backup"
fill
code=0
"$tandem" backup >"$scratch/out" 2>&1 || code=$?
((code != 0)) || die "a full disk took a backup"
expect_text "$disk_words" "$scratch/out"
[[ -z $(ls "$state/backups" 2>/dev/null) ]] || die "something is left of it: $(ls "$state/backups")"
room
"$tandem" backup >"$scratch/out" 2>&1 || die "no backup: $(<"$scratch/out")"
[[ -s $(head -n 1 "$scratch/out") ]] || die "there is no file $(head -n 1 "$scratch/out")"

echo "-- training and its events"
submit --set training.epochs=1000000 --set checkpoints.every_minutes=0.03
await_state "$job" RUNNING
await 180 goes_on "$job" 200 || die "it does not train"
worker=$(pgrep -f -- "$state/jobs/$job" | head -n 1)
before=$(step_of "$job")
fill
# Though the database has had more, and may have room within its files.
await 180 ready 503 || die "ready on a full disk"
expect_text "$disk_words" "$scratch/ready"
# Two checkpoints and many events.
sleep 4
kill -0 "$worker" 2>/dev/null || die "the worker has ended: $(tail -n 5 "$state/jobs/$job/worker.log")"
# The daemon answers on a full disk.
expect_code 0 "$scratch/out" "$tandem" list
room
await 180 ready 200 || die "not ready again: $(<"$scratch/ready")"
await 180 goes_on "$job" "$((before + 200))" || die "no progress comes any more: step $(step_of "$job"), $before before"
state_is "$job" RUNNING || die "it is $(field "$job" state)"
kill -0 "$worker" 2>/dev/null || die "the worker was started again"
echo "   training went on from step $before to $(step_of "$job")"

echo "-- checkpoints"
checkpoints() { "$tandem" checkpoints "$job" -o json | python3 -c "import json, sys; l = json.load(sys.stdin); print(max([int(c['step']) for c in l] or [0]))"; }
newest=$(checkpoints)
newer() { (($(checkpoints) > newest)); }
await 180 newer || die "no checkpoint comes after there is room again"

echo "-- deletion and cancellation"
# The disk is full to the last byte, except the daemon's reserve.
first=$("$tandem" list --all -o json | python3 -c 'import json, sys; print([j["name"].split("/")[1] for j in json.load(sys.stdin) if j["state"] == "JOB_STATE_SUCCEEDED"][0])')
# The size of the reserve, in KiB.
kept() { du -k "$state/tandem.db-reserve" | cut -f 1; }
available() { df --output=avail "$state" | tail -n 1; }
(($(kept) >= 4096)) || die "$(kept) KiB are kept"
# Adds a file whose deletion will free space.
head -c 3000000 /dev/zero >"$state/jobs/$first/filling"
fill
"$tandem" cancel "$job" >"$scratch/out" 2>&1 || die "not cancelled on a full disk: $(<"$scratch/out")"
await_state "$job" CANCELLED
"$tandem" delete "$first" >"$scratch/out" 2>&1 || die "not deleted on a full disk: $(<"$scratch/out")"
gone() { [[ ! -e $state/jobs/$first ]]; }
await 180 gone || die "its folder stays"
(($(available) >= 2000)) || die "it brought no room back: $(df "$state" | tail -n 1)"
echo "   with $(kept) KiB of what is kept left, $(available) KiB available"
room
all_kept() { (($(kept) >= 4096)); }
await 180 all_kept || die "of the room that is kept there are only $(kept) KiB again"

echo "-- start"
submit --set training.epochs=1000000 --set max_restarts=5
running=$job
await_state "$running" RUNNING
submit --set training.epochs=1
waiting=$job
fill
# The worker's end frees the device although nothing can be written.
kill -9 "$(pgrep -f -- "$state/jobs/$running" | head -n 1)"
sleep 3
room
await 180 eval 'state_is "$running" RUNNING || state_is "$running" FAILED' || die "$running is $(field "$running" state)"
"$tandem" cancel "$running" >/dev/null 2>&1 || true
await 180 eval 'state_is "$waiting" SUCCEEDED || state_is "$waiting" FAILED' || die "$waiting is $(field "$waiting" state)"
if state_is "$waiting" FAILED; then
  field "$waiting" message >"$scratch/out"
  expect_text "$disk_words" "$scratch/out"
  "$tandem" resume "$waiting" >/dev/null
fi
await_state "$waiting" SUCCEEDED

echo "-- the model"
has_begun() { [[ $(field "$1" state) =~ ^JOB_STATE_(RUNNING|SUCCEEDED|FAILED)$ ]]; }
# Tries again with more epochs if the job ended before the disk was full.
in_time=0
for epochs in 6 100 2000; do
  submit --set training.epochs=$epochs
  await 180 has_begun "$job" || die "it is $(field "$job" state)"
  fill
  state_is "$job" SUCCEEDED || { in_time=1 && break; }
  room
done
((in_time)) || die "every job was over before the disk was full"
# The job ends, and then waits for room to report its end.
worker=$(pgrep -f -- "$state/jobs/$job" | head -n 1) || true
ticks() { awk '{ print $14 + $15 }' "/proc/$worker/stat" 2>/dev/null || echo 0; }
rests() {
  local before
  before=$(ticks)
  sleep 1
  (($(ticks) < before + 5))
}
await 20 rests || true
room
await 180 eval 'state_is "$job" SUCCEEDED || state_is "$job" FAILED' || die "it is $(field "$job" state)"
if state_is "$job" FAILED; then
  field "$job" message >"$scratch/out"
  expect_text "$disk_words" "$scratch/out"
  echo "   failed, and said: $(<"$scratch/out")"
  "$tandem" resume "$job" >/dev/null || die "not resumed"
  await_state "$job" SUCCEEDED
fi
"$tandem" download "$job" --to "$scratch/models" >"$scratch/out" 2>&1 || die "no model: $(<"$scratch/out")"

echo "-- upload"
head -c 100000 /dev/urandom >"$scratch/data.csv"
code=0
"$tandem" datasets add --upload csv "$scratch/data.csv" >"$scratch/out" 2>&1 || code=$?
((code != 0)) || die "taken"
echo "   $(tail -n 2 "$scratch/out")"

echo "-- start of the daemon"
# A few slices of the reserve are enough, even after a kill.
for signal in TERM KILL; do
  kill -$signal "$daemon"
  wait "$daemon" 2>/dev/null || [[ $signal == KILL ]] || die "it ended with $?"
  fill
  start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --reference-devices 0
  submitted=$("$tandem" list --all -o json | python3 -c 'import json, sys; print(" ".join(j["name"].split("/")[1] for j in json.load(sys.stdin)))')
  first=${submitted##* }
  "$tandem" delete "$first" >"$scratch/out" 2>&1 || die "not deleted by a daemon that started on a full disk: $(<"$scratch/out")"
  gone || await 180 gone || die "its folder stays"
  room
  await 180 all_kept || die "of the room that is kept there are only $(kept) KiB again"
done
kill -TERM "$daemon"
wait "$daemon" || die "it ended with $?"
rm "$state/tandem.db-reserve"
fill
code=0
timeout 60 "$tandemd" --state-folder "$state" --listen 127.0.0.1:0 >"$scratch/out" 2>&1 || code=$?
((code == 1)) || die "with nothing kept it started on a full disk, or hung: $code"
expect_text "$disk_words" "$scratch/out"
room

echo "-- a disk that is read-only"
mount -o remount,ro "$state"
code=0
timeout 60 "$tandemd" --state-folder "$state" --listen 127.0.0.1:0 >"$scratch/out" 2>&1 || code=$?
((code == 1)) || die "it started on a read-only disk: $code"
expect_text 'read-only' "$scratch/out"
mount -o remount,rw "$state"
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --reference-devices 0
submit --set training.epochs=1
await_state "$job" SUCCEEDED
echo "full_disk: all stages"
