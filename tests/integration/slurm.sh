#!/usr/bin/env bash
# Trains jobs on a real Slurm cluster of two nodes through the daemon: events, model, refusals, cancel, pause, a killed
# daemon, a preemption, and the same bits as on one machine. TANDEM_WHOLE=1: also all examples on 1, 2 and 4 nodes, with
# all-reduce and with averaging; $TANDEM_DATA (default: ../shared/data beside the repository) has MNIST and CIFAR-10.
# Exit code 77: not root, or no Slurm.
cd "$(dirname "$0")"
source ./daemon.bash
source ./slurm/cluster.bash
data=${TANDEM_DATA:-$here/../../../shared/data}
data_folders=(--data-folder /usr/share/datasets --data-folder /usr/share/common-licenses)
if [[ -d $data ]]; then data_folders+=(--data-folder "$(readlink -f "$data")"); fi

# Holds rank 1 before its worker starts, as long as the file "hold" exists.
cat >"$scratch/prolog" <<END
#!/bin/sh
while [ "\$SLURM_PROCID" = 1 ] && [ -e $scratch/hold ]; do sleep 0.2; done
END
chmod +x "$scratch/prolog"
export SLURM_LAB_CONF="TaskProlog=$scratch/prolog"
start_cluster 2
login() { "$cluster" run "$@"; }
tandem() { login "$tandem" "$@"; }
devices=2
start() {
  start_daemon "$cluster" run -- --listen 127.0.0.1:0 --cpu-devices "$devices" --threads-per-cpu-device 1 --reference-devices 0 \
    --data-folder "$scratch/data" "${data_folders[@]}" \
    --shared-folder "$scratch/shared" --worker-listen 10.77.0.1:7448 --slurm-allow-argument nice
}
# submit FLAG...: submits the job; its id is in $job.
submit() {
  tandem submit "$scratch/job.yaml" "$@" >"$scratch/submitted" || die "not submitted: $*"
  job=$(submitted "$scratch/submitted")
}
on_client=("$cluster" run)
trains() { state_is "$1" RUNNING && [[ $(field "$1" progress) == *step* ]]; }
# same_tensors FOLDER FOLDER: whether the models have the same tensors, bit for bit.
same_tensors() { python3 model_tensors.py "$scratch/$1/model.safetensors" "$scratch/$2/model.safetensors"; }
slurm_jobs() { login squeue -h -o '%i %k' | grep -c "tandem:$1:" || true; }

mkdir "$scratch/shared" "$scratch/data"
cp "$here"/../../deploy/examples/data/throws.csv "$scratch/data/"
start
tandem init lenet >"$scratch/job.yaml"

echo "-- the devices include the partitions"
tandem devices >"$scratch/devices"
expect_text '^work \(default\) +up +2/2 +1 +0 ' "$scratch/devices"

echo "-- a job trains on two nodes, with events, and its model is the same as on one machine"
submit --on slurm --set training.epochs=1 --set training.report.every_steps=100
await_state "$job" SUCCEEDED 300
timeout 240 "$cluster" run "$tandem" watch "$job" >"$scratch/watched" || die "watch failed"
expect_text 'Submitted to Slurm as job [0-9]+\.' "$scratch/watched"
expect_text 'epoch 1/1' "$scratch/watched"
tandem describe "$job" >"$scratch/described" || die "describe failed"
expect_text '^cluster +Slurm job [0-9]+ on n1, n2$' "$scratch/described"
on_slurm=$job
tandem download "$on_slurm" --to "$scratch/on_slurm" >"$scratch/downloaded" || die "no download"
[[ $(stat -c %a "$scratch/shared/jobs/$on_slurm/attempt-1/launch.textproto") == 600 ]] || die "the secret's file is open"
# One file of algorithms, because algorithms are chosen by timing.
cp "$scratch/shared/cpu-algorithms" "$scratch/state/cpu-algorithms" || die "no cpu-algorithms"
submit --set training.epochs=1 --set replicas.workers=2
await_state "$job" SUCCEEDED 300
tandem download "$job" --to "$scratch/here" >"$scratch/downloaded" || die "no download"
same_tensors on_slurm here || die "the models differ"

echo "-- refusals name the field"
expect_code 2 "$scratch/refused" "$cluster" run "$tandem" submit "$scratch/job.yaml" --on slurm --set cluster.slurm.partition=none
expect_text 'cluster.slurm.partition: .*invalid partition.*; the partitions are .*"urgent"' "$scratch/refused"
expect_code 2 "$scratch/refused" "$cluster" run "$tandem" submit "$scratch/job.yaml" --on slurm --set replicas.count=9
expect_text 'cluster.slurm.nodes' "$scratch/refused"
expect_code 2 "$scratch/refused" "$cluster" run "$tandem" submit "$scratch/job.yaml" --on slurm --set replicas.count=1 \
  --set cluster.slurm.partition=brief --set cluster.slurm.time_limit_seconds=3600
