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

MOST_LOGGED = 400_000  # Bytes of a step's output in the log: its beginning and its end.


class GpuMemory:
    """The most memory in use on the first GPU while this is entered, by everybody, in MiB; None without nvidia-smi."""

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
        self.thread = threading.Thread(target=self._read)
        self.thread.start()
        return self

    def _read(self):
        for line in self.process.stdout:
            if line.strip().isdigit():
                self.peak = max(self.peak or 0, int(line))

    def __exit__(self, *_):
        if self.process:
            self.process.terminate()
            self.process.wait()
            self.thread.join()


class Step:
    """What a step left: `code` is None where it ran past its limit; `text` is its output."""

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
        """`limit`: seconds for all steps; `step_limit`: for each, in place of what it is given."""
        os.makedirs(folder, exist_ok=True)
        self.folder = os.path.abspath(folder)
        self.end = time.monotonic() + limit
        self.step_limit = step_limit
        self.lock = threading.RLock()
        self.steps = []
        self.facts = {"started": time.strftime("%FT%TZ", time.gmtime()), "command": sys.argv}
        self.log = os.path.join(self.folder, "log.gz")
        open(self.log, "wb").close()
        self.write()

    def run(self, part, name, command, limit, environment=None, folder=None, judge=None):
        """Runs a command. `judge` takes its Step and returns what to add to the report; it may hold "failed": a reason."""
        limit = self.step_limit or limit
        left = self.end - time.monotonic()
        if left < 1:
            self.add(part, name, "not begun", 0, {"failed": "no time was left"})
            return Step(None, 0, "")
        started = time.monotonic()
        with tempfile.TemporaryFile("w+", errors="replace") as output:
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                           env=dict(os.environ, **(environment or {})), cwd=folder,
                                           start_new_session=True)
                try:
                    code = process.wait(min(limit, left))
                except subprocess.TimeoutExpired:
                    code = None
                finally:
                    # Also ends the processes that it left running.
                    try:
                        os.killpg(process.pid, signal.SIGKILL)
                    except OSError:
                        pass
                    process.wait()
            except OSError as error:
                code = 127
                output.write(f"{error}\n")
            seconds = time.monotonic() - started
            output.seek(0)
            text = output.read()
        step = Step(code, seconds, text)
        details, reasons = {}, []
        if code is None:
            reasons.append(f"ran past its {min(limit, left):.0f} s")
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
                 and isinstance(value, (int, float, str)) and not isinstance(value, bool) and len(str(value)) < 80]
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
