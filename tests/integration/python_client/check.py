"""Checks the installed client against a running daemon: check.py TANDEM SCRATCH. The address and the token are in the environment."""

import asyncio
import io
import json
import os
import pathlib
import pickle
import random
import socket
import struct
import subprocess
import sys
import tarfile
import threading
import types
import typing
import warnings
import zipfile
import zlib
from concurrent import futures

import grpc
import numpy

import tandem
import tandem.aio
from tandem.v1 import daemon_service_pb2, event_pb2, job_service_pb2

PROGRAM, SCRATCH = sys.argv[1], pathlib.Path(sys.argv[2])
CUTS = 100
SPEC = """# A job in the short form.
dataset:
  synthetic: {shape: [1, 8, 8], classes: 4, train_samples: 256, validation_samples: 64}
model:
  input: {shape: [1, 8, 8]}
  layers:
  - dense: {units: 16, activation: relu}
  - dense: {units: 4}
training:
  loss: softmax_cross_entropy
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: 32
  epochs: 3
  metrics: accuracy
  report: {every_steps: 1}
"""


class CuttingProxy:
    """Passes connections on, and cuts each after some bytes in one direction, so many times in all."""

    def __init__(self, target: str, cuts: int, least: int = 300, most: int = 900, from_client: bool = False) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host.strip("[]"), int(port))
        self._left = cuts
        self._limits = (least, most)
        self._from_client = from_client
        self.cuts = 0
        self._random = random.Random(38)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            server = socket.create_connection(self._target)
            with self._lock:
                is_cut = self._left > 0
                limit = self._random.randint(*self._limits) if is_cut else None
            threading.Thread(target=self._pass, args=(client, server, limit if self._from_client else None), daemon=True).start()
            threading.Thread(target=self._pass, args=(server, client, None if self._from_client else limit), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, limit: "int | None") -> None:
        try:
            while True:
                data = source.recv(65536 if limit is None else limit)
                if not data:
                    break
                sink.sendall(data)
                if limit is not None:
                    limit -= len(data)
                    if limit <= 0:
                        with self._lock:
                            self._left -= 1
                            self.cuts += 1
                        break
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def check_cut_connections(client: tandem.Client) -> tandem.Job:
    """Every event comes once and in order, over 100 cut connections."""
    path = SCRATCH / "job.yaml"
    path.write_text(SPEC)
    job = client.submit(path, set={"training.epochs": 80})
    proxy = CuttingProxy(os.environ["TANDEM_ADDRESS"], CUTS)
    # Client.job would ask for the whole job first. This answer may be longer than each connection lasts.
    events = tandem.Job(tandem.connect(proxy.address), job.name).events()
    sequences, epochs = [], []
    for event in events:
        sequences.append(event.sequence)
        if event.WhichOneof("kind") == "epoch":
            epochs.append(event.epoch.epoch)
    assert proxy.cuts == CUTS, f"{proxy.cuts} connections were cut, not {CUTS}"
    assert sequences == list(range(1, job.get().last_sequence + 1)), sequences
    assert epochs == list(range(1, 81)), epochs
    print(f"{len(sequences)} events over {proxy.cuts} cut connections, {events.reconnections} calls made again")

    followed = list(job.follow())
    assert [epoch.number for epoch in followed] == epochs
    assert all(0 <= epoch.validation["accuracy"] <= 1 and epoch.training["loss"] >= 0 for epoch in followed)
    assert job.state == "succeeded", job.state
    return job


def check_model(job: tandem.Job) -> None:
    """The model is the file."""
    file = (pathlib.Path(job.get().folder) / "model.safetensors").read_bytes()
    assert job.read() == file
    check_read_has_no_timeout(job, file)
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8:8 + size])
    header.pop("__metadata__")
    model = job.model()
    assert sorted(model) == sorted(header), sorted(model)
    for name, place in header.items():
        begin, end = place["data_offsets"]
        assert model[name].tobytes() == file[8 + size + begin:8 + size + end], name
        assert list(model[name].shape) == place["shape"] and model[name].dtype == numpy.float32
    # A file larger than a proxy's limit, cut on its way.
    proxy = CuttingProxy(os.environ["TANDEM_ADDRESS"], 3)
    assert tandem.connect(proxy.address).job(job.name).download(SCRATCH).read_bytes() == file
    assert proxy.cuts == 3, proxy.cuts
    # Half of one file and half of another, of the same and of another size, are no file.
    for other in (file[:-1] + b"?", file + b"?"):
        parts = [(file[:100], len(file)), (other[100:], len(other))]

        def read_artifact(request: job_service_pb2.ReadArtifactRequest, timeout: float) -> typing.Iterator[job_service_pb2.ReadArtifactResponse]:
            data, size = parts.pop(0)
            yield job_service_pb2.ReadArtifactResponse(offset=request.offset, data=data, size_bytes=size)
            if parts:
                raise LostConnection()

        cut = tandem.connect()
        cut.calls.jobs.read_artifact = read_artifact
        try:
            cut.job(job.name).read()
            raise SystemExit("a mixture of two files was taken for the model")
        except tandem.TandemError as error:
            assert error.code == "DATA_LOSS" and error.mend == "fetch it again", error


def check_downloads(client: tandem.Client) -> None:
    """A path that is named as one of the job's files gets this file, and no other file stands under such a name."""
    job = client.submit(SCRATCH / "job.yaml", set={
        "checkpoints.keep_last": 3, "training.best_model": {"metric": "loss", "mode": "PLATEAU_MODE_MAX"}})
    job.wait()
    folder = SCRATCH / "downloads"
    folder.mkdir()
    files = {name: (pathlib.Path(job.get().folder) / name).read_bytes() for name in ("best.safetensors", "job.yaml", "model.safetensors")}
    files["model-8.safetensors"], files["model-24.safetensors"] = job.read("model-8.safetensors"), job.read("model-24.safetensors")
    assert files["model.safetensors"] not in (files["model-8.safetensors"], files["best.safetensors"]), "the test needs other models"
    for name, content in files.items():
        assert job.download(folder / name) == folder / name and (folder / name).read_bytes() == content, name
        assert job.download(folder / "other", name).read_bytes() == content, name
        (folder / name).unlink()
    assert job.download(folder / "lenet.safetensors").read_bytes() == files["model.safetensors"]
    assert job.download(folder) == folder / "model.safetensors"
    assert job.download(f"{folder}/new/") == folder / "new" / "model.safetensors" and (folder / "new").is_dir()
    os.mkfifo(folder / "pipe")
    try:
        job.download(folder / "pipe")
        raise SystemExit("a download replaced a pipe")
    except tandem.InvalidRequest as error:
        assert error.mend == "name another file" and (folder / "pipe").is_fifo(), error
    (folder / "pipe").unlink()
    plain = client.submit(SCRATCH / "job.yaml")
    plain.wait()
    for path, call in (("best.safetensors", plain.download), ("model-9.safetensors", job.download)):
        try:
            call(folder / path)
            raise SystemExit(f"{path} is another file")
        except tandem.NotFound:
            assert not (folder / path).exists(), path

    async def download_async() -> None:
        async with tandem.aio.connect() as awaited:
            for name in ("model-8.safetensors", "job.yaml", "best.safetensors"):
                assert (await (await awaited.job(job.name)).download(folder / name)).read_bytes() == files[name], name

    asyncio.run(download_async())