expect_text 'cluster.slurm.time_limit_seconds: .*longer than the limit of the partition "brief"' "$scratch/refused"
expect_code 2 "$scratch/refused" "$cluster" run "$tandem" submit "$scratch/job.yaml" --on slurm --set 'cluster.slurm.extra_arguments=[--uid=0]'
expect_text 'extra_arguments.*allows --nice' "$scratch/refused"

echo "-- the doctor names a partition whose nodes are all down"
# A node that returns is idle before it responds, and until it responds Slurm refuses jobs for it.
idle() { [[ $(login sinfo -h --responding -p work -t idle -o %D) == "$1" ]]; }
await 180 idle 2 || die "the nodes are not idle"
login scontrol update nodename=n1 state=down reason=test
tandem doctor >"$scratch/doctor" 2>&1 || true
expect_text 'the partition "brief" starts no jobs: it is down, or all of its 1 nodes are down' "$scratch/doctor"
login scontrol update nodename=n1 state=resume
await 180 idle 2 || die "the nodes are not idle"

echo "-- a cancellation does not wait for a rank that never came"
touch "$scratch/hold"
submit --on slurm --set replicas.count=2
connected() { grep -q "worker connected job=$job" "$scratch/tandemd.log"; }
await 180 connected || die "the first worker does not connect: $(field "$job" message)"
tandem cancel "$job" >"$scratch/cancelled"
# Much less than the time for a checkpoint (2 min). Slurm's KillWait is 5 s.
await_state "$job" CANCELLED 60
rm "$scratch/hold"

echo "-- a worker that dies is no preemption"
# worker_on NODE: prints the process of the job's worker on the node.
worker_on() {
  local pid
  for pid in $(pgrep -f "tandem-worker --launch .*/$job/"); do
    # srun and the batch script have the same words in their command lines.
    if [[ $(readlink "/proc/$pid/exe") == *tandem-worker ]] && grep -qzx "SLURMD_NODENAME=$1" "/proc/$pid/environ"; then
      echo "$pid"
    fi
  done
}
submit --on slurm --set replicas.count=2 --set training.epochs=100 --set checkpoints.every_steps=50
has_checkpoint() { [[ $(field "$job" last_checkpoint) == *step* ]]; }
await 120 has_checkpoint || die "no checkpoint: $(field "$job" message)"
kill -9 "$(worker_on n2)"
is_again() { [[ $(field "$job" attempt) == 2 ]]; }
await 180 is_again || die "it does not restart: $(field "$job" message)"
[[ $(field "$job" restarts) == 1 ]] || die "the restart is not counted: $(field "$job" restarts)"
# The job runs on, so the watch does not end by itself.
says_restart() {
  timeout 10 "$cluster" run "$tandem" watch "$job" >"$scratch/watched" || true
  grep -q 'restart 1 of' "$scratch/watched"
}
await 180 says_restart || die "it says: $(<"$scratch/watched")"
! grep -q 'another job needed the nodes' "$scratch/watched" || die "it says: $(<"$scratch/watched")"
tandem cancel "$job" >"$scratch/cancelled"
await_state "$job" CANCELLED

echo "-- a folder that is missing on a node is an error with the node and the path"
# names_the_node JOB PATTERN: the job fails, and the message matches.
names_the_node() {
  await_state "$1" FAILED
  [[ $(field "$1" message) =~ $2 ]] || die "it says: $(field "$1" message)"
}
"$cluster" hide n2 "$scratch/data"
tandem submit "$here/../../deploy/examples/tabular-regression.yaml" --on slurm --set replicas.count=2 >"$scratch/submitted"
tabular=$(submitted "$scratch/submitted")
names_the_node "$tabular" "cannot start on node n2: $scratch/data/throws.csv is missing"
[[ $(field "$tabular" attempt) == 2 ]] || die "attempts: $(field "$tabular" attempt)"
"$cluster" show n2 "$scratch/data"
"$cluster" hide n1 "$scratch/shared"
submit --on slurm --set max_restarts=0
names_the_node "$job" "cannot start on node n1: .* every node needs the folder $scratch/shared/jobs/$job/attempt-1"
"$cluster" show n1 "$scratch/shared"
"$cluster" hide n2 "$scratch/shared"
submit --on slurm --set replicas.count=2 --set max_restarts=0
names_the_node "$job" "cannot start on node n2: $scratch/shared/jobs/$job/attempt-1 is missing"
"$cluster" show n2 "$scratch/shared"

echo "-- tandem logs reads the log of each rank"
for rank in 0 1; do
  tandem logs "$on_slurm" --rank "$rank" >"$scratch/rank-$rank" || die "no log of rank $rank"
done
cmp -s "$scratch/rank-1" "$scratch/shared/jobs/$on_slurm/worker-1.log" || die "rank 1 has another log"
expect_text 'worker ends' "$scratch/rank-0"
expect_code 2 "$scratch/refused" "$cluster" run "$tandem" logs "$on_slurm" --rank 2
expect_text 'rank: is 2; the job has the ranks 0 to 1' "$scratch/refused"

