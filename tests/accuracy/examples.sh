#!/usr/bin/env bash
# Trains jobs of deploy/examples on real data with the real daemon, and compares their accuracies with PyTorch's on the
# same recipe. Only the last epoch counts, never the best. The mean over the seeds 1, 2 and 3 must be within 0.01 of
# PyTorch's (with fewer seeds 0.02). README.md in this folder has the cases and their times.
#
#   tests/accuracy/examples.sh                    a sample: lenet-mnist with seed 1
#   tests/accuracy/examples.sh --whole            LeNet's cases with all seeds (also by TANDEM_WHOLE=1)
#   tests/accuracy/examples.sh --all              every case with all seeds: hours
#   tests/accuracy/examples.sh CASE[:SEED]...     these cases, with this seed or all seeds
#   tests/accuracy/examples.sh --table [FILE]     trains nothing: prints the figures in FILE (default: figures.tsv)
#
#   --record FILE      appends each figure with its commit to FILE, and judges by all figures in FILE. So several runs
#                      can share a long test
#   --pytorch COMMAND  measures PyTorch again, instead of using figures.tsv: COMMAND runs pytorch_job.py with its
#                      --data-folder
#   --only SIDE        trains only with tandem, or only with pytorch
#   --gpu              trains on GPUs; two replicas may share a GPU
#   --describe FOLDER  trains nothing, and writes each job for pytorch_job.py into FOLDER: CASE-SEED.json
#
# $TANDEM_DATA (default: ../shared/data beside the repository) is the folder with MNIST and CIFAR-10. Cases without
# their data are left out. $TANDEM_COMMIT names the programs' commit if it is not the repository's.
called_from=$PWD
cd "$(dirname "$0")" || exit

seeds=(1 2 3)
# The cases: name, data set, file in deploy/examples, and changes of the file.
cases=(
  "lenet-mnist mnist lenet-mnist-dl4j.yaml training.epochs=5"
  "lenet-fashion-mnist fashion-mnist lenet-fashion-mnist.yaml training.epochs=10"
  "lenet-fashion-mnist-mxnet fashion-mnist lenet-fashion-mnist-mxnet.yaml training.epochs=10"
  # At this rate, a last step on 96 samples moves an accuracy by more than the measured difference: see README.md.
  "resnet18-fashion-mnist fashion-mnist resnet18-fashion-mnist.yaml training.epochs=3 training.precision=bfloat16 training.drop_last=true"
  "matlab-cifar-10 cifar-10 matlab-cifar-10.yaml training.epochs=3"
)
kept=figures.tsv

# table OURS THEIRS: the last figure of each seed in the two files, by case; fails where a case is too far off.
table() {
  awk -F'\t' '
    /^#/ || NF < 4 || $2 != side { next }
    {
      if (!(($1, $2, $3) in figure)) { seeds[$1, $2] = seeds[$1, $2] " " $3; ++count[$1, $2] }
      if (!($1 in seen)) { order[++cases] = $1; seen[$1] }
      figure[$1, $2, $3] = $4
    }
    function mean(name, side,   total, squares, i, n, seed, value) {
      list[side] = ""
      n = split(seeds[name, side], seed, " ")
      for (i = 1; i <= n; ++i) {
        value = figure[name, side, seed[i]]
        total += value
        squares += value * value
        list[side] = list[side] sprintf(" %.4f", value)
      }
      # The variance of the mean. Rounding may make it negative.
      variance[side] = n < 2 || squares * n < total * total ? 0 : (squares - total * total / n) / (n - 1) / n
      return total / n
    }
    END {
      for (i = 1; i <= cases; ++i) {
        name = order[i]
        if (!count[name, "tandem"]) { continue }
        ours = mean(name, "tandem")
        printf "%s: mean %.4f of%s", name, ours, list["tandem"]
        if (!count[name, "pytorch"]) { print "; PyTorch has not been measured"; continue }
        theirs = mean(name, "pytorch")
        limit = count[name, "tandem"] < 3 || count[name, "pytorch"] < 3 ? 0.02 : 0.01
        off = ours - theirs
        good = off <= limit && -off <= limit
        printf "; PyTorch %.4f of%s; %+.4f, %s %.2f", theirs, list["pytorch"], off, good ? "within" : "NOT WITHIN", limit
        if (count[name, "tandem"] > 1 && count[name, "pytorch"] > 1) {
          printf " (standard error of the difference %.4f)", sqrt(variance["tandem"] + variance["pytorch"])
        }
        print ""
        if (!good) { bad = 1 }
      }
      exit bad
    }' side=tandem "$1" side=pytorch "$2"
}

