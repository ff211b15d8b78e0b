#!/usr/bin/env bash
# Runs the checks and benchmarks of a GPU, from an unpacked bundle (deploy/bundle) or from the repository with --bundle:
#
#   tests/gpu/run.sh [OPTION...] [PART...]
#
#   --out DIR          where report.json, summary.txt and log.txt go (default: gpu-report); they are kept up to date, so
#                      that they also say what was done where this is stopped
#   --bundle DIR       the unpacked bundle whose programs are run (default: the one that this stands in)
#   --data DIR         a folder with data sets as subfolders mnist and fashion-mnist (IDX files, plain, .gz or .xz) and
#                      cifar-10 (binary files, plain or .xz, or their .tar.gz); may be given several times (default:
#                      /usr/share/datasets). Cases whose data is in none are left out
#   --golden-data DIR  the golden cases (default: tests/golden/data)
#   --described DIR    jobs as `tests/accuracy/examples.sh --describe` writes them: accuracy needs no bundle then
#   --limit SECONDS    begins no step after this time, and ends the one that runs
#   --step-limit SECONDS  for each step, in place of its own (of sanitize: an hour for a tool and suite)
#   --networks LIST    of bench, kernels and the peers (default: lenet,resnet18,matlab-cifar)
#   --dtypes LIST      likewise: float32, bfloat16, float16 (default: float32,bfloat16)
#   --no-tf32          float32 without TF32 there, on both sides
#   --jobs N           of many-jobs (default: 1000)
#   --filter PATTERN   GoogleTest's, for conformance and sanitize
#   --bench-option O   given to train_bench; may be given several times
#
# Parts (default: all): probe, conformance, golden, sanitize, bench, kernels, peers, peers-compile, jobs, accuracy, starts,
# many-jobs; `run.sh --help` says what each is. A part that fails does not stop the others; the exit code is 1 then. Needs
# python3, and PyTorch for the peers and accuracy; neither Bazel nor a network. NVIDIA's libraries are taken from
# LD_LIBRARY_PATH, python3's packages and the toolkit ($CUDA_HOME or /usr/local/cuda).
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
command -v python3 >/dev/null || {
  echo "run.sh: python3 is missing" >&2
  exit 1
}

# PyTorch has its own ways to its libraries: it is run with what was set before.
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
