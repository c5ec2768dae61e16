"""A web server for a directory whose next response can be faulty."""

from __future__ import annotations

import os
import re
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

__all__ = ["FAULTS", "FaultyWebServer"]

FAULTS = (
    "status 500",
    "status 503",
    "no response",
    "truncated",
    "short",
    "long",
    "whole value",
    "page",
    "pieces",
    "hang",
)
"""What can be wrong with a response.

``truncated``: fewer bytes than announced. ``short``, ``long``: another range than requested, announced correctly.
``whole value``: the range is ignored. ``page``: a page of a proxy with status 200. ``pieces``: the bytes arrive one by
one, and nothing is wrong. ``hang``: no response until ``resume`` is called.
"""

HARMLESS = ("whole value", "pieces")


class FaultyWebServer:
    """Serves a directory with byte ranges and entity tags.

    ``fail(fault, after)`` makes the request number ``after`` from now on faulty; ``has_failed`` is whether that has
    happened since, with a fault that is not harmless.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.resumed = threading.Event()
        self.has_failed = False
        self.requests = 0
        self._fault: tuple[str, int] | None = None
        self._lock = threading.Lock()
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = False
        self._connections: set[socket.socket] = set()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def fail(self, fault: str | None, after: int = 1) -> None:
        with self._lock:
            self._fault = None if fault is None else (fault, after)
            self.has_failed = False
            self.resumed = threading.Event()

    def resume(self) -> None:
        """End the responses that hang."""
        self.resumed.set()

    def next_fault(self) -> tuple[str | None, threading.Event]:
        """Return the fault of a response, and the event that ends a response that hangs."""
        with self._lock:
            self.requests += 1
            if self._fault is None:
                return None, self.resumed
            fault, after = self._fault
            if after > 1:
                self._fault = fault, after - 1
                return None, self.resumed
            self._fault = None
            self.has_failed = self.has_failed or fault not in HARMLESS
            return fault, self.resumed

    def close(self) -> None:
        """Stop the server and end its connections, which clients keep open."""
        self.resume()
        self._server.shutdown()
        with self._lock:
            for connection in self._connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    owner: FaultyWebServer
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        with self.owner._lock:
            self.owner._connections.add(self.connection)

    def finish(self) -> None:
        with self.owner._lock:
            self.owner._connections.discard(self.connection)
        with suppress(OSError):
            super().finish()

    def do_GET(self) -> None:
        self._respond(is_head=False)

    def do_HEAD(self) -> None:
        self._respond(is_head=True)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""

    def _respond(self, is_head: bool) -> None:
        fault, resumed = self.owner.next_fault()
        try:
            if fault == "hang":
                resumed.wait()
                self.close_connection = True
            elif fault == "no response":
                self.close_connection = True
            elif fault is not None and fault.startswith("status"):
                self._send(int(fault.split()[1]), b"the server failed", is_head)
            elif fault == "page":
                self._send(200, b"<html>Please log in</html>", is_head)
            else:
                self._send_file(fault, is_head)
        except OSError:
            """The client has closed the connection."""

    def _send_file(self, fault: str | None, is_head: bool) -> None:
        path = os.path.join(self.owner.directory, unquote(urlsplit(self.path).path).strip("/"))
        try:
            with open(path, "rb") as file:
                value = file.read()
                status = os.fstat(file.fileno())
        except OSError:
            self._send(404, b"", is_head)
            return
        headers = {"ETag": f'"{status.st_mtime_ns}-{status.st_ino}"', "Accept-Ranges": "bytes"}
        match = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if match is None or fault == "whole value":
            body = value[:-1] if fault == "short" else value + b"x" if fault == "long" else value
            self._send(200, body, is_head, headers, fault)
            return
        if match[1]:
            first, last = int(match[1]), min(int(match[2] or len(value)), len(value) - 1)
        else:
            first, last = max(0, len(value) - int(match[2])), len(value) - 1
        if first >= len(value):
            self._send(416, b"", is_head, {"Content-Range": f"bytes */{len(value)}"})
            return
        if fault == "short":
            last = max(first, last - 1)
        elif fault == "long":
            first = max(0, first - 1)
        headers["Content-Range"] = f"bytes {first}-{last}/{len(value)}"
        self._send(206, value[first : last + 1], is_head, headers, fault)

    def _send(
        self, status: int, body: bytes, is_head: bool, headers: Any = None, fault: str | None = None
    ) -> None:
        self.send_response(status)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if is_head:
            return
        if fault == "truncated":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif fault == "pieces":
            for position in range(len(body)):
                self.wfile.write(body[position : position + 1])
                self.wfile.flush()
        else:
            self.wfile.write(body)
