"""Compares our speed on a GPU with PyTorch's, and lists the kernels that take most time."""
import gzip
import os
import shutil
import sys

from report import GpuMemory

BATCHES = {"lenet": 128, "resnet18": 256, "matlab-cifar": 256}
# The numbers of timed steps and of warm-up steps.
STEPS = {"lenet": (3000, 300), "resnet18": (300, 60), "matlab-cifar": (600, 60)}
# The floating-point operations for an image, forward and backward; and the wanted speed, relative to PyTorch's best.
FLOP = {"lenet": 13e6, "resnet18": 2.55e9, "matlab-cifar": 0.57e9}
AIMS = {"lenet": 3.0, "resnet18": 1.5, "matlab-cifar": 1.5}


def measure(report, part, name, command, limit, environment):
    """Runs a program that prints a JSON line with images_per_second, and reports its figures."""
    with GpuMemory() as memory:

        def judge(step):
            line = step.json_lines()[-1]
            rate = line["images_per_second"]
            return {"images_per_second": rate, "step_us": round(line["batch"] / rate * 1e6, 1), "loss": line["loss"],
                    "gpu_memory_mib": memory.peak, "figures": line}

        report.run(part, name, command, limit, environment, judge=judge)


def bench_command(setting, network, dtype, steps, warmup, options=()):
    return [setting.program("tests/bench/train_bench"), f"--network={network}", f"--dtype={dtype}",
            f"--batch={BATCHES[network]}", "--device=gpu:0", f"--steps={steps}", f"--warmup={warmup}",
            *(["--tf32"] if dtype == "float32" and setting.args.tf32 else []), *options, *setting.args.bench_option]


def bench(setting, report):
    """Our images per second, on random data and on one GPU: samples in its memory and, as bench-host, in the host's."""
    for samples in setting.samples:
        part, options = {"gpu": ("bench", []), "host": ("bench-host", ["--samples=host"])}[samples]
        for network in setting.networks:
            for dtype in setting.dtypes:
                measure(report, part, f"{network} {dtype}",
                        bench_command(setting, network, dtype, *STEPS[network], options), setting.limit or 120,
                        setting.plans)


def launches(setting, report):
    """The loss of runs with many steps in a launch, which must equal the loss with a step in a launch."""
    for network in setting.networks:
        for dtype in setting.dtypes:
            losses = {}
            for size in (1, 64):

                def judge(step, losses=losses, size=size):
                    loss = losses[size] = step.json_lines()[-1]["loss"]
                    if loss is None or loss != losses.get(1):
                        return {"loss": loss,
                                "failed": f"the loss is {loss}; with a step in a launch it is {losses.get(1)}"}
                    return {"loss": loss}

                # The 64 steps of the warmup are several launches. Then come two launches of 64 steps.
                report.run("launches", f"{network} {dtype} {size}",
                           bench_command(setting, network, dtype, 128, 64,
                                         ["--deterministic", f"--steps-per-launch={size}"]),
                           setting.limit or 120, setting.plans, judge=judge)


def epochs(setting, report):
    """Our seconds for an epoch of Fashion-MNIST, with validation, on one GPU."""
    folder = next((f"{data}/fashion-mnist" for data in setting.data
                   if os.path.exists(f"{data}/fashion-mnist/train-images-idx3-ubyte.gz")), None)
    if not folder:
        report.add("epochs", "all", "left out", 0, {"why": "no folder of --data has fashion-mnist/*.gz"})
        return
    for network in [network for network in setting.networks if network != "matlab-cifar"]:  # Its images are larger.
        for dtype in setting.dtypes:
            command = [*bench_command(setting, network, dtype, 1, 0), f"--data={folder}", "--epochs=3"]

            def judge(step):
                line = step.json_lines()[-1]
                return {"seconds_per_epoch": round(min(line["epoch_seconds"]), 3),
                        "accuracy": line["test_accuracy"][-1], "figures": line}

            report.run("epochs", f"{network} {dtype}", command, setting.limit or 120, setting.plans, judge=judge)


