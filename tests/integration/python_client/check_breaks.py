"""Checks the installed client against fake daemons and networks that break, fall silent or answer late: check_breaks.py."""

import asyncio
import hashlib
import os
import socket
import threading
import time
import typing
from concurrent import futures

import grpc

import tandem
import tandem.aio
import tandem.connection
import tandem.job
from tandem.details import error_details_pb2, status_pb2
from tandem.v1 import (daemon_service_pb2, daemon_service_pb2_grpc, dataset_pb2, dataset_service_pb2, dataset_service_pb2_grpc,
                       event_pb2, job_pb2, job_service_pb2, job_service_pb2_grpc, model_service_pb2_grpc, sweep_pb2,
                       sweep_service_pb2_grpc)

QUEUED, RUNNING, FAILED, SUCCEEDED, CANCELLED = (event_pb2.JobState.Value(f"JOB_STATE_{name}") for name in (
    "QUEUED", "RUNNING", "FAILED", "SUCCEEDED", "CANCELLED"))


class FakeDaemon:
    """Answers methods on loopback: FakeDaemon(WatchJob=function(request, context))."""

    def __init__(self, **methods: typing.Callable) -> None:
        self._server = grpc.server(futures.ThreadPoolExecutor(32))
        for servicer, add in ((job_service_pb2_grpc.JobServiceServicer(), job_service_pb2_grpc.add_JobServiceServicer_to_server),
                              (daemon_service_pb2_grpc.DaemonServiceServicer(),
                               daemon_service_pb2_grpc.add_DaemonServiceServicer_to_server),
                              (dataset_service_pb2_grpc.DatasetServiceServicer(),
                               dataset_service_pb2_grpc.add_DatasetServiceServicer_to_server),
                              (model_service_pb2_grpc.ModelServiceServicer(), model_service_pb2_grpc.add_ModelServiceServicer_to_server),
                              (sweep_service_pb2_grpc.SweepServiceServicer(), sweep_service_pb2_grpc.add_SweepServiceServicer_to_server)):
            for name in methods.keys() & set(dir(servicer)):
                setattr(servicer, name, methods[name])
            add(servicer, self._server)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def __enter__(self) -> "FakeDaemon":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(None).wait()


def log(*entries: "int | tuple[int, str]") -> "list[event_pb2.JobEvent]":
    """The events of a job: a number is a state, and ("epoch", number) is an epoch."""
    events = []
    for sequence, entry in enumerate(entries, 1):
        event = event_pb2.JobEvent(job="jobs/a", sequence=sequence)
        if isinstance(entry, tuple):
            event.epoch.epoch = entry[1]
        else:
            event.state_change.to = entry
            event.state_change.message = f"change {sequence}"
            event.terminal = entry in (FAILED, SUCCEEDED, CANCELLED)
        events.append(event)
    return events


def answer(context: grpc.ServicerContext) -> None:
    """The daemon answers a stream before its first event."""
    context.send_initial_metadata((("tandem-call-id", "1"),))


def check_resumed_job() -> None:
    """A failure counts only if the job's last state is FAILED, also if the connection breaks after an earlier failure."""
    resumed = log(QUEUED, ("epoch", 1), FAILED, QUEUED, ("epoch", 2), SUCCEEDED)
    failed = log(QUEUED, ("epoch", 1), FAILED, QUEUED, ("epoch", 2), FAILED)

    def watch(request, context):
        for event in (resumed if request.name == "jobs/resumed" else failed)[request.after_sequence:]:
            yield event
            if event.sequence == 3:
                context.abort(grpc.StatusCode.UNAVAILABLE, "broken")

    def expect_failure(follow: typing.Callable, epochs: "list[int]") -> None:
        try:
            follow()
            raise SystemExit("a failed job did not fail")
        except tandem.JobFailed as error:
            assert error.message == "jobs/failed failed: change 6", error
        assert epochs == [1, 2], epochs

    async def follow_async(name: str, epochs: "list[int]") -> None:
        async with tandem.aio.connect(daemon.address, token="x") as client:
            async for epoch in (await client.job(name)).follow():
                epochs.append(epoch.number)

    with FakeDaemon(WatchJob=watch, GetJob=lambda request, context: job_pb2.Job(name=request.name)) as daemon:
        client = tandem.connect(daemon.address, token="x")
        assert [epoch.number for epoch in client.job("resumed").follow()] == [1, 2]
        assert client.job("resumed").wait().name == "jobs/resumed"
        epochs: "list[int]" = []
        expect_failure(lambda: epochs.extend(epoch.number for epoch in client.job("failed").follow()), epochs)
        epochs = []
        asyncio.run(follow_async("resumed", epochs))
        assert epochs == [1, 2], epochs
        epochs = []
        expect_failure(lambda: asyncio.run(follow_async("failed", epochs)), epochs)


