"""Events of a job, received over connections that may break."""

import dataclasses
import datetime
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

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
    # "loss" and the metrics. `validation` is empty if the epoch's end was not validated.
    training: Dict[str, float]
    validation: Dict[str, float]
    learning_rate: float
    # Seconds of training, and training samples a second.
    seconds: float
    images_per_second: float
    time: datetime.datetime
    # The event's number in the job's log.
    sequence: int


@dataclasses.dataclass(frozen=True)
class Validation:
    """The result of a validation, within an epoch or at its end."""

    # The present epoch, from 1.
    epoch: int
    # Optimizer steps in all.
    step: int
    # "loss" and the metrics.
    measures: Dict[str, float]
    # Seconds of validation.
    seconds: float
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


def validation_of(event: Event) -> Optional[Validation]:
    """The validation of an event. None if the event has none."""
    kind = event.WhichOneof("kind")
    if kind not in ("epoch", "validation"):
        return None
    one = event.epoch if kind == "epoch" else event.validation
    if not one.HasField("validation"):
        return None
    return Validation(one.epoch, one.step, measures(one.validation), one.validation_seconds,
                      event.time.ToDatetime(datetime.timezone.utc), event.sequence)


def newest(events: Iterable[Event]) -> Tuple[List[Epoch], List[Validation]]:
    """The epochs and the validations among a job's events, in the order of their steps.

    An attempt may train steps again, from a checkpoint on. Its epochs and validations replace all earlier ones of the same and of
    later steps, as in a Curve of the API.
    """
    epochs: List[Epoch] = []
    validations: List[Validation] = []
    for event in events:
        validation = validation_of(event)
        if event.WhichOneof("kind") == "epoch":
            epoch = epoch_of(event)
            while epochs and epochs[-1].number >= epoch.number:
                epochs.pop()
            # The last epoch may have been validated before its summary.
            while validations and validations[-1].step > epoch.step:
                validations.pop()
            epochs.append(epoch)
        if validation is not None:
            while epochs and epochs[-1].step > validation.step:
                epochs.pop()
            while validations and validations[-1].step >= validation.step:
                validations.pop()
            validations.append(validation)
    return epochs, validations


class EventStream(Iterator[Event]):
    """A job's events, each once and in order, until the job ends.

    Reconnects after a break, and continues after the last event. close() from another thread ends the stream.
    """

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
