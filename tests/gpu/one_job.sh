#!/usr/bin/env bash
# Trains lenet-mnist on a GPU through the daemon, its sandbox and a worker. Prints one line of JSON.
#
#   tests/gpu/one_job.sh [--cpu] [--epochs N] [--sandbox MODE] [--set FIELD=VALUE]...
#
# N: default 1. MODE: of `tandemd --worker-sandbox`, default best-effort. MNIST is read from $TANDEM_DATA/mnist. If the
# job fails, the script prints the worker's log and the daemon's log.
cd "$(dirname "$0")" || exit
epochs=1
sandbox=best-effort
kind=DEVICE_KIND_GPU
devices=()
changes=()
while (($#)); do
  case $1 in
    --epochs) epochs=${2:?--epochs needs a number} && shift ;;
    --sandbox) sandbox=${2:?--sandbox needs on, best-effort or off} && shift ;;
    --set) changes+=(--set "${2:?--set needs FIELD=VALUE}") && shift ;;
    --cpu) kind=DEVICE_KIND_CPU devices=(--cpu-devices 1) ;;
    *)
      echo "unknown argument $1; the header of $0 lists the arguments" >&2
      exit 2
      ;;
  esac
  shift
done
source ../integration/daemon.bash
examples=${TANDEM_EXAMPLES:-$here/../../deploy/examples}
begin=$(date +%s%N)
start_daemon --listen 127.0.0.1:0 --worker-sandbox "$sandbox" --data-folder "$(readlink -f "$TANDEM_DATA")" \
  "${devices[@]}"
started=$(date +%s%N)

job=$("$tandem" submit "$examples/lenet-mnist-dl4j.yaml" --set "replicas.device_kind=$kind" \
  --set replicas.replicas_per_device=2 --set "training.epochs=$epochs" "${changes[@]}" 2>"$scratch/submit.log" | submitted) || true
[[ -n $job ]] || die "cannot submit lenet-mnist: $(<"$scratch/submit.log")"
code=0
"$tandem" watch "$job" >"$scratch/watch.log" 2>&1 || code=$?
ended=$(date +%s%N)
"$tandem" logs "$job" >"$scratch/worker.log" 2>&1 || true
if ((code)); then
  echo "The job's last events:"
  tail -n 20 "$scratch/watch.log"
  echo "The worker's last words:"
  tail -n 40 "$scratch/worker.log"
  die "lenet-mnist ended with exit code $code of tandem watch"
fi
"$tandem" describe "$job" -o json | tr -d ' \n' >"$scratch/job.json"
# field PATTERN: the number in the job's last epoch.
field() { sed -nE 's/.*"last_?[eE]poch":\{.*"'"$1"'":([0-9.e-]+).*/\1/p' "$scratch/job.json"; }
confined=$(sed -nE 's/.*confined: (.*)/\1/p' "$scratch/worker.log" | head -n 1 | tr -d '"')
seconds() { awk -v t="$1" 'BEGIN { printf "%.2f", t / 1e9 }'; }
printf '{"sandbox": "%s", "confined": "%s", "epochs": %d, "daemon_seconds": %s, "job_seconds": %s, ' "$sandbox" \
  "$confined" "$epochs" "$(seconds $((started - begin)))" "$(seconds $((ended - started)))"
printf '"epoch_seconds": %s, "accuracy": %s}\n' "$(field 'training_?[sS]econds' | grep . || echo null)" \
  "$(field 'accuracy' | grep . || echo null)"
"$tandem" shutdown --cancel-jobs >/dev/null
wait "$daemon" || true
