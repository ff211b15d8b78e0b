"""One job: follow it, fetch its model, ask the model."""

import dataclasses
import hashlib
import io
import os
import pathlib
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Union

import grpc  # type: ignore[import]
import numpy

from tandem import safetensors
from tandem.connection import Patience
from tandem.errors import FieldViolation, InvalidRequest, JobFailed, NotFound, TandemError, from_rpc, mend_of
from tandem.evaluation import Evaluation
from tandem.events import Epoch, Event, EventStream, Validation, epoch_of, measures, newest, validation_of
from tandem.v1 import dataset_pb2, event_pb2, job_pb2, job_service_pb2, metric_pb2, model_service_pb2, prediction_pb2

if TYPE_CHECKING:
    from tandem.client import Client, JobLike

# The name of a data set of the daemon, a dict in the form of a job file's `dataset`, or a message.
DatasetLike = Union[str, Mapping[str, Any], dataset_pb2.DatasetSpec]

MODEL = "model.safetensors"
# Names of files that not every job has. `download` writes no other file under such a name.
_RESERVED = re.compile(r"best\.safetensors|(model|checkpoint)-[0-9]+\.safetensors|job\.yaml")
# A prediction or a file may take as long as the daemon allows. Pings find a lost connection.
NO_TIMEOUT = None
# Of samples in one request: the daemon takes 12 MiB.
MOST_BYTES = 8 << 20
MOST_SAMPLES = 10_000
NO_SAMPLES = "cannot predict: there are no samples; give at least one"


@dataclasses.dataclass(frozen=True)
class Classes:
    """The likeliest classes of each sample, the likeliest first."""

    # [samples, k].
    labels: "numpy.ndarray[Any, Any]"
    probabilities: "numpy.ndarray[Any, Any]"
    # The classes' names; empty where a class has no name.
    names: List[List[str]]
    # [samples]: the own class of each sample of a data set; -1 where a sample has none. None for other samples.
    true_labels: "Optional[numpy.ndarray[Any, Any]]" = None


def _part_of(path: pathlib.Path, verb: str) -> pathlib.Path:
    """The file to write before it is renamed to `path`."""
    # As root, a rename would replace a device such as /dev/null.
    if path.exists() and not path.is_file():
        raise InvalidRequest(f"cannot {verb} to {path}: it is not a regular file; name another file", "INVALID_ARGUMENT")
    if not path.parent.is_dir():
        raise InvalidRequest(f"cannot {verb} to {path}: there is no folder {path.parent}; create it", "INVALID_ARGUMENT")
    return path.with_name(path.name + ".part")


class History(Dict[str, "numpy.ndarray[Any, Any]"]):
    """Columns: "epoch", "step", "learning_rate", "seconds", "loss", "accuracy", "validation_loss" and so on.

    Each epoch is a row, and so is each validation within an epoch. Rows are in the order of "step". A value that a row does not have is
    NaN: a validation within an epoch has only "epoch", "step" and measures of validation.
    """

    def frame(self) -> Any:
        """A pandas.DataFrame. ImportError if pandas is not installed."""
        import pandas  # type: ignore[import]
        return pandas.DataFrame(dict(self)).set_index("epoch")


def _rows_of(frame: Any) -> "Iterator[tuple[int, prediction_pb2.PredictInput]]":
    """The parts of a pandas.DataFrame that fit into a call, as CSV tables, each with the number of its rows."""
    if len(frame) == 0:
        raise InvalidRequest(NO_SAMPLES, "INVALID_ARGUMENT")
    names = list(frame.columns)
    # Numbers that pandas gives to columns without names would be read as a sample.
    has_names = names != list(range(len(names)))
    wrong = [name for name in names if not isinstance(name, str)]
    if has_names and wrong:
        raise InvalidRequest(f"cannot predict: the column name {wrong[0]!r} is not a text; name each column as in the training table",
                             "INVALID_ARGUMENT")
    begin, each = 0, MOST_SAMPLES
    while begin < len(frame):
        part = frame.iloc[begin:begin + each]
        table = part.to_csv(index=False, header=has_names).encode()
        if len(table) > MOST_BYTES and len(part) > 1:
            each = len(part) // 2
            continue
        end = begin + len(part)
        yield len(part), prediction_pb2.PredictInput(label=f"samples[{begin}:{end}]", csv=table)
        begin = end


