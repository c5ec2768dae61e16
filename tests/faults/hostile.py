"""Functions that build hostile stores. Each case states only its difference from a valid array."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import google_crc32c
import numcodecs
import numpy as np

from tests.documents import sharding

StoreDict = dict[str, bytes]
Chunk = bytes | Callable[[], bytes] | None
"""The bytes of the only chunk, or a function that returns them, or None for a missing chunk."""

SHAPE = (4, 6)
CHUNKS = (4, 6)
NBYTES = 4 * 6 * 2
GIGABYTE = 1 << 30


class Case(NamedTuple):
    """A function that creates a store, and the words that the error message must contain."""

    name: str
    make: Callable[[], StoreDict]
    words: tuple[str, ...] = ()


def v3(*, chunk: Chunk = b"\0" * NBYTES, **over: Any) -> StoreDict:
    """Return a v3 array of uint16 with one uncompressed chunk. ``over`` replaces keys of its document; ``...`` removes
    a key.
    """
    document = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(SHAPE),
        "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(CHUNKS)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": 0,
        "codecs": [little()],
        **over,
    }
    return _store("zarr.json", document, "/".join(["c", *("0" for _ in CHUNKS)]), chunk)


def v2(*, chunk: Chunk = b"\0" * NBYTES, **over: Any) -> StoreDict:
    """Return a v2 array of uint16 with one uncompressed chunk. ``over`` replaces keys of its document; ``...`` removes
    a key.
    """
    document = {
        "zarr_format": 2,
        "shape": list(SHAPE),
        "chunks": list(CHUNKS),
        "dtype": "<u2",
        "compressor": None,
        "filters": None,
        "fill_value": 0,
        "order": "C",
        **over,
    }
    return _store(".zarray", document, ".".join("0" for _ in CHUNKS), chunk)


def _store(key: str, document: dict[str, Any], chunk_key: str, chunk: Chunk) -> StoreDict:
    members = {name: value for name, value in document.items() if value is not ...}
    store = {key: json.dumps(members).encode()}
    if chunk is not None:
        store[chunk_key] = chunk() if callable(chunk) else chunk
    return store


def raw(key: str, document: bytes) -> StoreDict:
    """Return a store with one document, unchanged."""
    return {key: document}


def little() -> dict[str, Any]:
    return {"name": "bytes", "configuration": {"endian": "little"}}


def grid(*chunks: Any) -> dict[str, Any]:
    return {"chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}}}


# -- shards ----------------------------------------------------------------------------------------------------


def sharded(
    index: list[tuple[int, int]], body: bytes = b"\0" * NBYTES, *, checksum: bool = True
) -> StoreDict:
    """Return a v3 array with one shard of 2 x 2 inner chunks. ``index`` contains the (offset, size) of each."""
    entries = b"".join(struct.pack("<QQ", *entry) for entry in index)
    index_codecs = [little()]
    if checksum:
        index_codecs.append({"name": "crc32c"})
        entries += struct.pack("<I", google_crc32c.value(entries))
    return v3(
        codecs=[sharding([2, 3], [little()], index_codecs=index_codecs)],
        chunk=body + entries,
    )


# -- compressed data with false sizes --------------------------------------------------------------------------


def gzip_bomb(nbytes: int) -> bytes:
    """Return a gzip member that decompresses to ``nbytes`` zeros and is a thousand times smaller."""
    return _deflated(nbytes, 31)


def zlib_bomb(nbytes: int) -> bytes:
    return _deflated(nbytes, 15)


def _deflated(nbytes: int, wbits: int) -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, wbits)
    block = bytes(1 << 20)
    first = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    # After a full flush each mebibyte is compressed to the same bytes.
    again = deflate.compress(block) + deflate.flush(zlib.Z_FULL_FLUSH)
    return first + again * ((nbytes >> 20) - 1) + deflate.flush()


def zstd_bomb(nbytes: int, *, declare: bool) -> bytes:
    """Return a Zstandard frame of run-length blocks, which need four bytes for each 128 KiB.

    ``declare`` states whether the frame header contains the content size.
    """
    header = struct.pack("<I", 0xFD2FB528)
    if declare:
        header += bytes([0b1110_0000]) + struct.pack("<Q", nbytes)
    else:
        header += bytes([0b0000_0000, 0x38])
    blocks = nbytes // 131072
    run = [
        struct.pack("<I", (131072 << 3) | (1 << 1) | (index == blocks - 1))[:3] + b"\0"
        for index in range(blocks)
    ]
    return header + b"".join(run)


def zstd_declaring(declared: int) -> bytes:
    """Return a small Zstandard frame whose header declares this content size."""
    return struct.pack("<I", 0xFD2FB528) + bytes([0b1110_0000]) + struct.pack("<Q", declared) + b"\x01\0\0"


def blosc(data: bytes = bytes(range(NBYTES)), **fields: int) -> bytes:
    """Return a Blosc buffer with replaced header fields: flags, typesize, nbytes, blocksize, cbytes."""
    encoded = numcodecs.Blosc("lz4", 5, 0).encode(np.frombuffer(data * 40, np.uint8))
    names = ("version", "versionlz", "flags", "typesize", "nbytes", "blocksize", "cbytes")
    header = dict(zip(names, struct.unpack("<BBBBIII", encoded[:16]), strict=True)) | fields
    return struct.pack("<BBBBIII", *(header[name] for name in names)) + encoded[16:]


def lz4(declared: int, body: bytes = b"\x10\0") -> bytes:
    """Return data in the LZ4 format of numcodecs: the decompressed size, then one block."""
    return struct.pack("<I", declared) + body


def lz4_bomb(nbytes: int) -> bytes:
    """Return an LZ4 block with one zero and a match that repeats it: each byte decompresses to 255 bytes."""
    run = nbytes - 1 - 4 - 15 - 6
    return (
        struct.pack("<I", nbytes)
        + b"\x1f\0\x01\0"
        + b"\xff" * (run // 255)
        + bytes([run % 255])
        + b"\x60"
        + bytes(6)
    )
