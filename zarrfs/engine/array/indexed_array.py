"""Arrays that are read and written by index expressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.array.properties import ArrayProperties
from zarrfs.engine.array_context import ArrayContext
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats import api as formats
from zarrfs.engine.hierarchy.node import StoredNode, difference
from zarrfs.engine.indexing.fields import check_fields, pop_fields
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
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.read.reading import read_basic, read_out, read_selection
from zarrfs.engine.stores.base import Store
from zarrfs.engine.values import as_values, assign_fields
from zarrfs.engine.write.writing import write_selection
from zarrfs.errors import SelectionError

__all__ = ["IndexedArray"]

Selector = Callable[[Any, tuple[int, ...]], OrthogonalSelection | CoordinateSelection]

Out = np.ndarray[Any, Any] | None

_BOX_TYPES = {int, slice}


class IndexedArray(StoredNode[ArraySpec], ArrayProperties):
    """An array in a store, its storage, and the methods that read and write selections. The base class of ``Array``.

    ``Array`` documents the errors of all methods.
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
        access: ReadWriteOptions | None = None,
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
        self._storage = ArrayContext(
            self._store, self._path, formats.chunk_prefix(spec, self._path), spec, self._cache, self._access
        )

    def _set_store(self, store: Store) -> None:
        super()._set_store(store)
        self._storage.store = store

    @property
    def storage(self) -> ArrayContext:
        """The keys, the chunk grid and the codecs, for tools that access single chunks."""
        return self._storage

    @property
    def _current_storage(self) -> ArrayContext:
        """The storage by the current metadata, read again if ``ReadWriteOptions.recheck_metadata`` requires it."""
        self._recheck()
        return self._storage

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return self._current_storage.spec.shape

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("an array without dimensions has no len()")
        return shape[0]

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the token that identifies the array to Dask. It changes if the metadata change."""
        return type(self).__name__, self._store.url, self._path, repr(self._spec.document)

    # -- reading -----------------------------------------------------------------------------------------------

    def __getitem__(self, selection: Any) -> Any:
        """Read a selection, by the indexing rules of NumPy.

        ``selection`` consists of integers, slices, Ellipsis, index arrays or one mask, and field names of records.
        Returns a new NumPy array, or a scalar if integers select one element.
        """
        if type(selection) is tuple and {*map(type, selection)} <= _BOX_TYPES:
            self._recheck()
            box = read_basic(self._storage, selection)
            if box is not None:
                return box
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

    # -- writing -----------------------------------------------------------------------------------------------

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
        self, storage: ArrayContext, selection: OrthogonalSelection | CoordinateSelection, value: Any
    ) -> None:
        shape = selection.result_shape if isinstance(selection, OrthogonalSelection) else selection.shape
        values = as_values(value, storage.spec.data_type, shape, storage.where)
        self._write_values(storage, selection, values)

    def _write_values(
        self, storage: ArrayContext, selection: OrthogonalSelection | CoordinateSelection, values: Any
    ) -> None:
        """Write values that have the dtype of the array and the shape of the selection."""
        buffer = (
            selection.to_buffer(values) if isinstance(selection, OrthogonalSelection) else values.reshape(-1)
        )
        write_selection(storage, selection, buffer, self.write_empty_chunks)

    def _write_all(self, values: np.ndarray[Any, Any]) -> None:
        """Write values that have the dtype and the shape of the array."""
        self._write_values(self._storage, basic_selection(Ellipsis, values.shape), values)


class _Indexer:
    """Applies an index expression by one kind of indexing. Returned by ``oindex``, ``vindex`` and ``blocks``."""

    def __init__(self, array: IndexedArray, selector: Selector) -> None:
        self._array = array
        self._selector = selector

    def __getitem__(self, selection: Any) -> Any:
        return self._array._get(self._selector, selection)

    def __setitem__(self, selection: Any, value: Any) -> None:
        self._array._set(self._selector, selection, value)
