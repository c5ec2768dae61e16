"""Servers for the tests of stores."""

from __future__ import annotations

import base64
import fcntl
import os
import socket
import subprocess
import tempfile
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from sys import executable
from typing import Any
from urllib.parse import unquote, urlsplit

with warnings.catch_warnings():  # pyftpdlib includes a copy of asyncore, which is deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

from tests.processes import TIMEOUT, running, wait_until
from tests.programs import find_program, missing_reason

__all__ = [
    "FaultyFTPServer",
    "WebServer",
    "azure_server",
    "faulty_ftp_server",
    "free_port",
    "ftp_server",
    "gcs_server",
    "google_server",
    "redis_server",
    "s3_server",
    "sftp_server",
    "web_server",
]


def free_port() -> int:
    """Return a free port. No other test process gets the same port while this process runs: a file is locked, whose
    descriptor stays open until the process exits.
    """
    folder = Path(tempfile.gettempdir(), f"zarrfs-test-ports-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    while True:
        with socket.socket() as candidate:
            candidate.bind(("127.0.0.1", 0))
            port = int(candidate.getsockname()[1])
        lock = os.open(folder / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return port


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server accepts connections."""

    def accepts_connections() -> bool:
        with socket.socket() as connection:
            connection.settimeout(TIMEOUT)
            return connection.connect_ex(("127.0.0.1", port)) == 0

    wait_until(accepts_connections, process)


@contextmanager
def redis_server() -> Iterator[str]:
    """Run redis-server without persistence; yields its URL."""
    program = find_program("redis-server")
    if program is None:
        raise FileNotFoundError(missing_reason("redis-server"))
    port = free_port()
    with tempfile.TemporaryDirectory() as scratch:
        command = [program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", scratch]
        with running(command, stdout=subprocess.DEVNULL) as process:
            wait_for(port, process)
            yield f"redis://127.0.0.1:{port}"


@contextmanager
def running_server(
    command: Sequence[str | Path], port: int, *, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a server in a subprocess. The context is entered when it accepts connections."""
    with running(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    ) as process:
        wait_for(port, process)
        yield


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 server (moto); yields its endpoint."""
    port = free_port()
    aws_keys = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    with running_server(
        [executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port, environment=aws_keys
    ):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def ftp_server(folder: Path) -> Iterator[str]:
    """Run an FTP server for a folder, with write permission and a password; yields its URL."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    with running_server(
        [
            *(executable, "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(port)),
            *("-w", "-d", folder, "-u", "who", "-P", "secret"),
        ],
        port,
    ):
        yield f"ftp://who:secret@127.0.0.1:{port}"


@contextmanager
def sftp_server(folder: Path) -> Iterator[str]:
    """Run an SFTP server (asyncssh) for a folder, with a password; yields its URL."""
    port = free_port()
    with running_server([executable, Path(__file__).with_name("sftp_server.py"), str(port), folder], port):
        yield f"sftp://who:secret@127.0.0.1:{port}"


AZURITE = Path(__file__).parents[3] / ".servers/node_modules/azurite/dist/src/blob/main.js"
"""The path where packaging/setup.sh installs Azurite by npm."""

AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The documented default key of Azurite. Not a secret."""


@contextmanager
def azure_server() -> Iterator[str]:
    """Run Azurite without persistence; yields its connection string."""
    port = free_port()
    node = find_program("node")
    if node is None or not AZURITE.exists():
        raise FileNotFoundError(
            "Azurite is not installed; packaging/setup.sh installs it if npm is available"
        )
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with running_server([node, AZURITE, *options, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port):
        yield (
            f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
        )


@contextmanager
def google_server() -> Iterator[str]:
    """Run a server with the XML interface of Google Cloud Storage and one bucket; yields its endpoint."""
    port = free_port()
    with running_server([executable, Path(__file__).with_name("object_server.py"), str(port)], port):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def gcs_server() -> Iterator[str]:
    """Run an emulator of Google Cloud Storage, in memory; yields its endpoint."""
    port = free_port()
    command = [executable, "-m", "gcp_storage_emulator", "start", "--in-memory"]
    with running_server([*command, "--host", "127.0.0.1", "--port", str(port)], port):
        yield f"http://127.0.0.1:{port}"


class FaultyFTPServer:
    """Serves a folder by FTP in a thread, with configurable failures.

    Attributes:
        url: the URL of the server.
        commands: the number of times each command was received.
        replies: replies that replace the normal ones, by command. The connection is closed after reply 421.
        truncate_after: the number of bytes that RETR sends before reply 426, or None.
        ambiguous_550: whether the server behaves like vsftpd: no MLSD, and one text for both meanings of reply 550.
    """

    def __init__(self, folder: Path) -> None:
        self.commands: Counter[str] = Counter()
        self.replies: dict[str, str] = {}
        self.truncate_after: int | None = None
        self.ambiguous_550 = False
        authorizer = DummyAuthorizer()
        authorizer.add_user("who", "secret", str(folder), perm="elradfmwMT")
        handler = type("Handler", (_FaultyFTPHandler,), {"faulty": self, "authorizer": authorizer})
        self._server = FTPServer(("127.0.0.1", 0), handler)
        self.url = f"ftp://who:secret@127.0.0.1:{self._server.address[1]}"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="ftp-server")
        self._thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._server.serve_forever(timeout=0.02, blocking=False)
        self._server.close_all()

    def close(self) -> None:
        """Stop the server."""
        self._stopping.set()
        self._thread.join()


class _FaultyFTPHandler(FTPHandler):  # type: ignore[misc]
    faulty: FaultyFTPServer
    data_channel: Any

    def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
        faulty = self.faulty
        faulty.commands[cmd] += 1
        if faulty.ambiguous_550 and cmd == "MLSD":
            self.respond("500 Unknown command.")
            return
        reply = faulty.replies.get(cmd)
        if reply is not None:
            self.respond(reply)
            if reply.startswith("421"):
                self.close_when_done()
            return
        super().pre_process_command(line, cmd, arg)

    def ftp_RETR(self, file: str) -> object:  # noqa: N802 - the name is pyftpdlib's
        truncate_after = self.faulty.truncate_after
        if truncate_after is None:
            return super().ftp_RETR(file)
        if self.data_channel is None:  # The data connection is not accepted yet.
            self._shutdown_connecting_dtp()
            self.respond("426 Connection closed; transfer aborted.")
            return None
        self._restart_position = 0
        self.respond("150 Here it comes.")
        self.data_channel.socket.sendall(Path(file).read_bytes()[:truncate_after])
        self.data_channel.close()
        self.data_channel = None
        self.respond("426 Connection closed; transfer aborted.")
        return None

    def respond(self, resp: str, logfun: object = None) -> None:
        if self.faulty.ambiguous_550 and resp.startswith("550"):
            resp = "550 Failed to open file."
        super().respond(resp)


@contextmanager
def faulty_ftp_server(folder: Path) -> Iterator[FaultyFTPServer]:
    """Run a FaultyFTPServer for a folder."""
    server = FaultyFTPServer(folder)
    try:
        yield server
    finally:
        server.close()


class WebServer:
    """Serves a folder by HTTP in threads, with configurable failures.

    Attributes:
        url: the URL of the server.
        requests: the number of requests for each path.
        bytes_sent: the number of bytes in all bodies.
        supports_ranges: whether range requests are supported.
        credentials: the required (user, password), or None.
        status_for: called with each path; returns an error status, or None.
        before_response: called with each path before the response, so that a test can observe concurrent requests.
        redirect_for: called with each path; returns the target of a redirect, or None.
        truncate_for: called with each path; returns the number of body bytes to send before closing, or None.
        stall_event: if set, the connection is not closed after ``truncate_for`` bytes but waits for this event.
        range_shift: the number of bytes by which the start of a range is wrong.
        sends_content_range: whether the response contains the Content-Range header.
        sends_content_length: whether the response contains the Content-Length header.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: Counter[str] = Counter()
        self.bytes_sent = 0
        self.supports_ranges = True
        self.credentials: tuple[str, str] | None = None
        self.status_for: Callable[[str], int | None] = lambda path: None
        self.redirect_for: Callable[[str], str | None] = lambda path: None
        self.before_response: Callable[[str], object] = lambda path: None
        self.truncate_for: Callable[[str], int | None] = lambda path: None
        self.stall_event: threading.Event | None = None
        self.range_shift = 0
        self.sends_content_range = True
        self.sends_content_length = True
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="web-server")
        self._thread.start()

    def reset(self) -> None:
        """Reset the counters."""
        self.requests.clear()
        self.bytes_sent = 0

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # With the default of 5, concurrent connections are delayed by a second.


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # the connection and its thread end after each request

    def __init__(self, web: WebServer, *arguments: object) -> None:
        self.web = web
        super().__init__(*arguments)  # type: ignore[arg-type]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        web, path = self.web, unquote(self.path.partition("?")[0])
        with web.lock:
            web.requests[path] += 1
        web.before_response(path)
        status = web.status_for(path)
        if web.credentials is not None:
            expected = base64.b64encode(":".join(web.credentials).encode()).decode()
            if self.headers.get("Authorization") != f"Basic {expected}":
                status = 401
        if web.redirect_for(self.path) is not None:
            status = 302
        file = web.folder / path.lstrip("/")
        if status is None and not file.is_file():
            status = 404
        if status is not None:
            self._send(status, b"", None, body)
            return
        data = file.read_bytes()
        range_header = self.headers.get("Range")
        if range_header is None or not web.supports_ranges:
            self._send(200, data, None, body)
            return
        first, _, last = range_header.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(len(data), int(last) + 1) if first and last else len(data)
        if start >= len(data):
            self._send(416, b"", f"bytes */{len(data)}", body)
            return
        start, stop = start + web.range_shift, min(len(data), stop + web.range_shift)
        self._send(206, data[start:stop], f"bytes {start}-{stop - 1}/{len(data)}", body)

    def _send(self, status: int, data: bytes, content_range: str | None, body: bool) -> None:
        self.send_response(status)
        location = self.web.redirect_for(self.path)
        if location is not None:
            self.send_header("Location", location)
        if self.web.sends_content_length:
            self.send_header("Content-Length", str(len(data)))
        if self.web.supports_ranges:
            self.send_header("Accept-Ranges", "bytes")
        if content_range is not None and self.web.sends_content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if body:
            limit = self.web.truncate_for(urlsplit(self.path).path)
            with self.web.lock:
                self.web.bytes_sent += len(data[:limit])
            self.wfile.write(data[:limit])
            if limit is not None and self.web.stall_event is not None:
                self.wfile.flush()
                self.web.stall_event.wait(TIMEOUT)


@contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    """Run a WebServer for a folder."""
    server = WebServer(folder)
    try:
        yield server
    finally:
        server.close()
