"""The public ``Array`` class.

Its base classes have the properties that follow from the metadata (``array_properties.py``), and reading and writing by
index expressions (``indexed_array.py``). This module adds views, checksums, the array as a stream of bytes, and changes
of the shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zarrfs.engine.array import resizing
from zarrfs.engine.array.digest import stored_digest
from zarrfs.engine.array.indexed_array import IndexedArray
from zarrfs.engine.array.view import ArrayView, field_dtype
from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.formats import api as formats
from zarrfs.engine.hierarchy.consolidation_warnings import warn_of_change
from zarrfs.engine.hierarchy.summary import Info, array_summary
from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.engine.indexing.selections import (
    basic_selection,
)
from zarrfs.engine.read.flat_reading import check_flat, read_flat
from zarrfs.engine.stores.base import Buffer
from zarrfs.engine.values import as_values, converted, is_masked_array, readable_memory, writable_memory
from zarrfs.engine.write.patching import write_flat

__all__ = ["Array"]


class Array(IndexedArray):
    """An N-dimensional chunked array in a store. Returned by ``zarrfs.open_array`` and ``zarrfs.create_array``.

    Indexing reads the selected elements into a new NumPy array. Assignment writes to the store before it returns.

    Methods may be called from several threads. Concurrent writes to different elements of one chunk are all kept.
    Concurrent writes to the same elements leave one of the values in each chunk. The same holds for processes that
    write to a local directory; in other stores they need a ``ProcessSynchronizer``.

    ``close``, or leaving a ``with`` block, closes the store if it was opened for this array; a store that the caller
    passed stays open.

    Methods that read raise ChunkDecodeError if a chunk cannot be decoded, MissingChunkError if a chunk is missing and
    ``ReadWriteOptions.fill_missing`` is False, SelectionError if the selection does not fit the shape, and StoreError.
    Methods that write raise ReadOnlyError if the array is open read-only, DataError or DataShapeError if the values
    do not fit the data type or the selection, ChunkEncodeError, and StoreError.
    """

    # -- metadata ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension. Setting it resizes the array."""
        return self._current_storage.spec.shape

    @shape.setter
    def shape(self, lengths: int | tuple[int, ...]) -> None:
        self.resize(lengths)

    @property
    def info(self) -> Info:
        """A summary of the metadata: a dictionary that is displayed as a table. Does not access chunks."""
        self._recheck()
        return Info(array_summary(self))

    def nbytes_stored(self) -> int:
        """Return the stored size of the array in bytes, metadata included. Lists the keys of the array."""
        return self.usage().nbytes

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self._spec.shape)) or "scalar"
        return f"<zarrfs.Array {self.name} ({shape}) {self.dtype} in {self._store.url}>"

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Array):
            return NotImplemented
        return (self._store, self._path, self._spec.document) == (
            other._store,
            other._path,
            other._spec.document,
        )

    def __hash__(self) -> int:
        return hash((self._store, self._path))

    # -- views and checksums -----------------------------------------------------------------------------------

    def astype(self, dtype: Any) -> ArrayView:
        """Return a read-only view of the array that casts values to ``dtype`` when they are read."""
        return ArrayView(self, np.dtype(dtype), cast=True)

    def field(self, fields: str | list[str]) -> ArrayView:
        """Return a view of one field of the records, or of several as records. Assigning to it writes to the array.

        Raises SelectionError if there is no such field, or if the field contains an array in each element.
        """
        return ArrayView(self, field_dtype(self.dtype, fields, self._storage.where), fields)

    def digest(self, hashname: str = "sha1") -> bytes:
        """Return a checksum of the encoded chunks and metadata documents, as in zarr-python 2.

        Arrays with equal values but different codecs have different checksums. ``hashname`` is passed to
        ``hashlib.new``; an unknown one raises UnsupportedError. Reads all chunks.
        """
        return stored_digest(self._storage, self._document_keys(), hashname)

    def hexdigest(self, hashname: str = "sha1") -> str:
        """Return ``digest`` in hexadecimal."""
        return self.digest(hashname).hex()

    # -- bytes -------------------------------------------------------------------------------------------------

    def read_bytes(self, offset: int, size: int, order: FlatOrder = "C") -> Buffer:
        """Return up to ``size`` bytes from byte ``offset`` of the array's elements as one stream.

        The stream contains all elements in C order (the last dimension varies fastest), in F order, or in the order of
        the dimensions that ``order`` lists from the slowest to the fastest one. Each element has the byte order of
        ``dtype``. The stream is ``nbytes`` long; a range is clipped at its end. Returns a new buffer that the caller
        owns. Raises SelectionError for variable-length elements, and for a negative offset or size.
        """
        self._recheck()
        out = np.empty(check_flat(self._storage, offset, size, order), np.uint8)
        read_flat(self._storage, offset, out, order)
        return out.data

    def read_bytes_into(
        self, offset: int, buffer: Any, order: FlatOrder = "C", *, keep_chunks: bool = True
    ) -> int:
        """Read ``len(buffer)`` bytes from byte ``offset`` of the stream that ``read_bytes`` describes into ``buffer``.

        With ``keep_chunks=False`` decoded chunks do not enter the cache, for callers that cache the bytes themselves.
        Returns the number of bytes read, which is smaller than the buffer at the end of the stream. Raises
        SelectionError if the buffer is not writable and contiguous, and as ``read_bytes``.
        """
        self._recheck()
        view = writable_memory(buffer)
        count = check_flat(self._storage, offset, len(view), order)
        read_flat(self._storage, offset, view[:count], order, keep_chunks=keep_chunks)
        return count

    def write_bytes(self, offset: int, data: Any, order: FlatOrder = "C") -> int:
        """Write ``data``, contiguous memory, from byte ``offset`` of the stream that ``read_bytes`` describes.

        The range need not begin or end at an element: the other bytes of such an element are retained. Returns the
        number of bytes written, which is smaller than the data at the end of the stream. Chunks are replaced one after
        the other, each atomically. Raises SelectionError if the data are not contiguous memory, and as ``read_bytes``;
        ReadOnlyError, ChunkEncodeError, ChunkDecodeError for the old data of a chunk that is not replaced completely,
        and StoreError.
        """
        self._check_writable("writing data")
        self._recheck()
        view = readable_memory(data)
        count = check_flat(self._storage, offset, len(view), order)
        if count:
            write_flat(self._storage, offset, view[:count], order, self.write_empty_chunks)
        return count

    # -- changes of the shape ----------------------------------------------------------------------------------

    def resize(
        self,
        *shape: int | tuple[int, ...],
        new_shape: int | tuple[int, ...] | None = None,
        delete: bool = True,
    ) -> None:
        """Change the shape. The number of dimensions does not change. ``new_shape`` is zarr-python's name of the shape.

        Elements outside the new shape are removed: chunks that are entirely outside are deleted, and the elements of
        the other chunks that are outside are set to the fill value. With ``delete=False`` all are retained, and
        reappear if the array grows again.

        The metadata are locked during the change: against other threads of this process, and against processes that
        use the same local directory or share a ``ProcessSynchronizer``. Raises SelectionError for an invalid shape,
        ReadOnlyError, ChunkEncodeError if chunks have to be changed that cannot be encoded, and StoreError; and after
        the change of the shape, ChunkDecodeError if such a chunk cannot be decoded.
        """
        self._check_writable("resizing")
        given = shape if new_shape is None else (*shape, new_shape)
        new = resizing.checked_shape(given, self.ndim, self._storage.where)
        keys = self._document_keys()
        with self._locked_metadata("resizing", *keys):
            self.refresh()
            self._resize(new, delete)

    def _resize(self, lengths: tuple[int, ...], delete: bool) -> ArrayContext:
        """Change the shape and return the new storage. The caller holds the locks of all documents of the array."""
        with self._spec_lock:
            spec = formats.resized(self._spec, lengths)
            remainder = resizing.Remainder.find(self._storage, spec) if delete else None
            self._set_spec(formats.write_node(self._store, self._path, spec))
            warn_of_change(self._store, self._path, self.zarr_format)
            storage = self._storage
        if remainder is not None:
            remainder.remove(storage, self.write_empty_chunks)
        return storage

    def append(self, data: Any, axis: int = 0) -> tuple[int, ...]:
        """Extend the array along ``axis`` by the length of ``data``, write the data there, and return the new shape.

        The other dimensions of ``data`` must be those of the array. A negative ``axis`` counts from the last dimension.
        Concurrent appends are serialized, so that each block is written completely and none is overwritten: among
        threads of one process, and among processes that use the same local directory or share a
        ``ProcessSynchronizer``.

        Raises SelectionError for an invalid axis, DataShapeError for data of another shape, and DataError.
        """
        self._check_writable("appending")
        axis = resizing.checked_axis(axis, self.ndim, self._storage.where)
        if is_masked_array(data):
            as_values(
                data, self._spec.data_type, data.shape, self._storage.where
            )  # refused before the resizing
        values = data if isinstance(data, np.ndarray) else self._converted(data)
        first, *rest = self._document_keys()
        with self._locked_metadata("appending", first):
            with self._locked_metadata("appending", *rest):
                self.refresh()
                old_shape = self._spec.shape
                new_shape = resizing.appended_shape(old_shape, values.shape, axis, self._storage.where)
                storage = self._resize(new_shape, delete=False)
            # Use the storage that belongs to this append: once the other documents are unlocked, another thread may
            # refresh or resize this object.
            region = tuple(
                slice(old_shape[axis], None) if i == axis else slice(None) for i in range(self.ndim)
            )
            self._write(storage, basic_selection(region, new_shape), values)
        return new_shape

    def _converted(self, data: Any) -> np.ndarray[Any, Any]:
        """Convert data that are not a NumPy array to a NumPy array of the array's dtype. Raises DataError if a value
        does not fit it.
        """
        if self.dtype.hasobject:
            return np.asarray(data, object)
        return converted(data, self._spec.data_type, self._storage.where)
