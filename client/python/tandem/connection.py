"""Finds the daemon's address and token, as the command line does, and connects."""

import contextvars
import dataclasses
import ipaddress
import math
import numbers
import os
import pathlib
import random
import re
import sys
import threading
import time
import uuid
from typing import Any, Callable, Iterator, List, Optional, Tuple, TypeVar

import grpc  # type: ignore[import]

from tandem.errors import InvalidRequest, TandemError, Unavailable, from_rpc, is_lost_connection, wrong_type

DEFAULT_ADDRESS = "127.0.0.1:7447"
# The time between pings, and the longest wait for the answer. A connection with a running call is lost if the daemon
# does not answer a ping.
KEEPALIVE_MS = 40_000
KEEPALIVE_TIMEOUT_MS = 15_000
# In seconds, as in client/lib/client.cc. The least time for the daemon to read the files of data sets, or a long log.
READING_TIMEOUT = 600.0
HISTORY_TIMEOUT = 60.0
# A stream that the daemon answered, and that lasted this many seconds, counts as a success.
WHOLE = 1.0
# gRPC sends no other characters.
_TOKEN = re.compile(r"[!-~]*")
# How addresses of sockets of this machine begin.
_UNIX = ("unix:", "unix-abstract:")
Result = TypeVar("Result")


@dataclasses.dataclass
class Options:
    """The arguments of `connect`. None: the environment's value, or the default."""

    address: Optional[str] = None
    state_folder: Optional[str] = None
    # Not in the repr, which ends up in logs.
    token: Optional[str] = dataclasses.field(default=None, repr=False)
    token_file: Optional[str] = None
    tls: bool = False
    tls_ca: Optional[str] = None
    tls_cert: Optional[str] = None
    tls_key: Optional[str] = None
    tls_server_name: Optional[str] = None
    plaintext: bool = False
    timeout: Optional[float] = None
    reconnect_timeout: Optional[float] = None


def seconds(text: str, what: str) -> float:
    """ "90", "30s", "1m30s" or "500ms" in seconds. """
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    units = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise InvalidRequest(f"cannot use {what}: {text!r} is no duration; write 30s or 1m30s", "INVALID_ARGUMENT")
    return sum(float(number) * units[unit] for number, unit in parts)


def _time(value: Optional[float], argument: str, variable: str, default: str) -> float:
    """The seconds of an argument, or of the environment's variable."""
    given, what = (value, argument) if value is not None else (seconds(os.environ.get(variable) or default, variable), variable)
    # A wait for a connection may be 0 or endless.
    is_wait = argument == "reconnect_timeout"
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not (given >= 0 if is_wait else 0 < given < math.inf):
        raise InvalidRequest(f"cannot use {what}: it is {given!r}; give seconds {'from' if is_wait else 'above'} 0, such as 30", "INVALID_ARGUMENT")
    return float(given)


def is_local(address: str) -> bool:
    """Whether the address can only be this machine."""
    if address.startswith(_UNIX):
        return True
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return False
    return ip.is_loopback or ip.is_unspecified


def check_listener(address: str, trusted: List[int]) -> None:
    """Raises Unavailable if a user who is not in `trusted` listens at a local address."""
    host, _, port = address.rpartition(":")
    if address.startswith(_UNIX) or not port.isdigit() or not is_local(address):
        return
    for table, size in (("/proc/net/tcp", 4), ("/proc/net/tcp6", 16)):
        try:
            lines = pathlib.Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if len(columns) < 8 or columns[3] != "0A" or int(columns[1].partition(":")[2], 16) != int(port):
                continue
            words = bytes.fromhex(columns[1].partition(":")[0])
            order = sys.byteorder == "little"
            raw = b"".join(words[i:i + 4][::-1] if order else words[i:i + 4] for i in range(0, size, 4))
            ip = ipaddress.ip_address(raw)
            mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
            ip = mapped or ip
            if not (ip.is_loopback or ip.is_unspecified):
                continue
            if host.strip("[]") not in ("localhost", "0.0.0.0", "::", str(ip)) and not ip.is_unspecified:
                continue
            if int(columns[7]) not in trusted:
                raise Unavailable(f"cannot send the token to {address}: another user (number {columns[7]}) listens there; start the "
                                  "daemon with another port, or name the token with TANDEM_TOKEN_FILE", "UNAVAILABLE")


