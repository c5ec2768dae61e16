"""The public array node: what it is, and indexing, reading and writing it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.indexing.selections import (
    CoordinateSelection,
    OrthogonalSelection,
    basic_selection,
    block_selection,
    check_fields,
    coordinate_selection,
    fancy_selection,
    mask_selection,
    orthogonal_selection,
    pop_fields,
    vectorised_selection,
)
from zarrfs.engine.io.access import Access
from zarrfs.engine.io.reading import check_flat, read_flat, read_out, read_selection
from zarrfs.engine.io.storage import ArrayStorage
from zarrfs.engine.io.writing import write_selection
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.nodes.array_properties import ArrayProperties
from zarrfs.engine.nodes.array_view import ArrayView, field_dtype
from zarrfs.engine.nodes.consolidation_warnings import warn_of_change
from zarrfs.engine.nodes.digest import stored_digest
from zarrfs.engine.nodes.node import StoredNode, difference
from zarrfs.engine.nodes.summary import Info, array_summary
from zarrfs.engine.stores.base import Buffer, Store
from zarrfs.engine.values import as_values, converted, with_fields
from zarrfs.errors import DataShapeError, SelectionError

__all__ = ["Array"]

Selector = Callable[[Any, tuple[int, ...]], OrthogonalSelection | CoordinateSelection]

Out = np.ndarray[Any, Any] | None


class Array(StoredNode[ArraySpec], ArrayProperties):
    """An N-dimensional array of chunks in a store. Made by ``zarrfs.open_array`` and ``zarrfs.create_array``.

    Indexing reads into new NumPy arrays and assignment writes to the store at once. Safe to use from several
    threads. ``close``, or a ``with`` block, releases the store that was opened for it.
    """

    spec_type: ClassVar[type] = ArraySpec

    write_empty_chunks: bool = False
    """Whether chunks that hold nothing but the fill value are stored. May be set."""

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
            # Only attributes have changed: what is kept of the chunks still holds.
            return
        self._storage = ArrayStorage(
            self._store, self._path, formats.chunk_prefix(spec, self._path), spec, self._cache, self._access
        )

    def _set_store(self, store: Store) -> None:
        super()._set_store(store)
        self._storage.store = store

    # -- what it is --------------------------------------------------------------------------------------------

    @property
    def storage(self) -> ArrayStorage:
        """Where the chunks are: keys, grid, codecs. For tools that look at chunks."""
        return self._storage

    @property
    def _current(self) -> ArrayStorage:
        """The layout by the metadata as they are now, as far as ``Access.recheck_metadata`` asks for that."""
        self._recheck()
        return self._storage

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension. Setting it resizes the array."""
        return self._current.spec.shape

    @shape.setter
    def shape(self, lengths: int | tuple[int, ...]) -> None:
        self.resize(lengths)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self._spec.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that reading gives; object for elements of varying length."""
        return self._storage.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        """The bytes of one element in memory."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements in memory (of the references alone, for elements of varying length)."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """The shape of what is decoded as one piece: a chunk, or an inner chunk of a shard. Where chunks differ in
        shape, the lengths in each dimension.
        """
        layout = self._current
        sharding = layout.sharding()
        if sharding is not None:
            return sharding[1]
        if layout.chunk_shape is not None:
            return layout.chunk_shape
        return tuple(
            tuple(axis.size(i) for i in range(n))
            for axis, n in zip(layout.axes, layout.grid_shape, strict=True)
        )

    @property
    def shards(self) -> tuple[int, ...] | None:
        """The shape of a shard, or None where chunks are stored on their own."""
        return self._storage.chunk_shape if self._storage.sharding() is not None else None

    @property
    def fill_value(self) -> Any:
        """The value of elements that were never written; None where the metadata leaves it undefined."""
        return self._spec.fill_value

    @property
    def order(self) -> Literal["C", "F"]:
        """The memory order of elements within chunks."""
        return self._spec.order

    @property
    def dimension_names(self) -> tuple[str | None, ...] | None:
        """The names of the dimensions, None where they have none."""
        return self._current.spec.dimension_names

    @property
    def dimension_units(self) -> tuple[str | None, ...] | None:
        """The unit of each dimension, such as ``"4 nm"``, None where it has none."""
        return self._current.spec.dimension_units

    @property
    def info(self) -> Info:
        """What the metadata say, as a dictionary that shows itself as a table. Costs nothing."""
        self._recheck()
        return Info(array_summary(self))

    def nbytes_stored(self) -> int:
        """Return the bytes of all that is stored of the array, metadata included. Costs a listing."""
        return self.usage().nbytes

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self._spec.shape)) or "scalar"
        return f"<zarrfs.Array {self.name} ({shape}) {self.dtype} in {self._store.url}>"

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of an array without dimensions")
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
        """Return what names the array to Dask: the same for the same place, another once its metadata change."""
        return type(self).__name__, self._store.url, self._path, repr(self._spec.document)

    # -- reading -----------------------------------------------------------------------------------------------

    def __getitem__(self, selection: Any) -> Any:
        """Read what NumPy's brackets would give: integers, slices, Ellipsis, a mask, arrays of indices, fields."""
        return self._get(fancy_selection, selection)

    def get_basic_selection(self, selection: Any = Ellipsis, *, out: Out = None, fields: Any = None) -> Any:
        """Read integers, slices of any step, Ellipsis; into ``out``, a NumPy array, if it is given."""
        return self._get(basic_selection, selection, fields, out)

    def get_orthogonal_selection(self, selection: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read the product of one selection per dimension (integers, slices, arrays of indices, boolean arrays)."""
        return self._get(orthogonal_selection, selection, fields, out)

    def get_coordinate_selection(self, selection: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read single elements, given an array of indices for every dimension."""
        return self._get(coordinate_selection, selection, fields, out)

    def get_mask_selection(self, mask: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read the elements where a boolean array of the array's shape is true."""
        return self._get(mask_selection, mask, fields, out)

    def get_block_selection(self, selection: Any, *, out: Out = None, fields: Any = None) -> Any:
        """Read whole chunks (shards) by their position in the grid."""
        return self._get(self._select_blocks, selection, fields, out)

    def _get(self, selector: Selector, selection: Any, fields: Any = None, out: Out = None) -> Any:
        self._recheck()
        popped, rest = pop_fields(selection, self.dtype)
        if fields is not None:
            popped = check_fields(list(fields) if isinstance(fields, tuple) else fields, self.dtype)
        plain = selector(rest, self._spec.shape)
        if out is not None:
            return read_out(self._storage, plain, out, popped)
        result = self._read(plain)
        if popped is not None:
            result = result[popped]
        return result[()] if result.ndim == 0 else result

    def _read(self, plain: OrthogonalSelection | CoordinateSelection) -> np.ndarray[Any, Any]:
        laid = read_selection(self._storage, plain)
        return plain.result(laid) if isinstance(plain, OrthogonalSelection) else laid.reshape(plain.shape)

    def _select_blocks(self, selection: Any, shape: tuple[int, ...]) -> OrthogonalSelection:
        grid = self._storage.grid_shape
        edges = [
            _Edges(axis.begin, axis.length, count)
            for axis, count in zip(self._storage.axes, grid, strict=True)
        ]
        return block_selection(selection, shape, edges)

    @property
    def oindex(self) -> _Indexer:
        """Orthogonal indexing: ``array.oindex[[0, 2], :, mask]``."""
        return _Indexer(self, orthogonal_selection)

    @property
    def vindex(self) -> _Indexer:
        """Indexing by points: ``array.vindex[[0, 2], [1, 3]]``, or by a mask."""
        return _Indexer(self, vectorised_selection)

    @property
    def blocks(self) -> _Indexer:
        """Indexing by chunks: ``array.blocks[0, 1:3]``."""
        return _Indexer(self, self._select_blocks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the first dimension; each chunk is decoded once."""
        return self.islice()

    def islice(self, start: int | None = None, end: int | None = None) -> Iterator[Any]:
        """Iterate over the first dimension from ``start`` to before ``end``; each chunk is decoded once."""
        shape = self.shape
        if not shape:
            raise TypeError("iteration over an array without dimensions")
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
        """Return a read-only view that casts what is read; nothing is copied."""
        return ArrayView(self, np.dtype(dtype), cast=True)

    def field(self, fields: str | list[str]) -> ArrayView:
        """Return a view of one field of records, or of records of several; nothing is copied. Can be assigned to."""
        return ArrayView(self, field_dtype(self.dtype, fields, self._storage.where), fields)

    def digest(self, hashname: str = "sha1") -> bytes:
        """Return a checksum of all that is stored of the array, in the meaning of zarr-python 2: of the bytes of its
        chunks and documents, not of values. ``hashname`` as for ``hashlib.new``.
        """
        return stored_digest(self._storage, self._document_keys(), hashname)

    def hexdigest(self, hashname: str = "sha1") -> str:
        """Return ``digest`` in hexadecimal."""
        return self.digest(hashname).hex()

    def read_bytes(self, offset: int, size: int, order: Literal["C", "F"] = "C") -> Buffer:
        """Return up to ``size`` bytes from ``offset`` of the array as one stream of its elements.

        The stream has all elements in C order (the last dimension varies fastest) or F order, each in the bytes
        that ``dtype`` says; it is ``nbytes`` long, and a range past its end is clipped. Raises SelectionError for
        elements of varying length.
        """
        self._recheck()
        out = np.empty(check_flat(self._storage, offset, size, order), np.uint8)
        read_flat(self._storage, offset, out, order)
        return out.data

    def read_bytes_into(
        self, offset: int, buffer: Any, order: Literal["C", "F"] = "C", *, keep_chunks: bool = True
    ) -> int:
        """Fill a writable contiguous buffer as ``read_bytes`` does. Return the number of bytes.

        With ``keep_chunks=False`` decoded chunks do not enter the cache, for callers that cache the bytes themselves.
        """
        self._recheck()
        try:
            view = np.frombuffer(buffer, np.uint8)
        except (TypeError, ValueError, AttributeError, BufferError) as error:
            raise SelectionError(
                f"buffer must be writable contiguous memory, found {type(buffer).__name__}"
            ) from error
        if not view.flags.writeable:
            raise SelectionError(
                f"buffer must be writable, found {type(buffer).__name__}, which is read-only"
            )
        count = check_flat(self._storage, offset, len(view), order)
        read_flat(self._storage, offset, view[:count], order, keep_chunks=keep_chunks)
        return count

    # -- writing -----------------------------------------------------------------------------------------------

    def __setitem__(self, selection: Any, value: Any) -> None:
        self._set(fancy_selection, selection, value)

    def set_basic_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write to integers, slices of any step, Ellipsis."""
        self._set(basic_selection, selection, value, fields)

    def set_orthogonal_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write to the product of one selection per dimension."""
        self._set(orthogonal_selection, selection, value, fields)

    def set_coordinate_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write single elements, given an array of indices for every dimension."""
        self._set(coordinate_selection, selection, value, fields)

    def set_mask_selection(self, mask: Any, value: Any, *, fields: Any = None) -> None:
        """Write the elements where a boolean array of the array's shape is true."""
        self._set(mask_selection, mask, value, fields)

    def set_block_selection(self, selection: Any, value: Any, *, fields: Any = None) -> None:
        """Write whole chunks (shards) by their position in the grid."""
        self._set(self._select_blocks, selection, value, fields)

    def _set(self, selector: Selector, selection: Any, value: Any, fields: Any = None) -> None:
        self._check_writable("writing data")
        self._recheck()
        popped, rest = pop_fields(selection, self.dtype)
        if fields is not None:
            popped = check_fields(list(fields) if isinstance(fields, tuple) else fields, self.dtype)
        plain = selector(rest, self._spec.shape)
        if popped is not None:
            value = with_fields(np.array(self._read(plain)), popped, value, self._storage.where)
        self._write(self._storage, plain, value)

    def _write(
        self, layout: ArrayStorage, plain: OrthogonalSelection | CoordinateSelection, value: Any
    ) -> None:
        shape = plain.result_shape if isinstance(plain, OrthogonalSelection) else plain.shape
        self._put(layout, plain, as_values(value, layout.spec.data_type, shape, layout.where))

    def _put(
        self, layout: ArrayStorage, plain: OrthogonalSelection | CoordinateSelection, values: Any
    ) -> None:
        """Write values that have the dtype of the array and the shape of the selection."""
        laid = plain.to_buffer(values) if isinstance(plain, OrthogonalSelection) else values.reshape(-1)
        write_selection(layout, plain, laid, self.write_empty_chunks)

    def _write_all(self, values: np.ndarray[Any, Any]) -> None:
        """Write values that have the dtype and the shape of the array."""
        self._put(self._storage, basic_selection(Ellipsis, values.shape), values)

    def resize(self, *shape: int | tuple[int, ...], delete: bool = True) -> None:
        """Change the shape; the rank stays. Chunks that no longer lie in the array are deleted, or with
        ``delete=False`` kept, to show again should the array grow. What of a kept chunk overhangs stays as it is.

        Threads of one process take turns at it, and processes that share a ``ProcessSynchronizer``.
        """
        self._check_writable("resizing")
        new = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else tuple(shape)
        if len(new) != self.ndim or not all(isinstance(n, int | np.integer) and n >= 0 for n in new):
            raise SelectionError(
                f"{self._storage.where}: {new} is no shape for an array of {self.ndim} dimensions; expected as many "
                "integers of at least 0"
            )
        keys = self._document_keys()
        with self._locked_metadata("resizing", *keys):
            self.refresh()
            self._resize(tuple(int(n) for n in new), delete)  # type: ignore[arg-type]

    def _resize(self, lengths: tuple[int, ...], delete: bool) -> ArrayStorage:
        """Change the shape, in a turn at all documents of the array; return the new layout."""
        with self._spec_lock:
            old, before = self._storage, self._spec.shape
            shrinks = any(a < b for a, b in zip(lengths, before, strict=True))
            stored = list(old.stored_chunks()) if delete and shrinks else []
            spec = formats.resized(self._spec, lengths)
            self._set_spec(formats.write_node(self._store, self._path, spec))
            warn_of_change(self._store, self._path, self.zarr_format)
            layout = self._storage
        grid = layout.grid_shape
        for coords in stored:
            if any(c >= n for c, n in zip(coords, grid, strict=True)):
                self._store.delete(old.key(coords))
        return layout

    def append(self, data: Any, axis: int = 0) -> tuple[int, ...]:
        """Make the array longer in one dimension by the data and write them there; return the new shape. A negative
        ``axis`` counts from the last dimension.

        Several who append at once lose nothing: each block lands whole after another, if they are threads of one
        process, or processes that share a ``ProcessSynchronizer``.
        """
        self._check_writable("appending")
        if not self.ndim:
            raise SelectionError(
                f"{self._storage.where}: nothing can be appended to an array without dimensions"
            )
        if not isinstance(axis, int | np.integer) or not -self.ndim <= axis < self.ndim:
            raise SelectionError(
                f"{self._storage.where}: axis {axis!r} is no dimension of an array of {self.ndim} dimensions; expected "
                f"an integer from {-self.ndim} to {self.ndim - 1}"
            )
        axis = int(axis) % self.ndim
        values = data if isinstance(data, np.ndarray) else self._converted(data)
        first, *rest = self._document_keys()
        with self._locked_metadata("appending", first):
            with self._locked_metadata("appending", *rest):
                self.refresh()
                others = [n for i, n in enumerate(self._spec.shape) if i != axis]
                if values.ndim != self.ndim or [n for i, n in enumerate(values.shape) if i != axis] != others:
                    raise DataShapeError(
                        f"{self._storage.where}: data of shape {values.shape} cannot be appended to {self._spec.shape} "
                        f"in dimension {axis}; the other dimensions must be the same"
                    )
                before = self._spec.shape[axis]
                after = tuple(
                    n + values.shape[axis] if i == axis else n for i, n in enumerate(self._spec.shape)
                )
                layout = self._resize(after, delete=False)
            # By the layout of this turn: the object may meanwhile be refreshed, or resized by who waits for the next.
            place = tuple(slice(before, None) if i == axis else slice(None) for i in range(len(after)))
            self._write(layout, basic_selection(place, after), values)
        return after

    def _converted(self, data: Any) -> np.ndarray[Any, Any]:
        """Return data that are no NumPy array with the dtype of the array; raise where a value does not fit it."""
        if self.dtype.hasobject:
            return np.asarray(data, object)
        return converted(data, self._spec.data_type, self._storage.where)


class _Edges:
    """The first index of each chunk in a dimension, worked out when asked for: there may be 10^9 of them."""

    def __init__(self, begin: Callable[[int], int], length: int, count: int) -> None:
        self._begin = begin
        self._length = length
        self._count = count

    def __len__(self) -> int:
        return self._count + 1

    def __getitem__(self, chunk: int) -> int:
        return self._length if chunk >= self._count else self._begin(chunk)


class _Indexer:
    """Brackets with other rules: what ``oindex``, ``vindex`` and ``blocks`` return."""

    def __init__(self, array: Array, selector: Selector) -> None:
        self._array = array
        self._selector = selector

    def __getitem__(self, selection: Any) -> Any:
        return self._array._get(self._selector, selection)

    def __setitem__(self, selection: Any, value: Any) -> None:
        self._array._set(self._selector, selection, value)
