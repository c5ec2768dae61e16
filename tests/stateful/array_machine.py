"""The state machine of arrays: each operation is applied to an array in a store and to a NumPy array."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import zarrfs
from tests.interop.samples import Data, same_bits
from tests.stateful.kinds import MAX_LENGTH, Kind, kinds
from zarrfs.engine.stores.base import Store

__all__ = ["ArrayMachine"]

PATH = "group/a"
CACHES = st.sampled_from([0, None, 100])
ALONE = st.builds(
    zarrfs.Access,
    recheck_metadata=st.sampled_from(["open", True, False, timedelta(hours=1)]),
    recheck_data=st.sampled_from([None, True, False, "open", timedelta(hours=1)]),
    write_empty_chunks=st.booleans(),
    concurrency=st.sampled_from([None, 1, 2]),
)
"""Access options of an array with one writer."""

SHARED = st.builds(
    zarrfs.Access,
    recheck_metadata=st.sampled_from(["open", True]),
    recheck_data=st.sampled_from([None, True]),
)
"""Access options with which writes through another handle are visible immediately."""

Lengths = tuple[int, ...]


class ArrayMachine(RuleBasedStateMachine):
    """An array with random options.

    Attributes:
        array, other: the array that the rules change, and a second handle of it.
        model: the expected values.
        retained: the expected values, and those that were in the array before it shrank with ``delete=False``. They may
            reappear when the array grows, or have been deleted by later writes to their chunks.
    """

    make: Callable[[Path], Store]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        try:
            self.store = type(self).make(Path(self._folder.name))
        except BaseException:  # a skipped test included: teardown is not called then
            self._folder.cleanup()
            raise
        self.attributes: dict[str, Any] = {}

    @initialize(kind_and_palette=kinds(), shared=st.booleans(), data=st.data())
    def create(self, kind_and_palette: tuple[Kind, Data], shared: bool, data: st.DataObject) -> None:
        kind, self.palette = kind_and_palette
        self.shared = shared
        self.accesses = SHARED if shared else ALONE
        access = data.draw(self.accesses)
        self.array = zarrfs.create_array(
            self.store, PATH, access=access, cache_size=data.draw(CACHES), overwrite=True, **kind
        )
        self.other = zarrfs.open_array(
            self.store,
            PATH,
            "r+",
            cache_size=data.draw(CACHES),
            access=zarrfs.Access(recheck_metadata=True, recheck_data=True),
        )
        self.dtype = self.array.dtype
        fill = kind.get("fill_value", self.array.fill_value)
        self.fill = self._full((), fill)
        self.model = self._full(self.array.shape, fill)
        self.retained = self._full((3 * MAX_LENGTH,) * self.model.ndim, fill)

    def _full(self, shape: Lengths, value: Any) -> Data:
        made = np.empty(shape, self.dtype)
        made[...] = value
        return made

    def _values(self, data: st.DataObject, shape: Lengths) -> Data:
        """Draw values of a shape. Many of them are often equal, so that some chunks contain only the fill value."""
        rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
        colours = data.draw(st.sampled_from([1, 2, len(self.palette)]))
        return self._full(shape, self.palette[rng.integers(0, colours, shape)])

    def _value_or_values(self, data: st.DataObject, shape: Lengths) -> Any:
        return self._values(data, data.draw(st.sampled_from([(), shape])))[()]

    def _same(self, found: Any, expected: Any) -> None:
        if self.dtype.hasobject:
            if not isinstance(found, np.ndarray):
                element = expected[()] if isinstance(expected, np.ndarray) else expected
                assert found == element
                assert type(found) is type(element)
                return
            assert found.dtype == object
        # If only one is a scalar, it has lost byte order and trailing zeros.
        elif isinstance(expected, np.ndarray):
            found = np.asarray(found, expected.dtype)
        elif isinstance(found, np.ndarray):
            expected = np.asarray(expected, found.dtype)
        assert same_bits(found, expected), (found, expected)

    # -- selections ------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def basic(self, data: st.DataObject) -> None:
        index = data.draw(nps.basic_indices(self.model.shape, allow_newaxis=False))
        self._same(self.array[index], self.model[index])
        self._same(self.array.get_basic_selection(index), self.model[index])

    @rule(data=st.data())
    def set_basic(self, data: st.DataObject) -> None:
        index = data.draw(nps.basic_indices(self.model.shape, allow_newaxis=False))
        values = self._value_or_values(data, np.shape(self.model[index]))
        self.array[index] = values
        self.model[index] = values

    def _outer(self, data: st.DataObject) -> tuple[list[Any], list[Any], tuple[Any, ...]]:
        """Draw an orthogonal selection; return it, the equivalent index arrays, and the index that drops the dimensions
        of integers.
        """
        given: list[Any] = []
        index_arrays: list[Any] = []
        for length in self.model.shape:
            options: list[st.SearchStrategy[Any]] = [
                st.slices(length),
                nps.arrays("?", (length,)),
                st.just([]),
            ]
            if length:
                indices = st.integers(-length, length - 1)
                options += [
                    indices,
                    st.lists(indices, max_size=5),
                    st.lists(indices, max_size=5).map(np.array),
                ]
            part = data.draw(st.one_of(options))
            if isinstance(part, np.ndarray) and part.dtype == float:
                part = part.astype(int)
            given.append(part)
            index_arrays.append(np.atleast_1d(np.arange(length)[part]))
            if isinstance(part, list) and not part:
                index_arrays[-1] = np.array([], int)
        drop = tuple(0 if isinstance(part, int) else slice(None) for part in given)
        return given, [part.astype(int) for part in index_arrays], drop

    @precondition(lambda self: self.model.ndim)
    @rule(data=st.data())
    def outer(self, data: st.DataObject) -> None:
        given, index_arrays, drop = self._outer(data)
        self._same(self.array.oindex[tuple(given)], self.model[np.ix_(*index_arrays)][drop])

    @precondition(lambda self: self.model.ndim)
    @rule(data=st.data())
    def set_outer(self, data: st.DataObject) -> None:
        given, index_arrays, drop = self._outer(data)
        # If an element is selected twice, the last value is assigned.
        values = self._value_or_values(data, np.shape(self.model[np.ix_(*index_arrays)][drop]))
        self.array.oindex[tuple(given)] = values
        raised = tuple(slice(None) if isinstance(part, slice) else None for part in drop)
        self.model[np.ix_(*index_arrays)] = (
            np.asarray(values, self.dtype)[raised] if np.ndim(values) else values
        )

    def _points(self, data: st.DataObject) -> tuple[Any, ...]:
        shape = data.draw(st.sampled_from([(), (1,), (4,), (2, 3)]))
        return tuple(
            data.draw(nps.arrays(np.int64, shape, elements=st.integers(-n, n - 1))) for n in self.model.shape
        )

    @precondition(lambda self: self.model.size and self.model.ndim)
    @rule(data=st.data())
    def points(self, data: st.DataObject) -> None:
        points = self._points(data)
        self._same(self.array.vindex[points], self.model[points])
        self._same(self.array[points], self.model[points])

    @precondition(lambda self: self.model.size and self.model.ndim)
    @rule(data=st.data())
    def set_points(self, data: st.DataObject) -> None:
        points = self._points(data)
        values = self._value_or_values(data, points[0].shape)
        self.array.vindex[points] = values
        self.model[points] = values

    @rule(data=st.data())
    def mask(self, data: st.DataObject) -> None:
        mask = data.draw(nps.arrays("?", self.model.shape))
        self._same(self.array.get_mask_selection(mask), self.model[mask])
        values = self._value_or_values(data, self.model[mask].shape)
        self.array.set_mask_selection(mask, values)
        self.model[mask] = values

    @precondition(lambda self: self.model.size and self.model.ndim)
    @rule(data=st.data())
    def one_list_among_slices(self, data: st.DataObject) -> None:
        """The position of the indexed axis depends on the other selectors, by the rules of NumPy."""
        index: list[Any] = [data.draw(st.slices(n) | st.integers(-n, n - 1)) for n in self.model.shape]
        axis = data.draw(st.integers(0, self.model.ndim - 1))
        shape = data.draw(st.sampled_from([(3,), (2, 2), (1,)]))
        length = self.model.shape[axis]
        index[axis] = data.draw(nps.arrays(np.int64, shape, elements=st.integers(-length, length - 1)))
        key = tuple(index)
        self._same(self.array[key], self.model[key])
        values = self._value_or_values(data, self.model[key].shape)
        self.array[key] = values
        self.model[key] = values

    @precondition(lambda self: self.model.size and self.model.ndim)
    @rule(data=st.data(), write=st.booleans())
    def blocks(self, data: st.DataObject, write: bool) -> None:
        given: list[Any] = []
        slices = []
        for axis, count, length in zip(
            self.array.storage.axes, self.array.storage.grid_shape, self.model.shape, strict=True
        ):
            first = data.draw(st.integers(0, count - 1))
            last = data.draw(st.integers(first, count - 1))
            given.append(first - count if first == last else slice(first, last + 1))
            slices.append(slice(axis.begin(first), min(length, axis.begin(last) + axis.size(last))))
        key = tuple(slices)
        self._same(self.array.blocks[tuple(given)], self.model[key])
        if write:
            values = self._value_or_values(data, self.model[key].shape)
            self.array.blocks[tuple(given)] = values
            self.model[key] = values

    @precondition(lambda self: self.dtype.names)
    @rule(data=st.data(), names=st.sampled_from(["a", "b", "c", ["a", "c"], ["b"]]))
    def fields(self, data: st.DataObject, names: str | list[str]) -> None:
        index = data.draw(nps.basic_indices(self.model.shape, allow_newaxis=False))
        part = self.model[index]
        found = self.array.get_basic_selection(index, fields=names)
        if isinstance(names, list):
            for name in names:
                self._same(np.asarray(found)[name], part[name])
            return
        self._same(found, part[names])
        if not self.dtype[names].shape:
            self._same(self.array.field(names)[index], part[names])
        values = self._values(data, np.shape(part))[names]
        self.array.set_basic_selection(index, values, fields=names)
        # Not model[names][index]: a field that is an array has an additional axis, which an Ellipsis would include.
        changed = np.array(part)
        changed[names] = values
        self.model[index] = changed

    @precondition(lambda self: self.model.ndim)
    @rule(data=st.data(), beyond=st.sampled_from([0, 5]), write=st.booleans())
    def beyond(self, data: st.DataObject, beyond: int, write: bool) -> None:
        axis = data.draw(st.integers(0, self.model.ndim - 1))
        length = self.model.shape[axis]
        wrong = data.draw(st.sampled_from([length + beyond, -length - 1 - beyond]))
        key = (slice(None),) * axis + (wrong,)
        with pytest.raises(zarrfs.SelectionError, match="out of bounds"):
            self.array.set_basic_selection(key, self.palette[0]) if write else self.array[key]

    # -- bytes -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.dtype.hasobject)
    @rule(data=st.data(), order=st.sampled_from("CF"))
    def flat_bytes(self, data: st.DataObject, order: Any) -> None:
        whole = self.model.tobytes(order)
        offset = data.draw(st.integers(0, len(whole)))
        size = data.draw(st.integers(0, len(whole) + 3))
        expected = whole[offset : offset + size]
        assert bytes(self.array.read_bytes(offset, size, order)) == expected
        memory = bytearray(size)
        if size:
            count = self.array.read_bytes_into(offset, memory, order)
            assert bytes(memory[:count]) == expected

    @precondition(lambda self: self.model.ndim)
    @rule(data=st.data())
    def slices_in_turn(self, data: st.DataObject) -> None:
        low, high = data.draw(st.tuples(st.integers(0, MAX_LENGTH), st.integers(0, MAX_LENGTH)))
        found = list(self.array.islice(low, high))
        assert len(found) == len(self.model[low:high])
        for one, expected in zip(found, self.model[low:high], strict=True):
            self._same(one, expected)

    # -- the whole -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.ndim)
    @rule(data=st.data(), delete=st.booleans())
    def resize(self, data: st.DataObject, delete: bool) -> None:
        # Along one dimension more often than along all.
        shape = list(self.model.shape)
        axes = data.draw(st.sampled_from([[i] for i in range(len(shape))] + [list(range(len(shape)))]))
        for axis in axes:
            shape[axis] = data.draw(st.integers(0, MAX_LENGTH if len(shape) < 3 else 4))
        self._resized(tuple(shape), delete)

    @precondition(lambda self: self.model.ndim and min(self.model.shape) < MAX_LENGTH)
    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        axis = data.draw(st.sampled_from([i for i, n in enumerate(self.model.shape) if n < MAX_LENGTH]))
        more = list(self.model.shape)
        more[axis] = data.draw(st.integers(0, MAX_LENGTH - more[axis]))
        values = self._values(data, tuple(more))
        self.retained[tuple(slice(0, n) for n in self.model.shape)] = self.model
        self.array.append(values, axis)
        self.model = np.concatenate([self.model, values], axis).astype(self.dtype)

    def _extent(self) -> tuple[slice, ...]:
        """Return the region of all chunks of the array, which may extend beyond its shape."""
        return tuple(
            slice(0, axis.begin(count - 1) + axis.size(count - 1) if count else 0)
            for axis, count in zip(self.array.storage.axes, self.array.storage.grid_shape, strict=True)
        )

    def _resized(self, shape: Lengths, delete: bool) -> None:
        old = self.model
        inside = tuple(slice(0, n) for n in old.shape)
        before = self._extent()
        self.retained[inside] = old
        self.array.resize(shape, delete=delete)
        assert self.array.shape == shape
        if delete:
            # Other values outside the old shape were retained by an earlier change of the shape.
            for axis, (length, old_length) in enumerate(zip(shape, old.shape, strict=True)):
                if length < old_length:
                    cut = list(before)
                    cut[axis] = slice(length, before[axis].stop)
                    self.retained[tuple(cut)] = self.fill
        found = np.asarray(self.array[...])
        assert found.shape == shape
        box = tuple(slice(0, n) for n in shape)
        common = tuple(slice(0, min(n, m)) for n, m in zip(shape, old.shape, strict=True))
        self._same(found[common], old[common])
        allowed = [self.retained[box], self._full(shape, self.fill)]
        for index in np.ndindex(*shape):
            if any(n >= m for n, m in zip(index, old.shape, strict=True)):
                self._one_of(found[index], [each[index] for each in allowed])
        self.model = found.copy()

    def _one_of(self, found: Any, allowed: list[Any]) -> None:
        for each in allowed:
            if self.dtype.hasobject:
                if found == each:
                    return
            elif same_bits(found, each):
                return
        raise AssertionError(f"found {found!r}, expected one of {allowed!r}")

    @rule(empty=st.booleans(), data=st.data())
    def overwrite(self, empty: bool, data: st.DataObject) -> None:
        """Write all elements. With the fill value no chunk is stored, unless empty chunks are to be stored."""
        self.array.write_empty_chunks = empty
        value = data.draw(st.sampled_from([self.fill[()], self.palette[-1]]))
        self.array[...] = value
        self.model[...] = value
        if empty:
            assert self.array.nchunks_initialized == self.array.nchunks
        elif self.model.size and bool(self._is_fill(value)) and self.array.fill_value is not None:
            # In a synchronized store, where another process may have enlarged the array, chunks at its end are retained
            # if they have other elements beyond the shape.
            assert self.array.nchunks_initialized == 0 or self.array.store.synchronized

    def _is_fill(self, value: Any) -> bool:
        if self.dtype.hasobject:
            return bool(value == self.fill[()])
        return same_bits(value, self.fill)

    @rule(key=st.sampled_from("pq"), value=st.integers(0, 9) | st.none() | st.just({"é": [1.5, "x"]}))
    def set_attribute(self, key: str, value: Any) -> None:
        self.array.attrs[key] = value
        self.attributes[key] = value

    @precondition(lambda self: self.attributes)
    @rule()
    def delete_attribute(self) -> None:
        key = min(self.attributes)
        del self.array.attrs[key]
        del self.attributes[key]

    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        empty = self.array.write_empty_chunks
        self.array = zarrfs.open_array(
            self.store, PATH, "r+", cache_size=data.draw(CACHES), access=data.draw(self.accesses)
        )
        self.array.write_empty_chunks = empty

    # -- the other handle ------------------------------------------------------------------------------------------

    @rule()
    def other_reads(self) -> None:
        assert self.other.shape == self.model.shape
        self._same(self.other[...], self.model)
        assert dict(self.other.attrs) == self.attributes

    @precondition(lambda self: self.shared)
    @rule(data=st.data())
    def other_writes(self, data: st.DataObject) -> None:
        self.other[...]  # reads the new shape, for which the index is drawn
        index = data.draw(nps.basic_indices(self.model.shape, allow_newaxis=False))
        values = self._value_or_values(data, np.shape(self.model[index]))
        self.other[index] = values
        self.model[index] = values

    @invariant()
    def array_equals_model(self) -> None:
        if hasattr(self, "array"):
            assert self.array.shape == self.model.shape
            self._same(self.array[...], self.model)
            assert dict(self.array.attrs) == self.attributes

    def teardown(self) -> None:
        self.store.close()
        self._folder.cleanup()