# absolute PATH: PATH, which is relative to where the script was called.
absolute() {
  case $1 in
    /*) echo "$1" ;;
    *) echo "$called_from/$1" ;;
  esac
}

chosen=()
record=""
pytorch=""
only=""
describe=""
devices=(--cpu-devices 2)
on=()
if ((${TANDEM_WHOLE:-0})); then set -- --whole "$@"; fi
while (($#)); do
  case $1 in
    --whole) chosen+=(lenet-mnist lenet-fashion-mnist lenet-fashion-mnist-mxnet) ;;
    --all) for line in "${cases[@]}"; do chosen+=("${line%% *}"); done ;;
    --record) record=$(absolute "${2:?--record needs a file}") && shift ;;
    --pytorch) pytorch=${2:?--pytorch needs a command} && shift ;;
    --only) only=${2:?--only needs tandem or pytorch} && shift ;;
    --gpu)
      devices=()
      on=(replicas.device_kind=DEVICE_KIND_GPU replicas.replicas_per_device=2)
      ;;
    --describe) describe=$(absolute "${2:?--describe needs a folder}") && shift ;;
    --table)
      table "$(absolute "${2:-$PWD/$kept}")" "$(absolute "${2:-$PWD/$kept}")"
      exit
      ;;
    -*)
      echo "unknown flag $1; the head of $0 says what there is" >&2
      exit 2
      ;;
    *) chosen+=("$1") ;;
  esac
  shift
done
((${#chosen[@]})) || chosen=(lenet-mnist:1)
for choice in "${chosen[@]}"; do
  if [[ " ${cases[*]%% *} " != *" ${choice%%:*} "* ]]; then
    echo "there is no case ${choice%%:*}; there are: ${cases[*]%% *}" >&2
    exit 2
  fi
done

source ../integration/daemon.bash
examples=${TANDEM_EXAMPLES:-$here/../../deploy/examples}
data=${TANDEM_DATA:-$here/../../../shared/data}
commit=${TANDEM_COMMIT:-$(git describe --always --dirty 2>/dev/null || echo unknown)}
figures=$scratch/figures.tsv

folders=()
for folder in /usr/share/datasets "$data"; do
  if [[ -d $folder ]]; then folders+=(--data-folder "$(readlink -f "$folder")"); fi
done
start_daemon --listen 127.0.0.1:0 "${devices[@]}" "${folders[@]}"

# keep CASE SIDE SEED ACCURACY VERSION
keep() {
  [[ -n $4 ]] || die "$1, seed $3, has no accuracy on the side of $2"
  echo "$1, seed $3: $2 $4 after the last epoch"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$@" "$(date -u +%F)" | tee -a "$figures" >>"${record:-/dev/null}"
}

# run CASE SEED FILE CHANGE...
run() {
  local name=$1 seed=$2 file=$3 log=$scratch/$1-$2 job seconds changes=() change
  shift 3
  for change in "$@" "${on[@]}" "training.seed=$seed" "name=$name-$seed"; do changes+=(--set "$change"); done
  logged "$log.log" "$tandem" submit "$examples/$file" "${changes[@]}" || die "$name was not accepted"
  job=$(submitted "$log.log")
  if [[ -n $describe ]]; then
    mkdir -p "$describe"
    "$tandem" describe "$job" -o json >"$describe/$name-$seed.json"
    "$tandem" cancel "$job" >/dev/null
    return
  elif [[ $only == pytorch ]]; then
    "$tandem" cancel "$job" >/dev/null
  else
    logged "$log.log" "$tandem" watch "$job" || die "$name with seed $seed did not train"
    "$tandem" describe "$job" -o json | tr -d ' \n' >"$log.json"
    seconds=$(sed -nE 's/.*"last_?[eE]poch":\{.*"training_?[sS]econds":([0-9.e-]+).*/\1/p' "$log.json")
    echo "$name, seed $seed: $seconds s for the last epoch's training"
    keep "$name" tandem "$seed" \
      "$(sed -nE 's/.*"last_?[eE]poch":\{.*"validation":\{.*"accuracy":([0-9.e-]+).*/\1/p' "$log.json")" "$commit"
  fi
  if [[ -n $pytorch && $only != tandem ]]; then
    "$tandem" describe "$job" -o json >"$log.json"
    # shellcheck disable=SC2086 # A command with its arguments.
    $pytorch - <"$log.json" >"$log.pytorch" 2>"$log.pytorch.log" || {
      tail -n 20 "$log.pytorch.log" >&2
      die "PyTorch did not train $name with seed $seed"
    }
    keep "$name" pytorch "$seed" "$(sed -nE 's/.*"accuracy": ([0-9.]+).*/\1/p' "$log.pytorch")" \
      "$(sed -nE 's/.*"pytorch": "([^"]+)".*/\1/p' "$log.pytorch")"
  fi
}

touch "$figures" "${record:-$figures}"
for choice in "${chosen[@]}"; do
  for line in "${cases[@]}"; do
    read -r name set file changes <<<"$line"
    [[ ${choice%%:*} == "$name" ]] || continue
    if [[ ! -d /usr/share/datasets/$set && ! -d $data/$set ]]; then
      echo "$name: the data set $set is neither in /usr/share/datasets nor in $data: left out"
      continue
    fi
    these=("${seeds[@]}")
    [[ $choice != *:* ]] || these=("${choice#*:}")
    for seed in "${these[@]}"; do
      # shellcheck disable=SC2086 # Each change is a word.
      run "$name" "$seed" "$file" $changes
    done
  done
done
"$tandem" shutdown --cancel-jobs >/dev/null
wait "$daemon" || true
if [[ -n $describe ]]; then exit 0; fi

# New figures precede kept figures.
cat "$kept" "${record:-$figures}" >"$scratch/both.tsv"
table "${record:-$figures}" "$scratch/both.tsv" || die "an accuracy is too far from PyTorch's"