def check_weights(client: tandem.Client, job: tandem.Job) -> None:
    """A job begins with the weights of a file of this machine."""
    path = job.download(SCRATCH / "start.safetensors")
    # With this rate, no parameter changes.
    spec = client.parse(SCRATCH / "job.yaml", {"training.epochs": 1, "training.optimizer.sgd.learning_rate": 1e-30})
    begun = client.submit(spec, weights=path)
    assert not spec.HasField("initial_weights")
    file = begun.get().spec.initial_weights.file
    assert file.startswith("uploads/") and file.endswith("/start.safetensors"), file
    # The upload is found again.
    assert client.validate(spec, weights=path).initial_weights.file == file
    begun.wait()
    wanted, model = job.model(), begun.model()
    for name, array in wanted.items():
        assert (model[name] == array).all(), name
    # The daemon fetches a URL, but from no private address.
    try:
        client.validate(spec, weights="http://127.0.0.1:9/a.safetensors")
        raise AssertionError("a private address was allowed")
    except tandem.TandemError as error:
        assert "initial_weights.file" in str(error) and "may not fetch from there" in str(error), error
    for wrong in (lambda: client.submit(spec, {"initial_weights.file": "a.safetensors"}, weights=path),
                  lambda: client.submit(spec, weights=SCRATCH / "none.safetensors")):
        try:
            wrong()
            raise SystemExit("the weights are wrong")
        except tandem.InvalidRequest as error:
            assert str(error).startswith("weights: "), error


class LostConnection(grpc.RpcError):
    """A connection broke."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "lost"

    def trailing_metadata(self) -> tuple:
        return ()


def check_predict(job: tandem.Job) -> None:
    """Predictions are those of `tandem predict`."""
    samples = numpy.random.default_rng(1).integers(0, 256, (7, 1, 8, 8), "uint8")
    numpy.save(SCRATCH / "samples.npy", samples)
    said = json.loads(subprocess.run([PROGRAM, "predict", job.name, str(SCRATCH / "samples.npy"), "--outputs", "-o", "json"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    assert len(said) == 7, said
    classes = job.classify(samples, top_k=2)
    logits = job.predict(samples)
    assert logits.shape == (7, 4) and logits.dtype == numpy.float32
    likely = numpy.exp(logits.astype("float64") - logits.max(1, keepdims=True))
    likely /= likely.sum(1, keepdims=True)
    for i, one in enumerate(said):
        assert [int(each.get("index", 0)) for each in one["classes"][:2]] == classes.labels[i].tolist(), one
        assert [each["probability"] for each in one["classes"][:2]] == classes.probabilities[i].tolist(), one
        assert numpy.array(one["outputs"], "float32").tolist() == logits[i].tolist(), one
        for each in one["classes"]:
            assert not abs(likely[i][int(each.get("index", 0))] - each["probability"]) > 1e-6, one
    # Batches of another size may add in another order.
    assert numpy.allclose(job.predict(samples[0]), logits[0], rtol=1e-5, atol=1e-6)
    tandem.job.MOST_SAMPLES = 3
    assert numpy.allclose(job.predict(samples), logits, rtol=1e-5, atol=1e-6)

    file = job.export(SCRATCH / "model.onnx")
    assert file == SCRATCH / "model.onnx" and file.stat().st_size > 4 * sum(each.size for each in job.model().values()), file
    assert not list(SCRATCH.glob("model.onnx.*"))

    # The samples of a data set.
    said = json.loads(subprocess.run([PROGRAM, "predict", job.name, "--split", "training", "-o", "json"], check=True,
                                     stdout=subprocess.PIPE).stdout)
    own = job.classify(split="training")
    assert own.true_labels is not None and own.true_labels.tolist() == [int(one["true_class"]["index"]) for one in said]
    assert own.labels[:, 0].tolist() == [int(one["classes"][0]["index"]) for one in said]
    assert job.predict(split="training").shape == (len(said), 4) and classes.true_labels is None
    accuracy = job.evaluate(split="training", metrics="accuracy").measures["accuracy"]
    assert not abs((own.labels[:, 0] == own.true_labels).mean() - accuracy) > 1e-9, accuracy
    for ask in (lambda: job.predict(), lambda: job.predict(samples, split="training"), lambda: job.predict(samples, dataset="a")):
        try:
            ask()
            raise SystemExit("predicted without a choice of samples")
        except tandem.InvalidRequest as error:
            assert "give either samples, or dataset or split" in str(error), error


def check_predict_frames(client: tandem.Client) -> None:
    """Rows of a DataFrame are matched by their columns' names, in parts too, and rows without names by position."""
    import pandas
    rows = numpy.random.default_rng(2).normal(size=(40, 2)).astype("float32")
    frame = pandas.DataFrame({"a": rows[:, 0], "b": rows[:, 1], "price": 3 * rows[:, 0] - rows[:, 1]})
    frame.to_csv(SCRATCH / "prices.csv", index=False)
    client.datasets.add("prices", SCRATCH / "prices.csv", spec={"csv": {"target_columns": ["price"]}})
    job = client.submit({"dataset": {"name": "prices"}, "model": {"input": {"shape": [2]}, "layers": [{"dense": {"units": 1}}]},
                         "training": {"loss": "mse", "optimizer": {"sgd": {"learning_rate": 0.1}}, "global_batch_size": 40,
                                      "epochs": 200}})
    job.wait()
    wanted = 3 * rows[:, :1] - rows[:, 1:]
    predictions = job.predict(frame[["b", "price", "a"]])
    assert predictions.shape == (40, 1) and not abs(predictions - wanted).max() > 1e-3, predictions
    assert numpy.allclose(job.predict(frame[["a", "b"]].iloc[0]), predictions[0], rtol=1e-5, atol=1e-6)
    kept = tandem.job.MOST_SAMPLES, tandem.job.MOST_BYTES
    for most in ((7, kept[1]), (kept[0], 200)):
        tandem.job.MOST_SAMPLES, tandem.job.MOST_BYTES = most
        assert numpy.allclose(job.predict(frame), predictions, rtol=1e-5, atol=1e-6)
        assert numpy.allclose(job.predict(pandas.DataFrame(rows)), predictions, rtol=1e-5, atol=1e-6)
    tandem.job.MOST_SAMPLES, tandem.job.MOST_BYTES = kept
    # Columns that are not numbered from 0 are not taken by position.
    named = pandas.DataFrame(rows, columns=["a", 1])
    for samples, words in ((frame[:0], "there are no samples"), (frame[["a"]], "\"b\""), (named, "the column name 1 is not a text"),
                           (pandas.DataFrame(rows)[[1, 0]], "the column name 1 is not a text"),
                           (pandas.DataFrame(rows, columns=["0", "1"]), "samples gave 4 predictions")):
        try:
            job.predict(samples)
            raise SystemExit(f"{words}: predicted")
        except tandem.InvalidRequest as error:
            assert words in str(error), error


