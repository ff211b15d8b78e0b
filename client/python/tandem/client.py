"""The connection to a daemon, and what can be asked of it."""

import hashlib
import json
import os
import pathlib
import tempfile
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NoReturn, Optional, Union

import grpc  # type: ignore[import]
import numpy
from google.protobuf import json_format
from google.protobuf.message import Message

from tandem.calls import Calls
from tandem.connection import CancellableChannel, Connection, Options, Patience, check_cancelled
from tandem.errors import FieldViolation, InvalidRequest, JobFileError, NotFound, TandemError, Unavailable, from_rpc, wrong_type
from tandem.job import Bar, Job, array_of
from tandem.sweep import Sweep
from tandem.v1 import (daemon_service_pb2, dataset_pb2, dataset_service_pb2, device_pb2, job_pb2, job_service_pb2, sweep_pb2,
                       sweep_service_pb2)

# A job file's path, a job as a dict in the form of job files, or a message.
JobLike = Union[str, "os.PathLike[str]", Mapping[str, Any], job_pb2.JobSpec]
# A sweep file's path, a sweep as a dict in the form of sweep files, or a message. The dict's "base" may be any JobLike.
SweepLike = Union[str, "os.PathLike[str]", Mapping[str, Any], sweep_pb2.Sweep]
PIECE = 1 << 18
_ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2", ".tbz2", ".tbz", ".tar.zst", ".tzst")


def connect(address: Optional[str] = None, *, state_folder: Optional[str] = None, token: Optional[str] = None,
            token_file: Optional[str] = None, tls: bool = False, tls_ca: Optional[str] = None, tls_cert: Optional[str] = None,
            tls_key: Optional[str] = None, tls_server_name: Optional[str] = None, plaintext: bool = False,
            timeout: Optional[float] = None, reconnect_timeout: Optional[float] = None) -> "Client":
    """Returns a client of a daemon. The first call connects.

    Missing arguments come from the environment, as for the command line: TANDEM_ADDRESS, TANDEM_STATE,
    TANDEM_TOKEN_FILE, TANDEM_TLS_CA, TANDEM_TLS_CERT, TANDEM_TLS_KEY, TANDEM_TLS_SERVER_NAME, TANDEM_TIMEOUT and
    TANDEM_RECONNECT_TIMEOUT. Otherwise the state folder gives the address and the token.

    `timeout` limits a call, and `reconnect_timeout` the time without a connection. Both are in seconds. The client
    ignores http_proxy and other proxies of the environment.
    """
    return Client(Options(address, state_folder, token, token_file, tls, tls_ca, tls_cert, tls_key, tls_server_name, plaintext,
                          timeout, reconnect_timeout))


