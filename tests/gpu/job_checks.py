"""The parts that train jobs through the daemon, and the same jobs with PyTorch."""
import concurrent.futures
import glob
import lzma
import os
import re
import shutil
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ACCURACY_CASES = ["lenet-mnist", "lenet-fashion-mnist", "lenet-fashion-mnist-mxnet", "resnet18-fashion-mnist",
                  "matlab-cifar-10"]


def unpack(path, folder):
    """The files of an archive, without its folders."""
    with tarfile.open(path) as archive:
        for member in archive:
            place = os.path.join(folder, os.path.basename(member.name))
            if member.isfile() and not os.path.exists(place):
                with archive.extractfile(member) as packed, open(place, "wb") as plain:
                    shutil.copyfileobj(packed, plain)


def programs_as_built(setting, folder, sets=None):
    """Links the bundle's programs into `folder` at the places that they have in bazel-bin, for scripts. Returns the environment.

    `sets` names the data sets to unpack; None means all. This takes seconds.
    """
    for program in ("server/daemon/tandemd", "server/worker/tandem-worker", "client/cli/tandem"):
        os.makedirs(os.path.join(folder, os.path.dirname(program)), exist_ok=True)
        os.symlink(setting.program("bin/" + os.path.basename(program)), os.path.join(folder, program))
    # A data set is a subfolder of one folder, with files as the daemon's own data sets have them.
    data = os.path.join(folder, "data")
    for path in [path for source in setting.data for path in sorted(glob.glob(source + "/*/*"))]:
        name = os.path.basename(os.path.dirname(path))
        if sets is not None and name not in sets:
            continue
        place = os.path.join(data, name, os.path.basename(path).removesuffix(".xz"))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.exists(place) or not os.path.isfile(path):
            continue
        if path.endswith(".tar.gz"):
            unpack(path, os.path.dirname(place))
        elif path.endswith(".xz"):
            with lzma.open(path) as packed, open(place, "wb") as plain:
                shutil.copyfileobj(packed, plain)
        else:
            shutil.copyfile(path, place)  # The daemon takes no links that lead out of its data folders.
    commit = "unknown"
    if os.path.exists(setting.program("COMMIT")):
        with open(setting.program("COMMIT")) as f:
            commit = f.read().strip()
    return {"TANDEM_BIN_DIR": folder, "TANDEM_DATA": data, "TANDEM_EXAMPLES": setting.examples, "TANDEM_COMMIT": commit}


def cases(setting, report, part, folder):
    """The cases whose data is there."""
    for name in ACCURACY_CASES:
        if os.path.isdir(os.path.join(folder, "data", name.partition("-")[2].removesuffix("-mxnet"))):
            yield name
        else:
            report.add(part, name, "left out", 0, {"why": "its data is in none of the folders of --data"})


def examples_command(setting, *options):
    return ["bash", setting.script("tests/accuracy/examples.sh"), *options]


def accuracy(setting, report):
    """PyTorch's accuracies on the example jobs."""
    with tempfile.TemporaryDirectory() as folder:
        environment = programs_as_built(setting, folder)
        described = setting.args.described
        names = list(cases(setting, report, "accuracy", folder))
        if not described:
            described = os.path.join(folder, "described")
            report.run("accuracy", "describe", examples_command(setting, *names, "--describe", described), 120, environment)

        def train(path):
            report.run("accuracy", os.path.basename(path).removesuffix(".json"),
                       [sys.executable, setting.script("tests/accuracy/pytorch_job.py"), path, "--device=cuda",
                        "--data-folder=" + environment["TANDEM_DATA"]], 300, setting.peer,
                       judge=lambda step: step.json_lines()[-1])

        with concurrent.futures.ThreadPoolExecutor(len(ACCURACY_CASES)) as pool:
            list(pool.map(train, [path for name in names
                                  for path in sorted(glob.glob(os.path.join(described, name + "-[0-9]*.json")))]))


def job(setting, report):
    """lenet-mnist through the daemon, the sandbox and a worker; if it fails, once more without the sandbox."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**programs_as_built(setting, folder, ["mnist"]), **setting.plans}
        if not os.path.isdir(os.path.join(folder, "data", "mnist")):
            report.add("job", "lenet-mnist", "left out", 0, {"why": "no folder of --data has mnist"})
            return
        command = ["bash", os.path.join(HERE, "one_job.sh"), "--epochs", str(setting.epochs)]
        for change in setting.changes:
            command += ["--set", change]
        for name, options in (("lenet-mnist", []), ("lenet-mnist without sandbox", ["--sandbox", "off"])):
            step = report.run("job", name, command + options, setting.limit or 120, environment,
                              judge=lambda step: step.json_lines()[-1])
            if step.code == 0:
                break


def judge_workers(step):
    judged = step.json_lines()[-1]
    if any(judged["exit_codes"]):
        return {**judged, "failed": f"the workers ended with exit codes {judged['exit_codes']}"}
    if judged["nccl_ranks"] != 2:
        return {**judged, "failed": f"{judged['nccl_ranks']} of 2 workers joined NCCL"}
    return judged


def workers(setting, report):
    """Two workers of one job that reduce by NCCL on one GPU."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**programs_as_built(setting, folder, []), **setting.plans}
        report.run("workers", "lenet float32", ["bash", os.path.join(HERE, "two_workers.sh")], setting.limit or 120,
                   environment, judge=judge_workers)


def jobs(setting, report):
    """The example jobs through the daemon, on the GPU, beside PyTorch's kept accuracies."""
    with tempfile.TemporaryDirectory() as folder:
        environment = programs_as_built(setting, folder)

        def train(name):
            record = os.path.join(folder, name + ".tsv")

            def judge(step):
                with open(record) as f:
                    figures = [line.strip().split("\t") for line in f if line.strip()]
                values = {f"seed {seed}": float(value) for _, _, seed, value, *_ in figures}
                seconds = [float(number) for number in re.findall(r"([0-9.e-]+) s for the last epoch", step.text)]
                return {**values, "mean": round(sum(values.values()) / len(values), 4), "figures": figures,
                        "epoch_seconds": min(seconds, default=None)}

            report.run("jobs", name, examples_command(setting, name, "--only", "tandem", "--record", record,
                                                      "--gpu"), setting.limit or 400, environment, judge=judge)

        for name in cases(setting, report, "jobs", folder):
            train(name)


def starts(setting, report):
    """From a job's submission to its first step: cold, and warm."""
    with tempfile.TemporaryDirectory() as folder:
        environment = programs_as_built(setting, folder, [])
        report.run("starts", "resnet18 bfloat16", ["bash", os.path.join(HERE, "starts.sh"), "--starts",
                                                  str(setting.starts)], setting.limit or 240, environment,
                   judge=lambda step: {f"start {line['start']}": line["seconds_to_first_step"]
                                       for line in step.json_lines()})


def many_jobs(setting, report):
    """Many jobs in a row, some cancelled and some workers killed: nothing may be left behind."""
    with tempfile.TemporaryDirectory() as folder:
        environment = programs_as_built(setting, folder, [])
        count = setting.args.jobs
        report.run("many-jobs", f"{count} jobs", ["bash", os.path.join(HERE, "many_jobs.sh"), "--jobs", str(count)],
                   120 + 5 * count, environment, judge=lambda step: step.json_lines()[-1])
