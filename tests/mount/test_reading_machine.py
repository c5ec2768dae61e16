"""Random changes of a store and random reads of its files in a mount, compared with NumPy and a dictionary.

The store is a directory, or a server that fails sometimes. A failed request is an error of the operation or is not
noticed; it never causes other bytes or an incomplete listing.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
import tempfile
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

import zarrfs
from tests.threads import Clock
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import StoreError
from zarrfs.files.content import access_pattern, streams
from zarrfs.files.content.blocks import BlockPool
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.tree.node_cache import REMOTE_REVALIDATION_SECONDS
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import FailingStore

EXAMPLES = int(os.environ.get("ZARRFS_TEST_EXAMPLES", "25"))
"""The number of random sequences of operations. A thorough run uses some thousands."""

PARENTS = ("", "g", "g/h")
NAMES = ("a", "b", "g")
SUFFIXES = (".raw", ".npy")
LAYOUTS: tuple[dict[str, Any], ...] = (
    {"chunks": (4, 5)},
    {"chunks": (4, 5), "compressors": None},
    {"chunks": (2, 5), "shards": (4, 10), "compressors": zarrfs.codecs.ZstdCodec(level=1)},
)
FAILURES = (errno.EIO, errno.ETIMEDOUT)

positions = st.floats(0, 1, exclude_max=True)
parents = st.sampled_from(PARENTS)
names = st.sampled_from(NAMES)
shapes = st.tuples(st.integers(1, 13), st.integers(1, 17))
failing = st.one_of(st.none(), st.integers(1, 4))
"""After how many requests one fails, or None."""


class FaultyServer(FailingStore):
    """A store of high latency of which single requests fail."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, self._next_failure)
        self.concurrency = 4
        self.is_remote = True
        self.until_failure: int | None = None
        self.has_failed = False

    def _next_failure(self, operation: str, key: str) -> Exception | None:
        if self.until_failure is None or operation == "close":
            return None
        self.until_failure -= 1
        if self.until_failure:
            return None
        self.until_failure = None
        self.has_failed = True
        return StoreError(f"{self.url}/{key}: the server failed", errno.ETIMEDOUT)


