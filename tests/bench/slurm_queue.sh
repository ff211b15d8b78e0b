#!/usr/bin/env bash
# Measures the daemon with many jobs in Slurm's queue (default 1000; JOBS=N): the time of a submission beyond Slurm's own
# time, the polls, and the times of `tandem list`, `tandem queue` and `tandem describe`. Prints a table. Exit code 77: not
# root, or no Slurm.
cd "$(dirname "$0")"
source ../integration/daemon.bash
source ../integration/slurm/cluster.bash

start_cluster 1

# Slurm's programs, with a line "NAME START TIME" in microseconds for each run.
mkdir "$scratch/programs" "$scratch/shared"
for program in sbatch squeue sinfo scancel; do
  cat >"$scratch/programs/$program" <<END
#!/bin/bash
start=\${EPOCHREALTIME/./}
$(command -v "$program") "\$@"
code=\$?
echo "$program \$start \$((\${EPOCHREALTIME/./} - start))" >>"$scratch/runs"
exit \$code
END
  chmod +x "$scratch/programs/$program"
done
PATH=$scratch/programs:$PATH start_daemon "$cluster" run -- --listen 127.0.0.1:0 --cpu-devices 1 --threads-per-cpu-device 1 \
  --reference-devices 0 --shared-folder "$scratch/shared" --worker-listen 10.77.0.1:7448 --user-max-queued-jobs 100000 \
  --max-queued-jobs 100000
tandem() { "$cluster" run "$tandem" "$@"; }
# A job of another user takes the only node, so all jobs of the daemon wait.
"$cluster" run sbatch --exclusive --output=/dev/null --wrap='sleep 100000' >"$scratch/blocker"
tandem init lenet >"$scratch/job.yaml"
jobs=${JOBS:-1000}
for ((i = 0; i < jobs; ++i)); do
  tandem submit "$scratch/job.yaml" --on slurm --set replicas.count=1 >"$scratch/submitted" 2>&1 || die "$(<"$scratch/submitted")"
done
job=$(submitted "$scratch/submitted")
all_wait() { (($("$cluster" run squeue -h -t PENDING | wc -l) >= jobs)); }
await 300 all_wait || die "only $("$cluster" run squeue -h -t PENDING | wc -l) jobs wait in Slurm"
sleep 3
quiet_start=$EPOCHREALTIME
sleep 30
quiet_end=$EPOCHREALTIME
for ((i = 0; i < 30; ++i)); do
  tandem list >/dev/null
  tandem queue >/dev/null
  tandem describe "$job" >/dev/null
done
python3 - "$scratch/tandemd.log" "$scratch/runs" "$quiet_start" "$quiet_end" "$jobs" <<'END'
import datetime, re, sys
log, runs, start, end, jobs = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5]
calls = {}
for line in open(log):
    if match := re.match(r"(\S+) info call method=(\w+) .*code=OK.* ms=([\d.]+)", line):
        ended = datetime.datetime.fromisoformat(match[1].replace("Z", "+00:00")).timestamp()
        calls.setdefault(match[2], []).append((ended - float(match[3]) / 1000, ended))
programs = [(name, int(began) / 1e6, int(time) / 1e6) for name, began, time in map(str.split, open(runs))]
def row(what, seconds):
    ordered = sorted(seconds)
    print(f"| {what} | {len(ordered)} | {1000 * ordered[len(ordered) // 2]:.1f} | {1000 * ordered[int(len(ordered) * 0.99)]:.1f} | {1000 * ordered[-1]:.1f} |")
print(f"| {jobs} jobs in Slurm's queue | count | median ms | p99 ms | most ms |\n| --- | --- | --- | --- | --- |")
# A submission waits for `sbatch --test-only` and `sinfo`. The programs of the daemon's own thread are not its cost.
beyond = []
for began, ended in calls["CreateJob"]:
    own = [seconds for name, at, seconds in programs if name in ("sbatch", "sinfo") and began - 0.002 <= at and at + seconds <= ended + 0.002]
    beyond.append(ended - began - sum(own))
row("CreateJob", [ended - began for began, ended in calls["CreateJob"]])
row("CreateJob beyond Slurm's own time", beyond)
for method in ("ListJobs", "ListQueue", "GetJob"):
    if method in calls:
        row(method, [ended - began for began, ended in calls[method]])
polls = [seconds for name, at, seconds in programs if name == "squeue" and start <= at < end]
row("squeue", polls)
print(f"{len(polls)} polls in {end - start:.0f} s")
END
