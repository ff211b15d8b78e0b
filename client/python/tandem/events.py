"""Events of a job, received over connections that may break."""

import dataclasses
import datetime
from typing import Dict, Iterator, Optional

import grpc  # type: ignore[import]

from tandem.calls import Calls, Stream
from tandem.connection import Connection, Patience
from tandem.errors import from_rpc
from tandem.v1 import event_pb2, job_service_pb2

# An entry of a job's log: tandem.v1.JobEvent.
Event = event_pb2.JobEvent


@dataclasses.dataclass(frozen=True)
class Epoch:
    """The result of an epoch."""

    # From 1.
    number: int
    # Epochs that the job trains.
    epochs: int
    # Optimizer steps in all.
    step: int
    # "loss" and the metrics. `validation` is empty if the job has no validation samples.
    training: Dict[str, float]
    validation: Dict[str, float]
    learning_rate: float
    # Seconds of training, and training samples a second.
    seconds: float
    images_per_second: float
    time: datetime.datetime
    # The event's number in the job's log.
    sequence: int


def measures(evaluation: event_pb2.Evaluation) -> Dict[str, float]:
    """ "loss" and the metrics by their names. """
    return {"loss": evaluation.loss, **dict(sorted(evaluation.metrics.items()))}


def epoch_of(event: Event) -> Epoch:
    one = event.epoch
    return Epoch(one.epoch, one.epochs, one.step, measures(one.training) if one.HasField("training") else {},
                 measures(one.validation) if one.HasField("validation") else {}, one.learning_rate, one.training_seconds,
                 one.images_per_second, event.time.ToDatetime(datetime.timezone.utc), event.sequence)


class EventStream(Iterator[Event]):
    """A job's events, each once and in order, until the job ends. A lost connection is made anew, and the stream goes on after
    the last event. close() from another thread ends it."""

    def __init__(self, connection: Connection, calls: Calls, name: str, after: int = 0) -> None:
        self._connection, self._calls, self._name = connection, calls, name
        # The number of the last event that was given.
        self.sequence = after
        # How often the connection was lost.
        self.reconnections = 0
        self._patience = Patience(connection.reconnect_timeout)
        self._call: Optional[Stream[Event]] = None
        self._closed = False

    def __next__(self) -> Event:
        while not self._closed:
            try:
                if self._call is None:
                    self._connection.check()
                    self._call = self._calls.jobs.watch_job(
                        job_service_pb2.WatchJobRequest(name=self._name, after_sequence=self.sequence))
                    # close() may have come before the call that it ends.
                    if self._closed:
                        self._call.cancel()
                    # The daemon's answers have a call id. A call that did not reach the daemon has no metadata.
                    if self._call.initial_metadata():
                        self._patience.opened()
                event = next(self._call)
            except grpc.RpcError as error:
                self._call = None
                if self._closed:
                    break
                self._patience.wait(from_rpc(error, self._connection.address))
                self.reconnections += 1
                continue
            except StopIteration:
                self._closed = True
                break
            self._patience.reset()
            if event.sequence != self.sequence + 1:
                # Never happens with a daemon that keeps the API.
                raise RuntimeError(f"event {event.sequence} came after event {self.sequence}")
            self.sequence = event.sequence
            return event
        raise StopIteration

    def close(self) -> None:
        """Ends the stream."""
        self._closed = True
        if self._call is not None:
            self._call.cancel()