class Connection:
    """A channel to the daemon. After a break it reconnects by itself. Thread-safe."""

    def __init__(self, options: Options) -> None:
        def given(value: Optional[str], variable: str) -> str:
            return value if value is not None else os.environ.get(variable, "")

        self.timeout = _time(options.timeout, "timeout", "TANDEM_TIMEOUT", "30s")
        # The timeouts, in seconds, of calls for which the daemon may read data, and of a job's history.
        self.reading_timeout = max(self.timeout, READING_TIMEOUT)
        self.history_timeout = max(self.timeout, HISTORY_TIMEOUT)
        self.reconnect_timeout = _time(options.reconnect_timeout, "reconnect_timeout", "TANDEM_RECONNECT_TIMEOUT", "60s")
        named = given(options.state_folder, "TANDEM_STATE")
        state = pathlib.Path(named or _default_state())
        self.address = given(options.address, "TANDEM_ADDRESS") or _written_address(state, bool(named))
        _check_address(self.address)
        token, trusted = options.token, None
        if token is None:
            token_file = given(options.token_file, "TANDEM_TOKEN_FILE")
            token, trusted = _read_token(pathlib.Path(token_file or state / "token"), bool(token_file))
        elif not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise InvalidRequest("cannot use token: it is no text of letters, digits and signs; give the content of the daemon's file `token`, "
                                 "without spaces and line breaks", "INVALID_ARGUMENT")
        ca, cert, key = (given(value, variable) for value, variable in (
            (options.tls_ca, "TANDEM_TLS_CA"), (options.tls_cert, "TANDEM_TLS_CERT"), (options.tls_key, "TANDEM_TLS_KEY")))
        tls = options.tls or bool(ca or cert)
        if token and not tls and not options.plaintext and not is_local(self.address):
            raise InvalidRequest(f"cannot send the token to {self.address}: the connection is not encrypted; give tls_ca= (or "
                                 "TANDEM_TLS_CA), or plaintext=True", "INVALID_ARGUMENT")
        self._trusted = None if tls else trusted
        self._is_closed = False
        self.metadata: Tuple[Tuple[str, str], ...] = (("authorization", f"Bearer {token}"),) if token else ()
        # As in client/lib/connection.cc. No proxy of the environment is used, because it could read an unencrypted
        # token. "min_reconnect_backoff" is the longest time of an attempt to connect. Channels to the same address do
        # not share connections.
        self.channel_options: List[Tuple[str, Any]] = [
            ("grpc.max_receive_message_length", 64 << 20), ("grpc.enable_http_proxy", 0),
            ("grpc.keepalive_time_ms", KEEPALIVE_MS), ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
            ("grpc.http2.max_pings_without_data", 0), ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 5000), ("grpc.max_reconnect_backoff_ms", 500), ("grpc.use_local_subchannel_pool", 1)]
        name = given(options.tls_server_name, "TANDEM_TLS_SERVER_NAME")
        if tls and name:
            self.channel_options.append(("grpc.ssl_target_name_override", name))
        self.credentials: Any = None
        if tls:
            self.credentials = grpc.ssl_channel_credentials(*(_read_pem(path) for path in (ca, key, cert)))
        self.channel: Any = self.open(grpc)

    def open(self, module: Any) -> Any:
        """A channel of `grpc` or `grpc.aio`."""
        if self.credentials is None:
            return module.insecure_channel(self.address, options=self.channel_options)
        return module.secure_channel(self.address, self.credentials, options=self.channel_options)

    def check(self) -> None:
        """Raises Unavailable if the token would be sent to a stranger, and InvalidRequest after `close`."""
        if self._is_closed:
            raise InvalidRequest("cannot call the daemon: the client is closed; connect again", "FAILED_PRECONDITION")
        if self._trusted is not None:
            check_listener(self.address, self._trusted)

    def call(self, function: Callable[..., Result], request: Any, timeout: Optional[float] = None) -> Result:
        """Makes a call that may be repeated, until the daemon answers. Waits while the daemon fetches data.

        `timeout` is in seconds, and limits each try. Default: self.timeout.
        """
        patience = Patience(self.reconnect_timeout)
        while True:
            try:
                self.check()
                return function(request, timeout=self.timeout if timeout is None else timeout)
            except grpc.RpcError as error:
                patience.wait(from_rpc(error, self.address))

    def create(self, function: Callable[..., Result], request: Any) -> Result:
        """Makes a call that creates something, once for each request id. Sets a random `request.request_id` if it is empty.

        If the daemon may have carried out the call, the error's message and `mend` name the request id.
        """
        request.request_id = request.request_id or uuid.uuid4().hex
        try:
            return self.call(function, request, self.reading_timeout)
        except TandemError as error:
            # The last attempt does not tell whether an earlier one arrived.
            if not isinstance(error, Unavailable) and not is_lost_connection(error):
                raise
            hint = f"the daemon may have received the call: repeat it with request_id={request.request_id!r}, which creates nothing twice"
            raise type(error)(f"{error.message}; {hint}", error.code, error.reason, error.violations, error.metadata, error.retry_after,
                              f"{error.mend}; {hint}" if error.mend else hint) from error

    def pages(self, function: Callable[..., Any], request: Any, timeout: Optional[float] = None) -> Iterator[Any]:
        """The pages of a list, each read when it is asked for. `timeout` is as in `call`."""
        while True:
            page = self.call(function, request, timeout)
            yield page
            request.page_token = page.next_page_token
            if not request.page_token:
                return

    def close(self) -> None:
        self._is_closed = True
        self.channel.close()


