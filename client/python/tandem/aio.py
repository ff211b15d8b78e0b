"""The client for asyncio. It has the names of the blocking client, except Job.plot. Its methods are awaited.

Calls run on threads of the loop's executor. Each running stream has its own thread. Cancelling a task ends its call.

    client = tandem.aio.connect()
    job = await client.submit("job.yaml")
    async for epoch in job.follow():
        print(epoch.number, epoch.validation["accuracy"])
"""

import asyncio
import os
import pathlib
from concurrent import futures
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, TypeVar, Union

import grpc.aio  # type: ignore[import]
import numpy

import tandem.client
import tandem.job
import tandem.sweep
from tandem.calls import AsyncCalls
from tandem.client import JobLike, SweepLike
from tandem.connection import CANCELLATION, Cancellation
from tandem.errors import NotFound
from tandem.evaluation import Evaluation
from tandem.events import Epoch, Event, Validation
from tandem.job import Classes, DatasetLike
from tandem.sweep import SweepResult
from tandem.v1 import daemon_service_pb2, dataset_pb2, device_pb2, event_pb2, job_pb2, sweep_pb2

Item = TypeVar("Item")


def connect(address: Optional[str] = None, **options: Any) -> "Client":
    """A client; takes what tandem.connect takes."""
    return Client(tandem.client.connect(address, **options))


class Job:
    """As tandem.Job."""

    def __init__(self, job: tandem.job.Job) -> None:
        self._job = job
        self.name = job.name

    def __repr__(self) -> str:
        return f"<tandem.aio.Job {self.name}>"

    async def get(self) -> job_pb2.Job:
        return await _run(self._job.get)

    @property
    def state(self) -> Awaitable[str]:
        return _run(lambda: self._job.state)

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        events = self._job.events(after)
        try:
            async for event in _each(events):
                yield event
        finally:
            # Also ends a stream whose last event was taken.
            events.close()

    async def follow(self) -> AsyncIterator[Epoch]:
        events = self._job.events()
        try:
            async for epoch in _each(tandem.job.epochs_of(self._job.name, events, tandem.job.Bar(False))):
                yield epoch
        finally:
            events.close()

    async def follow_validations(self) -> AsyncIterator[Validation]:
        events = self._job.events()
        try:
            async for validation in _each(tandem.job.validations_of(self._job.name, events)):
                yield validation
        finally:
            events.close()

    async def wait(self) -> job_pb2.Job:
        async for _ in self.follow():
            pass
        return await self.get()

    async def pause(self) -> None:
        await _run(self._job.pause)

    async def resume(self) -> None:
        await _run(self._job.resume)

    async def cancel(self) -> None:
        await _run(self._job.cancel)

    async def checkpoints(self) -> List[event_pb2.Checkpoint]:
        return await _run(self._job.checkpoints)

    async def fork(self, job: Optional[JobLike] = None, set: Optional[Mapping[str, Any]] = None, *, step: Optional[int] = None,
                   request_id: str = "") -> "Job":
        return Job(await _run(self._job.fork, job, set, step=step, request_id=request_id))

    async def delete(self) -> None:
        await _run(self._job.delete)

    async def read(self, artifact: str = tandem.job.MODEL) -> bytes:
        return await _run(self._job.read, artifact)

    async def download(self, to: "Union[str, os.PathLike[str]]", artifact: Optional[str] = None) -> pathlib.Path:
        return await _run(self._job.download, to, artifact)

    async def export(self, to: "Union[str, os.PathLike[str]]", artifact: str = tandem.job.MODEL) -> pathlib.Path:
        return await _run(self._job.export, to, artifact)

    async def model(self, artifact: str = tandem.job.MODEL) -> "Dict[str, numpy.ndarray[Any, Any]]":
        return await _run(self._job.model, artifact)

    async def evaluate(self, dataset: Optional[DatasetLike] = None, *, artifact: str = tandem.job.MODEL, split: str = "",
                       metrics: Union[str, Iterable[str]] = (), batch_size: int = 0) -> Evaluation:
        return await _run(self._job.evaluate, dataset, artifact=artifact, split=split, metrics=metrics, batch_size=batch_size)

    async def predict(self, samples: Any = None, artifact: str = tandem.job.MODEL, *, dataset: Optional[DatasetLike] = None,
                      split: str = "") -> "numpy.ndarray[Any, Any]":
        return await _run(self._job.predict, samples, artifact, dataset=dataset, split=split)

    async def classify(self, samples: Any = None, top_k: int = 1, artifact: str = tandem.job.MODEL, *,
                       dataset: Optional[DatasetLike] = None, split: str = "") -> Classes:
        return await _run(self._job.classify, samples, top_k, artifact, dataset=dataset, split=split)

    async def epochs(self) -> List[Epoch]:
        return await _run(self._job.epochs)

    async def history(self) -> Any:
        return await _run(self._job.history)

    async def columns(self) -> tandem.job.History:
        return await _run(self._job.columns)