def check_quiet_streams() -> None:
    """A stream that held without events has the whole time to reconnect after its next break."""
    calls = []

    def watch(request, context):
        calls.append(request.after_sequence)
        if len(calls) == 1:
            yield log(QUEUED)[0]
        elif len(calls) == 4:
            yield log(QUEUED, SUCCEEDED)[1]
            return
        else:
            # Longer than the client tries to reconnect.
            answer(context)
            time.sleep(1.3)
        context.abort(grpc.StatusCode.UNAVAILABLE, "broken")

    with FakeDaemon(WatchJob=watch) as daemon:
        client = tandem.connect(daemon.address, token="x", reconnect_timeout=1)
        events = tandem.Job(client, "jobs/a").events()
        assert [event.sequence for event in events] == [1, 2]
        assert events.reconnections == 3 and calls == [0, 1, 1, 1], calls


def check_streams_that_never_hold() -> None:
    """A stream that is cut at once again and again ends after the time to reconnect."""
    def watch(request, context):
        answer(context)
        context.abort(grpc.StatusCode.UNAVAILABLE, "broken")

    with FakeDaemon(WatchJob=watch) as daemon:
        client = tandem.connect(daemon.address, token="x", reconnect_timeout=1)
        begin = time.monotonic()
        try:
            next(tandem.Job(client, "jobs/a").events())
            raise SystemExit("a stream without events has one")
        except tandem.Unavailable as error:
            assert "broken" in error.message, error
        assert 1 <= time.monotonic() - begin < 10, time.monotonic() - begin


