"""Runs steps, each with a time limit of its own, and keeps report.json, summary.txt and log.gz up to date."""
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

MOST_CLEANUP_SECONDS = 3  # Of a step that ran past its limit.
MOST_LOGGED = 400_000  # Bytes of a step's output in the log: its beginning and its end.


def ends(process, seconds):
    """Whether the process ends in this time. A process in a call of a hung driver does not, even if it is killed."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


class GpuMemory:
    """Within `with`, measures the peak memory of all processes on the first GPU. `peak` is in MiB, None without nvidia-smi."""

    def __enter__(self):
        self.peak = None
        self.before = None
        try:
            self.process = subprocess.Popen(
                ["nvidia-smi", "-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "250"],
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
            return self
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()
        return self

    def _read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.peak = max(self.peak or 0, int(line))

    def __exit__(self, *_):
        if self.process:
            self.process.kill()
            ends(self.process, 2)
            self.thread.join(2)


class Step:
    """The result of a step. `code` is its exit code, None if it exceeded its limit. `text` is its output."""

    def __init__(self, code, seconds, text):
        self.code, self.seconds, self.text = code, seconds, text

    def json_lines(self):
        found = []
        for line in self.text.splitlines():
            if line.startswith("{"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found


class Report:
    def __init__(self, folder, limit, step_limit=None):
        """`limit` is the seconds for all steps. `step_limit`, if given, replaces the limit of each step."""
        os.makedirs(folder, exist_ok=True)
        self.folder = os.path.abspath(folder)
        self.end = time.monotonic() + limit
        self.step_limit = step_limit
        self.stopped = False
        self.lock = threading.RLock()
        self.steps = []
        self.facts = {"started": time.strftime("%FT%TZ", time.gmtime()), "command": sys.argv}
        self.log = os.path.join(self.folder, "log.gz")
        open(self.log, "wb").close()
        self.write()

    def stop(self):
        """Ends the running step soon, and begins no other. For signal handlers."""
        self.stopped = True

    def await_end(self, process, limit):
        """Returns the exit code of a step's process, or None if the step must end before."""
        end = min(time.monotonic() + limit, self.end)
        while not ends(process, max(0, min(end - time.monotonic(), 0.2))):
            if self.stopped or time.monotonic() >= end:
                return None
        return process.returncode

    def run(self, part, name, command, limit, environment=None, folder=None, judge=None):
        """Runs a command as a step. `judge(step)` returns a dict for the report, with a reason in "failed" if the step failed."""
        limit = self.step_limit or limit
        left = self.end - time.monotonic()
        if left < 1 or self.stopped:
            self.add(part, name, "not begun", 0,
                     {"failed": "the run was ended" if self.stopped else "no time was left"})
            return Step(None, 0, "")
        started = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                           env=dict(os.environ, **(environment or {})), cwd=folder,
                                           start_new_session=True)
                try:
                    code = self.await_end(process, limit)
                    if code is None:
                        # A script's trap ends the processes of other sessions, such as a daemon's workers.
                        os.killpg(process.pid, signal.SIGTERM)
                        ends(process, MOST_CLEANUP_SECONDS)
                finally:
                    # Also ends the processes that it left running.
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except OSError:
                        pass
                    ends(process, MOST_CLEANUP_SECONDS)
            except OSError as error:
                code = 127
                output.write(f"{error}\n")
            seconds = time.monotonic() - started
            output.seek(0)
            text = output.read()
        step = Step(code, seconds, text)
        details, reasons = {}, []
        if code is None:
            reasons.append("the run was ended" if self.stopped else f"ran past its {min(limit, left):.0f} s")
        elif code:
            reasons.append(f"exit code {code}")
        if judge:
            try:
                details = judge(step) or {}
                reasons += [details.pop("failed")] if "failed" in details else []
            except Exception as error:  # Unexpected output is a failure of this step alone.
                if not reasons:
                    reasons.append(f"cannot read its output: {type(error).__name__}: {error}")
        if reasons:
            details["failed"] = "; ".join(reasons)
        if "failed" in details:
            details["last_words"] = text[-1500:]
        with self.lock:
            if len(text) > MOST_LOGGED:
                text = f"{text[:MOST_LOGGED // 4]}\n[...]\n{text[-MOST_LOGGED * 3 // 4:]}"
            # Each step is a gzip member of its own, so that a kill loses no earlier step.
            with open(self.log, "ab") as log:
                log.write(gzip.compress(
                    f"\n===== {part}: {name} ({seconds:.1f} s, exit code {code})\n{' '.join(map(str, command))}\n{text}"
                    .encode(errors="replace")))
            self.add(part, name, "failed" if "failed" in details else "ok", seconds, details)
        return step

    def add(self, part, name, result, seconds, details):
        with self.lock:
            self.steps.append({"part": part, "step": name, "result": result, "seconds": round(seconds, 1), **details})
            print(self.line(self.steps[-1]), flush=True)
            self.write()

    @staticmethod
    def line(step):
        shown = [f"{key} {value}" for key, value in step.items()
                 if key not in ("part", "step", "result", "seconds", "last_words", "failed", "running", "running_text")
                 and isinstance(value, (int, float, str)) and not isinstance(value, bool)
                 and (key == "why" or len(str(value)) < 80)]
        failed = [f"FAILED: {step['failed']}"] if "failed" in step else []
        names = step.get("failing", [])
        failed += names[:20] + ([f"and {len(names) - 20} more"] if len(names) > 20 else [])
        return f"{step['part']:<14}{step['step']:<44}{step['result']:<10}{step['seconds']:>7.1f} s  " + \
            ", ".join(failed + shown)

    def table(self):
        bad = sum(step["result"] in ("failed", "not begun") for step in self.steps)
        good = sum(step["result"] == "ok" for step in self.steps)
        return "\n".join([self.line(step) for step in self.steps] +
                         [f"{good} steps were right, {bad} not, {len(self.steps) - good - bad} left out"])

    def write(self):
        with self.lock:
            for name, text in (("report.json", json.dumps({**self.facts, "steps": self.steps}, indent=1)),
                               ("summary.txt", self.table())):
                path = os.path.join(self.folder, name)
                with open(path + ".part", "w") as f:
                    f.write(text + "\n")
                os.replace(path + ".part", path)
