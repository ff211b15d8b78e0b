#!/usr/bin/env python3
"""A faulty web server for a folder, to test clients that fetch from it.

  mishap_server.py FOLDER PORT_FILE

Listens on a free port of 127.0.0.1, which it writes to PORT_FILE, and answers GET:

  /ok/NAME            the file, with ETag, Range, If-Range and If-None-Match
  /no-ranges/NAME     always the whole file, without an ETag
  /cut/N/NAME         the connection ends after N bytes of each response
  /short/NAME         Content-Length is 1000 bytes more than the response has
  /stall/NAME         the first response stops in its middle, and the connection stays open
  /flaky/NAME         503 twice, then the file
  /tenth/NAME         the first of each ten requests fails: by turns with 503, or after half of the file
  /changes/NAME       the first response is cut in its middle; then the file is "changed" followed by the old file
  /slow/NAME          100 kB a second
  /loop               redirects to itself
  /to?URL             redirects to URL
  /status/CODE        this status
  /log                a line for each request so far: its path and its Range
  /s3/BUCKET/NAME     the file; /s3/BUCKET/?list-type=2 lists the files, two on a page. Only for requests signed by AWS's
                      Signature Version 4, with the key "tester" and the secret "a+secret/key"
"""

import hashlib
import hmac
import http.server
import os
import socketserver
import sys
import threading
import time
import urllib.parse
from xml.sax import saxutils

KEY, SECRET = "tester", "a+secret/key"


def why_unsigned(handler):
    """Returns the code of S3's error if the request's signature is wrong, else None."""
    words = handler.headers.get("Authorization", "").split(" ", 1)
    if words[0] != "AWS4-HMAC-SHA256":
        return "AccessDenied"
    fields = dict(field.strip().split("=", 1) for field in words[1].split(","))
    key, day, region, service, end = fields["Credential"].split("/")
    if key != KEY:
        return "InvalidAccessKeyId"
    signed = fields["SignedHeaders"].split(";")
    if signed != sorted(signed) or not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed):
        return "SignatureDoesNotMatch"
    path, _, query = handler.path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    request = "\n".join([
        handler.command,
        path,
        "&".join(f"{urllib.parse.quote(a, safe='-_.~')}={urllib.parse.quote(b, safe='-_.~')}" for a, b in pairs),
        *[f"{name}:{' '.join(handler.headers.get(name, '').split())}" for name in signed],
        "",
        ";".join(signed),
        handler.headers["x-amz-content-sha256"],
    ])
    scope = "/".join([day, region, service, end])
    text = "\n".join(["AWS4-HMAC-SHA256", handler.headers["x-amz-date"], scope,
                      hashlib.sha256(request.encode()).hexdigest()])
    secret = b"AWS4" + SECRET.encode()
    for part in (day, region, service, end, text):
        secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
    return None if hmac.compare_digest(secret.hex(), fields["Signature"]) else "SignatureDoesNotMatch"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log = []
    seen = {}
    lock = threading.Lock()
    folder = "."

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        path, _, query = self.path.partition("?")
        with self.lock:
            count = self.seen.get(path, 0)
            self.seen[path] = count + 1
            if path != "/log":
                self.log.append(f"{path} {self.headers.get('Range', '-')}\n")
            log = "".join(self.log)
            tenths = self.seen["tenth"] = self.seen.get("tenth", -1) + path.startswith("/tenth/")
        parts = path.strip("/").split("/")
        kind, name = parts[0], urllib.parse.unquote(parts[-1])
        if kind == "s3":
            code = why_unsigned(self)
            if code:
                return self.send(403, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode(), {})
            if "list-type=2" in query:
                return self.list(dict(urllib.parse.parse_qsl(query)))
        if kind == "log":
            return self.send(200, log.encode(), {})
        if kind == "loop":
            return self.send(302, b"", {"Location": "/loop"})
        if kind == "to":
            return self.send(302, b"", {"Location": query})
        if kind == "status":
            return self.send(int(name), b"no", {})
        file = os.path.join(self.folder, name)
        if not os.path.isfile(file):
            return self.send(404, b"no such file", {})
        with open(file, "rb") as content:
            content = content.read()
        if kind == "changes" and count > 0:
            content = b"changed" + content
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        if kind == "flaky" and count < 2:
            return self.send(503, b"", {"Retry-After": "0"})
        if kind == "tenth" and tenths % 20 == 0:
            return self.send(503, b"", {"Retry-After": "0"})
        if kind == "no-ranges":
            return self.send(200, content, {})
        headers = {"ETag": tag, "Accept-Ranges": "bytes"}
        if self.headers.get("If-None-Match") == tag:
            return self.send(304, b"", headers)
        status, whole = 200, len(content)
        wanted = self.headers.get("Range")
        if wanted and self.headers.get("If-Range", tag) == tag:
            begin = int(wanted[len("bytes="):].rstrip("-"))
            if begin >= whole:
                return self.send(416, b"", headers)
            status, content = 206, content[begin:]
            headers["Content-Range"] = f"bytes {begin}-{whole - 1}/{whole}"
        if kind == "tenth" and tenths % 20 == 10:
            return self.send(status, content, headers, only=len(content) // 2)
        if kind == "cut":
            return self.send(status, content, headers, only=int(parts[1]))
        if kind == "short":
            return self.send(status, content, headers, claim=len(content) + 1000)
        if kind == "stall" and count == 0:
            return self.send(status, content, headers, only=len(content) // 2, then=lambda: time.sleep(3600))
        if kind == "changes" and count == 0:
            return self.send(status, content, headers, only=len(content) // 2)
        self.send(status, content, headers, slow=kind == "slow")

    def list(self, query):
        names = sorted(n for n in os.listdir(self.folder) if n.startswith(query.get("prefix", "")))
        names = [n for n in names if n > query.get("continuation-token", "")]
        xml = "<ListBucketResult>"
        for name in names[:2]:
            size = os.path.getsize(os.path.join(self.folder, name))
            xml += f"<Contents><Key>{saxutils.escape(name)}</Key><Size>{size}</Size><ETag>t</ETag></Contents>"
        more = len(names) > 2
        xml += f"<IsTruncated>{str(more).lower()}</IsTruncated>"
        if more:
            xml += f"<NextContinuationToken>{saxutils.escape(names[1])}</NextContinuationToken>"
        self.send(200, (xml + "</ListBucketResult>").encode(), {})

    def send(self, status, content, headers, only=None, claim=None, then=None, slow=False):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if claim is None else claim))
        self.end_headers()
        content = content if only is None else content[:only]
        try:
            for begin in range(0, len(content), 10000 if slow else 1 << 20):
                self.wfile.write(content[begin:begin + (10000 if slow else 1 << 20)])
                if slow:
                    time.sleep(0.1)
            self.wfile.flush()
            if then:
                then()
        except (BrokenPipeError, ConnectionResetError):
            pass
        if only is not None or claim is not None:
            self.close_connection = True


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    Handler.folder = sys.argv[1]
    server = Server(("127.0.0.1", 0), Handler)
    with open(sys.argv[2] + ".new", "w") as port_file:
        port_file.write(str(server.server_address[1]))
    os.rename(sys.argv[2] + ".new", sys.argv[2])
    server.serve_forever()
