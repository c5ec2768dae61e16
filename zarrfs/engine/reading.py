"""Running a read: which chunks are kept, which are decoded into the output, on how many threads.

The measured reasons for the numbers are in ``benchmarks/``: a short system call hands over the GIL and queues for
it again, so small chunks are read on one thread; large ones spend their time in decompressors that run without it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import prod
from typing import Any

import numpy as np

from zarrfs.engine.codecs.base import BufferSource, CodecError, Region
from zarrfs.engine.codecs.pipeline import CodecPipeline
from zarrfs.engine.indexing import ChunkPart, chunk_parts, count_parts, flat_boxes
from zarrfs.engine.layout import ArrayLayout, StoreSource
from zarrfs.engine.parallel import CORES, at_most, for_each
from zarrfs.engine.selections import OuterSelection, PointSelection, Span
from zarrfs.engine.stores.base import IMMUTABLE, ValueTooLargeError
from zarrfs.errors import MissingChunkError, SelectionError

__all__ = ["read_flat", "read_selection"]

Array = np.ndarray[Any, Any]

PARALLEL_CHUNK_NBYTES = 16 << 10
"""Compressed chunks of at least this many bytes are worth a second thread."""

PARALLEL_PLAIN_NBYTES = 256 << 10
"""Uncompressed ones, which cost nothing but a copy, must be larger."""

ATTEMPTS = 8
"""How often a chunk that is replaced while parts of it are read is read anew, before it is read whole."""

FEW_CHUNKS = 64
FEW_NBYTES = 32 << 20
"""A read of whole chunks that touches at most so many, and so much, is a look, and likely to come again; more is a
pass, and keeping what it decodes would cost more (fresh memory, page by page) than decoding.
"""


def read_selection(layout: ArrayLayout, selection: OuterSelection | PointSelection) -> Array:
    """Return what the selection names, as a new array in the shape in which chunks are laid down."""
    shape = selection.shape if isinstance(selection, OuterSelection) else (prod(selection.shape),)
    out = empty(shape, layout)
    read_into(layout, selection, out)
    return out


def read_out(
    layout: ArrayLayout, selection: OuterSelection | PointSelection, out: Array, fields: Any = None
) -> Array:
    """Read what the selection names into an array of the result's shape, and return that.

    Without a copy where the array has the dtype of the stored one, and the selection only slices.
    """
    shape = selection.result_shape if isinstance(selection, OuterSelection) else selection.shape
    if not isinstance(out, np.ndarray):
        raise TypeError(f"{layout.where}: out must be a NumPy array, found {type(out).__name__}")
    if out.shape != shape and fields is None:
        raise ValueError(f"{layout.where}: out has the shape {out.shape}, the selection {shape}")
    if fields is None and out.dtype == layout.dtype and out.flags.writeable:
        laid = selection.laid(out) if isinstance(selection, OuterSelection) else out.reshape(-1)
        if np.may_share_memory(laid, out):
            read_into(layout, selection, laid)
            return out
    read = read_selection(layout, selection)
    result = selection.result(read) if isinstance(selection, OuterSelection) else read.reshape(shape)
    out[...] = result if fields is None else result[fields]
    return out


def empty(shape: tuple[int, ...], layout: ArrayLayout) -> Array:
    """Return new memory for a result; a result that does not fit is the user's error, not a crash."""
    try:
        return np.empty(shape, layout.dtype)
    except (MemoryError, ValueError) as error:
        nbytes = prod(shape) * layout.dtype.itemsize
        raise SelectionError(
            f"{layout.where}: a selection of shape {shape} needs {nbytes:,} bytes of memory, which cannot be had; "
            "select less at a time"
        ) from error


