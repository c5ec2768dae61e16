"""Object stores through obstore: options, requests, connections, failures, and when fsspec is used instead."""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.object_server import ObjectServer, object_server
from tests.engine.stores.servers import free_port
from tests.processes import TIMEOUT, output_of
from zarrfs.engine.stores.base import ByteRange, ValueCreatedError, ValueTooLargeError
from zarrfs.engine.stores.remote import object_options
from zarrfs.engine.stores.remote.object_backend import WRITTEN_PART_NBYTES, ObjectBackend
from zarrfs.engine.stores.remote.object_errors import convert_error
from zarrfs.engine.stores.remote.object_options import ObjectLocation, UnsupportedError, object_location
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.engine.stores.zip.remote import RemoteZipStore
from zarrfs.errors import ConflictError, LocationError, NodeExistsError, OptionError, ServerError, StoreError
from zarrfs.tools.consolidation import update_consolidated

DATA = np.arange(40 * 60, dtype="u2").reshape(40, 60)


@pytest.fixture
def server() -> Iterator[ObjectServer]:
    with object_server("bucket") as opened:
        yield opened


@pytest.fixture(params=["s3", "gs"])
def scheme(request: pytest.FixtureRequest, server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A service whose requests go to the server."""
    monkeypatch.setenv("GOOGLE_BASE_URL", server.url)
    return str(request.param)


def s3_options(server: ObjectServer, **more: Any) -> dict[str, Any]:
    """Return options with which failed requests are not repeated."""
    config = {"retries": {"max_attempts": 0}}
    return {"endpoint_url": server.url, "key": "x", "secret": "x", "config_kwargs": config, **more}


def open_store(server: ObjectServer, scheme: str = "s3", path: str = "a.zarr", **more: Any) -> RemoteStore:
    options = s3_options(server, **more) if scheme == "s3" else {"token": "t", **more}
    return RemoteStore(f"{scheme}://bucket/{path}", storage_options=options)


def methods(server: ObjectServer) -> list[str]:
    return [request.partition(" ")[0] for request in server.requests]


# -- requests --------------------------------------------------------------------------------------------------


def test_arrays_are_written_read_and_listed(server: ObjectServer, scheme: str) -> None:
    server.max_keys = 7
    with open_store(server, scheme) as store:
        root = zarrfs.create_group(store)
        for name in ("a", "b"):
            root.create_array(name, data=DATA, chunks=(10, 10))
        root.create_array("shards", data=DATA, chunks=(5, 5), shards=(20, 20))
        for name in ("a", "b", "shards"):
            assert np.array_equal(root[name][...], DATA)
            assert np.array_equal(root[name][13:29, 7], DATA[13:29, 7])
        assert root.names() == ["a", "b", "shards"]
        assert len(list(store.list_prefix("a"))) == 25
        assert store.usage("a").keys == 25
        del root["a"]
        assert root.names() == ["b", "shards"]
        assert np.array_equal(pickle.loads(pickle.dumps(root["b"]))[...], DATA)


def test_ranges_take_one_request_each(server: ObjectServer) -> None:
    with open_store(server) as store:
        zarrfs.create_array(store, data=DATA, chunks=(5, 5), shards=(20, 20))
        array = zarrfs.open_array(store, cache_size=None)
        server.reset()
        assert array[0, 0] == DATA[0, 0]
        # Other writers are possible: the version of the shard is checked before and after the read.
        assert methods(server) == ["GET", "GET", "GET", "GET"]
        with RemoteStore(
            "s3://bucket/a.zarr", read_only=True, storage_options=s3_options(server)
        ) as immutable:
            array = zarrfs.open_array(immutable, cache_size=None)
            server.reset()
            assert array[0, 0] == DATA[0, 0]
            # The index of the shard by a suffix range, and the inner chunk. The size is not requested.
            assert methods(server) == ["GET", "GET"]
        server.reset()
        assert store.get("c/7/7") is None
        assert methods(server) == ["GET"]
        store.set("value", bytes(range(100)))
        server.reset()
        assert store.get_ranges("value", [ByteRange(5, 10), ByteRange(-3)]) == [
            bytes(range(5, 15)),
            bytes(range(97, 100)),
        ]
        assert methods(server) == ["GET", "GET"]


def test_nodes_are_created_and_looked_up_with_few_requests(server: ObjectServer) -> None:
    with open_store(server) as store:
        root = zarrfs.create_group(store)
        # The document and whether there is anything below the path; what is read is not read again.
        assert methods(server) == ["GET", "GET", "PUT"]
        server.reset()
        root.create_array("a", shape=4, dtype="i4")
        assert methods(server) == ["GET", "GET", "GET", "PUT"]  # and the document of the root
        server.reset()
        assert "missing" not in root
        assert server.requests == ["GET /bucket/a.zarr/missing/zarr.json", "GET /bucket list"]
        server.reset()
        assert "a" in root
        assert len(server.requests) == 1, server.requests
        server.reset()
        zarrfs.open_array(store, "b", mode="a", shape=4, dtype="i4")
        assert len(server.requests) == 7 + 4, server.requests  # The format of the missing node is not known.
        # A node of another format is found, and a missing node is found when it has been created.
        zarrfs.create_array(store, "missing", shape=4, dtype="i4", zarr_format=2)
        assert "missing" in root
        with pytest.raises(NodeExistsError):
            root.create_group("missing")
        store.set("empty", b"")
        assert (store.size("empty"), store.size("other"), store.version("other")) == (0, None, None)
        assert (store.is_empty("a"), store.is_empty("other"), store.is_empty()) == (False, True, False)
        assert PrefixStore(store, "other").is_empty()


def test_values_are_deleted_together(server: ObjectServer) -> None:
    with open_store(server) as store:
        root = zarrfs.create_group(store)
        for is_supported in (True, False):
            root.create_group("g").create_array("a", data=np.arange(64), chunks=1)
            if not is_supported:
                server.status_for = lambda method, path: 501 if method == "POST" else None
            server.reset()
            store.delete_prefix("g")
            # The list of the keys, and one request for all of them. The chunk of zeros is missing.
            assert len(server.requests) == (2 if is_supported else 2 + 65), server.requests
            assert list(store.list_prefix("g")) == []
        server.status_for = lambda method, path: None
        root.create_group("g").create_array("a", data=np.arange(64), chunks=1)
        server.reset()
        del root["g"]
        assert len(server.requests) <= 10, server.requests
        assert list(store.list_prefix("")) == ["zarr.json"]


def test_a_zip_file_in_a_bucket_is_read(server: ObjectServer, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=DATA, chunks=(5, 5), shards=(20, 20))
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for file in sorted((tmp_path / "a.zarr").rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(tmp_path / "a.zarr"))
    server.buckets["bucket"]["a.zarr.zip"] = (tmp_path / "a.zip").read_bytes()
    options = s3_options(server)
    # The options can be given directly or by protocol, as in fsspec.
    for url, given in (("zip::s3://bucket/a.zarr.zip", {"s3": options}), ("s3://bucket/a.zarr.zip", options)):
        array = zarrfs.open_array(url, storage_options=given)
        assert isinstance(array.store, RemoteZipStore)
        server.reset()
        assert array[21, 21] == DATA[21, 21]
        assert 1 <= len(server.requests) <= 3
        server.reset()
        assert array[26, 26] == DATA[26, 26]
        assert len(server.requests) <= 1
        assert np.array_equal(array[...], DATA)
        assert np.array_equal(pickle.loads(pickle.dumps(array))[...], DATA)


def test_all_chunks_are_requested_before_the_first_response(server: ObjectServer) -> None:
    with open_store(server) as store:
        zarrfs.create_array(store, data=DATA, chunks=(10, 10))
        array = zarrfs.open_array(store, mode="r", cache_size=0)
        arrived = threading.Barrier(24)
        server.before_response = lambda path: arrived.wait(TIMEOUT)
        assert np.array_equal(array[...], DATA)
        server.before_response = lambda path: None


def test_a_second_open_uses_the_connections_of_the_first(server: ObjectServer, scheme: str) -> None:
    with open_store(server, scheme) as store:
        zarrfs.create_array(store, data=DATA, chunks=(10, 10))
        zarrfs.open_array(store, cache_size=0)[...]
    server.reset()
    for path in ("a.zarr", "a.zarr/c"):  # also at another path of the bucket, and in other threads
        with open_store(server, scheme, path) as store, ThreadPoolExecutor(4) as threads:
            assert all(threads.map(lambda key: store.size(key) is None, ["q", "r", "s", "t"]))
    assert len(server.requests) == 8
    assert server.connections == 0
    # Other credentials have their own connections.
    more = {"key": "other"} if scheme == "s3" else {"token": "other"}
    with open_store(server, scheme, **more) as store:
        assert store.size("q") is None
    assert server.connections == 1


def test_large_values_are_written_in_parts(server: ObjectServer) -> None:
    value = np.random.default_rng(1).bytes(2 * WRITTEN_PART_NBYTES + 5)
    with open_store(server) as store:
        store.set("large", value)
        assert store.get("large") == value
        # The size is known with the first part that is read.
        assert server.requests[-5:] == ["GET /bucket/a.zarr/large"] * 5
        assert sorted(server.requests[:-5]) == [
            "POST /bucket/a.zarr/large uploadId",
            "POST /bucket/a.zarr/large uploads",
            *["PUT /bucket/a.zarr/large partNumber uploadId"] * 3,
        ]
        server.reset()
        server.status_for = lambda method, path: 400 if method == "PUT" else None
        with pytest.raises(StoreError, match="large cannot be written: 400"):
            store.set("large", bytes(2 * WRITTEN_PART_NBYTES))
        assert "DELETE /bucket/a.zarr/large uploadId" in server.requests
        assert not server.uploads
        assert store.get("large") == value


def test_a_value_that_is_too_large_is_not_received(server: ObjectServer) -> None:
    with open_store(server) as store:
        store.set("k", bytes(1000))
        with pytest.raises(ValueTooLargeError, match="has 1,000 bytes"):
            store.get_within("k", 10)
        assert server.headers[1]["range"] == "bytes=0-10"
        assert store.get_within("k", 1000) == bytes(1000)


# -- several writers -------------------------------------------------------------------------------------------


def test_a_value_is_created_once(server: ObjectServer, scheme: str) -> None:
    with open_store(server, scheme) as store:
        store.create("k", [b"a", b"b"])
        with pytest.raises(ValueCreatedError):
            store.create("k", [b"c"])
        assert store.get("k") == b"ab"
        assert methods(server) == ["PUT", "PUT", "GET"]


@pytest.mark.parametrize("start", [b"", b"old", None])
def test_a_locked_value_that_another_writer_has_changed_is_not_overwritten(
    start: bytes | None, server: ObjectServer, scheme: str
) -> None:
    with open_store(server, scheme) as store, open_store(server, scheme) as other:
        if start is not None:
            store.set("k", start)
        with store.lock("k"):
            assert store.get("k") == start
            store.set("k", b"mine")
            store.set("k", b"mine again")
            other.set("k", b"theirs")
            with pytest.raises(ConflictError, match="another writer has changed it since it was read"):
                store.set("k", b"lost")
        with store.lock("k"):
            assert store.get_ranges("k", [ByteRange(0, 100)]) == [b"theirs"]
            store.set("k", b"new")
        with store.lock("k"):
            assert store.get_ranges("k", [ByteRange(1, 1), ByteRange(-1)]) == [b"e", b"w"]
            other.delete("k")
            with pytest.raises(ConflictError):
                store.set("k", b"lost")
        assert store.get("k") is None


@contextmanager
def two_writers(server: ObjectServer, scheme: str) -> Iterator[tuple[RemoteStore, RemoteStore]]:
    """Yield two stores of the same bucket. They have different URLs, so that locks of this process exclude neither."""
    with open_store(server, scheme) as first, open_store(server, scheme) as second:
        first._display_url, second._display_url = "one", "two"
        yield first, second


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_two_writers_lose_no_attributes(zarr_format: Any, server: ObjectServer, scheme: str) -> None:
    with two_writers(server, scheme) as stores, ThreadPoolExecutor(2) as threads:
        zarrfs.create_group(stores[0], zarr_format=zarr_format).create_array("a", data=DATA)

        def change(store: RemoteStore) -> None:
            array = zarrfs.open_array(store, "a", mode="r+")
            for number in range(4):
                array.attrs[f"{store.url} {number}"] = number

        list(threads.map(change, stores))
        expected = {f"{store.url} {number}": number for store in stores for number in range(4)}
        assert dict(zarrfs.open_array(stores[0], "a").attrs) == expected


def test_two_writers_lose_no_consolidated_metadata(
    server: ObjectServer, scheme: str, caplog: pytest.LogCaptureFixture
) -> None:
    with two_writers(server, scheme) as stores, ThreadPoolExecutor(2) as threads:
        root = zarrfs.create_group(stores[0])
        for store in stores:
            for number in range(4):
                root.create_array(f"{store.url}{number}", shape=4, dtype="u1")
        zarrfs.consolidate_metadata(stores[0])

        def change(store: RemoteStore) -> None:
            for number in range(4):
                name = f"{store.url}{number}"
                zarrfs.open_array(store, name, mode="r+").attrs["n"] = number
                assert update_consolidated(store, name, 3) == [""]

        list(threads.map(change, stores))
        members = zarrfs.open_group(stores[0], use_consolidated=True)
        found = {name: array.attrs["n"] for name, array in members.arrays()}
        assert found == {f"{store.url}{number}": number for store in stores for number in range(4)}
    assert all("are out of date since" in record.message for record in caplog.records)


def test_two_writers_lose_no_elements_of_a_chunk(server: ObjectServer, scheme: str) -> None:
    with two_writers(server, scheme) as stores, ThreadPoolExecutor(2) as threads:
        zarrfs.create_array(stores[0], shape=(32,), dtype="u1", chunks=32)

        def change(store: RemoteStore, start: int) -> None:
            array = zarrfs.open_array(store, mode="r+", cache_size=0)
            for i in range(start, 12, 2):
                array[i] = i + 1

        list(threads.map(change, stores, (0, 1)))
        assert zarrfs.open_array(stores[0], mode="r")[...].tolist() == [*range(1, 13), *[0] * 20]


def test_a_server_without_conditional_writes_is_named(server: ObjectServer) -> None:
    server.code = "NotImplemented"
    with open_store(server) as store:
        group = zarrfs.create_group(store)
        server.status_for = lambda method, path: 501 if "if-match" in server.headers[-1] else None
        with pytest.raises(StoreError, match=r"no conditional writes.*conditional_put='disabled'"):
            group.attrs["a"] = 1
    with open_store(server, conditional_put="disabled") as store:
        group = zarrfs.open_group(store, mode="r+")
        group.attrs["a"] = 1
        store.create("k", [b"v"])
        assert dict(zarrfs.open_group(store).attrs) == {"a": 1}


# -- failures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        (401, "check the cred"),
        (403, "check the cred"),
        (429, "may be busy"),
        (500, "may be busy"),
        (503, "may be busy"),
    ],
)
def test_an_error_status_is_an_error(status: int, hint: str, server: ObjectServer) -> None:
    with open_store(server) as store:
        zarrfs.create_array(store, data=DATA, chunks=(10, 10))
        array = zarrfs.open_array(store, cache_size=0)
        server.status_for = lambda method, path: status
        for read in (
            lambda: array[10:11, 10:11],
            lambda: array[...],
            lambda: store.get_ranges("c/1/1", [ByteRange(-4)]),
        ):
            with pytest.raises(StoreError, match=rf"c/./. cannot be read: {status}.*; .*{hint}"):
                read()
        for operation, participle in (
            (lambda: store.size("c/1/1"), "looked up"),
            (lambda: store.set("c/1/1", b"1"), "written"),
            (lambda: store.list_dir("c"), "listed"),
            (lambda: list(store.list_prefix("c")), "listed"),
        ):
            with pytest.raises(StoreError, match=f"cannot be {participle}: {status}"):
                operation()
        server.status_for = lambda method, path: None
        assert np.array_equal(array[...], DATA)


def test_an_overloaded_server_is_asked_again(server: ObjectServer) -> None:
    failures = iter([429, 503])
    with open_store(server, config_kwargs={}) as store:
        store.set("k", b"v")
        server.status_for = lambda method, path: next(failures, None)
        assert store.get("k") == b"v"
        assert methods(server) == ["PUT", "GET", "GET", "GET"]


def test_credentials_that_have_expired_are_a_refusal(server: ObjectServer) -> None:
    with open_store(server) as store:
        server.status_for, server.code = lambda method, path: 400, "ExpiredToken"
        with pytest.raises(
            StoreError, match="k cannot be read: 400 Bad Request: ExpiredToken: no; check the cred"
        ):
            store.get("k")


def test_a_bucket_that_was_deleted_is_named(server: ObjectServer, scheme: str) -> None:
    with open_store(server, scheme) as store:
        array = zarrfs.create_array(store, data=DATA, chunks=(10, 10))
        del server.buckets["bucket"]
        for read in (
            lambda: array[:3],
            lambda: array[...],
            lambda: store.size("k"),
            lambda: store.set("k", b""),
        ):
            with pytest.raises(StoreError, match="the bucket 'bucket' does not exist; create it, or check"):
                read()


def test_a_server_that_cannot_be_reached_is_named() -> None:
    options = {"endpoint_url": f"http://127.0.0.1:{free_port()}", "anon": True}
    options["config_kwargs"] = {"retries": {"max_attempts": 0}}
    for endpoint, reason in (
        (options["endpoint_url"], "Connection refused"),
        ("http://nothing.invalid", "failed to lookup address"),
    ):
        options["endpoint_url"] = endpoint
        with (
            RemoteStore("s3://bucket/a", storage_options=options) as store,
            pytest.raises(
                ServerError, match=f"cannot connect: {reason}.*; check that the server is reachable"
            ),
        ):
            store.get("k")


def test_a_server_that_does_not_respond_is_a_timeout(server: ObjectServer) -> None:
    resumed = threading.Event()
    config = {"retries": {"max_attempts": 0}, "read_timeout": 0.2}
    with open_store(server, config_kwargs=config) as store:
        server.before_response = lambda path: resumed.wait(TIMEOUT)
        for read in (store.get, store.size, lambda key: store.get_ranges(key, [ByteRange(0, 3)])):
            with pytest.raises(
                ServerError, match="the server did not respond in time; check that the server"
            ):
                read("k")
        resumed.set()


INTERRUPTED = """
import sys, zarrfs
try:
    zarrfs.open_array("s3://bucket/a.zarr", storage_options={"endpoint_url": sys.argv[1], "anon": True})
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_request_can_be_interrupted(server: ObjectServer) -> None:
    arrived, resumed = threading.Event(), threading.Event()

    def hang(path: str) -> None:
        arrived.set()
        resumed.wait(TIMEOUT)

    server.before_response = hang
    command = [sys.executable, "-c", INTERRUPTED, server.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert arrived.wait(TIMEOUT)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=TIMEOUT)[0] == "interrupted\n"
    resumed.set()


def test_a_bucket_in_another_region_is_found(server: ObjectServer) -> None:
    server.region = "eu-west-1"
    with open_store(server) as store:
        store.set("k", b"v")
        server.reset()
        assert store.get("k") == b"v"
        assert server.requests == ["GET /bucket/a.zarr/k"]
    with RemoteStore("s3://bucket/a.zarr", storage_options=s3_options(server)) as store:
        server.region = None
        server.status_for = lambda method, path: 301
        with pytest.raises(StoreError, match="k cannot be read: "):
            store.get("k")


def test_a_server_that_ignores_ranges_sends_whole_values(server: ObjectServer) -> None:
    with open_store(server) as store:
        store.set("k", bytes(range(100)))
        server.ignores_ranges = True
        assert store.get("k") == bytes(range(100))
        parts = store.get_ranges("k", [ByteRange(-3), ByteRange(5, 2), ByteRange(98, 9), ByteRange(40)])
        assert parts == [bytes([97, 98, 99]), bytes([5, 6]), bytes([98, 99]), bytes(range(40, 100))]
        assert (store.size("k"), store.get("missing")) == (100, None)


@pytest.mark.parametrize("fault", ["shift", "short", "truncated"])
def test_a_wrong_range_is_an_error(fault: str, server: ObjectServer) -> None:
    with open_store(server) as store:
        store.set("k", bytes(range(100)))
        server.fault = fault
        reads: list[Callable[[], Any]] = [
            lambda: store.get_ranges("k", [ByteRange(8, 20)]),
            lambda: store.get_ranges("k", [ByteRange(-20)]),
        ]
        if fault != "short":  # The length of the response is consistent, and that of the value is not known.
            reads.append(lambda: store.get("k"))
        for read in reads:
            with pytest.raises(StoreError, match="k cannot be read"):
                read()
        server.fault = None
        assert store.get("k") == bytes(range(100))


FORKED = """
import os, sys, zarrfs
options = {"endpoint_url": sys.argv[1], "key": "x", "secret": "x"}
array = zarrfs.open_array("s3://bucket/a.zarr", mode="r", cache_size=0, storage_options=options)
assert array[...].sum() == 45
child = os.fork()
assert array[...].sum() == 45
if not child:
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert array[...].sum() == 45
"""


@pytest.mark.emulators  # for the package s3fs
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
def test_a_forked_process_reads_with_fsspec(server: ObjectServer) -> None:
    with open_store(server) as store:
        zarrfs.create_array(store, data=np.arange(10), chunks=2)
    output_of([sys.executable, "-W", "ignore", "-c", FORKED, server.url], cwd=None, env=os.environ)


ENDING = """
import asyncio, sys, threading, time, zarrfs
call = asyncio.SelectorEventLoop.call_soon_threadsafe
def slow(loop, *arguments, **options):
    called = call(loop, *arguments, **options)
    if threading.get_ident() not in {thread.ident for thread in threading.enumerate()}:
        for _ in range(100):
            time.sleep(0.001)
    return called
asyncio.SelectorEventLoop.call_soon_threadsafe = slow
options = {"endpoint_url": sys.argv[1], "key": "x", "secret": "x"}
array = zarrfs.open_array("s3://bucket/a.zarr", mode="r", cache_size=0, storage_options=options)
assert array[...].sum() == 45
"""
"""A program that ends while threads of obstore pass results to Python."""


def test_a_program_can_end_directly_after_a_read(server: ObjectServer) -> None:
    with open_store(server) as store:
        zarrfs.create_array(store, data=np.arange(10), chunks=2)
    output_of([sys.executable, "-W", "ignore", "-c", ENDING, server.url], cwd=None, env=os.environ)


def test_keys_that_no_object_can_have_are_refused(server: ObjectServer) -> None:
    with open_store(server) as store, pytest.raises(StoreError, match="control characters"):
        store.set("a\nb", b"")


@pytest.mark.emulators  # for the package s3fs
def test_keys_with_empty_parts_are_left_out_of_listings(
    server: ObjectServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "zarrfs")
    with open_store(server) as store:
        root = zarrfs.create_group(store)
        root.create_array("x", data=DATA, chunks=(20, 30))
        server.buckets["bucket"] |= {"a.zarr//bad": b"1", "a.zarr/x//bad": b"22"}
        assert root.names() == ["x"]
        keys = ["c/0/0", "c/0/1", "c/1/0", "c/1/1", "zarr.json"]
        assert sorted(store.list_prefix("x")) == [f"x/{key}" for key in keys]
        assert store.list_dir("x").keys == ["zarr.json"]
        assert store.usage("").keys == 6
        del root["x"]
        assert sorted(server.buckets["bucket"]) == ["a.zarr//bad", "a.zarr/x//bad", "a.zarr/zarr.json"]
    assert "obstore cannot be used: Encountered object with invalid path" in caplog.text


def test_nothing_is_written_to_google_without_credentials(server: ObjectServer, scheme: str) -> None:
    with RemoteStore("gs://bucket/a", storage_options={"token": "anon"}) as store:
        for write in (lambda: store.set("k", b""), lambda: store.delete_keys(["a", "b"])):
            with pytest.raises(StoreError, match="there are no credentials"):
                write()


def test_errors_without_a_known_form_keep_their_text() -> None:
    error = type("GenericError", (Exception,), {"__module__": "obstore.exceptions"})(
        "Generic S3 error: what\n\nDebug"
    )
    assert str(convert_error(error)) == "what\n\nDebug"
    assert convert_error(ValueError("x")).args == ("x",)


# -- options ---------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove the settings of clouds of the user who runs the tests."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "GOOGLE_", "AZURE_", "CLOUDSDK_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(object_options, "_text_of_machine", lambda name: "")


def translated(url: str, **options: Any) -> tuple[ObjectLocation, dict[str, Any], dict[str, Any]]:
    location = object_location(url, options)
    return location, dict(location.config), dict(location.client)


def test_options_of_s3_are_translated(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificate")
    location, config, client = translated(
        "s3://bucket/a/b/",
        key="k",
        secret="s",
        token="t",
        requester_pays=True,
        use_listings_cache=False,
        client_kwargs={
            "region_name": "eu-west-2",
            "endpoint_url": "https://host/",
            "verify": str(tmp_path / "ca.pem"),
        },
        config_kwargs={"connect_timeout": 3, "read_timeout": 4.5, "max_pool_connections": 64},
        s3_additional_kwargs={"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "id"},
    )
    assert (location.service, location.container, location.prefix) == ("s3", "bucket", "a/b")
    assert dict(location.credentials or ()) == {"access_key_id": "k", "secret_access_key": "s", "token": "t"}
    assert config["endpoint"] == "https://host"
    assert (config["region"], config["request_payer"]) == ("eu-west-2", True)
    assert (config["server_side_encryption"], config["sse_kms_key_id"]) == ("aws:kms", "id")
    assert (client["connect_timeout"], client["read_timeout"]) == (3.0, 4.5)
    assert client["root_certificate"] == "certificate"
    _, config, client = translated("s3://b/a", anon=True, client_kwargs={"verify": False})
    assert (config["skip_signature"], client["allow_invalid_certificates"]) == (True, True)
    _, config, _ = translated(
        "s3a://b", s3={"anon": True}, config_kwargs={"s3": {"addressing_style": "virtual"}}
    )
    assert config["virtual_hosted_style_request"] is True
    assert (
        translated("s3://b", config_kwargs={"proxies": {"https": "http://p"}})[2]["proxy_url"] == "http://p"
    )


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [
        ("s3://b/a", {"nonsense": 1}, "the option 'nonsense' has no counterpart"),
        ("s3://b/a", {"client_kwargs": {"nonsense": 1}}, "the option client_kwargs: 'nonsense'"),
        (
            "s3://b/a",
            {"config_kwargs": {"s3": {"payload_signing_enabled": 1}}},
            "config_kwargs: s3: 'payload",
        ),
        ("s3://b/a", {"s3_additional_kwargs": {"ACL": "private"}}, "s3_additional_kwargs: 'ACL'"),
        ("s3://b/a", {"config_kwargs": {"signature_version": "s3"}}, "signature_version"),
        ("s3://b/a", {"session": object()}, "'session' is an object"),
        ("s3://b/a", {"use_ssl": False}, "use_ssl"),
        ("s3://b/a", {"version_aware": True}, "version_aware"),
        ("s3://b/a//b", {}, "an empty part"),
        ("s3://arn:aws:s3:x/a", {}, "an ARN"),
        ("s3://b/a?versionId=1", {}, "a query"),
        ("gs://b/a", {"endpoint_url": "http://x"}, "not Google's"),
        ("gs://b/a", {"token": "browser"}, "'browser'"),
        ("gs://b/a", {"token": "google_default"}, "found by gcsfs"),
        ("gs://b/a", {"token": object()}, "object of another library"),
        ("gs://b/a", {"token": {"type": "x"}}, "key of a service account"),
        ("abfs://b/a", {}, "name of the storage account is missing"),
        ("abfs://b/a", {"account_name": "n"}, "needs anon=True"),
        ("abfs://b/a", {"account_name": "n", "credential": object()}, "object of another library"),
        ("abfs://b@host/a", {"anon": True}, "host of the URL"),
        ("memory://b/a", {}, "no service"),
    ],
)
def test_other_options_have_no_counterpart(url: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        object_location(url, options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"key": "k"}, "'key' and 'secret' belong together"),
        ({"key": 1}, "'key' must be str, found 1"),
        ({"endpoint_url": "host"}, "must be a URL such as https://host, found 'host'"),
        ({"config_kwargs": 1}, "'config_kwargs' must be Mapping"),
    ],
)
def test_wrong_options_are_errors(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        object_location("s3://b/a", options)


def test_options_of_google_are_translated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert translated("gs://b/a", token="anon")[1]["skip_signature"] is True
    assert translated("gs://b/a")[1]["skip_signature"] is True
    assert "skip_signature" not in translated("gs://b/a", token="cloud")[1]
    account = {"type": "service_account", "client_email": "a"}
    assert json.loads(translated("gcs://b/a", token=account)[1]["service_account_key"]) == account
    file = tmp_path / "key.json"
    file.write_text(json.dumps(account))
    assert json.loads(translated("gs://b/a", token=str(file))[1]["service_account_key"]) == account
    assert dict(translated("gs://b/a", token="ya29.x")[0].credentials or ()) == {"token": "ya29.x"}
    file.write_text(json.dumps({"type": "authorized_user"}))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert translated("gs://b/a")[1]["application_credentials"] == str(file)
    client = translated("gs://b/a", requester_pays=True, project="p", requests_timeout=7.0)[2]
    assert dict(client["default_headers"]) == {"x-goog-user-project": "p"}
    assert client["read_timeout"] == 7.0
    file.write_text("{")
    with pytest.raises(LocationError, match="is no file of credentials of Google"):
        object_location("gs://b/a", {})
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "missing"))
    with pytest.raises(LocationError, match="missing cannot be read: No such file"):
        object_location("gs://b/a", {})
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS")
    monkeypatch.setattr(object_options, "_text_of_machine", lambda name: "Google Compute Engine")
    assert "skip_signature" not in translated("gs://b/a")[1]


