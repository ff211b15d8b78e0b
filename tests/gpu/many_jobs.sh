#!/usr/bin/env bash
# Runs many short jobs on one device, one after the other. Some are cancelled, and the workers of some are killed, at
# random moments. At the end all of the GPU's memory must be free again, no worker may remain, and the daemon must not
# have grown. Prints a line every 50 jobs, and a final line of JSON.
#
#   tests/gpu/many_jobs.sh [--jobs N] [--cpu]
#
# N: default 1000. --cpu uses a CPU device, and ignores memory of GPUs. $SEED (default 1) is the seed of $RANDOM.
cd "$(dirname "$0")" || exit
jobs=1000
kind=DEVICE_KIND_GPU
devices=()
while (($#)); do
  case $1 in
    --jobs) jobs=${2:?--jobs needs a number} && shift ;;
    --cpu) kind=DEVICE_KIND_CPU devices=(--cpu-devices 1) ;;
    *)
      echo "unknown argument $1; the head of $0 says what there is" >&2
      exit 2
      ;;
  esac
  shift
done
source ../integration/daemon.bash
RANDOM=${SEED:-1}

# MiB in use on the first GPU, by everybody; 0 without nvidia-smi.
gpu_memory() {
  if [[ $kind == DEVICE_KIND_GPU ]]; then
    nvidia-smi -i 0 --query-gpu=memory.used --format=csv,noheader,nounits | tr -d ' '
  else
    echo 0
  fi
}
# Processes of workers of this daemon.
workers() {
  local process found=()
  for process in /proc/[0-9]*; do
    if grep -qaF -- "$scratch/state/jobs/${1:-}" "$process/cmdline" 2>/dev/null; then found+=("${process#/proc/}"); fi
  done
  echo "${found[*]}"
}
daemon_mib() { awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$daemon/status"; }
daemon_files() { find "/proc/$daemon/fd" -mindepth 1 | wc -l; }

before=$(gpu_memory)
start_daemon --listen 127.0.0.1:0 "${devices[@]}"
cat >"$scratch/job.yaml" <<END
name: short
dataset: {synthetic: {shape: [1, 28, 28], classes: 10, train_samples: 4096, validation_samples: 512}}
model: {template: {lenet: {}}}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {nesterov: {learning_rate: 0.02, momentum: 0.9}}
  global_batch_size: 64
  epochs: 3
replicas: {count: 1, device_kind: $kind}
END

declare -A ended=()
killed=0
first_mib=0
first_files=0
for ((i = 1; i <= jobs; ++i)); do
  job=$("$tandem" submit "$scratch/job.yaml" --set "training.seed=$i" | submitted)
  [[ -n $job ]] || die "job $i was not accepted"
  case $((i % 8)) in
    3)
      sleep "0.$((RANDOM % 1000))"
      "$tandem" cancel "$job" >/dev/null 2>&1 || true   # It may have ended.
      ;;
    6)
      sleep "0.$((RANDOM % 1000))"
      read -ra found <<<"$(workers "${job#jobs/}")"
      if ((${#found[@]})); then kill -9 "${found[@]}" 2>/dev/null && killed=$((killed + 1)); fi
      ;;
  esac
  code=0
  timeout 120 "$tandem" watch "$job" >"$scratch/watch.log" 2>&1 || code=$?
  ended[$code]=$((${ended[$code]:-0} + 1))
  # 0 succeeded, 1 failed, which only a killed one may, 3 cancelled.
  if ((code > 3 || code == 2 || (code == 1 && i % 8 != 6) || (code == 3 && i % 8 != 3))); then
    tail -n 20 "$scratch/watch.log" >&2
    die "job $i ended with code $code"
  fi
  if ((i == 20 || i == jobs && first_mib == 0)); then
    first_mib=$(daemon_mib)
    first_files=$(daemon_files)
  fi
  if ((i % 50 == 0)); then
    echo "$i jobs: GPU $(gpu_memory) MiB, daemon $(daemon_mib) MiB and $(daemon_files) files"
  fi
done

all_gone() { [[ -z $(workers) ]]; }
await 60 all_gone || die "workers are left: $(workers)"
freed() { (($(gpu_memory) <= before + 16)); }
await 30 freed || die "the GPU has $(gpu_memory) MiB in use, and had $before before"
last_mib=$(daemon_mib)
last_files=$(daemon_files)
printf '{"jobs": %d, "succeeded": %d, "failed": %d, "cancelled": %d, "workers_killed": %d, "gpu_memory_before_mib": %d, ' \
  "$jobs" "${ended[0]:-0}" "${ended[1]:-0}" "${ended[3]:-0}" "$killed" "$before"
printf '"gpu_memory_after_mib": %d, "daemon_mib": [%d, %d], "daemon_files": [%d, %d], "seconds": %d}\n' \
  "$(gpu_memory)" "$first_mib" "$last_mib" "$first_files" "$last_files" "$SECONDS"
((last_files <= first_files + 8)) || die "the daemon has $last_files files open, and had $first_files after 20 jobs"
((last_mib <= first_mib + 64)) || die "the daemon has $last_mib MiB, and had $first_mib after 20 jobs"
"$tandem" shutdown --cancel-jobs >/dev/null
wait "$daemon" || true
