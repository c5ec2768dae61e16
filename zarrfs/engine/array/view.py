"""Views of an array that cast its values or select fields of its records. They store no data of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np

from zarrfs.engine.array.indexed_array import IndexedArray
from zarrfs.engine.hierarchy.attributes import Attributes
from zarrfs.engine.indexing.fields import check_fields
from zarrfs.engine.indexing.selections import fancy_selection
from zarrfs.errors import ReadOnlyError, SelectionError

__all__ = ["ArrayView", "field_dtype"]

Indexing = Literal["basic", "orthogonal", "coordinate", "mask", "block"]


def field_dtype(dtype: np.dtype[Any], fields: str | list[str], where: str) -> np.dtype[Any]:
    """Return the dtype of one field, or of records of several fields.

    Raises SelectionError if there is no such field, or if the field contains an array in each element.
    """
    selected = np.empty(0, dtype)[check_fields(fields, dtype)]
    if selected.ndim > 1:
        raise SelectionError(
            f"{where}: field {fields!r} contains an array of shape {selected.shape[1:]} in each element and has no "
            f"view; read it with array[{fields!r}]"
        )
    return selected.dtype


class ArrayView:
    """A view of an array that casts its values, or that has some fields of its records.

    Returned by ``Array.astype`` and ``Array.field``. Indexing reads the selection from the array. Assigning to a view
    of fields writes to the array. A view that casts is read-only, because a cast may lose information; assigning to it
    raises ReadOnlyError.
    """

    def __init__(
        self,
        array: IndexedArray,
        dtype: np.dtype[Any],
        fields: str | list[str] | None = None,
        cast: bool = False,
    ) -> None:
        self._array = array
        self._dtype = dtype
        self._fields = fields
        self._cast = cast

    @property
    def array(self) -> IndexedArray:
        """The array that the view belongs to."""
        return self._array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of arrays that reading returns."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each dimension."""
        return self._array.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def itemsize(self) -> int:
        """The size of one element in memory in bytes."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in memory in bytes."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """The chunk shape of the array; see ``Array.chunks``."""
        return self._array.chunks

    @property
    def attrs(self) -> Attributes:
        """The user attributes of the array."""
        return self._array.attrs

    @property
    def read_only(self) -> bool:
        """Whether writing is refused."""
        return self._cast or self._array.read_only

    def __len__(self) -> int:
        return len(self._array)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        fields = "" if self._fields is None else f" field {self._fields!r}"
        return f"<zarrfs.ArrayView{fields} as {self._dtype} of {self._array!r}>"

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "ArrayView", self._array.__dask_tokenize__(), str(self._dtype.descr), self._fields

    def _cast_values(self, values: Any) -> Any:
        return np.asarray(values).astype(self._dtype, copy=False)[()] if self._cast else values

    def __getitem__(self, selection: Any) -> Any:
        return self._cast_values(self._array._get(fancy_selection, selection, self._fields))

    def __setitem__(self, selection: Any, value: Any) -> None:
        if self._cast:
            raise ReadOnlyError(
                f"{self!r} casts values and is read-only; write values of dtype {self._array.dtype} to the array"
            )
        self._array._set(fancy_selection, selection, value, self._fields)

    def get_selection(self, kind: Indexing, selection: Any) -> Any:
        """Read a selection as ``Array.get_basic_selection`` and the other methods of this kind do.

        ``kind`` is the middle part of the method's name. Raises SelectionError for another kind.
        """
        if kind not in get_args(Indexing):
            raise SelectionError(f"kind must be one of {', '.join(get_args(Indexing))}, found {kind!r}")
        read = getattr(self._array, f"get_{kind}_selection")
        return self._cast_values(read(selection, fields=self._fields))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array in a store cannot be converted to a NumPy array without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        for item in self._array:
            yield self._cast_values(item if self._fields is None else item[self._fields])

    def astype(self, dtype: Any) -> ArrayView:
        """Return a read-only view of the same fields that casts values to ``dtype`` when they are read."""
        return ArrayView(self._array, np.dtype(dtype), self._fields, cast=True)
