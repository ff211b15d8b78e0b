#!/usr/bin/python3
"""others.py ADDRESS TOKEN SPEC_FILE RESULT_FILE: another user's calls, GetDaemon, ListJobs of one job and CreateJob that
only validates, on connections of its own, until the standard input ends. Then writes how many milliseconds each took
and how many failed."""

import json
import pathlib
import select
import sys
import time

from grpc_wire import Connection, encode


def main():
    address, token, spec, result = sys.argv[1:]
    line = Connection(address, token)
    create = encode("CreateJobRequest", "spec {" + pathlib.Path(spec).read_text() + "} validate_only: true", "job_service")
    calls = [("DaemonService/GetDaemon", b""), ("JobService/ListJobs", b"\x08\x01"), ("JobService/CreateJob", create)]
    took, failed = [], []
    print("ready", flush=True)
    turns = 0
    # Three calls a turn: below the 100 a second that a user has.
    while not select.select([sys.stdin], [], [], 0.04)[0]:
        # A new connection is served, too.
        if turns % 10 == 9:
            line.close()
            line = Connection(address, token)
        turns += 1
        for method, request in calls:
            begin = time.monotonic()
            status, _ = line.call(method, request)
            # Retries as gRPC's clients do: the daemon may close a new connection together with an attacker's at the
            # same address.
            for _ in range(4):
                if not line.is_lost:
                    break
                line = Connection(address, token)
                status, _ = line.call(method, request)
            took.append((time.monotonic() - begin) * 1000)
            if status != "OK":
                failed.append(f"{method} {status}")
    pathlib.Path(result).write_text(json.dumps({"milliseconds": took, "failed": failed}))


if __name__ == "__main__":
    main()