class ReadingMachine(RuleBasedStateMachine):
    """A hierarchy, whose groups are ``self.groups`` and whose arrays are ``self.arrays`` by path."""

    is_faulty = False
    operations: ZarrOperations

    @initialize()
    def create(self) -> None:
        self.directory = tempfile.mkdtemp()
        zarrfs.create_group(self.directory)
        self.clock = Clock()
        self.store: Store = LocalStore(self.directory, read_only=True)
        if self.is_faulty:
            self.store = FaultyServer(self.store)
        self.pool = BlockPool(1 << 20, clock=self.clock)
        root = zarrfs.open_group(self.store, mode="r")
        self.operations = ZarrOperations(Tree(root, "root", clock=self.clock), lambda: None, pool=self.pool)
        self.groups = {""}
        self.arrays: dict[str, np.ndarray[Any, Any]] = {}
        self.versions: dict[str, int] = {}
        self.handles: dict[int, tuple[str, str, int, int]] = {}

    def teardown(self) -> None:
        if hasattr(self, "operations"):
            self.operations.destroy("/")
            self.store.close()
            shutil.rmtree(self.directory)

    # -- changes of the store --------------------------------------------------------------------------------------

    def _root(self) -> zarrfs.Group:
        return zarrfs.open_group(self.directory, mode="r+")

    def _settle(self) -> None:
        """Let the time pass after which a change is seen."""
        self.clock.now += 2 * REMOTE_REVALIDATION_SECONDS

    def _forget(self, path: str) -> None:
        for known in [*self.groups, *self.arrays]:
            if known == path or known.startswith(f"{path}/"):
                self.groups.discard(known)
                self.arrays.pop(known, None)

    @rule(parent=parents, name=names)
    def create_group(self, parent: str, name: str) -> None:
        path = f"{parent}/{name}".lstrip("/")
        if parent in self.groups and path not in self.groups:
            self._forget(path)
            self._root().create_group(path, overwrite=True)
            self.groups.add(path)
            self._settle()

    @rule(
        parent=parents,
        name=names,
        shape=shapes,
        layout=st.sampled_from(LAYOUTS),
        dtype=st.sampled_from(["u2", "i4", "f8"]),
    )
    def create_array(
        self, parent: str, name: str, shape: tuple[int, int], layout: dict[str, Any], dtype: str
    ) -> None:
        if parent not in self.groups:
            return
        path = f"{parent}/{name}".lstrip("/")
        self._forget(path)
        values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
        self._root().create_array(path, data=values, overwrite=True, **layout)
        self.arrays[path] = values
        self.versions[path] = self.versions.get(path, 0) + 1
        self._settle()

    @precondition(lambda self: self.arrays)
    @rule(data=st.data(), rows=st.integers(0, 13), value=st.integers(0, 1000))
    def write_rows(self, data: st.DataObject, rows: int, value: int) -> None:
        path = data.draw(st.sampled_from(sorted(self.arrays)))
        values = self.arrays[path].copy()
        values[:rows] = value
        self._root()[path][:rows] = value
        self.arrays[path] = values
        self._settle()

    @precondition(lambda self: self.arrays)
    @rule(data=st.data(), rows=st.integers(1, 13))
    def resize(self, data: st.DataObject, rows: int) -> None:
        path = data.draw(st.sampled_from(sorted(self.arrays)))
        array = self._root()[path]
        assert isinstance(array, zarrfs.Array)
        array.resize((rows, array.shape[1]))
        if rows != len(self.arrays[path]):
            self.versions[path] += 1
        self.arrays[path] = np.asarray(array[...])
        self._settle()

    @precondition(lambda self: self.arrays or len(self.groups) > 1)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        path = data.draw(st.sampled_from(sorted((self.groups | self.arrays.keys()) - {""})))
        del self._root()[path]
        self._forget(path)
        self._settle()

    # -- operations of the mount -----------------------------------------------------------------------------------

    def _attempt(self, requests: int | None, operation: Any, *arguments: Any) -> Any:
        """Return the result of an operation, its error number, or None if it failed because the server did."""
        server = self.store if isinstance(self.store, FaultyServer) else None
        if server is not None:
            server.until_failure, server.has_failed = requests, False
        try:
            return operation(*arguments)
        except OSError as error:
            if server is None or not server.has_failed or error.errno not in FAILURES:
                return error.errno
            self._settle()
            return None
        finally:
            if server is not None:
                server.until_failure = None

    def _expected(self, path: str, suffix: str) -> bytes:
        """Return the content of a file."""
        values = self.arrays[path]
        if suffix == ".raw":
            return values.tobytes()
        file = io.BytesIO()
        np.save(file, values)
        return file.getvalue()

    @rule(parent=parents, requests=failing, with_attributes=st.booleans())
    def list_directory(self, parent: str, requests: int | None, with_attributes: bool) -> None:
        def read() -> list[Any]:
            handle = self.operations.opendir(f"/{parent}")
            try:
                return list(self.operations.read_directory(f"/{parent}", handle, 0, with_attributes))
            finally:
                self.operations.releasedir(f"/{parent}", handle)

        if parent not in self.groups:
            return
        entries = self._attempt(requests, read)
        if entries is None:
            return
        prefix = f"{parent}/" if parent else ""
        groups = {
            path.removeprefix(prefix) for path in self.groups if os.path.dirname(path) == parent and path
        }
        arrays = {path.removeprefix(prefix) for path in self.arrays if os.path.dirname(path) == parent}
        files = {name + suffix for name in arrays for suffix in (*SUFFIXES, ".json")}
        expected = {".", "..", ".group.json"} | groups | files
        found = {entry.name for entry in entries}
        if getattr(self.store, "has_failed", False):
            # A member whose documents could not be read is shown with the reason instead of its files.
            self._settle()
            assert all(name in expected or name.endswith(".error.txt") for name in found)
            return
        assert found == expected
        for entry in entries:
            path, suffix = os.path.splitext(prefix + entry.name)
            if entry.attributes is not None and suffix in SUFFIXES:
                assert entry.attributes["st_size"] == len(self._expected(path, suffix))

    @rule(parent=parents, name=names, suffix=st.sampled_from(["", *SUFFIXES]), requests=failing)
    def stat_path(self, parent: str, name: str, suffix: str, requests: int | None) -> None:
        path = f"{parent}/{name}".lstrip("/")
        exists = path in (self.arrays if suffix else self.groups)
        status = self._attempt(requests, self.operations.getattr, f"/{path}{suffix}")
        if not exists:
            assert status in (None, errno.ENOENT)
        elif status is not None:
            assert stat.S_ISDIR(status["st_mode"]) == (not suffix)
            if suffix:
                assert status["st_size"] == len(self._expected(path, suffix))

    @precondition(lambda self: self.arrays)
    @rule(data=st.data(), suffix=st.sampled_from(SUFFIXES), requests=failing)
    def open_file(self, data: st.DataObject, suffix: str, requests: int | None) -> None:
        path = data.draw(st.sampled_from(sorted(self.arrays)))
        opened = self._attempt(requests, self._open, f"/{path}{suffix}")
        if opened is not None:
            (handle,) = opened
            self.handles[handle] = path, suffix, self.versions[path], self.arrays[path].nbytes

    def _open(self, path: str) -> tuple[int]:
        """Open a file as the kernel does, which looks it up and opens it again (once) after ESTALE."""
        try:
            return (self.operations.open(path, os.O_RDONLY),)
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
        self.operations.getattr(path)
        return (self.operations.open(path, os.O_RDONLY),)

    @precondition(lambda self: self.handles)
    @rule(
        data=st.data(),
        position=positions,
        size=st.integers(1, 40) | st.integers(1, 2000),
        requests=failing,
        runs=st.integers(1, 4),
        step=st.integers(0, 1),
    )
    def read(
        self, data: st.DataObject, position: float, size: int, requests: int | None, runs: int, step: int
    ) -> None:
        handle = data.draw(st.sampled_from(sorted(self.handles)))
        path, suffix, version, nbytes = self.handles[handle]
        for run in range(runs):
            start = int(position * nbytes) + run * step * size
            found = self._attempt(requests, self.operations.read, f"/{path}{suffix}", size, start, handle)
            if found is None:
                return
            if isinstance(found, int):
                # A removed or replaced array, and one of another shape, is never shown in part.
                assert found == errno.ESTALE
                assert path not in self.arrays or self.versions[path] != version
                return
            assert bytes(found) == self._expected(path, suffix)[start : start + size]

    @precondition(lambda self: self.handles)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        handle = data.draw(st.sampled_from(sorted(self.handles)))
        path, suffix, _, _ = self.handles.pop(handle)
        self.operations.release(f"/{path}{suffix}", handle)


@pytest.mark.parametrize("is_sequential", [False, True], ids=["random", "sequential"])
@pytest.mark.parametrize("is_faulty", [False, True], ids=["directory", "faulty server"])
def test_reading_machine(
    is_faulty: bool, is_sequential: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if is_sequential:
        # Each read uses a block, and the next block is read ahead.
        for name in ("MIN_FIRST_NBYTES", "MIN_SEQUENTIAL_NBYTES", "MIN_READ_AHEAD_NBYTES"):
            monkeypatch.setattr(access_pattern, name, 1)
    # Chunks are compared with the store at each read, because they have no clock of the test.
    monkeypatch.setattr(streams, "REVALIDATION_SECONDS", 0.0)
    machine = type("Machine", (ReadingMachine,), {"is_faulty": is_faulty})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=30, deadline=None)
    )
    assert all("Traceback" not in (record.exc_text or "") for record in caplog.records)
