"""One reusable decoded chunk per thread.

Newly allocated memory costs more than decoding into it, because each page must be mapped. Each thread retains the
buffer of the codec chain that it used last.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import ChunkSpec, CodecError
from zarrfs.engine.codecs.pipeline.chain import CodecChain

__all__ = ["new_chunk", "release_scratch", "scratch_chunk"]

Array = np.ndarray[Any, Any]

MAX_SCRATCH_NBYTES = 32 << 20
"""Larger scratch buffers are not reused."""

_local = threading.local()


def scratch_chunk(chain: CodecChain) -> tuple[Array, memoryview]:
    """Return this thread's buffer for one decoded chunk: as an array of ``chain.spec.shape``, and as its bytes.

    The chain must be ``direct``. The contents are valid until the thread requests scratch memory again.
    """
    if getattr(_local, "owner", None) is not chain:
        encoded = new_chunk(chain.array_bytes_spec)
        array = encoded
        for codec, spec in reversed(chain.array_codecs):
            array = codec.decode(array, spec)
        _local.buffer = array, encoded.reshape(-1).view(np.uint8).data
        _local.owner = chain if encoded.nbytes <= MAX_SCRATCH_NBYTES else None
    buffer: tuple[Array, memoryview] = _local.buffer
    return buffer


def release_scratch() -> None:
    """Release the buffer of this thread."""
    _local.__dict__.clear()


def new_chunk(spec: ChunkSpec) -> Array:
    """Return new memory for a chunk. Raises CodecError if it cannot be allocated: metadata can declare any size."""
    try:
        return np.empty(spec.shape, spec.dtype)
    except (MemoryError, ValueError) as error:
        raise CodecError(
            f"a chunk of shape {spec.shape} and data type {spec.dtype} does not fit into memory"
        ) from error