def read_into(layout: ArrayLayout, selection: OuterSelection | PointSelection, out: Array) -> None:
    """Read the selection into ``out``, an array (or view) of the shape in which chunks are laid down."""
    count = count_parts(selection, layout.axes)
    if out.size == 0 or count == 0:
        return
    typical = layout.typical_nbytes
    capacity = layout.cache.capacity
    sharded = layout.sharding() is not None
    touched = min(count * typical, out.nbytes * 2) if sharded else count * typical
    keep_parts = touched * 2 <= capacity
    keep_whole = count <= FEW_CHUNKS and touched <= FEW_NBYTES and touched * 8 <= capacity
    look = len(layout.cache) > 0
    pipeline = layout.pipeline
    store, fill, strict = layout.store, layout.fill, not layout.access.fill_missing

    def read(part: ChunkPart) -> None:
        coords, region, local, target, whole = part
        key = layout.key(coords)
        try:
            view = (
                out[target] if local is None else np.empty([r.stop - r.start for r in region], layout.dtype)
            )
            keep = keep_whole if whole else keep_parts
            codecs = pipeline or layout.pipeline_of(coords)
            if strict:
                _check_present(layout, part, codecs)
            if sharded or (codecs.partial and codecs.compressed and not whole):
                if not _read_steadily(layout, coords, key, codecs, region, view, keep):
                    view[...] = fill
            elif keep or look or not (whole and codecs.covers(region)):
                slot = layout.slot(coords, key, keep) if keep or look else None
                if not codecs.read(StoreSource(store, key, codecs.most_stored), region, view, slot):
                    view[...] = fill
            else:
                # The plainest case has the shortest way: a whole chunk that is not to be kept.
                if codecs.plain:
                    present = codecs.fill(lambda memory: store.get_into(key, memory), view)
                else:
                    data = store.get_within(key, codecs.most_stored)
                    present = data is not None
                    if data is not None:
                        codecs.decode(data, view)
                if not present:
                    view[...] = fill
            if local is not None:
                out[target] = view[local]
        except CodecError as error:
            raise layout.decode_error(coords, error) from error
        except ValueTooLargeError as error:
            raise layout.decode_error(coords, CodecError(str(error))) from error
        except MemoryError as error:
            raise layout.decode_error(coords, CodecError("it does not fit into memory")) from error

    workers = 1
    if count > 1:
        if store.concurrency > 1:
            workers = store.concurrency
        elif typical >= (PARALLEL_CHUNK_NBYTES if layout.compressed else PARALLEL_PLAIN_NBYTES):
            workers = CORES
    with at_most(layout.access.concurrency):
        for_each(read, chunk_parts(selection, layout.axes), workers)


def _read_steadily(
    layout: ArrayLayout,
    coords: tuple[int, ...],
    key: str,
    codecs: CodecPipeline,
    region: Region,
    view: Array,
    keep: bool,
) -> bool:
    """Read a part of a chunk that takes several requests, all of the same value: one that is replaced meanwhile would
    give an index of the old one and bytes of the new.
    """
    store = layout.store
    source = StoreSource(store, key, codecs.most_stored)

    def mark() -> Hashable | None:
        stamp = store.stamp(key)
        if stamp is None:
            return IMMUTABLE if layout.access.settled else store.version(key)
        return stamp

    for _ in range(ATTEMPTS):
        before = mark()
        if before is None:
            break
        try:
            present = codecs.read(source, region, view, layout.slot(coords, key, keep))
        except CodecError:
            if mark() == before:
                raise
            continue
        if mark() == before:
            return present
    # Absent, or nothing tells whether it stays the same, or it is never left alone: one request then.
    data = source.read()
    return data is not None and codecs.read(BufferSource(data), region, view, None)


def _check_present(layout: ArrayLayout, part: ChunkPart, codecs: CodecPipeline) -> None:
    """Raise if the chunk is not there, or an inner chunk of what is wanted of it."""
    source = StoreSource(layout.store, layout.key(part.coords), codecs.most_stored)
    if source.size() is None:
        inner = ""
    else:
        absent = codecs.first_absent(source, part.region)
        if absent is None:
            return
        inner = f" inner chunk {absent} of"
    raise MissingChunkError(
        f"{layout.where}:{inner} chunk {part.coords} (key {layout.key(part.coords)!r}) is not there, and "
        "fill_missing=False asks that this be an error"
    )


def read_flat(layout: ArrayLayout, offset: int, out: Array, order: str) -> None:
    """Fill ``out``, one byte per item, with the bytes from ``offset`` of the array's elements in C or F order."""
    itemsize = layout.dtype.itemsize
    if out.size == 0 or itemsize == 0:
        return
    first, skip = divmod(offset, itemsize)
    last = -(-(offset + out.size) // itemsize)
    aligned = skip == 0 and (last - first) * itemsize == out.size
    raw = out if aligned else np.empty((last - first) * itemsize, np.uint8)
    elements = raw.view(layout.dtype)
    shape = layout.spec.shape if order == "C" else layout.spec.shape[::-1]
    for position, box in flat_boxes(first, last, shape):
        lengths = tuple(part.stop - part.start for part in box)
        begin = position - first
        view = elements[begin : begin + prod(lengths)].reshape(lengths)
        if order == "F":
            view, box = view.T, box[::-1]
        spans: Iterable[Span] = (Span(part.start, 1, part.stop - part.start) for part in box)
        selection = OuterSelection(tuple(spans), view.shape, (slice(None),) * view.ndim)
        read_into(layout, selection, view)
    if not aligned:
        out[...] = raw[skip : skip + out.size]


def check_flat(layout: ArrayLayout, offset: int, size: int, order: str) -> int:
    """Return how many bytes there are from ``offset``, at most ``size``; raise where the question makes no sense."""
    if layout.dtype.hasobject:
        raise SelectionError(
            f"{layout.where}: {layout.spec.data_type.name} elements vary in length and have no flat byte stream"
        )
    if order not in ("C", "F"):
        raise SelectionError(f"order must be 'C' or 'F', found {order!r}")
    if offset < 0 or size < 0:
        raise SelectionError(f"offset and size must not be negative, found {offset} and {size}")
    nbytes = prod(layout.spec.shape) * layout.dtype.itemsize
    return max(0, min(size, nbytes - offset))
