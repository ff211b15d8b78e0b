"""The parts of run.sh. Its header documents the options, and it sets the path of NVIDIA's libraries."""
import argparse
import copy
import glob
import hashlib
import importlib.util
import lzma
import os
import shutil
import signal
import sys
import tarfile
import tempfile
import time

import gpu_tests
import job_checks
import speed
from presets import PRESETS
from report import Report

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# The folders of NVIDIA's tools if they are not in PATH.
TOOL_FOLDERS = ["{CUDA_HOME}/bin", "/usr/local/cuda*/bin", "/opt/nvidia/nsight-compute/*",
                "/usr/local/cuda*/nsight-compute*", "/usr/local/cuda*/compute-sanitizer", "/usr/local/cuda*/extras/*"]


class Setting:
    """The places of programs and data, and the options of the parts. A preset replaces some options for each part."""

    def __init__(self, args):
        self.args = args
        self.dry_run = args.dry_run
        self.bundle = os.path.abspath(args.bundle or ROOT)
        self.golden_data = os.path.abspath(args.golden_data or os.path.join(ROOT, "tests/golden/data"))
        examples = os.path.join(ROOT, "examples")
        self.examples = examples if os.path.isdir(examples) else os.path.join(ROOT, "deploy/examples")
        self.data = [os.path.abspath(folder) for folder in args.data or ["/usr/share/datasets"]]
        self.plans = {"TANDEM_CUDA_PLANS": os.path.join(os.path.abspath(args.out), "cuda-plans")}
        self.peer = {"LD_LIBRARY_PATH": os.environ.get("PEER_LD_LIBRARY_PATH", "")}
        # The options of the parts. None: each part's own limit.
        self.limit = None
        self.quick = False
        self.networks = args.networks.split(",") if args.networks else list(speed.BATCHES)
        self.dtypes = args.dtypes.split(",") if args.dtypes else ["float32", "bfloat16"]
        self.samples = ["gpu", "host"]
        self.layouts = ["channels-last", "channels-first"]
        self.filter = args.filter
        self.programs = list(gpu_tests.PROGRAMS)
        self.backends = gpu_tests.BACKENDS
        self.tools = gpu_tests.TOOLS
        self.kernels = ""
        self.epochs = 1
        self.changes = []
        self.starts = 3
        self.compile_mode = "max-autotune"

    def having(self, limit, options):
        """Returns a copy with a preset's options. The command line overrides them."""
        own = copy.copy(self)
        own.limit = limit
        for name, value in options.items():
            if not hasattr(self, name):
                raise ValueError(f"cannot use the option {name}: Setting has no such attribute")
            if getattr(self.args, name, None) is None:
                setattr(own, name, value)
        return own

    def program(self, path):
        return os.path.join(self.bundle, path)

    def script(self, path):
        return os.path.join(ROOT, path)

    def test_program(self, report, part, folder, name, backend=None):
        """Returns a test program's path, or None after it has reported a missing program."""
        path = self.program(f"tests/{folder}/{name}")
        if self.dry_run:
            path = os.path.join(self.bundle, "bazel-bin", emulated(folder, name, backend))
        if os.access(path, os.X_OK):
            return path
        if self.dry_run:
            report.add(part, backend or name, "left out", 0, {"why": f"dry run: there is no {path}"})
        else:
            report.add(part, backend or name, "failed", 0, {"failed": f"cannot run {path}: no such program; build the "
                                                            "bundle where CUDA's toolkit is"})
        return None

    @staticmethod
    def tool(name):
        """Returns the path of one of NVIDIA's tools, or its name if it is nowhere."""
        if shutil.which(name):
            return shutil.which(name)
        home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
        places = [f"{folder.format(CUDA_HOME=home)}/{name}" for folder in TOOL_FOLDERS]
        found = [path for place in places for path in sorted(glob.glob(place)) if os.access(path, os.X_OK)]
        return found[-1] if found else name


def emulated(folder, name, backend):
    """Returns the path in bazel-bin of the same test on the emulation, as the BUILD files name it."""
    if backend:
        kind = backend.removeprefix("gpu").replace("-", "_")
        return f"tests/golden/golden_emulated{kind}_test"
    if folder == "gpu":
        return f"tests/gpu/{name.removesuffix('_test')}_emulated_test"
    return f"{folder}/emulated_{name}"


