"""blosc: a meta-compressor that splits a buffer into blocks, shuffles them, and compresses each.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/ (version 1.0); buffer format:
https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst

Names: ``blosc``.

Example::

    {
      "name": "blosc",
      "configuration": {"cname": "lz4", "clevel": 1, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
    }

The blocks of a buffer can be decoded independently. ``open_source`` returns a source that fetches the header, the block
offsets and the blocks that contain the requested bytes, and decodes a smaller buffer that consists of these blocks.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import Buffer, ByteRange, BytesBytesCodec, ByteSource, CodecError
from zarrfs.engine.codecs.configuration import check_keys, choice, integer
from zarrfs.engine.codecs.limits import check_size, limit_error, variable_limit
from zarrfs.errors import MetadataError
from zarrfs.libraries import import_library

__all__ = ["BloscCodec"]

HEADER = struct.Struct("<BBBBIII")
MEMCPYED = 0x2
FIRST_READ = 1024
"""The size of the header and the offsets of 252 blocks, which are fetched in one read."""

SHUFFLES = {"noshuffle": 0, "shuffle": 1, "bitshuffle": 2}
CNAMES = ("lz4", "lz4hc", "blosclz", "zstd", "snappy", "zlib")
MAX_TYPESIZE = 2**31 - 1
MAX_NBYTES = 2**31 - 1 - 16


def run_without_threads(name: str, *arguments: Any) -> Any:
    """Call a function of ``numcodecs.blosc``, which is imported with the first call, without the threads of Blosc.

    numcodecs uses them only for calls from the main thread. All such calls share one lock, and the threads are not
    ended, so that a later fork is unsafe. The setting is global to the process. It is changed only during the call,
    without an effect on other threads, and never if the program has set a value.
    """
    blosc: Any = import_library("numcodecs.blosc")
    function: Callable[..., Any] = getattr(blosc, name)
    if blosc.use_threads is not None or threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    blosc.use_threads = False
    try:
        return function(*arguments)
    finally:
        blosc.use_threads = None


class BloscCodec(BytesBytesCodec):
    """bytes -> bytes: Blosc 1 buffers."""

    name: ClassVar[str] = "blosc"
    partial: ClassVar[bool] = True
    native_decoder: ClassVar[str] = "blosc"

    def __init__(
        self,
        cname: Any = "lz4",
        clevel: Any = 5,
        shuffle: Any = "shuffle",
        typesize: Any = 1,
        blocksize: Any = 0,
    ) -> None:
        self.cname = cname
        self.clevel = clevel
        self.shuffle = shuffle
        self.typesize = typesize
        self.blocksize = blocksize

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("cname", "clevel", "shuffle", "typesize", "blocksize"))
        shuffle = configuration.get("shuffle")
        typesize = configuration.get("typesize")
        if shuffle == "noshuffle" and not (type(typesize) is int and 1 <= typesize <= MAX_TYPESIZE):
            typesize = 1  # Without shuffling the value is ignored, whatever it is.
        return cls(
            configuration.get("cname"),
            configuration.get("clevel"),
            shuffle,
            typesize,
            configuration.get("blocksize", 0),
        )

    def configuration(self) -> dict[str, Any]:
        """Return the parameters. Those that were missing in the metadata are omitted."""
        parameters = {
            "cname": self.cname,
            "clevel": self.clevel,
            "shuffle": self.shuffle,
            "typesize": self.typesize,
            "blocksize": self.blocksize,
        }
        return {key: value for key, value in parameters.items() if value is not None}

    def check_encoding(self) -> None:
        # Decoding reads all parameters from the header of the buffer.
        parameters = BloscCodec.configuration(self)
        choice("blosc", parameters, "shuffle", tuple(SHUFFLES))
        if "typesize" not in parameters:
            raise MetadataError(
                "codec 'blosc': configuration key 'typesize' is missing; it is required unless shuffle is 'noshuffle'"
            )
        integer("blosc", parameters, "typesize", 1, MAX_TYPESIZE)
        choice("blosc", parameters, "cname", CNAMES)
        integer("blosc", parameters, "clevel", 0, 9)
        integer("blosc", parameters, "blocksize", 0, 2**31 - 1)

    def encode(self, data: Buffer) -> Buffer:
        if memoryview(data).nbytes > MAX_NBYTES:
            raise CodecError(
                f"{memoryview(data).nbytes} bytes do not fit a Blosc buffer, which holds at most {MAX_NBYTES} bytes; "
                "use smaller chunks"
            )
        # numcodecs takes the element size from the item size of the buffer. Blosc treats a size above 255 as 1.
        typesize = self.typesize if self.typesize <= 255 else 1
        flat = np.frombuffer(data, np.uint8)
        if flat.size % typesize == 0:
            flat = flat.view(f"V{typesize}")
        packed: bytes = run_without_threads(
            "compress", flat, self.cname.encode(), self.clevel, SHUFFLES[self.shuffle], self.blocksize
        )
        return packed

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        nbytes, _, cbytes = check_header(data, size)
        if cbytes != len(data):
            if cbytes > len(data):
                raise CodecError(f"the buffer is truncated: it has {len(data)} bytes, expected {cbytes}")
            data = memoryview(data)[:cbytes]
        if nbytes == 0:
            return b""
        if out is None:
            plain: bytes = run_without_threads("decompress", data)
            return plain
        run_without_threads("decompress", data, out)
        return out

    def open_source(self, source: ByteSource, size: int) -> ByteSource | None:
        if source.size() is None:
            return _MissingSource()
        return BloscSource(source, size)


def check_header(data: Buffer, size: int | None) -> tuple[int, int, int]:
    """Return (decoded size, block size, encoded size) in bytes of a buffer. Raises CodecError for an invalid header."""
    if len(data) < HEADER.size:
        raise CodecError(
            f"the buffer is truncated: it has {len(data)} bytes, a Blosc header has {HEADER.size}"
        )
    version, _, flags, _, nbytes, blocksize, cbytes = HEADER.unpack_from(data)
    if version not in (1, 2):
        raise CodecError(
            f"the data are not a Blosc 1 buffer: the format version is {version}, expected 1 or 2"
        )
    check_size(nbytes, size)
    if size is None and nbytes > variable_limit(cbytes):
        raise limit_error(variable_limit(cbytes))
    if nbytes and not 0 < blocksize <= nbytes:
        raise CodecError(f"the block size is {blocksize}, expected 1 to {nbytes}, the decoded size")
    min_cbytes = HEADER.size + (nbytes if flags & MEMCPYED else 4 * -(-nbytes // blocksize) if nbytes else 0)
    if cbytes < min_cbytes:
        raise CodecError(
            f"the header declares an encoded size of {cbytes} bytes, expected at least {min_cbytes} for "
            f"{nbytes} decoded bytes"
        )
    return nbytes, blocksize, cbytes


class _MissingSource:
    """The source of a missing value."""

    in_memory = True
    high_latency = False

    def read(self) -> None:
        return None

    def read_ranges(self, ranges: Sequence[ByteRange]) -> None:
        return None

    def size(self) -> None:
        return None


class BloscSource:
    """The decoded bytes of a Blosc buffer. Only the blocks that contain requested bytes are fetched and decoded."""

    def __init__(self, source: ByteSource, size: int) -> None:
        self._source = source
        self._size = size
        self.in_memory = source.in_memory
        self.high_latency = source.high_latency

    def size(self) -> int:
        return self._size

    def read(self) -> Buffer | None:
        buffers = self.read_ranges([ByteRange(0, self._size)])
        return None if buffers is None else buffers[0]

    def read_ranges(self, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        first = self._source.read_ranges([ByteRange(0, FIRST_READ)])
        if first is None:
            return None
        head = bytes(first[0])
        nbytes, blocksize, cbytes = check_header(head, self._size)
        total = self._source.size()
        if total is not None and total < cbytes:
            raise CodecError(f"the buffer is truncated: it has {total} bytes, expected {cbytes}")
        spans = [byte_range.resolve(self._size) for byte_range in ranges]
        if head[2] & MEMCPYED:
            buffers = self._source.read_ranges([ByteRange(HEADER.size + a, b - a) for a, b in spans])
            if buffers is None:
                return None
            return [_checked(buffer, b - a) for buffer, (a, b) in zip(buffers, spans, strict=True)]
        count = -(-nbytes // blocksize)
        head_size = HEADER.size + 4 * count
        if len(head) < head_size:
            complete = self._source.read_ranges([ByteRange(0, head_size)])
            if complete is None:
                return None
            head = bytes(_checked(complete[0], head_size))
        offsets = np.frombuffer(head, "<i4", count, HEADER.size).astype(np.int64)
        if offsets.min() < head_size or offsets.max() >= cbytes:
            raise CodecError(
                f"the block offsets are {offsets.min()} to {offsets.max()}, expected {head_size} to {cbytes - 1}"
            )
        return self._decode(head, offsets, blocksize, cbytes, spans)

    def _decode(
        self,
        head: bytes,
        offsets: np.ndarray[Any, Any],
        blocksize: int,
        cbytes: int,
        spans: list[tuple[int, int]],
    ) -> list[Buffer] | None:
        count = len(offsets)
        # A block ends at the next larger offset. Threads may have stored the blocks in any order.
        order = np.sort(offsets)
        ends = np.append(order[1:], cbytes)[np.searchsorted(order, offsets)]
        is_needed = np.zeros(count, bool)
        for start, stop in spans:
            if stop > start:
                is_needed[start // blocksize : (stop - 1) // blocksize + 1] = True
        if is_needed[-1] and count > 1 and self._size % blocksize:
            # The last block is shorter than the others. A buffer that consists of it alone would not be valid.
            is_needed[-2] = True
        edges = np.flatnonzero(
            np.diff(np.concatenate(([False], is_needed, [False])).astype(np.int8))
        ).reshape(-1, 2)
        runs = [(int(low), int(high)) for low, high in edges]
        blocks = [i for low, high in runs for i in range(low, high)]
        fetched = self._fetch(blocks, offsets, ends)
        if fetched is None:
            return None
        decoded = [(low, self._decode_run(head, low, high, count, blocksize, fetched)) for low, high in runs]
        buffers: list[Buffer] = []
        for start, stop in spans:
            low, data = next((run for run in reversed(decoded) if run[0] * blocksize <= start), (0, b""))
            begin = start - low * blocksize
            buffers.append(memoryview(data)[begin : begin + stop - start])
        return buffers

    def _fetch(
        self, blocks: list[int], offsets: np.ndarray[Any, Any], ends: np.ndarray[Any, Any]
    ) -> dict[int, Buffer] | None:
        """Fetch the encoded blocks, adjacent ones in one range. Return None when the value is missing."""
        order = sorted(blocks, key=lambda i: int(offsets[i]))
        groups: list[list[int]] = []
        for i in order:
            if groups and offsets[i] == ends[groups[-1][-1]]:
                groups[-1].append(i)
            else:
                groups.append([i])
        spans = [(int(offsets[group[0]]), int(ends[group[-1]])) for group in groups]
        buffers = self._source.read_ranges([ByteRange(a, b - a) for a, b in spans])
        if buffers is None:
            return None
        fetched: dict[int, Buffer] = {}
        for group, (start, stop), buffer in zip(groups, spans, buffers, strict=True):
            view = memoryview(_checked(buffer, stop - start))
            for i in group:
                fetched[i] = view[int(offsets[i]) - start : int(ends[i]) - start]
        return fetched

    def _decode_run(
        self, head: bytes, low: int, high: int, count: int, blocksize: int, fetched: dict[int, Buffer]
    ) -> Buffer:
        """Decode blocks ``low`` to ``high`` (exclusive) from a buffer that consists of them."""
        nbytes = min(high * blocksize, self._size) - low * blocksize
        parts = [fetched[i] for i in range(low, high)]
        position = HEADER.size + 4 * len(parts)
        offsets = []
        for part in parts:
            offsets.append(position)
            position += len(part)
        version, compressor, flags, typesize = head[:4]
        header = HEADER.pack(version, compressor, flags, typesize, nbytes, min(blocksize, nbytes), position)
        buffer = b"".join([header, struct.pack(f"<{len(offsets)}i", *offsets), *parts])
        plain: bytes = run_without_threads("decompress", buffer)
        check_size(len(plain), nbytes)
        return plain


def _checked(buffer: Buffer, size: int) -> Buffer:
    """Return ``buffer``. Raises CodecError unless it has ``size`` bytes."""
    if len(buffer) != size:
        raise CodecError(f"the buffer is truncated: {len(buffer)} bytes of {size} were read")
    return buffer
