"""Mounts of stores on web servers: time limits, credentials, and what is reported when mounting."""

from __future__ import annotations

import base64
import errno
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
from aiohttp import ClientTimeout

import zarrfs
from tests.mount.mounted import mounted, needs_fuse, zarrfs_command
from tests.processes import TIMEOUT, running, wait_until
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.mount import MountOptions, is_mounted, mount, unmount
from zarrfs.mount.fuse.interruption import InterruptibleCalls, has_ending_signal, process_of
from zarrfs.mount.process.listing import read_statistics
from zarrfs.mount.process.sources import _open_on_server, open_sources

pytestmark = needs_fuse

DATA = np.arange(60_000, dtype="u2").reshape(60, 1000)
SHORT = "5"
"""A time limit in seconds that passes in a test. Importing the libraries of the protocol takes less."""


class Server:
    """A web server that can be told to accept requests without answering them. It requires a password if set."""

    def __init__(self, directory: Path) -> None:
        server = self

        class Handler(SimpleHTTPRequestHandler):
            def __init__(self, *arguments: Any) -> None:
                super().__init__(*arguments, directory=str(directory))

            def do_GET(self) -> None:
                self._answer(super().do_GET)

            def do_HEAD(self) -> None:
                self._answer(super().do_HEAD)

            def _answer(self, answer: Any) -> None:
                server.requests += 1
                server.resumed.wait()
                if server.authorization and self.headers.get("Authorization") != server.authorization:
                    self.send_error(401)
                    return
                try:
                    answer()
                except OSError:
                    """The client has given up."""

            def log_message(self, format: str, *arguments: object) -> None:
                """Print nothing."""

        self.resumed = threading.Event()
        self.resumed.set()
        self.requests = 0
        self.authorization = ""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()

    def close(self) -> None:
        self.resumed.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    root = zarrfs.create_group(tmp_path / "www" / "data.zarr")
    root.create_array("image", data=DATA, chunks=(10, 1000))
    root.create_array("unread", data=DATA, chunks=(10, 1000))
    root.create_group("inner").create_array("0", data=np.arange(5))
    zarrfs.consolidate_metadata(tmp_path / "www" / "data.zarr")
    made = Server(tmp_path / "www")
    yield made
    made.close()