class Sweep:
    """As tandem.Sweep."""

    def __init__(self, sweep: tandem.sweep.Sweep) -> None:
        self._sweep = sweep
        self.name = sweep.name

    def __repr__(self) -> str:
        return f"<tandem.aio.Sweep {self.name}>"

    async def get(self) -> sweep_pb2.Sweep:
        return await _run(self._sweep.get)

    @property
    def state(self) -> Awaitable[str]:
        return _run(lambda: self._sweep.state)

    async def jobs(self) -> List[Job]:
        return [Job(job) for job in await _run(self._sweep.jobs)]

    async def results(self) -> "List[SweepResult[Job]]":
        return [_result(one) for one in await _run(self._sweep.results)]

    async def best(self) -> "Optional[SweepResult[Job]]":
        best = await _run(self._sweep.best)
        return None if best is None else _result(best)

    async def wait(self) -> sweep_pb2.Sweep:
        for job in await self.jobs():
            try:
                async for _ in job.events((await job.get()).last_sequence):
                    pass
            except NotFound:
                continue
        return tandem.sweep.ended(await self.get())

    async def cancel(self) -> None:
        await _run(self._sweep.cancel)

    async def delete(self) -> None:
        await _run(self._sweep.delete)


def _result(one: "SweepResult[tandem.job.Job]") -> "SweepResult[Job]":
    return SweepResult(Job(one.job), one.values, one.state, one.message, one.epochs, one.value, one.artifact)


class Datasets:
    """As tandem.Datasets."""

    def __init__(self, datasets: tandem.client.Datasets) -> None:
        self._datasets = datasets

    async def add(self, name: str, path: Any, **options: Any) -> dataset_pb2.Dataset:
        return await _run(self._datasets.add, name, path, **options)

    async def add_arrays(self, name: str, inputs: Any, targets: Any, **options: Any) -> dataset_pb2.Dataset:
        return await _run(self._datasets.add_arrays, name, inputs, targets, **options)

    async def list(self) -> AsyncIterator[dataset_pb2.Dataset]:
        async for dataset in _each(self._datasets.list()):
            yield dataset

    async def get(self, name: str) -> dataset_pb2.Dataset:
        return await _run(self._datasets.get, name)

    async def remove(self, name: str) -> None:
        await _run(self._datasets.remove, name)


class Client:
    """As tandem.Client."""

    def __init__(self, client: tandem.client.Client) -> None:
        self._client = client
        self.datasets = Datasets(client.datasets)
        self._calls: Optional[AsyncCalls] = None
        self._channel: Any = None

    def __repr__(self) -> str:
        return f"<tandem.aio.Client {self._client.connection.address}>"

    @property
    def calls(self) -> AsyncCalls:
        """Every method of the API, as it is, on a channel of grpc.aio."""
        if self._calls is None:
            self._client.connection.check()
            self._channel = self._client.connection.open(grpc.aio)
            self._calls = AsyncCalls(self._channel, self._client.connection.metadata)
        return self._calls

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
        await _run(self._client.close)

    async def parse(self, job: JobLike, set: Optional[Mapping[str, Any]] = None) -> job_pb2.JobSpec:
        return await _run(self._client.parse, job, set)

    async def submit(self, job: JobLike, set: Optional[Mapping[str, Any]] = None, *, weights: Union[str, "os.PathLike[str]", None] = None,
                     request_id: str = "") -> Job:
        return Job(await _run(self._client.submit, job, set, weights=weights, request_id=request_id))

    async def validate(self, job: JobLike, set: Optional[Mapping[str, Any]] = None, *,
                       weights: Union[str, "os.PathLike[str]", None] = None) -> job_pb2.JobSpec:
        return await _run(self._client.validate, job, set, weights=weights)

    async def job(self, name: str) -> Job:
        return Job(await _run(self._client.job, name))

    async def jobs(self) -> AsyncIterator[Job]:
        async for job in _each(self._client.jobs()):
            yield Job(job)

    async def parse_sweep(self, sweep: SweepLike, set: Optional[Mapping[str, Any]] = None) -> sweep_pb2.Sweep:
        return await _run(self._client.parse_sweep, sweep, set)

    async def submit_sweep(self, sweep: SweepLike, set: Optional[Mapping[str, Any]] = None, *,
                           weights: Union[str, "os.PathLike[str]", None] = None, request_id: str = "") -> Sweep:
        return Sweep(await _run(self._client.submit_sweep, sweep, set, weights=weights, request_id=request_id))

    async def sweep(self, name: str) -> Sweep:
        return Sweep(await _run(self._client.sweep, name))

    async def sweeps(self) -> AsyncIterator[Sweep]:
        async for sweep in _each(self._client.sweeps()):
            yield Sweep(sweep)

    async def daemon(self) -> daemon_service_pb2.Daemon:
        return await _run(self._client.daemon)

    async def devices(self) -> List[device_pb2.Device]:
        return await _run(self._client.devices)

    async def partitions(self) -> List[device_pb2.ClusterPartition]:
        return await _run(self._client.partitions)


async def _run(function: Callable[..., Item], *arguments: Any, **options: Any) -> Item:
    """Runs a function on a thread. Cancelling the task ends the function's call of the daemon."""
    cancellation = Cancellation()

    def work() -> Item:
        CANCELLATION.set(cancellation)
        return function(*arguments, **options)

    try:
        # The thread has its own copy of the context.
        return await asyncio.to_thread(work)
    except asyncio.CancelledError:
        cancellation.cancel()
        raise


async def _each(items: Iterator[Item]) -> AsyncIterator[Item]:
    # A stream may wait for hours. On the loop's executor, a few streams would take all threads, and every other call would wait.
    thread = futures.ThreadPoolExecutor(1, "tandem-stream")
    loop, end, cancellation = asyncio.get_running_loop(), object(), Cancellation()

    def next_item() -> Any:
        CANCELLATION.set(cancellation)
        return next(items, end)

    try:
        while True:
            item = await loop.run_in_executor(thread, next_item)
            if item is end:
                return
            yield item
    finally:
        # Ends a call that the thread waits for.
        cancellation.cancel()
        thread.shutdown(wait=False)
