#!/usr/bin/env bash
# Trains LeNet for three epochs on two replicas with the real daemon. The accuracy must be at least 0.87 on
# Fashion-MNIST for each of the seeds 1, 2 and 3, and at least 0.98 on MNIST. Only the last epoch counts, never the
# best.
#
#   tests/accuracy/lenet.sh           a sample: seed 1 on Fashion-MNIST
#   tests/accuracy/lenet.sh --whole   all of it (also by TANDEM_WHOLE=1)
#
# $TANDEM_DATA (default: ../shared/data beside the repository) is the folder with MNIST. Without MNIST its case is left
# out.
cd "$(dirname "$0")"
source ../integration/daemon.bash

whole=${TANDEM_WHOLE:-0}
[[ ${1:-} != --whole ]] || whole=1
data=${TANDEM_DATA:-$here/../../../shared/data}
[[ -d /usr/share/datasets/fashion-mnist ]] || skip "Fashion-MNIST is not installed (dataset-fashion-mnist)"

folders=(--data-folder /usr/share/datasets)
if [[ -d $data/mnist ]]; then folders+=(--data-folder "$(readlink -f "$data")"); fi
start_daemon --listen 127.0.0.1:0 --cpu-devices 2 "${folders[@]}"

cat >"$scratch/lenet.yaml" <<'END'
name: lenet
dataset: {name: fashion-mnist}
model:
  input: {shape: [1, 28, 28]}
  layers:
  - conv2d: {filters: 20, kernel: [5, 5]}
  - max_pool2d: {size: [2, 2]}
  - conv2d: {filters: 50, kernel: [5, 5]}
  - max_pool2d: {size: [2, 2]}
  - dense: {units: 500, activation: relu}
  - dense: {units: 10}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {nesterov: {learning_rate: 0.02, momentum: 0.9}}
  global_batch_size: 128
  epochs: 3
replicas: {count: 2}
END

below=0
# run DATASET SEED LEAST
run() {
  local name=$1-$2 accuracy
  logged "$scratch/$name.log" "$tandem" submit "$scratch/lenet.yaml" --follow --set "name=$name" --set "dataset.name=$1" \
    --set "training.seed=$2" || die "$name did not train"
  accuracy=$("$tandem" list --limit 1 -o json | tr -d ' \n' |
    sed -nE 's/.*"last_?[eE]poch":\{.*"validation":\{.*"accuracy":([0-9.e-]+).*/\1/p')
  [[ -n $accuracy ]] || die "$name has no validation accuracy"
  echo "$1, seed $2: $accuracy after the last epoch (at least $3 is asked for)"
  awk -v a="$accuracy" -v least="$3" 'BEGIN { exit !(a >= least) }' || below=1
}

run fashion-mnist 1 0.87
if ((whole)); then
  run fashion-mnist 2 0.87
  run fashion-mnist 3 0.87
  if [[ -d $data/mnist ]]; then
    run mnist 1 0.98
  else
    echo "MNIST is not in $data: left out"
  fi
fi
"$tandem" shutdown --cancel-jobs >/dev/null
((below == 0)) || die "an accuracy is too low"