def test_options_of_azure_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    location, config, _ = translated("az://c/a", account_name="n", account_key="k")
    assert (location.container, config["account_name"], config["account_key"]) == ("c", "n", "k")
    location, config, _ = translated("abfss://c@n.dfs.core.windows.net/a", sas_token="?sv=1")
    assert (location.container, location.prefix, config) == (
        "c",
        "a",
        {"account_name": "n", "sas_key": "sv=1"},
    )
    text = "DefaultEndpointsProtocol=https;AccountName=n;AccountKey=k==;EndpointSuffix=core.windows.net"
    config = translated("abfs://c/a", connection_string=text)[1]
    assert (config["account_key"], config["endpoint"]) == ("k==", "https://n.blob.core.windows.net")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "n")
    assert translated("az://c/a", anon=True)[1] == {"account_name": "n", "skip_signature": True}
    config = translated("az://c/a", client_id="i", client_secret="s", tenant_id="t")[1]
    assert (config["client_id"], config["tenant_id"]) == ("i", "t")


def test_credentials_of_amazon_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        translated("s3://b/a")[1]["skip_signature"] is True
    )  # There are none: only public buckets can be read.
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws/credentials").write_text(
        "[default]\naws_access_key_id=d\naws_secret_access_key=s\n[p]\naws_access_key_id=p\naws_secret_access_key=s\n"
    )
    (tmp_path / ".aws/config").write_text(
        "[default]\nregion=r1\n[profile p]\nregion=r2\nendpoint_url=http://p\n[profile sso]\nsso_session=x\n"
        "[profile q]\nservices=own\naws_access_key_id=q\naws_secret_access_key=s\n[services own]\ns3 =\n"
        "  endpoint_url = http://q\n"
    )

    def key(**options: Any) -> str | None:
        return dict(translated("s3://b/a", **options)[0].credentials or ()).get("access_key_id")

    assert (key(), translated("s3://b/a")[1]["region"]) == ("d", "r1")
    _, config, _ = translated("s3://b/a", profile="p")
    assert (key(profile="p"), config["region"], config["endpoint"]) == ("p", "r2", "http://p")
    assert (key(profile="q"), translated("s3://b/a", profile="q")[1]["endpoint"]) == ("q", "http://q")
    with pytest.raises(UnsupportedError, match="found by 'sso_session'"):
        object_location("s3://b/a", {"profile": "sso"})
    with pytest.raises(LocationError, match=r"the profile 'none' is not in .*config or .*credentials"):
        object_location("s3://b/a", {"profile": "none"})
    monkeypatch.setenv("AWS_PROFILE", "p")
    assert key() == "p"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "e")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "r3")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://e")
    assert (key(), key(profile="q"), key(key="o", secret="s")) == ("e", "q", "o")
    assert translated("s3://b/a")[1]["region"] == "r3"
    assert translated("s3://b/a")[1]["endpoint"] == "http://e"


