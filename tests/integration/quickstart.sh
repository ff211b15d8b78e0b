#!/usr/bin/env bash
# Tests deploy/quickstart.sh and deploy/setup.sh with stand-ins for Bazel, dpkg and apt. The quickstart has a home folder
# with a space and a umask that lets a group write. It runs a second time, and again after another build. The setup meets
# packages on hold, a proxy, a machine without sudo, and a package that does not exist. Exit code 77: no Fashion-MNIST.
cd "$(dirname "$0")"
source ./daemon.bash

[[ -d /usr/share/datasets/fashion-mnist ]] || skip "Fashion-MNIST is not installed"

# The commands of the scripts, and no others: this machine's sudo and npm are not among them.
tools=$scratch/tools
mkdir "$tools"
for command in bash cat cmp dirname env find head install mkdir mktemp mv nproc readlink rm sed setsid sleep sort tail; do
  ln -s "$(command -v "$command")" "$tools"
done
# stand_in NAME CODE: a shell script in the place of a program.
stand_in() {
  printf '#!/bin/bash\n%s\n' "$2" >"$tools/$1"
  chmod 755 "$tools/$1"
}
stand_in bazel 'exit 0'
stand_in dpkg-query 'echo "ii "'

repository="$scratch/repository"
mkdir -p "$repository/deploy/examples" "$scratch/a home"
cp ../../deploy/{setup,quickstart}.sh "$repository/deploy/"
sed 's/{name: fashion-mnist}/{name: fashion-mnist, train_limit: 512, validation_limit: 256}/; s/epochs: .*/epochs: 1/' \
  ../../deploy/examples/lenet-fashion-mnist.yaml >"$repository/deploy/examples/lenet-fashion-mnist.yaml"
for program in client/cli/tandem server/daemon/tandemd server/worker/tandem-worker; do
  install -D "$bin/$program" "$repository/bazel-bin/$program"
done
# quickstart LOG: from another folder, as a reader with another daemon's variables.
quickstart() {
  (umask 002 && cd / && expect_code 0 "$1" env HOME="$scratch/a home" PATH="$tools" TANDEM_TOKEN_FILE=/no/such/token \
    "$repository/deploy/quickstart.sh")
}

echo "-- the first run trains"
quickstart "$scratch/first"
expect_text '^succeeded after ' "$scratch/first"
expect_text '^It listens on 127.0.0.1:' "$scratch/first"
state="$scratch/a home/.local/state/tandem-quickstart"
[[ $(stat -c %a "$state") == 700 ]] || die "others may look into the state folder: $(stat -c %a "$state")"
model=$(sed -n 's/^The trained model:    //p' "$scratch/first")
[[ -s $model ]] || die "there is no trained model '$model'"
# The printed line works as it stands, and the programs are those of the build.
reader() { bash -c "$(sed -n 's/^  export /export /p' "$scratch/first"); $*"; }
reader tandem list >"$scratch/list"
expect_text 'lenet-fashion-mnist.* succeeded' "$scratch/list"
[[ $(reader 'command -v tandem') == "$scratch/a home/.local/share/tandem/bin/tandem" ]] || die "another tandem is in PATH"

echo "-- the second run uses the daemon"
quickstart "$scratch/second"
expect_text '^It runs already at 127.0.0.1:' "$scratch/second"
if grep -q 'earlier build' "$scratch/second"; then die "the daemon is of this build"; fi

echo "-- a run after another build says that the daemon is older"
echo >>"$repository/bazel-bin/server/daemon/tandemd"
quickstart "$scratch/third"
expect_text '^It is of an earlier build' "$scratch/third"
reader tandem shutdown >"$scratch/shutdown"

# setup CODE LOG [NAME=VALUE...]: setup.sh as a user who is not root.
chmod 755 "$scratch"
user=()
if ((EUID == 0)); then user=(setpriv --reuid 65534 --regid 65534 --clear-groups); fi
setup() {
  local code=$1 log=$2
  shift 2
  expect_code "$code" "$log" "${user[@]}" env HOME=/nonexistent PATH="$tools" "$@" "$repository/deploy/setup.sh"
}

echo "-- packages on hold are installed"
stand_in dpkg-query 'echo "hi "'
setup 0 "$scratch/hold"
[[ ! -s $scratch/hold ]] || die "it installs something: $(cat "$scratch/hold")"

echo "-- without root and sudo, the message names the mend"
stand_in dpkg-query 'exit 1'
stand_in apt-get 'exit 0'
setup 1 "$scratch/no-sudo"
expect_text 'neither root nor sudo is at hand; run deploy/setup.sh as root' "$scratch/no-sudo"

echo "-- apt gets the proxy, although sudo drops it"
# shellcheck disable=SC2016 # Variables of the stand-ins.
stand_in sudo 'exec env -i PATH="$PATH" "$@"'
# shellcheck disable=SC2016
stand_in apt-get 'echo "$1 behind $http_proxy, $DEBIAN_FRONTEND"'
setup 0 "$scratch/proxy" http_proxy=http://proxy:3128
expect_text '^update behind http://proxy:3128, noninteractive$' "$scratch/proxy"
expect_text '^install behind http://proxy:3128, noninteractive$' "$scratch/proxy"

echo "-- on another system, the message names Debian 12"
# shellcheck disable=SC2016
stand_in apt-get '[[ $1 == update ]] || { echo "E: Unable to locate package" && exit 100; }'
setup 1 "$scratch/another"
expect_text 'cannot install the packages; see above; they are those of Debian 12, and this is ' "$scratch/another"

rm "$tools/apt-get"
setup 1 "$scratch/no-apt"
expect_text 'there is no apt-get; use Debian 12' "$scratch/no-apt"
echo passed
