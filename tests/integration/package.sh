#!/usr/bin/env bash
# The package of deploy/package: lintian finds no error, and a bare Debian 12 that systemd-nspawn boots installs it, trains, also by
# SSH, upgrades it under a running job, removes and purges it (package/check.sh). Debian's files are kept in ~/.cache/tandem/debian: only the first
# run needs a network. Exit code 77: no help2man or no lintian. A skipped part: no root, no debootstrap, no network.
cd "$(dirname "$0")"
source ./daemon.bash

for tool in help2man lintian; do command -v "$tool" >/dev/null || skip "$tool is not installed"; done
mkdir "$scratch/check"
# The fastest compression: the test is no release.
DPKG_DEB_COMPRESSOR_LEVEL=1 logged "$scratch/package.log" ../../deploy/package --programs "$bin" --output "$scratch/deb" ||
  die "no package was made"
deb=$(echo "$scratch"/deb/*.deb)
logged "$scratch/lintian.log" lintian --allow-root --fail-on error "$deb" || die "lintian finds errors"
# zsh completes commands and options from the package's file.
if command -v zsh >/dev/null; then
  dpkg-deb -x "$deb" "$scratch/files"
  timeout 300 zsh -f package/complete.zsh "$scratch/files/usr/share/zsh/vendor-completions" "${tandem%/*}" >"$scratch/zsh.log" 2>&1 ||
    die "zsh completes nothing: $(cat "$scratch/zsh.log")"
else
  echo "SKIPPED: completion of zsh: it is not installed"
fi
# A machine on which setup.sh found no npm.
HOME=$scratch DEBFULLNAME="R&D / Tandem" DEBEMAIL=ann@example.com DPKG_DEB_COMPRESSOR_LEVEL=1 \
  logged "$scratch/package.log" ../../deploy/package --programs "$bin" --output "$scratch/no-npm" ||
  die "no package was made without npm's cache"
maintainer=$(dpkg-deb -f "$scratch"/no-npm/*.deb Maintainer)
[[ $maintainer == "R&D / Tandem <ann@example.com>" ]] || die "the maintainer is $maintainer"
echo "made and read by lintian after $SECONDS s"

not_here() {
  echo "SKIPPED: the package on a bare Debian: $*"
  exit 0
}
((EUID == 0)) || not_here "needs root"
for tool in debootstrap systemd-nspawn; do command -v "$tool" >/dev/null || not_here "$tool is not installed"; done
cache=$HOME/.cache/tandem/debian
base=$cache/bookworm-systemd
if [[ ! -d $base ]]; then
  rm -rf "$base.part"
  mkdir -p "$cache"
  debootstrap --variant=minbase --include=systemd,systemd-sysv,dbus bookworm "$base.part" >"$scratch/debootstrap.log" 2>&1 ||
    not_here "debootstrap fails: $(tail -n 1 "$scratch/debootstrap.log")"
  mv "$base.part" "$base"
fi
# What the package needs is fetched into the cache, so that the test itself has no network.
cp "$deb" "$base/tmp/tandem.deb"
cp /etc/resolv.conf "$base/etc/resolv.conf"
fetch() { chroot "$base" apt-get -q -y --download-only -o APT::Keep-Downloaded-Packages=true install /tmp/tandem.deb openssh-server iproute2; }
fetch >"$scratch/fetch.log" 2>&1 || { chroot "$base" apt-get -q update && fetch; } >"$scratch/fetch.log" 2>&1 ||
  not_here "apt-get cannot fetch the dependencies: $(tail -n 1 "$scratch/fetch.log")"
rm "$base/tmp/tandem.deb"

cp package/check.sh "$scratch/check/"
cp "$deb" "$scratch/check/tandem.deb"
cat >"$scratch/check/package-check.service" <<'END'
[Unit]
After=dbus.service systemd-tmpfiles-setup.service
[Service]
Type=oneshot
ExecStart=/check/check.sh
ExecStopPost=systemctl poweroff --no-block
StandardOutput=file:/check/log
StandardError=inherit
END
# Changes go to the scratch folder, and the mounts are gone with the machine. Its own network: no port of this machine is in its
# way.
mkdir "$scratch"/{upper,work,root}
unshare --mount bash -euc '
  mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
  mkdir -p "$2/root/check" "$2/root/etc/systemd/system/multi-user.target.wants"
  cp "$2/check/package-check.service" "$2/root/etc/systemd/system/"
  ln -s ../package-check.service "$2/root/etc/systemd/system/multi-user.target.wants/"
  exec timeout 600 systemd-nspawn --quiet --boot --keep-unit --register=no --private-network --machine="tandem-$$" \
    --directory="$2/root" --bind="$2/check:/check"
  ' -- "$base" "$scratch" </dev/null >"$scratch/boot.log" 2>&1 || true
if [[ ! -e $scratch/check/log ]]; then not_here "systemd-nspawn does not boot: $(tail -n 2 "$scratch/boot.log" | head -n 1)"; fi
cat "$scratch/check/log"
[[ $(cat "$scratch/check/result" 2>/dev/null) == passed ]] || die "see above"
