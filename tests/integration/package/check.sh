#!/bin/bash
# Runs as a service of a booted Debian 12 that has nothing but systemd: installs the package, trains, also by SSH on this machine,
# upgrades the package under a running job, removes and purges it. The package is /check/tandem.deb.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive HOME=/root LC_ALL=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

step() { echo "== $*, after $SECONDS s"; }
die() {
  echo "FAILED: $*"
  journalctl --no-pager -n 30 -u tandem.service || true
  exit 1
}
apt() { apt-get -q -y -o Dpkg::Use-Pty=0 "$@" >/check/apt.log 2>&1 || { tail -n 30 /check/apt.log && die "apt-get $*"; }; }
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.2
  done
}
# All files, without what changes by itself and what apt keeps of every package.
files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /check -o -path /var/cache -o -path /var/log \
    -o -path /var/backups -o -path /var/tmp -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /var/lib/systemd/timers -o -path /root \) -prune -o -print | sort
}
# A field of a job.
of_job() { tandem describe "$1" -o json | sed -nE "s/^ \"$2\": \"?([^\",]+)\"?,?$/\1/p"; }
# The processes of the user tandem, by the begin of their name.
of_user() {
  local process
  for process in /proc/[0-9]*; do
    if [[ $(stat -c %U "$process" 2>/dev/null) == tandem && $(cat "$process/comm" 2>/dev/null) == "$1"* ]]; then echo "${process#/proc/}"; fi
  done
}

# They stay: the first is among what Debian recommends, the others make this machine a host that jobs reach.
apt install ca-certificates openssh-server iproute2
files >/tmp/before
step "install"
apt install /check/tandem.deb
systemctl is-active --quiet tandem.service || die "the service does not run after the installation"
systemctl is-enabled --quiet tandem.service || die "the service does not start with the machine"
[[ $(stat -c %U:%G:%a /var/lib/tandem) == tandem:tandem:700 ]] || die "the state folder is not the daemon's own"
[[ $(of_user tandemd) == "$(systemctl show -p MainPID --value tandem.service)" ]] || die "the daemon does not run as tandem"
systemd-analyze verify --man=no tandem.service || die "systemd finds faults in the unit"

step "train"
tandem submit /usr/share/tandem/examples/lenet-fashion-mnist.yaml --follow --set training.epochs=1 \
  --set dataset.train_limit=2048 --set dataset.validation_limit=512 >/check/train.log 2>&1 || { cat /check/train.log && die "the example does not train"; }
model=$(find /var/lib/tandem/jobs -name model.safetensors)
[[ -s $model ]] || die "there is no trained model"

step "configuration"
if grep '^[^#]' /etc/tandem/tandemd.yaml; then die "an option is not commented out"; fi
# All options that have a default, at once.
sed -E 's/^#([a-z-]+: [^A-Z]+)$/\1/; /^(insecure|metrics)/d' /etc/tandem/tandemd.yaml >/tmp/all.yaml
(($(grep -c '^[a-z]' /tmp/all.yaml) >= 30)) || die "only $(grep -c '^[a-z]' /tmp/all.yaml) options have a default"
code=0
tandemd --config /tmp/all.yaml --check >/tmp/check.log 2>&1 || code=$?
((code != 2)) || { cat /tmp/check.log && die "the defaults are no configuration"; }
echo 'cpu-devices: 3' >>/etc/tandem/tandemd.yaml
systemctl restart tandem.service
[[ $(tandem devices -o json | grep -c '"name": "devices/cpu:') == 3 ]] || die "the daemon does not read its configuration"

step "a job by SSH"
usermod --shell /bin/sh tandem
keys=/var/lib/tandem/.ssh
install -d -o tandem -g tandem -m 0700 "$keys" /shared/tandem
runuser -u tandem -- ssh-keygen -q -t ed25519 -N "" -f "$keys/id_ed25519"
install -o tandem -g tandem -m 0600 "$keys/id_ed25519.pub" "$keys/authorized_keys"
systemctl start ssh.service
ip address add 10.0.0.1/32 dev lo
ssh-keyscan 10.0.0.1 >"$keys/known_hosts" 2>/dev/null
cp /etc/tandem/tandemd.yaml /tmp/without-hosts.yaml
printf '%s\n' "shared-folder: /shared/tandem" "worker-listen: 10.0.0.1:7448" "ssh-host: [10.0.0.1]" >>/etc/tandem/tandemd.yaml
mkdir /etc/systemd/system/tandem.service.d
printf '%s\n' "[Service]" "ReadWritePaths=/shared/tandem" "Environment=TANDEM_STATE=/var/lib/tandem/by-ssh" \
  >/etc/systemd/system/tandem.service.d/shared.conf
