#!/usr/bin/env bash
# A real Slurm cluster on one machine, for tests. Needs root and the packages slurm-wlm, munge and iproute2.
#
#   cluster.sh up N             starts a controller and N nodes, and waits until the nodes are idle
#   cluster.sh run COMMAND...   runs a command on the controller's host, which is also the login node
#   cluster.sh node I COMMAND...  runs a command on node I
#   cluster.sh kill WHO         kills a daemon by SIGKILL; WHO is ctl, or nI for node I
#   cluster.sh start WHO        starts the daemon again
#   cluster.sh cut WHO          takes the host's network away
#   cluster.sh join WHO         gives the host's network back
#   cluster.sh hide WHO FOLDER  takes a folder away from the host's daemon and from the jobs that it then starts
#   cluster.sh show WHO FOLDER  gives the folder back
#   cluster.sh down             stops everything and removes the state
#
# Each host is a network namespace with its own address: 10.77.0.1 is the controller, 10.77.0.10+I is node I. A bridge
# joins the hosts. The state is in $SLURM_LAB (default /tmp/tandem-slurm); two clusters need two such folders.
# Variables for `up`: SLURM_LAB_GPUS is the number of GPUs that each node claims (default 0), SLURM_LAB_CPUS the number of
# its CPUs (default 1), SLURM_LAB_CONF further lines of slurm.conf.
set -euo pipefail
lab=${SLURM_LAB:-/tmp/tandem-slurm}

die() {
  echo "cluster.sh: $*" >&2
  exit 1
}

# enter HOST COMMAND...: replaces this shell by a command with the network, the name and the /etc/hosts of a host. `ip netns exec` would
# hide /sys/fs/cgroup, and slurmd needs this folder.
enter() {
  local host=$1 name=$1
  shift
  [[ $host != ctl ]] || name=slurm-ctl
  [[ -s $lab/prefix ]] || die "no cluster in $lab; 'cluster.sh up N' starts one"
  export SLURM_CONF=$lab/slurm.conf
  exec nsenter --net="/run/netns/$(<"$lab/prefix")-$host" unshare --uts --mount sh -c \
    'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"' sh "$name" "$lab/hosts" "$@"
}
in_host() { (enter "$@"); }

# start_daemon HOST: starts the host's daemon and notes its process.
start_daemon() {
  local host=$1 program=(slurmd -D -N "$1")
  [[ $host != ctl ]] || program=(slurmctld -D)
  enter "$host" "${program[@]}" >>"$lab/log/$host.out" 2>&1 &
  echo $! >"$lab/pids/$host"
}

kill_daemon() {
  local pid
  pid=$(<"$lab/pids/$1")
  kill -KILL "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
}

add_host() {   # add_host HOST ADDRESS
  local space link
  space=$(<"$lab/prefix")-$1
  link=$(<"$lab/prefix")v$1
  ip netns add "$space"
  ip link add "$link" type veth peer name eth0 netns "$space"
  ip link set "$link" master "$(<"$lab/prefix")-br" up
  ip -n "$space" link set lo up
  ip -n "$space" address add "$2/24" dev eth0
  ip -n "$space" link set eth0 up
}

nodes_idle() { [[ $(in_host ctl sinfo -h -p work -t idle -o %D 2>/dev/null) == "$1" ]]; }

