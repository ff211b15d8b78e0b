"""A client for Tandem, which trains neural networks as a service.

    import tandem
    client = tandem.connect()
    job = client.submit("job.yaml", set={"training.epochs": 10})
    for epoch in job.follow():
        print(epoch.number, epoch.validation["accuracy"])
    model = job.model()

`tandem.aio` has the same for asyncio.
"""

from tandem.client import Client, Datasets, connect
from tandem.errors import (FieldViolation, InvalidRequest, JobFailed, JobFileError, NotFound, PermissionDenied, TandemError,
                           Unauthenticated, Unavailable)
from tandem.evaluation import Evaluation
from tandem.events import Epoch, Event, Validation
from tandem.job import Classes, History, Job
from tandem.sweep import Sweep, SweepResult

__all__ = ["Classes", "Client", "Datasets", "Epoch", "Evaluation", "Event", "FieldViolation", "History", "InvalidRequest", "Job",
           "JobFailed", "JobFileError", "NotFound", "PermissionDenied", "Sweep", "SweepResult", "TandemError", "Unauthenticated",
           "Unavailable", "Validation", "connect"]
