"""Calls over raw HTTP/2 (Debian's python3-h2), for clients that break gRPC's rules."""

import pathlib
import select
import socket
import struct
import subprocess
import time

import h2.config
import h2.connection
import h2.events
import h2.settings
import hpack

PROTO = pathlib.Path(__file__).resolve().parents[3] / "proto"
STATUS = {"0": "OK", "1": "CANCELLED", "3": "INVALID_ARGUMENT", "5": "NOT_FOUND", "6": "ALREADY_EXISTS", "7": "PERMISSION_DENIED",
          "9": "FAILED_PRECONDITION", "8": "RESOURCE_EXHAUSTED", "12": "UNIMPLEMENTED",
          "13": "INTERNAL", "14": "UNAVAILABLE", "16": "UNAUTHENTICATED"}


def encode(message, text, file):
    """Returns the bytes of a message of tandem.v1, from its text format."""
    return subprocess.run(["protoc", f"-I{PROTO}", f"--encode=tandem.v1.{message}", f"tandem/v1/{file}.proto"],
                          input=text.encode(), capture_output=True, check=True).stdout


def methods():
    """Returns each method of tandem.v1 with its service, its name, and the names of its request's fields."""
    files = sorted(str(path.relative_to(PROTO)) for path in PROTO.glob("tandem/v1/*.proto"))
    described = subprocess.run(["protoc", f"-I{PROTO}", "-o", "/dev/stdout", *files], capture_output=True, check=True).stdout
    text = subprocess.run(["protoc", "--decode=google.protobuf.FileDescriptorSet", "google/protobuf/descriptor.proto"],
                          input=described, capture_output=True, check=True).stdout.decode()
    fields, found, service, message, method = {}, [], None, None, None
    for line in text.splitlines():
        depth, word = len(line) - len(line.lstrip()), line.strip()
        if depth == 2:
            service, message = word == "service {", word == "message_type {"
        elif depth == 4 and word.startswith("name: "):
            name = word.split('"')[1]
            if message:
                fields[name], message = [], name
            elif service:
                service = name
        elif depth == 6 and isinstance(message, str) and word.startswith("name: "):
            fields[message].append(word.split('"')[1])
        elif depth == 6 and isinstance(service, str) and word.startswith("name: "):
            method = word.split('"')[1]
        elif depth == 6 and isinstance(service, str) and word.startswith("input_type: "):
            found.append((service, method, word.split(".")[-1].rstrip('"')))
    return [(service, method, request, fields[request]) for service, method, request in found]


def decode_raw(data):
    """The text of a message's fields by their numbers."""
    return subprocess.run(["protoc", "--decode_raw"], input=data, capture_output=True, check=True).stdout.decode()


def frame(payload):
    """A message as gRPC puts it into a stream."""
    return b"\0" + struct.pack(">I", len(payload)) + payload


def headers_of(method, token):
    # A method of the API, or of another service: "/grpc.health.v1.Health/Check".
    path = method if method.startswith("/") else "/tandem.v1." + method
    headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "here"),
               ("content-type", "application/grpc"), ("te", "trailers")]
    if token:
        headers.append(("authorization", "Bearer " + token))
    return headers


