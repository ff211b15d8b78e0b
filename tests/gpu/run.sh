#!/usr/bin/env bash
# Runs the checks and benchmarks of a GPU, from an unpacked bundle (deploy/bundle) or from the repository with --bundle:
#
#   tests/gpu/run.sh [OPTION...] [PART...]
#   tests/gpu/run.sh [OPTION...] --preset first|second|again|compiled|third
#
#   --preset NAME      runs the steps in presets.py, each with its own options and limit. first: checks that the code
#                      works. second: compares speeds with PyTorch. again: checks and times a change of the backend.
#                      compiled: compares with compiled PyTorch. third: runs compute-sanitizer
#   --dry-run          runs the emulated counterpart of each test, from bazel-bin of --bundle (default: the repository).
#                      Steps without a counterpart are left out. The report has the seconds of unpacking and starts
#   --out DIR          the folder for report.json, summary.txt, log.gz, cuda-plans and traces of kernels (default:
#                      gpu-report). They are written after every step, so that a kill loses only the running step.
#                      SIGTERM ends the running step, and keeps its output
#   --bundle PATH      an unpacked bundle, or its archive (default: the bundle that contains this script). An archive is
#                      unpacked into /tmp/tandem-bundle-*, once
#   --data DIR         a folder with data sets as subfolders mnist and fashion-mnist (IDX files, plain, .gz or .xz) and
#                      cifar-10 (binary files, plain or .xz, or their .tar.gz). Repeatable (default:
#                      /usr/share/datasets). Cases without data are left out
#   --golden-data DIR  the golden cases (default: tests/golden/data)
#   --described DIR    jobs as `tests/accuracy/examples.sh --describe` writes them: accuracy needs no bundle then
#   --plans FILE       the engine choices (TANDEM_CUDA_PLANS) of an earlier run. If FILE exists, the run starts from a
#                      copy. A run saves its choices in cuda-plans in the --out folder
#   --limit SECONDS    starts no step after this time, and ends the running step
#   --step-limit SECONDS  the limit of each step, in place of its own (of sanitize: an hour for each suite)
#   --networks LIST    of bench, launches, epochs, kernels and the peers (default: lenet,resnet18,matlab-cifar)
#   --dtypes LIST      likewise: float32, bfloat16, float16 (default: float32,bfloat16)
#   --no-tf32          float32 without TF32 there, on both sides
#   --jobs N           of many-jobs (default: 1000)
#   --filter PATTERN   GoogleTest's, for conformance and sanitize
#   --bench-option O   given to train_bench; repeatable
#
# --networks, --dtypes and --filter override a preset. Parts (default: all): probe, conformance, golden, sanitize,
# bench, launches, epochs, kernels, peers, peers-compile, job, workers, jobs, accuracy, starts, many-jobs. `run.sh
# --help` describes each part. A part that fails does not stop the others; the exit code is 1 then. This script needs
# python3, and PyTorch for the peers and accuracy. It needs neither Bazel nor a network. NVIDIA's libraries are taken
# from LD_LIBRARY_PATH, python3's packages and the toolkit ($CUDA_HOME or /usr/local/cuda).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || {
  echo "run.sh: cannot start: no python3 in PATH; install it" >&2
  exit 1
}

# PyTorch finds its own libraries: it runs with the path from before.
export PEER_LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
folders=${LD_LIBRARY_PATH:-}
while read -r folder; do folders+=${folders:+:}$folder; done < <(python3 - <<'END'
import glob, site, sys
for packages in dict.fromkeys(site.getsitepackages() + [site.getusersitepackages()] + sys.path):
    for folder in sorted(glob.glob(packages + "/nvidia/*/lib")):
        print(folder)
END
)
for folder in "${CUDA_HOME:-/usr/local/cuda}/lib64" /usr/local/nvidia/lib64; do
  if [[ -d $folder ]]; then folders+=${folders:+:}$folder; fi
done
export LD_LIBRARY_PATH=$folders PYTHONDONTWRITEBYTECODE=1
exec python3 "$here/checks.py" "$@"