def test_the_role_of_a_machine_is_used_only_on_machines_of_amazon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_options, "_text_of_machine", lambda name: "Amazon EC2")
    assert "skip_signature" not in translated("s3://b/a")[1]
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert translated("s3://b/a")[1]["skip_signature"] is True
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/x")
    monkeypatch.setenv("AWS_ROLE_ARN", "arn")
    assert "skip_signature" not in translated("s3://b/a")[1]


def test_given_credentials_are_not_mixed_with_those_of_the_environment(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "other")
    with open_store(server) as store:
        store.get("k")
    assert "Credential=x/" in server.headers[0]["authorization"]
    assert "x-amz-security-token" not in server.headers[0]
    with open_store(server, token="t") as store:
        store.get("k")
    assert server.headers[1]["x-amz-security-token"] == "t"
    with open_store(server, key=None, secret=None, anon=True) as store:
        store.get("k")
    assert "authorization" not in server.headers[2]


def test_settings_of_fsspec_apply(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec.config

    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": server.url, "key": "f", "secret": "s"})
    with RemoteStore("s3://bucket/a") as store:
        assert store.get("k") is None
    assert "Credential=f/" in server.headers[0]["authorization"]


# -- which library is used -------------------------------------------------------------------------------------


@pytest.mark.emulators
def test_an_option_without_a_counterpart_selects_fsspec(
    server: ObjectServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.buckets["bucket"]["a.zarr/k"] = b"v"
    with caplog.at_level(logging.INFO, "zarrfs"):
        with open_store(server) as store:
            assert isinstance(store._backend, ObjectBackend)
        assert not caplog.records
        with open_store(server, s3_additional_kwargs={"ChecksumMode": "ENABLED"}) as store:
            assert not isinstance(store._backend, ObjectBackend)
            assert store.get("k") == b"v"
    assert [record.message for record in caplog.records] == [
        "s3://bucket/a.zarr: opened with fsspec, because obstore cannot be used: the option s3_additional_kwargs: "
        "'ChecksumMode' has no counterpart in obstore"
    ]


WITHOUT_S3FS = """
import sys, zarrfs
sys.modules["s3fs"] = None
options = {"endpoint_url": sys.argv[1], "key": "x", "secret": "x"}
for more in ({}, {"nonsense": 1}):
    try:
        zarrfs.storage.RemoteStore("s3://bucket/a", storage_options=options | more).list_dir("")
    except zarrfs.ZarrError as error:
        print(error)
"""


def test_a_missing_package_is_named_with_the_reason_why_it_is_needed(server: ObjectServer) -> None:
    server.buckets["bucket"]["a//bad"] = b"1"
    command = [sys.executable, "-c", WITHOUT_S3FS, server.url]
    of_keys, message = output_of(command, cwd=None, env=os.environ).splitlines()
    assert "pip install" in of_keys
    assert "because obstore cannot be used: Encountered object with invalid path" in of_keys
    assert message.startswith("s3://bucket/a: a package is missing: pip install ")
    assert "'s3fs>=" in message
    assert "because obstore cannot be used: the option 'nonsense' has no counterpart in obstore" in message


@pytest.mark.emulators
def test_stores_are_opened_without_obstore(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.buckets["bucket"]["a.zarr/k"] = b"v"
    monkeypatch.setitem(sys.modules, "obstore", None)
    monkeypatch.setattr("zarrfs.libraries._complete", set())
    with open_store(server) as store:
        assert not isinstance(store._backend, ObjectBackend)
        assert store.get("k") == b"v"


def test_obstore_is_imported_with_the_first_bucket() -> None:
    script = (
        "import sys, zarrfs; assert 'obstore' not in sys.modules; "
        "zarrfs.storage.RemoteStore('s3://b/a', storage_options={'anon': True}); assert 'obstore' in sys.modules; "
        "assert 's3fs' not in sys.modules"
    )
    output_of([sys.executable, "-c", script], cwd=None, env=os.environ)