class Client:
    """A daemon's client. Thread-safe."""

    def __init__(self, options: Optional[Options] = None) -> None:
        self.connection = Connection(options or Options())
        # Every method of the API, as it is.
        self.calls = Calls(CancellableChannel(self.connection.channel), self.connection.metadata)
        self.datasets = Datasets(self)

    def __repr__(self) -> str:
        return f"<tandem.Client {self.connection.address}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("cannot pickle a client or its jobs: the connection belongs to this process; send jobs' names, and connect in the "
                        "other process")

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection. Jobs go on."""
        self.connection.close()

    def parse(self, job: JobLike, set: Optional[Mapping[str, Any]] = None) -> job_pb2.JobSpec:
        """Reads a job file or a dict in its form. `set` changes fields by their paths: {"training.epochs": 10}.

        Raises JobFileError with the place of each problem.
        """
        if isinstance(job, job_pb2.JobSpec) and not set:
            return job
        text, changes = _Text(job, "the job"), _changes(set)
        parsed = self.connection.call(self.calls.jobs.parse_job, job_service_pb2.ParseJobRequest(
            text=text.content, overrides=_overrides(changes)))
        text.check(parsed.problems, changes)
        return parsed.spec

    def parse_sweep(self, sweep: SweepLike, set: Optional[Mapping[str, Any]] = None) -> sweep_pb2.Sweep:
        """Reads a sweep file or a dict in its form. `set` changes fields of the base, as in `parse`.

        Raises JobFileError with the place of each problem.
        """
        if isinstance(sweep, sweep_pb2.Sweep) and not set:
            return sweep
        if isinstance(sweep, Mapping) and "base" in sweep and not isinstance(sweep["base"], Mapping):
            sweep = {**sweep, "base": _dict(self.parse(sweep["base"]))}
        text, changes = _Text(sweep, "the sweep"), _changes(set)
        parsed = self.connection.call(self.calls.sweeps.parse_sweep, sweep_service_pb2.ParseSweepRequest(
            text=text.content, overrides=_overrides(changes)))
        text.check(parsed.problems, changes)
        return parsed.sweep

    def submit(self, job: JobLike, set: Optional[Mapping[str, Any]] = None, *, weights: Union[str, "os.PathLike[str]", None] = None,
               request_id: str = "") -> Job:
        """Submits a job, durably, and returns it. Waits while the daemon fetches its data.

        `weights` is a safetensors file. The job starts from its weights (`initial_weights.file`). The daemon fetches a URL
        ("https://...", "s3://..."). A file of this machine is uploaded. The
        daemon keeps the upload for a week after its last use, so that the next call sends nothing. The job keeps the file itself. Raises
        InvalidRequest if the job has a source of initial_weights, too.

        A second call with the same `request_id` and the same job returns the first call's job. At most 128 printable characters.
        Default: a random id.

        Raises JobFileError, with places, if the job cannot be read. Raises InvalidRequest, with the fields' paths and without places, if
        the daemon refuses values. Both have all fields that are wrong. Raises Unavailable if no answer came. Then the daemon may have the
        job: the error names the request id, and a call with this id creates no second job.
        """
        request = job_service_pb2.CreateJobRequest(spec=self._with_weights(self.parse(job, set), weights), request_id=request_id)
        return Job(self, self.connection.create(self.calls.jobs.create_job, request).name)

    def validate(self, job: JobLike, set: Optional[Mapping[str, Any]] = None, *,
                 weights: Union[str, "os.PathLike[str]", None] = None) -> job_pb2.JobSpec:
        """Checks a job as `submit` does, and returns it as it would be, with its defaults."""
        request = job_service_pb2.CreateJobRequest(spec=self._with_weights(self.parse(job, set), weights), validate_only=True)
        return self.connection.call(self.calls.jobs.create_job, request, self.connection.reading_timeout).spec

    def _with_weights(self, spec: job_pb2.JobSpec, weights: Union[str, "os.PathLike[str]", None]) -> job_pb2.JobSpec:
        """The job with an upload of the file `weights` as initial weights."""
        if weights is None:
            return spec
        given = spec.initial_weights.WhichOneof("source")
        if given is not None:
            raise InvalidRequest(f"weights: is {os.fspath(weights)}, but the job has initial_weights.{given}; give only one of them",
                                 "INVALID_ARGUMENT")
        # The caller's message stays as it is.
        copy = job_pb2.JobSpec()
        copy.CopyFrom(spec)
        if isinstance(weights, str) and "://" in weights:
            copy.initial_weights.file = weights
            return copy
        path = pathlib.Path(weights)
        if not path.is_file():
            raise InvalidRequest(f"weights: there is no file {path}", "INVALID_ARGUMENT")
        copy.initial_weights.file = f"{self.datasets._upload_files([(path.name, path)])}/{path.name}"
        return copy

    def job(self, name: str) -> Job:
        """The job with this id. NotFound if there is none."""
        job = Job(self, _full_name("jobs/", name))
        job.get()
        return job

    def jobs(self) -> Iterator[Job]:
        """All jobs, the newest first."""
        for page in self.connection.pages(self.calls.jobs.list_jobs, job_service_pb2.ListJobsRequest(page_size=100)):
            yield from (Job(self, job.name) for job in page.jobs)

    def submit_sweep(self, sweep: SweepLike, set: Optional[Mapping[str, Any]] = None, *, weights: Union[str, "os.PathLike[str]", None] = None,
                     request_id: str = "") -> Sweep:
        """Submits all jobs of a sweep, durably, and returns the sweep. Waits while the daemon fetches data.

        Raises JobFileError or InvalidRequest, as `submit`. Then there is no job. `weights` and `request_id` are as in `submit`;
        all jobs start from the weights.
        """
        # The caller's message stays as it is.
        wanted = sweep_pb2.Sweep()
        wanted.CopyFrom(self.parse_sweep(sweep, set))
        wanted.base.CopyFrom(self._with_weights(wanted.base, weights))
        request = sweep_service_pb2.CreateSweepRequest(sweep=wanted, request_id=request_id)
        return Sweep(self, self.connection.create(self.calls.sweeps.create_sweep, request).name)

    def sweep(self, name: str) -> Sweep:
        """The sweep with this id. NotFound if there is none."""
        sweep = Sweep(self, _full_name("sweeps/", name))
        sweep.get()
        return sweep

    def sweeps(self) -> Iterator[Sweep]:
        """All sweeps, the newest first."""
        for page in self.connection.pages(self.calls.sweeps.list_sweeps, sweep_service_pb2.ListSweepsRequest(page_size=100)):
            yield from (Sweep(self, sweep.name) for sweep in page.sweeps)

    def daemon(self) -> daemon_service_pb2.Daemon:
        """What the daemon is: its version, its folders."""
        return self.connection.call(self.calls.daemon.get_daemon, daemon_service_pb2.GetDaemonRequest())

    def devices(self) -> List[device_pb2.Device]:
        """The daemon's devices."""
        return list(self.connection.call(self.calls.daemon.list_devices, daemon_service_pb2.ListDevicesRequest()).devices)

    def partitions(self) -> List[device_pb2.ClusterPartition]:
        """The partitions of the daemon's cluster, by name. Empty without a cluster. Unavailable if the cluster does not answer."""
        answer = self.connection.call(self.calls.daemon.list_devices, daemon_service_pb2.ListDevicesRequest())
        if answer.partitions_message:
            raise Unavailable(answer.partitions_message, "UNAVAILABLE")
        return list(answer.partitions)


