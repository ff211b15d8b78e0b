#!/usr/bin/env python3
"""How much faster two replicas of one thread train than one, at the same batch of each: one JSON line a network.

  bazel build -c opt //tests/bench:train_bench && tests/bench/scaling.py

Runs of one and of several replicas take turns, and the best of each counts. Wants as many free cores as replicas.
"""

import argparse
import json
import os
import subprocess
import sys

# The batch of each replica, and steps to time.
NETWORKS = {"lenet": (64, 200), "resnet18": (32, 10)}


def run(bench, network, batch, steps, replicas):
    command = [bench, f"--network={network}", f"--batch={batch * replicas}", f"--replicas={replicas}",
               "--threads=1", f"--steps={steps}", f"--warmup={max(2, steps // 10)}"]
    out = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])["images_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=os.path.join(os.path.dirname(__file__), "../../bazel-bin/tests/bench/train_bench"))
    parser.add_argument("--network", action="append", choices=sorted(NETWORKS), help="default: all")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for network in options.network or list(NETWORKS):
        batch, steps = NETWORKS[network]
        one, several = [], []
        for _ in range(options.rounds):
            one.append(run(options.bench, network, batch, steps, 1))
            several.append(run(options.bench, network, batch, steps, options.replicas))
        print(json.dumps({"bench": "scaling", "network": network, "batch_of_each": batch, "replicas": options.replicas,
                          "images_per_second_one": max(one), "images_per_second": max(several),
                          "speedup": max(several) / max(one)}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
