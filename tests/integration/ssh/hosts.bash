# Hosts that answer by SSH, for a script that has sourced daemon.bash. Source this file. Skips the script without root or
# OpenSSH. Each host is an sshd with processes and mounts of its own, on a port of loopback. The hosts end with the script.
((EUID == 0)) || skip "needs root, for namespaces"
for program in ip nsenter ssh ssh-keygen unshare /usr/sbin/sshd; do
  command -v "$program" >/dev/null || skip "needs $program (openssh-client, openssh-server, iproute2, util-linux)"
done

hosts=$scratch/hosts
# The daemon's address for workers. It must not be a loopback address. An address that joins the network breaks the requests
# of browsers on this machine, so an own address is only for a machine without any.
hosts_address=$(ip -4 -o address show scope global up | awk '$2 != "lo" {sub("/.*", "", $4); print $4; exit}')
if [[ -z $hosts_address ]]; then
  hosts_address=10.78.0.1
  ip address add "$hosts_address/32" dev lo
fi
extra_cleanup() {
  local pid
  for pid in "$hosts"/*.pid; do
    if [[ -s $pid ]]; then kill -9 "$(<"$pid")" 2>/dev/null || true; fi
  done
  ip address del 10.78.0.1/32 dev lo 2>/dev/null || true
}

mkdir -p "$hosts/bin" /run/sshd
ssh-keygen -q -t ed25519 -N '' -f "$hosts/key"
ssh-keygen -q -t ed25519 -N '' -f "$hosts/host_key"
chmod 700 "$hosts"
cp "$hosts/key.pub" "$hosts/authorized"
# OpenSSH ignores HOME, so the configuration comes by a program before it.
cat >"$hosts/bin/ssh" <<END
#!/bin/sh
exec $(command -v ssh) -F $hosts/config "\$@"
END
chmod +x "$hosts/bin/ssh"
export PATH=$hosts/bin:$PATH

# add_host NAME: makes a host known, and starts it.
add_host() {
  local port
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  cat >>"$hosts/config" <<END
Host $1
  HostName 127.0.0.1
  Port $port
  IdentityFile $hosts/key
  IdentitiesOnly yes
  UserKnownHostsFile $hosts/known
END
  echo "[127.0.0.1]:$port $(cut -d' ' -f1,2 "$hosts/host_key.pub")" >>"$hosts/known"
  cat >"$hosts/$1.conf" <<END
ListenAddress 127.0.0.1:$port
HostKey $hosts/host_key
AuthorizedKeysFile $hosts/authorized
StrictModes no
UsePAM no
PidFile none
PermitRootLogin yes
PasswordAuthentication no
MaxStartups 100
END
  start_host "$1"
}

# start_host NAME: starts the host, with all mounts of this machine. bash reads ~/.bashrc at each login by SSH. This
# machine's may be slow, or take locks that a host's crash leaves behind, so that a host has an empty one.
start_host() {
  setsid unshare --mount --pid --fork --kill-child --mount-proc sh -c '
    [ ! -e ~/.bashrc ] || mount --bind /dev/null ~/.bashrc
    exec /usr/sbin/sshd -D -e -f "$1"' sh "$hosts/$1.conf" >>"$hosts/$1.log" 2>&1 &
  local shell=$!
  # The first process of the host's own namespace.
  is_up() { pgrep -P "$shell" >"$hosts/$1.pid" && ssh "$1" true 2>/dev/null; }
  await 60 is_up "$1" || die "host $1 does not answer: $(<"$hosts/$1.log")"
}
# crash_host NAME: kills all processes of the host at once.
crash_host() {
  kill -9 "$(<"$hosts/$1.pid")"
  until ! kill -0 "$(<"$hosts/$1.pid")" 2>/dev/null; do sleep 0.05; done
}
# hide NAME FOLDER, show NAME FOLDER: takes a folder away from the host, and gives it back.
hide() { nsenter -t "$(<"$hosts/$1.pid")" -m mount -t tmpfs none "$2"; }
show() { nsenter -t "$(<"$hosts/$1.pid")" -m umount "$2"; }
