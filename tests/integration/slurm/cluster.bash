# A Slurm cluster for a script that has sourced daemon.bash. Source this file. Skips the script without root or Slurm. The
# cluster ends with the script.
((EUID == 0)) || skip "needs root, for network namespaces"
for program in ip sbatch slurmctld slurmd; do
  command -v "$program" >/dev/null || skip "needs $program (slurm-wlm, iproute2)"
done

export SLURM_LAB=$scratch/slurm
cluster=$here/slurm/cluster.sh
extra_cleanup() { "$cluster" down; }

# start_cluster N: starts a cluster of N nodes.
start_cluster() { "$cluster" up "$1" >"$scratch/up" || die "the cluster does not start: $(<"$scratch/up")"; }
