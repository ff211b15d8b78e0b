"""The parts of run.sh, which says how they are called and sets the path of NVIDIA's libraries."""
import argparse
import concurrent.futures
import glob
import json
import lzma
import os
import re
import shutil
import sys
import tempfile

import report as reports

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BATCHES = {"lenet": 128, "resnet18": 256, "matlab-cifar": 256}
# Steps to time, and before that.
STEPS = {"lenet": (3000, 300), "resnet18": (300, 60), "matlab-cifar": (600, 60)}
ACCURACY_CASES = ["lenet-mnist", "lenet-fashion-mnist", "lenet-fashion-mnist-mxnet", "resnet18-fashion-mnist"]


class Setting:
    """Where things are, and what was asked for."""

    def __init__(self, args):
        self.args = args
        self.bundle = os.path.abspath(args.bundle or ROOT)
        self.golden_data = os.path.abspath(args.golden_data or os.path.join(ROOT, "tests/golden/data"))
        examples = os.path.join(ROOT, "examples")
        self.examples = examples if os.path.isdir(examples) else os.path.join(ROOT, "deploy/examples")
        self.data = [os.path.abspath(folder) for folder in args.data or ["/usr/share/datasets"]]
        self.networks = args.networks.split(",")
        self.dtypes = args.dtypes.split(",")
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


def judge_tests(path):
    """Counts of GoogleTest's report, and what failed."""

    def judge(step):
        if not os.path.exists(path):
            return {"failed": "it left no report" + ("" if step.code is None else f", exit code {step.code}"),
                    "failing": [line[12:] for line in step.text.splitlines() if line.startswith("[  FAILED  ]")]}
        with open(path) as f:
            suites = json.load(f).get("testsuites", [])
        tests = [test for suite in suites for test in suite.get("testsuite", [])]
        failing = [f"{test['classname']}.{test['name']}" for test in tests if test.get("failures")]
        skipped = sum(test.get("result") == "SKIPPED" for test in tests)
        judged = {"tests": len(tests), "skipped": skipped, "failing": failing}
        if failing:
            judged["failed"] = f"{len(failing)} of {len(tests)} tests"
        elif not tests or skipped == len(tests):
            judged["failed"] = "no test ran"
        return judged

    return judge


def run_tests(setting, report, part, program, options, limit, name=None, before=(), environment=None, folder=None):
    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(scratch, "report.json")
        report.run(part, name or os.path.relpath(program, setting.program("tests")),
                   [*before, program, f"--gtest_output=json:{path}", *options], limit, environment, folder,
                   judge_tests(path))


def gpu_tests(setting):
    """The tests of the GPU's rooms."""
    found = []
    for room in ("tests/engine", "tests/gpu"):
        for folder, _, files in os.walk(setting.program(room)):
            found += [os.path.join(folder, name) for name in files if name.endswith("_test")]
    return sorted(found)


def conformance(setting, report):
    """The GPU's own tests: backend, kernels and communicator."""
    tests = gpu_tests(setting)
    if not tests:
        report.add("conformance", "tests", "left out", 0, {"why": "the bundle has no tests of GPUs"})
    for program in tests:
        run_tests(setting, report, "conformance", program,
                  [f"--gtest_filter={setting.args.filter}"] if setting.args.filter else [], 240)


def golden(setting, report):
    """Golden cases on the GPU in float32 and bfloat16."""
    program = setting.program("tests/golden/golden_test")
    for backend in ("gpu", "gpu-bfloat16"):
        run_tests(setting, report, "golden", program, [f"--backend={backend}", f"--dir={setting.golden_data}"], 240, backend)


def sanitize(setting, report):
    """compute-sanitizer over the backend's conformance tests."""
    for program in gpu_tests(setting):
        if not program.endswith("engine/backends/cuda/conformance_test"):
            continue
        for tool in ("memcheck", "racecheck", "initcheck"):
            run_tests(setting, report, "sanitize", program,
                      [f"--gtest_filter={setting.args.filter}"] if setting.args.filter else [], 240, name=tool,
                      before=["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", "--print-limit", "40"])


def measure(report, part, name, command, limit, environment):
    """A program that prints a JSON line with images_per_second."""
    with reports.GpuMemory() as memory:

        def judge(step):
            line = step.json_lines()[-1]
            rate = line["images_per_second"]
            return {"images_per_second": rate, "step_us": round(line["batch"] / rate * 1e6, 1), "loss": line["loss"],
                    "gpu_memory_mib": memory.peak, "figures": line}

        report.run(part, name, command, limit, environment, judge=judge)


def bench(setting, report):
    """Our images per second, on random data and on one GPU."""
    with tempfile.TemporaryDirectory() as cache:
        for network in setting.networks:
            for dtype in setting.dtypes:
                steps, warmup = STEPS[network]
                measure(report, "bench", f"{network} {dtype}",
                        [setting.program("tests/bench/train_bench"), f"--network={network}", f"--dtype={dtype}",
                         f"--batch={BATCHES[network]}", "--device=gpu:0", f"--steps={steps}", f"--warmup={warmup}",
                         *setting.args.bench_option], 120, {"TANDEM_CPU_ALGORITHMS": os.path.join(cache, "cpu")})


