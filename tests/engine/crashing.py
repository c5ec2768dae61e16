"""A program that forks processes and kills them: each performs one operation on a store and exits at its n-th call.

Run it with the name of the operation, a location, a seed and the number of processes; see ``test_crashes.py``. Forking
is fast. The profiler of the interpreter counts all calls, including system calls, so that a process can be killed at
each step of an operation: between writing and renaming a file, or between two keys.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import random
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

import zarrfs
from zarrfs.cli.main import main as command_line
from zarrfs.engine.hierarchy.staging import STAGING
from zarrfs.engine.stores.locations import open_store
from zarrfs.tools import clean

SHAPE = (12, 10)
OLD = np.arange(1, 121, dtype="u4").reshape(SHAPE)
NEW = OLD + 1000
BLOCK = (6, 5)
"""The shape of a stored chunk or shard."""

Place = str


def joined(place: Place, name: str) -> str:
    """Return the location of a second hierarchy."""
    return f"{place}-{name}"


class Work:
    """An operation: the initial content of the store, the change, and a check of the content after a crash."""

    options: dict[str, Any] = {"chunks": (3, 5), "shards": BLOCK}  # noqa: RUF012 - read only

    def prepare(self, place: Place) -> None:
        zarrfs.create_array(
            place, "a", data=OLD, attributes={"n": 1, "m": "x" * 100}, **self.options
        ).store.close()

    def run(self, place: Place) -> None:
        array = zarrfs.open_array(place, "a", mode="r+")
        self.change(array)
        array.store.close()

    def change(self, array: zarrfs.Array) -> None:
        raise NotImplementedError

    def check(self, place: Place) -> None:
        array = zarrfs.open_array(place, "a", cache_size=0)
        self.check_array(array)
        array.store.close()

    def check_array(self, array: zarrfs.Array) -> None:
        """Check the content of the array after the crash."""
        raise NotImplementedError


def check_blocks(found: np.ndarray[Any, Any], *allowed: np.ndarray[Any, Any]) -> None:
    """Check that each chunk is equal to that of one of the allowed arrays."""
    for row in range(0, found.shape[0], BLOCK[0]):
        for column in range(0, found.shape[1], BLOCK[1]):
            box = np.s_[row : row + BLOCK[0], column : column + BLOCK[1]]
            assert any(np.array_equal(found[box], each[box]) for each in allowed), (box, found[box])


class PartsOfShards(Work):
    def change(self, array: zarrfs.Array) -> None:
        array[1:11, 2:9] = NEW[1:11, 2:9]

    def check_array(self, array: zarrfs.Array) -> None:
        new = OLD.copy()
        new[1:11, 2:9] = NEW[1:11, 2:9]
        check_blocks(array[...], OLD, new)


class PartsOfChunks(PartsOfShards):
    options = {"chunks": BLOCK, "zarr_format": 2, "compressors": {"id": "zlib", "level": 1}}  # noqa: RUF012


class Growing(Work):
    options = {"chunks": BLOCK, "fill_value": 7}  # noqa: RUF012

    def change(self, array: zarrfs.Array) -> None:
        array.append(NEW[:9])

    def check_array(self, array: zarrfs.Array) -> None:
        assert array.shape in (SHAPE, (21, 10))
        found = array[...]
        assert np.array_equal(found[:12], OLD)
        if len(found) > 12:
            check_blocks(found, np.vstack([OLD, NEW[:9]]), np.vstack([OLD, np.full((9, 10), 7)]))


class Shrinking(Work):
    options = {"chunks": BLOCK}  # noqa: RUF012

    def change(self, array: zarrfs.Array) -> None:
        array.resize(5, 4)
        array.attrs["n"] = 2

    def check_array(self, array: zarrfs.Array) -> None:
        assert array.shape in (SHAPE, (5, 4))
        assert np.array_equal(array[...], OLD[tuple(slice(0, n) for n in array.shape)])
        assert array.attrs["n"] == 1 or array.shape == (5, 4)


class Attributes(Work):
    def change(self, array: zarrfs.Array) -> None:
        array.attrs.update({"n": 2, "m": "y" * 5000})

    def check_array(self, array: zarrfs.Array) -> None:
        assert dict(array.attrs) in ({"n": 1, "m": "x" * 100}, {"n": 2, "m": "y" * 5000})
        assert np.array_equal(array[...], OLD)


class AttributesOf2(Attributes):
    options = {"chunks": BLOCK, "zarr_format": 2}  # noqa: RUF012


class Replacing(Work):
    def run(self, place: Place) -> None:
        zarrfs.create_array(place, "a", data=NEW, overwrite=True, chunks=BLOCK).store.close()

    def check(self, place: Place) -> None:
        self.check_node(place)
        logging.disable()
        clean(place)
        self.check_node(place)

    def check_node(self, place: Place) -> None:
        """Check that the old or the new array is at its path, or below the staging prefix, which ``clean`` keeps."""
        store, _ = open_store(place, mode="r")
        staging = [name for name in store.list_dir().prefixes if name.startswith(STAGING)]
        for path in ("a", *(f"{name}/{part}/a" for name in staging for part in ("old", "new"))):
            try:
                array = zarrfs.open_array(store, path, cache_size=0)
            except zarrfs.NodeNotFoundError:
                continue
            found = array[...]
            if array.attrs:
                assert np.array_equal(found, OLD)
            else:
                check_blocks(found, NEW, np.zeros_like(NEW))
            break
        else:
            raise AssertionError(f"neither the old nor the new array exists; staged: {staging}")
        store.close()


class Transfer(Work):
    """A copy with the command line program, which is then resumed."""

    verb: tuple[str, ...] = ("copy",)

    def run(self, place: Place) -> None:
        self._command(place)

    def _command(self, place: Place, *more: str) -> None:
        verb, *arguments = self.verb
        with contextlib.redirect_stdout(io.StringIO()):
            command_line([verb, place, joined(place, "copy"), *arguments, *more], standalone_mode=False)

    def check(self, place: Place) -> None:
        with contextlib.suppress(zarrfs.NodeNotFoundError, zarrfs.LocationError):
            copied = zarrfs.open_array(joined(place, "copy"), "a", cache_size=0)
            check_blocks(copied[...], OLD, np.zeros_like(OLD))
            copied.store.close()
        self._command(place, "--if-exists", "resume", "--verify")
        copied = zarrfs.open_array(joined(place, "copy"), "a", cache_size=0)
        assert np.array_equal(copied[...], OLD)
        assert dict(copied.attrs) == {"n": 1, "m": "x" * 100}
        copied.store.close()


class Rechunk(Transfer):
    verb = ("rechunk", "--chunks", "2,5", "--shards", "6,5")


WORKS: dict[str, type[Work]] = {
    "parts of shards": PartsOfShards,
    "parts of chunks": PartsOfChunks,
    "growing": Growing,
    "shrinking": Shrinking,
    "attributes": Attributes,
    "attributes of v2": AttributesOf2,
    "replacing": Replacing,
    "copy": Transfer,
    "rechunk": Rechunk,
}


def in_child(work: Callable[[], None], die_at: int | None) -> int:
    """Run an operation in a forked process that kills itself at call number ``die_at``; None: never.

    Return the number of calls, or -1 if the process was killed.
    """
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        calls = 0

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal calls
            calls += 1
            if calls == die_at:
                os.kill(os.getpid(), signal.SIGKILL)

        status = 1
        try:
            threading.setprofile(count)
            sys.setprofile(count)
            work()
            sys.setprofile(None)
            os.write(write_end, str(calls).encode())
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        call_count = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return -1
    if status:
        raise SystemExit(f"failed before call {die_at}" if die_at else "failed")
    return int(call_count)


def main(name: str, location: str, seed: str, count: str) -> None:
    work, rng = WORKS[name](), random.Random(seed)

    def at(number: int) -> Place:
        return location.replace("NUMBER", str(number))

    # Run the operation once in this process, so that forked processes have all modules loaded.
    work.prepare(at(0))
    work.run(at(0))
    work.check(at(0))
    in_child(lambda: work.prepare(at(1)), None)
    total = in_child(lambda: work.run(at(1)), None)
    killed = 0
    for number in range(2, 2 + int(count)):
        place = at(number)
        in_child(lambda place=place: work.prepare(place), None)  # type: ignore[misc]
        killed += in_child(lambda place=place: work.run(place), rng.randint(1, total)) == -1  # type: ignore[misc]
        in_child(lambda place=place: work.check(place), None)  # type: ignore[misc]
    print(killed, "killed of", count, "at up to", total, "calls")


if __name__ == "__main__":
    main(*sys.argv[1:])
