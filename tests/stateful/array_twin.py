"""The state machine: an array in a store, and a NumPy array that undergoes the same."""

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
from tests.stateful.kinds import LONGEST, Kind, kinds
from zarrfs.engine.stores.base import Store

__all__ = ["ArrayTwin"]

PATH = "group/a"
CACHES = st.sampled_from([0, None, 100])
ALONE = st.builds(
    zarrfs.Access,
    recheck_metadata=st.sampled_from(["open", True, False, timedelta(hours=1)]),
    recheck_data=st.sampled_from([None, True, False, "open", timedelta(hours=1)]),
    write_empty_chunks=st.booleans(),
    concurrency=st.sampled_from([None, 1, 2]),
)
"""For who is the only one that writes."""

SHARED = st.builds(
    zarrfs.Access,
    recheck_metadata=st.sampled_from(["open", True]),
    recheck_data=st.sampled_from([None, True]),
)
"""For who sees at once what another handle writes."""

Lengths = tuple[int, ...]


class ArrayTwin(RuleBasedStateMachine):
    """An array of any kind.

    Attributes:
        array: the one that all rules change; ``other`` is a second handle of it.
        twin: what it must hold. ``ghost`` has in addition what lay in the array before it shrank: what of a kept chunk
            overhangs may show again when it grows, or be gone.
    """

    make: Callable[[Path], Store]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.store = type(self).make(Path(self._folder.name))
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
        self.twin = self._full(self.array.shape, fill)
        self.ghost = self._full((3 * LONGEST,) * self.twin.ndim, fill)

    def _full(self, shape: Lengths, value: Any) -> Data:
        made = np.empty(shape, self.dtype)
        made[...] = value
        return made

    def _values(self, data: st.DataObject, shape: Lengths) -> Data:
        """Draw values of a shape, often many equal ones, so that chunks are empty at times."""
        rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
        colours = data.draw(st.sampled_from([1, 2, len(self.palette)]))
        return self._full(shape, self.palette[rng.integers(0, colours, shape)])

    def _value_or_values(self, data: st.DataObject, shape: Lengths) -> Any:
        return self._values(data, data.draw(st.sampled_from([(), shape])))[()]

    def _same(self, found: Any, expected: Any) -> None:
        if self.dtype.hasobject:
            if not isinstance(found, np.ndarray):
                wanted = expected[()] if isinstance(expected, np.ndarray) else expected
                assert found == wanted
                assert type(found) is type(wanted)
                return
            assert found.dtype == object
        # Where but one is a scalar, that has lost byte order and trailing zeros.
        elif isinstance(expected, np.ndarray):
            found = np.asarray(found, expected.dtype)
        elif isinstance(found, np.ndarray):
            expected = np.asarray(expected, found.dtype)
        assert same_bits(found, expected), (found, expected)

    # -- selections ------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def basic(self, data: st.DataObject) -> None:
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False))
        self._same(self.array[index], self.twin[index])
        self._same(self.array.get_basic_selection(index), self.twin[index])

    @rule(data=st.data())
    def set_basic(self, data: st.DataObject) -> None:
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False))
        values = self._value_or_values(data, np.shape(self.twin[index]))
        self.array[index] = values
        self.twin[index] = values

    def _outer(self, data: st.DataObject) -> tuple[list[Any], list[Any], tuple[Any, ...]]:
        """Draw a product of selectors; return it, the same as arrays of indices, and what drops the integers."""
        given: list[Any] = []
        plain: list[Any] = []
        for length in self.twin.shape:
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
            plain.append(np.atleast_1d(np.arange(length)[part]))
            if isinstance(part, list) and not part:
                plain[-1] = np.array([], int)
        drop = tuple(0 if isinstance(part, int) else slice(None) for part in given)
        return given, [part.astype(int) for part in plain], drop

    @precondition(lambda self: self.twin.ndim)
    @rule(data=st.data())
    def outer(self, data: st.DataObject) -> None:
        given, plain, drop = self._outer(data)
        self._same(self.array.oindex[tuple(given)], self.twin[np.ix_(*plain)][drop])

    @precondition(lambda self: self.twin.ndim)
    @rule(data=st.data())
    def set_outer(self, data: st.DataObject) -> None:
        given, plain, drop = self._outer(data)
        # Of an element that is named twice, the last value stays.
        values = self._value_or_values(data, np.shape(self.twin[np.ix_(*plain)][drop]))
        self.array.oindex[tuple(given)] = values
        raised = tuple(slice(None) if isinstance(part, slice) else None for part in drop)
        self.twin[np.ix_(*plain)] = np.asarray(values, self.dtype)[raised] if np.ndim(values) else values

    def _points(self, data: st.DataObject) -> tuple[Any, ...]:
        shape = data.draw(st.sampled_from([(), (1,), (4,), (2, 3)]))
        return tuple(
            data.draw(nps.arrays(np.int64, shape, elements=st.integers(-n, n - 1))) for n in self.twin.shape
        )

    @precondition(lambda self: self.twin.size and self.twin.ndim)
    @rule(data=st.data())
    def points(self, data: st.DataObject) -> None:
        points = self._points(data)
        self._same(self.array.vindex[points], self.twin[points])
        self._same(self.array[points], self.twin[points])

    @precondition(lambda self: self.twin.size and self.twin.ndim)
    @rule(data=st.data())
    def set_points(self, data: st.DataObject) -> None:
        points = self._points(data)
        values = self._value_or_values(data, points[0].shape)
        self.array.vindex[points] = values
        self.twin[points] = values

    @rule(data=st.data())
    def mask(self, data: st.DataObject) -> None:
        mask = data.draw(nps.arrays("?", self.twin.shape))
        self._same(self.array.get_mask_selection(mask), self.twin[mask])
        values = self._value_or_values(data, self.twin[mask].shape)
        self.array.set_mask_selection(mask, values)
        self.twin[mask] = values

    @precondition(lambda self: self.twin.size and self.twin.ndim)
    @rule(data=st.data())
    def one_list_among_slices(self, data: st.DataObject) -> None:
        """By NumPy's rules for plain brackets: where the axis goes depends on what stands around."""
        index: list[Any] = [data.draw(st.slices(n) | st.integers(-n, n - 1)) for n in self.twin.shape]
        axis = data.draw(st.integers(0, self.twin.ndim - 1))
        shape = data.draw(st.sampled_from([(3,), (2, 2), (1,)]))
        length = self.twin.shape[axis]
        index[axis] = data.draw(nps.arrays(np.int64, shape, elements=st.integers(-length, length - 1)))
        key = tuple(index)
        self._same(self.array[key], self.twin[key])
        values = self._value_or_values(data, self.twin[key].shape)
        self.array[key] = values
        self.twin[key] = values

    @precondition(lambda self: self.twin.size and self.twin.ndim)
    @rule(data=st.data(), write=st.booleans())
    def blocks(self, data: st.DataObject, write: bool) -> None:
        given: list[Any] = []
        slices = []
        for axis, count, length in zip(
            self.array.storage.axes, self.array.storage.grid_shape, self.twin.shape, strict=True
        ):
            first = data.draw(st.integers(0, count - 1))
            last = data.draw(st.integers(first, count - 1))
            given.append(first - count if first == last else slice(first, last + 1))
            slices.append(slice(axis.begin(first), min(length, axis.begin(last) + axis.size(last))))
        key = tuple(slices)
        self._same(self.array.blocks[tuple(given)], self.twin[key])
        if write:
            values = self._value_or_values(data, self.twin[key].shape)
            self.array.blocks[tuple(given)] = values
            self.twin[key] = values

    @precondition(lambda self: self.dtype.names)
    @rule(data=st.data(), names=st.sampled_from(["a", "b", "c", ["a", "c"], ["b"]]))
    def fields(self, data: st.DataObject, names: str | list[str]) -> None:
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False))
        part = self.twin[index]
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
        # Not twin[names][index]: a field that is an array has an axis more, that an Ellipsis would take for its own.
        changed = np.array(part)
        changed[names] = values
        self.twin[index] = changed

    @precondition(lambda self: self.twin.ndim)
    @rule(data=st.data(), beyond=st.sampled_from([0, 5]), write=st.booleans())
    def beyond(self, data: st.DataObject, beyond: int, write: bool) -> None:
        axis = data.draw(st.integers(0, self.twin.ndim - 1))
        length = self.twin.shape[axis]
        wrong = data.draw(st.sampled_from([length + beyond, -length - 1 - beyond]))
        key = (slice(None),) * axis + (wrong,)
        with pytest.raises(zarrfs.SelectionError, match="out of bounds"):
            self.array.set_basic_selection(key, self.palette[0]) if write else self.array[key]

    # -- bytes -----------------------------------------------------------------------------------------------------

    @precondition(lambda self: not self.dtype.hasobject)
    @rule(data=st.data(), order=st.sampled_from("CF"))
    def flat_bytes(self, data: st.DataObject, order: Any) -> None:
        whole = self.twin.tobytes(order)
        offset = data.draw(st.integers(0, len(whole)))
        size = data.draw(st.integers(0, len(whole) + 3))
        expected = whole[offset : offset + size]
        assert bytes(self.array.read_bytes(offset, size, order)) == expected
        memory = bytearray(size)
        if size:
            count = self.array.read_bytes_into(offset, memory, order)
            assert bytes(memory[:count]) == expected

    @precondition(lambda self: self.twin.ndim)
    @rule(data=st.data())
    def slices_in_turn(self, data: st.DataObject) -> None:
        low, high = data.draw(st.tuples(st.integers(0, LONGEST), st.integers(0, LONGEST)))
        found = list(self.array.islice(low, high))
        assert len(found) == len(self.twin[low:high])
        for one, expected in zip(found, self.twin[low:high], strict=True):
            self._same(one, expected)

    # -- the whole -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.twin.ndim)
    @rule(data=st.data(), delete=st.booleans())
    def resize(self, data: st.DataObject, delete: bool) -> None:
        # Along one dimension more often than along all.
        shape = list(self.twin.shape)
        axes = data.draw(st.sampled_from([[i] for i in range(len(shape))] + [list(range(len(shape)))]))
        for axis in axes:
            shape[axis] = data.draw(st.integers(0, LONGEST if len(shape) < 3 else 4))
        self._resized(tuple(shape), delete)

    @precondition(lambda self: self.twin.ndim and min(self.twin.shape) < LONGEST)
    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        axis = data.draw(st.sampled_from([i for i, n in enumerate(self.twin.shape) if n < LONGEST]))
        more = list(self.twin.shape)
        more[axis] = data.draw(st.integers(0, LONGEST - more[axis]))
        values = self._values(data, tuple(more))
        self.ghost[tuple(slice(0, n) for n in self.twin.shape)] = self.twin
        self.array.append(values, axis)
        self.twin = np.concatenate([self.twin, values], axis).astype(self.dtype)

    def _extent(self) -> tuple[slice, ...]:
        """Return the box that the chunks of the array take up, overhang included."""
        return tuple(
            slice(0, axis.begin(count - 1) + axis.size(count - 1) if count else 0)
            for axis, count in zip(self.array.storage.axes, self.array.storage.grid_shape, strict=True)
        )

    def _resized(self, shape: Lengths, delete: bool) -> None:
        old = self.twin
        inside = tuple(slice(0, n) for n in old.shape)
        before = self._extent()
        self.ghost[inside] = old
        self.array.resize(shape, delete=delete)
        assert self.array.shape == shape
        kept = self.ghost[self._extent()].copy()
        if delete and any(n < m for n, m in zip(shape, old.shape, strict=True)):
            # What lay in chunks that are no longer in the array is gone.
            self.ghost[before] = self.fill
        self.ghost[self._extent()] = kept
        found = np.asarray(self.array[...])
        assert found.shape == shape
        box = tuple(slice(0, n) for n in shape)
        common = tuple(slice(0, min(n, m)) for n, m in zip(shape, old.shape, strict=True))
        self._same(found[common], old[common])
        allowed = [self.ghost[box], self._full(shape, self.fill)]
        for index in np.ndindex(*shape):
            if any(n >= m for n, m in zip(index, old.shape, strict=True)):
                self._one_of(found[index], [each[index] for each in allowed])
        self.twin = found.copy()

    def _one_of(self, found: Any, allowed: list[Any]) -> None:
        for each in allowed:
            if self.dtype.hasobject:
                if found == each:
                    return
            elif same_bits(found, each):
                return
        raise AssertionError(f"{found!r} is none of {allowed!r}")

    @rule(empty=st.booleans(), data=st.data())
    def overwrite(self, empty: bool, data: st.DataObject) -> None:
        """Write everything: with the fill value no chunk is left, unless empty ones are to be stored."""
        self.array.write_empty_chunks = empty
        value = data.draw(st.sampled_from([self.fill[()], self.palette[-1]]))
        self.array[...] = value
        self.twin[...] = value
        if empty:
            assert self.array.nchunks_initialized == self.array.nchunks
        elif self.twin.size and bool(self._is_fill(value)) and self.array.fill_value is not None:
            assert self.array.nchunks_initialized == 0

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
        assert self.other.shape == self.twin.shape or self.other[...].shape == self.twin.shape
        self._same(self.other[...], self.twin)
        assert dict(self.other.attrs) == self.attributes

    @precondition(lambda self: self.shared)
    @rule(data=st.data())
    def other_writes(self, data: st.DataObject) -> None:
        self.other[...]  # takes over the shape, which the index is drawn for
        index = data.draw(nps.basic_indices(self.twin.shape, allow_newaxis=False))
        values = self._value_or_values(data, np.shape(self.twin[index]))
        self.other[index] = values
        self.twin[index] = values

    @invariant()
    def both_are_equal(self) -> None:
        if hasattr(self, "array"):
            assert self.array.shape == self.twin.shape
            self._same(self.array[...], self.twin)
            assert dict(self.array.attrs) == self.attributes

    def teardown(self) -> None:
        self.store.close()
        self._folder.cleanup()