def check_notices(client: tandem.Client) -> None:
    """A cell that is no category of the model is a warning at the caller's line, with its column."""
    import pandas
    frame = pandas.DataFrame({"zone": [10, 20] * 20, "kind": ["x", "y"] * 20, "price": range(40)})
    frame.to_csv(SCRATCH / "zones.csv", index=False)
    client.datasets.add("zones", SCRATCH / "zones.csv", spec={"csv": {"target_columns": ["price"]}})
    job = client.submit({"dataset": {"name": "zones"}, "model": {"template": {"mlp": {"units": [2]}}},
                         "training": {"loss": "mse", "optimizer": {"sgd": {"learning_rate": 1e-6}}, "global_batch_size": 40, "epochs": 1}})
    job.wait()
    kept, tandem.job.MOST_SAMPLES = tandem.job.MOST_SAMPLES, 30
    for samples, words in ((frame, []), (frame.assign(kind="Q"), [f"samples[{rows}]: The model knows no category 'Q' of column 'kind'"
                                                                   for rows in ("0:30", "30:40")])):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            job.predict(samples)
        told = [one for one in caught if one.category is UserWarning]
        assert len(told) == len(words) and all(word in str(one.message) for word, one in zip(words, told)), told
        assert all(one.filename == __file__ for one in told), told
    tandem.job.MOST_SAMPLES = kept


def check_wrong_use(client: tandem.Client, job: tandem.Job) -> None:
    """Wrong arguments give errors that name the argument and the mend, before anything is sent."""
    samples = numpy.zeros((2, 1, 8, 8), "uint8")
    masked = numpy.ma.masked_array(samples, samples == 0)
    for use, argument, mend in (
            (lambda: job.predict(masked), "array of samples has masked values", "filled"),
            (lambda: job.predict(list(masked)), "array of samples has masked values", "filled"),
            (lambda: job.classify(masked[0]), "array of samples has masked values", "filled"),
            (lambda: job.predict([[1, 2], [3]]), "array of samples holds", "DataFrame"),
            (lambda: job.predict([{"a": 1}]), "array of samples holds", "DataFrame"),
            (lambda: client.datasets.add_arrays("masked", masked, [0, 1]), "train_inputs has masked values", "filled"),
            (lambda: client.datasets.add_arrays("masked", samples, numpy.ma.masked_equal([0, 1], 1)), "train_targets has masked values", "filled"),
            (lambda: client.datasets.add("path", samples), "path", "add_arrays"),
            (lambda: client.job(5), "name", "jobs/<id>"),
            (lambda: client.sweep(None), "name", "sweeps/<id>"),
            (lambda: client.submit(None), "the job", "file's path"),
            (lambda: client.submit(job), "the job", "`spec`"),
            (lambda: client.submit(job.get()), "the job", "`spec`"),
            (lambda: client.submit(SCRATCH / "none.yaml"), str(SCRATCH / "none.yaml"), "path of a file"),
            (lambda: client.submit({}, set="training.epochs=3"), "set", '{"training.epochs": 10}'),
            (lambda: client.submit({}, set={1: 2}), "set", '{"training.epochs": 10}'),
            (lambda: job.download(SCRATCH / "no-folder" / "x.safetensors"), "no folder", "create it"),
            (lambda: job.plot(["loss"]), "['loss']", "validation_loss"),
            (lambda: tandem.connect("127.0.0.1"), "127.0.0.1", "HOST:PORT"),
            (lambda: tandem.connect("http://127.0.0.1:7447"), "http://127.0.0.1:7447", "HOST:PORT"),
            (lambda: tandem.connect("127.0.0.1:0"), "127.0.0.1:0", "HOST:PORT"),
            (lambda: tandem.connect("127.0.0.1:65536"), "127.0.0.1:65536", "HOST:PORT"),
            (lambda: tandem.connect(7447), "address", "127.0.0.1:7447"),
            (lambda: tandem.connect(timeout=0), "timeout", "seconds above 0"),
            (lambda: tandem.connect(timeout="30s"), "timeout", "seconds above 0"),
            (lambda: tandem.connect(timeout=float("nan")), "timeout", "seconds above 0"),
            (lambda: tandem.connect(reconnect_timeout="1s"), "reconnect_timeout", "seconds from 0"),
            (lambda: tandem.connect(token="secret\n"), "token", "without spaces")):
        try:
            use()
            raise SystemExit(f"{argument} was accepted")
        except tandem.TandemError as error:
            assert argument in str(error) and mend in error.mend and "secret" not in str(error), error
    # Nothing is masked, all times are right, and a data set's whole name is as good as its id.
    assert job.predict(numpy.ma.masked_array(samples)).shape == (2, 4)
    assert tandem.connect(timeout=numpy.float32(5), reconnect_timeout=numpy.inf).daemon().version
    assert job.evaluate(metrics="accuracy").measures == job.evaluate(metrics=["accuracy"]).measures
    name = client.datasets.add_arrays("whole", samples, [0, 1]).name
    assert client.datasets.get(name).name == name == "datasets/whole"
    client.datasets.remove(name)
    assert client.parse({"dataset": {"csv": {"train": SCRATCH / "a.csv"}}}).dataset.csv.train == str(SCRATCH / "a.csv")
    # Addresses in all forms of gRPC. A client connects at its first call.
    for address in ("[::1]:7447", "localhost:7447", "ipv4:127.0.0.1:7447", "unix:/run/tandem.sock", "unix-abstract:tandem"):
        tandem.connect(address, token="secret", plaintext=address.startswith("ipv4:")).close()
    tandem.connect("gpu-1.example.org:7447", token="").close()
    # What a log shows of a client has its address, and never the token.
    other = tandem.connect(token="secret")
    assert os.environ["TANDEM_ADDRESS"] in repr(other) and job.name in repr(tandem.aio.Job(job))
    assert "secret" not in repr(tandem.connection.Options(token="secret"))
    other.close()
    for use, words in ((other.daemon, "the client is closed"), (lambda: pickle.dumps(job), "send jobs' names")):
        try:
            use()
            raise SystemExit(f"no error: {words}")
        except (tandem.TandemError, TypeError) as error:
            assert words in str(error), error


