#!/usr/bin/env python3
"""The jobs, the faults and the checks of slurm_kills.sh. The script starts the cluster and calls this program."""

import argparse
import concurrent.futures
import functools
import json
import math
import os
import random
import subprocess
import sys
import threading
import time

from model_tensors import tensors

NODES = 4
# The jobs that are submitted and have not ended, at any time. Some of them wait in Slurm's queue.
JOBS_AT_ONCE = 6
REPORT_STEPS = 128
# All jobs must end within this time after the last submission and fault.
PATIENCE_SECONDS = 900

JOB = """
name: kills
max_restarts: 100
dataset:
  synthetic: {shape: [1, 12, 12], classes: 4, train_samples: 4096, validation_samples: 64}
model:
  input: {shape: [1, 12, 12]}
  layers:
  - conv2d: {filters: 8, kernel: [3, 3]}
  - activation: {function: relu}
  - dropout: {rate: 0.2}
  - dense: {units: 4}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {nesterov: {learning_rate: 0.01, momentum: 0.9}}
  global_batch_size: 16
  epochs: EPOCHS
  seed: 7
  report: {every_steps: 128}
checkpoints: {every_steps: 512}
"""
AVERAGING = ["--set", "replicas.parameter_averaging.every_iterations=7"]
SHAPES = {
    "2 nodes": ["--set", "replicas.count=2"],
    "1 node": ["--set", "replicas.count=1"],
    "2 nodes, averaging": ["--set", "replicas.count=2"] + AVERAGING,
    "4 nodes": ["--set", "replicas.count=4"],
    "4 nodes, averaging": ["--set", "replicas.count=4"] + AVERAGING,
}
started_at = time.monotonic()


def say(text):
    print(f"{time.monotonic() - started_at:7.1f} s  {text}", flush=True)


