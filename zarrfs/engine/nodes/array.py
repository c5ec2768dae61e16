"""The public ``Array`` class: metadata, indexing, reading and writing.

The class has the methods and their documentation; the work is done elsewhere. Properties that follow from the metadata
are in ``array_properties.py``, casting and field views in ``array_view.py``, checks of new shapes in ``resizing.py``,
index expressions in ``indexing/``, and reading and writing in ``io/``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.indexing.fields import check_fields, pop_fields
from zarrfs.engine.indexing.flat_ranges import FlatOrder
from zarrfs.engine.indexing.normalized import CoordinateSelection, OrthogonalSelection
from zarrfs.engine.indexing.selections import (
    basic_selection,
    block_selection,
    coordinate_selection,
    fancy_selection,
    mask_selection,
    orthogonal_selection,
    vectorized_selection,
)
from zarrfs.engine.io.access import Access
from zarrfs.engine.io.flat_reading import check_flat, read_flat
from zarrfs.engine.io.patching import write_flat
from zarrfs.engine.io.reading import read_out, read_selection
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.io.writing import write_selection
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes import resizing
from zarrfs.engine.nodes.array_properties import ArrayProperties
from zarrfs.engine.nodes.array_view import ArrayView, field_dtype
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change
from zarrfs.engine.nodes.digest import stored_digest
from zarrfs.engine.nodes.node import StoredNode, difference
from zarrfs.engine.nodes.summary import Info, array_summary
from zarrfs.engine.stores.base import Buffer, Store
from zarrfs.engine.values import as_values, assign_fields, converted, readable_memory, writable_memory
from zarrfs.errors import SelectionError

__all__ = ["Array"]

Selector = Callable[[Any, tuple[int, ...]], OrthogonalSelection | CoordinateSelection]

Out = np.ndarray[Any, Any] | None


class Array(StoredNode[ArraySpec], ArrayProperties):
    """An N-dimensional chunked array in a store. Returned by ``zarrfs.open_array`` and ``zarrfs.create_array``.

    Indexing reads the selected elements into a new NumPy array. Assignment writes to the store before it returns.

    Methods may be called from several threads. Concurrent writes to different elements of one chunk are all kept.
    Concurrent writes to the same elements leave one of the values in each chunk. Writes from several processes to one
    chunk need a ``ProcessSynchronizer``.

    ``close``, or leaving a ``with`` block, closes the store if it was opened for this array; a store that the caller
    passed stays open.

    Methods that read raise ChunkDecodeError if a chunk cannot be decoded, MissingChunkError if a chunk is missing and
    ``Access.fill_missing`` is False, SelectionError if the selection does not fit the shape, and StoreError. Methods
    that write raise ReadOnlyError if the array is open read-only, DataError or DataShapeError if the values do not fit
    the data type or the selection, ChunkEncodeError, and StoreError.
    """

    spec_type: ClassVar[type] = ArraySpec

    write_empty_chunks: bool = False
    """Whether chunks that contain only the fill value are stored. May be set."""

    def __init__(
        self,
        store: Store,
        path: str,
        spec: ArraySpec,
        cache: ChunkCache,
        read_only: bool,
        access: Access | None = None,
    ) -> None:
        super().__init__(store, path, spec, cache, read_only, access)
        self.write_empty_chunks = self._access.write_empty_chunks

    def _set_spec(self, spec: ArraySpec) -> None:
        old = getattr(self, "_spec", None)
        super()._set_spec(spec)
        same_chunks = old is not None and (old.shape, old.chunk_grid) == (spec.shape, spec.chunk_grid)
        if same_chunks and old is not None and difference(old, spec) is None:
            # Only attributes have changed: cached chunks are still valid.
            return
        self._storage = ArrayStorage(
            self._store, self._path, formats.chunk_prefix(spec, self._path), spec, self._cache, self._access
        )

    def _set_store(self, store: Store) -> None:
        super()._set_store(store)
        self._storage.store = store

    # -- metadata ----------------------------------------------------------------------------------------------

    @property
    def storage(self) -> ArrayStorage:
        """The keys, the chunk grid and the codecs, for tools that access single chunks."""
        return self._storage

    @property
    def _current_storage(self) -> ArrayStorage:
        """The storage by the current metadata, which are read again if ``Access.recheck_metadata`` requires it."""
        self._recheck()
        return self._storage

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

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("an array without dimensions has no len()")
        return shape[0]

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

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the token that identifies the array to Dask. It changes if the metadata change."""
        return type(self).__name__, self._store.url, self._path, repr(self._spec.document)

    # -- reading -----------------------------------------------------------------------------------------------

    def __getitem__(self, selection: Any) -> Any:
        """Read a selection, by the indexing rules of NumPy.

        ``selection`` consists of integers, slices, Ellipsis, index arrays or one mask, and field names of records.
        Returns a new NumPy array, or a scalar if integers select one element.
        """
        return self._get(fancy_selection, selection)

    def get_basic_selection(self, selection: Any = Ellipsis, *, out: Out = None, fields: Any = None) -> Any:
        """Read a selection of integers, slices of any step and Ellipsis.

        Args:
            selection: one entry per dimension; missing ones select everything.
            out: a NumPy array of the shape of the result, which is filled and returned. Values are cast to its dtype.
                The data are decoded directly into it if it has the dtype of the array.
            fields: a field name, or a list of them, of an array of records. None: all fields.
        """
        return self._get(basic_selection, selection, fields, out)

    def get_orthogonal_selection(self, selection: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read the outer product of one selection per dimension: an integer, a slice, an index array or a boolean
        array. ``out`` and ``fields`` as in ``get_basic_selection``.
        """
        return self._get(orthogonal_selection, selection, fields, out)

    def get_coordinate_selection(self, selection: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read single elements. ``selection`` has an index array for each dimension; they are broadcast to the shape of
        the result. ``out`` and ``fields`` as in ``get_basic_selection``.
        """
        return self._get(coordinate_selection, selection, fields, out)

    def get_mask_selection(self, mask: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read the elements where ``mask``, a boolean array of the array's shape, is true, in C order, into a
        one-dimensional array. ``out`` and ``fields`` as in ``get_basic_selection``.
        """
        return self._get(mask_selection, mask, fields, out)

    def get_block_selection(self, selection: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read whole chunks (whole shards, if the array is sharded). ``selection`` consists of integers and slices in
        the chunk grid. ``out`` and ``fields`` as in ``get_basic_selection``.
        """
        return self._get(self._select_blocks, selection, fields, out)

    def _get(self, selector: Selector, selection: Any, fields: Any = None, out: Out = None) -> Any:
        self._recheck()
        popped, rest = pop_fields(selection, self.dtype)
        if fields is not None:
            popped = check_fields(list(fields) if isinstance(fields, tuple) else fields, self.dtype)
        resolved = selector(rest, self._spec.shape)
        if out is not None:
            return read_out(self._storage, resolved, out, popped)
        result = self._read(resolved)
        if popped is not None:
            result = result[popped]
        return result[()] if result.ndim == 0 else result

    def _read(self, selection: OrthogonalSelection | CoordinateSelection) -> np.ndarray[Any, Any]:
        buffer = read_selection(self._storage, selection)
        if isinstance(selection, OrthogonalSelection):
            return selection.result(buffer)
        return buffer.reshape(selection.shape)

    def _select_blocks(self, selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection:
        return block_selection(selection, shape, self._storage.axes, self._storage.grid_shape)

    @property
    def oindex(self) -> _Indexer:
        """Orthogonal indexing: ``array.oindex[[0, 2], :, mask]``."""
        return _Indexer(self, orthogonal_selection)

    @property
    def vindex(self) -> _Indexer:
        """Vectorized indexing by coordinates, ``array.vindex[[0, 2], [1, 3]]``, or by a mask of the array's shape."""
        return _Indexer(self, vectorized_selection)

    @property
    def blocks(self) -> _Indexer:
        """Indexing of the chunk grid: ``array.blocks[0, 1:3]`` selects whole chunks (shards)."""
        return _Indexer(self, self._select_blocks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array in a store cannot be converted to a NumPy array without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension. Each chunk is decoded once; one row of chunks is in memory at a time."""
        return self.islice()

    def islice(self, start: int | None = None, end: int | None = None) -> Iterator[Any]:
        """Iterate over the indices ``start <= i < end`` of the first dimension.

        Each chunk is decoded once; one row of chunks is in memory at a time. Raises SelectionError for a bound that is
        not a non-negative integer or None, TypeError for an array without dimensions.
        """
        shape = self.shape
        if not shape:
            raise TypeError("an array without dimensions cannot be iterated over")
        for name, value in (("start", start), ("end", end)):
            if value is not None and (not isinstance(value, int | np.integer) or value < 0):
                raise SelectionError(f"{name} must be an integer of at least 0, or None; found {value!r}")
        return self._islice(start or 0, shape[0] if end is None else min(end, shape[0]))

    def _islice(self, start: int, end: int) -> Iterator[Any]:
        axis = self._storage.axes[0]
        while start < end:
            chunk = axis.find(start)
            stop = min(axis.begin(chunk) + axis.size(chunk), end)
            yield from self[start:stop]
            start = stop

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

    # -- writing -----------------------------------------------------------------------------------------------

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

    def __setitem__(self, selection: Any, value: Any) -> None:
        """Write to a selection, by the indexing rules of NumPy. ``value`` is broadcast to the selection's shape.

        Raises DataShapeError or DataError before anything is written if the value does not fit.
        """
        self._set(fancy_selection, selection, value)

    def set_basic_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write to a selection of integers, slices of any step and Ellipsis; see ``get_basic_selection``.

        ``value`` is broadcast to the shape of the selection. With ``fields`` only these fields of the records are
        changed.
        """
        self._set(basic_selection, selection, value, fields)

    def set_orthogonal_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write to the outer product of one selection per dimension; see ``get_orthogonal_selection``."""
        self._set(orthogonal_selection, selection, value, fields)

    def set_coordinate_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write single elements; see ``get_coordinate_selection``."""
        self._set(coordinate_selection, selection, value, fields)

    def set_mask_selection(self, mask: Any, value: Any, *, fields: Any = None) -> None:
        """Write the elements where a mask is true; see ``get_mask_selection``."""
        self._set(mask_selection, mask, value, fields)

    def set_block_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write whole chunks (shards); see ``get_block_selection``."""
        self._set(self._select_blocks, selection, value, fields)

    def _set(self, selector: Selector, selection: Any, value: Any, fields: Any = None) -> None:
        self._check_writable("writing data")
        self._recheck()
        popped, rest = pop_fields(selection, self.dtype)
        if fields is not None:
            popped = check_fields(list(fields) if isinstance(fields, tuple) else fields, self.dtype)
        resolved = selector(rest, self._spec.shape)
        if popped is not None:
            value = assign_fields(np.array(self._read(resolved)), popped, value, self._storage.where)
        self._write(self._storage, resolved, value)

    def _write(
        self, storage: ArrayStorage, selection: OrthogonalSelection | CoordinateSelection, value: Any
    ) -> None:
        shape = selection.result_shape if isinstance(selection, OrthogonalSelection) else selection.shape
        values = as_values(value, storage.spec.data_type, shape, storage.where)
        self._write_values(storage, selection, values)

    def _write_values(
        self, storage: ArrayStorage, selection: OrthogonalSelection | CoordinateSelection, values: Any
    ) -> None:
        """Write values that have the dtype of the array and the shape of the selection."""
        buffer = (
            selection.to_buffer(values) if isinstance(selection, OrthogonalSelection) else values.reshape(-1)
        )
        write_selection(storage, selection, buffer, self.write_empty_chunks)

    def _write_all(self, values: np.ndarray[Any, Any]) -> None:
        """Write values that have the dtype and the shape of the array."""
        self._write_values(self._storage, basic_selection(Ellipsis, values.shape), values)

    def resize(
        self,
        *shape: int | tuple[int, ...],
        new_shape: int | tuple[int, ...] | None = None,
        delete: bool = True,
    ) -> None:
        """Change the shape. The number of dimensions does not change. ``new_shape`` is zarr-python's name of the shape.

        Chunks that are entirely outside the new shape are deleted. With ``delete=False`` they are retained, and their
        values reappear if the array grows again. Elements outside the new shape in the remaining chunks are always
        retained.

        The metadata are locked during the change: against other threads of this process, and against processes that
        share a ``ProcessSynchronizer``. Raises SelectionError for an invalid shape, ReadOnlyError and StoreError.
        """
        self._check_writable("resizing")
        given = shape if new_shape is None else (*shape, new_shape)
        new = resizing.checked_shape(given, self.ndim, self._storage.where)
        keys = self._document_keys()
        with self._locked_metadata("resizing", *keys):
            self.refresh()
            self._resize(new, delete)

    def _resize(self, lengths: tuple[int, ...], delete: bool) -> ArrayStorage:
        """Change the shape and return the new storage. The caller holds the locks of all documents of the array."""
        with self._spec_lock:
            old, before = self._storage, self._spec.shape
            shrinks = any(a < b for a, b in zip(lengths, before, strict=True))
            stored = list(old.stored_chunks()) if delete and shrinks else []
            spec = formats.resized(self._spec, lengths)
            self._set_spec(formats.write_node(self._store, self._path, spec))
            warn_of_change(self._store, self._path, self.zarr_format)
            storage = self._storage
        resizing.delete_outside(old, stored, storage.grid_shape)
        return storage

    def append(self, data: Any, axis: int = 0) -> tuple[int, ...]:
        """Extend the array along ``axis`` by the length of ``data``, write the data there, and return the new shape.

        The other dimensions of ``data`` must be those of the array. A negative ``axis`` counts from the last dimension.
        Concurrent appends are serialized, so that each block is written completely and none is overwritten: among
        threads of one process, and among processes that share a ``ProcessSynchronizer``.

        Raises SelectionError for an invalid axis, DataShapeError for data of another shape, and DataError.
        """
        self._check_writable("appending")
        axis = resizing.checked_axis(axis, self.ndim, self._storage.where)
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
        """Return data that are not a NumPy array as one of the array's dtype. Raises DataError if a value does not fit
        it.
        """
        if self.dtype.hasobject:
            return np.asarray(data, object)
        return converted(data, self._spec.data_type, self._storage.where)


class _Indexer:
    """Applies an index expression by one kind of indexing. Returned by ``oindex``, ``vindex`` and ``blocks``."""

    def __init__(self, array: Array, selector: Selector) -> None:
        self._array = array
        self._selector = selector

    def __getitem__(self, selection: Any) -> Any:
        return self._array._get(self._selector, selection)

    def __setitem__(self, selection: Any, value: Any) -> None:
        self._array._set(self._selector, selection, value)