def test_a_server_that_never_answers_is_reported_when_mounting(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    server.resumed.clear()
    completed = zarrfs_command(
        "mount", f"{server.url}/data.zarr", tmp_path / "mnt", "--timeout", SHORT, "--retries", "0"
    )
    assert completed.returncode == 1
    assert f"did not respond within {SHORT} s (--timeout)" in completed.stderr
    assert len(completed.stderr.splitlines()) == 1, completed.stderr


HUNG_LOOK_UP = """
import socket, sys, threading
from zarrfs.cli.main import run
socket.getaddrinfo = lambda *arguments, **options: threading.Event().wait()
sys.argv[1:] = ["mount", "-f", "http://host.invalid/a.zarr", *sys.argv[1:]]
run()
"""


def test_a_look_up_of_a_name_that_never_ends_is_reported_and_does_not_delay_the_exit(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HUNG_LOOK_UP, str(tmp_path), "--timeout", str(SHORT), "--retries", "0"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    assert completed.returncode == 1
    assert f"did not respond within {SHORT} s (--timeout)" in completed.stderr


def test_a_hung_server_blocks_neither_listings_nor_unmounting(server: Server, tmp_path: Path) -> None:
    options = ["--timeout", SHORT, "--retries", "0"]
    with mounted(f"{server.url}/data.zarr", tmp_path / "mnt", *options) as mnt:
        listed = sorted(os.listdir(mnt))
        assert {"image.npy", "inner"} <= set(listed)
        sizes = {name: os.stat(mnt / name).st_size for name in listed}
        with open(mnt / "image.raw", "rb") as file:
            assert file.read(100) == DATA.tobytes()[:100]
        server.resumed.clear()
        with (
            open(mnt / "unread.raw", "rb", buffering=0) as file,
            pytest.raises(OSError, match="timed out") as caught,
        ):
            file.read(10)
        assert caught.value.errno == errno.ETIMEDOUT
        for _ in range(3):
            assert sorted(os.listdir(mnt)) == listed
            assert {name: os.stat(mnt / name).st_size for name in listed} == sizes
        assert read_statistics(str(mnt))["errors"]["ETIMEDOUT"] >= 1
        server.resumed.set()
        # np.fromfile would hold the interpreter lock, which the server of this process needs, while it seeks and reads.
        # Data that timed out are an error until a request has been answered.
        while read_and_ignore(mnt / "unread.raw") != DATA.tobytes():
            """The request that tells that the server responds may be in progress."""
        server.resumed.clear()
        blocked = threading.Thread(target=read_and_ignore, args=(mnt / "image.npy",))
        blocked.start()
        unmount(str(mnt), lazy=True)
        assert not is_mounted(str(mnt))
        server.resumed.set()
        blocked.join()


def read_and_ignore(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None  # The mount is removed during the read, or the server does not respond.


@pytest.mark.parametrize("state", ["opening", "reading"])
def test_a_reader_that_waits_for_a_server_can_be_interrupted(
    state: str, server: Server, tmp_path: Path
) -> None:
    """The kernel waits for the answer of the mount, also if the program is killed."""
    read = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); "
        "file = open(sys.argv[1], 'rb'); os.write(1, b'x'); os.read(0, 1); file.read()"
    )
    url = f"{server.url}/data.zarr"
    with mounted(url, tmp_path / "mnt", "--timeout", "3600", "--retries", "0") as mnt:
        if state == "opening":
            server.resumed.clear()
        before = server.requests
        with running(
            [sys.executable, "-c", read, str(mnt / "unread.raw")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            if state == "reading":
                process.stdout.read(1)
                server.resumed.clear()
                before = server.requests
                process.stdin.write(b"x")
            wait_until(lambda: server.requests > before, process)
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT) != 0
            process.stdin.close()
            process.stdout.close()


def test_a_call_is_abandoned_if_its_request_is_interrupted() -> None:
    interrupted, released = threading.Event(), threading.Event()
    undone: SimpleQueue[int] = SimpleQueue()
    call = InterruptibleCalls(interrupted.is_set)
    assert call(divmod, 7, 2, undo=undone.put) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        call(divmod, 7, 0)
    interrupted.set()

    def open_later(number: int) -> int:
        released.wait()
        return number

    with pytest.raises(InterruptedError):
        call(open_later, 5, undo=undone.put)
    released.set()
    assert undone.get(timeout=TIMEOUT) == 5
    assert undone.empty()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_only_signals_that_end_programs_interrupt_a_request(number: signal.Signals) -> None:
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        assert not has_ending_signal(threading.get_native_id())
        signal.pthread_kill(threading.get_ident(), number)
        assert has_ending_signal(threading.get_native_id()) == (number == signal.SIGTERM)
        signal.sigwait([number])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    assert has_ending_signal(-1), "the process is not known"
    assert (process_of(threading.get_native_id()), process_of(-1)) == (os.getpid(), 0)


def test_sigterm_ends_a_mount_that_waits_for_a_server(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    command = [sys.executable, "-m", "zarrfs", "mount", "-f", "--timeout", "3600", "--retries", "0"]
    with running(
        [*command, f"{server.url}/data.zarr", str(tmp_path / "mnt")], stdin=subprocess.DEVNULL
    ) as process:
        wait_until(lambda: is_mounted(str(tmp_path / "mnt")), process)
        sorted(os.listdir(tmp_path / "mnt"))
        server.resumed.clear()
        before = server.requests
        blocked = threading.Thread(target=read_and_ignore, args=(tmp_path / "mnt" / "image.raw",))
        blocked.start()
        wait_until(lambda: server.requests > before, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
        assert not is_mounted(str(tmp_path / "mnt"))
        blocked.join()


@pytest.mark.parametrize("given", [None, 3.0])
def test_requests_of_the_client_end_with_the_time_limit(given: float | None, server: Server) -> None:
    storage: dict[str, object] = {} if given is None else {"client_kwargs": {"timeout": ClientTimeout(given)}}
    options = MountOptions(timeout=7.0, storage_options=storage)
    (root,) = open_sources([f"{server.url}/data.zarr"], options, 1 << 20, zarrfs.Access())
    store: Any = root.store
    while not isinstance(store, RemoteStore):
        store = store.store
    backend: Any = store._backend
    assert backend.file_system.client_kwargs["timeout"].total == (given or 7.0)
    root.store.close()


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_requests_of_object_stores_end_with_the_time_limit(scheme: str) -> None:
    given: dict[str, object] = (
        {"config_kwargs": {"read_timeout": 3.0}} if scheme == "s3" else {"token": "anon"}
    )
    store, _ = _open_on_server(f"{scheme}://bucket/a.zarr", given, MountOptions(timeout=7.0, retries=0))
    remote: Any = store.store
    limits = dict(remote._backend.location.client)
    assert limits["connect_timeout"] == 7.0
    assert limits["read_timeout"] == (3.0 if scheme == "s3" else 7.0)
    store.close()


def test_a_server_without_names_of_members_is_reported_when_mounting(tmp_path: Path) -> None:
    root = zarrfs.create_group(tmp_path / "www" / "plain.zarr")
    root.create_array("image", data=DATA)
    server = Server(tmp_path / "www")
    (tmp_path / "mnt").mkdir()
    try:
        completed = zarrfs_command(
            "mount", f"{server.url}/plain.zarr", tmp_path / "mnt", "--log-file", tmp_path / "log"
        )
        try:
            assert completed.returncode == 0, completed.stderr
            assert "the store cannot list" in completed.stderr
            np.testing.assert_array_equal(np.load(tmp_path / "mnt" / "image.npy"), DATA)
            counters = read_statistics(str(tmp_path / "mnt"))["server"]
            assert 2 <= counters["requests"] <= server.requests
            assert counters["nbytes"] > 1000
            assert (counters["retries"], counters["in_progress"]) == (0, 0)
            assert "server" in zarrfs_command("stats", tmp_path / "mnt").stdout
        finally:
            unmount(str(tmp_path / "mnt"), lazy=True)
    finally:
        server.close()


# -- credentials -----------------------------------------------------------------------------------------------

PASSWORD = "hunter2-p@ss/w:rd"
SIGNATURE = "sig=SECRETSIGNATURE"


def visible_texts(pid: int, mountpoint: Path, log: Path) -> str:
    """Return everything that other users can see of a mount, and its log."""
    texts = [Path("/proc/self/mounts").read_bytes(), Path(f"/proc/{pid}/cmdline").read_bytes()]
    texts.append(subprocess.run(["df", str(mountpoint)], capture_output=True, check=False).stdout)
    texts.append(zarrfs_command("mounts").stdout.encode())
    texts.append((mountpoint / ".zarrfs" / "stats.json").read_bytes())
    texts += [log.read_bytes()] if log.exists() else []
    return b"\n".join(texts).decode(errors="replace")


@pytest.mark.parametrize("way", ["file", "stdin", "environment", "url", "function"])
def test_credentials_are_used_and_not_shown(
    way: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    server.authorization = f"Basic {token}"
    mountpoint, log = tmp_path / "mnt", tmp_path / "log"
    mountpoint.mkdir()
    location = f"http://user@{server.host}/data.zarr?{SIGNATURE}"
    options = ["--log-file", str(log), "--log-level", "debug", "--retries", "0"]
    given = None
    if way == "file":
        (tmp_path / "password").write_text(f"{PASSWORD}\nanother line\n")
        options += ["--password-file", str(tmp_path / "password")]
    elif way == "stdin":
        given = f"{PASSWORD}\n"
        options += ["--password-file", "-"]
    elif way == "environment":
        monkeypatch.setenv("ZARRFS_PASSWORD", PASSWORD)
    elif way == "url":
        location = location.replace("user@", "user:hunter2-p%40ss%2Fw%3Ard@")
    try:
        if way == "function":
            mount(
                location,
                str(mountpoint),
                MountOptions(password=PASSWORD, log_file=str(log), log_level="debug"),
            )
        else:
            command = [sys.executable, "-m", "zarrfs", "mount", *options, location, str(mountpoint)]
            completed = subprocess.run(
                command, input=given, capture_output=True, text=True, check=False, timeout=TIMEOUT
            )
            assert completed.returncode == 0, completed.stderr
        np.testing.assert_array_equal(np.load(mountpoint / "image.npy"), DATA)
        server.authorization = "none"
        with pytest.raises(OSError, match=r"error|denied"):
            (mountpoint / "inner" / "0.raw").read_bytes()
        pid = read_statistics(str(mountpoint))["mount"]["pid"]
        text = visible_texts(pid, mountpoint, log)
    finally:
        unmount(str(mountpoint), lazy=True)
    assert f"{server.url}/data.zarr" in text
    assert "401" in text, "the error is in the log"
    for secret in (PASSWORD, "hunter2", SIGNATURE, "user@", token):
        assert secret not in text


def test_credentials_are_not_shown_when_mounting_fails(server: Server, tmp_path: Path) -> None:
    server.authorization = "Basic none"
    (tmp_path / "mnt").mkdir()
    location = f"http://user:hunter2@{server.host}/data.zarr?{SIGNATURE}"
    log = tmp_path / "log"
    completed = zarrfs_command("mount", location, tmp_path / "mnt", "--log-file", log, "--retries", "0")
    assert completed.returncode == 1
    text = completed.stderr + log.read_text()
    assert f"{server.url}/data.zarr" in text
    assert "hunter2" not in text
    assert "SECRET" not in text


def test_an_unusable_password_file_is_reported(server: Server, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    (tmp_path / "empty").touch()
    for path, expected in [("missing", "cannot be read"), ("empty", "is empty")]:
        completed = zarrfs_command(
            "mount", f"{server.url}/data.zarr", tmp_path / "mnt", "--password-file", tmp_path / path
        )
        assert completed.returncode == 1
        assert expected in completed.stderr
    (tmp_path / "password").write_text("secret\n")
    completed = zarrfs_command(
        "mount",
        tmp_path / "www" / "data.zarr",
        tmp_path / "mnt",
        "--password-file",
        tmp_path / "password",
        "--log-file",
        tmp_path / "log",
    )
    assert "is not a URL, so it has no password" in completed.stderr
