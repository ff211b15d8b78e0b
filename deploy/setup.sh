#!/usr/bin/env bash
# Installs the Debian 12 packages that Tandem needs. Does nothing if all are installed.
#
#   deploy/setup.sh          packages for building and running
#   deploy/setup.sh --test   also packages for deploy/test.sh
#
# Needs root or sudo only if a package is missing. CUDA is not installed: the build finds a toolkit in $CUDA_HOME or
# /usr/local/cuda, or builds without CUDA.
set -euo pipefail

build_packages=(
  bazel-bootstrap bazel-rules-java bazel-rules-proto bazel-platforms   # the build
  clang git ca-certificates
  g++                                                                  # GPU kernels: nvcc compiles with g++
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev libssl-dev
  libdnnl-dev libgloo-dev libsqlite3-dev libsqlitecpp-dev libyaml-cpp-dev libonnx-dev libcli11-dev libspdlog-dev nlohmann-json3-dev zlib1g-dev
  liblzma-dev libjpeg62-turbo-dev libpng-dev libwebp-dev libtiff-dev libgif-dev libzstd-dev libbz2-dev libcurl4-openssl-dev libpugixml-dev
  prometheus-cpp-dev libcivetweb-dev libseccomp-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  dataset-fashion-mnist                                                # the quickstart's data
  binutils patchelf xz-utils                                           # deploy/bundle
  dpkg-dev help2man                                                    # deploy/package
)
test_packages=(
  clang-format                                                         # style
  libclang-rt-14-dev llvm-14                                           # sanitizers: runtimes, names in reports
  iproute2 openssl procps python3 sqlite3                              # whole-system tests
  python3-h2                                                           # hostile clients (tests/fault)
  chromium                                                             # the dashboard (tests/integration/dashboard.sh)
  python3-build python3-grpcio python3-matplotlib python3-numpy python3-pandas python3-protobuf python3-sklearn python3-setuptools python3-venv python3-wheel mypy  # client/python
  python3-pil imagemagick zstd                                         # pictures and archives of other software
  munge slurm-wlm                                                      # a Slurm cluster (tests/integration/slurm)
  openssh-client openssh-server                                        # hosts by SSH (tests/integration/ssh.sh)
  prometheus                                                           # deploy/prometheus, deploy/grafana
  debootstrap lintian systemd-container zsh                            # tests/integration/package.sh
)

packages=("${build_packages[@]}")
case "${1:-}" in
  "") ;;
  --test) packages+=("${test_packages[@]}") ;;
  *)
    echo "setup.sh: unknown argument '$1'; see the first lines of this file" >&2
    exit 2
    ;;
esac

# uPlot draws the dashboard's charts. Without npm, the build leaves the dashboard's page out.
uplot=1.6.32
uplot_sha256=4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d
uplot_folder=$HOME/.cache/tandem/npm/uplot-$uplot
if [[ ! -f $uplot_folder/uPlot.esm.js ]] && command -v npm >/dev/null; then
  scratch=$(mktemp -d)
  if (cd "$scratch" && npm pack --silent --fetch-retries=0 --fetch-timeout=30000 "uplot@$uplot" >/dev/null) && echo "$uplot_sha256  $scratch/uplot-$uplot.tgz" | sha256sum --quiet -c; then
    tar -xzf "$scratch/uplot-$uplot.tgz" -C "$scratch"
    mkdir -p "$uplot_folder"
    cp "$scratch"/package/dist/uPlot.{esm.js,min.css} "$scratch/package/LICENSE" "$uplot_folder"
    # A running Bazel would not look for uPlot again.
    if command -v bazel >/dev/null; then (cd "$(dirname "$0")/.." && bazel shutdown) >/dev/null 2>&1 || true; fi
  else
    echo "setup.sh: cannot fetch uplot@$uplot with npm; the dashboard's page is left out of the build" >&2
  fi
  rm -rf "$scratch"
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  # The first letter is the wish: a package on hold has an h.
  [[ $status == ?"i "* ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

echo "Installing: ${missing[*]}"
if ! command -v apt-get >/dev/null; then
  echo "setup.sh: cannot install the packages: there is no apt-get; use Debian 12" >&2
  exit 1
elif ((EUID == 0)); then
  as_root=(env)
elif command -v sudo >/dev/null; then
  as_root=(sudo env)
  # sudo drops these variables, and apt-get needs them behind a proxy.
  for name in http_proxy https_proxy no_proxy; do
    if [[ -n ${!name:-} ]]; then as_root+=("$name=${!name}"); fi
  done
else
  echo "setup.sh: cannot install the packages: neither root nor sudo is at hand; run deploy/setup.sh as root" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
# The tests start Prometheus themselves. A masked unit keeps the package from starting a service.
if [[ " ${missing[*]} " == *" prometheus "* ]]; then
  "${as_root[@]}" mkdir -p /etc/systemd/system
  "${as_root[@]}" ln -sfn /dev/null /etc/systemd/system/prometheus.service
fi
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}" || {
  system=$(sed -nE 's/^PRETTY_NAME="?([^"]*)"?$/\1/p' /etc/os-release)
  echo "setup.sh: apt-get cannot install the packages; see above; they are those of Debian 12, and this is ${system:-unknown}" >&2
  exit 1
}
