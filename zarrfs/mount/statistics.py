"""Counters of a mount, and their presentation as JSON and as Prometheus text."""

from __future__ import annotations

import errno
import json
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.counters import decoded
from zarrfs.engine.stores.base import RequestStatistics, Store
from zarrfs.files.content.blocks import BlockPool

__all__ = ["MountDescription", "MountStatistics", "RequestCounters", "prometheus_text"]

EXPECTED_ERRNOS = frozenset({errno.ENOENT, errno.ENODATA, errno.EROFS, errno.ENOSYS})
"""Error numbers of ordinary use, which are not counted: a look-up of a name that does not exist, an attribute that is
not set.
"""

EXPECTED_ANSWERS = frozenset({("getxattr", errno.EOPNOTSUPP)})
"""Operations and error numbers that are not counted either: the kernel asks for ``security.capability`` before each
write, and programs such as ls ask for access control lists.
"""

PREFIX = "zarrfs"


class RequestCounters:
    """The requests of the kernel. Thread-safe.

    Attributes:
        requests: the number of requests by operation.
        errors: the number of failed requests by the name of the error number, without ``EXPECTED_ERRNOS``.
        read_nbytes: the number of bytes that reads returned.
        written_nbytes: the number of bytes that writes accepted.
        active: the number of requests that are being served.
        max_active: the maximum of ``active`` so far.
    """

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.read_nbytes = 0
        self.written_nbytes = 0
        self.active = 0
        self.max_active = 0
        self._lock = threading.Lock()

    def begin(self, operation: str) -> None:
        """Count the start of a request."""
        with self._lock:
            self.requests[operation] += 1
            self.active = active = self.active + 1
            if active > self.max_active:
                self.max_active = active

    def end(self, *, read_nbytes: int = 0, written_nbytes: int = 0) -> None:
        """Count the end of a request that succeeded."""
        with self._lock:
            self.active -= 1
            self.read_nbytes += read_nbytes
            self.written_nbytes += written_nbytes

    def fail(self, number: int | None, name: str = "") -> None:
        """Count the end of a request that failed with an error number. ``name`` is its operation."""
        with self._lock:
            self.active -= 1
            if number not in EXPECTED_ERRNOS and (name, number) not in EXPECTED_ANSWERS:
                self.errors[errno.errorcode.get(number or 0, "unknown")] += 1

    def snapshot(self) -> dict[str, Any]:
        """Return the counters as a JSON object."""
        with self._lock:
            return {
                "requests": dict(sorted(self.requests.items())),
                "errors": dict(sorted(self.errors.items())),
                "read_nbytes": self.read_nbytes,
                "written_nbytes": self.written_nbytes,
                "queue": {"active": self.active, "max_active": self.max_active},
            }


@dataclass(frozen=True)
class MountDescription:
    """What is mounted where.

    Attributes:
        sources: the locations, without credentials.
        mountpoint: the absolute path of the mount point.
        pid: the process that serves the mount.
        since: the time of mounting in seconds since the epoch.
        cache_size: the limit of the caches of chunks and blocks in bytes.
        is_writable: whether the mount accepts writes.
        unfinished: the sources that a command has not completed, as they were when they were mounted.
    """

    sources: tuple[str, ...]
    mountpoint: str
    pid: int
    since: float
    cache_size: int
    is_writable: bool = False
    unfinished: tuple[str, ...] = ()


@dataclass
class MountStatistics:
    """The counters of a mount and of the caches that it uses. ``snapshot`` reads them at one time."""

    description: MountDescription
    pool: BlockPool
    caches: Sequence[ChunkCache]
    metadata_nbytes: Callable[[], int]
    stores: Sequence[Store] = ()
    counters: RequestCounters = field(default_factory=RequestCounters)

    def snapshot(self) -> dict[str, Any]:
        """Return all statistics as a JSON object. Sizes are in bytes, times in seconds."""
        caches = {id(cache): cache for cache in self.caches}.values()
        hits, misses = sum(cache.hits for cache in caches), sum(cache.misses for cache in caches)
        blocks = asdict(self.pool.statistics)
        resident = resident_nbytes()
        return {
            "mount": {**asdict(self.description), "uptime": max(0.0, time.time() - self.description.since)},
            **self.counters.snapshot(),
            "chunk_cache": {
                "hits": hits,
                "misses": misses,
                "hit_rate": _rate(hits, misses),
                "nbytes": sum(cache.nbytes for cache in caches),
                "capacity": sum(cache.capacity for cache in caches),
            },
            "server": self._server_requests(),
            "decoded": {"chunks": decoded.chunks, "nbytes": decoded.nbytes},
            "blocks": {
                **blocks,
                "hit_rate": _rate(blocks["hits"], blocks["assembled"]),
                "nbytes": self.pool.nbytes,
                "capacity": self.pool.capacity,
            },
            "memory": {
                "metadata_nbytes": self.metadata_nbytes(),
                "resident_nbytes": resident,
                # The kernel updates the maximum with a delay.
                "max_resident_nbytes": max(
                    resident or 0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
                ),
            },
        }

    def _server_requests(self) -> dict[str, int]:
        """Return the requests that the stores of the mount have sent to servers."""
        each = [store.request_statistics for store in {id(store): store for store in self.stores}.values()]
        return {name: sum(getattr(one, name) for one in each) for name in RequestStatistics._fields}

    def json(self) -> bytes:
        """Return ``snapshot`` as a JSON document."""
        return json.dumps(self.snapshot(), indent=2).encode() + b"\n"