class Connection:
    """One connection. Begins calls one after the other; `pump` receives the answers. Not thread-safe."""

    def __init__(self, address, token="", window=1 << 24):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.token = token
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.h2.initiate_connection()
        self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
        if window:
            self.h2.increment_flow_control_window((1 << 30) - 65535)
        self.window = window
        self.open = set()
        # By stream: gRPC's status and its message, the bytes of the answers, and the time of the end.
        self.status, self.text, self.answer, self.ended = {}, {}, {}, {}
        self.is_lost = False
        self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data and not self.is_lost:
            try:
                self.socket.sendall(data)
            except OSError:
                self.is_lost = True

    def begin(self, method, request=b"", end=True):
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, headers_of(method, self.token))
        data = frame(request)
        for at in range(0, len(data), 16384):
            self.h2.send_data(stream, data[at:at + 16384], end_stream=end and at + 16384 >= len(data))
        self.open.add(stream)
        self.flush()
        return stream

    def begin_slowly(self, method, request):
        """As begin, for requests larger than the server's windows: waits for each window for 5 seconds."""
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, headers_of(method, self.token))
        self.open.add(stream)
        data, deadline = frame(request), time.monotonic() + 5
        while data and not self.is_lost and time.monotonic() < deadline and stream in self.open:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if room > 0:
                self.h2.send_data(stream, data[:room], end_stream=room >= len(data))
                data, deadline = data[room:], time.monotonic() + 5
                self.flush()
            else:
                self.pump(0.1, lambda: True)
        return stream

    def pump(self, seconds=0.0, enough=lambda: False):
        """Receives for at most `seconds`, or until `enough`. Answers pings. Returns False if the connection is lost."""
        deadline = time.monotonic() + seconds
        while not self.is_lost:
            left = deadline - time.monotonic()
            if not select.select([self.socket], [], [], max(0, left))[0]:
                break
            try:
                data = self.socket.recv(1 << 20)
            except OSError:
                data = b""
            if not data:
                self.is_lost = True
                break
            try:
                events = self.h2.receive_data(data)
            except Exception:
                self.is_lost = True
                break
            for event in events:
                self.take(event)
            self.flush()
            if left <= 0 or enough():
                break
        return not self.is_lost

    def take(self, event):
        if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
            for name, value in event.headers:
                if name == "grpc-status":
                    self.status[event.stream_id] = STATUS.get(value, value)
                elif name == "grpc-message":
                    self.text[event.stream_id] = value
        elif isinstance(event, h2.events.DataReceived):
            self.answer.setdefault(event.stream_id, bytearray()).extend(event.data)
            if self.window and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
            if isinstance(event, h2.events.StreamReset):
                self.status.setdefault(event.stream_id, "RESET")
            self.ended[event.stream_id] = time.monotonic()
            self.open.discard(event.stream_id)
        elif isinstance(event, h2.events.ConnectionTerminated):
            self.is_lost = True

    def call(self, method, request=b"", seconds=60, enough=lambda line, stream: False):
        """The status and the answer of a call; the status is LOST or LATE if none came, and OK if `enough` was true first."""
        stream = self.begin_slowly(method, request)
        deadline = time.monotonic() + seconds
        while stream in self.open:
            if enough(self, stream):
                return "OK", bytes(self.answer[stream])[5:]
            if not self.pump(1, lambda: stream not in self.open) or time.monotonic() > deadline:
                return ("LOST" if self.is_lost else "LATE"), b""
        return self.status.get(stream, "?"), bytes(self.answer.get(stream, b""))[5:]

    def close(self):
        self.socket.close()


def own_address():
    """Returns an address of this machine other than loopback, or None."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            # Nothing is sent.
            probe.connect(("192.0.2.1", 9))
            found = probe.getsockname()[0]
    except OSError:
        return None
    return None if found.startswith(("127.", "0.")) else found


def reset_flood(address, source, token, method, body, seconds, most):
    """Begins calls and cancels them at once, for `seconds`, at most `most` calls. Connects from the address `source` unless it is
    None. Returns the number of calls, and whether the server closed the connection."""
    host, port = address.rsplit(":", 1)
    line = socket.create_connection((host, int(port)), timeout=5, source_address=(source, 0) if source else None)
    # The first call fills the server's table of headers, the others refer to it.
    encoder = hpack.Encoder()
    first = encoder.encode(headers_of(method, token))
    again = encoder.encode(headers_of(method, token))

    def raw(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    made, hung_up = 0, False
    deadline = time.monotonic() + seconds
    stream = 1
    line.setblocking(True)
    try:
        line.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + raw(4, 0, 0, b""))
        header = first
        while time.monotonic() < deadline and made < most:
            batch = bytearray()
            for _ in range(200):
                batch += raw(1, 4 if body else 5, stream, header)
                header = again
                if body:
                    batch += raw(0, 0, stream, body)
                batch += raw(3, 0, stream, b"\0\0\0\x08")
                stream += 2
            line.sendall(batch)
            made += 200
            while select.select([line], [], [], 0)[0]:
                if not line.recv(1 << 16):
                    raise ConnectionResetError
    except OSError:
        hung_up = True
    line.close()
    return made, hung_up
