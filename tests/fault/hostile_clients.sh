#!/usr/bin/env bash
# Attacks by a user, or by a client without a token, on a daemon with other users (server/auth/THREATS.md). Each attack
# is a bounded script. The daemon runs in a memory control group of 1 GiB with 200 jobs, 3 sweeps of 800 and 20 data
# sets. It must survive and refuse the excess. A minute after the last attack, its memory must be within 100 MiB of its
# memory at the start. Exit code 77: the machine has no control groups or no python3-h2.
#
#   hostile_clients.sh                 checks bounds only, as CI does
#   hostile_clients.sh --attacks NAMES runs only these attacks, by the names of their functions, with commas
#   hostile_clients.sh --bench [TABLE] for an idle machine: attacks on one core, the daemon and another user on the
#   other.
#                                      The other user's calls must take less than 100 ms (p99), the slowest less than 1
#                                      s. The daemon must end in 5 s, not only stop by its log.
#                                      Writes the memory that each method can hold to TABLE.
table=$(realpath -m -- "${2:-/dev/null}")
cd "$(dirname "$0")"
source ../integration/daemon.bash

python=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1
"$python" -c 'import h2' 2>/dev/null || skip "needs Debian's python3-h2"
((EUID == 0)) || skip "needs root, to make a control group"
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
  group=$root/tandem-hostile-$$
  mkdir "$group" 2>/dev/null || continue
  if [[ $root == */memory ]]; then limit=$group/memory.limit_in_bytes; else limit=$group/memory.max; fi
  if echo $((1 << 30)) >"$limit" 2>/dev/null; then break; fi
  rmdir "$group"
done
[[ -d $group ]] || skip "may not make a memory control group here"
extra_cleanup() {
  for _ in {1..50}; do
    rmdir "$group" 2>/dev/null && break
    sleep 0.1
  done
}
parent=$(sed -n 's/^[0-9]*:memory://p;s/^0:://p' "/proc/$PPID/cgroup" | head -n 1)
# The group includes the daemon and its processes, not the attacks.
prefix=() attacker=() flags=()
case ${1:-} in
  --bench)
    prefix=(taskset -c 1 --) attacker=(taskset -c 0)
    flags=(--measure --others-cpu 1 --seconds 8 --table "$table")
    ;;
  --attacks) flags=(--attacks "${2:?}") ;;
  "") ;;
  *) die "unknown argument '$1'" ;;
esac
mkdir "$scratch/data"
# start PREFIX...: starts the daemon in the group.
start() {
  echo $$ >"$group/cgroup.procs" || skip "may not enter a memory control group here"
  start_daemon "$@" --listen 127.0.0.1:0 --data-folder "$scratch/data" --cpu-devices 1 --reference-devices 0 --max-queued-jobs 3000
  echo $$ >"$root$parent/cgroup.procs" 2>/dev/null || echo $$ >"$root/cgroup.procs"
}
# attack FLAG...: attacks the daemon, and ends it.
attack() {
  "${attacker[@]}" "$python" hostile_clients/attacks.py "$@" --daemon "$daemon" --address "$address" --state "$scratch/state" \
    --data "$scratch/data" --tandem "$tandem" --log "$scratch/tandemd.log" || die "see above"
  wait "$daemon" || die "it ended with $?"
}
start "${prefix[@]}"
attack "${flags[@]}"
if [[ ${1:-} != --attacks ]]; then
  start "${prefix[@]}"
  attack "${flags[@]}" --end shutdown
fi
echo "hostile_clients: all attacks"