def _rate(hits: int, misses: int) -> float | None:
    return round(hits / (hits + misses), 4) if hits + misses else None


def resident_nbytes() -> int | None:
    """Return the resident memory of this process in bytes, or None if it is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


# -- Prometheus ------------------------------------------------------------------------------------------------

METRICS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("read_bytes_total", "counter", "Bytes returned by reads.", ("read_nbytes",)),
    ("written_bytes_total", "counter", "Bytes accepted by writes.", ("written_nbytes",)),
    ("active_requests", "gauge", "Requests that are being served.", ("queue", "active")),
    (
        "chunk_cache_hits_total",
        "counter",
        "Look-ups that found a chunk in the cache.",
        ("chunk_cache", "hits"),
    ),
    ("chunk_cache_misses_total", "counter", "Look-ups that did not.", ("chunk_cache", "misses")),
    ("chunk_cache_bytes", "gauge", "Bytes of the cached chunks.", ("chunk_cache", "nbytes")),
    ("chunk_cache_capacity_bytes", "gauge", "Limit of the chunk cache.", ("chunk_cache", "capacity")),
    (
        "decoded_chunks_total",
        "counter",
        "Chunks, or parts of chunks, that were decoded.",
        ("decoded", "chunks"),
    ),
    ("decoded_bytes_total", "counter", "Bytes of the decoded chunks.", ("decoded", "nbytes")),
    ("server_requests_total", "counter", "Requests that were sent to servers.", ("server", "requests")),
    ("server_bytes_total", "counter", "Bytes of values from and to servers.", ("server", "nbytes")),
    ("server_retries_total", "counter", "Requests to servers that were repeated.", ("server", "retries")),
    ("server_active_requests", "gauge", "Requests to servers in progress.", ("server", "in_progress")),
    ("block_hits_total", "counter", "Reads served from a block.", ("blocks", "hits")),
    ("blocks_assembled_total", "counter", "Blocks that were assembled.", ("blocks", "assembled")),
    (
        "blocks_read_ahead_total",
        "counter",
        "Blocks that were assembled before a read.",
        ("blocks", "read_ahead"),
    ),
    ("block_bytes", "gauge", "Bytes of the blocks in memory.", ("blocks", "nbytes")),
    ("metadata_bytes", "gauge", "Bytes of the cached metadata.", ("memory", "metadata_nbytes")),
    ("resident_memory_bytes", "gauge", "Resident memory of the process.", ("memory", "resident_nbytes")),
    ("uptime_seconds", "gauge", "Time since the mount.", ("mount", "uptime")),
)
"""Name without prefix, type, help text, and path of the value in the snapshot."""


def prometheus_text(snapshot: Mapping[str, Any]) -> str:
    """Return a snapshot in the text format of Prometheus, version 0.0.4."""
    label = _label("mountpoint", snapshot["mount"]["mountpoint"])
    lines: list[str] = []
    for key, name, text, by in (
        ("requests", "requests_total", "Requests of the kernel.", "operation"),
        ("errors", "errors_total", "Requests that failed.", "errno"),
    ):
        lines += _header(name, "counter", text)
        lines += [
            f"{PREFIX}_{name}{{{label},{_label(by, value)}}} {count}"
            for value, count in snapshot[key].items()
        ]
    for name, kind, text, path in METRICS:
        number: Any = snapshot
        for part in path:
            number = number[part]
        if number is not None:
            lines += [*_header(name, kind, text), f"{PREFIX}_{name}{{{label}}} {number}"]
    return "\n".join(lines) + "\n"


def _header(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP {PREFIX}_{name} {text}", f"# TYPE {PREFIX}_{name} {kind}"]


def _label(name: str, value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped.encode("utf-8", "backslashreplace").decode()}"'
