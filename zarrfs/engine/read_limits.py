"""All thresholds of reading. The planner (``read/planning.py``) decides by them; no executor has thresholds of its own.

A request costs a fixed time, which is stated here as the number of bytes that take as long. It differs between the
executors: in Python a request passes several functions and objects, in the native library it is one system call. So
each of them has a ``DecodingLimits``. The native library receives its limits with the plan.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["NATIVE_DECODING", "PYTHON_DECODING", "DecodingLimits"]


class DecodingLimits(NamedTuple):
    """From which sizes on a part of a chunk is decoded, and which ranges are read together.

    Attributes:
        gap: ranges of a chunk that are closer than this many bytes are read as one.
        min_nbytes: smaller uncompressed chunks are read whole.
        min_compressed_nbytes: smaller compressed chunks are decoded whole.
        max_fraction: a larger part of a compressed chunk is decoded as a whole chunk.
    """

    gap: int
    min_nbytes: int
    min_compressed_nbytes: int
    max_fraction: float


PYTHON_DECODING = DecodingLimits(16 << 10, 16 << 10, 1 << 20, 1 / 2)
NATIVE_DECODING = DecodingLimits(6 << 10, 16 << 10, 64 << 10, 7 / 8)

MAX_WHOLE_NBYTES = 256 << 20
"""Larger chunks are decoded in part where that is possible, even if they are read repeatedly. The native library does
not read them.
"""

MIN_DIVIDED_NBYTES = 256 << 10
"""Smaller Blosc buffers usually consist of one block."""

# -- the native library ----------------------------------------------------------------------------------------

MAX_PIECE_NBYTES = 512 << 10
"""Uncompressed bytes are read in pieces of about this size, so that they are still in the cache of the processor when
they are copied.
"""

MAX_REQUEST_NBYTES = 256 << 10
"""Inner chunks of a shard are read together up to this size, so that they are still in the cache of the processor when
they are decoded.
"""

MAX_SMALL_VALUE_NBYTES = 48 << 10
"""A file of at most this size is read whole, even if only some of its blocks are decoded."""

MIN_SKIPPED_NBYTES = 128 << 10
"""Of a zstd frame only the beginning is decoded if at least this much follows it: the maximum size of a block."""

MIN_NBYTES_PER_RANGE = 64
"""If a chunk has more ranges, Blosc unshuffles all elements in less time than single ones are collected."""

BUDGET_NS = 200_000_000
"""After this time the library returns to the interpreter, so that signals are handled. Each return costs time: the
threads wait for the one that ends last, and a large chunk takes 20 ms.
"""

# -- shards ----------------------------------------------------------------------------------------------------

INNER_CHUNK_GAP = 64 << 10
"""Inner chunks closer than this many bytes are fetched in one range: a second request costs more than the gap."""

MAX_FETCHED_FRACTION = 0.7
"""When at least this fraction of a shard's bytes is requested, the shard is fetched whole."""

MIN_REMOTE_PART_NBYTES = 256 << 10
"""Smaller inner chunks are fetched whole from stores with high latency."""

MAX_REMOTE_WHOLE_NBYTES = 2 << 20
"""Compressed inner chunks up to this size are fetched whole from stores with high latency: decoding a part of one needs
at least two requests, one after the other.
"""

# -- threads of the Python executor ----------------------------------------------------------------------------

MIN_PARALLEL_COMPRESSED_NBYTES = 16 << 10
"""Compressed chunks of at least this many bytes are decoded on several threads."""

MIN_PARALLEL_UNCOMPRESSED_NBYTES = 256 << 10
"""Uncompressed chunks of at least this many bytes are read on several threads. Reading them is only a copy, so the
threshold is higher than for compressed chunks.
"""

MIN_PARALLEL_INNER_NBYTES = 128 << 10
"""Smaller inner chunks are decoded on one thread: distributing them costs more than it saves."""

MAX_PENDING_NBYTES = 256 << 20
"""The total size of the chunks that are requested from a server at a time, beyond ``MIN_PENDING_CHUNKS`` of them."""

MIN_PENDING_CHUNKS = 64

MAX_PREFETCHED_CHUNK_NBYTES = 16 << 20
"""Larger chunks of servers are read by threads, which request each of them in parts, on several connections."""

MAX_CONCURRENT_PARTS = 32
"""Threads for reading parts of inner chunks if each request needs a network round trip, in which a thread waits."""
