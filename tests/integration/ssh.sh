#!/usr/bin/env bash
#
# Trains jobs on two hosts by SSH through the daemon. Jobs have the same bits as on one machine, and are refused, wait, stop
# and pause as they should. The daemon, a worker and a host are killed. Paths are missing on a host.
# Exit code 77: not root, or no OpenSSH.
cd "$(dirname "$0")"
source ./daemon.bash
source ./ssh/hosts.bash

add_host h1
add_host h2
mkdir "$scratch/shared" "$scratch/data"
cp "$here"/../../deploy/examples/data/throws.csv "$scratch/data/"
flags=(--listen 127.0.0.1:0 --cpu-devices 2 --threads-per-cpu-device 1 --reference-devices 0
  --data-folder "$scratch/data" --data-folder /usr/share/datasets --shared-folder "$scratch/shared"
  --worker-listen "$hosts_address:7448" --ssh-host h1 --ssh-host h2)
"$tandemd" --state-folder "$scratch/state" "${flags[@]}" --check >"$scratch/check" 2>&1 || die "the check fails: $(<"$scratch/check")"
expect_text 'host h1: answers; cores: [0-9]+, GPUs: [0-9]+' "$scratch/check"
sed -n 's/^Host h1$/Host h1-again/; /^Host h1-again/,/UserKnownHostsFile/p' "$hosts/config" >"$scratch/again"
cat "$scratch/again" >>"$hosts/config"
expect_code 1 "$scratch/check" "$tandemd" --state-folder "$scratch/state" "${flags[@]}" --ssh-host h1-again --check
expect_text 'host h1-again: host h1-again is the same machine as host h1; remove one' "$scratch/check"
start_daemon "${flags[@]}"
cores=$(nproc)
"$tandem" init lenet >"$scratch/job.yaml"
# submit FLAG...: submits the job; its id is in $job.
submit() {
  "$tandem" submit "$scratch/job.yaml" "$@" >"$scratch/submitted" 2>&1 || die "not submitted: $* $(<"$scratch/submitted")"
  job=$(submitted "$scratch/submitted")
}
same_tensors() { python3 model_tensors.py "$scratch/$1/model.safetensors" "$scratch/$2/model.safetensors"; }
trains() { state_is "$1" RUNNING && [[ $(field "$1" progress) == *step* ]]; }
# workers HOST JOB: prints the processes of the job's workers on the host.
workers() { ssh "$1" "pgrep -f '^[^ ]*tandem-worker --launch .*/$2/'" || true; }
# tasks HOST: prints the number of Tandem's processes on the host.
tasks() { ssh "$1" "grep -slaF TANDEM_TASK= /proc/[0-9]*/environ | wc -l"; }

echo "-- the devices include the hosts"
"$tandem" devices >"$scratch/devices"
expect_text "^h1 \(default\) +up +1/1 +$cores " "$scratch/devices"
"$tandem" doctor >"$scratch/doctor" 2>&1 || true
expect_text 'the cluster answers; 2 of 2 partitions take jobs' "$scratch/doctor"
expect_text "run on a node: bash -c ': >/dev/tcp/$hosts_address/7448'" "$scratch/doctor"

echo "-- a job trains on two hosts, and its model is the same as on one machine"
submit --on ssh --set training.epochs=1 --set training.report.every_steps=100
on_ssh=$job
await_state "$job" SUCCEEDED 300
timeout 240 "$tandem" watch "$job" >"$scratch/watched" || die "watch failed"
expect_text "Submitted to SSH as job $job:1\." "$scratch/watched"
expect_text 'epoch 1/1' "$scratch/watched"
"$tandem" describe "$job" >"$scratch/described"
expect_text "^cluster +SSH job $job:1 on h1, h2$" "$scratch/described"
"$tandem" download "$job" --to "$scratch/on_ssh" >"$scratch/downloaded" || die "no download"
# One file of algorithms, because algorithms are chosen by timing.
cp "$scratch/shared/cpu-algorithms" "$scratch/state/cpu-algorithms" || die "no cpu-algorithms"
submit --set training.epochs=1 --set replicas.workers=2
await_state "$job" SUCCEEDED 300
"$tandem" download "$job" --to "$scratch/here" >"$scratch/downloaded" || die "no download"
same_tensors on_ssh here || die "the models differ"
for rank in 0 1; do
  "$tandem" logs "$on_ssh" --rank "$rank" | grep -q . || die "no log of rank $rank"
done
[[ $(tasks h1) == 0 && $(tasks h2) == 0 ]] || die "processes remain"

echo "-- a sweep trains on the hosts, and a fork moves a job of this machine there"
"$tandem" sweep "$scratch/job.yaml" --on ssh --set name=seeds --set training.epochs=1 --grid training.seed=1,2 --max-running 1 --wait \
  >"$scratch/swept" 2>&1 || die "the sweep fails: $(<"$scratch/swept")"
expect_text 'succeeded: 2 succeeded' "$scratch/swept"
swept=$(sed -nE 's/^(seeds-[a-z0-9]+) succeeded .*/\1/p' "$scratch/swept")
[[ $(wc -w <<<"$swept") == 2 ]] || die "jobs: $(<"$scratch/swept")"
for one in $swept; do
  "$tandem" describe "$one" >"$scratch/described"
  expect_text "^cluster +SSH job $one:1 on h1, h2$" "$scratch/described"
done
# Its source ran on this machine.
"$tandem" fork "$job" --on ssh --set training.epochs=2 >"$scratch/forked" 2>&1 || die "not forked: $(<"$scratch/forked")"
forked=$(submitted "$scratch/forked")
await_state "$forked" SUCCEEDED 300
"$tandem" describe "$forked" >"$scratch/described"
expect_text "^cluster +SSH job $forked:1 on h1, h2$" "$scratch/described"

