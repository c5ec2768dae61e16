"""Arrays seen as something else: with another dtype, or only some fields of records. Nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np

from zarrfs.engine.indexing.selections import check_fields, fancy_selection
from zarrfs.engine.nodes.attributes import Attributes
from zarrfs.engine.nodes.protocols import IndexableArray
from zarrfs.errors import ReadOnlyError, SelectionError

__all__ = ["ArrayView", "field_dtype"]

Indexing = Literal["basic", "orthogonal", "coordinate", "mask", "block"]


def field_dtype(dtype: np.dtype[Any], fields: str | list[str], where: str) -> np.dtype[Any]:
    """Return the dtype that reading one field gives, or records of several. Raises SelectionError."""
    found = np.empty(0, dtype)[check_fields(fields, dtype)]
    if found.ndim > 1:
        raise SelectionError(
            f"{where}: field {fields!r} holds an array of shape {found.shape[1:]} in each element and has no view; "
            f"read it, as array[{fields!r}]"
        )
    return found.dtype


class ArrayView:
    """An array with its values cast, or some fields of its records. Made by ``Array.astype`` and ``Array.field``.

    Reads what it is asked for, as the array would. A view of fields can be assigned to; one that casts cannot, because
    what is lost by the cast could not be given back.
    """

    def __init__(
        self,
        array: IndexableArray,
        dtype: np.dtype[Any],
        fields: str | list[str] | None = None,
        cast: bool = False,
    ) -> None:
        self._array = array
        self._dtype = dtype
        self._fields = fields
        self._cast = cast

    @property
    def array(self) -> IndexableArray:
        """The array that is seen."""
        return self._array

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype that reading gives."""
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
        """The bytes of one element in memory."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements in memory."""
        return self.size * self.itemsize

    @property
    def chunks(self) -> tuple[int, ...] | tuple[tuple[int, ...], ...]:
        """The shape of what is decoded as one piece."""
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
        what = "" if self._fields is None else f" field {self._fields!r}"
        return f"<zarrfs.ArrayView{what} as {self._dtype} of {self._array!r}>"

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        return "ArrayView", self._array.__dask_tokenize__(), str(self._dtype.descr), self._fields

    def _seen(self, values: Any) -> Any:
        return np.asarray(values).astype(self._dtype, copy=False)[()] if self._cast else values

    def __getitem__(self, selection: Any) -> Any:
        return self._seen(self._array._get(fancy_selection, selection, self._fields))

    def __setitem__(self, selection: Any, value: Any) -> None:
        if self._cast:
            raise ReadOnlyError(
                f"{self!r} casts what it reads and cannot be written to; write to the array, as {self._array.dtype}"
            )
        self._array._set(fancy_selection, selection, value, self._fields)

    def get_selection(self, kind: Indexing, selection: Any) -> Any:
        """Read as the array's ``get_basic_selection`` and the others do."""
        if kind not in get_args(Indexing):
            raise SelectionError(f"kind must be one of {', '.join(get_args(Indexing))}, found {kind!r}")
        read = getattr(self._array, f"get_{kind}_selection")
        return self._seen(read(selection, fields=self._fields))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array in a store cannot become a NumPy array without a copy")
        array = np.asarray(self[...])
        return array if dtype is None else array.astype(dtype, copy=False)

    def __iter__(self) -> Iterator[Any]:
        for item in self._array:
            yield self._seen(item if self._fields is None else item[self._fields])

    def astype(self, dtype: Any) -> ArrayView:
        """Return a view of this with another dtype."""
        return ArrayView(self._array, np.dtype(dtype), self._fields, cast=True)
