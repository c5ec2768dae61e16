"""Connections of stores: a server that ends is an error of every operation, and closing a store closes its client."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fsspec.asyn
import numpy as np
import pytest

import zarrfs
from tests.engine.stores.object_server import object_server
from tests.engine.stores.servers import redis_server, web_server
from tests.processes import TIMEOUT, output_of
from tests.programs import needs_program
from zarrfs.engine.stores.databases.redis import RedisStore
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.errors import StoreError


@needs_program("redis-server")
def test_a_redis_server_that_ends_is_an_error_of_every_operation() -> None:
    with ExitStack() as server:
        store = RedisStore(f"{server.enter_context(redis_server())}?prefix=a")
        store.set("k", b"v")
        assert list(store.list_prefix("")) == ["k"]
    operations: list[Callable[[], Any]] = [
        lambda: store.get("k"),
        lambda: store.set("k", b"w"),
        lambda: store.delete("k"),
        lambda: list(store.list_prefix("")),
        lambda: store.list_dir(""),
    ]
    with store:
        for operation in operations:
            with pytest.raises(StoreError, match="redis://"):
                operation()


class _Client:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1


def test_closing_a_store_closes_the_client_of_azure_once() -> None:
    store = RemoteStore("memory://connections")
    client = _Client()
    backend: Any = store._backend
    backend.file_system = SimpleNamespace(service_client=client, loop=fsspec.asyn.get_loop())
    store.close()
    store.close()
    assert client.closed == 1


def test_arrays_of_a_web_server_share_its_connections() -> None:
    data = np.arange(64, dtype="u2")
    memory: dict[str, Any] = {}
    zarrfs.create_array(memory, data=data, chunks=2)
    with object_server("bucket") as server:
        for name in ("a", "b"):
            server.buckets["bucket"].update({f"{name}/{key}": bytes(value) for key, value in memory.items()})

        def read(name: str, **options: Any) -> None:
            url = f"{server.url}/bucket/{name}"
            array = zarrfs.open_array(url, mode="r", cache_size=0, storage_options=options)
            assert np.array_equal(array[...], data)
            array.store.close()

        arrived = threading.Barrier(32)
        server.before_response = lambda path: "/c/" in path and arrived.wait(TIMEOUT)
        read("a")  # All chunks at the same time, so that no other read needs more connections.
        server.before_response = lambda path: None
        assert server.connections == 32
        server.reset()
        for location in ("a", "b", "a"):  # also after another store was closed, and by another thread
            with ThreadPoolExecutor(1) as pool:
                pool.submit(read, location).result()
        assert server.connections == 0
        # Other credentials have their own connections.
        read("a", headers={"Authorization": "Bearer other"})
        assert server.connections > 0


FORKED_READS = """
import os, sys
import zarrfs
arrays = [zarrfs.open_array(location, mode="r", cache_size=0) for location in sys.argv[1:]]
for array in arrays:
    assert array[0] == 0, array
child = os.fork()
for _ in range(2):  # The parent and the child read at the same time.
    for array in arrays:
        assert array[...].sum() == 45, array
        assert array[7] == 7, array
if not child:
    for array in arrays:
        array.store.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
for array in arrays:
    assert array[9] == 9, array
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork processes")
def test_arrays_that_are_open_can_be_read_in_a_forked_process(tmp_path: Path) -> None:
    names = ["a.zarr", "a.zip", "a.sqlite"]
    for name in names:
        with zarrfs.create_array(tmp_path / name, data=np.arange(10), chunks=2).store:
            pass
    with web_server(tmp_path) as web:
        locations = [
            f"{web.url}/a.zarr",
            f"zip::{web.url}/a.zip",
            f"simplecache::{web.url}/a.zarr",
            *(str(tmp_path / name) for name in names),
        ]
        output_of([sys.executable, "-c", FORKED_READS, *locations], cwd=None, env=os.environ)
