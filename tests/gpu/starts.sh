#!/usr/bin/env bash
# Measures the time from the submission of a job to its first step, for ResNet-18 of deploy/examples on random data. A
# cold start has a new state folder, so the job searches for algorithms. A warm start finds them. Prints a line of JSON
# for each start.
#
#   tests/gpu/starts.sh [--cpu] [--starts N] [--precision PRECISION]
#
# N: default 3; the first start is cold. PRECISION: default bfloat16.
cd "$(dirname "$0")" || exit
starts=3
precision=bfloat16
kind=DEVICE_KIND_GPU
devices=()
while (($#)); do
  case $1 in
    --starts) starts=${2:?--starts needs a number} && shift ;;
    --precision) precision=${2:?--precision needs float32 or bfloat16} && shift ;;
    --cpu) kind=DEVICE_KIND_CPU devices=(--cpu-devices 1) ;;
    *)
      echo "unknown argument $1; the head of $0 says what there is" >&2
      exit 2
      ;;
  esac
  shift
done
source ../integration/daemon.bash
examples=${TANDEM_EXAMPLES:-$here/../../deploy/examples}
start_daemon --listen 127.0.0.1:0 "${devices[@]}"

sed -E 's/^dataset: .*/dataset: {synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 2048}}/' \
  "$examples/resnet18-fashion-mnist.yaml" >"$scratch/job.yaml"
for ((i = 1; i <= starts; ++i)); do
  begin=$(date +%s%N)
  job=$("$tandem" submit "$scratch/job.yaml" --set "replicas.device_kind=$kind" --set "training.precision=$precision" \
    --set training.epochs=1 --set training.report.every_steps=1 | submitted)
  [[ -n $job ]] || die "start $i was not accepted"
  end=""
  while read -r event; do
    if [[ -z $end && $event == *'"progress"'* ]]; then end=$(date +%s%N); fi
  done < <("$tandem" watch "$job" -o json 2>"$scratch/watch.log")
  [[ -n $end ]] || die "start $i: the job reported no step; $("$tandem" logs "$job" 2>&1 | tail -n 3)"
  printf '{"start": %d, "precision": "%s", "seconds_to_first_step": %d.%03d}\n' "$i" "$precision" \
    $(((end - begin) / 1000000000)) $(((end - begin) / 1000000 % 1000))
done
"$tandem" shutdown --cancel-jobs >/dev/null
wait "$daemon" || true
