#!/usr/bin/python3
"""Writes two tables of a million rows, and prints the processor time of pandas.read_csv for each.

  tests/bench/pandas_tables.py FOLDER
  bazel-bin/tests/bench/table_bench FOLDER/numbers.csv FOLDER/mixed.csv
"""

import pathlib
import random
import sys
import time

import pandas

ROWS = 1_000_000


def write_numbers(path, rng):
    """Ten features and a target, all numbers without gaps."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(f"f{i}" for i in range(10)) + ",y\n")
        for _ in range(ROWS):
            row = [rng.gauss(0, 1) for _ in range(10)]
            file.write(",".join(f"{value:.6f}" for value in row) + f",{sum(row):.4f}\n")


def write_mixed(path, rng):
    """Numbers with gaps, a category, a text that is left out, and two classes."""
    jobs = ["S", "C", "Q", "Dover", "Calais"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("age,balance,job,day,rate,note,y\n")
        for i in range(ROWS):
            age = "" if rng.random() < 0.1 else rng.randrange(18, 95)
            rate = rng.gauss(0, 1)
            file.write(f"{age},{rng.gauss(1000, 500):.2f},{rng.choice(jobs)},{i % 28},{rate:.5f},text {i},"
                       f"{'yes' if rate > 1 else 'no'}\n")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: pandas_tables.py FOLDER")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    for name, write in (("numbers.csv", write_numbers), ("mixed.csv", write_mixed)):
        path = folder / name
        if not path.exists():
            write(path, rng)
        begin = time.process_time()
        table = pandas.read_csv(path)
        print(f"{path}: {len(table)} rows, {time.process_time() - begin:.2f} s")


if __name__ == "__main__":
    main()