echo "-- refusals name the field"
expect_code 2 "$scratch/refused" "$tandem" submit "$scratch/job.yaml" --on ssh --set replicas.count=3 --set cluster.ssh.nodes=3
expect_text 'cluster.ssh.nodes: .*needs 3 hosts with 1 core each' "$scratch/refused"
expect_code 2 "$scratch/refused" "$tandem" submit "$scratch/job.yaml" --on ssh --set cluster.ssh.cpus_per_task=1000
expect_text "cluster.ssh.cpus_per_task: .*h1 with $cores cores" "$scratch/refused"
expect_code 2 "$scratch/refused" "$tandem" submit "$scratch/job.yaml" --on slurm
expect_text 'cluster.slurm: .*use cluster.ssh' "$scratch/refused"

echo "-- a job waits for cores, says why, and starts when they are free"
submit --on ssh --set "cluster.ssh.cpus_per_task=$cores" --set training.epochs=200
long=$job
await 120 trains "$long" || die "it does not train: $(field "$long" message)"
submit --on ssh --set training.epochs=1
waits() { [[ $(field "$job" waiting) == *"waits in its queue: it needs 2 hosts with 1 core each, and too few are free"* ]]; }
await 60 waits || die "it says: $(field "$job" waiting)"
"$tandem" cancel "$long" >"$scratch/cancelled"
await_state "$long" CANCELLED
await_state "$job" SUCCEEDED 300
# The checkpoint of the cancelled job has its model.
"$tandem" download "$long" --to "$scratch/long" >"$scratch/downloaded" || die "no model of the cancelled job"

echo "-- a job is paused and resumed, and a killed daemon takes a running job over"
submit --on ssh --set training.epochs=4 --set checkpoints.every_steps=50
await 120 trains "$job" || die "it does not train"
"$tandem" pause "$job" >"$scratch/paused"
await_state "$job" PAUSED
[[ $(tasks h1) == 0 ]] || die "the paused job has processes"
"$tandem" resume "$job" >"$scratch/resumed"
await 120 trains "$job" || die "it does not train again"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
[[ $(tasks h1) != 0 ]] || die "the workers ended with the daemon"
start_daemon "${flags[@]}"
await_state "$job" SUCCEEDED 300
[[ $(field "$job" attempt) == 2 ]] || die "attempts: $(field "$job" attempt)"
"$tandem" watch "$job" >"$scratch/watched" || die "watch failed"
[[ $(grep -c 'epoch [1-4]/4 .*val loss' "$scratch/watched") == 4 ]] || die "epochs are lost: $(<"$scratch/watched")"

echo "-- after a worker's death, the other ends, and the job restarts"
is_again() { [[ $(field "$job" attempt) == 2 ]]; }
has_checkpoint() { [[ $(field "$job" last_checkpoint) == *step* ]]; }
submit --on ssh --set training.epochs=100 --set checkpoints.every_steps=50
await 120 has_checkpoint || die "no checkpoint: $(field "$job" message)"
ssh h2 "kill -9 $(workers h2 "$job")"
await 180 is_again || die "it does not restart: $(field "$job" message)"
[[ $(field "$job" restarts) == 1 ]] || die "the restart is not counted: $(field "$job" restarts)"
await 120 trains "$job" || die "it does not train again"
"$tandem" cancel "$job" >"$scratch/cancelled"
await_state "$job" CANCELLED

echo "-- after a host's crash, the job goes on when the host is back"
submit --on ssh --set training.epochs=100 --set checkpoints.every_steps=50
await 120 has_checkpoint || die "no checkpoint: $(field "$job" message)"
crash_host h2
down() { "$tandem" devices | grep -q '^h2 .* down '; }
await 60 down || die "h2 is up: $("$tandem" devices)"
expect_text 'warning host=h2 cannot reach host h2: ' "$scratch/tandemd.log"
start_host h2
await 240 is_again || die "it does not restart: $(field "$job" message)"
await 120 trains "$job" || die "it does not train again"
"$tandem" cancel "$job" >"$scratch/cancelled"
await_state "$job" CANCELLED

echo "-- a path that is missing on a host is an error with the host and the path"
# fails_with PATTERN: the job fails, and the message matches.
fails_with() {
  await_state "$job" FAILED
  [[ $(field "$job" message) =~ $1 ]] || die "it says: $(field "$job" message)"
}
hide h2 "$scratch/data"
"$tandem" submit "$here/../../deploy/examples/tabular-regression.yaml" --on ssh --set replicas.count=2 --set max_restarts=0 >"$scratch/submitted"
job=$(submitted "$scratch/submitted")
fails_with "cannot start on node h2: $scratch/data/throws.csv is missing"
show h2 "$scratch/data"
hide h2 "$scratch/shared"
submit --on ssh --set max_restarts=0
fails_with "cannot start on node h2: .*$scratch/shared/jobs/$job/attempt-1 is missing; every node needs this path"
code=0
"$tandemd" --state-folder "$scratch/other" "${flags[@]}" --check >"$scratch/check" 2>&1 || code=$?
[[ $code != 0 ]] || die "the check finds nothing: $(<"$scratch/check")"
expect_text "host h2: host h2 lacks $scratch/shared/tandem-check-[0-9]+; every host needs" "$scratch/check"
show h2 "$scratch/shared"

echo "-- nothing remains on the hosts"
idle() { [[ $(tasks h1) == 0 && $(tasks h2) == 0 ]]; }
await 60 idle || die "processes remain: $(ssh h1 ps ax) $(ssh h2 ps ax)"
echo "jobs trained on two hosts by SSH"