def unpack_bundle(archive, report):
    """Unpacks a bundle into a folder in /tmp and returns its path. A later call finds the folder again."""
    started = time.monotonic()
    with open(archive, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()[:12]
    place = os.path.join(tempfile.gettempdir(), f"tandem-bundle-{digest}")
    if not os.path.isdir(place):
        scratch = tempfile.mkdtemp(prefix="tandem-unpack-")
        try:
            with tarfile.open(archive) as packed:
                packed.extractall(scratch)
        except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
            sys.exit(f"run.sh: cannot unpack {archive}: {error}; make the bundle anew with deploy/bundle")
        os.rename(scratch, place)
    report.add("setup", "unpack", "ok", time.monotonic() - started, {"bundle": place})
    return os.path.join(place, "tandem")


def probe(setting, report):
    """The machine: driver, compiler, libraries, PyTorch; bandwidth and the rates of matrix products."""
    limit = setting.limit or 60

    def found(step):
        return {"said": step.text.strip()[:4000]}

    if setting.dry_run:
        report.add("probe", "nvidia-smi", "left out", 0, {"why": "dry run: it needs a GPU"})
        report.run("probe", "python3", [sys.executable, "-c", "pass"], limit)
    else:
        report.run("probe", "nvidia-smi", ["nvidia-smi"], min(limit, 10), judge=found)
    if not setting.quick and not setting.dry_run:
        report.run("probe", "clocks", ["nvidia-smi", "-q", "-d", "CLOCK,POWER,ECC,TEMPERATURE"], limit, judge=found)
        report.run("probe", "nvcc", [setting.tool("nvcc"), "--version"], limit, judge=found)
        report.run("probe", "system", ["sh", "-c", "uname -a; ldd --version | head -1; nproc; free -g | head -2; "
                                       "grep PRETTY /etc/os-release"], limit, judge=found)
        report.run("probe", "compute-sanitizer", [setting.tool("compute-sanitizer"), "--version"], limit, judge=found)
        for name in ("tandemd", "tandem-worker", "tandem"):
            program = setting.program(f"bin/{name}")
            if os.path.exists(program):
                report.run("probe", name, [program, "--version"], limit, judge=found)
            else:
                report.add("probe", name, "left out", 0, {"why": f"there is no {program}"})
    libraries = sorted(path for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder
                       for path in glob.glob(folder + "/lib*.so*"))
    wanted = [path for path in libraries
              if any(f"/lib{name}.so" in path for name in ("cudart", "cublas", "cublasLt", "cudnn", "nccl", "nvrtc"))]
    tools = {name: setting.tool(name) for name in ("nvcc", "compute-sanitizer")}
    lacking = {} if wanted else {"failed": "cannot find NVIDIA's libraries; put their folders into LD_LIBRARY_PATH"}
    report.add("probe", "libraries", "ok" if wanted else "failed", 0, {"libraries": wanted, "tools": tools, **lacking})
    if setting.dry_run and not importlib.util.find_spec("torch"):
        report.add("probe", "pytorch", "left out", 0, {"why": "dry run: PyTorch is not installed"})
    else:
        report.run("probe", "pytorch", [sys.executable, os.path.join(HERE, "probe.py")], setting.limit or 180,
                   setting.peer, judge=lambda step: step.json_lines()[-1])


PARTS = {"probe": probe, "conformance": gpu_tests.conformance, "golden": gpu_tests.golden,
         "sanitize": gpu_tests.sanitize, "bench": speed.bench, "launches": speed.launches, "epochs": speed.epochs,
         "kernels": speed.kernels, "peers": speed.peers, "peers-compile": speed.peers_compile, "job": job_checks.job,
         "workers": job_checks.workers, "jobs": job_checks.jobs, "accuracy": job_checks.accuracy,
         "starts": job_checks.starts, "many-jobs": job_checks.many_jobs}
# The parts that a dry run runs. Every other part has no counterpart without a GPU.
DRY_PARTS = ["probe", "conformance", "golden"]


def run_parts(parts, setting, report):
    """Runs entries as presets.py has them."""
    for name, limit, options in parts:
        if setting.dry_run and name not in DRY_PARTS:
            report.add(name, "all", "left out", 0,
                       {"why": "dry run: it has no emulated counterpart", "options": options})
        else:
            PARTS[name](setting.having(limit, options), report)


def parse(arguments=None):
    parser = argparse.ArgumentParser(
        prog="run.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Runs the checks and benchmarks of a GPU. The parts:\n" +
        "\n".join(f"  {name:<15}{part.__doc__.strip()}" for name, part in PARTS.items()))
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART")
    parser.add_argument("--preset", choices=list(PRESETS))
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--out", default="gpu-report")
    parser.add_argument("--bundle")
    parser.add_argument("--data", action="append")
    parser.add_argument("--golden-data")
    parser.add_argument("--described")
    parser.add_argument("--plans")
    parser.add_argument("--limit", type=float, default=24 * 3600)
    parser.add_argument("--step-limit", type=float)
    parser.add_argument("--networks")
    parser.add_argument("--dtypes")
    parser.add_argument("--tf32", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--filter")
    parser.add_argument("--bench-option", action="append", default=[])
    args = parser.parse_args(arguments)
    if args.preset and args.parts:
        parser.error("cannot run parts beside --preset: a preset has its own parts; leave out either")
    return args


def main():
    args = parse()
    setting = Setting(args)
    if not os.path.exists(setting.bundle):
        sys.exit(f"run.sh: cannot find the bundle {setting.bundle}; make it with deploy/bundle")
    try:
        report = Report(args.out, args.limit, args.step_limit)
    except OSError as error:
        sys.exit(f"run.sh: cannot write the report: {error}; give another folder with --out")
    signal.signal(signal.SIGTERM, lambda *_: report.stop())
    for folder in args.data or []:
        if not os.path.isdir(folder):
            report.add("setup", "data", "failed", 0, {"failed": f"cannot find the folder {folder} of --data"})
    plans = setting.plans["TANDEM_CUDA_PLANS"]
    if args.plans and os.path.exists(args.plans) and os.path.abspath(args.plans) != plans:
        shutil.copyfile(args.plans, plans)
    if os.path.isfile(setting.bundle):
        setting.bundle = unpack_bundle(setting.bundle, report)
    parts = PRESETS[args.preset] if args.preset else [(name, None, {}) for name in args.parts or PARTS]
    run_parts(parts, setting, report)
    speed.compare(report)
    print("\n" + report.table())
    sys.exit(1 if any(step["result"] not in ("ok", "left out") for step in report.steps) else 0)


if __name__ == "__main__":
    main()