systemctl daemon-reload
systemctl restart tandem.service || die "the daemon does not start with its hosts"
export TANDEM_TOKEN_FILE=/var/lib/tandem/by-ssh/token
tandem submit /usr/share/tandem/examples/lenet-fashion-mnist.yaml --on ssh --follow --set replicas.count=1 --set training.epochs=1 \
  --set dataset.train_limit=2048 --set dataset.validation_limit=512 >/check/ssh.log 2>&1 || { cat /check/ssh.log && die "the job by SSH does not train"; }
unset TANDEM_TOKEN_FILE
rm -r /etc/systemd/system/tandem.service.d
cp /tmp/without-hosts.yaml /etc/tandem/tandemd.yaml
systemctl daemon-reload
systemctl restart tandem.service
rm -r /shared

step "upgrade under a running job"
for file in prometheus/{prometheus,recording,alerts}.yml grafana/tandem.json; do
  [[ -s /usr/share/tandem/$file ]] || die "the package lacks /usr/share/tandem/$file"
done
tandem init synthetic | head -n 1 | grep -qx '# yaml-language-server: $schema=/usr/share/tandem/job.schema.json' ||
  die "tandem init does not name the installed schema"
tandem init synthetic >/tmp/job.yaml
tandem submit /tmp/job.yaml --set training.epochs=1000000 --set name=long >/dev/null
job=$(tandem list --limit 1 -o json | sed -nE 's/^\{"name":"jobs\/([^"]+)".*/\1/p')
trains() { [[ $(of_job "$job" state) == JOB_STATE_RUNNING && $(of_job "$job" last_sequence) -gt 5 ]]; }
await 180 trains || die "the long job does not train: $(of_job "$job" state)"
daemon=$(of_user tandemd) worker=$(of_user tandem-worker)
apt install --reinstall /check/tandem.deb
systemctl is-active --quiet tandem.service || die "the service does not run after the upgrade"
[[ $(of_user tandemd) != "$daemon" ]] || die "the old daemon still runs after the upgrade"
[[ $(of_user tandem-worker) == "$worker" ]] || die "the upgrade ended the worker $worker"
grep -qx 'cpu-devices: 3' /etc/tandem/tandemd.yaml || die "the upgrade changed the configuration"
before=$(of_job "$job" last_sequence)
goes_on() { [[ $(of_job "$job" state) == JOB_STATE_RUNNING && $(of_job "$job" last_sequence) -gt $((before + 5)) ]]; }
await 180 goes_on || die "the job does not train after the upgrade: $(of_job "$job" state)"
[[ $(of_job "$job" attempt) == 1 ]] || die "the job started again"
folder=$(of_job "$job" folder)

step "remove"
apt remove tandem
[[ -z $(of_user tandem) ]] || die "processes are left: $(of_user tandem)"
[[ -s $folder/model.safetensors ]] || die "the running job left no model"
[[ -s /etc/tandem/tandemd.yaml ]] || die "the configuration is gone before the package is purged"

step "install again, purge"
apt install /check/tandem.deb
grep -qx 'cpu-devices: 3' /etc/tandem/tandemd.yaml || die "the configuration is gone after the package came back"
[[ $(of_job "$job" state) == JOB_STATE_CANCELLED ]] || die "the job is $(of_job "$job" state), not cancelled"
# A disk of its own: rm empties the folder, but cannot remove it.
mount --bind /var/lib/tandem /var/lib/tandem
apt purge --autoremove tandem
[[ -z $(ls -A /var/lib/tandem) ]] || die "the purge left $(ls -A /var/lib/tandem)"
umount /var/lib/tandem
rmdir /var/lib/tandem
[[ -z $(of_user tandem) ]] || die "processes are left: $(of_user tandem)"
if getent passwd tandem || getent group tandem; then die "the user is left"; fi
files >/tmp/after
comm -13 /tmp/before /tmp/after >/tmp/left
[[ ! -s /tmp/left ]] || { head -n 20 /tmp/left && die "these files are left"; }
if systemctl list-units --all --no-legend 'tandem*' | grep tandem; then die "systemd still knows the service"; fi
step "done"
echo "passed" >/check/result
