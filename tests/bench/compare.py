#!/usr/bin/env python3
"""Measures the speed of Tandem and PyTorch on this machine's CPU.

Prints a JSON line for each run. Then prints a JSON line for each network and type, with both sides' figures and their
ratio.

  bazel build -c opt //tests/bench:train_bench
  python3 tests/bench/compare.py --train-bench=bazel-bin/tests/bench/train_bench \
      --data=/usr/share/datasets/fashion-mnist --peer='python3 pytorch_train.py'

--peer is the command of PyTorch's side. It takes --net, --data, --batch (of each process), --dtype, --steps, --warmup,
--lr, --threads, --ddp and --channels-last, and prints a JSON line with images_per_second. The command gets
OMP_WAIT_POLICY=passive and OPENBLAS_NUM_THREADS=1. Without these variables, PyTorch's threads spin and slow each other
down on a small machine.

Configurations take turns, --rounds times. A side's figure is the median of its best configuration. Memory is the
largest resident memory of all processes of a run together. With TANDEM_CPU_ISA=avx512 and
ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in the environment, neither side uses AMX.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time

# Ratios that are aimed at, on a processor with AMX.
AIMS = {("lenet", "float32"): 1.3, ("lenet", "bfloat16"): 2.5,
        ("resnet18", "float32"): 1.2, ("resnet18", "bfloat16"): 2.0,
        ("matlab-cifar", "bfloat16"): 1.5, ("mini-gpt", "bfloat16"): 1.5}
# Ours, the peer's.
STEPS = {"lenet": (600, 150), "resnet18": (12, 12), "matlab-cifar": (20, 12), "mini-gpt": (60, 30)}
WARMUP = {"lenet": 10, "resnet18": 3, "matlab-cifar": 3, "mini-gpt": 5}
BATCHES = {"mini-gpt": 32}  # Sequences. Of other networks: BATCH images.
BATCH = 128
LEARNING_RATE = "0.01"  # At 0.05, LeNet diverges with some seeds, on either side.


def resident_mib(root):
    """What a process and its descendants have resident, shared pages counted once for each."""
    parents = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat") as f:
                parents[int(name)] = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    members = {root}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in members} - members
        members |= more
        grown = bool(more)
    total = 0
    for pid in members:
        try:
            with open(f"/proc/{pid}/smaps_rollup") as f:
                total += sum(int(line.split()[1]) for line in f if line.startswith("Pss:"))
        except OSError:
            continue
    return total / 1024


def run(command, env):
    """The last JSON line of the command's output, with the memory it took."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    peak = [0.0]
    done = threading.Event()

    def watch():
        while not done.wait(0.25):
            peak[0] = max(peak[0], resident_mib(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, err = process.communicate()
    done.set()
    watcher.join()
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        raise RuntimeError(f"{shlex.join(command)} failed with code {process.returncode}:\n{err[-2000:]}")
    result = json.loads(lines[-1])
    result["peak_memory_mib"] = round(max(peak[0], result.get("peak_memory_mib", 0)), 1)
    return result


def configurations(args, network, dtype, cores):
    """(side, command) of each."""
    whole = BATCHES.get(network, BATCH)
    ours, theirs = (max(1, int(steps * args.scale)) for steps in STEPS[network])
    tandem = [args.train_bench, f"--network={network}", f"--dtype={dtype}", f"--batch={whole}",
              f"--warmup={WARMUP[network]}", f"--lr={LEARNING_RATE}"]
    tandem += [f"--data={args.data}"] if args.data else []
    peer = shlex.split(args.peer) + ["--net", network, "--dtype", dtype, "--warmup", str(WARMUP[network]),
                                      "--lr", LEARNING_RATE]
    peer += ["--data", args.peer_data or args.data] if args.peer_data or args.data else []
    splits = [(1, cores)] + ([(cores, 1)] if cores > 1 else [])
    for replicas, threads in splits:
        yield "tandem", tandem + [f"--replicas={replicas}", f"--threads={threads}", f"--steps={ours}"]
    for layout in ([], ["--channels-last"]):
        for replicas, threads in splits:
            # In processes of their own, PyTorch's replicas are faster with the whole batch each.
            for batch in sorted({whole, whole // replicas}):
                parallel = ["--ddp", str(replicas)] if replicas > 1 else []
                yield "pytorch", (peer + ["--batch", str(batch), "--threads", str(threads), "--steps", str(theirs)] +
                                  parallel + layout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train-bench", required=True, help="the program tests/bench/train_bench")
    parser.add_argument("--peer", required=True, help="the command that runs PyTorch's side")
    parser.add_argument("--data", default="", help="a folder of IDX .gz files; default: random images")
    parser.add_argument("--peer-data", default="", help="the same folder as the peer sees it")
    parser.add_argument("--networks", default="lenet,resnet18")
    parser.add_argument("--dtypes", default="float32,bfloat16")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of steps")
    parser.add_argument("--prefix", default="", help="a command that each run is started through, such as taskset's")
    parser.add_argument("--aim", type=float, help="the ratio that is aimed at, for all networks")
    parser.add_argument("--only", choices=["tandem", "pytorch"], help="one side alone")
    args = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    env = dict(os.environ, OMP_WAIT_POLICY="passive", OPENBLAS_NUM_THREADS="1")
    # Like a daemon's state folder, this keeps the choices: only the first run with a convolution measures it.
    scratch = tempfile.TemporaryDirectory()
    env.setdefault("TANDEM_CPU_ALGORITHMS", os.path.join(scratch.name, "cpu-algorithms"))
    missed = False
    for network in args.networks.split(","):
        for dtype in args.dtypes.split(","):
            runs = {"tandem": {}, "pytorch": {}}  # By command.
            for _ in range(args.rounds):
                for side, command in configurations(args, network, dtype, cores):
                    if args.only and side != args.only:
                        continue
                    started = time.time()
                    result = run(shlex.split(args.prefix) + command, env)
                    result["command"] = shlex.join(command)
                    result["wall_seconds"] = round(time.time() - started, 1)
                    print(json.dumps(result), flush=True)
                    runs[side].setdefault(result["command"], []).append(result)
            if args.only:
                continue
            line = {"network": network, "dtype": dtype, "aim": args.aim or AIMS.get((network, dtype), 1.0)}
            speeds = {}
            for side, configured in runs.items():
                speed = {command: statistics.median(one["images_per_second"] for one in results)
                         for command, results in configured.items()}
                best = max(speed, key=speed.get)
                speeds[side] = speed[best]
                line[side] = round(speed[best], 1)
                line[f"{side}_memory_mib"] = max(one["peak_memory_mib"] for one in configured[best])
                line[f"{side}_command"] = best
            ratio = speeds["tandem"] / speeds["pytorch"]
            line["ratio"] = round(ratio, 3)
            missed = missed or not ratio >= line["aim"]
            print(json.dumps(line), flush=True)
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
