#!/usr/bin/env python3
"""The rounds of watcher_restarts.sh, which makes the namespaces and the certificate and calls this.

There are two daemons, one with TLS and one without. Each has followers of three kinds on its own host and on another one:
`tandem watch JOB`, `tandem watch` and `tandem logs JOB --follow`. A round stops both daemons, starts them again, and makes one
event and one line of the log. A follower's delay is the time from the moment in which its daemon is ready until it prints these.
The delay is at most LIMIT_SECONDS, unless the event itself is late.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

LIMIT_SECONDS = 2.0
# A busy machine may delay the calls that make the event. Then a follower is back in time if it prints the event this soon.
LIMIT_AFTER_EVENT_SECONDS = 1.0
# The longest wait for a late follower, to report its delay.
PATIENCE_SECONDS = 60.0

JOB = """
name: followed
dataset:
  synthetic: {shape: [1, 8, 8], classes: 4, train_samples: 256, validation_samples: 64}
model:
  input: {shape: [1, 8, 8]}
  layers:
  - dense: {units: 4}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: 32
  epochs: 2
"""


class Follower:
    """A command that prints a line for each thing it sees."""

    def __init__(self, name, command):
        self.name = name
        self.delays = []
        self._lines = []  # (time, text)
        self._changed = threading.Condition()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._notes = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        threading.Thread(target=self._read_notes, daemon=True).start()

    def _read(self):
        for line in self._process.stdout:
            with self._changed:
                self._lines.append((time.monotonic(), line.rstrip("\n")))
                self._changed.notify_all()

    def _read_notes(self):
        for line in self._process.stderr:
            self._notes.append(line.rstrip("\n"))

    def time_of(self, count, deadline):
        """Returns the time at which line `count`, from 1, was printed. None if it was not printed by the deadline."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._lines) >= count, max(0, deadline - time.monotonic()))
            return self._lines[count - 1][0] if len(self._lines) >= count else None

    def lines(self):
        with self._changed:
            return [text for _, text in self._lines]

    def ended(self):
        return self._process.poll()

    def said(self):
        return "\n".join(self._notes[-5:])

    def stop(self):
        """The exit code, after Ctrl-C."""
        self._process.send_signal(signal.SIGINT)
        return self.end()

    def end(self):
        """The exit code. Afterwards all lines are read."""
        code = self._process.wait(PATIENCE_SECONDS)
        self._reader.join()
        return code


