#!/usr/bin/env bash
# Trains jobs on a real Slurm cluster of four nodes while slurmd, slurmctld and tandemd are killed at random, and networks
# are cut. Each job must end with the bits of an undisturbed run, no event may be lost or doubled, no attempt may train
# twice, and nothing may remain in Slurm or on the nodes. Exit code 77: not root, or no Slurm.
#
# 3 jobs and short faults; TANDEM_WHOLE=1: 100 jobs, and cuts of up to a minute. JOBS=N and SEED=N choose other numbers.
# After MINUTES=N (0.5; whole: 240) no job is submitted, and nothing is killed or cut. KEEP=FOLDER keeps a copy of all files.
cd "$(dirname "$0")"
source ../integration/daemon.bash
source ../integration/slurm/cluster.bash

extra_cleanup() {
  [[ -z ${KEEP:-} ]] || cp -a "$scratch" "$KEEP" || true
  "$cluster" down
}
jobs=3 epochs=8 minutes=0.5 longest_cut=8 longest_kill=4 longest_pause=4
if [[ ${TANDEM_WHOLE:-0} == 1 ]]; then
  # After a fault, Slurm takes up to a minute to use a node again, and a job of four nodes needs all nodes: more faults
  # would leave no time for such a job.
  jobs=100 epochs=12 minutes=240 longest_cut=60 longest_kill=20 longest_pause=50
else
  # Nodes that do not answer are down soon.
  export SLURM_LAB_CONF="SlurmdTimeout=5"
fi
start_cluster 4
mkdir "$scratch/shared"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here python3 ./slurm_kills.py --tandemd "$tandemd" --tandem "$tandem" --scratch "$scratch" --cluster "$cluster" \
  --jobs "${JOBS:-$jobs}" --epochs "$epochs" --seed "${SEED:-$RANDOM}" --minutes "${MINUTES:-$minutes}" --longest-cut "$longest_cut" --longest-kill "$longest_kill" \
  --longest-pause "$longest_pause" ||
  die "a job ended wrong"
echo "passed"
