#!/usr/bin/python3
"""Runs the attacks of hostile_clients.sh, one after the other, against a running daemon. Then ends the daemon.

Prints a line of figures for each attack. Fails if a bound is exceeded. --measure also checks the waiting times of other
users, and needs an idle machine."""

import argparse
import collections
import datetime
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

from grpc_wire import Connection, decode_raw, encode, frame, methods, own_address, reset_flood
from messages import (LARGE, MEBIBYTE, SMALL, bomb, dataset_request, job_request, named, npy_header, request_of, sweep_request,
                      upload_text)

HERE = pathlib.Path(__file__).resolve().parent
# tandemd --max-queued-jobs.
MOST_QUEUED = 3000


class Failure(Exception):
    pass


class Skip(Exception):
    """An attack cannot be made on this machine."""


def expect(holds, text):
    if not holds:
        raise Failure(text)


class Daemon:
    def __init__(self, options):
        self.pid, self.address, self.options = options.daemon, options.address, options
        self.token = (pathlib.Path(options.state) / "token").read_text().strip()
        self.spec = pathlib.Path(tempfile.mkdtemp(dir=pathlib.Path(options.state).parent)) / "spec"
        self.spec.write_text(SMALL)

    def cli(self, *arguments):
        done = subprocess.run([self.options.tandem, "--address", self.address, "--token-file",
                               f"{self.options.state}/token", *arguments], capture_output=True, text=True, check=False)
        expect(done.returncode == 0, f"tandem {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def make_token(self, user, role):
        return json.loads(self.cli("tokens", "create", user, "--role", role, "-o", "json"))["secret"]

    def memory(self, key="VmRSS"):
        try:
            for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
                if line.startswith(key + ":"):
                    return int(line.split()[1]) / 1024
        except OSError:
            pass
        raise Failure("the daemon has ended")

    def threads(self):
        return len(list(pathlib.Path(f"/proc/{self.pid}/task").iterdir()))

    def forget_peak(self):
        pathlib.Path(f"/proc/{self.pid}/clear_refs").write_text("5")

    def log_size(self):
        return pathlib.Path(self.options.log).stat().st_size


class Others:
    """Another user's calls meanwhile, in a process of their own."""

    def __init__(self, daemon, token):
        self.daemon, self.result = daemon, daemon.spec.parent / "others"
        command = ["/usr/bin/python3", str(HERE / "others.py"), daemon.address, token, str(daemon.spec), str(self.result)]
        if daemon.options.others_cpu:
            command = ["taskset", "-c", daemon.options.others_cpu, *command]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.process.wait(600)
        found = json.loads(self.result.read_text())
        took = sorted(found["milliseconds"]) or [0]
        return {"calls": len(took), "p99": took[int(len(took) * 0.99)], "slowest": took[-1], "failed": found["failed"]}


def answer_of(line, method, request=b"", seconds=60):
    """The answer of a call that must succeed."""
    status, answer = line.call(method, request, seconds)
    expect(status == "OK", f"{method}: {status} {list(line.text.values())}")
    return answer


def name_in(answer):
    """The name of the object in an answer: its first text."""
    return decode_raw(answer).split('"')[1]


def create(daemon):
    """A trained job; 200 jobs, 3 sweeps of 800, and 20 data sets; no device is free for the jobs. The sweeps' names."""
    admin = Connection(daemon.address, daemon.token)
    job = job_request(SMALL)
    daemon.trained = name_in(answer_of(admin, "JobService/CreateJob", job))
    daemon.cli("watch", daemon.trained)
    daemon.cli("devices", "drain", "cpu:0", "--reason", "the test needs it")
    for _ in range(200):
        answer_of(admin, "JobService/CreateJob", job)
    names = [name_in(answer_of(admin, "SweepService/CreateSweep", sweep_request(SMALL, 800))) for _ in range(3)]
    for i in range(20):
        answer_of(admin, "DatasetService/CreateDataset", dataset_request(
            f"set-{i}", f"synthetic {{ shape: [1, 16, 16] classes: 4 train_samples: 64 seed: {i} }}"))
    admin.close()
    return names


def count(line):
    return collections.Counter(line.status.values())


def pump_until(line, holds, seconds):
    """Receives until `holds()` is true, for at most `seconds`, or until the connection is lost."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline and line.pump(0.2):
        pass


def await_ends(line, seconds):
    pump_until(line, lambda: not line.open, seconds)


# Each attack takes the daemon and the tokens, checks the bounds, and returns its figures as a text.


def unread_answers(daemon, tokens, sweeps):
    """200 lists and 600 sweeps, of which nothing is read; then the token is revoked."""
    line = Connection(daemon.address, tokens["eve"], window=0)
    for _ in range(200):
        line.begin("JobService/ListJobs", b"\x08\xe8\x07")
        line.pump(0.005)
    for _ in range(600):
        line.begin("SweepService/GetSweep", named(sweeps[0]))
        line.pump(0.005)
    line.pump(2)
    pump_until(line, lambda: count(line)["RESOURCE_EXHAUSTED"], 60)
    refused = count(line)["RESOURCE_EXHAUSTED"]
    expect(refused > 0, "nothing was refused")
    held = len(line.open)
    daemon.cli("tokens", "revoke", "eve")
    await_ends(line, 10)
    expect(not line.open, f"{len(line.open)} calls go on without their token")
    line.close()
    tokens["eve"] = daemon.make_token("eve", "viewer")
    return f"{refused} of 800 calls refused, {held} answers unread until the token was revoked"


def gone_client(daemon, tokens, _):
    """300 calls of a client that is gone: the work for them is dropped"""
    request = job_request(LARGE, "validate_only: true")
    # A user whose rate of calls no other attack has used up.
    line = Connection(daemon.address, tokens["trudy"])
    for _ in range(300):
        line.begin_slowly("JobService/CreateJob", request)
    refused = count(line)["RESOURCE_EXHAUSTED"]
    line.close()
    return f"300 calls, of which {refused} were refused"


def stop_seconds(log, begin):
    """The time of a stop by the daemon's own log: from the line with all of these words to the last word."""
    def time_of(what, holds):
        line = next((line for line in log.splitlines() if holds(line)), None)
        expect(line, f"the daemon's log has no line of {what}")
        return datetime.datetime.fromisoformat(line.split("Z ")[0])

    first = time_of(" ".join(begin), lambda line: all(word in line for word in begin))
    return (time_of("its end", lambda line: line.endswith(" info stopped") or " stopping took longer" in line) - first).total_seconds()


def end(daemon, tokens):
    """Ends the daemon, under 300 calls of a client that is gone: by SIGTERM, or by 64 calls of Shutdown. A busy machine
    delays the signal, the calls and the end of the process: so only --measure bounds the whole time."""
    figures = gone_client(daemon, tokens, None)
    logged, begin = daemon.log_size(), time.monotonic()
    if daemon.options.end == "sigterm":
        subprocess.run(["kill", "-TERM", str(daemon.pid)], check=True)
    else:
        line = Connection(daemon.address, daemon.token, window=0)
        for _ in range(64):
            line.begin("DaemonService/Shutdown")
    while running(daemon.pid) and time.monotonic() < begin + 90:
        time.sleep(0.02)
    took = time.monotonic() - begin
    expect(not running(daemon.pid), f"the daemon has not ended in {took:.0f} s")
    log = pathlib.Path(daemon.options.log).read_bytes()[logged:].decode(errors="replace")
    stop = stop_seconds(log, ["stopping signal=SIGTERM"] if daemon.options.end == "sigterm" else ["method=Shutdown", "code=OK"])
    expect(stop <= 5, f"the daemon took {stop:.1f} s to stop")
    expect(took <= 5 or not daemon.options.measure, f"the daemon took {took:.1f} s to end")
    return f"{figures}; the daemon stopped in {stop:.1f} s, and ended in {took:.1f} s"


def rapid_reset(token, body, again=False):
    # Uses the address of all other users, who must not be refused. The attacks that connect again use another address.
    def attack(daemon, tokens, _):
        made, tries, refused = 0, 0, 0
        source = own_address() if again else None
        if again and not source:
            raise Skip("this machine has no address but loopback's")
        begin = time.monotonic()
        # On a busy machine it takes longer until a connection is shut.
        while (left := begin + (daemon.options.seconds if refused or daemon.options.measure else 60) - time.monotonic()) > 0:
            try:
                now, shut = reset_flood(daemon.address, source, tokens.get(token, ""), "JobService/ListJobs",
                                        frame(b"\x08\x01") if body else b"", left, 1000 if again else 1 << 30)
            except OSError:
                now, shut = 0, True
            tries += 1
            made += now
            # If a connection is refused, the client has already sent a part.
            refused += shut
            if not again or shut:
                time.sleep(0.2)
        expect(refused, "no connection was shut")
        return f"{made} calls taken back on {tries} connections, of which {refused} were shut or refused"
    attack.__name__ = "rapid_reset"
    attack.__doc__ = (f"HEADERS and RST_STREAM {'with a token' if token else 'without a token'}{', with bodies' if body else ''}"
                      f"{', 1,000 on each of many connections' if again else ''}")
    return attack


def open_watches(daemon, tokens, _):
    """Streams of gRPC's own services: watchers of the health, and reflection, which has a thread for each."""
    figures = []
    for method in ("/grpc.health.v1.Health/Watch", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
        threads = daemon.threads()
        lines = [Connection(daemon.address, tokens["eve"]) for _ in range(20)]
        for line in lines:
            for _ in range(100):
                line.begin(method, end="Watch" in method)
        held, grown, deadline = 2000, 2000, time.monotonic() + 60
        # 16 of a connection, 64 of an address. The thread of a call ends after the call.
        while (held > 64 or grown >= 100) and time.monotonic() < deadline:
            for line in lines:
                line.pump(0.01)
            # After other attacks from this address a connection may be shut.
            held = sum(len(line.open) for line in lines if not line.is_lost)
            grown = daemon.threads() - threads
        expect(held <= 64, f"{held} streams of {method} are open")
        expect(grown < 100, f"{method} has {grown} threads")
        # A client that asks only once gets an answer.
        answer_of(Connection(daemon.address), "/grpc.health.v1.Health/Check")
        for line in lines:
            line.close()
        figures.append(f"{held} of 2,000 streams of {method.rsplit('/', 1)[1]} are open, with {max(grown, 0)} threads")
    return "; ".join(figures)


def dense_messages(daemon, tokens, _):
    """Requests of 2 and 16 MB that are millions of empty messages, which would be 50 times as much in memory"""
    # The tags of the spec, of the model and of a layer, each before a size.
    tags = encode("CreateJobRequest", "spec { model { layers { } } }", "job_service")

    def within(tag, content):
        size, left = b"", len(content)
        while left > 127:
            size, left = size + bytes([left & 127 | 128]), left >> 7
        return bytes([tag]) + size + bytes([left]) + content

    line = Connection(daemon.address, tokens["mallory"])
    for layers in (1_000_000, 8_000_000) * 4:
        line.begin_slowly("JobService/CreateJob", within(tags[0], within(tags[2], bytes([tags[4], 0]) * layers)))
    await_ends(line, 60)
    line.close()
    expect(set(line.status.values()) == {"RESOURCE_EXHAUSTED"}, f"{dict(count(line))}")
    return f"{dict(count(line))}"


def unknown_fields(daemon, tokens, _):
    """100 requests of 580 KB that are empty fields of no meaning, each 30 times as much in memory, and no answer is read"""
    line = Connection(daemon.address, tokens["mallory"], window=0)
    before = daemon.memory()
    # These requests have no field 15.
    request = named(daemon.trained) + b"\x7a\0" * 290_000
    # The daemon accepts such requests.
    reader = Connection(daemon.address, tokens["mallory"])
    for method, expected in (("GetJob", "OK"), ("CancelJob", "PERMISSION_DENIED")):
        status, _ = reader.call(f"JobService/{method}", request)
        expect(status == expected, f"{method}: {status} {list(reader.text.values())}")
    reader.close()
    for i in range(100):
        line.begin_slowly(("JobService/GetJob", "JobService/CancelJob")[i % 2], request)
    line.pump(1)
    grown = daemon.memory("VmHWM") - before
    counts = dict(count(line))
    expect(not line.is_lost, "the connection was shut")
    line.close()
    expect(grown < 300, f"the daemon grew by {grown:.0f} MiB")
    return f"the daemon grew by {grown:.0f} MiB, {counts}"


def many_sweeps(daemon, tokens, _):
    """Eight sweeps of 800 large jobs at once."""
    request = sweep_request(LARGE, 800, "validate_only: true")
    line = Connection(daemon.address, tokens["mallory"])
    for _ in range(8):
        line.begin_slowly("SweepService/CreateSweep", request)
    line.pump(daemon.options.seconds)
    line.close()
    return f"8 of {len(request) >> 10} KiB, {dict(count(line))} in {daemon.options.seconds:g} s"


def many_lists(daemon, tokens, sweeps):
    """60 sweeps at once, and 200 lists of sweeps."""
    line = Connection(daemon.address, tokens["eve"])
    for _ in range(60):
        line.begin("SweepService/GetSweep", named(sweeps[0]))
    await_ends(line, 60)
    for _ in range(200):
        line.begin("SweepService/ListSweeps")
    await_ends(line, 60)
    expect(not line.open, f"{len(line.open)} calls have no answer")
    line.close()
    return f"{dict(count(line))}"


def full_queue(daemon, tokens, sweeps):
    """240 submits at once, again and again, until the queue is full"""
    request = job_request(SMALL)
    lines = [Connection(daemon.address, (tokens["mallory"], daemon.token)[i % 2]) for i in range(12)]
    is_full, deadline = False, time.monotonic() + 600
    while not is_full and time.monotonic() < deadline:
        for _ in range(20):
            for line in lines:
                line.begin("JobService/CreateJob", request)
        for line in lines:
            await_ends(line, 60)
        is_full = any("queue has" in text for line in lines for text in line.text.values())
    made, refused = (sum(count(line)[status] for line in lines) for status in ("OK", "RESOURCE_EXHAUSTED"))
    for line in lines:
        line.close()
    queued, deadline = [], time.monotonic() + 60
    # The queue is shown as it was a second ago.
    while queued != [MOST_QUEUED] and time.monotonic() < deadline:
        reader = Connection(daemon.address, daemon.token)
        _, answer = reader.call("DaemonService/ListQueue", b"\x08\x01")
        reader.close()
        queued = [int(row.split()[1]) for row in decode_raw(answer).splitlines() if row.startswith("2: ")]
    expect(is_full and queued == [MOST_QUEUED], f"{made} made, {refused} refused, {queued} wait: {MOST_QUEUED} may")
    # Others have room again.
    daemon.cli("sweep", "cancel", sweeps[1])
    return f"{made} made, {refused} refused, and {queued[0]} wait, as many as may"


def refused_calls(daemon, tokens, _):
    """Calls above the user's rate, for some seconds: each was a line of the log."""
    before = daemon.log_size()
    line = Connection(daemon.address, tokens["eve"])
    begin = time.monotonic()
    # On a busy machine it takes longer until the user's 500 calls at once are used up.
    while not line.is_lost and time.monotonic() < begin + (
            min(5, daemon.options.seconds) if count(line)["RESOURCE_EXHAUSTED"] else 60):
        while len(line.open) < 800:
            line.begin("DaemonService/GetDaemon")
        line.pump(0.01, lambda: len(line.open) < 800)
    await_ends(line, 10)
    line.close()
    grown = daemon.log_size() - before
    refused = count(line)["RESOURCE_EXHAUSTED"]
    expect(refused > 0, "nothing was refused")
    expect(grown < MEBIBYTE, f"the log grew by {grown} bytes")
    return f"{refused} calls refused, {grown >> 10} KiB of log"


def nested(daemon, tokens, _):
    """A message that is nested too deeply."""
    deep = "dense { units: 1 }"
    for _ in range(60):
        deep = f"repeat {{ count: 1 layers {{ {deep} }} }}"
    message = encode("DescribeModelRequest", f"model {{ layers {{ {deep} }} }}", "model_service")
    line = Connection(daemon.address, tokens["mallory"])
    status, _ = line.call("ModelService/DescribeModel", message)
    text = line.text.get(1, "")
    expect(status == "INVALID_ARGUMENT" and text, f"{status} \"{text}\"")
    line.close()
    return f"{status}: {text}"


# The expected status of a method's first call, if it is not OK.
STATUSES = {
    # These name a device that does not exist, so that the real devices do not change.
    "DrainDevice": "NOT_FOUND", "ResumeDevice": "NOT_FOUND", "ExcludeDevice": "NOT_FOUND",
    # The jobs of the sweep wait.
    "DeleteSweep": "FAILED_PRECONDITION",
    # Called by a viewer, so that the daemon does not stop.
    "Shutdown": "PERMISSION_DENIED",
}


# The methods of gRPC's own services.
OWN_METHODS = [("/grpc.health.v1.Health", "Check"), ("/grpc.health.v1.Health", "Watch"),
               ("/grpc.reflection.v1alpha.ServerReflection", "ServerReflectionInfo")]
MOST_OF_A_METHOD = 160


def every_method(daemon, tokens, sweeps):
    """64 calls at once of each method, whose answers nobody reads."""
    admin = Connection(daemon.address, daemon.token)
    queued = [name_in(answer_of(admin, "JobService/CreateJob", job_request(SMALL))) for _ in range(2)]
    upload = answer_of(admin, "DatasetService/CreateUpload",
                       encode("CreateUploadRequest", upload_text(b"content"), "dataset_service"))
    names = {"job": daemon.trained, "queued": queued[0], "other": queued[1], "sweep": sweeps[0], "waiting": sweeps[2], "dataset": "datasets/set-1",
             "device": "devices/cpu:9", "upload": name_in(upload), "token": "tokens/of-many"}
    table = []
    # Methods that delete objects come last.
    for service, method, request, fields in sorted(methods(), key=lambda row: row[1].startswith(("Delete", "Revoke"))) + [
            (*name, "", []) for name in OWN_METHODS]:
        # The administrator calls everything except Shutdown, because a user's limits do not apply to the administrator.
        token = tokens["eve"] if method == "Shutdown" else daemon.token
        # gRPC's own methods get an empty message, which asks for this server's health, or field 7, which asks for all
        # services.
        message = request_of(request, method, fields, names) if request else b"\x3a\0" if "Reflection" in service else b""
        # Reading the answer shows that the call works.
        reader = Connection(daemon.address, token)
        status, _ = reader.call(f"{service}/{method}", message, 120, lambda line, stream: line.answer.get(stream))
        expect(status == STATUSES.get(method, "OK"), f"{method}: {status} {list(reader.text.values())}")
        reader.close()
        line = Connection(daemon.address, token, window=0)
        before = daemon.memory()
        daemon.forget_peak()
        for _ in range(64):
            line.begin_slowly(f"{service}/{method}", message)
        line.pump(0.2)
        # Repeats while the memory grows.
        last, peak = 0, daemon.memory("VmHWM")
        while peak > last + 1:
            line.pump(0.2)
            last, peak = peak, daemon.memory("VmHWM")
        line.close()
        grown = max(0, peak - before)
        table.append((service, method, grown))
        expect(grown < MOST_OF_A_METHOD, f"{method} holds {grown:.0f} MiB")
    admin.close()
    table.sort(key=lambda row: -row[2])
    if daemon.options.table:
        pathlib.Path(daemon.options.table).write_text(
            "".join(f"| {service.lstrip('/')}.{method} | {grown:.0f} MiB |\n" for service, method, grown in table))
    return f"{len(table)} methods, the most by {table[0][1]}: {table[0][2]:.0f} MiB"


def large_lists(daemon, tokens, _):
    """Data sets with many names of classes: lists are pages without them."""
    names = " ".join(f'class_names: "{"x" * 200}{i}"' for i in range(3000))
    admin = Connection(daemon.address, daemon.token)
    for i in range(4):
        answer_of(admin, "DatasetService/CreateDataset", dataset_request(
            f"wide-{i}", f"synthetic {{ shape: 4 classes: 3000 train_samples: 3000 seed: {i} }} {names}"))
    admin.close()
    line = Connection(daemon.address, tokens["eve"])
    sets, sizes, token = [], [], ""
    while not sizes or token:
        request = encode("ListDatasetsRequest", f'page_size: 7 page_token: "{token}"', "daemon_service")
        answer = answer_of(line, "DaemonService/ListDatasets", request)
        sizes.append(len(answer))
        text = decode_raw(answer)
        sets += [row.split('"')[1] for row in text.splitlines() if row.startswith('  1: "datasets/')]
        tokens_found = [row.split('"')[1] for row in text.splitlines() if row.startswith("2: ")]
        token = tokens_found[0] if tokens_found else ""
    line.close()
    expect(len(sets) >= 24 and len(set(sets)) == len(sets), f"{len(sets)} data sets on {len(sizes)} pages")
    expect(max(sizes) < 100_000, f"a page of {max(sizes)} bytes")
    return f"{len(sets)} data sets on {len(sizes)} pages of at most {max(sizes) >> 10} KiB"


def hostile_files(daemon, tokens, _):
    """Files that inflate, and numbers in descriptions: other processes read them."""
    data = pathlib.Path(daemon.options.data)
    (data / "images").write_bytes(b"\x00\x00\x08\x03" + struct.pack(">III", 8, 4, 4) + bytes(128))
    (data / "labels").write_bytes(b"\x00\x00\x08\x01" + struct.pack(">I", 8) + bytes([0, 1] * 4))
    samples = 1100
    (data / "x.npz").write_bytes(bomb(samples))
    (data / "y.npy").write_bytes(npy_header((samples,)) + bytes(samples - 1) + b"\x01")
    line = Connection(daemon.address, tokens["mallory"])
    daemon.forget_peak()
    before = daemon.memory()

    many = dataset_request("many-classes", 'idx { train_images: "images" train_labels: "labels" classes: 150000000 }')
    status, _ = line.call("DatasetService/CreateDataset", many)
    expect(status == "INVALID_ARGUMENT", f"150 million classes: {status}")
    answer_of(line, "DatasetService/CreateDataset", dataset_request(
        "bomb", 'npy { train_inputs { path: "x.npz" } train_targets { path: "y.npy" } }'), 170)
    answer = decode_raw(answer_of(line, "DaemonService/GetDataset", named("bomb"), 170))
    expect("\n14: " in answer, f"GetDataset of the bomb: {answer}")
    line.close()
    grown = daemon.memory("VmHWM") - before
    expect(grown < 64, f"the daemon grew by {grown:.0f} MiB")
    size = (data / "x.npz").stat().st_size
    return (f"150,000,000 classes in 148 bytes are refused; {samples} MiB of samples in a file of {size >> 20} MiB are counted, "
            f"while the daemon grew by {grown:.0f} MiB")


# An attack with many open calls on a connection follows long after the attacks by which the daemon watches this
# machine's address.
ATTACKS = [unread_answers, many_lists, gone_client, rapid_reset("", False), rapid_reset("", False, again=True),
           rapid_reset("eve", False), rapid_reset("eve", True), open_watches, dense_messages, unknown_fields, many_sweeps, nested,
           large_lists, hostile_files, every_method, refused_calls, full_queue]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--daemon", type=int, required=True)
    for name in ("address", "state", "data", "tandem", "log"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--seconds", type=float, default=4, help="of attacks that have no end")
    parser.add_argument("--others-cpu", default="", help="the core of the other user, for taskset")
    parser.add_argument("--measure", action="store_true", help="others' p99 is below 100 ms, the slowest call below 1 s, and the daemon ends in 5 s")
    parser.add_argument("--table", default="", help="where the most memory that each method holds is written")
    parser.add_argument("--attacks", default="", help="names of some (functions here), with commas; default: all")
    parser.add_argument("--end", choices=["sigterm", "shutdown"], default="sigterm", help="how the daemon ends; by shutdown: nothing else")
    options = parser.parse_args()
    daemon = Daemon(options)
    if options.end == "shutdown":
        # Another daemon on the state that the first has left.
        try:
            print(f"Shutdown meanwhile\n   {end(daemon, {'trudy': daemon.make_token('another', 'submitter')})}")
        except Failure as failure:
            sys.exit(f"FAILED: Shutdown: {failure}")
        return 0
    tokens = {"eve": daemon.make_token("eve", "viewer"), "mallory": daemon.make_token("mallory", "submitter"),
              "trudy": daemon.make_token("trudy", "submitter"), "bob": daemon.make_token("bob", "submitter")}
    sweeps = create(daemon)
    start = daemon.memory()
    print(f"at the start: {start:.0f} MiB")
    failures, skips = [], []
    for attack in ATTACKS:
        name = attack.__doc__.splitlines()[0]
        if options.attacks and attack.__name__ not in options.attacks.split(","):
            continue
        daemon.forget_peak()
        others = Others(daemon, tokens["bob"])
        begin = time.monotonic()
        try:
            figures = attack(daemon, tokens, sweeps)
        except Failure as failure:
            figures = f"FAILED: {failure}"
            failures.append(f"{name}: {failure}")
        except Skip as skip:
            figures = f"SKIPPED: {skip}"
            skips.append(f"{name}: {skip}")
        seconds = time.monotonic() - begin
        them = others.end()
        print(f"{name}\n   {figures}; {seconds:.1f} s, at most {daemon.memory('VmHWM'):.0f} MiB; others: {them['calls']} calls, "
              f"p99 {them['p99']:.0f} ms, slowest {them['slowest']:.0f} ms, {len(them['failed'])} failed", flush=True)
        # If the queue is full, other users' submits fail too.
        if them["failed"] and attack is not full_queue:
            failures.append(f"{name}: of others' calls failed {collections.Counter(them['failed'])}")
        if options.measure and (them["p99"] > 100 or them["slowest"] > 1000):
            failures.append(f"{name}: others wait")
    deadline = time.monotonic() + 60
    while daemon.memory() > start + 100 and time.monotonic() < deadline:
        time.sleep(1)
    print(f"afterwards: {daemon.memory():.0f} MiB")
    if daemon.memory() > start + 100:
        failures.append(f"a minute later the daemon has {daemon.memory():.0f} MiB, {start:.0f} at the start")
    try:
        print(f"SIGTERM meanwhile\n   {end(daemon, tokens)}")
    except Failure as failure:
        failures.append(f"SIGTERM: {failure}")
    for skip in skips:
        print(f"SKIPPED: {skip}")
    for failure in failures:
        print(f"FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


def running(pid):
    """Whether it runs; a process that nobody has waited for yet does not."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as ended:
        sys.exit(f"FAILED: {ended}")