def peer(setting, report, part, variants, limit):
    for network in setting.networks:
        for dtype in setting.dtypes:
            for name, options in variants:
                steps, warmup = STEPS[network]
                measure(report, part, f"{network} {dtype} {name}",
                        [sys.executable, setting.script("tests/bench/pytorch_train.py"), "--net", network, "--dtype",
                         dtype, "--batch", str(BATCHES[network]), "--device", "cuda", "--steps", str(steps), "--warmup",
                         str(warmup), *options], limit, setting.peer)


def peers(setting, report):
    """PyTorch on the same networks, without torch.compile."""
    peer(setting, report, "peers", [("channels-last", ["--channels-last"]), ("channels-first", [])], 90)


def peers_compile(setting, report):
    """PyTorch with torch.compile: minutes, for it measures its kernels first."""
    peer(setting, report, "peers-compile", [("channels-last", ["--channels-last", "--compile"])], 240)


def programs_as_built(setting, folder):
    """The bundle's programs laid out as the build does, for scripts that look for them there; returns the environment."""
    for program in ("server/daemon/tandemd", "server/worker/tandem-worker", "client/cli/tandem"):
        os.makedirs(os.path.join(folder, os.path.dirname(program)), exist_ok=True)
        os.symlink(setting.program("bin/" + os.path.basename(program)), os.path.join(folder, program))
    # A data set is a subfolder of one folder, with files as the daemon's own data sets have them.
    data = os.path.join(folder, "data")
    for path in [path for source in setting.data for path in sorted(glob.glob(source + "/*/*"))]:
        place = os.path.join(data, os.path.basename(os.path.dirname(path)), os.path.basename(path).removesuffix(".xz"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.exists(place) or not os.path.isfile(path):
            continue
        if path.endswith(".xz"):
            with lzma.open(path) as packed, open(place, "wb") as plain:
                shutil.copyfileobj(packed, plain)
        else:
            shutil.copyfile(path, place)  # The daemon takes no links that lead out of its data folders.
    commit = "unknown"
    if os.path.exists(setting.program("COMMIT")):
        with open(setting.program("COMMIT")) as f:
            commit = f.read().strip()
    return {"TANDEM_BIN_DIR": folder, "TANDEM_DATA": data, "TANDEM_EXAMPLES": setting.examples, "TANDEM_COMMIT": commit}


def cases(setting, report, part, folder):
    """The cases whose data is there."""
    for name in ACCURACY_CASES:
        if os.path.isdir(os.path.join(folder, "data", name.partition("-")[2].removesuffix("-mxnet"))):
            yield name
        else:
            report.add(part, name, "left out", 0, {"why": "its data is in none of the folders of --data"})
    report.add(part, "matlab-cifar-10", "left out", 0, {"why": "CIFAR-10 is too large to carry: run examples.sh"})


def examples_command(setting, *options):
    return ["bash", setting.script("tests/accuracy/examples.sh"), *options]


def accuracy(setting, report):
    """PyTorch's accuracies on the example jobs; --described is a folder with them as `examples.sh --describe` writes them."""
    with tempfile.TemporaryDirectory() as folder:
        environment = programs_as_built(setting, folder)
        described = setting.args.described
        names = list(cases(setting, report, "accuracy", folder))
        if not described:
            described = os.path.join(folder, "described")
            report.run("accuracy", "describe", examples_command(setting, *names, "--describe", described), 120, environment)

        def train(path):
            report.run("accuracy", os.path.basename(path).removesuffix(".json"),
                       [sys.executable, setting.script("tests/accuracy/pytorch_job.py"), path, "--device=cuda",
                        "--data-folder=" + environment["TANDEM_DATA"]], 300, setting.peer,
                       judge=lambda step: step.json_lines()[-1])

        with concurrent.futures.ThreadPoolExecutor(len(ACCURACY_CASES)) as pool:
            list(pool.map(train, [path for name in names
                                  for path in sorted(glob.glob(os.path.join(described, name + "-[0-9]*.json")))]))


def jobs(setting, report):
    """The example jobs through the daemon, on the GPU, beside PyTorch's kept accuracies."""
    with tempfile.TemporaryDirectory() as folder:
        environment = programs_as_built(setting, folder)

        def train(name):
            record = os.path.join(folder, name + ".tsv")

            def judge(step):
                with open(record) as f:
                    figures = [line.strip().split("\t") for line in f if line.strip()]
                values = {f"seed {seed}": float(value) for _, _, seed, value, *_ in figures}
                seconds = [float(number) for number in re.findall(r"([0-9.e-]+) s for the last epoch", step.text)]
                return {**values, "mean": round(sum(values.values()) / len(values), 4), "figures": figures,
                        "epoch_seconds": min(seconds, default=None)}

            report.run("jobs", name, examples_command(setting, name, "--only", "tandem", "--record", record,
                                                      "--gpu"), 400, environment, judge=judge)

        for name in cases(setting, report, "jobs", folder):
            train(name)


PARTS = {"probe": probe, "conformance": conformance, "golden": golden, "sanitize": sanitize, "bench": bench,
         "peers": peers, "peers-compile": peers_compile, "jobs": jobs, "accuracy": accuracy}


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
    parser.add_argument("--networks", default=",".join(BATCHES))
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--filter")
    parser.add_argument("--bench-option", action="append", default=[])
    args = parser.parse_args()
    setting = Setting(args)
    report = reports.Report(args.out, args.limit)
    for name in args.parts or PARTS:
        PARTS[name](setting, report)
    print("\n" + report.table())
    sys.exit(1 if any(step["result"] not in ("ok", "left out") for step in report.steps) else 0)


main()
