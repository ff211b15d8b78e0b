#!/usr/bin/env bash
# Trains LeNet on random data with two `tandem-worker --job` that share the first GPU. Each worker is a host of its own
# to NCCL (NCCL_HOSTID): NCCL refuses two ranks of one host on one GPU. Prints both logs and one line of JSON.
#
#   tests/gpu/two_workers.sh [--cpu]
#
# The worker is $TANDEM_BIN_DIR/server/worker/tandem-worker.
set -euo pipefail
kind=DEVICE_KIND_GPU
if [[ ${1:-} == --cpu ]]; then kind=DEVICE_KIND_CPU; fi
worker=${TANDEM_BIN_DIR:-$(dirname "$0")/../../bazel-bin}/server/worker/tandem-worker
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT
cat >"$scratch/job.json" <<JSON
{"name": "two-workers",
 "dataset": {"synthetic": {"shape": [1, 28, 28], "classes": 10, "train_samples": 12800, "validation_samples": 512}},
 "model": {"input": {"shape": [1, 28, 28]}, "layers": [
   {"conv2d": {"filters": 20, "kernel": [5, 5]}}, {"max_pool2d": {"size": [2, 2]}},
   {"conv2d": {"filters": 50, "kernel": [5, 5]}}, {"max_pool2d": {"size": [2, 2]}},
   {"dense": {"units": 500, "activation": "ACTIVATION_RELU"}}, {"dense": {"units": 10}}]},
 "training": {"loss": {"softmax_cross_entropy": {}},
   "optimizer": {"nesterov": {"learning_rate": 0.02, "momentum": 0.9}}, "global_batch_size": 128, "epochs": 2},
 "replicas": {"device_kind": "$kind"}}
JSON
export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) NCCL_DEBUG=INFO
processes=()
for rank in 0 1; do
  RANK=$rank NCCL_HOSTID=h$rank "$worker" --job "$scratch/job.json" --output "$scratch/run" >"$scratch/$rank.log" 2>&1 &
  processes+=($!)
done
codes=()
for process in "${processes[@]}"; do
  code=0
  wait "$process" || code=$?
  codes+=("$code")
done
for rank in 0 1; do
  echo "----- rank $rank"
  cat "$scratch/$rank.log"
done
# NCCL prints this line when a rank has joined its communicator.
joined=0
for rank in 0 1; do
  if grep -q 'NCCL INFO.*Init COMPLETE' "$scratch/$rank.log"; then joined=$((joined + 1)); fi
done
loss=$(sed -nE 's/.*training loss ([0-9.e+-]+),.*/\1/p' "$scratch/0.log" | tail -n 1)
model=false
if compgen -G "$scratch/run/*.safetensors" >/dev/null; then model=true; fi
printf '\n{"exit_codes": [%d, %d], "nccl_ranks": %d, "loss": %s, "model": %s}\n' "${codes[@]}" "$joined" \
  "${loss:-null}" "$model"
