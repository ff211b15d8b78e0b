"""Errors of calls, with the fields at fault and the mend."""

import dataclasses
import re
from typing import Any, Dict, List, Optional, Sequence, Type

import grpc  # type: ignore[import]

from tandem.details import error_details_pb2, status_pb2


@dataclasses.dataclass(frozen=True)
class FieldViolation:
    """One field of a request or of a job file that is wrong."""

    # The field's path, such as "spec.model.layers[2].dense.units".
    field: str
    # What is wrong, and how to mend the field.
    description: str
    # The field's place in the text of a job file, from 1. 0 if unknown: only JobFileError has places, and none for a field of `set`.
    line: int = 0
    column: int = 0

    @property
    def mend(self) -> str:
        """How to mend the field: the end of a `description` of the form "PROBLEM; MEND". Empty if the description has another form."""
        return self.description.rpartition("; ")[2] if "; " in self.description else ""


class TandemError(Exception):
    """A call failed. A message of the form "cannot X: Y; Z" says what failed, why, and how to mend it."""

    def __init__(self, message: str, code: str = "UNKNOWN", reason: str = "", violations: Optional[List[FieldViolation]] = None,
                 metadata: Optional[Dict[str, str]] = None, retry_after: Optional[float] = None, mend: str = "") -> None:
        super().__init__(message)
        self.message = message
        # gRPC's code, such as "INVALID_ARGUMENT".
        self.code = code
        # For programs, such as "DATA_BEING_FETCHED"; often empty.
        self.reason = reason
        # The fields at fault, all of them.
        self.violations = violations or []
        # What the daemon adds to the reason.
        self.metadata = metadata or {}
        # After how many seconds the daemon wants the call again.
        self.retry_after = retry_after
        # How to mend the fault: the Z of a message "cannot X: Y; Z", or the mend of the only field at fault. Empty for other messages, and
        # if several fields are at fault: `violations` has the mend of each.
        self.mend = mend or mend_of(message, self.violations)


class InvalidRequest(TandemError):
    """The request is wrong; `violations` says where."""


class JobFileError(InvalidRequest):
    """A job file or dict cannot be read: it is not YAML, a field is unknown, or a value has a wrong type.

    `violations` has lines and columns. A value of the right type that the daemon refuses, such as 0 epochs, is an InvalidRequest with the
    field's path alone.
    """


class NotFound(TandemError):
    """There is no such job, data set or file."""


class Unauthenticated(TandemError):
    """The daemon wants a token, or another token."""


class PermissionDenied(TandemError):
    """The token's role or user may not do this."""


class Unavailable(TandemError):
    """No daemon answers, or it did not answer in time."""


class JobFailed(TandemError):
    """The job ended, but did not succeed."""


_CLASSES: Dict[str, Type[TandemError]] = {
    "INVALID_ARGUMENT": InvalidRequest, "FAILED_PRECONDITION": InvalidRequest, "NOT_FOUND": NotFound,
    "UNAUTHENTICATED": Unauthenticated, "PERMISSION_DENIED": PermissionDenied, "UNAVAILABLE": Unavailable,
    "DEADLINE_EXCEEDED": Unavailable}


def from_rpc(error: grpc.RpcError, address: str = "") -> TandemError:
    """The error that gRPC raised, with its details."""
    code, message = error.code().name, error.details() or ""
    reason, metadata, violations, retry_after = "", {}, [], None
    for key, value in error.trailing_metadata() or ():
        if key != "grpc-status-details-bin":
            continue
        for detail in status_pb2.Status.FromString(value).details:
            kind = detail.type_url.rpartition("/")[2]
            if kind == "google.rpc.BadRequest":
                for one in error_details_pb2.BadRequest.FromString(detail.value).field_violations:
                    violations.append(FieldViolation(one.field, one.description))
            elif kind == "google.rpc.ErrorInfo":
                info = error_details_pb2.ErrorInfo.FromString(detail.value)
                reason, metadata = info.reason, dict(info.metadata)
            elif kind == "google.rpc.RetryInfo":
                delay = error_details_pb2.RetryInfo.FromString(detail.value).retry_delay
                retry_after = delay.seconds + delay.nanos / 1e9
    mend = ""
    if code == "UNAVAILABLE" and not reason:
        mend = "start a daemon with `tandemd`, or say where it listens with address= or TANDEM_ADDRESS"
        message = f"no daemon answers at {address}: {message}; {mend}"
    elif code == "DEADLINE_EXCEEDED" and message == "Deadline Exceeded":
        mend = "allow more time with timeout= or TANDEM_TIMEOUT"
        message = f"the daemon at {address} did not answer in time: {message}; {mend}"
    elif code == "UNAUTHENTICATED":
        mend = "give the right token with token= or TANDEM_TOKEN_FILE"
        message = f"{message}; {mend}"
    return _CLASSES.get(code, TandemError)(message, code, reason, violations, metadata, retry_after, mend)


def wrong_type(argument: str, value: Any, mend: str) -> InvalidRequest:
    """The error of an argument with a value of a wrong type."""
    return InvalidRequest(f"cannot use {argument}: it has the type {type(value).__name__}; {mend}", "INVALID_ARGUMENT")


def is_lost_connection(error: TandemError) -> bool:
    """Whether the same call may work on a new connection."""
    if error.code in ("UNAVAILABLE", "CANCELLED"):
        return True
    return error.code in ("INTERNAL", "UNKNOWN") and ("RST_STREAM" in error.message or "Stream removed" in error.message)


def mend_of(message: str, violations: Sequence[FieldViolation] = ()) -> str:
    """The mend of an error, as TandemError.mend."""
    if violations:
        return violations[0].mend if len(violations) == 1 else ""
    # A line break would be part of a list of problems.
    form = re.fullmatch(r"cannot .+?: .+; (.+)", message)
    return form.group(1) if form else ""