class Datasets:
    """Data sets that the daemon keeps under a name."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def add(self, name: str, path: Union[str, "os.PathLike[str]"], *, validation: Union[str, "os.PathLike[str]", None] = None,
            spec: Optional[Mapping[str, Any]] = None, description: str = "", progress: Optional[bool] = None) -> dataset_pb2.Dataset:
        """Uploads data and registers them as the data set `name` for jobs. Returns the data set.

        `path` is a folder or archive of images, with a subfolder for each class, or a CSV file. `spec` has more fields
        of the data set, as in a job file: {"csv": {"target_columns": ["price"]}}. With {"webdataset": {}}, `path` and
        `validation` are shards or folders of shards.

        With another source, such as {"npy": {...}}, or if webdataset has `train`, all files of the folder `path` are
        uploaded. The source's paths are then relative to `path`, and InvalidRequest refuses `validation`.

        A later call continues an interrupted upload, also in another process. If the same data set exists, `add`
        returns it.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise wrong_type("path", path, "give a file or a folder; add_arrays takes arrays")
        files, source = _plan(pathlib.Path(path), None if validation is None else pathlib.Path(validation), dict(spec or {}))
        parsed = self._client.parse({"dataset": source}).dataset
        # An earlier call may have got no answer.
        known = self._find(name)
        ordered = sorted(files.items(), key=lambda item: item[0].encode())
        digests = [_digest(local) for _, local in ordered]
        manifest = _manifest(ordered, digests)
        if known is not None:
            if known.manifest_sha256 != manifest or known.spec != parsed:
                raise TandemError(f"cannot add {name}: a data set of this name exists; give another name, or remove it with "
                                  f"datasets.remove({name!r})", "ALREADY_EXISTS")
            if known.problem:
                raise InvalidRequest(f"cannot use the data set {name}: {known.problem}; remove it with datasets.remove({name!r}), "
                                     "and add it again", "FAILED_PRECONDITION")
            return known
        upload = self._upload(ordered, digests, manifest, Bar(progress))
        request = dataset_service_pb2.CreateDatasetRequest(
            dataset_id=name, dataset=dataset_pb2.Dataset(spec=parsed, description=description), upload=upload.name)
        # The same call again is the same request.
        request.request_id = f"python-{hashlib.sha256(request.SerializeToString(deterministic=True)).hexdigest()}"
        return self._client.connection.call(self._client.calls.datasets.create_dataset, request,
                                            self._client.connection.reading_timeout)

    def add_arrays(self, name: str, inputs: Any, targets: Any, *, validation_inputs: Any = None, validation_targets: Any = None,
                   spec: Optional[Mapping[str, Any]] = None, description: str = "",
                   progress: Optional[bool] = None) -> dataset_pb2.Dataset:
        """Uploads arrays and registers them as the data set `name` for jobs. Returns the data set.

        `inputs` are [samples, ...], and `targets` are classes [samples] or values [samples, ...]. Without validation arrays,
        {"validation_split": {"fraction": 0.1}} in `spec` takes a part of the samples. `spec` has more fields of the data set, as in a
        job file: {"npy": {"layout": "nhwc"}}. A later call with equal arrays returns the same data set. Otherwise as `add`.

        Raises InvalidRequest if an array has Python objects or masked values.
        """
        parts = {"train_inputs": inputs, "train_targets": targets, "validation_inputs": validation_inputs,
                 "validation_targets": validation_targets}
        source: Dict[str, Any] = dict((spec or {}).get("npy") or {})
        with tempfile.TemporaryDirectory(prefix="tandem-") as folder:
            for part, array in parts.items():
                if array is None:
                    continue
                numpy.save(pathlib.Path(folder, f"{part}.npy"), array_of(array, f"cannot add {name}: {part}", "give numbers"), allow_pickle=False)
                source[part] = {"path": f"{part}.npy"}
            return self.add(name, folder, spec={**(spec or {}), "npy": source}, description=description, progress=progress)

    def list(self) -> Iterator[dataset_pb2.Dataset]:
        """All data sets, by their names."""
        for page in self._client.connection.pages(self._client.calls.daemon.list_datasets,
                                                  daemon_service_pb2.ListDatasetsRequest(),
                                                  self._client.connection.reading_timeout):
            yield from page.datasets

    def get(self, name: str) -> dataset_pb2.Dataset:
        """The data set with this name. NotFound if there is none."""
        return self._client.connection.call(self._client.calls.daemon.get_dataset,
                                            daemon_service_pb2.GetDatasetRequest(name=_full_name("datasets/", name)),
                                            self._client.connection.reading_timeout)

    def remove(self, name: str) -> None:
        """Forgets a data set, and removes what was uploaded for it."""
        self._client.connection.call(self._client.calls.datasets.delete_dataset,
                                     dataset_service_pb2.DeleteDatasetRequest(name=_full_name("datasets/", name)))

    def _find(self, name: str) -> Optional[dataset_pb2.Dataset]:
        """The data set with this name, if somebody registered one."""
        try:
            found = self.get(name)
        except NotFound:
            return None
        # A public data set that was not fetched is known by its name alone.
        return found if found.origin != dataset_pb2.DATASET_ORIGIN_UNSPECIFIED else None

    def _upload_files(self, ordered: "List[tuple[str, pathlib.Path]]", progress: Optional[bool] = None) -> str:
        """Uploads files by their paths in the upload, in the order of these paths. Returns "uploads/<id>"."""
        digests = [_digest(local) for _, local in ordered]
        return self._upload(ordered, digests, _manifest(ordered, digests), Bar(progress)).name

    def _upload(self, ordered: "List[tuple[str, pathlib.Path]]", digests: List[str], manifest: bytes,
                bar: Bar) -> dataset_service_pb2.Upload:
        sizes = [local.stat().st_size for _, local in ordered]
        create = dataset_service_pb2.CreateUploadRequest(upload=dataset_service_pb2.Upload(
            manifest_sha256=manifest, files=len(ordered), bytes=sum(sizes)))
        patience, best = Patience(self._client.connection.reconnect_timeout), -1
        while True:
            # Finds the upload again, too.
            upload = self._client.connection.call(self._client.calls.datasets.create_upload, create)
            if upload.bytes_received > best:
                best = upload.bytes_received
                patience.reset()
            if upload.files_received == len(ordered):
                bar.clear()
                return upload
            # gRPC would hide an error of this machine's files.
            wrong: List[Exception] = []
            try:
                self._client.calls.datasets.upload_files(_noting(wrong, _pieces(upload, ordered, digests, sizes, bar)), timeout=None)
            except grpc.RpcError as error:
                if wrong:
                    raise wrong[0] from None
                failure = from_rpc(error, self._client.connection.address)
                # For a moment the upload stood elsewhere than it said: the broken call still ends.
                if failure.code == "ABORTED" and not failure.reason:
                    failure.code = "UNAVAILABLE"
                patience.wait(failure)


