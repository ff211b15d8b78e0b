"""Runs the examples of the documents against a daemon: run_pages.py REPOSITORY SCRATCH

Checks each YAML block that is a job, a part of a job, or a sweep, with `tandem validate` or `tandem sweep --check`. Runs each
shell block of the pages in PAGES, in their order. SCRATCH becomes the folder of the reader. `tandem` and `tandem-worker` are
in PATH.
"""
import array
import os
import re
import struct
import subprocess
import sys
import time
import zlib

PAGES = ("client/README.md", "proto/README.md", "server/README.md", "client/MIGRATION.md")
# Lines that a test cannot run, by their beginning, with the reason.
NOT_RUN = {
    "tandem dashboard": "tests/integration/dashboard.sh runs it",
    "tandem datasets fetch": "needs the Internet",
    "tandem --address gpu-box": "needs another machine; tests/integration/network_namespace.sh has one",
    "tandem shutdown": "the daemon serves the other examples",
    "tandem submit pictures.yaml": "needs torchvision's weights; tests/integration:model_use_test uploads weights",
    "tandem devices exclude gpu": "needs a GPU", "tandem devices show gpu": "needs a GPU",
    "tandemd": "runs until it is stopped; tests/integration/signals_of_life.sh runs it",
    "curl": "tests/integration/signals_of_life.sh runs it",
    "useradd": "changes the system", "install": "changes the system", "cp deploy/systemd": "changes the system",
    "cp -a /": "changes the system", "chown": "changes the system", "apt": "changes the system",
    "deploy/package": "tests/integration/package.sh runs it", "sudo": "changes the system", "systemctl": "needs systemd",
}
# Files of a reader that no test has.
OTHERS = re.compile(r"weights\.safetensors")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
# A whole job. A part of a job in a document takes the place of its keys.
WHOLE = {
    "name": "name: example\n",
    "dataset": "dataset: {name: fashion-mnist}\n",
    "model": "model: {template: {lenet: {}}}\n",
    "training": "training:\n  loss: softmax_cross_entropy\n  optimizer: {sgd: {learning_rate: 0.1}}\n  global_batch_size: 100\n  epochs: 1\n",
}
LONG = """name: long
dataset: {synthetic: {shape: [16], classes: 4, train_samples: 2048}}
model: {template: {mlp: {}}}
training:
  loss: softmax_cross_entropy
  optimizer: {sgd: {learning_rate: 0.01}}
  global_batch_size: 64
  steps: 100000000
"""

failures, ran, checked, left_out = [], 0, 0, set()


def call(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=600, **options)


def by_keys(text):
    """The lines of each top-level key."""
    keys, key = {}, None
    for line in text.splitlines(keepends=True):
        if match := re.match(r"(\w+):", line):
            key = match.group(1)
            keys[key] = ""
        if key:
            keys[key] += line
    return keys


def whole_job(text):
    """The part of a job with the keys that it lacks; within `training`, too."""
    part = by_keys(text)
    for key, value in WHOLE.items():
        if key not in part:
            part[key] = value
        elif key == "training":
            given = set(re.findall(r"^  (\w+):", part[key], re.M))
            part[key] += "".join(f"  {line.strip()}\n" for line in value.splitlines()[1:] if line.split(":")[0].strip() not in given)
    return "".join(part.values())


def check_yaml(place, text):
    global checked
    if OTHERS.search(text):
        return
    if text.startswith("base:"):
        command, text = ["tandem", "sweep", "--check"], text
    else:
        command, text = ["tandem", "validate"], whole_job(text)
    with open("example.yaml", "w") as file:
        file.write(text)
    result = call(command + ["example.yaml"])
    checked += 1
    # The daemon of this test has no cluster. So this must be the only fault of a job for a cluster.
    faults = (result.stdout + result.stderr).strip().splitlines()
    if len(faults) == 1 and text.startswith("cluster:") and "this daemon has no cluster" in faults[0]:
        return
    # Such a processor can check the rest of the example.
    if len(faults) == 1 and "this processor lacks the instructions for it (AVX512_BF16)" in faults[0]:
        print(f"SKIPPED: bfloat16 in {place}: this processor lacks AVX512_BF16", flush=True)
        return check_yaml(place, text.replace("bfloat16", "float32"))
    if result.returncode != 0:
        failures.append(f"{place}: not valid:\n{result.stdout}{result.stderr}{text}")