def check_repeated_epochs() -> None:
    """An epoch that is trained again after a restart is followed once."""
    events = [event_pb2.JobEvent(epoch=event_pb2.EpochSummary(epoch=number)) for number in (1, 2, 2, 1, 2, 3)]
    followed = tandem.job.epochs_of("jobs/x", iter(events), tandem.job.Bar(False))
    assert [epoch.number for epoch in followed] == [1, 2, 3]


def check_replaced_epochs() -> None:
    """A history has no epoch and no validation of steps that an attempt trains again from a checkpoint."""
    def epoch(number: int, step: int, loss: "float | None" = None) -> event_pb2.JobEvent:
        summary = event_pb2.EpochSummary(epoch=number, step=step)
        if loss is not None:
            summary.validation.loss = loss
        return event_pb2.JobEvent(epoch=summary)

    def validation(number: int, step: int, loss: float) -> event_pb2.JobEvent:
        return event_pb2.JobEvent(validation=event_pb2.ValidationResult(epoch=number, step=step, validation=event_pb2.Evaluation(loss=loss)))

    # The second attempt begins after step 8, the third after step 12. The last epoch is cut short, and validated before its summary.
    events = [validation(1, 6, 6.0), epoch(1, 8), validation(2, 12, 12.0), epoch(2, 16, 16.0), validation(3, 18, 18.0),
              validation(2, 12, 12.5), epoch(2, 16, 16.5), validation(3, 18, 18.5), epoch(2, 16, 16.6), validation(3, 20, 20.0), epoch(3, 20)]
    for end, epochs, losses in ((5, [1, 2], [6.0, 12.0, 16.0, 18.0]), (6, [1], [6.0, 12.5]), (8, [1, 2], [6.0, 12.5, 16.5, 18.5]),
                                (9, [1, 2], [6.0, 12.5, 16.6]), (11, [1, 2, 3], [6.0, 12.5, 16.6, 20.0])):
        found = tandem.events.newest(events[:end])
        assert ([one.number for one in found[0]], [one.measures["loss"] for one in found[1]]) == (epochs, losses), (end, found)
    followed = tandem.job.validations_of("jobs/x", iter(events))
    assert [(one.step, one.measures["loss"]) for one in followed] == [(6, 6.0), (12, 12.0), (16, 16.0), (18, 18.0), (20, 20.0)]