class Job:
    """A job of the daemon. Each method asks the daemon. Thread-safe."""

    def __init__(self, client: "Client", name: str) -> None:
        self._client = client
        # "jobs/<id>".
        self.name = name

    def __repr__(self) -> str:
        return f"<tandem.Job {self.name}>"

    def get(self) -> job_pb2.Job:
        """The job as it is now. NotFound if it was deleted."""
        return self._client.connection.call(self._client.calls.jobs.get_job, job_service_pb2.GetJobRequest(name=self.name))

    @property
    def state(self) -> str:
        """The job's state, such as "running"."""
        return state_name(self.get().state)

    def events(self, after: int = 0) -> EventStream:
        """All events after a sequence number, each once and in order, until the job ends. Reconnects after a break."""
        return EventStream(self._client.connection, self._client.calls, self.name, after)

    def follow(self, progress: Optional[bool] = None) -> Iterator[Epoch]:
        """The epochs, each once and in order, until the job ends. Past epochs come immediately. Reconnects after a
        break.

        Leaves out an epoch that is trained again after a restart. Raises JobFailed at the end if the job failed, unless
        it was resumed.

        `progress` shows a bar on standard error. Default: only in a terminal and in a notebook.
        """
        bar = Bar(progress)
        events = self.events()
        try:
            yield from epochs_of(self.name, events, bar)
        finally:
            events.close()
            bar.clear()

    def follow_validations(self) -> Iterator[Validation]:
        """The validations, within epochs and at their ends, each once and in order, until the job ends. Otherwise as
        `follow`.

        Leaves out a step that is validated again after a restart.
        """
        events = self.events()
        try:
            yield from validations_of(self.name, events)
        finally:
            events.close()

    def wait(self) -> job_pb2.Job:
        """Waits until the job ends. Raises JobFailed if the job failed, and was not resumed."""
        for _ in self.follow(progress=False):
            pass
        return self.get()

    def pause(self) -> None:
        """Stops the job for now, with a checkpoint."""
        self._client.connection.call(self._client.calls.jobs.pause_job, job_service_pb2.PauseJobRequest(name=self.name))

    def resume(self) -> None:
        """Puts a paused or failed job back into the queue."""
        self._client.connection.call(self._client.calls.jobs.resume_job, job_service_pb2.ResumeJobRequest(name=self.name),
                                     self._client.connection.reading_timeout)

    def cancel(self) -> None:
        """Stops the job for good; its checkpoints and its model stay."""
        self._client.connection.call(self._client.calls.jobs.cancel_job, job_service_pb2.CancelJobRequest(name=self.name))

    def checkpoints(self) -> List[event_pb2.Checkpoint]:
        """The checkpoints that the daemon keeps, the newest first. "model-<step>.safetensors" names the model of each."""
        return [one for page in self._client.connection.pages(self._client.calls.jobs.list_checkpoints,
                                                              job_service_pb2.ListCheckpointsRequest(job=self.name))
                for one in page.checkpoints]

    def fork(self, job: "Optional[JobLike]" = None, set: Optional[Mapping[str, Any]] = None, *, step: Optional[int] = None,
             request_id: str = "") -> "Job":
        """Submits a job that continues from a checkpoint of this job, and returns it. This job does not change.

        `step` names the checkpoint. Default: the newest. The new job is `job`, by default this job, with the changes of
        `set`: {"training.epochs": 25}. Its network and its optimizer must be the checkpoint's. `request_id` is as in
        `Client.submit`.
        """
        request = job_service_pb2.ForkJobRequest(name=self.name, step=step, request_id=request_id)
        if job is not None or set:
            request.spec.CopyFrom(self._client.parse(self.get().spec if job is None else job, set))
        return Job(self._client, self._client.connection.create(self._client.calls.jobs.fork_job, request).name)

    def delete(self) -> None:
        """Removes the job and its files. InvalidRequest if the job has not ended."""
        self._client.connection.call(self._client.calls.jobs.delete_job, job_service_pb2.DeleteJobRequest(name=self.name))

    def read(self, artifact: str = MODEL) -> bytes:
        """The content of one of the job's files. Continues after a broken connection.

        Raises TandemError with the code DATA_LOSS if a running job replaced the file meanwhile.
        """
        connection, patience, data = self._client.connection, Patience(self._client.connection.reconnect_timeout), bytearray()
        sizes, calls, is_read = set(), 0, False
        while not is_read:
            calls += 1
            try:
                connection.check()
                request = job_service_pb2.ReadArtifactRequest(name=self.name, artifact=artifact, offset=len(data))
                for piece in self._client.calls.jobs.read_artifact(request, timeout=NO_TIMEOUT):
                    data += piece.data
                    sizes.add(piece.size_bytes)
                    patience.reset()
                is_read = True
            except grpc.RpcError as error:
                patience.wait(from_rpc(error, connection.address))
        # One call reads one file; each further call may find another.
        sums = [one.sha256 for one in self.get().artifacts if one.name == artifact and one.sha256] if calls > 1 else []
        if sizes not in (set(), {len(data)}) or sums not in ([], [hashlib.sha256(data).hexdigest()]):
            raise TandemError(f"cannot finish {artifact}: the daemon's file changed meanwhile; fetch it again", "DATA_LOSS")
        return bytes(data)

    def download(self, to: "Union[str, os.PathLike[str]]", artifact: Optional[str] = None) -> pathlib.Path:
        """Writes one of the job's files to the file or folder `to`, and returns the file's path.

        If `artifact` is missing, and `to` ends with the name of one of the job's files, this file is written:
        "best.safetensors", "model-<step>.safetensors", "job.yaml". Otherwise "model.safetensors" is written. If `to`
        ends with "/", it is a folder, and is created if it is missing. NotFound if the job does not have the file.
        InvalidRequest if the path is a device, a pipe or a socket.
        """
        path = pathlib.Path(to)
        # pathlib drops the slash, and the model would get the folder's name.
        if os.fspath(to).endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            artifact = MODEL if artifact is None else artifact
            path = path / artifact
        elif artifact is None:
            is_own = _RESERVED.fullmatch(path.name) or any(one.name == path.name for one in self.get().artifacts)
            artifact = path.name if is_own else MODEL
        part = _part_of(path, "download")
        part.write_bytes(self.read(artifact))
        part.replace(path)
        return path

    def export(self, to: "Union[str, os.PathLike[str]]", artifact: str = MODEL) -> pathlib.Path:
        """Writes the model as an ONNX file, and returns the file's path. A present file is replaced.

        The file's input "input" has the job's own samples, [batch, ...], before normalization; its output "output" has what
        `predict` returns. `artifact` is the model, as for `model`. NotFound if there is no model yet.
        """
        path = pathlib.Path(to)
        part = _part_of(path, "export")
        request = model_service_pb2.ExportModelRequest(name=self.name, artifact=artifact)
        part.write_bytes(b"".join(response.data for response in self._client.connection.call(
            lambda request, timeout: list(self._client.calls.models.export_model(request, timeout=NO_TIMEOUT)), request)))
        part.replace(path)
        return path

    def model(self, artifact: str = MODEL) -> "Dict[str, numpy.ndarray[Any, Any]]":
        """The trained weights by their names. NotFound if there is no model yet.

        "model-<step>.safetensors" is the model of a checkpoint, also while the job runs.
        """
        return safetensors.read(self.read(artifact))[0]

    def evaluate(self, dataset: Optional[DatasetLike] = None, *, artifact: str = MODEL, split: str = "",
                 metrics: Union[str, Iterable[str]] = (), batch_size: int = 0) -> Evaluation:
        """The loss and the metrics of the job's model over a data set, by default over the job's own validation samples.

        `artifact` is the model, as for `model`. `split` is "training" or "validation". `metrics` are named as in a job file, by default
        the job's: ["accuracy", "confusion_matrix"].
        """
        request = model_service_pb2.EvaluateRequest(name=self.name, artifact=artifact, batch_size=batch_size)
        self._choose(request, dataset, split)
        if isinstance(metrics, str):
            metrics = [metrics]
        request.metrics.extend(_enum(metric_pb2.Metric, "METRIC_", "metrics", name) for name in metrics)
        responses = self._client.connection.call(
            lambda request, timeout: list(self._client.calls.models.evaluate(request, timeout=NO_TIMEOUT)), request)
        evaluation = responses[-1].evaluation
        return Evaluation(measures(evaluation), evaluation.samples, evaluation.classification,
                          [notice for response in responses for notice in response.notices])

    def _choose(self, request: "Union[model_service_pb2.EvaluateRequest, model_service_pb2.PredictRequest]",
                dataset: Optional[DatasetLike], split: str) -> None:
        """Sets the data set and its part."""
        if isinstance(dataset, dataset_pb2.DatasetSpec):
            request.dataset.CopyFrom(dataset)
        elif dataset is not None:
            request.dataset.CopyFrom(self._client.parse({"dataset": {"name": dataset.removeprefix("datasets/")} if isinstance(dataset, str) else dataset}).dataset)
        if split:
            request.split = _enum(model_service_pb2.DatasetSplit, "DATASET_SPLIT_", "split", split)

    def predict(self, samples: Any = None, artifact: str = MODEL, *, dataset: Optional[DatasetLike] = None,
                split: str = "") -> "numpy.ndarray[Any, Any]":
        """The network's outputs for samples; for classifiers, the logits. The samples are prepared like the job's
        samples.

        `samples` has the shape and type of a sample of the job, or one more dimension in front for several samples. The
        result has one more dimension in the same case. For a model of a table, `samples` may be a pandas.DataFrame: columns
        are matched by their names, and other columns are left out. Columns without names, which pandas numbers from 0, are
        taken in their order. InvalidRequest if another column's name is not a text. `artifact` is the model, as for `model`.

        Without `samples`, the samples are those of a data set, in order: `dataset` and `split` are as for `evaluate`, and at
        least one of them is given.

        A warning names each cell that is no category of the model. InvalidRequest if an array has masked values.
        """
        predictions, many = self._ask(samples, artifact, dataset, split, top_k=0, outputs=True)
        outputs = numpy.array([numpy.array(one.outputs, "float32").reshape(tuple(one.output_shape)) for one in predictions])
        return outputs if many else outputs[0]

    def classify(self, samples: Any = None, top_k: int = 1, artifact: str = MODEL, *, dataset: Optional[DatasetLike] = None,
                 split: str = "") -> Classes:
        """The likeliest classes of samples, as `predict` takes them."""
        predictions, _ = self._ask(samples, artifact, dataset, split, top_k=top_k, outputs=False)
        of_dataset = any(one.HasField("true_class") for one in predictions)
        return Classes(numpy.array([[one.index for one in each.classes] for each in predictions]),
                       numpy.array([[one.probability for one in each.classes] for each in predictions]),
                       [[one.name for one in each.classes] for each in predictions],
                       numpy.array([one.true_class.index if one.HasField("true_class") else -1 for one in predictions])
                       if of_dataset else None)

    def _ask(self, samples: Any, artifact: str, dataset: Optional[DatasetLike], split: str, top_k: int,
             outputs: bool) -> "tuple[List[prediction_pb2.Prediction], bool]":
        if (samples is None) == (dataset is None and not split):
            raise InvalidRequest("cannot predict: give either samples, or dataset or split", "INVALID_ARGUMENT")
        if samples is None:
            request = model_service_pb2.PredictRequest(name=self.name, artifact=artifact, top_k=top_k, outputs=outputs)
            self._choose(request, dataset, split)
            return self._call_predict(request), True
        # A pandas.Series has no columns, and is an array.
        is_frame = hasattr(samples, "to_csv") and hasattr(samples, "columns")
        parts, many = (_rows_of(samples), True) if is_frame else self._arrays_of(samples)
        predictions: List[prediction_pb2.Prediction] = []
        for count, part in parts:
            request = model_service_pb2.PredictRequest(name=self.name, artifact=artifact, top_k=top_k, outputs=outputs, inputs=[part])
            answers = self._call_predict(request)
            if len(answers) != count:
                raise InvalidRequest(f"cannot predict: {count} samples gave {len(answers)} predictions; "
                                     "if the table's columns are named by numbers, give it the names of the training table", "INVALID_ARGUMENT")
            predictions += answers
        return predictions, many

    def _call_predict(self, request: model_service_pb2.PredictRequest) -> List[prediction_pb2.Prediction]:
        responses = self._client.connection.call(
            lambda request, timeout: list(self._client.calls.models.predict(request, timeout=NO_TIMEOUT)), request)
        for notice in [notice for response in responses for notice in response.notices]:
            # At the caller of `predict` or `classify`.
            warnings.warn(notice, stacklevel=4)
        return [one for response in responses for one in response.predictions]

    def _arrays_of(self, samples: Any) -> "tuple[Iterator[tuple[int, prediction_pb2.PredictInput]], bool]":
        """The parts of an array that fit into a call, each with the number of its samples, and whether the array has several samples."""
        array = array_of(samples, "cannot predict: the array of samples", "give numbers, or a pandas.DataFrame for the rows of a table")
        dimensions = len(self.get().spec.model.input.shape) or array.ndim - 1
        many = array.ndim != dimensions
        if many and array.ndim != dimensions + 1:
            raise InvalidRequest(f"cannot predict: the samples have {array.ndim} dimensions; give {dimensions} for one sample or "
                                 f"{dimensions + 1} for many", "INVALID_ARGUMENT")
        if not many:
            array = array[None]
        if len(array) == 0:
            raise InvalidRequest(NO_SAMPLES, "INVALID_ARGUMENT")
        each = max(1, min(MOST_SAMPLES, MOST_BYTES // max(1, array[0].nbytes)))

        def parts() -> "Iterator[tuple[int, prediction_pb2.PredictInput]]":
            for begin in range(0, len(array), each):
                part = numpy.ascontiguousarray(array[begin:begin + each])
                file = io.BytesIO()
                numpy.save(file, part)
                yield len(part), prediction_pb2.PredictInput(npy=file.getvalue())
        return parts(), many

    def epochs(self) -> List[Epoch]:
        """The epochs so far, each number once. An epoch that is trained again after a restart replaces the earlier one and all later."""
        return newest(self._log())[0]

    def _log(self) -> Iterator[Event]:
        """The events so far that are no reports."""
        request = job_service_pb2.GetJobHistoryRequest(name=self.name, view=job_service_pb2.JOB_HISTORY_VIEW_EVENTS)
        for page in self._client.connection.pages(self._client.calls.jobs.get_job_history, request,
                                                  self._client.connection.history_timeout):
            yield from page.events

    def _rows(self) -> "List[Dict[str, float]]":
        """The rows of the history, in the order of their steps."""
        epochs, validations = newest(self._log())
        rows: Dict[int, Dict[str, float]] = {}
        for epoch in epochs:
            rows[epoch.step] = {"epoch": epoch.number, "step": epoch.step, "learning_rate": epoch.learning_rate,
                                "seconds": epoch.seconds, "images_per_second": epoch.images_per_second, **epoch.training}
        for validation in validations:
            row = rows.setdefault(validation.step, {"epoch": validation.epoch, "step": validation.step})
            row.update({f"validation_{name}": value for name, value in validation.measures.items()})
        return [rows[step] for step in sorted(rows)]

    def history(self) -> Any:
        """The epochs and validations so far, as columns: a pandas.DataFrame if pandas is installed, else a History, a dict of arrays."""
        columns = self.columns()
        try:
            return columns.frame()
        except ImportError:
            return columns

    def columns(self) -> History:
        """The epochs and validations so far, as a dict of arrays."""
        return _columns(self._rows())

    def plot(self, *measures: str) -> Any:
        """Draws measures, by default the losses, over the steps, and returns matplotlib's Figure. Needs matplotlib."""
        try:
            from matplotlib import pyplot  # type: ignore[import]
        except ImportError as error:
            raise ImportError("cannot plot: matplotlib is not installed; pip install matplotlib") from error
        rows = self._rows()
        columns = _columns(rows)
        wanted = measures or tuple(name for name in ("loss", "validation_loss") if name in columns)
        missing = [name for name in wanted if name not in list(columns)]
        if missing:
            raise NotFound(f"cannot plot {missing[0]}: no such column; give {', '.join(columns)}", "NOT_FOUND")
        figure, axes = pyplot.subplots()
        for name in wanted:
            # A row without the measure does not break the line, but a measure that is NaN does.
            points = [(row["step"], row[name]) for row in rows if name in row]
            axes.plot([step for step, _ in points], [value for _, value in points], label=name)
        axes.set_xlabel("step")
        axes.legend()
        return figure


def array_of(value: Any, what: str, mend: str) -> "numpy.ndarray[Any, Any]":
    """The value as an array.

    Raises InvalidRequest, which begins with `what`, if the value has masked values, Python objects or rows of several lengths. The `mend`
    is of the latter two.
    """
    # numpy.asarray drops the masks of a list's arrays, too.
    parts = value if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(part, numpy.ma.MaskedArray) and numpy.ma.is_masked(part) for part in parts):
        raise InvalidRequest(f"{what} has masked values; fill them, such as by .filled(0), or leave their samples out", "INVALID_ARGUMENT")
    try:
        array = numpy.asarray(value)
    except ValueError:
        array = numpy.array(None)
    if array.dtype.hasobject:
        raise InvalidRequest(f"{what} holds Python objects or rows of several lengths; {mend}", "INVALID_ARGUMENT")
    return array


def _columns(rows: "List[Dict[str, float]]") -> History:
    names = list(dict.fromkeys(name for row in sorted(rows, key=len, reverse=True) for name in row)) or ["epoch"]
    return History({name: numpy.array([row.get(name, numpy.nan) for row in rows]) for name in names})


def epochs_of(name: str, events: EventStream, bar: "Bar") -> Iterator[Epoch]:
    """The epochs among a job's events, without those that were trained again after a restart. JobFailed if the job's last state is
    FAILED."""
    last = 0
    for event in _until_failure(name, events):
        kind = event.WhichOneof("kind")
        if kind == "progress":
            bar.show(event.progress.step, event.progress.steps, f"epoch {event.progress.epoch}/{event.progress.epochs}")
        elif kind == "epoch":
            bar.clear()
            if event.epoch.epoch > last:
                last = event.epoch.epoch
                yield epoch_of(event)


def validations_of(name: str, events: EventStream) -> Iterator[Validation]:
    """The validations among a job's events, as `epochs_of`."""
    last = 0
    for event in _until_failure(name, events):
        validation = validation_of(event)
        if validation is not None and validation.step > last:
            last = validation.step
            yield validation


def _until_failure(name: str, events: Iterable[Event]) -> Iterator[Event]:
    """The events. JobFailed after them if the job's last state is FAILED."""
    failure = None
    for event in events:
        if event.WhichOneof("kind") == "state_change":
            # A failed job may be resumed, so only the end of the stream is final.
            failure = event.state_change if event.state_change.to == event_pb2.JOB_STATE_FAILED else None
        yield event
    if failure is not None:
        raise JobFailed(f"{name} failed: {failure.message}", "ABORTED", event_pb2.StateReason.Name(failure.reason)[len("STATE_REASON_"):],
                        mend=mend_of(failure.message))


class Bar:
    """A line of progress on the standard error."""

    def __init__(self, shown: Optional[bool]) -> None:
        self._shown = (sys.stderr.isatty() or "ipykernel" in sys.modules) if shown is None else shown
        self._width = 0

    def show(self, done: int, total: int, text: str) -> None:
        if not self._shown or total <= 0:
            return
        filled = 30 * min(done, total) // total
        line = f"[{'#' * filled}{'.' * (30 - filled)}] {100 * done // total:3d} % {text}"
        print("\r" + line.ljust(self._width), end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def clear(self) -> None:
        if self._width:
            print("\r" + " " * self._width + "\r", end="", file=sys.stderr, flush=True)
            self._width = 0


def _enum(values: Any, prefix: str, field: str, name: str) -> Any:
    """The value of an enum with a short name, such as "top_k" of METRIC_TOP_K."""
    names = [each[len(prefix):].lower() for each, number in values.items() if number]
    if name not in names:
        wrong = FieldViolation(field, f"is {name!r}; give {', '.join(names)}")
        raise InvalidRequest(f"{field}: {wrong.description}", "INVALID_ARGUMENT", violations=[wrong])
    return values.Value(prefix + name.upper())


def state_name(state: int) -> str:
    """ "running" of JOB_STATE_RUNNING. """
    return event_pb2.JobState.Name(state)[len("JOB_STATE_"):].lower()  # type: ignore[arg-type]
