"""Sweeps: many jobs that differ in the values of some fields."""

import dataclasses
from typing import TYPE_CHECKING, Any, Dict, Generic, List, Optional, TypeVar

from google.protobuf import json_format

from tandem.errors import JobFailed, NotFound
from tandem.job import Job, state_name
from tandem.v1 import sweep_pb2, sweep_service_pb2

if TYPE_CHECKING:
    from tandem.client import Client

# tandem.Job or tandem.aio.Job.
AnyJob = TypeVar("AnyJob")


@dataclasses.dataclass(frozen=True)
class SweepResult(Generic[AnyJob]):
    """A job of a sweep, and its result so far."""

    job: AnyJob
    # The job's own values by their fields' paths, such as {"training.seed": 2}.
    values: Dict[str, Any]
    # The job's state, such as "running", and why.
    state: str
    message: str
    # Finished epochs.
    epochs: int
    # The measure that ranks the job. None before the first measurement.
    value: Optional[float]
    # The file with the weights of this measure, for Job.model and Job.download; empty without a measure.
    artifact: str


class Sweep:
    """A sweep of the daemon. Each method asks the daemon. Thread-safe."""

    def __init__(self, client: "Client", name: str) -> None:
        self._client = client
        # "sweeps/<id>".
        self.name = name

    def __repr__(self) -> str:
        return f"<tandem.Sweep {self.name}>"

    def get(self) -> sweep_pb2.Sweep:
        """The sweep as it is now. NotFound if it was deleted."""
        return self._client.connection.call(self._client.calls.sweeps.get_sweep, sweep_service_pb2.GetSweepRequest(name=self.name))

    @property
    def state(self) -> str:
        """The sweep's state, such as "active" or "succeeded"."""
        return sweep_pb2.SweepState.Name(self.get().state)[len("SWEEP_STATE_"):].lower()

    def jobs(self) -> List[Job]:
        """The sweep's jobs that were not deleted, in the order of their creation."""
        return [Job(self._client, one.job) for one in self.get().results]

    def results(self) -> "List[SweepResult[Job]]":
        """The jobs with their values and results, in the order of their creation."""
        return [self._result(one) for one in self.get().results]

    def best(self) -> "Optional[SweepResult[Job]]":
        """The best job so far. None before the first measurement."""
        sweep = self.get()
        return self._result(sweep.best) if sweep.HasField("best") else None

    def wait(self) -> sweep_pb2.Sweep:
        """Waits until all jobs have ended. Raises JobFailed if no job succeeds and the sweep was not cancelled."""
        for job in self.jobs():
            try:
                for _ in job.events(job.get().last_sequence):
                    pass
            except NotFound:
                # Someone deleted the job.
                continue
        return ended(self.get())

    def cancel(self) -> None:
        """Stops all jobs that have not ended; their checkpoints and models stay."""
        self._client.connection.call(self._client.calls.sweeps.cancel_sweep, sweep_service_pb2.CancelSweepRequest(name=self.name))

    def delete(self) -> None:
        """Removes the sweep, its jobs and their files. InvalidRequest if a job has not ended."""
        self._client.connection.call(self._client.calls.sweeps.delete_sweep, sweep_service_pb2.DeleteSweepRequest(name=self.name))

    def _result(self, one: sweep_pb2.SweepResult) -> "SweepResult[Job]":
        return SweepResult(Job(self._client, one.job), {each.field: _value(each.value) for each in one.values},
                           state_name(one.state), one.message, one.epochs, one.value if one.HasField("value") else None, one.artifact)


def ended(sweep: sweep_pb2.Sweep) -> sweep_pb2.Sweep:
    """The sweep. Raises JobFailed if no job succeeded."""
    if sweep.state == sweep_pb2.SWEEP_STATE_FAILED:
        reasons = [one.message for one in sweep.results if one.message]
        raise JobFailed(f"no job of {sweep.name} succeeded" + (f": {reasons[0]}" if reasons else ""), "ABORTED")
    return sweep


def _value(value: Any) -> Any:
    """A google.protobuf.Value as Python has it."""
    return _whole(json_format.MessageToDict(value))


def _whole(value: Any) -> Any:
    """The value, in which whole numbers are int."""
    if isinstance(value, list):
        return [_whole(one) for one in value]
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value