up() {
  local n=$1 i program
  ((n >= 1 && n <= 16)) || die "a cluster has 1 to 16 nodes"
  ((EUID == 0)) || die "needs root, for network namespaces"
  for program in slurmctld slurmd ip nsenter; do
    command -v "$program" >/dev/null || die "needs $program; apt-get install slurm-wlm munge iproute2"
  done
  [[ ! -e $lab ]] || die "$lab exists; 'cluster.sh down' removes it"
  mkdir -p "$lab/state" "$lab/log" "$lab/pids" "$lab/spool"
  # Names of network links have at most 15 characters.
  echo "ts$$" >"$lab/prefix"
  {
    echo "127.0.0.1 localhost"
    echo "10.77.0.1 slurm-ctl"
    for ((i = 1; i <= n; ++i)); do echo "10.77.0.$((10 + i)) n$i"; done
  } >"$lab/hosts"
  local gpus=${SLURM_LAB_GPUS:-0} gres=""
  if ((gpus > 0)); then
    gres="Gres=gpu:fake:$gpus"
    # slurmd counts only GPUs that have a file.
    mkdir "$lab/gpus"
    for ((i = 0; i < gpus; ++i)); do touch "$lab/gpus/gpu$i"; done
    echo "Name=gpu Type=fake File=$lab/gpus/gpu[0-$((gpus - 1))]" >"$lab/gres.conf"
  fi
  # auth/none and cred/none do without munge. Slurm needs addresses outside 127/8.
  cat >"$lab/slurm.conf" <<END
ClusterName=tandem
SlurmctldHost=slurm-ctl(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation=$lab/state
SlurmdSpoolDir=$lab/spool/%n
SlurmctldPidFile=$lab/pids/ctl.file
SlurmdPidFile=$lab/pids/%n.file
SlurmctldLogFile=$lab/log/slurmctld
SlurmdLogFile=$lab/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc=$lab/jobs
SelectType=select/cons_tres
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=5
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=1
SlurmdTimeout=15
KillWait=5
MinJobAge=60
GresTypes=gpu
NodeName=n[1-$n] CPUs=${SLURM_LAB_CPUS:-1} RealMemory=1000 State=UNKNOWN $gres
PartitionName=work Nodes=n[1-$n] Default=YES MaxTime=INFINITE PriorityTier=1
PartitionName=urgent Nodes=n[1-$n] MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF
PartitionName=brief Nodes=n1 MaxTime=00:05:00 PriorityTier=1
${SLURM_LAB_CONF:-}
END
  ip link add "$(<"$lab/prefix")-br" type bridge
  ip link set "$(<"$lab/prefix")-br" up
  add_host ctl 10.77.0.1
  start_daemon ctl
  for ((i = 1; i <= n; ++i)); do
    add_host "n$i" "10.77.0.$((10 + i))"
    mkdir -p "$lab/spool/n$i"
    start_daemon "n$i"
  done
  for ((i = 0; i < 600; ++i)); do
    ! nodes_idle "$n" || return 0
    sleep 0.2
  done
  tail -n 5 "$lab"/log/* >&2
  die "the nodes are not idle after 2 minutes"
}

down() {
  local space pid prefix
  [[ -s $lab/prefix ]] || return 0
  prefix=$(<"$lab/prefix")
  # Jobs of a node are in the node's namespace, too.
  for space in $(ip netns list | awk '{print $1}' | grep "^$prefix-" || true); do
    for pid in $(ip netns pids "$space"); do kill -KILL "$pid" 2>/dev/null || true; done
    ip netns delete "$space"
  done
  ip link delete "$prefix-br" 2>/dev/null || true
  rm -rf -- "$lab"
}

case ${1:-} in
  up) up "${2:-2}" ;;
  run) in_host ctl "${@:2}" ;;
  node) in_host "n$2" "${@:3}" ;;
  kill) kill_daemon "$2" ;;
  start) start_daemon "$2" ;;
  cut) ip link set "$(<"$lab/prefix")v$2" down ;;
  join) ip link set "$(<"$lab/prefix")v$2" up ;;
  hide) nsenter --target "$(<"$lab/pids/$2")" --mount mount -t tmpfs none "$3" ;;
  show) nsenter --target "$(<"$lab/pids/$2")" --mount umount "$3" ;;
  down) down ;;
  *) die "use up N, run COMMAND, node I COMMAND, kill WHO, start WHO, cut WHO, join WHO, hide WHO FOLDER, show WHO FOLDER or down" ;;
esac