def check_break_after_a_fetch() -> None:
    """A daemon that answers that it fetches data is connected, so the next break has the whole time."""
    fetched = status_pb2.Status(code=14)
    fetched.details.add(type_url="type.googleapis.com/google.rpc.ErrorInfo",
                        value=error_details_pb2.ErrorInfo(reason="DATA_BEING_FETCHED").SerializeToString())
    breaks, fetching = [], []

    def create(request, context):
        now = time.monotonic()
        # The second break comes when the time since the first one is over.
        if not breaks or len(breaks) == 1 and fetching and now > breaks[0] + 1.5:
            breaks.append(now)
            context.abort(grpc.StatusCode.UNAVAILABLE, "broken")
        if len(breaks) == 1:
            fetching.append(now)
            context.set_trailing_metadata((("grpc-status-details-bin", fetched.SerializeToString()),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "fetching")
        return job_pb2.Job(name="jobs/a")

    with FakeDaemon(CreateJob=create) as daemon:
        client = tandem.connect(daemon.address, token="x", reconnect_timeout=1)
        assert client.submit(job_pb2.JobSpec()).name == "jobs/a"
        assert len(breaks) == 2, breaks


class SilentNetwork:
    """Passes connections on. After `fall_silent`, the connections so far stay open, but nothing passes."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._silenced: "set[socket.socket]" = set()
        self._open: "list[socket.socket]" = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def fall_silent(self) -> None:
        self._silenced.update(self._open)

    def _accept(self) -> None:
        while True:
            client, server = self._listener.accept()[0], socket.create_connection(self._target)
            self._open += [client, server]
            for ends in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if source not in self._silenced:
                    sink.sendall(data)
        except OSError:
            pass
        if source not in self._silenced:
            sink.close()


def check_silent_network() -> None:
    """A follower notices that its connection fell silent, and continues on another."""
    # As in client/lib/connection.cc. Less, for a short test.
    assert (tandem.connection.KEEPALIVE_MS, tandem.connection.KEEPALIVE_TIMEOUT_MS) == (40_000, 15_000)
    tandem.connection.KEEPALIVE_MS, tandem.connection.KEEPALIVE_TIMEOUT_MS = 500, 500
    silent = threading.Event()

    def watch(request, context):
        if request.after_sequence == 0:
            yield log(QUEUED)[0]
            silent.wait(60)
        else:
            yield log(QUEUED, SUCCEEDED)[1]

    with FakeDaemon(WatchJob=watch) as daemon:
        network = SilentNetwork(daemon.address)
        events = tandem.Job(tandem.connect(network.address, token="x"), "jobs/a").events()
        assert next(events).sequence == 1
        network.fall_silent()
        watchdog = threading.Timer(20, events.close)
        watchdog.start()
        assert [event.sequence for event in events] == [2], "the follower did not notice the silence"
        watchdog.cancel()
        silent.set()
    tandem.connection.KEEPALIVE_MS, tandem.connection.KEEPALIVE_TIMEOUT_MS = 40_000, 15_000


def check_proxy() -> None:
    """A proxy of the environment gets neither a connection nor a token."""
    met = []
    listener = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            connection = listener.accept()[0]
            met.append(connection.recv(65536))
            connection.close()

    async def get_async() -> None:
        async with tandem.aio.connect(daemon.address, token="secret") as client:
            assert (await client.calls.jobs.get_job(job_service_pb2.GetJobRequest(name="jobs/b"))).name == "jobs/b"

    threading.Thread(target=accept, daemon=True).start()
    names = ("grpc_proxy", "https_proxy", "http_proxy", "no_grpc_proxy", "no_proxy")
    kept = {name: os.environ.pop(name, None) for name in names}
    os.environ.update({name: "http://127.0.0.1:%d" % listener.getsockname()[1] for name in names[:3]})
    with FakeDaemon(GetJob=lambda request, context: job_pb2.Job(name=request.name)) as daemon:
        assert tandem.connect(daemon.address, token="secret", reconnect_timeout=1).job("a").name == "jobs/a", met
        asyncio.run(get_async())
    assert met == [], met
    for name, value in kept.items():
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


def check_many_followers() -> None:
    """Followers that wait leave the loop's executor free, however many they are."""
    cancelled = threading.Event()
    followers = 8

    def watch(request, context):
        yield log(QUEUED)[0]
        cancelled.wait(60)
        yield log(QUEUED, CANCELLED)[1]

    def cancel(request, context):
        cancelled.set()
        return job_pb2.Job(name=request.name)

    async def run() -> None:
        asyncio.get_running_loop().set_default_executor(futures.ThreadPoolExecutor(2))
        async with tandem.aio.connect(daemon.address, token="x") as client:
            job = await client.job("a")
            queued: "asyncio.Queue[int]" = asyncio.Queue()

            async def follow() -> "list[int]":
                sequences = []
                async for event in job.events():
                    sequences.append(event.sequence)
                    queued.put_nowait(event.sequence)
                return sequences

            tasks = [asyncio.create_task(follow()) for _ in range(followers)]
            for _ in range(followers):
                await asyncio.wait_for(queued.get(), 20)
            assert not cancelled.is_set()
            # The thread of a cancelled follower ends.
            tasks.pop().cancel()
            await asyncio.wait_for(job.cancel(), 20)
            assert await asyncio.wait_for(asyncio.gather(*tasks), 20) == [[1, 2]] * (followers - 1)

    with FakeDaemon(WatchJob=watch, CancelJob=cancel, GetJob=lambda request, context: job_pb2.Job(name=request.name)) as daemon:
        asyncio.run(run())
    end = time.monotonic() + 20
    while any(thread.name.startswith("tandem-stream") for thread in threading.enumerate()):
        assert time.monotonic() < end, "threads of streams are left"
        time.sleep(0.05)


def check_cancelled_calls() -> None:
    """A cancelled task's call ends, and the program needs not wait for it."""
    arrived: "futures.Future[None]"
    ended: "futures.Future[None]"

    def hang(request, context):
        context.add_callback(lambda: ended.set_result(None))
        arrived.set_result(None)
        # A server of gRPC waits for its threads.
        while context.is_active():
            time.sleep(0.05)

    def hang_in_stream(request, context):
        hang(request, context)
        yield from ()

    def hang_in_upload(requests, context):
        next(requests)
        return hang(None, context)

    def create_upload(request, context):
        return dataset_service_pb2.Upload(name="uploads/a", files_received=0 if request.upload.files == 1 else 2)

    def get_dataset(request, context):
        context.abort(grpc.StatusCode.NOT_FOUND, "no such data set")

    async def cancel(begin: typing.Callable) -> None:
        nonlocal arrived, ended
        arrived, ended = futures.Future(), futures.Future()
        async with tandem.aio.connect(daemon.address, token="x") as client:
            task = asyncio.create_task(begin(client, tandem.aio.Job(tandem.Job(client._client, "jobs/a"))))
            await asyncio.wait_for(asyncio.wrap_future(arrived), 20)
            task.cancel()
            try:
                await task
                raise SystemExit("a cancelled call has an answer")
            except asyncio.CancelledError:
                pass
            await asyncio.wait_for(asyncio.wrap_future(ended), 20)

    async def list_datasets(client: tandem.aio.Client, job: tandem.aio.Job) -> None:
        async for _ in client.datasets.list():
            pass

    with open("check_breaks_one.csv", "w", encoding="utf-8") as file:
        file.write("a,b\n1,2\n")
    with FakeDaemon(Evaluate=hang_in_stream, Predict=hang_in_stream, ExportModel=hang_in_stream, ReadArtifact=hang_in_stream, CreateDataset=hang, ListDatasets=hang,
                    UploadFiles=hang_in_upload, CreateUpload=create_upload, GetDataset=get_dataset, ResumeJob=hang,
                    ParseJob=lambda request, context: job_service_pb2.ParseJobResponse(),
                    GetJob=lambda request, context: job_pb2.Job(name=request.name)) as daemon:
        for begin in (lambda client, job: job.evaluate(), lambda client, job: job.predict([[1.0]]),
                      lambda client, job: job.classify([[1.0]]), lambda client, job: job.read(), lambda client, job: job.resume(),
                      lambda client, job: job.predict(split="training"), lambda client, job: job.export("check_breaks.onnx"),
                      lambda client, job: client.datasets.add("a", "check_breaks_one.csv"),
                      lambda client, job: client.datasets.add("a", "check_breaks_one.csv", validation="check_breaks_one.csv"),
                      list_datasets):
            start = time.monotonic()
            # Waits for the threads of the loop's executor.
            asyncio.run(cancel(begin))
            assert not time.monotonic() - start > 20, time.monotonic() - start


def check_late_answers() -> None:
    """A submission without an answer names its request id, and a repetition with this id makes no second job."""
    jobs: "dict[str, str]" = {}
    is_late = [True]

    def be_late(context):
        while is_late[0] and context.is_active():
            time.sleep(0.05)

    def create(request, context):
        name = jobs.setdefault(request.request_id, f"jobs/{len(jobs)}")
        if request.spec.name == "wrong":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "it is wrong; mend it")
        be_late(context)
        return job_pb2.Job(name=name)

    def create_sweep(request, context):
        be_late(context)
        return sweep_pb2.Sweep(name=f"sweeps/{request.request_id}")

    with FakeDaemon(CreateJob=create, ForkJob=create, CreateSweep=create_sweep) as daemon:
        client = tandem.connect(daemon.address, token="x")
        in_time = client.connection.reading_timeout
        # The call arrives within this time, also on a busy machine.
        client.connection.reading_timeout = 2
        spec = job_pb2.JobSpec(name="late")
        for call in (lambda: tandem.Job(client, "jobs/a").fork(request_id="branch"),
                     lambda: client.submit_sweep(sweep_pb2.Sweep(), request_id="branch")):
            try:
                call()
                raise SystemExit("a late answer came")
            except tandem.Unavailable as error:
                assert "request_id='branch'" in error.message, error
        jobs.clear()
        try:
            client.submit(spec)
            raise SystemExit("a late answer came")
        except tandem.Unavailable as error:
            assert error.code == "DEADLINE_EXCEEDED" and "did not answer in time" in error.message, error
            assert len(jobs) == 1 and f"request_id={next(iter(jobs))!r}" in error.message, error
            assert f"request_id={next(iter(jobs))!r}" in error.mend, error.mend
        is_late[0] = False
        client.connection.reading_timeout = in_time
        assert client.submit(spec, request_id=next(iter(jobs))).name == "jobs/0"
        assert len(jobs) == 1, jobs
        assert client.submit(spec, request_id="own").name == "jobs/1" and "own" in jobs, jobs

        async def submit_async() -> str:
            async with tandem.aio.connect(daemon.address, token="x") as awaited:
                return (await awaited.submit(spec, request_id="own")).name

        assert asyncio.run(submit_async()) == "jobs/1"
        assert tandem.Job(client, "jobs/a").fork(request_id="own").name == "jobs/1"
        assert client.submit_sweep(sweep_pb2.Sweep(), request_id="own").name == "sweeps/own"
        try:
            client.submit(job_pb2.JobSpec(name="wrong"))
            raise SystemExit("a wrong job was accepted")
        except tandem.InvalidRequest as error:
            assert error.message == "it is wrong; mend it", error