echo "-- a killed daemon finds the job, and no event is lost"
submit --on slurm --set training.epochs=100 --set training.report.every_steps=50 --set checkpoints.every_steps=100
long=$job
await 180 trains "$long" || die "state $(field "$long" state)"
kill -9 "$(pgrep -P "$daemon")"
wait "$daemon" 2>/dev/null || true
sleep 2
start
is_back() { (($(grep -c "worker connected job=$long" "$scratch/tandemd.log") >= 2)); }
await 180 is_back || die "the worker does not come back"
[[ $(field "$long" attempt) == 1 ]] || die "the job started again"

echo "-- a waiting job shows Slurm's reason, and its cancellation leaves nothing"
submit --on slurm
waits() { tandem queue | grep -q "Slurm job [0-9]* waits in its queue: \(Resources\|Priority\)"; }
await 180 waits || die "no reason: $(tandem queue)"
[[ $(field "$job" waiting) == *"waits in its queue"* ]] || die "the job says: $(field "$job" waiting)"
tandem cancel "$job" >"$scratch/cancelled"
await_state "$job" CANCELLED
[[ $(slurm_jobs "$job") == 0 ]] || die "the job is left in Slurm"

echo "-- a preempted job continues from its checkpoint"
await 180 eval '[[ $(field "$long" last_checkpoint) == *step* ]]' || die "no checkpoint"
login sbatch --partition=urgent --nodes=2 --output=/dev/null --wrap='sleep 3' >"$scratch/urgent"
await 180 eval '[[ $(field "$long" attempt) == 2 ]] && trains "$long"' || die "state $(field "$long" state): $(field "$long" message)"
[[ $(field "$long" message) == "Training continues from step "* ]] || die "it says: $(field "$long" message)"

echo "-- pause, resume and cancel reach the nodes"
tandem pause "$long" >"$scratch/paused"
await_state "$long" PAUSED
gone() { [[ $(slurm_jobs "$long") == 0 ]]; }
await 180 gone || die "the paused job is left in Slurm"
tandem resume "$long" >"$scratch/resumed"
await 180 trains "$long" || die "state $(field "$long" state)"
tandem cancel "$long" >"$scratch/cancelled"
await_state "$long" CANCELLED
await 180 gone || die "the cancelled job is left in Slurm"

echo "-- while Slurm is away, a cancellation says so, and continues by itself"
login sbatch --nodes=2 --output=/dev/null --wrap='sleep 600' >"$scratch/other"
submit --on slurm
await 180 waits || die "no reason: $(tandem queue)"
"$cluster" kill ctl
tandem cancel "$job" >"$scratch/cancelled"
says_why() { tandem describe "$job" | grep -q '^waits .*Slurm has not answered since .* The stop continues by itself'; }
await 180 says_why || die "it says: $(tandem describe "$job")"
state_is "$job" CANCELLING || die "state $(field "$job" state)"
"$cluster" start ctl
await_state "$job" CANCELLED
if [[ ${TANDEM_WHOLE:-0} == 1 ]]; then
  kill -9 "$(pgrep -P "$daemon")"
  wait "$daemon" 2>/dev/null || true
  "$cluster" down
  start_cluster 4
  devices=4
  start
  # trained FOLDER FLAG...: trains a job and downloads its model.
  trained() {
    local folder=$1
    shift
    submit "$@" --set training.epochs=1 --set dataset.train_limit=1024 --set dataset.validation_limit=256 --set max_restarts=0
    await_state "$job" SUCCEEDED 600
    tandem download "$job" --to "$scratch/$folder" --force >"$scratch/downloaded" || die "no download"
  }
  for file in "$here"/../../deploy/examples/*.yaml; do
    name=$(basename "$file" .yaml)
    cp "$file" "$scratch/job.yaml"
    if [[ ! -d $data/mnist ]] && grep -q '^dataset: {name: mnist}' "$file"; then
      echo "$name: $data/mnist is missing; Fashion-MNIST takes its place"
      sed -i 's/^dataset: .*/dataset: {name: fashion-mnist}/' "$scratch/job.yaml"
    fi
    if [[ $name == matlab-cifar-10 && ! -d $data/cifar-10 ]]; then
      echo "SKIPPED: $name: $data/cifar-10 is missing"
      continue
    fi
    methods=("" replicas.parameter_averaging.every_iterations=3)
    if grep -q parameter_averaging "$file"; then methods=(""); fi
    for method in "${methods[@]}"; do
      for nodes in 1 2 4; do
        echo "-- $name ${method:+with averaging }on $nodes nodes has the bits of one machine"
        trained on_slurm --on slurm --set "replicas.count=$nodes" ${method:+--set "$method"}
        cp "$scratch/shared/cpu-algorithms" "$scratch/state/cpu-algorithms"
        trained here --set "replicas.count=$nodes" --set "replicas.workers=$nodes" ${method:+--set "$method"}
        same_tensors on_slurm here || die "the models differ"
      done
    done
  done
fi
echo "All cases passed."
