"""Failures of servers: a missing chunk is the fill value, a failure is an error and never the fill value."""

from __future__ import annotations

import base64
import ftplib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import FaultyFTPServer, WebServer, faulty_ftp_server, free_port, web_server
from zarrfs.engine.stores.base import ByteRange, ValueTooLargeError
from zarrfs.engine.stores.remote.file_systems import open_file_system
from zarrfs.engine.stores.remote.ftp import FTPEntry, _list_directory_text
from zarrfs.engine.stores.remote.http import RangeMismatchError, check_content_range
from zarrfs.engine.stores.remote.presence import Presence, classify_error
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.errors import StoreError

DATA = np.arange(1, 40 * 60 + 1, dtype="u2").reshape(40, 60)
FILL = 7


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An array in chunks, one of which is missing, and an array in shards."""
    root = tmp_path / "site"
    zarrfs.create_array(root / "plain", data=DATA, chunks=(10, 10), fill_value=FILL, compressors=[])
    zarrfs.create_array(root / "shards", data=DATA, chunks=(5, 5), shards=(20, 20), compressors=[])
    (root / "plain/c/0/0").unlink()
    return root


@pytest.fixture
def web(site: Path) -> Iterator[WebServer]:
    with web_server(site) as server:
        yield server


@pytest.fixture
def ftp(site: Path) -> Iterator[FaultyFTPServer]:
    with faulty_ftp_server(site) as server:
        yield server


# -- FTP -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_ambiguous", [False, True], ids=["distinct replies", "ambiguous replies"])
def test_missing_chunks_on_an_ftp_server_are_the_fill_value(is_ambiguous: bool, ftp: FaultyFTPServer) -> None:
    ftp.ambiguous_550 = is_ambiguous
    with zarrfs.open_array(f"{ftp.url}/plain", cache_size=0).store as store:
        array = zarrfs.open_array(store)
        assert (array[:10, :10] == FILL).all()
        ftp.commands.clear()
        assert (array[:10, :10] == FILL).all()
        # The directory is listed only if the reply is ambiguous.
        assert ftp.commands["RETR"] == 1
        assert (ftp.commands["LIST"], ftp.commands["MLSD"]) == (int(is_ambiguous), 0)
        ftp.commands.clear()
        assert np.array_equal(array[10:20, 10:20], DATA[10:20, 10:20])
        assert ftp.commands["LIST"] == ftp.commands["MLSD"] == 0


@pytest.mark.parametrize("is_ambiguous", [False, True])
def test_missing_keys_on_an_ftp_server_are_none(is_ambiguous: bool, ftp: FaultyFTPServer) -> None:
    ftp.ambiguous_550 = is_ambiguous
    with RemoteStore(ftp.url) as store:
        assert store.get("plain/c/77/1") is None
        assert store.get("no/such/thing/at/all") is None
        assert store.get("plain/c") is None
        assert store.size("plain/c/77/1") is None
        assert store.size("plain/c/1/1") == 200
        assert store.get_ranges("plain/c/77/1", [ByteRange(0, 1)]) is None
        assert store.list_dir("no/such/thing") == ([], [])
        assert store.list_dir("plain") == (["zarr.json"], ["c"])


@pytest.mark.parametrize(
    "reply",
    [
        "421 Too many connections (8) from this address.",
        "425 Cannot open data connection.",
        "450 File is busy.",
        "451 Local error in processing.",
        "530 Not logged in.",
        "550 Permission denied.",
        "500 What?",
    ],
)
@pytest.mark.parametrize("command", ["RETR", "PASV", "TYPE"])
def test_a_negative_ftp_reply_is_an_error(command: str, reply: str, ftp: FaultyFTPServer) -> None:
    with zarrfs.open_array(f"{ftp.url}/plain", cache_size=0).store as store:
        array = zarrfs.open_array(store, cache_size=0)
        # ftplib sends EPSV instead of PASV only for IPv6.
        ftp.replies = {command: reply}
        with pytest.raises(StoreError, match=f"plain/c/1/1 cannot be read: {reply[:3]}"):
            array[10:20, 10:20]
        ftp.replies = {}
        assert np.array_equal(array[10:20, 10:20], DATA[10:20, 10:20])


def test_an_aborted_ftp_transfer_is_an_error(ftp: FaultyFTPServer) -> None:
    with RemoteStore(ftp.url, read_only=True) as store:
        for limit in (0, 60):
            ftp.truncate_after = limit
            with pytest.raises(StoreError, match="426"):
                store.get("plain/c/1/1")
            with pytest.raises(StoreError, match="426"):
                store.get_ranges("plain/c/1/1", [ByteRange(10, 100)])
        ftp.truncate_after = None
        value = store.get("plain/c/1/1")
        assert value is not None
        assert store.get_ranges("plain/c/1/1", [ByteRange(10, 100), ByteRange(-3)]) == [
            value[10:110],
            value[-3:],
        ]


def test_a_range_that_arrives_in_several_blocks_has_its_length(
    ftp: FaultyFTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zarrfs.engine.stores.remote.ftp.RECEIVE_NBYTES", 16)
    with RemoteStore(ftp.url, read_only=True) as store:
        value = store.get("plain/c/1/1")
        assert value is not None
        for start, length in ((0, 16), (3, 40), (10, 32), (150, 50)):
            found = store.get_ranges("plain/c/1/1", [ByteRange(start, length)])
            assert found == [value[start : start + length]]


@pytest.mark.parametrize(("reply", "attempts"), [("450 Busy.", 1), ("421 Too many connections.", 2)])
def test_only_a_lost_ftp_connection_is_opened_again(reply: str, attempts: int, ftp: FaultyFTPServer) -> None:
    with RemoteStore(ftp.url, read_only=True) as store:
        store.get("plain/c/1/1")
        ftp.commands.clear()
        ftp.replies = {"RETR": reply}
        with pytest.raises(StoreError, match=reply[:3]):
            store.get("plain/c/1/1")
        assert ftp.commands["RETR"] == attempts


def test_a_failed_ftp_listing_is_an_error(ftp: FaultyFTPServer) -> None:
    with RemoteStore(ftp.url) as store:
        assert len(list(store.list_prefix("plain"))) == 24
        ftp.replies = {"MLSD": "450 Busy.", "LIST": "450 Busy."}
        for read in (store.list_dir, store.usage, lambda prefix: list(store.list_prefix(prefix))):
            with pytest.raises(StoreError, match="cannot be listed: 450"):
                read("plain")


def test_a_failed_ftp_deletion_is_an_error(ftp: FaultyFTPServer) -> None:
    with RemoteStore(ftp.url) as store:
        for reply in ("450 File is busy.", "550 Permission denied.", "421 Too many connections."):
            for delete in (store.delete, lambda key: store.delete_prefix("plain/c/1")):
                ftp.replies = {"DELE": reply}
                with pytest.raises(StoreError, match=f"cannot be deleted: {reply[:3]}"):
                    delete("plain/c/1/1")
                ftp.replies = {}
                assert store.size("plain/c/1/1") == 200
        ftp.replies = {"DELE": "550 No such file."}
        store.delete("plain/c/missing/key")
        ftp.replies = {"DELE": "450 Busy.", "SIZE": "450 Busy.", "MLST": "450 Busy.", "MLSD": "450 Busy."}
        with pytest.raises(
            StoreError, match="450"
        ):  # the store cannot find out whether the file still exists
            store.delete("plain/c/1/1")
        ftp.replies = {}


def test_a_lost_ftp_connection_is_opened_again(ftp: FaultyFTPServer) -> None:
    with RemoteStore(ftp.url) as store:
        backend: Any = store._backend
        backend.file_system.ftp.sock.shutdown(2)
        assert store.size("plain/c/1/1") == 200
        ftp.replies = {"TYPE": "421 Idle for too long."}
        with pytest.raises(StoreError, match="421"):
            store.size("plain/c/1/1")
        delays: list[float] = []

        def wait(seconds: float) -> None:
            delays.append(seconds)
            ftp.replies = {}

        assert RetryStore(store, sleep=wait).size("plain/c/1/1") == 200
        assert len(delays) == 1


def test_a_stopped_ftp_server_is_an_error(site: Path) -> None:
    with faulty_ftp_server(site) as server:
        array = zarrfs.open_array(f"{server.url}/plain", cache_size=0)
    with pytest.raises(StoreError, match="c/1/1 cannot be read"):
        array[10:20, 10:20]
    with pytest.raises(StoreError, match="c/0/0 cannot be read"):
        array[:10, :10]
    array.store.close()


# -- HTTP ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["plain", "shards"])
@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
def test_an_http_error_status_is_an_error(status: int, path: str, web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/{path}", cache_size=0)
    web.status_for = lambda path: status
    with pytest.raises(StoreError, match=rf"c/1/1 cannot be read: {status}.*; (check|the server)"):
        array[20:21, 20:21] if path == "shards" else array[10:11, 10:11]
    with pytest.raises(StoreError, match="cannot be looked up"):
        array.store.size("c/1/1")
    with pytest.raises(StoreError, match="cannot be"):
        array.store.get_ranges("c/1/1", [])
    web.status_for = lambda path: None
    assert array.store.size("c/77/1") is None
    assert array.store.get_ranges("c/77/1", []) is None
    array.store.close()


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("file:///etc/passwd", "redirects to file:///etc/passwd; only redirects to http:// and https://"),
        ("ftp://other/x", "redirects to ftp://other/x; only redirects to http:// and https://"),
        ("", "redirects too often"),
    ],
)
def test_a_redirect_that_is_not_followed_is_explained(target: str, message: str, web: WebServer) -> None:
    web.redirect_for = lambda path: target or path
    with RemoteStore(web.url) as store:
        for read in (store.get, store.size):
            with pytest.raises(StoreError, match=message):
                read("plain/zarr.json")


@pytest.mark.parametrize("limit", [0, 1, 150])
def test_a_truncated_http_body_is_an_error(limit: int, web: WebServer) -> None:
    with RemoteStore(web.url, read_only=True) as store:
        web.truncate_for = lambda path: limit
        for read in (
            lambda: store.get("plain/c/1/1"),
            lambda: store.get_ranges("plain/c/1/1", [ByteRange(10, 180)]),
            lambda: store.get_ranges("plain/c/1/1", [ByteRange(-180)]),
        ):
            with pytest.raises(StoreError, match="plain/c/1/1 cannot be read"):
                read()


@pytest.mark.parametrize("uses_ranges", [False, True])
def test_a_stalled_http_body_is_a_timeout(uses_ranges: bool, web: WebServer) -> None:
    options = {"client_kwargs": {"timeout": aiohttp.ClientTimeout(sock_read=0.1)}}
    with RemoteStore(web.url, read_only=True, storage_options=options) as store:
        web.truncate_for, web.stall_event = lambda path: 5, threading.Event()
        with pytest.raises(StoreError, match="the server did not respond in time; check that the server"):
            store.get_ranges("plain/c/1/1", [ByteRange(3, 50)]) if uses_ranges else store.get("plain/c/1/1")
        web.stall_event.set()


@pytest.mark.parametrize("has_length", [True, False])
def test_a_value_that_is_too_large_is_not_received(has_length: bool, web: WebServer) -> None:
    with RemoteStore(web.url, read_only=True) as store:
        web.sends_content_length = has_length
        web.truncate_for, web.stall_event = lambda path: 150, threading.Event()  # of 200 bytes
        try:
            with pytest.raises(ValueTooLargeError, match="has 200 bytes" if has_length else "has 150 bytes"):
                store.get_within("plain/c/1/1", 100)
        finally:
            web.stall_event.set()


@pytest.mark.parametrize("has_content_range", [True, False])
def test_a_wrong_http_range_is_an_error(has_content_range: bool, web: WebServer) -> None:
    with RemoteStore(web.url, read_only=True) as store:
        web.range_shift, web.sends_content_range = 4, has_content_range
        with pytest.raises(StoreError, match="requested the last 20 bytes, found"):
            store.get_ranges("plain/c/1/1", [ByteRange(-20)])
        if has_content_range:
            with pytest.raises(
                StoreError, match="requested 20 bytes from 8, found 20 bytes with the Content-Range 'bytes 12"
            ):
                store.get_ranges("plain/c/1/1", [ByteRange(8, 20)])


def test_ranges_from_a_server_without_range_support_take_one_request(web: WebServer) -> None:
    web.supports_ranges = False
    with RemoteStore(web.url, read_only=True) as store:
        value = store.get("shards/c/0/0")
        assert value is not None
        ranges = [ByteRange(1, 2), ByteRange(-2), ByteRange(5)]
        expected = [value[1:3], value[-2:], value[5:]]
        assert store.get_ranges("shards/c/0/0", ranges) == expected
        web.requests.clear()
        parts = store.get_ranges("shards/c/0/0", ranges)
        assert parts is not None
        assert [bytes(part) for part in parts] == expected
        assert sum(web.requests.values()) == 1


# -- references ------------------------------------------------------------------------------------------------


def references(site: Path, target: str, whole: bool) -> dict[str, object]:
    """Return references to two chunks, and one inline chunk."""
    size = (site / "plain/c/1/1").stat().st_size
    refs: dict[str, object] = {"zarr.json": (site / "plain/zarr.json").read_text()}
    for key in ("c/1/1", "c/1/2"):
        refs[key] = [f"{target}/plain/{key}"] if whole else [f"{target}/plain/{key}", 0, size]
    refs["c/2/2"] = "base64:" + base64.b64encode((site / "plain/c/2/2").read_bytes()).decode()
    return {"version": 1, "refs": refs}


def open_references(tmp_path: Path, document: dict[str, object]) -> zarrfs.Array:
    path = tmp_path / "refs.json"
    path.write_text(json.dumps(document))
    options = {"fo": str(path), "remote_protocol": "http", "remote_options": {"skip_instance_cache": True}}
    array = zarrfs.open("reference://", storage_options=options, cache_size=0, allow_external=True)
    assert isinstance(array, zarrfs.Array)
    return array


@pytest.mark.parametrize("whole", [True, False], ids=["whole files", "parts of files"])
def test_a_failed_target_of_a_reference_is_an_error(
    whole: bool, site: Path, web: WebServer, tmp_path: Path
) -> None:
    array = open_references(tmp_path, references(site, web.url, whole))
    assert np.array_equal(array[10:20, 10:30], DATA[10:20, 10:30])
    assert (array[:10, :10] == FILL).all()
    for status in (404, 403, 500):  # also 404: the chunk exists according to the reference
        web.status_for = lambda path, status=status: status
        with pytest.raises(StoreError, match="c/1/1 cannot be read"):
            array[10:20, 10:20]
        with pytest.raises(StoreError, match="c/1/1 cannot be "):
            array.store.get_ranges("c/1/1", [ByteRange(0, 10)])
        assert np.array_equal(array[20:30, 20:30], DATA[20:30, 20:30])
        assert (array[:10, :10] == FILL).all()


@pytest.mark.parametrize("whole", [True, False], ids=["whole files", "parts of files"])
def test_an_unreachable_target_of_a_reference_is_an_error(whole: bool, site: Path, tmp_path: Path) -> None:
    array = open_references(tmp_path, references(site, f"http://127.0.0.1:{free_port()}", whole))
    with pytest.raises(StoreError, match="c/1/1 cannot be read"):
        array[10:20, 10:20]
    with pytest.raises(StoreError, match="c/1/1 cannot be"):
        array.store.get_ranges("c/1/1", [ByteRange(-4)])
    assert array.store.get("c/3/3") is None
    assert array.store.size("c/3/3") is None
    assert np.array_equal(array[20:30, 20:30], DATA[20:30, 20:30])


# -- classification of errors ----------------------------------------------------------------------------------


def with_cause(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "presence"),
    [
        (FileNotFoundError("x"), Presence.MISSING),
        (KeyError("x"), Presence.MISSING),
        (OSError(36, "File name too long"), Presence.MISSING),
        (OSError(5, "Input/output error"), Presence.FAILURE),
        (PermissionError(13, "no"), Presence.FAILURE),
        (ConnectionRefusedError(111, "no"), Presence.FAILURE),
        (with_cause(FileNotFoundError("x"), TimeoutError()), Presence.FAILURE),
        (
            with_cause(FileNotFoundError("x"), with_cause(KeyError("x"), ConnectionResetError(104, "x"))),
            Presence.FAILURE,
        ),
        (with_cause(FileNotFoundError("x"), OSError(111, "Connection refused")), Presence.FAILURE),
        (with_cause(FileNotFoundError("x"), ValueError("what?")), Presence.UNCERTAIN),
        (ValueError("what?"), Presence.FAILURE),
    ],
    ids=repr,
)
def test_errors_are_classified(error: BaseException, presence: Presence) -> None:
    assert classify_error(error) is presence


@pytest.mark.emulators
def test_errors_of_cloud_services_are_classified() -> None:
    from azure.core.exceptions import ResourceNotFoundError
    from botocore.exceptions import ClientError

    for status, presence in ((404, Presence.MISSING), (503, Presence.FAILURE)):
        error = ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject")
        assert classify_error(with_cause(FileNotFoundError("x"), error)) is presence
    error = with_cause(FileNotFoundError("x"), ResourceNotFoundError("x"))
    assert classify_error(error) is Presence.MISSING


@pytest.mark.parametrize(
    ("reply", "fails"), [("226 Transfer done (but failed to open directory).", True), ("226 Done.", False)]
)
def test_a_listing_whose_reply_reports_a_failure_is_an_error(reply: str, fails: bool) -> None:
    class Connection:
        def retrlines(self, command: str, callback: Callable[[str], object]) -> str:
            assert command == "LIST a"
            callback("-rw-r--r-- 1 owner group 12 Jan 01 00:00 name with spaces")
            return reply

    connection: Any = Connection()
    if fails:
        with pytest.raises(ftplib.error_temp, match="a cannot be listed"):
            _list_directory_text(connection, "a")
    else:
        assert _list_directory_text(connection, "a") == {"name with spaces": FTPEntry(False, 12)}


def test_listings_are_not_cached_by_the_file_system() -> None:
    file_system = open_file_system("http://127.0.0.1:9/a", {}, allow_external=False).file_system
    file_system.dircache["a"] = [{"name": "old"}]
    assert "a" not in file_system.dircache


@pytest.mark.parametrize(
    ("requested", "description"),
    [
        (ByteRange(3, 4), "requested 4 bytes from 3"),
        (ByteRange(3), "requested the bytes from 3"),
        (ByteRange(-3), "requested the last 3 bytes"),
    ],
)
def test_responses_with_another_range_are_refused(requested: ByteRange, description: str) -> None:
    with pytest.raises(
        RangeMismatchError, match=rf"{description}, found 2 bytes with the Content-Range 'bytes 0-1/9'"
    ):
        check_content_range(requested, "bytes 0-1/9", 2)
    first, last = requested.resolve(9)
    check_content_range(requested, f"bytes {first}-{last - 1}/9", last - first)
