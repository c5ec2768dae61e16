"""Repositories of Icechunk for tests, and a store with arbitrary keys in a repository, for the contract suite."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import zarr

from zarrfs.engine.stores.base import OPERATIONS, Store, check_key
from zarrfs.engine.stores.icechunk.store import IcechunkStore, open_icechunk
from zarrfs.engine.stores.memory import list_keys
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore

__all__ = ["DATA", "ChunkKeyStore", "history", "make_repository", "open_repository"]

DATA = np.arange(48, dtype="u2").reshape(6, 8)

icechunk.set_logs_filter("error")


def open_repository(path: Path, **options: Any) -> icechunk.Repository:
    """Open a local repository with icechunk."""
    return icechunk.Repository.open(icechunk.local_filesystem_storage(str(path)), **options)


def make_repository(path: Path) -> icechunk.Repository:
    """Create a repository with icechunk and zarr-python.

    The branch main has the array ``a/b`` with ``DATA``, and the tag v1 and the branch dev an array with zeros.
    """
    repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(path)))
    session = repository.writable_session("main")
    group = zarr.create_group(session.store)
    group.create_array("a/b", shape=DATA.shape, chunks=(2, 4), dtype=DATA.dtype)
    first = session.commit("zeros")
    repository.create_tag("v1", first)
    repository.create_branch("dev", first)
    session = repository.writable_session("main")
    zarr.open_group(session.store)["a/b"][...] = DATA
    session.commit("values")
    return repository


def history(path: Path, branch: str = "main") -> list[str]:
    """Return the messages of the snapshots of a branch, the newest first, without the one of an empty repository."""
    return [each.message for each in open_repository(path).ancestry(branch=branch)][:-1]


class ChunkKeyStore(WrapperStore):
    """Stores the values of arbitrary keys as chunks of one array: icechunk has keys of nodes and chunks only."""

    PREFIX = "values"

    def __init__(self, path: Path) -> None:
        store, _ = open_icechunk(f"icechunk:{path}", "a", None)
        super().__init__(store)
        self.documents_before_chunks = False
        document = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [1 << 20],
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [1]}},
            "chunk_key_encoding": {"name": "default"},
            "fill_value": 0,
            "codecs": [{"name": "bytes"}],
        }
        store.set(f"{self.PREFIX}/zarr.json", json.dumps(document).encode())
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}

    def _stored_key(self, key: str) -> str:
        with self._lock:
            number = self._numbers.setdefault(key, len(self._numbers))
        return f"{self.PREFIX}/c/{number}"

    def _keys(self) -> list[str]:
        stored = set(self.store.list_prefix(self.PREFIX))
        return [key for key, number in list(self._numbers.items()) if f"{self.PREFIX}/c/{number}" in stored]

    def perform(self, name: str, *args: Any) -> Any:
        operation = OPERATIONS[name]
        if name == "list_prefix":
            return iter([key for key in self._keys() if not args[0] or key.startswith(f"{args[0]}/")])
        if name == "list_dir":
            return list_keys(self.list_prefix(args[0]), args[0])
        if name in ("usage", "is_empty", "listing_stamp", "delete_prefix", "move_prefix", "delete_keys"):
            return getattr(Store, name)(self, *args)
        if operation.names != "key":
            return super().perform(name, *args)
        if operation.changes:
            check_key(args[0])
        return super().perform(name, self._stored_key(args[0]), *args[1:])

    @property
    def repository_store(self) -> IcechunkStore:
        assert isinstance(self.store, IcechunkStore)
        return self.store