def check_reading_daemon() -> None:
    """A daemon that reads data, or a long log, has more time than `timeout`."""
    def late(answer: typing.Any) -> typing.Callable:
        def method(request, context):
            time.sleep(0.6)
            return answer
        return method

    job = late(job_pb2.Job(name="jobs/a"))
    with FakeDaemon(CreateJob=job, ForkJob=job, ResumeJob=job, CreateSweep=late(sweep_pb2.Sweep(name="sweeps/a")),
                    GetDataset=late(dataset_pb2.Dataset(name="datasets/a")), GetJobHistory=late(job_service_pb2.GetJobHistoryResponse()),
                    ListDatasets=late(daemon_service_pb2.ListDatasetsResponse()), GetJob=job) as daemon:
        client = tandem.connect(daemon.address, token="x", timeout=0.2)
        try:
            tandem.Job(client, "jobs/a").get()
            raise SystemExit("a late answer came")
        except tandem.Unavailable as error:
            assert error.code == "DEADLINE_EXCEEDED", error
        assert client.submit(job_pb2.JobSpec()).name == "jobs/a"
        client.validate(job_pb2.JobSpec())
        tandem.Job(client, "jobs/a").resume()
        assert tandem.Job(client, "jobs/a").fork().name == "jobs/a"
        assert client.submit_sweep(sweep_pb2.Sweep()).name == "sweeps/a"
        assert client.datasets.get("a").name == "datasets/a"
        assert list(client.datasets.list()) == []
        assert tandem.Job(client, "jobs/a").epochs() == []