class _Text:
    """The text of a file, dict or message."""

    def __init__(self, source: Union[str, "os.PathLike[str]", Mapping[str, Any], Message], name: str) -> None:
        if not isinstance(source, (str, os.PathLike, Mapping, job_pb2.JobSpec, sweep_pb2.Sweep)):
            raise wrong_type(name, source, "give a file's path, a dict in the form of job files, or a job's `spec`")
        self._is_file = not isinstance(source, (Mapping, Message))
        if isinstance(source, (Mapping, Message)):
            self._name, self.content = name, _json(_dict(source) if isinstance(source, Message) else source)
            return
        self._name = os.fspath(source)
        try:
            self.content = pathlib.Path(self._name).read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise JobFileError(f"cannot read {self._name}: {reason}; give the path of a file in UTF-8, or a dict in the form of job files",
                               "INVALID_ARGUMENT") from error

    def check(self, problems: Iterable[job_service_pb2.JobTextProblem], changes: Mapping[str, Any]) -> None:
        """Raises JobFileError if there are problems with the text or with the changes to it."""
        paths = {f"overrides[{i}]": path for i, path in enumerate(changes)}
        violations = [FieldViolation(paths.get(one.field, one.field), one.description, one.line, one.column) for one in problems]
        lines = [(f"{self._name}:{one.line}:{one.column}: " if self._is_file and one.line else f"{self._name}: ") +
                 (f"{one.field}: " if one.field and not one.description.startswith(one.field) else "") + one.description
                 for one in violations]
        if violations:
            raise JobFileError("\n".join(lines), "INVALID_ARGUMENT", violations=violations)


