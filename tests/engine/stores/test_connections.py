"""Connections of stores: a server that ends is an error of every operation, and closing a store closes its client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import fsspec.asyn
import pytest

from tests.engine.stores.servers import redis_server
from tests.programs import needs_program
from zarrfs.engine.stores.databases.redis import RedisStore
from zarrfs.engine.stores.fsspec.store import RemoteStore
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
    store._backend.file_system = SimpleNamespace(service_client=client, loop=fsspec.asyn.get_loop())
    store.close()
    store.close()
    assert client.closed == 1