class Cancellation:
    """Ends the work of a thread from another thread: its running call, and each further call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._call: Any = None
        self._is_cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            if self._call is not None:
                self._call.cancel()

    def check(self) -> None:
        """Raises TandemError after `cancel`."""
        if self._is_cancelled:
            raise TandemError("the call was cancelled", "CANCELLED")

    def keep(self, call: Any) -> None:
        """Ends this running call of gRPC at `cancel`."""
        with self._lock:
            self._call = call
            if self._is_cancelled:
                call.cancel()


# The cancellation of the running work; None if nothing can cancel the work.
CANCELLATION: "contextvars.ContextVar[Optional[Cancellation]]" = contextvars.ContextVar("CANCELLATION", default=None)


def check_cancelled() -> None:
    """Raises TandemError if the work that runs now was cancelled."""
    cancellation = CANCELLATION.get()
    if cancellation is not None:
        cancellation.check()


class CancellableChannel:
    """A channel of `grpc`. Its calls end if their work is cancelled."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel

    def unary_unary(self, *method: Any) -> Callable[..., Any]:
        return self._whole(self._channel.unary_unary(*method))

    def stream_unary(self, *method: Any) -> Callable[..., Any]:
        return self._whole(self._channel.stream_unary(*method))

    def unary_stream(self, *method: Any) -> Callable[..., Any]:
        begin = self._channel.unary_stream(*method)

        def call(request: Any, **options: Any) -> Any:
            check_cancelled()
            stream, cancellation = begin(request, **options), CANCELLATION.get()
            if cancellation is not None:
                cancellation.keep(stream)
            return stream

        return call

    @staticmethod
    def _whole(begin: Any) -> Callable[..., Any]:
        def call(request: Any, **options: Any) -> Any:
            cancellation = CANCELLATION.get()
            if cancellation is None:
                return begin(request, **options)
            cancellation.check()
            running = begin.future(request, **options)
            cancellation.keep(running)
            return running.result()

        return call


