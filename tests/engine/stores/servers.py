"""Real servers for the tests of stores, each started once and ended with the session."""

from __future__ import annotations

import base64
import fcntl
import os
import shutil
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
from typing import TextIO
from urllib.parse import unquote, urlsplit

with (
    warnings.catch_warnings()
):  # It stands on asyncore, which Python 3.12 has no more, and it has its own of.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

from tests.processes import TIMEOUT, running, wait_until

__all__ = [
    "ShakyFTPServer",
    "WebServer",
    "azure_server",
    "free_port",
    "ftp_server",
    "gcs_server",
    "redis_server",
    "s3_server",
    "sftp_server",
    "shaky_ftp_server",
    "web_server",
]


_ports: list[TextIO] = []
"""Locks on the ports that ``free_port`` has returned, held until this process ends."""


def free_port() -> int:
    """Return a port that nobody uses now. No other test process gets the same, before or after it is used."""
    folder = Path(tempfile.gettempdir(), f"zarrfs-test-ports-{os.getuid()}")
    folder.mkdir(exist_ok=True)
    while True:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
        lock = open(folder / str(port), "w")  # noqa: SIM115 - held until the process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _ports.append(lock)
        return port


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections."""

    def answers() -> bool:
        with socket.socket() as connection:
            connection.settimeout(TIMEOUT)
            return connection.connect_ex(("127.0.0.1", port)) == 0

    wait_until(answers, process)


@contextmanager
def redis_server() -> Iterator[str]:
    """A redis-server that keeps nothing."""
    program = shutil.which("redis-server")
    if program is None:
        raise FileNotFoundError("redis-server is not installed")
    port = free_port()
    with tempfile.TemporaryDirectory() as scratch:
        command = [program, "--port", str(port), "--save", "", "--appendonly", "no", "--dir", scratch]
        with running(command, stdout=subprocess.DEVNULL) as process:
            wait_for(port, process)
            yield f"redis://127.0.0.1:{port}"


@contextmanager
def started(
    command: Sequence[str | Path], port: int, *, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """A server in a process of its own, from when it takes connections."""
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


class ShakyFTPServer:
    """Serves a folder by FTP, in a thread, and answers as it is told.

    Attributes:
        url: where.
        commands: how often each command came.
        replies: command -> what is answered instead; after 421 the connection is closed, as servers do.
        torn: RETR sends so many bytes and then 426, or None.
        vague: whether "no such file" is worded as vsftpd does, which is the same as "not allowed", without MLSD.
    """

    def __init__(self, folder: Path) -> None:
        self.commands: Counter[str] = Counter()
        self.replies: dict[str, str] = {}
        self.torn: int | None = None
        self.vague = False
        authorizer = DummyAuthorizer()
        authorizer.add_user("who", "secret", str(folder), perm="elradfmwMT")
        handler = type("Handler", (_ShakyFTPHandler,), {"shaky": self, "authorizer": authorizer})
        self._server = FTPServer(("127.0.0.1", 0), handler)
        self.url = f"ftp://who:secret@127.0.0.1:{self._server.address[1]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="ftp-server")
        self._thread.start()

    def _serve(self) -> None:
        while not self._ended.is_set():
            self._server.serve_forever(timeout=0.02, blocking=False)
        self._server.close_all()

    def close(self) -> None:
        """Stop."""
        self._ended.set()
        self._thread.join()


class _ShakyFTPHandler(FTPHandler):  # type: ignore[misc]
    shaky: ShakyFTPServer

    def pre_process_command(self, line: str, cmd: str, arg: str) -> None:
        shaky = self.shaky
        shaky.commands[cmd] += 1
        if shaky.vague and cmd == "MLSD":
            self.respond("500 Unknown command.")
            return
        reply = shaky.replies.get(cmd)
        if reply is not None:
            self.respond(reply)
            if reply.startswith("421"):
                self.close_when_done()
            return
        super().pre_process_command(line, cmd, arg)

    def ftp_RETR(self, file: str) -> object:  # noqa: N802 - the name is pyftpdlib's
        torn = self.shaky.torn
        if torn is None:
            return super().ftp_RETR(file)
        if self.data_channel is None:  # It is not accepted yet.
            self._shutdown_connecting_dtp()
            self.respond("426 Connection closed; transfer aborted.")
            return None
        self._restart_position = 0
        self.respond("150 Here it comes.")
        self.data_channel.socket.sendall(Path(file).read_bytes()[:torn])
        self.data_channel.close()
        self.data_channel = None
        self.respond("426 Connection closed; transfer aborted.")
        return None

    def respond(self, resp: str, logfun: object = None) -> None:
        if self.shaky.vague and resp.startswith("550"):
            resp = "550 Failed to open file."
        super().respond(resp)


@contextmanager
def shaky_ftp_server(folder: Path) -> Iterator[ShakyFTPServer]:
    """An FTP server of a folder that can be told to fail."""
    server = ShakyFTPServer(folder)
    try:
        yield server
    finally:
        server.close()


class WebServer:
    """Serves a folder as a plain web server does.

    Attributes:
        url: where.
        requests: how often each path was asked for.
        sent: the bytes of all bodies.
        ranges: whether ranges are known.
        login: (user, password) that is demanded, or None.
        trouble: called with each path; returns a status to answer with instead, or None.
        waiting: called before each answer, so that a test can see what is in flight at once.
        cut: called with each path; returns after how many bytes of the body the connection is cut, or None.
        stalled: where set, the connection is not cut but stays silent until this event.
        shift: how many bytes later than asked, and said, a range begins: a server that is wrong.
        honest: whether such a server says which range it has sent.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: Counter[str] = Counter()
        self.sent = 0
        self.ranges = True
        self.login: tuple[str, str] | None = None
        self.trouble: Callable[[str], int | None] = lambda path: None
        self.waiting: Callable[[str], object] = lambda path: None
        self.cut: Callable[[str], int | None] = lambda path: None
        self.stalled: threading.Event | None = None
        self.shift = 0
        self.honest = True
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self))
        self._server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), name="web-server")
        self._thread.start()

    def reset(self) -> None:
        """Begin to count anew."""
        self.requests.clear()
        self.sent = 0

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 128  # With 5 of them, many at once wait a second to be tried again.


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
        start, stop = start + web.shift, min(len(data), stop + web.shift)
        self._send(206, data[start:stop], f"bytes {start}-{stop - 1}/{len(data)}", body)

    def _send(self, status: int, data: bytes, content_range: str | None, body: bool) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if self.web.ranges:
            self.send_header("Accept-Ranges", "bytes")
        if content_range is not None and self.web.honest:
            self.send_header("Content-Range", content_range)
        self.end_headers()
        if body:
            limit = self.web.cut(urlsplit(self.path).path)
            with self.web.lock:
                self.web.sent += len(data[:limit])
            self.wfile.write(data[:limit])
            if limit is not None and self.web.stalled is not None:
                self.wfile.flush()
                self.web.stalled.wait(TIMEOUT)


@contextmanager
def web_server(folder: Path) -> Iterator[WebServer]:
    """A web server of a folder."""
    server = WebServer(folder)
    try:
        yield server
    finally:
        server.close()
