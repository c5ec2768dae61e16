"""Real servers for the tests of stores, each started once and ended with the session."""

from __future__ import annotations

import base64
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from sys import executable

__all__ = [
    "WebServer",
    "azure_server",
    "free_port",
    "ftp_server",
    "gcs_server",
    "redis_server",
    "s3_server",
    "sftp_server",
    "web_server",
]


def free_port() -> int:
    """Return a port that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections."""
    for _ in range(400):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        with socket.socket() as connection:
            connection.settimeout(0.5)
            if connection.connect_ex(("127.0.0.1", port)) == 0:
                return
        threading.Event().wait(0.05)
    raise TimeoutError("the server does not take connections")


@contextmanager
def redis_server() -> Iterator[str]:
    """A redis-server that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        raise FileNotFoundError("redis-server is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory() as scratch:
        process = subprocess.Popen(
            [program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", scratch],
            stdout=subprocess.DEVNULL,
        )
        try:
            wait_for(port, process)
            yield f"redis://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


@contextmanager
def started(
    command: Sequence[str | Path], port: int, *, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server in a process of its own, from when it takes connections."""
    process = subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )
    try:
        wait_for(port, process)
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def s3_server() -> Iterator[str]:
    """An S3 server by moto; yields its endpoint."""
    port = free_port()
    login = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x"}
    with started(
        [executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], port, environment=login
    ):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def ftp_server(folder: Path) -> Iterator[str]:
    """An FTP server of a folder, writable for a user with a password; yields its URL."""
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    with started(
        [
            *(executable, "-m", "pyftpdlib", "-i", "127.0.0.1", "-p", str(port)),
            *("-w", "-d", folder, "-u", "who", "-P", "secret"),
        ],
        port,
    ):
        yield f"ftp://who:secret@127.0.0.1:{port}"


@contextmanager
def sftp_server(folder: Path) -> Iterator[str]:
    """An SFTP server of a folder, by asyncssh, for a user with a password; yields its URL."""
    port = free_port()
    with started([executable, Path(__file__).with_name("sftp_server.py"), str(port), folder], port):
        yield f"sftp://who:secret@127.0.0.1:{port}"


AZURITE = Path(__file__).parents[3] / ".servers/node_modules/azurite/dist/src/blob/main.js"
"""Where packaging/setup.sh puts it, with npm."""

AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key that every Azurite has, by its documentation; no secret."""


@contextmanager
def azure_server() -> Iterator[str]:
    """Azurite, which keeps nothing; yields its connection string."""
    port = free_port()
    node = shutil.which("node")
    if node is None or not AZURITE.exists():
        raise FileNotFoundError("Azurite is not installed; packaging/setup.sh does it where npm is there")
    options = ["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with started([node, AZURITE, *options, "--blobHost", "127.0.0.1", "--blobPort", str(port)], port):
        yield (
            f"DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey={AZURITE_KEY};"
            f"BlobEndpoint=http://127.0.0.1:{port}/devstoreaccount1;"
        )


@contextmanager
def gcs_server() -> Iterator[str]:
    """An emulator of Google Cloud Storage, in memory; yields its endpoint."""
    # Read when gcsfs is imported: without it, it asks by gRPC and TLS, which the emulator has not, for a minute.
    os.environ["GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT"] = "false"
    port = free_port()
    command = [executable, "-m", "gcp_storage_emulator", "start", "--in-memory"]
    with started([*command, "--host", "127.0.0.1", "--port", str(port)], port):
        yield f"http://127.0.0.1:{port}"


class WebServer:
    """Serves a folder as a plain web server does.

    Attributes:
        url: where.
        requests: how often each path was asked for.
        ranges: whether ranges are known.
        login: (user, password) that is demanded, or None.
        trouble: called with each path; returns a status to answer with instead, or None.
        waiting: called before each answer, so that a test can see what is in flight at once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: Counter[str] = Counter()
        self.ranges = True
        self.login: tuple[str, str] | None = None
        self.trouble: Callable[[str], int | None] = lambda path: None
        self.waiting: Callable[[str], object] = lambda path: None
        self.lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="web-server")
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"  # a connection and a thread end with their request

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
        from urllib.parse import unquote

        web, path = self.web, unquote(self.path.partition("?")[0])
        with web.lock:
            web.requests[path] += 1
        web.waiting(path)
        status = web.trouble(path)
        if web.login is not None:
            expected = base64.b64encode(":".join(web.login).encode()).decode()
            if self.headers.get("Authorization") != f"Basic {expected}":
                status = 401
        file = web.folder / path.lstrip("/")
        if status is None and not file.is_file():
            status = 404
        if status is not None:
            self._send(status, b"", None, body)
            return
        data = file.read_bytes()
        asked = self.headers.get("Range")
        if asked is None or not web.ranges:
            self._send(200, data, None, body)
            return
        first, _, last = asked.removeprefix("bytes=").partition("-")
        start = int(first) if first else max(0, len(data) - int(last))
        stop = min(len(data), int(last) + 1) if first and last else len(data)
        if start >= len(data):
            self._send(416, b"", f"bytes */{len(data)}", body)
            return
        self._send(206, data[start:stop], f"bytes {start}-{stop - 1}/{len(data)}", body)

    def _send(self, status: int, data: bytes, content_range: str | None, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if self.web.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if content_range is not None:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if body:
            self.wfile.write(data)


@contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    """A web server of a folder."""
    server = WebServer(folder)
    try:
        yield server
    finally:
        server.close()