def check_validations(client: tandem.Client) -> None:
    """Validations within epochs are in the history, at their steps, and are drawn and followed. So is one after a last step."""
    # An epoch has 8 steps, of which the job trains 20. Step 24 would be an epoch's end.
    job = client.submit(SCRATCH / "job.yaml", set={"training.validation": {"every_steps": 3}, "training.epochs": 0, "training.steps": 20})
    followed = list(job.follow_validations())
    told = {}
    for event in job.events():
        kind = event.WhichOneof("kind")
        if kind in ("epoch", "validation") and getattr(event, kind).HasField("validation"):
            told[getattr(event, kind).step] = getattr(event, kind)
    steps = [3, 6, 9, 12, 15, 18, 20]
    assert list(told) == steps and [one.step for one in followed] == steps, (list(told), followed)
    for one in followed:
        wanted = told[one.step]
        assert one.measures == {"loss": wanted.validation.loss, "accuracy": wanted.validation.metrics["accuracy"]}, (one, wanted)
        assert (one.epoch, one.seconds) == ((one.step + 7) // 8, wanted.validation_seconds), (one, wanted)
    columns = job.columns()
    assert columns["step"].tolist() == sorted({*steps, 8, 16}), columns
    assert columns["epoch"].tolist() == [(step + 7) // 8 for step in columns["step"]], columns
    for column, part, ends in (("loss", "training", {8, 16, 20}), ("validation_loss", "validation", set(steps))):
        assert set(columns["step"][~numpy.isnan(columns[column])]) == ends, (column, columns)
    assert [value for value in columns["validation_loss"] if value == value] == [one.measures["loss"] for one in followed], columns
    assert [value for value in columns["loss"] if value == value] == [one.training["loss"] for one in job.epochs()], columns
    import matplotlib

    matplotlib.use("Agg")
    lines = {line.get_label(): line for line in job.plot().axes[0].get_lines()}
    assert lines["loss"].get_xdata().tolist() == [8, 16, 20] and lines["validation_loss"].get_xdata().tolist() == steps, lines
    assert lines["validation_loss"].get_ydata().tolist() == [one.measures["loss"] for one in followed]

    async def follow() -> list:
        async with tandem.aio.connect() as awaited:
            return [one async for one in (await awaited.job(job.name)).follow_validations()]

    assert asyncio.run(follow()) == followed
    failing = client.submit(SCRATCH / "job.yaml", set={"training.optimizer.sgd.learning_rate": 1e30})
    try:
        list(failing.follow_validations())
        raise SystemExit("a job without a finite loss did not fail")
    except tandem.JobFailed as error:
        assert error.reason == "NON_FINITE_LOSS", error


def check_history(job: tandem.Job) -> None:
    columns = job.columns()
    assert columns["epoch"].tolist() == list(range(1, 81))
    assert {"loss", "accuracy", "validation_loss", "validation_accuracy"} <= set(columns), list(columns)
    # A stand-in, whether pandas is installed or not.
    frame = types.SimpleNamespace(DataFrame=lambda data: types.SimpleNamespace(set_index=lambda name: (name, data)))
    kept = sys.modules.get("pandas")
    sys.modules["pandas"] = frame
    assert job.history()[0] == "epoch" and job.history()[1].keys() == columns.keys()
    sys.modules["pandas"] = None
    assert isinstance(job.history(), tandem.History)
    if kept is None:
        del sys.modules["pandas"]
    else:
        sys.modules["pandas"] = kept


def check_plot(job: tandem.Job) -> None:
    """The plot has the measures' own numbers. Without matplotlib, the error says what is missing."""
    history = job.columns()
    kept = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "matplotlib"}
    sys.modules["matplotlib"] = None
    try:
        job.plot()
        raise SystemExit("a plot without matplotlib")
    except ImportError as error:
        assert "matplotlib is not installed" in str(error), error
    del sys.modules["matplotlib"]
    sys.modules.update(kept)
    import matplotlib

    matplotlib.use("Agg")
    for measures in ((), ("accuracy", "validation_accuracy")):
        figure = job.plot(*measures)
        lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
        assert tuple(lines) == (measures or ("loss", "validation_loss")), list(lines)
        for name, line in lines.items():
            assert numpy.array_equal(line.get_xdata(), history["step"]) and numpy.array_equal(line.get_ydata(), history[name]), name
    figure.savefig(SCRATCH / "plot.png")
    assert (SCRATCH / "plot.png").stat().st_size > 1000
    try:
        job.plot("speed")
        raise SystemExit("a plot of a measure that does not exist")
    except tandem.NotFound as error:
        assert "speed" in str(error), error


def check_errors(client: tandem.Client) -> None:
    """Errors have the fields, their places and the mend."""
    path = SCRATCH / "wrong.yaml"
    path.write_text(SPEC.replace("  - dense: {units: 4}", "  - dens: {units: 4}"))
    try:
        client.submit(path)
        raise SystemExit("a wrong file was accepted")
    except tandem.JobFileError as error:
        violation = error.violations[0]
        assert (violation.line, violation.column, violation.field) == (8, 5, "model.layers[1].dens"), violation
        assert violation.mend == "did you mean `dense`?", violation
        assert f"{path}:8:5: model.layers[1].dens: " in str(error), error
    # The daemon checks values without the text, so only the command line knows their places.
    path.write_text(SPEC.replace("  epochs: 3", "  epochs: -2"))
    try:
        client.submit(path)
        raise SystemExit("a wrong value was accepted")
    except tandem.InvalidRequest as error:
        assert not isinstance(error, tandem.JobFileError), error
        assert [(one.line, one.column, one.field) for one in error.violations] == [(0, 0, "spec.training.epochs")], error.violations
    said = subprocess.run([PROGRAM, "validate", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert said.returncode == 2 and f"{path}:13:3: training.epochs: is -2" in said.stdout, said
    try:
        client.submit(json.loads(json.dumps({"dataset": {"name": "no-such-set"}, "model": {"layers": [{"dense": {"units": 0}}]}})))
        raise SystemExit("a wrong job was accepted")
    except tandem.InvalidRequest as error:
        assert error.code == "INVALID_ARGUMENT" and len(error.violations) > 1, error.violations
        assert all(violation.field.startswith("spec.") for violation in error.violations), error.violations
    for call, kind in ((lambda: client.job("none"), tandem.NotFound),
                       (lambda: tandem.connect(token="wrong").daemon(), tandem.Unauthenticated),
                       (lambda: tandem.connect("127.0.0.1:1", token="x", reconnect_timeout=0.1).daemon(), tandem.Unavailable),
                       (lambda: tandem.connect("192.0.2.1:7447", token="x"), tandem.InvalidRequest)):
        try:
            call()
            raise SystemExit(f"no {kind.__name__}")
        except kind as error:
            assert error.mend or kind is tandem.NotFound, error


def check_mends(client: tandem.Client, job: tandem.Job) -> None:
    """A mend is an order to the user, or empty."""
    two = [tandem.FieldViolation("a", "is 0; it must be at least 1"), tandem.FieldViolation("b", "is 0; it must be at least 2")]
    for error, mend in (
            (tandem.TandemError("cannot open a: cannot read b; c: it is cut; fetch it again"), "fetch it again"),
            (tandem.TandemError("cannot open a: it is cut"), ""),
            (tandem.TandemError("cannot open a; fetch it again"), ""),
            (tandem.TandemError("a is cut; there is no other"), ""),
            (tandem.TandemError("cannot open a: it is cut; fetch it again\ncannot open b: it is cut; fetch it again"), ""),
            (tandem.TandemError("the daemon fell silent: why; nobody knows", mend="wait"), "wait"),
            (tandem.InvalidRequest("a: is 0; it must be at least 1", violations=two[:1]), "it must be at least 1"),
            (tandem.InvalidRequest("2 problems: a: is 0; it must be at least 1; b: is 0; it must be at least 2", violations=two), ""),
            (tandem.InvalidRequest("a: is wrong", violations=[tandem.FieldViolation("a", "is wrong")]), "")):
        assert error.mend == mend, (error, error.mend)

    full = event_pb2.JobEvent(state_change=event_pb2.StateChange(to=event_pb2.JOB_STATE_FAILED, message="cannot read a: it is cut; mend it"))
    failing = client.submit(SCRATCH / "job.yaml", set={"training.optimizer.sgd.learning_rate": 1e30})
    for call, mend in ((lambda: list(tandem.job.validations_of("jobs/x", iter([full]))), "mend it"),
                       (failing.wait, ""), (lambda: job.read("none"), ""), (lambda: client.job("none"), ""),
                       (lambda: client.submit(SCRATCH / "job.yaml", set={"training.epochs": -2}), "it must be at least 1"),
                       (lambda: client.submit(SCRATCH / "job.yaml", set={"training.epochs": -2, "training.global_batch_size": -1}), ""),
                       (job.pause, "fork it from its last checkpoint, or submit it again"),
                       (lambda: job.evaluate(split="test"), "give training, validation")):
        try:
            call()
            raise SystemExit("a wrong call succeeded")
        except tandem.TandemError as error:
            assert error.mend == mend, (error, error.mend)


def check_evaluate(job: tandem.Job) -> None:
    """An evaluation over the job's own samples is the job's last validation."""
    evaluation = job.evaluate()
    validation = list(job.follow())[-1].validation
    assert evaluation.measures == validation and evaluation.samples == 64, (evaluation, validation)
    assert evaluation.confusion is None and evaluation.notices == []
    other = {"synthetic": {"shape": [1, 8, 8], "classes": 4, "train_samples": 40, "validation_samples": 8}}
    counted = job.evaluate(other, split="training", metrics=["accuracy", "confusion_matrix"], batch_size=7)
    assert counted.samples == 40 and counted.confusion.shape == (4, 4) and counted.confusion.sum() == 40, counted
    assert not abs(counted.confusion.trace() / 40 - counted.measures["accuracy"]) > 1e-9, counted
    for options, named in (({"metrics": ["speed"]}, "metrics: is 'speed'; give accuracy, top_k"),
                           ({"split": "test"}, "split: is 'test'; give training, validation"),
                           ({"dataset": {"synthetik": {}}}, "did you mean `synthetic`?"),
                           ({"artifact": "none"}, "'none'")):
        try:
            job.evaluate(**options)
            raise SystemExit(f"evaluated with {options}")
        except (tandem.InvalidRequest, tandem.NotFound) as error:
            assert named in str(error), error


def check_checkpoints(job: tandem.Job) -> None:
    """The model of the last checkpoint is the job's model. A job that goes on from a checkpoint begins there."""
    checkpoints = job.checkpoints()
    assert [one.step for one in checkpoints] == [80 * 8], checkpoints
    name = f"model-{checkpoints[0].step}.safetensors"
    assert job.read(name) == job.read() and job.download(SCRATCH, name).read_bytes() == job.read()
    samples = numpy.zeros((3, 1, 8, 8), "uint8")
    assert numpy.array_equal(job.predict(samples, artifact=name), job.predict(samples))
    assert numpy.array_equal(job.classify(samples, artifact=name).labels, job.classify(samples).labels)
    assert job.evaluate(artifact=name).measures == job.evaluate().measures
    for use in (job.read, lambda artifact: job.evaluate(artifact=artifact)):
        try:
            use("model-5.safetensors")
            raise SystemExit("a checkpoint that was removed has a model")
        except tandem.NotFound as error:
            assert error.reason == "CHECKPOINT_NOT_FOUND" and "the steps 640" in error.message, error
    fork = job.fork(set={"training.epochs": 82}, step=640)
    assert [epoch.number for epoch in fork.follow()] == [81, 82]
    told = fork.get()
    assert (told.forked_from.job, told.forked_from.step, told.spec.training.epochs) == (job.name, 640, 82), told
    changed = job.get().spec
    changed.training.epochs = 81
    assert job.fork(changed).wait().summary.epochs == 81
    try:
        job.fork()
        raise SystemExit("a job without a step was accepted")
    except tandem.InvalidRequest as error:
        assert error.reason == "NOTHING_TO_TRAIN", error


SWEEP = {
    "grid": [{"field": "training.epochs", "values": [1, 2]},
             {"field": "model.layers[0].dense.activation", "values": ["tanh", "relu"]}],
    "max_running": 1,
    "objective": {"metric": "accuracy"},
}


def check_sweeps(client: tandem.Client) -> None:
    """A sweep comes from a dict or a file. Its best job is the one with the largest accuracy."""
    sweep = client.submit_sweep({"base": SCRATCH / "job.yaml", **SWEEP}, set={"training.seed": 7})
    ended = sweep.wait()
    assert sweep.state == "succeeded" and ended.jobs == 4 and ended.base.training.seed == 7, ended
    results = sweep.results()
    assert [result.values for result in results] == [
        {"training.epochs": epochs, "model.layers[0].dense.activation": f"ACTIVATION_{name}"} for epochs in (1, 2) for name in ("TANH", "RELU")]
    assert [(result.state, result.epochs, result.artifact) for result in results] == [
        ("succeeded", epochs, "model.safetensors") for epochs in (1, 1, 2, 2)], results
    assert [result.value for result in results] == [list(result.job.follow())[-1].validation["accuracy"] for result in results]
    best = sweep.best()
    assert best.value == max(result.value for result in results), best
    assert best.job.name in [result.job.name for result in results if result.value == best.value], best
    assert [job.name for job in sweep.jobs()] == [result.job.name for result in results]
    assert sweep.name in [one.name for one in client.sweeps()]
    assert client.sweep(sweep.name.partition("/")[2]).get().display_name == ended.display_name
    sweep.delete()
    for gone in (sweep.get, results[0].job.get):
        try:
            gone()
            raise SystemExit("the sweep was not deleted")
        except tandem.NotFound:
            pass

    path = SCRATCH / "sweep.yaml"
    path.write_text("random: {samples: 2, fields: [{field: training.epochs, integer: {min: 90000, max: 100000}}]}\nbase:\n" +
                    "".join(f"  {line}\n" for line in SPEC.splitlines()))
    sweep = client.submit_sweep(path)
    assert sweep.state == "active" and client.parse_sweep(path).random.samples == 2
    assert client.parse_sweep(client.parse_sweep(path), set={"training.epochs": 4}).base.training.epochs == 4
    # Numbers of NumPy.
    spec = client.parse(SCRATCH / "job.yaml", set={"training.epochs": numpy.int64(3), "model.input.shape": numpy.array([1, 28, 28])})
    assert (spec.training.epochs, list(spec.model.input.shape)) == (3, [1, 28, 28]), spec
    try:
        client.parse(SCRATCH / "job.yaml", set={"training.epochs": object()})
        raise SystemExit("an object is no number")
    except TypeError as error:
        assert "give numbers" in str(error), error
    sweep.cancel()
    sweep.wait()
    assert sweep.state == "cancelled" and {result.state for result in sweep.results()} == {"cancelled"}
    path.write_text(path.read_text().replace("epochs: 3", "epocs: 3"))
    for wrong, place in ((path, f"{path}:"), ({**SWEEP, "base": SCRATCH / "none.yaml"}, "cannot read"),
                         ({"base": SCRATCH / "job.yaml", "grid": [{"field": "training.epochs", "values": ["many"]}]}, "grid[0].values[0]")):
        try:
            client.parse_sweep(wrong)
            raise SystemExit(f"{wrong} was read")
        except tandem.JobFileError as error:
            assert place in str(error), error
    try:
        client.submit_sweep({"base": SCRATCH / "job.yaml", "grid": [{"field": "training.epochs", "values": [-1]}]})
        raise SystemExit("a wrong job was accepted")
    except tandem.InvalidRequest as error:
        assert error.violations[0].field == "sweep.base.training.epochs", error.violations
    failing = client.submit_sweep({"base": SCRATCH / "job.yaml", "grid": [{"field": "training.optimizer.sgd.learning_rate", "values": [1e30]}]})
    try:
        failing.wait()
        raise SystemExit("a sweep without a success ended well")
    except tandem.JobFailed as error:
        assert failing.name in error.message, error


def check_partitions(client: tandem.Client) -> None:
    """Partitions come from the daemon's cluster. A cluster that does not answer is an error."""
    assert client.devices() and client.partitions() == [], client.partitions()
    answers = [{"partitions": [{"name": "brief"}, {"name": "work", "nodes": 4, "free_nodes": 3}]}, {"partitions_message": "cannot ask Slurm: no answer; wait"}]
    server = grpc.server(futures.ThreadPoolExecutor(1))
    handler = grpc.unary_unary_rpc_method_handler(lambda request, context: daemon_service_pb2.ListDevicesResponse(**answers.pop(0)),
        daemon_service_pb2.ListDevicesRequest.FromString, daemon_service_pb2.ListDevicesResponse.SerializeToString)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("tandem.v1.DaemonService", {"ListDevices": handler}),))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    with_cluster = tandem.connect(address, token="x")
    assert [(one.name, one.free_nodes) for one in with_cluster.partitions()] == [("brief", 0), ("work", 3)]
    try:
        with_cluster.partitions()
        raise SystemExit("a cluster that does not answer gave partitions")
    except tandem.Unavailable as error:
        assert error.message == "cannot ask Slurm: no answer; wait" and error.mend == "wait", error
    server.stop(None)


def check_datasets(client: tandem.Client) -> None:
    """An upload goes on over cut connections, and jobs can name what it brought."""
    rows = ["a,b,kind"] + [f"{i},{i * 7 % 11},{'xy'[i % 2]}" for i in range(200_000)]
    path = SCRATCH / "table.csv"
    path.write_text("\n".join(rows) + "\n")
    proxy = CuttingProxy(os.environ["TANDEM_ADDRESS"], 3, 300_000, 900_000, from_client=True)
    dataset = tandem.connect(proxy.address).datasets.add("table", path, spec={"csv": {"target_columns": ["kind"]}})
    assert proxy.cuts == 3, proxy.cuts
    assert dataset.name == "datasets/table", dataset
    assert "datasets/table" in [one.name for one in client.datasets.list()]
    client.datasets.remove("table")
    assert "datasets/table" not in [one.name for one in client.datasets.list()]
    with zipfile.ZipFile(SCRATCH / "table.csv.zip", "w") as packed:
        packed.writestr("table.csv", "a,kind\n1,x\n2,y\n")
    assert client.datasets.add("packed", SCRATCH / "table.csv.zip").train_samples == 2
    # The same data set is found again.
    assert client.datasets.add("packed", SCRATCH / "table.csv.zip").train_samples == 2
    client.datasets.remove("packed")
    check_pictures(client)
    for part, samples in (("first", 4), ("second", 2)):
        (SCRATCH / part).mkdir()
        write_shard(SCRATCH / part / "0.tar", samples)
    dataset = client.datasets.add("shards", SCRATCH / "first", validation=SCRATCH / "second", spec={"webdataset": {"classes": 2}})
    assert (dataset.train_samples, dataset.validation_samples) == (4, 2), dataset
    client.datasets.remove("shards")
    dataset = client.datasets.add("shards", SCRATCH / "first", spec={"webdataset": {"train": "0.tar"}})
    assert (dataset.train_samples, dataset.validation_samples) == (4, 0), dataset
    client.datasets.remove("shards")
    try:
        client.datasets.add("shards", SCRATCH / "first", validation=SCRATCH / "second", spec={"webdataset": {"train": "0.tar"}})
        raise SystemExit("validation was left out")
    except tandem.InvalidRequest as error:
        assert "names its files by paths" in error.message and error.mend, error
    numpy.save(SCRATCH / "x.npy", numpy.zeros((4, 2), numpy.float32))
    try:
        client.datasets.add("arrays", SCRATCH / "x.npy")
        raise SystemExit("an array alone was added")
    except tandem.InvalidRequest as error:
        assert "an array of inputs and an array of targets" in error.message and error.mend, error
    check_arrays(client)
    check_shrinking_file(client)


def check_arrays(client: tandem.Client) -> None:
    """Arrays in memory become a data set with the same samples."""
    inputs = numpy.arange(6 * 3, dtype="float32").reshape(6, 3)
    dataset = client.datasets.add_arrays("memory", inputs, [0, 1, 2, 0, 1, 2], validation_inputs=inputs[::-1][:2],
                                         validation_targets=numpy.array([2, 1]))
    assert (dataset.train_samples, dataset.validation_samples, dataset.classes, list(dataset.shape)) == (6, 2, 3, [3]), dataset
    # The means of the columns 0, 3, ..., 15 and their neighbours.
    assert list(client.datasets.get("memory").mean) == [7.5, 8.5, 9.5], dataset
    again = client.datasets.add_arrays("memory", inputs, [0, 1, 2, 0, 1, 2], validation_inputs=inputs[::-1][:2],
                                       validation_targets=numpy.array([2, 1]))
    assert again.create_time == dataset.create_time, again
    try:
        client.datasets.add_arrays("memory", inputs + 1, [0, 1, 2, 0, 1, 2])
        raise SystemExit("other arrays took the name of a data set")
    except tandem.TandemError as error:
        assert error.code == "ALREADY_EXISTS", error
    client.datasets.remove("memory")
    # Channels last, values as targets, and a split.
    dataset = client.datasets.add_arrays("memory", numpy.zeros((10, 4, 5, 3), "uint8"), numpy.linspace(0, 1, 10),
                                         spec={"npy": {"layout": "nhwc", "targets": "values"}, "validation_split": {"fraction": 0.2}})
    assert (dataset.train_samples, dataset.validation_samples, list(dataset.shape)) == (8, 2, [3, 4, 5]), dataset
    client.datasets.remove("memory")
    for wrong, part in ((([[1.0], [2.0, 3.0]], [0, 1]), "train_inputs"), ((inputs[:2], [0, {}]), "train_targets")):
        try:
            client.datasets.add_arrays("memory", *wrong)
            raise SystemExit("Python objects were sent")
        except tandem.InvalidRequest as error:
            assert part in error.message and error.mend == "give numbers", error
    try:
        client.datasets.add_arrays("memory", inputs, [0, 1])
        raise SystemExit("six inputs had two targets")
    except tandem.InvalidRequest as error:
        assert "2" in error.message and "6" in error.message, error


def check_read_has_no_timeout(job: tandem.Job, file: bytes) -> None:
    """A large file over a slow line may take any time."""
    timeouts = []

    def noted(request, timeout=None):
        timeouts.append(timeout)
        return real(request, timeout=timeout)

    calls = job._client.calls.jobs
    real, calls.read_artifact = calls.read_artifact, noted
    assert job.read() == file and timeouts == [None], timeouts
    calls.read_artifact = real


def check_shrinking_file(client: tandem.Client) -> None:
    """A file that becomes shorter during its upload is named."""
    path = SCRATCH / "shrinks.csv"
    path.write_text("a,b\n" + "1,2\n" * 1000)

    def cut(request, timeout=None):
        path.write_text("a,b\n")
        return real(request, timeout=timeout)

    real, client.calls.datasets.create_upload = client.calls.datasets.create_upload, cut
    try:
        client.datasets.add("shrinks", path, spec={"csv": {"target_columns": ["b"]}})
        raise SystemExit("a cut file was uploaded")
    except tandem.InvalidRequest as error:
        assert f"cannot upload {path}: it became shorter" in error.message and error.mend == "add it again", error
    client.calls.datasets.create_upload = real


def check_pictures(client: tandem.Client) -> None:
    """Links to folders and pictures are followed, hidden files are left out, and an archive is as good as its folder."""
    folder = SCRATCH / "pictures"
    for name in ("cat", "dog", ".hidden"):
        (folder / name).mkdir(parents=True)
        for i in range(3):
            (folder / name / f"{i}.png").write_bytes(grey_png(i))
    (SCRATCH / "elsewhere").mkdir()
    (SCRATCH / "elsewhere" / "0.png").write_bytes(grey_png(9))
    (folder / "fox").symlink_to(SCRATCH / "elsewhere")
    (folder / "dog" / "link.png").symlink_to(SCRATCH / "elsewhere" / "0.png")
    with tarfile.open(SCRATCH / "pictures.tar.gz", "w:gz", dereference=True) as tar:
        tar.add(folder, ".")
    for path in (folder, SCRATCH / "pictures.tar.gz"):
        dataset = client.datasets.add("pictures", path)
        assert (list(dataset.class_names), dataset.train_samples) == (["cat", "dog", "fox"], 8), dataset
        client.datasets.remove("pictures")
    (folder / "dog" / "back").symlink_to(folder)
    try:
        client.datasets.add("pictures", folder)
        raise SystemExit("a link back was followed")
    except tandem.InvalidRequest as error:
        assert "is a link back to" in error.message and error.mend, error


def grey_png(value: int) -> bytes:
    """A grey picture with 8 x 8 pixels."""
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)) + \
        chunk(b"IDAT", zlib.compress((b"\0" + bytes([value] * 8)) * 8)) + chunk(b"IEND", b"")