def make_data():
    """The data of client/README.md: flowers/, x.npy, y.npy, rows.npy, prices.npy, tokens.npy and sales.csv."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    for split, count in (("train", 20), ("validation", 5)):
        for brightness, name in ((40, "rose"), (160, "tulip")):
            os.makedirs(f"flowers/{split}/{name}")
            for i in range(count):
                rows = b"".join(b"\0" + bytes((brightness + 7 * x * y + i) % 256 for x in range(16)) for y in range(16))
                with open(f"flowers/{split}/{name}/{i}.png", "wb") as file:
                    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 16, 8, 0, 0, 0, 0)) +
                               chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))

    def save(path, kind, shape, values):
        header = str({"descr": kind, "fortran_order": False, "shape": shape}).encode()
        header += b" " * ((-len(header) - 11) % 64) + b"\n"
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + values.tobytes())

    save("x.npy", "<f4", (100, 8), array.array("f", [i % 7 for i in range(800)]))
    save("y.npy", "<i8", (100,), array.array("q", [i % 3 for i in range(100)]))
    save("rows.npy", "<f4", (100, 796), array.array("f", [i % 7 for i in range(79600)]))
    save("prices.npy", "<f4", (100,), array.array("f", range(100)))
    save("tokens.npy", "<i8", (1, 64), array.array("q", range(64)))
    with open("sales.csv", "w") as file:
        file.write("shop,size,sales\n" + "".join(f"shop {i % 300},{i % 7},{i % 300 + 10 * (i % 7)}\n" for i in range(900)))


def state_of(job):
    return re.search(r"^state +(\w+)", call(["tandem", "describe", job]).stdout, re.M).group(1)


def await_state(job, *wanted):
    end = time.monotonic() + 180
    while time.monotonic() < end:
        if state_of(job) in wanted:
            return
        time.sleep(0.05)
    failures.append(f"{job} is {state_of(job)}, not {wanted}")


def long_job():
    with open("long.yaml", "w") as file:
        file.write(LONG)
    job = call(["tandem", "submit", "long.yaml"]).stdout.split()[1]
    await_state(job, "running")
    return job


def run_shell(place, text):
    """Runs a block. A loop or a continued line runs whole; other lines run one by one."""
    global ran
    if re.match(r"(tandem \w+ )?.*^for ", text, re.M | re.S):
        pieces = [text]
    else:
        pieces = re.sub(r"\\\n *", "", text).splitlines()
    job = long_job() if re.search(r"\bJOB\b", text) else None
    for piece in pieces:
        piece = re.sub(r"\s+# .*", "", piece).strip() if "\n" not in piece else piece
        beginning = next((line for line in NOT_RUN if piece.startswith(line)), None)
        if not piece or piece.startswith("#"):
            continue
        if beginning:
            left_out.add(f"{piece[:60]}: {NOT_RUN[beginning]}")
            continue
        if job:
            piece = re.sub(r"\bJOB\b", job, piece)
        result = call(["bash", "-c", piece])
        ran += 1
        if result.returncode != 0:
            failures.append(f"{place}: exit code {result.returncode}: {piece}\n{result.stdout[-500:]}{result.stderr[-1500:]}")
        if piece.startswith("tandem init lenet"):
            shorten("job.yaml")
        if job and not piece.startswith("tandem delete"):
            await_state(job, "running", "paused", "cancelled")
    if job and "tandem delete" not in text:
        call(["tandem", "cancel", job])


def shorten(path):
    """A tutorial's job in a second."""
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(text.replace("{name: fashion-mnist}", "{name: fashion-mnist, train_limit: 2000, validation_limit: 500}"))


def with_own_ids(text):
    """A page's example names the job of the page's author. The reader has another one."""
    lenet = re.search(r"^(lenet\S+)", call(["tandem", "list", "--all", "--order", "create_time"]).stdout, re.M)
    return re.sub(r"lenet-fashion-mnist-\w{6}\b", lenet.group(1), text) if lenet else text


def run_page(repository, page):
    with open(os.path.join(repository, page)) as file:
        text = file.read()
    files = {name.group(1): body for kind, body in FENCE.findall(text) if kind == "yaml" and (name := re.match(r"name: (\w+)\n", body))}
    for block in FENCE.finditer(text):
        kind, body = block.groups()
        place = f"{page}:{text.count(chr(10), 0, block.start()) + 1}"
        if kind == "yaml" and not body.startswith("listen:"):
            check_yaml(place, with_own_ids(body))
        elif kind == "sh" and page in PAGES:
            for name, content in files.items():
                if f"{name}.yaml" in body:
                    with open(f"{name}.yaml", "w") as file:
                        file.write(with_own_ids(content))
            run_shell(place, body)
    for span in re.findall(r"`(replicas: [^`]*)`", text):
        if "gpu" not in span:
            check_yaml(f"{page}: {span}", span + "\n")


def main():
    repository, scratch = sys.argv[1:]
    os.makedirs(scratch)
    os.chdir(scratch)
    os.symlink(os.path.join(repository, "deploy"), "deploy")
    make_data()
    pages = subprocess.run(["git", "ls-files", "*.md"], cwd=repository, capture_output=True, text=True, check=True).stdout.split()
    for page in [page for page in pages if page not in PAGES] + list(PAGES):
        run_page(repository, page)
    for failure in failures:
        print(failure)
    for line in sorted(left_out):
        print("not run:", line)
    print(f"{checked} YAML examples are valid, {ran} commands ran, {len(failures)} failures")
    sys.exit(1 if failures or checked < 20 or ran < 50 else 0)


main()