def judge_trace(path, step):
    """The kernels that take most time, by kernel_trace.so, in microseconds of a step, and the GPU's idle time.

    Counts records from 70 % to 95 % of the trace: steps alone, without search, first runs and end.
    """
    line = step.json_lines()[-1]
    step_us = line["batch"] / line["images_per_second"] * 1e6
    with open(path, encoding="utf-8") as f:
        records = sorted((int(start), int(end), name) for start, end, _, name in
                         (record.rstrip("\n").split("\t", 3) for record in f))
    if not records:
        return {"failed": "no kernel was traced"}
    chosen = records[len(records) * 7 // 10:len(records) * 19 // 20]
    begin, end = chosen[0][0], chosen[-1][1]
    times, launches, busy, covered = {}, {}, 0, begin
    for start, stop, name in chosen:
        times[name] = times.get(name, 0) + (stop - start)
        launches[name] = launches.get(name, 0) + 1
        busy += max(0, stop - max(start, covered))
        covered = max(covered, stop)
    steps = (end - begin) / 1e3 / step_us
    top = sorted(times, key=times.get, reverse=True)
    return {"step_us": round(step_us, 1), "launches_a_step": round(sum(launches.values()) / steps, 1),
            "kernels_us": round(sum(times.values()) / 1e3 / steps, 1),
            "idle_us": round((end - begin - busy) / 1e3 / steps, 1),
            "top": [{"kernel": name[:200], "launches": round(launches[name] / steps, 2),
                     "us": round(times[name] / 1e3 / steps, 1)} for name in top[:40]]}


def compress(path):
    """Replaces a trace, which has tens of megabytes, by `path`.gz."""
    with open(path, "rb") as trace, gzip.open(path + ".gz", "wb", compresslevel=3) as packed:
        shutil.copyfileobj(trace, packed)
    os.remove(path)


def kernels(setting, report):
    """The kernels of each network that take most time, and the time between kernels, by CUPTI."""
    for network in setting.networks:
        for dtype in setting.dtypes:
            path = os.path.join(os.path.abspath(setting.args.out), f"trace-{network}-{dtype}")
            environment = {**setting.plans, "TANDEM_KERNEL_TRACE": path,
                           "CUDA_INJECTION64_PATH": setting.program("tests/gpu/kernel_trace.so")}
            steps, warmup = STEPS[network]
            report.run("kernels", f"{network} {dtype}", bench_command(setting, network, dtype, steps, warmup),
                       setting.limit or 120, environment, judge=lambda step, path=path: judge_trace(path, step))
            if os.path.exists(path):
                compress(path)


def compare(report):
    """Our speed beside PyTorch's best, and its share of the rate of matrix products, where both were measured."""
    done = [step for step in report.steps if "images_per_second" in step]
    probed = [step for step in report.steps if step["step"] == "pytorch" and "bfloat16_tflops" in step]
    for ours in [step for step in done if step["part"] == "bench"]:
        network, dtype = ours["step"].split()
        theirs = [step for step in done if step["part"] != "bench" and step["step"].startswith(f"{network} {dtype} ")]
        details = {}
        if probed:
            rate = ("tf32" if ours["figures"].get("tf32") else dtype) + "_tflops"
            details["share_of_peak"] = round(ours["images_per_second"] * FLOP[network] / probed[0][rate] / 1e12, 4)
        if theirs:
            best = max(theirs, key=lambda step: step["images_per_second"])
            ratio = ours["images_per_second"] / best["images_per_second"]
            details.update(ratio=round(ratio, 2), aim=AIMS[network], best_peer=f"{best['part']} {best['step']}",
                           memory_ratio=round(ours["gpu_memory_mib"] / best["gpu_memory_mib"], 3)
                           if ours["gpu_memory_mib"] and best["gpu_memory_mib"] else None)
            if ratio < AIMS[network]:
                details["failed"] = f"{ratio:.2f} times PyTorch's speed; {AIMS[network]} are aimed at"
        if details:
            report.add("compare", ours["step"], "failed" if "failed" in details else "ok", 0, details)


def peer(setting, report, part, variants, limit):
    for network in setting.networks:
        for dtype in setting.dtypes:
            for name, options in variants:
                steps, warmup = STEPS[network]
                measure(report, part, f"{network} {dtype} {name}",
                        [sys.executable, setting.script("tests/bench/pytorch_train.py"), "--net", network, "--dtype",
                         dtype, "--batch", str(BATCHES[network]), "--device", "cuda", "--steps", str(steps), "--warmup",
                         str(warmup), *options, *([] if setting.args.tf32 else ["--no-tf32"])], limit, setting.peer)


def peers(setting, report):
    """PyTorch on the same networks, without torch.compile."""
    options = {"channels-last": ["--channels-last"], "channels-first": []}
    peer(setting, report, "peers", [(layout, options[layout]) for layout in setting.layouts], setting.limit or 90)


def peers_compile(setting, report):
    """PyTorch with torch.compile: minutes, for it measures its kernels first."""
    options = ["--channels-last", "--compile", "--compile-mode", setting.compile_mode]
    peer(setting, report, "peers-compile", [(f"channels-last {setting.compile_mode}", options)], setting.limit or 240)
