"""The parts of run.sh, which says how they are called and sets the path of NVIDIA's libraries."""
import argparse
import glob
import os
import sys
import tempfile

import gpu_tests
import job_checks
import speed
from report import Report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Setting:
    """Where things are, and what was asked for."""

    def __init__(self, args, cache):
        self.args = args
        self.bundle = os.path.abspath(args.bundle or ROOT)
        self.golden_data = os.path.abspath(args.golden_data or os.path.join(ROOT, "tests/golden/data"))
        examples = os.path.join(ROOT, "examples")
        self.examples = examples if os.path.isdir(examples) else os.path.join(ROOT, "deploy/examples")
        self.data = [os.path.abspath(folder) for folder in args.data or ["/usr/share/datasets"]]
        self.networks = args.networks.split(",")
        self.dtypes = args.dtypes.split(",")
        self.plans = {"TANDEM_CUDA_PLANS": os.path.join(cache, "cuda-plans")}
        self.peer = {"LD_LIBRARY_PATH": os.environ.get("PEER_LD_LIBRARY_PATH", "")}

    def program(self, path):
        return os.path.join(self.bundle, path)

    def script(self, path):
        return os.path.join(ROOT, path)


def probe(setting, report):
    """The machine: driver, compiler, libraries, PyTorch; bandwidth and the rates of matrix products."""

    def found(step):
        return {"said": step.text.strip()[:4000]}

    report.run("probe", "nvidia-smi", ["nvidia-smi"], 60, judge=found)
    report.run("probe", "clocks", ["nvidia-smi", "-q", "-d", "CLOCK,POWER,ECC,TEMPERATURE"], 60, judge=found)
    report.run("probe", "nvcc", ["sh", "-c", "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc --version"], 60, judge=found)
    report.run("probe", "system", ["sh", "-c", "uname -a; ldd --version | head -1; nproc; free -g | head -2; "
                                   "grep PRETTY /etc/os-release"], 60, judge=found)
    libraries = sorted(path for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder
                       for path in glob.glob(folder + "/lib*.so*"))
    wanted = [path for path in libraries
              if any(f"/lib{name}.so" in path for name in ("cudart", "cublas", "cublasLt", "cudnn", "nccl", "nvrtc"))]
    report.add("probe", "libraries", "ok" if wanted else "failed", 0, {"libraries": wanted} if wanted else
               {"failed": "none of NVIDIA's libraries was found"})
    report.run("probe", "compute-sanitizer", ["compute-sanitizer", "--version"], 60, judge=found)
    report.run("probe", "pytorch", [sys.executable, os.path.join(HERE, "probe.py")], 180, setting.peer,
               judge=lambda step: step.json_lines()[-1])
    for name in ("tandemd", "tandem-worker", "tandem"):
        program = setting.program(f"bin/{name}")
        if os.path.exists(program):
            report.run("probe", name, [program, "--version"], 30, judge=found)
        else:
            report.add("probe", name, "left out", 0, {"why": f"there is no {program}"})


PARTS = {"probe": probe, "conformance": gpu_tests.conformance, "golden": gpu_tests.golden,
         "sanitize": gpu_tests.sanitize, "bench": speed.bench, "kernels": speed.kernels, "peers": speed.peers,
         "peers-compile": speed.peers_compile, "jobs": job_checks.jobs, "accuracy": job_checks.accuracy,
         "starts": job_checks.starts, "many-jobs": job_checks.many_jobs}


def main():
    parser = argparse.ArgumentParser(
        prog="run.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs the checks and benchmarks of a GPU; the parts:\n" +
        "\n".join(f"  {name:<15}{part.__doc__.strip()}" for name, part in PARTS.items()))
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    parser.add_argument("--out", default="gpu-report")
    parser.add_argument("--bundle")
    parser.add_argument("--data", action="append")
    parser.add_argument("--golden-data")
    parser.add_argument("--described")
    parser.add_argument("--limit", type=float, default=24 * 3600)
    parser.add_argument("--step-limit", type=float)
    parser.add_argument("--networks", default=",".join(speed.BATCHES))
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--tf32", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--filter")
    parser.add_argument("--bench-option", action="append", default=[])
    args = parser.parse_args()
    report = Report(args.out, args.limit, args.step_limit)
    with tempfile.TemporaryDirectory() as cache:
        setting = Setting(args, cache)
        for name in args.parts or PARTS:
            PARTS[name](setting, report)
    speed.compare(report)
    print("\n" + report.table())
    sys.exit(1 if any(step["result"] not in ("ok", "left out") for step in report.steps) else 0)


main()