def check_added_twice() -> None:
    """A data set that was added is found again after a lost answer, and a repetition is the same request."""
    table = "check_breaks_table.csv"
    with open(table, "w", encoding="utf-8") as file:
        file.write("a,b\n1,2\n")
    spec = dataset_pb2.DatasetSpec(csv=dataset_pb2.CsvSource(train="train.csv"))
    requests, known = [], []

    def create(request, context):
        requests.append(request)
        time.sleep(2.5)
        return dataset_pb2.Dataset(name=f"datasets/{request.dataset_id}")

    def get(request, context):
        if not known:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such data set")
        return known[0]

    def upload(request, context):
        return dataset_service_pb2.Upload(name="uploads/a", files_received=1, bytes_received=request.upload.bytes)

    with FakeDaemon(ParseJob=lambda request, context: job_service_pb2.ParseJobResponse(spec=job_pb2.JobSpec(dataset=spec)),
                    GetDataset=get, CreateUpload=upload, CreateDataset=create) as daemon:
        client = tandem.connect(daemon.address, token="x", timeout=2)
        assert client.datasets.add("a", table).name == "datasets/a"
        client.datasets.add("a", table)
        client.datasets.add("a", table, description="other")
        assert requests[0] == requests[1] and requests[0].request_id, requests
        assert requests[2].request_id not in ("", requests[0].request_id), requests
        line = f"{hashlib.sha256(open(table, 'rb').read()).hexdigest()}  train.csv\n"
        known.append(dataset_pb2.Dataset(name="datasets/a", origin=dataset_pb2.DATASET_ORIGIN_REGISTERED, spec=spec,
                                         manifest_sha256=hashlib.sha256(line.encode()).digest()))
        assert client.datasets.add("a", table) == known[0] and len(requests) == 3, requests
        known[0].manifest_sha256 = bytes(32)
        try:
            client.datasets.add("a", table)
            raise SystemExit("another data set of the name was returned")
        except tandem.TandemError as error:
            assert error.code == "ALREADY_EXISTS" and "give another name" in error.mend, error
        assert len(requests) == 3, requests


check_resumed_job()
check_quiet_streams()
check_streams_that_never_hold()
check_break_after_a_fetch()
check_silent_network()
check_proxy()
check_many_followers()
check_cancelled_calls()
check_late_answers()
check_reading_daemon()
check_added_twice()
print("all is right over breaks")
