#!/usr/bin/env python3
"""What upgrade.sh asks of files. Says what is wrong, and exits with 1, where something is.

  weights MODEL            the SHA-256 of a safetensors file's tensors, by name; its other contents do not count
  log EVENTS EPOCHS N...   a job's events, JSON a line: numbered from 1 without gaps, the last and no other the job's end; each
                           epoch once, steps that grow; all of attempts N. Prints how many there are
  training EVENTS          the losses and metrics of each epoch
  streams EVENTS OTHER     two streams of one job's events, perhaps of clients of different versions: the same events
  schema DATABASE          its version
  jobs DATABASE            how many it has
  execute DATABASE SQL     has it done, with nobody else at the database
"""

import hashlib
import json
import sqlite3
import struct
import sys

# The kinds that every version has.
KINDS = ("stateChange", "progress", "epoch", "artifact", "notice", "checkpoint", "validation")


def fail(message):
    sys.exit(message)


def events_of(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def weights(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    digest = hashlib.sha256()
    for name in sorted(header):
        if name == "__metadata__":
            continue
        tensor = header[name]
        begin, end = tensor["data_offsets"]
        digest.update(f"{name} {tensor['dtype']} {tensor['shape']}\n".encode())
        digest.update(data[begin:end])
    print(digest.hexdigest())


def log(path, epochs, *attempts):
    events = events_of(path)
    sequences = [int(event["sequence"]) for event in events]
    if sequences != list(range(1, len(events) + 1)):
        fail(f"{path}: the events' numbers are {sequences}")
    ends = [event["sequence"] for event in events if event.get("terminal")]
    if ends != [events[-1]["sequence"]]:
        fail(f"{path}: of {len(events)} events these are ends: {ends}")
    trained = [int(event["epoch"]["epoch"]) for event in events if "epoch" in event]
    if trained != list(range(1, int(epochs) + 1)):
        fail(f"{path}: the epochs' summaries are of {trained}")
    for kind in ("progress", "checkpoint"):
        steps = [int(event[kind]["step"]) for event in events if kind in event]
        if any(later <= earlier for earlier, later in zip(steps, steps[1:])):
            fail(f"{path}: {kind} of steps {steps}")
    found = sorted({event.get("attempt", 0) for event in events} - {0})
    if found != sorted(int(attempt) for attempt in attempts):
        fail(f"{path}: events of attempts {found}")
    print(len(events))


def training(path):
    for event in events_of(path):
        if "epoch" in event:
            epoch = event["epoch"]
            print(json.dumps([epoch["epoch"], epoch.get("training"), epoch.get("validation")], sort_keys=True))


def streams(path, other):
    def known(event):
        return [int(event["sequence"]), event["time"], [kind for kind in KINDS if kind in event]]

    here, there = ([known(event) for event in events_of(file)] for file in (path, other))
    if here != there:
        first = next((pair for pair in zip(here, there) if pair[0] != pair[1]), (len(here), len(there)))
        fail(f"{path} and {other} differ: {first[0]} and {first[1]}")


def query(path, statement):
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    print(database.execute(statement).fetchone()[0])


def execute(path, statements):
    sqlite3.connect(path, isolation_level=None).executescript(statements)


def main():
    asked, arguments = sys.argv[1], sys.argv[2:]
    if asked == "schema":
        query(arguments[0], "PRAGMA user_version")
    elif asked == "jobs":
        query(arguments[0], "SELECT count(*) FROM jobs")
    else:
        known = {"weights": weights, "log": log, "training": training, "streams": streams, "execute": execute}
        known[asked](*arguments)


if __name__ == "__main__":
    main()