def write_shard(path: pathlib.Path, samples: int) -> None:
    """Writes a shard of grey pictures."""
    with tarfile.open(path, "w") as tar:
        for i in range(samples):
            for ending, content in (("png", grey_png(i)), ("cls", b"%d" % (i % 2))):
                member = tarfile.TarInfo(f"{i}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


def check_written_addresses() -> None:
    """A client reaches a daemon that listens at all addresses through loopback, and no other address is changed."""
    state = SCRATCH / "written"
    state.mkdir()
    for written, wanted in (("0.0.0.0:7447", "127.0.0.1:7447"), ("[::]:7447", "localhost:7447"), ("10.0.0.0:7447", "10.0.0.0:7447"),
                            ("127.0.0.1:7447", "127.0.0.1:7447"), ("[fe80::]:7447", "[fe80::]:7447")):
        (state / "address").write_text(written + "\n")
        kept = os.environ.pop("TANDEM_ADDRESS")
        found = tandem.connection.Connection(tandem.connection.Options(state_folder=str(state), token="")).address
        os.environ["TANDEM_ADDRESS"] = kept
        assert found == wanted, (written, found)


def check_every_method(client: tandem.Client) -> None:
    """The calls have every method of the API."""
    for service, wanted in client.calls.__dict__.items():
        descriptor = next(file.services_by_name[type(wanted).__name__] for file in FILES if type(wanted).__name__ in file.services_by_name)
        for method in descriptor.methods:
            name = "".join("_" + letter.lower() if letter.isupper() else letter for letter in method.name).lstrip("_")
            assert callable(getattr(wanted, name)), f"{service}.{name}"
    assert sum(len(file.services_by_name) for file in FILES) == len(client.calls.__dict__)


def check_names_of_asyncio() -> None:
    """The asyncio client has every name of the blocking client. A plot needs no waiting: its columns do."""
    for blocking, awaited in ((tandem.Client, tandem.aio.Client), (tandem.Job, tandem.aio.Job), (tandem.Datasets, tandem.aio.Datasets),
                              (tandem.Sweep, tandem.aio.Sweep)):
        missing = {name for name in dir(blocking) if not name.startswith("_") and not hasattr(awaited, name)} - {"plot"}
        assert not missing, (awaited, missing)


async def check_asyncio(name: str) -> None:
    async with tandem.aio.connect() as client:
        job = await client.submit(SCRATCH / "job.yaml")
        numbers = [epoch.number async for epoch in job.follow()]
        assert numbers == [1, 2, 3], numbers
        assert await job.state == "succeeded"
        assert len((await job.columns())["loss"]) == 3
        assert (await job.download(SCRATCH / "aio.safetensors")).read_bytes() == await job.read()
        assert job.name in [one.name async for one in client.jobs()]
        with tandem.connect() as blocking:
            assert [one.name async for one in client.datasets.list()] == [one.name for one in blocking.datasets.list()]
        assert (await client.devices())[0].name == "devices/cpu:0"
        assert (await client.daemon()).version and await client.partitions() == []
        assert sorted(await job.model()) == sorted(await (await client.job(name)).model())
        told = await client.calls.jobs.get_job(job_service_pb2.GetJobRequest(name=name))
        assert told.name == name
        assert (await job.evaluate(metrics=["accuracy"])).samples == 64
        step = (await job.checkpoints())[0].step
        assert numpy.array_equal(await job.predict(numpy.zeros((1, 8, 8), "uint8"), artifact=f"model-{step}.safetensors"),
                                 await job.predict(numpy.zeros((1, 8, 8), "uint8")))
        assert [epoch.number async for epoch in (await job.fork(set={"training.epochs": 4})).follow()] == [4]
        sweep = await client.submit_sweep({"base": SCRATCH / "job.yaml", **SWEEP})
        assert (await sweep.wait()).jobs == 4 and await sweep.state == "succeeded"
        assert (await sweep.best()).job.name in [one.name for one in await sweep.jobs()]
        assert len(await (await sweep.results())[3].job.epochs()) == 2
        assert sweep.name in [one.name async for one in client.sweeps()]
        assert (await client.sweep(sweep.name)).name == sweep.name
        assert len((await client.parse_sweep({"base": SCRATCH / "job.yaml", **SWEEP})).grid) == 2
        # Leaving a stream early ends its call.
        waiting = await client.submit(SCRATCH / "job.yaml", set={"training.epochs": 100000})
        async for _ in waiting.follow():
            break
        await waiting.cancel()


def service_files() -> list:
    from tandem.v1 import daemon_service_pb2, dataset_service_pb2, model_service_pb2, sweep_service_pb2
    return [module.DESCRIPTOR for module in (daemon_service_pb2, dataset_service_pb2, job_service_pb2, model_service_pb2,
                                             sweep_service_pb2)]


FILES = service_files()

with tandem.connect() as the_client:
    the_job = check_cut_connections(the_client)
    check_model(the_job)
    check_downloads(the_client)
    check_weights(the_client, the_job)
    check_predict(the_job)
    check_predict_frames(the_client)
    check_notices(the_client)
    check_wrong_use(the_client, the_job)
    check_repeated_epochs()
    check_replaced_epochs()
    check_validations(the_client)
    check_history(the_job)
    check_plot(the_job)
    check_errors(the_client)
    check_mends(the_client, the_job)
    check_evaluate(the_job)
    check_checkpoints(the_job)
    check_sweeps(the_client)
    check_partitions(the_client)
    check_datasets(the_client)
    check_written_addresses()
    check_every_method(the_client)
    check_names_of_asyncio()
    asyncio.run(check_asyncio(the_job.name))
print("all is right")
