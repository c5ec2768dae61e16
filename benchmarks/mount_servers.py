"""The processes that the benchmark of the mount measures: ``zarrfs mount``, file systems that do nothing but return
bytes, and a mount that counts the bytes that it reads from the store.

``python -m benchmarks.mount_servers null SIZE MOUNTPOINT``, ``... memory SIZE MOUNTPOINT`` and
``... counting DIRECTORY MOUNTPOINT CACHE_SIZE FILE`` run the others in the foreground.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.files.content.block import new_memory
from zarrfs.mount.fuse.binding import load_binding
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.mount_table import is_mounted
from zarrfs.mount.process.serving import serve
from zarrfs.mount.process.unmounting import unmount
from zarrfs.testing import CountingStore

__all__ = ["Server", "counting_server", "memory_server", "null_server", "zarrfs_server"]

START_TIMEOUT_SECONDS = 60.0
READ_LIMIT = 1 << 20
"""libfuse requests at most this many bytes at once."""

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
RESET_PEAK = "5"
"""Written to ``/proc/PID/clear_refs``, it resets the peak of the resident memory."""


@dataclass(frozen=True)
class Server:
    """A mounted file system and the process that serves it."""

    process: subprocess.Popen[bytes]
    mountpoint: Path

    def cpu_seconds(self) -> float:
        """Return the time that the process has spent on the processor, in user and system mode."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND

    def reset_peak_memory(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text(RESET_PEAK)

    def memory(self) -> int:
        """Return the resident memory in bytes."""
        return self._status("VmRSS")

    def peak_memory(self) -> int:
        """Return the peak of the resident memory in bytes since ``reset_peak_memory``."""
        return self._status("VmHWM")

    def _status(self, name: str) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) << 10
        raise KeyError(name)


@contextmanager
def _serving(command: list[str], mountpoint: Path) -> Iterator[Server]:
    mountpoint.mkdir(exist_ok=True)
    process = subprocess.Popen([sys.executable, "-m", *command], stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    try:
        while not _is_ready(mountpoint):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{' '.join(command)} did not mount {mountpoint}")
            time.sleep(0.005)
        yield Server(process, mountpoint)
    finally:
        if is_mounted(str(mountpoint)):
            unmount(str(mountpoint), lazy=True)
        try:
            process.wait(START_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()


def _is_ready(mountpoint: Path) -> bool:
    if not is_mounted(str(mountpoint)):
        return False
    try:
        os.stat(mountpoint)
    except OSError:
        return False
    return True


def zarrfs_server(location: Path, mountpoint: Path, *options: str) -> Any:
    """Mount a location with ``zarrfs mount``. A context manager of a Server."""
    return _serving(["zarrfs", "mount", "-f", str(location), str(mountpoint), *options], mountpoint)


def null_server(size: int, mountpoint: Path) -> Any:
    """Mount a file ``a.raw`` of ``size`` bytes that are not computed. A context manager of a Server.

    All requests are answered from the same 1 MiB, which stays in the cache of the processor.
    """
    return _serving(["benchmarks.mount_servers", "null", str(size), str(mountpoint)], mountpoint)


def memory_server(size: int, mountpoint: Path) -> Any:
    """Mount a file ``a.raw`` of ``size`` bytes that are in memory. A context manager of a Server.

    It does what every file system has to do that returns the bytes of an array, and nothing else.
    """
    return _serving(["benchmarks.mount_servers", "memory", str(size), str(mountpoint)], mountpoint)


def counting_server(location: Path, mountpoint: Path, cache_size: int, report: Path) -> Any:
    """Mount a directory. When the mount ends, ``report`` contains the bytes that were read of each key, as JSON."""
    return _serving(
        [
            "benchmarks.mount_servers",
            "counting",
            str(location),
            str(mountpoint),
            str(cache_size),
            str(report),
        ],
        mountpoint,
    )


def _serve_null(size: int, mountpoint: str, is_in_memory: bool) -> None:
    options = {"ro": True, "auto_cache": True, "fsname": "null", "subtype": "zarrfs"}
    load_binding().run(_NullOperations(size, is_in_memory), mountpoint, options)


class _NullOperations:
    """A directory with a file ``a.raw`` of ``size`` bytes, of which all or only the first are in memory."""

    use_ns = True

    def __init__(self, size: int, is_in_memory: bool) -> None:
        self._size = size
        self._is_in_memory = is_in_memory
        # The same memory as for the blocks of a mount. It must be written, so that it does not consist of one page.
        self._buffer = new_memory(size if is_in_memory else READ_LIMIT)
        self._buffer.fill(1)
        self._owner = {"st_uid": os.getuid(), "st_gid": os.getgid()}

    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o555, "st_nlink": 2, **self._owner}
        if path != "/a.raw":
            raise FileNotFoundError(errno.ENOENT, "no such file")
        return {"st_mode": stat.S_IFREG | 0o444, "st_nlink": 1, "st_size": self._size, **self._owner}

    def readdir(self, path: str, fh: Any) -> list[str]:
        return [".", "..", "a.raw"]

    def open(self, path: str, flags: Any) -> int:
        return 0

    def release(self, path: str, fh: Any) -> int:
        return 0

    def read(self, path: str, size: int, offset: int, fh: Any) -> Any:
        count = max(0, min(size, self._size - offset))
        data: Any = self._buffer[offset : offset + count] if self._is_in_memory else self._buffer
        return (ctypes.c_ubyte * count).from_buffer(data)


class _BytesPerKey(CountingStore):
    """Counts the bytes that are read of each key."""

    def __init__(self, store: LocalStore) -> None:
        super().__init__(store)
        self.nbytes: dict[str, int] = {}

    def _count_read(self, key: str, nbytes: int) -> None:
        super()._count_read(key, nbytes)
        with self._lock:
            self.nbytes[key] = self.nbytes.get(key, 0) + nbytes


def _serve_counting(location: str, mountpoint: str, cache_size: int, report: str) -> None:
    store = _BytesPerKey(LocalStore(location))
    serve(store, mountpoint, MountOptions(cache_size=cache_size))
    Path(report).write_text(json.dumps(store.nbytes))


if __name__ == "__main__":
    if sys.argv[1] in ("null", "memory"):
        _serve_null(int(sys.argv[2]), sys.argv[3], sys.argv[1] == "memory")
    else:
        _serve_counting(sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