class Patience:
    """How long, and how often, a call that failed is made again."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        # The time of the daemon's answer to the newest stream. None before the answer.
        self._opened: Optional[float] = None
        self.reset()

    def opened(self) -> None:
        """The daemon has answered a stream, possibly long before the first message."""
        self._opened = time.monotonic()

    def reset(self) -> None:
        """The connection works."""
        self._since: Optional[float] = None
        self._next = 0.1

    def wait(self, error: TandemError) -> None:
        """Sleeps until the next try. Raises `error` if another try is useless."""
        if error.reason == "DATA_BEING_FETCHED":
            self.reset()
            time.sleep(0.2)
            return
        now = time.monotonic()
        # A waiting job has no events for hours, so a stream that held counts as a success.
        if self._opened is not None and now - self._opened >= WHOLE:
            self.reset()
        self._opened = None
        since = now if self._since is None else self._since
        self._since = since
        short = error.retry_after if error.retry_after is not None and error.retry_after <= 10 else None
        if short is None and not is_lost_connection(error) or now - since >= self._limit:
            raise error
        time.sleep(short if short is not None else self._next * random.uniform(0.5, 1))
        self._next = min(2 * self._next, 2.0)


def _check_address(address: str) -> None:
    if not isinstance(address, str):
        raise wrong_type("address", address, 'give text, such as "127.0.0.1:7447"')
    host, _, port = address.rpartition(":")
    is_url = address.startswith(("http://", "https://"))
    is_port = re.fullmatch("[0-9]{1,5}", port) is not None and 1 <= int(port) <= 65535
    if not address.startswith(_UNIX) and (is_url or not host or not is_port):
        raise InvalidRequest(f"cannot connect to {address!r}: it is not an address; give HOST:PORT, such as 127.0.0.1:7447", "INVALID_ARGUMENT")


def _default_state() -> str:
    if os.geteuid() == 0:
        return "/var/lib/tandem"
    state = os.environ.get("XDG_STATE_HOME")
    return f"{state}/tandem" if state else os.path.expanduser("~/.local/state/tandem")


def _written_address(state: pathlib.Path, is_named: bool) -> str:
    try:
        address = (state / "address").read_text().strip()
    except FileNotFoundError:
        if is_named:
            raise Unavailable(f"cannot find the daemon: no daemon runs on the state folder {state}; start one with `tandemd --state-folder {state}`, or give "
                              "address= or TANDEM_ADDRESS", "UNAVAILABLE") from None
        return DEFAULT_ADDRESS
    except OSError as error:
        raise InvalidRequest(f"cannot read the daemon's address: {error}; give address= or TANDEM_ADDRESS",
                             "INVALID_ARGUMENT") from error
    return re.sub(r"^\[::\]:", "localhost:", re.sub(r"^0\.0\.0\.0:", "127.0.0.1:", address)) or DEFAULT_ADDRESS


def _read_token(path: pathlib.Path, is_named: bool) -> Tuple[str, Optional[List[int]]]:
    """The token, and the users to whom alone it may be sent."""
    try:
        token = path.read_text().strip()
        owner = path.stat().st_uid
    except OSError as error:
        if is_named:
            raise InvalidRequest(f"cannot read the token file: {error}; give another with token_file= or TANDEM_TOKEN_FILE",
                                 "INVALID_ARGUMENT") from error
        return "", None
    if not _TOKEN.fullmatch(token):
        raise InvalidRequest(f"cannot use the token file {path}: it has spaces or control characters; copy the daemon's `token` again",
                             "INVALID_ARGUMENT")
    return token, None if is_named else [owner, os.geteuid(), 0]


def _read_pem(path: str) -> Optional[bytes]:
    if not path:
        return None
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as error:
        raise InvalidRequest(f"cannot read {path}: {error.strerror}; give a file in PEM", "INVALID_ARGUMENT") from error
