"""Random operations on the files of a writable mount, compared with plain files."""

from __future__ import annotations

import os
import shutil
import tempfile
from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import zarrfs
from tests.mount.writing.layouts import LAYOUTS, SHAPE, create_array, operations_of
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.mount.writing.operations import WritableOperations
from zarrfs.mount.writing.write_buffer import WriteBuffer

VIEWS = (".raw", ".F.raw", ".npy", ".F.npy", ".nrrd")
FORTRAN_VIEWS = (".F.raw", ".F.npy")
"""Views with the elements in C and F order, and with a header."""

EXAMPLES = int(os.environ.get("ZARRFS_TEST_EXAMPLES", "30"))
"""The number of random sequences of operations. A thorough run uses some ten thousand."""

positions = st.floats(0, 1, exclude_max=True)


class FileMachine(RuleBasedStateMachine):
    """One array, whose elements in C order are ``self.plain``."""

    operations: WritableOperations

    @initialize(
        layout=st.sampled_from(sorted(LAYOUTS)),
        local=st.booleans(),
        max_nbytes=st.sampled_from([0, 3000, 1 << 20]),
    )
    def create(self, layout: str, local: bool, max_nbytes: int) -> None:
        self.directory = tempfile.mkdtemp() if local else None
        self.store: Any = f"{self.directory}/a.zarr" if local else MemoryStore()
        self.max_nbytes = max_nbytes
        self.plain = create_array(self.store, layout)
        self._mount()

    def _mount(self) -> None:
        self.handles: dict[str, int] = {}
        self.operations = operations_of(self.store, WriteBuffer(self.max_nbytes))

    def teardown(self) -> None:
        if hasattr(self, "operations"):
            self.operations.destroy("/")
            again = zarrfs.open_array(self.store, "img", mode="r")
            np.testing.assert_array_equal(again[...].view("u1"), self.plain.view("u1"))
            if self.directory is not None:
                shutil.rmtree(self.directory)

    def _handle(self, view: str) -> int:
        path = f"/img{view}"
        if view not in self.handles:
            self.handles[view] = self.operations.open(path, os.O_RDWR)
        return self.handles[view]

    def _is_absent(self, view: str) -> bool:
        """Return whether the array has no file of this format: NRRD has no images without elements."""
        return view == ".nrrd" and not self.plain.nbytes

    def _content(self, view: str) -> bytes:
        """Return the expected content of a file after its header."""
        order = "F" if view in FORTRAN_VIEWS else "C"
        return self.plain.tobytes(order)  # type: ignore[arg-type]

    def _header_nbytes(self, view: str) -> int:
        return int(self.operations.getattr(f"/img{view}")["st_size"]) - self.plain.nbytes

    @rule(
        view=st.sampled_from(VIEWS), position=positions, size=st.integers(1, 5000), seed=st.integers(0, 1000)
    )
    def write(self, view: str, position: float, size: int, seed: int) -> None:
        start = int(position * self.plain.nbytes)
        data = np.random.default_rng(seed).bytes(size)
        kept = min(size, self.plain.nbytes - start)
        if not kept:
            return
        if view == ".raw":
            data = data[:kept]  # Further bytes would be appended.
        header = self._header_nbytes(view)
        if view == ".nrrd":
            header = self.operations.getattr("/img.nrrd")["st_size"] - self.plain.nbytes
            if self.plain.dtype.byteorder == ">":
                return
        written = self.operations.write(f"/img{view}", data, header + start, self._handle(view))
        assert written == kept
        content = bytearray(self._content(view))
        content[start : start + kept] = data[:kept]
        order = "F" if view in FORTRAN_VIEWS else "C"
        flat = np.frombuffer(bytes(content), self.plain.dtype)
        self.plain = np.ascontiguousarray(flat.reshape(self.plain.shape, order=order))  # type: ignore[call-overload]

    @rule(view=st.sampled_from((".raw", ".npy", ".F.npy")), position=positions, size=st.integers(0, 5000))
    def read(self, view: str, position: float, size: int) -> None:
        start = int(position * self.plain.nbytes)
        header = self._header_nbytes(view)
        found = bytes(self.operations.read(f"/img{view}", size, header + start, self._handle(view)))
        assert found == self._content(view)[start : start + size]

    @rule(view=st.sampled_from(VIEWS))
    def write_header_unchanged(self, view: str) -> None:
        if self._is_absent(view):
            return
        header = self._header_nbytes(view)
        handle = self._handle(view)
        old = bytes(self.operations.read(f"/img{view}", header, 0, handle))
        if old:
            assert self.operations.write(f"/img{view}", old, 0, handle) == len(old)

    @rule(view=st.sampled_from(VIEWS), fsync=st.booleans())
    def flush(self, view: str, fsync: bool) -> None:
        if self._is_absent(view):
            return
        if fsync:
            self.operations.fsync(f"/img{view}", 0, self._handle(view))
        else:
            self.operations.flush(f"/img{view}", self._handle(view))
        again = zarrfs.open_array(self.store, "img", mode="r")
        np.testing.assert_array_equal(again[...].view("u1"), self.plain.view("u1"))

    @rule(view=st.sampled_from(VIEWS))
    def close(self, view: str) -> None:
        handle = self.handles.pop(view, None)
        if handle is not None:
            self.operations.flush(f"/img{view}", handle)
            self.operations.release(f"/img{view}", handle)

    @rule(rows=st.integers(0, 14))
    def truncate(self, rows: int) -> None:
        row = self.plain[:1].nbytes or int(np.prod(SHAPE[1:])) * self.plain.itemsize
        self.operations.truncate("/img.raw", rows * row)
        grown = np.zeros((rows, *SHAPE[1:]), self.plain.dtype)
        kept = min(rows, len(self.plain))
        grown[:kept] = self.plain[:kept]
        self.plain = grown

    @rule(rows=st.integers(1, 3), parts=st.lists(positions, max_size=3), seed=st.integers(0, 1000))
    def append(self, rows: int, parts: list[float], seed: int) -> None:
        if len(self.plain) > 20:
            return
        size = rows * int(np.prod(SHAPE[1:])) * self.plain.itemsize
        data = np.random.default_rng(seed).bytes(size)
        handle = self._handle(".raw")
        end = self.plain.nbytes
        bounds = [0, *sorted(int(part * size) for part in parts), size]
        for start, stop in pairwise(bounds):
            assert self.operations.write("/img.raw", data[start:stop], end + start, handle) == stop - start
            assert self.operations.getattr("/img.raw")["st_size"] == end + stop
            assert bytes(self.operations.read("/img.raw", 2 * size, end, handle)) == data[:stop]
        self.operations.flush("/img.raw", handle)
        new = np.frombuffer(data, self.plain.dtype).reshape((rows, *SHAPE[1:]))
        # The dtype is given, because NumPy concatenates to the native byte order.
        self.plain = np.concatenate([self.plain, new], dtype=self.plain.dtype)

    @rule()
    def remount(self) -> None:
        self.operations.destroy("/")
        self._mount()

    @invariant()
    def sizes_are_equal(self) -> None:
        if hasattr(self, "operations"):
            assert self.operations.getattr("/img.raw")["st_size"] == self.plain.nbytes


FileMachine.TestCase.settings = settings(deadline=None, max_examples=EXAMPLES, stateful_step_count=30)
test_files = FileMachine.TestCase