class Daemon:
    """A daemon in the server's namespace, and those who follow it."""

    def __init__(self, name, options, port, tls):
        self.name = name
        self._options = options
        self._state = f"{options.scratch}/{name}"
        self._command = ["ip", "netns", "exec", options.server_namespace, options.tandemd, "--state-folder", self._state,
                         "--cpu-devices", "1", "--reference-devices", "0", "--listen", f"0.0.0.0:{port}"]
        self._client = ["--token-file", f"{self._state}/token"]
        if tls:
            self._command += ["--tls-cert", f"{options.scratch}/server.pem", "--tls-key", f"{options.scratch}/server.key"]
            self._client += ["--tls-ca", f"{options.scratch}/server.pem"]
        else:
            self._command += ["--insecure-listen-beyond-loopback"]
            self._client += ["--plaintext"]
        self._port = port
        self._process = None
        self.followers = []
        self.ready_at = 0.0
        self.made_at = 0.0
        self.paused = False

    def start(self):
        address = f"{self._state}/address"
        if os.path.exists(address):
            os.remove(address)
        with open(f"{self._options.scratch}/{self.name}.log", "ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def wait_until_ready(self):
        address = f"{self._state}/address"
        end = time.monotonic() + 60
        while not (os.path.exists(address) and os.path.getsize(address)):
            if self._process.poll() is not None or time.monotonic() > end:
                sys.exit(f"the daemon {self.name} did not start: see {self._options.scratch}/{self.name}.log")
            time.sleep(0.005)
        self.ready_at = time.monotonic()

    def stop(self, how):
        self._process.send_signal(how)
        self._process.wait(60)

    def command(self, host, arguments):
        """A call of `tandem` from the daemon's own host, or from the other one."""
        namespace = self._options.server_namespace if host == "127.0.0.1" else self._options.client_namespace
        return ["ip", "netns", "exec", namespace, self._options.tandem, "--address", f"{host}:{self._port}", *self._client,
                *arguments]

    def run(self, *arguments):
        return subprocess.run(self.command("127.0.0.1", list(arguments)), check=True, stdout=subprocess.PIPE, text=True).stdout

    def submit(self):
        # No device takes the job, so that only this script changes it.
        self.run("devices", "drain", "cpu:0")
        path = f"{self._options.scratch}/job.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(JOB)
        self.job = json.loads(self.run("submit", path, "-o", "json"))["name"].split("/")[1]
        folder = f"{self._state}/jobs/{self.job}"
        os.makedirs(folder, exist_ok=True)
        self.log_path = f"{folder}/worker.log"
        self.write_log("followed from here\n")

    def write_log(self, text):
        with open(self.log_path, "a", encoding="utf-8") as file:
            file.write(text)

    def follow(self):
        for host, link in (("127.0.0.1", "loopback"), (self._options.server_address, "veth")):
            for kind, arguments in (("watch JOB", ["watch", self.job, "-o", "json"]), ("watch", ["watch", "--after", "0", "-o", "json"]),
                                    ("logs", ["logs", self.job, "--follow"])):
                self.followers.append(Follower(f"{self.name}, {link}, {kind}", self.command(host, arguments)))

    def make_event(self):
        """One change of the job's state, and one line of its log."""
        self.paused = not self.paused
        self.run("pause" if self.paused else "resume", self.job)
        self.write_log(f"line {random.random()}\n")
        self.made_at = time.monotonic()

    def check(self):
        """What is wrong with what the followers printed, now that the job has ended."""
        wrong = []
        changes = None
        for follower in self.followers:
            kind = follower.name.split(", ")[2]
            if kind == "watch":
                follower.time_of(len(changes), time.monotonic() + PATIENCE_SECONDS)
            code = follower.stop() if kind == "watch" else follower.end()
            if code != {"watch JOB": 3, "watch": 0, "logs": 0}[kind]:
                wrong.append(f"{follower.name}: exit code {code}: {follower.said()}")
            lines = follower.lines()
            if kind == "watch JOB":
                events = [json.loads(line) for line in lines]
                if [int(event["sequence"]) for event in events] != list(range(1, len(events) + 1)):
                    wrong.append(f"{follower.name}: not each event once and in order")
                changes = [event["sequence"] for event in events if "state_change" in event]
            elif kind == "watch":
                if [json.loads(line)["sequence"] for line in lines] != changes:
                    wrong.append(f"{follower.name}: not each change of state once and in order")
            else:
                with open(self.log_path, encoding="utf-8") as file:
                    if "".join(line + "\n" for line in lines) != file.read():
                        wrong.append(f"{follower.name}: not the log")
        return wrong


def round_of(daemons, how, down_seconds, count):
    """Restarts the daemons. Each follower must then have `count` lines. Returns the faults."""
    for daemon in daemons:
        daemon.stop(how)
    time.sleep(down_seconds)
    for daemon in daemons:
        daemon.start()
    for daemon in daemons:
        daemon.wait_until_ready()
    for daemon in daemons:
        daemon.make_event()
    wrong = []
    for daemon in daemons:
        for follower in daemon.followers:
            seen = follower.time_of(count, daemon.ready_at + PATIENCE_SECONDS)
            if seen is None:
                wrong.append(f"{follower.name}: saw nothing for {PATIENCE_SECONDS:.0f} s (exit code {follower.ended()}): {follower.said()}")
                continue
            follower.delays.append(seen - daemon.ready_at)
            if seen > max(daemon.ready_at + LIMIT_SECONDS, daemon.made_at + LIMIT_AFTER_EVENT_SECONDS):
                wrong.append(f"{follower.name}: back {seen - daemon.ready_at:.2f} s after the daemon, {seen - daemon.made_at:.2f} s after the event")
    return wrong


def main():
    parser = argparse.ArgumentParser()
    for name in ("tandemd", "tandem", "scratch", "server-namespace", "client-namespace", "server-address"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--restarts", type=int, required=True)
    options = parser.parse_args()
    random.seed(31)

    daemons = [Daemon("TLS", options, 7447, tls=True), Daemon("plain", options, 7448, tls=False)]
    for daemon in daemons:
        daemon.start()
    for daemon in daemons:
        daemon.wait_until_ready()
        daemon.submit()
        daemon.follow()
    wrong = []
    lines = 1
    for daemon in daemons:
        for follower in daemon.followers:
            if follower.time_of(lines, time.monotonic() + PATIENCE_SECONDS) is None:
                sys.exit(f"{follower.name} saw nothing: {follower.said()}")
    for i in range(options.restarts):
        how = (signal.SIGTERM, signal.SIGKILL)[i % 2]
        # Now and then for so long that waits between attempts have grown.
        down_seconds = 8.0 if i % 10 == 9 else random.uniform(0.0, 2.0)
        lines += 1
        late = round_of(daemons, how, down_seconds, lines)
        print(f"restart {i + 1}: {how.name}, down for {down_seconds:.1f} s: {'; '.join(late) or 'all are back'}", flush=True)
        wrong += late
        if any(follower.ended() is not None for daemon in daemons for follower in daemon.followers):
            break
    for daemon in daemons:
        daemon.run("cancel", daemon.job)
        wrong += daemon.check()
        daemon.stop(signal.SIGTERM)

    print(f"{'follower':28} {'restarts':>8} {'within 2 s':>10} {'mean s':>7} {'most s':>7}")
    for daemon in daemons:
        for follower in daemon.followers:
            delays = follower.delays or [float("nan")]
            soon = sum(delay <= LIMIT_SECONDS for delay in delays)
            print(f"{follower.name:28} {len(follower.delays):8} {soon:10} {sum(delays) / len(delays):7.2f} {max(delays):7.2f}")
    for problem in wrong:
        print("WRONG:", problem)
    return 1 if wrong else 0


sys.exit(main())