def _dict(message: Message) -> Dict[str, Any]:
    """A message in the form of job files."""
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def _full_name(collection: str, name: str) -> str:
    """"jobs/<id>" of "<id>" and of "jobs/<id>"."""
    if not isinstance(name, str):
        raise wrong_type("name", name, f'give text, such as "{collection}<id>" or "<id>"')
    return name if name.startswith(collection) else collection + name


def _changes(set: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The argument `set`."""
    if not isinstance(set or {}, Mapping) or any(not isinstance(path, str) for path in set or {}):
        raise InvalidRequest(f'cannot use set: it is {set!r}; give values by the paths of fields, such as {{"training.epochs": 10}}',
                             "INVALID_ARGUMENT")
    return dict(set or {})


def _overrides(changes: Mapping[str, Any]) -> List[str]:
    return [f"{path}={_json(value)}" for path, value in changes.items()]


def _json(value: Any) -> str:
    def plain(part: Any) -> Any:
        if isinstance(part, (numpy.generic, numpy.ndarray)):
            return part.tolist()
        if isinstance(part, os.PathLike):
            return os.fspath(part)
        raise TypeError(f"cannot use {part!r}: job files have no {type(part).__name__}; give numbers, text, lists or dicts")

    return json.dumps(value, default=plain)


def _plan(path: pathlib.Path, validation: Optional[pathlib.Path], spec: Dict[str, Any]) -> "tuple[Dict[str, pathlib.Path], Dict[str, Any]]":
    """The files by their paths in the upload, and the data set whose source names them."""
    sources = ("idx", "cifar", "image_folder", "npy", "csv", "text", "webdataset")
    given = next((source for source in sources if source in spec), None)
    parts = [("train", path)] + ([("validation", validation)] if validation is not None else [])
    for _, part in parts:
        if not part.exists():
            raise InvalidRequest(f"cannot add {part}: no such file or folder", "INVALID_ARGUMENT")
    has_train = given == "webdataset" and "train" in (spec[given] or {})
    names_files = has_train or given not in (None, "image_folder", "csv", "webdataset")
    if names_files and path.is_dir():
        if validation is not None:
            raise InvalidRequest(f"cannot add {validation}: {given} names its files by paths in {path}; put the files there, and name "
                                 f"them in {given} too", "INVALID_ARGUMENT")
        return _files(path, ""), spec
    if given is None and path.suffix.lower() in (".npy", ".npz"):
        raise InvalidRequest(f'cannot add {path} alone: a data set has an array of inputs and an array of targets; give a folder with both, '
                             'and spec={"npy": {"train_inputs": {"path": "x.npy"}, "train_targets": {"path": "y.npy"}}}', "INVALID_ARGUMENT")
    is_table = path.name.lower().endswith((".csv.zip", ".tsv.zip"))
    kind = given or ("image_folder" if path.is_dir() or _archive_ending(path) and not is_table else "csv")
    source = dict(spec.get(kind) or {})
    files: Dict[str, pathlib.Path] = {}
    for name, part in parts:
        if part.is_dir():
            source[name] = name
            files.update(_files(part, name + "/"))
        else:
            source[name] = name + (_archive_ending(part) or part.suffix)
            files[source[name]] = part
    return files, {**spec, kind: source}


def _archive_ending(path: pathlib.Path) -> str:
    """The ending of an archive's name, such as ".tar.gz". Empty if the name is none of an archive."""
    return next((ending for ending in _ARCHIVES if path.name.lower().endswith(ending)), "")


def _files(folder: pathlib.Path, prefix: str) -> Dict[str, pathlib.Path]:
    """Plain files at any depth, also behind links to folders; hidden ones are left out. InvalidRequest if a link leads back."""
    found: Dict[str, pathlib.Path] = {}

    def look(here: pathlib.Path, prefix: str, above: List[pathlib.Path]) -> None:
        real = here.resolve()
        if real in above:
            raise InvalidRequest(f"cannot add {here}: it is a link back to {real}; remove the link", "INVALID_ARGUMENT")
        for local in here.iterdir():
            if local.name.startswith("."):
                continue
            if local.is_dir():
                look(local, f"{prefix}{local.name}/", [*above, real])
            elif local.is_file():
                found[prefix + local.name] = local

    look(folder, prefix, [])
    if not found:
        raise InvalidRequest(f"cannot add {folder}: there are no files in it", "INVALID_ARGUMENT")
    return found


def _digest(local: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with local.open("rb") as file:
        for piece in iter(lambda: file.read(PIECE), b""):
            check_cancelled()
            digest.update(piece)
    return digest.hexdigest()


def _manifest(ordered: "List[tuple[str, pathlib.Path]]", digests: List[str]) -> bytes:
    return hashlib.sha256("".join(f"{digest}  {path}\n" for (path, _), digest in zip(ordered, digests)).encode()).digest()


def _noting(errors: List[Exception], items: Iterator[Any]) -> Iterator[Any]:
    """The items. Their error is noted before it is raised."""
    try:
        yield from items
    except Exception as error:
        errors.append(error)
        raise


def _pieces(upload: dataset_service_pb2.Upload, ordered: "List[tuple[str, pathlib.Path]]", digests: List[str], sizes: List[int],
            bar: Bar) -> Iterator[dataset_service_pb2.UploadFilesRequest]:
    offset, sent, name = upload.next_offset, upload.bytes_received, upload.name
    for i in range(upload.files_received, len(ordered)):
        head = dataset_service_pb2.UploadFile(path=ordered[i][0], size=sizes[i], sha256=bytes.fromhex(digests[i]), offset=offset)
        with ordered[i][1].open("rb") as file:
            file.seek(offset)
            first = True
            while first or offset < sizes[i]:
                data = file.read(min(PIECE, sizes[i] - offset))
                if offset < sizes[i] and not data:
                    raise InvalidRequest(f"cannot upload {ordered[i][1]}: it became shorter; add it again", "FAILED_PRECONDITION")
                offset += len(data)
                sent += len(data)
                yield dataset_service_pb2.UploadFilesRequest(name=name, file=head if first else None, data=data)
                name, first = "", False
                bar.show(sent, upload.bytes, "uploaded")
        offset = 0