class Lab:
    """The cluster, the daemon and the commands on the login node."""

    def __init__(self, options):
        self._options = options
        self._daemon = None
        os.environ["TANDEM_ADDRESS"] = "127.0.0.1:7447"
        os.environ["TANDEM_TOKEN_FILE"] = f"{options.scratch}/state/token"

    def cluster(self, *arguments):
        subprocess.run([self._options.cluster, *arguments], check=True, stdout=subprocess.DEVNULL)

    def command(self, *arguments):
        return [self._options.cluster, "run", *arguments]

    def tandem(self, *arguments):
        """Runs `tandem` on the login node. Returns its exit code, stdout and stderr."""
        done = subprocess.run(self.command(self._options.tandem, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=180, check=False)
        return done.returncode, done.stdout, done.stderr

    def start_daemon(self):
        folder = self._options.scratch
        with open(f"{folder}/tandemd.log", "ab") as log:
            self._daemon = subprocess.Popen(
                self.command(self._options.tandemd, "--state-folder", f"{folder}/state", "--listen", "127.0.0.1:7447", "--cpu-devices", "1",
                             "--threads-per-cpu-device", "1", "--reference-devices", "0", "--shared-folder", f"{folder}/shared",
                             "--worker-listen", "10.77.0.1:7448"),
                stdout=log, stderr=log)

    def await_daemon(self):
        while not os.path.exists(f"{self._options.scratch}/state/address"):
            if self.daemon_has_ended():
                sys.exit("the daemon did not start")
            time.sleep(0.05)

    def kill_daemon(self):
        # cluster.sh runs the daemon as its only child.
        with open(f"/proc/{self._daemon.pid}/task/{self._daemon.pid}/children", encoding="utf-8") as file:
            children = file.read().split()
        for child in children:
            os.kill(int(child), 9)
        self._daemon.wait(60)

    def daemon_has_ended(self):
        return self._daemon.poll() is not None


class Faults(threading.Thread):
    """Kills and cuts at random until it is stopped, then mends everything."""

    def __init__(self, lab, options):
        super().__init__()
        self._lab = lab
        self._longest = {"cut": options.longest_cut, "kill": options.longest_kill, "pause": options.longest_pause}
        self._end = started_at + 60 * options.minutes
        self._random = random.Random(options.seed)
        self._ending = threading.Event()
        self._mends = {}  # (kind, target): time
        self.counts = {}
        self.problem = None

    def run(self):
        try:
            next_fault = time.monotonic() + 1
            next_resume = next_fault
            while not self._ending.wait(0.1):
                self._mend(time.monotonic())
                if next_resume <= time.monotonic():
                    self._resume_nodes()
                    next_resume = time.monotonic() + 10
                if next_fault <= time.monotonic() < self._end:
                    self._make_fault()
                    next_fault = time.monotonic() + self._random.uniform(0.5, self._longest["pause"])
            self._mend(float("inf"))
            time.sleep(5)
            self._resume_nodes()
        except Exception as error:  # The main thread reports the problem.
            self.problem = error

    def stop(self):
        self._ending.set()
        self.join()
        if self.problem:
            raise self.problem

    def _make_fault(self):
        nodes = [f"n{i + 1}" for i in range(NODES)]
        kind, target = self._random.choice([("kill", self._random.choice(nodes)), ("kill", "ctl"), ("kill", "tandemd"),
                                            ("cut", self._random.choice(nodes)), ("cut", self._random.choice(nodes + ["ctl"]))])
        seconds = self._random.uniform(0, self._longest[kind])
        if (kind, target) in self._mends:
            return
        say(f"{kind} {target} for {seconds:.1f} s")
        self.counts[f"{kind} {target}"] = self.counts.get(f"{kind} {target}", 0) + 1
        if target == "tandemd":
            self._lab.kill_daemon()
        else:
            self._lab.cluster(kind, target)
        self._mends[(kind, target)] = time.monotonic() + seconds

    def _resume_nodes(self):
        """Does an administrator's work. Slurm drains a node if a task does not end in time, as on a node that was cut off."""
        for node in range(1, NODES + 1):
            subprocess.run(self._lab.command("timeout", "2", "scontrol", "update", f"nodename=n{node}", "state=resume"),
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def _mend(self, now):
        for (kind, target), due in list(self._mends.items()):
            if due > now:
                continue
            del self._mends[(kind, target)]
            if target == "tandemd":
                self._lab.start_daemon()
            else:
                self._lab.cluster({"kill": "start", "cut": "join"}[kind], target)
        if ("kill", "tandemd") not in self._mends and self._lab.daemon_has_ended():
            raise RuntimeError("the daemon ended by itself")


class Job:
    """A job, from its submission to its terminal event. The follower's events are `events`."""

    def __init__(self, lab, shape, request):
        self._lab = lab
        self.shape = shape
        self._request = request
        self.name = None
        self.events = []

    def run(self, path, deadline, last_submission):
        """Returns None if it is too late to submit the job."""
        if time.monotonic() > last_submission:
            return None
        self._submit(path, deadline)
        while not (self.events and self.events[-1].get("terminal")):
            if time.monotonic() > deadline():
                raise RuntimeError(f"{self.name} ({self.shape}) has not ended: {self._lab.tandem('describe', self.name)[1]}")
            self._follow(deadline)
        change = self.events[-1]["state_change"]
        say(f"{self.name} ({self.shape}) ended in attempt {self.events[-1]['attempt']}: {change['message']}")
        return self

    def _submit(self, path, deadline):
        while True:
            code, output, errors = self._lab.tandem("submit", path, "--on", "slurm", "--request-id", self._request, "-o", "json",
                                                    *SHAPES[self.shape])
            if code == 0:
                self.name = json.loads(output)["name"].split("/")[1]
                return
            if time.monotonic() > deadline():
                raise RuntimeError(f"cannot submit {self._request}: {errors}")
            # Code 4: the daemon or Slurm is away.
            if code != 4:
                say(f"not submitted (exit code {code}): {errors.strip()}")
            time.sleep(1)

    def _follow(self, deadline):
        after = self.events[-1]["sequence"] if self.events else "0"
        follower = subprocess.Popen(self._lab.command(self._lab._options.tandem, "watch", self.name, "--after", after, "-o", "json"),
                                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        timer = threading.Timer(max(0, min(600, deadline() - time.monotonic())), lambda: os.kill(follower.pid, 9))
        timer.start()
        for line in follower.stdout:
            self.events.append(json.loads(line))
        timer.cancel()
        follower.wait()
        if not (self.events and self.events[-1].get("terminal")):
            time.sleep(0.5)

    @functools.cache
    def model(self, folder):
        """Returns the bytes of each tensor."""
        target = f"{folder}/{self.name}"
        code, _, errors = self._lab.tandem("download", self.name, "model.safetensors", "--to", target, "--force")
        if code != 0:
            raise RuntimeError(f"cannot download the model of {self.name}: {errors}")
        return tensors(f"{target}/model.safetensors")

    def reports(self):
        """The reported loss of each step, by attempt: [(attempt, step, loss)]."""
        return [(event["attempt"], int(event["progress"]["step"]), event["progress"]["training"]["loss"]) for event in self.events
                if "progress" in event]


def is_mean(right, step, parts):
    """Whether the losses of parts, by their last steps, have the mean `right` over the interval that ends with `step`."""
    begin, total = step - REPORT_STEPS, 0
    for end in sorted(end for end in parts if begin < end <= step):
        total += (end - begin) * parts[end]
        begin = end
    return right is not None and math.isclose(total / REPORT_STEPS, right, rel_tol=1e-6)


def check_job(job, lab, undisturbed, folder):
    """Returns what is wrong with an ended job."""
    wrong = []
    change = job.events[-1]["state_change"]
    if change["to"] != "JOB_STATE_SUCCEEDED":
        return [f"it ended as {change['to']}: {change['message']}"]
    stored = [json.loads(line) for line in lab.tandem("watch", job.name, "-o", "json")[1].splitlines()]
    if [int(event["sequence"]) for event in stored] != list(range(1, len(stored) + 1)):
        wrong.append("the log has not each number once and in order")
    if stored != job.events:
        wrong.append(f"the follower saw {len(job.events)} events, other than the {len(stored)} of the log")
    model, right = job.model(folder), undisturbed.model(folder)
    if not model or model != right:
        wrong.append("its tensors are not those of the undisturbed run")
    right_losses = {step: loss for _, step, loss in undisturbed.reports()}
    reached = 0
    last_attempt, last_step = 0, 0
    # An orderly stop reports the steps since the last report, and the next attempt continues there: {step: loss}.
    parts = {}
    for attempt, step, loss in job.reports():
        if attempt == last_attempt and (last_step % REPORT_STEPS or not last_step < step <= last_step + REPORT_STEPS):
            wrong.append(f"attempt {attempt} reported step {step} after step {last_step}")
        if attempt != last_attempt and step > reached + REPORT_STEPS:
            wrong.append(f"attempt {attempt} began with step {step}, but only step {reached} was reported before")
        if attempt < last_attempt:
            wrong.append(f"attempt {attempt} reported after attempt {last_attempt}")
        if step % REPORT_STEPS:
            parts[step] = loss
        elif right_losses.get(step) != loss and not is_mean(right_losses.get(step), step, {**parts, step: loss}):
            wrong.append(f"step {step} has the loss {loss}, not {right_losses.get(step)}; partial reports: {parts}")
        last_attempt, last_step, reached = attempt, step, max(reached, step)
    if reached != max(right_losses):
        wrong.append(f"the last reported step is {reached}")
    # Each worker logs its begin.
    begins = {}
    with open(f"{folder}/shared/jobs/{job.name}/worker.log", encoding="utf-8", errors="replace") as log:
        for line in log:
            if " worker begins " in line:
                attempt = line.split("attempt=")[1].split()[0]
                begins[attempt] = begins.get(attempt, 0) + 1
    wrong += [f"attempt {attempt} began {count} times" for attempt, count in begins.items() if count > 1]
    return wrong


def check_record(folder):
    """Returns what is wrong with Slurm's record of ended jobs (jobcomp/filetxt): an attempt that ran twice."""
    runs = {}
    with open(f"{folder}/slurm/jobs", encoding="utf-8") as file:
        for line in file:
            record = dict(field.split("=", 1) for field in line.split() if "=" in field)
            attempt = record["WorkDir"]
            if not attempt.startswith(f"{folder}/shared/jobs/") or not os.path.exists(f"{attempt}/started"):
                continue
            # If a node is away, Slurm notes NODE_FAIL and starts the same job again, although its script never began.
            # The time of the file is the time at which the script began. A run with the code 77 did nothing, because
            # the attempt was started before. A killed controller may note the end of a run twice, or wait to start an
            # ended job until the daemon cancels it: this record has no nodes.
            began = os.stat(f"{attempt}/started").st_mtime
            ended = time.mktime(time.strptime(record["EndTime"], "%Y-%m-%dT%H:%M:%S"))
            has_nodes = record["NodeList"] not in ("", "(null)")
            if has_nodes and ended + 1 >= began and not record["ExitCode"].startswith("77:"):
                runs.setdefault(attempt, set()).add((record["JobId"], record["StartTime"]))
    say(f"Slurm's record has {len(runs)} attempts that ran")
    return [f"{attempt} ran as {sorted(records)}" for attempt, records in runs.items() if len(records) > 1]


def remains(lab, folder):
    """Returns what is left in Slurm or on the nodes, besides Slurm's own daemons."""
    queue = subprocess.run(lab.command("squeue", "-h", "-o", "job %i %T %k"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    left = queue.stdout.splitlines() if queue.returncode == 0 else [f"squeue ended with code {queue.returncode}: {queue.stdout}"]
    with open(f"{folder}/slurm/prefix", encoding="utf-8") as file:
        prefix = file.read().strip()
    for node in range(1, NODES + 1):
        pids = subprocess.run(["ip", "netns", "pids", f"{prefix}-n{node}"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
        for pid in pids:
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    command = file.read().replace("\0", " ").strip()
            except OSError:
                continue
            if command and not command.startswith("slurmd "):
                left.append(f"process {pid} on n{node}: {command[:200]}")
    return left


def main():
    parser = argparse.ArgumentParser()
    for name in ("tandemd", "tandem", "scratch", "cluster"):
        parser.add_argument("--" + name, required=True)
    for name in ("jobs", "epochs", "seed", "longest-cut", "longest-kill", "longest-pause"):
        parser.add_argument("--" + name, type=int, required=True)
    parser.add_argument("--minutes", type=float, required=True, help="no job is submitted, and nothing is killed or cut, after so many minutes")
    options = parser.parse_args()
    lab = Lab(options)
    path = f"{options.scratch}/job.yaml"
    with open(path, "w", encoding="utf-8") as file:
        file.write(JOB.replace("EPOCHS", str(options.epochs)))
    lab.start_daemon()
    lab.await_daemon()
    say(f"{options.jobs} jobs, seed {options.seed}")

    shapes = list(SHAPES)[:options.jobs]
    with concurrent.futures.ThreadPoolExecutor(JOBS_AT_ONCE) as pool:
        end = time.monotonic() + 300
        calm = list(pool.map(lambda shape: Job(lab, shape, f"undisturbed {shape}").run(path, lambda: end, end), shapes))
        undisturbed = {job.shape: job for job in calm}
        faults = Faults(lab, options)
        faults.start()
        jobs, wrong = [], []
        last_submission = started_at + 60 * options.minutes
        latest = last_submission + PATIENCE_SECONDS
        runs = [pool.submit(Job(lab, shapes[i % len(shapes)], f"disturbed {i}").run, path, lambda: latest, last_submission) for i in range(options.jobs)]
        for run in runs:
            try:
                if job := run.result():
                    jobs.append(job)
            except Exception as error:
                wrong.append(str(error))
        faults.stop()

    end = time.monotonic() + 120
    while (left := remains(lab, options.scratch)) and time.monotonic() < end:
        time.sleep(0.5)
    wrong += [f"left: {text}" for text in left]
    for job in jobs:
        wrong += [f"{job.name} ({job.shape}): {problem}" for problem in check_job(job, lab, undisturbed[job.shape], options.scratch)]
    wrong += check_record(options.scratch)
    attempts = sum(job.events[-1]["attempt"] for job in jobs)
    say(f"{len(jobs)} of {options.jobs} jobs ended, {attempts} attempts, {sum(len(job.events) for job in jobs)} events; faults: "
        f"{', '.join(f'{count} x {fault}' for fault, count in sorted(faults.counts.items()))}")
    for problem in wrong:
        print("WRONG:", problem)
    return 1 if wrong or not jobs else 0


sys.exit(main())
