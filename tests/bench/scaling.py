#!/usr/bin/env python3
"""Measures how much faster two replicas train than one. Prints a JSON line for each network.

  bazel build -c opt //tests/bench:train_bench && tests/bench/scaling.py

Each replica has one thread and the same batch size. The replicas train on Fashion-MNIST, data loading included. With
--data= they train on random images. Several replicas then also share the cores with the generation of images. Runs of
one and of several replicas take turns, and the best run of each kind counts. The machine needs a free core for each
replica.

--ceiling also measures the speed of separate processes of one replica each, at the same time, each pinned to its core.
This is the ceiling: cores that share caches and memory slow each other down, and replicas wait for the slowest replica.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys

# The batch of each replica, and steps to time.
NETWORKS = {"lenet": (64, 200), "resnet18": (32, 10)}


def start(options, network, replicas, core=None):
    batch, steps = NETWORKS[network]
    command = [] if core is None else ["taskset", "-c", str(core)]
    command += [options.bench, f"--network={network}", f"--batch={batch * replicas}", f"--replicas={replicas}", "--threads=1",
                f"--steps={steps}", f"--warmup={max(2, steps // 10)}", f"--data={options.data}", "--lr=0.01"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(process):
    out, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{' '.join(process.args)} ended with {process.returncode}")
    return json.loads(out.strip().splitlines()[-1])["images_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(os.path.dirname(__file__), "../../bazel-bin/tests/bench/train_bench"))
    parser.add_argument("--network", action="append", choices=sorted(NETWORKS), help="default: all")
    parser.add_argument("--data", default="/usr/share/datasets/fashion-mnist", help="a folder of IDX .gz files")
    parser.add_argument("--ceiling", action="store_true", help="measure separate processes at once, too")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for network in options.network or list(NETWORKS):
        one, several, apart = [], [], []
        for _ in range(options.rounds):
            one.append(finish(start(options, network, 1)))
            several.append(finish(start(options, network, options.replicas)))
            if options.ceiling:
                processes = [start(options, network, 1, core) for core in range(options.replicas)]
                apart.append([finish(process) for process in processes])
        def speedup(rates):
            return statistics.median(rate / alone for rate, alone in zip(rates, one))
        result = {"bench": "scaling", "network": network, "batch_of_each": NETWORKS[network][0], "replicas": options.replicas,
                  "rounds": options.rounds, "images_per_second_one": statistics.median(one),
                  "images_per_second": statistics.median(several), "speedup": speedup(several),
                  "speedups": sorted(round(rate / alone, 3) for rate, alone in zip(several, one))}
        if options.ceiling:
            result["speedup_of_processes"] = speedup([sum(rates) for rates in apart])
            result["speedup_at_the_slowest"] = speedup([min(rates) * options.replicas for rates in apart])
        print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
