"""The contract of views (``zarrfs.ext.views``) as tests that run on any view.

The tests need neither pytest nor another test library; see ``store_contract.py``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from zarrfs.api.open import create_array
from zarrfs.engine.array.array import Array
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.view import PresentedArray, View
from zarrfs.testing.contracts import run_tests
from zarrfs.testing.stores import CountingStore

__all__ = ["ViewTests", "check_view"]

RANGES = 60
"""The number of random ranges that are read from each file."""

METADATA_NAMES = ("zarr.json", ".zarray", ".zattrs", ".zgroup")

Values = np.ndarray[Any, Any]


def check_view(
    view: View, read: Callable[[bytes], Values] | None = None, suite: type[ViewTests] | None = None
) -> None:
    """Run the contract. ``read`` returns the values of a file, which are compared with those of the array.

    ``suite`` is a subclass of ``ViewTests`` (default: itself). Raises ExceptionGroup with the errors.
    """
    tests = (suite or ViewTests)()
    tests.view = view
    if read is not None:
        tests.read = read  # type: ignore[method-assign, assignment]
    run_tests(tests, lambda test: test(), f"The view {view.suffix!r} does not keep the contract")


class ViewTests:
    """The contract of a view. Subclass it and set ``view``; define ``read`` if the file contains the values.

    Example, for pytest::

        class TestMyView(ViewTests):
            view = MyView()

            def read(self, file):
                return np.frombuffer(file[HEADER_SIZE:], "<u2")
    """

    view: View

    def read(self, file: bytes) -> Values | None:
        """Return the values that the file contains, in C order and of any shape, or None if it contains none."""
        return None

    def arrays(self) -> Iterator[tuple[Array, CountingStore]]:
        """Yield arrays and the stores that count their reads: numbers of several ranks and other kinds of elements."""
        examples: list[tuple[Values, dict[str, Any]]] = [
            (np.arange(4 * 5 * 6, dtype="u2").reshape(4, 5, 6), {"chunks": (2, 3, 4)}),
            (np.linspace(-1, 1, 35, dtype="f4").reshape(5, 7), {"chunks": (2, 7)}),
            (np.arange(9, dtype="i8"), {"chunks": (4,)}),
            (np.array(7, dtype="u1"), {}),
            (np.zeros((0, 3), "f8"), {}),
            (np.array([True, False]), {}),
            (np.array([1 + 2j]), {}),
            (np.array(["a", "größe"], dtype=object), {"dtype": "string"}),
        ]
        for values, options in examples:
            store = CountingStore(MemoryStore())
            yield create_array(store, data=values, cache_size=0, **options), store

    def presented(self) -> Iterator[tuple[PresentedArray, CountingStore]]:
        """Yield those arrays that the view can present."""
        found = False
        for array, store in self.arrays():
            presented = PresentedArray(array)
            if self.view.unsupported_reason(presented) is None:
                found = True
                yield presented, store
        assert found, "the view refuses all example arrays: override arrays()"

    def test_the_suffix_begins_with_a_dot(self) -> None:
        assert self.view.suffix.startswith(".")
        assert len(self.view.suffix) > 1
        assert "/" not in self.view.suffix

    def test_a_refusal_is_a_reason_or_none(self) -> None:
        for array, _ in self.arrays():
            reason = self.view.unsupported_reason(PresentedArray(array))
            assert reason is None or (isinstance(reason, str) and reason.strip())

    def test_the_file_is_created_without_reading_elements(self) -> None:
        for presented, store in self.presented():
            store.reset()
            self.view.content(presented)
            chunks = [key for key in store.keys if key.rpartition("/")[2] not in METADATA_NAMES]
            assert chunks == [] or self.view.depends_on_elements

    def test_the_size_is_that_of_the_file(self) -> None:
        for presented, _ in self.presented():
            content = self.view.content(presented)
            assert len(read_all(content)) == content.size
            assert content.read(content.size, 10) == b""
            assert content.read(max(0, content.size - 3), 1000) == read_all(content)[-3:]

    def test_two_files_of_one_array_are_equal(self) -> None:
        for presented, _ in self.presented():
            first = read_all(self.view.content(presented))
            assert read_all(self.view.content(PresentedArray(presented.array, presented.name))) == first

    def test_ranges_are_the_parts_of_the_file(self) -> None:
        generator = random.Random(0)
        for presented, _ in self.presented():
            content = self.view.content(presented)
            file = read_all(content)
            for _ in range(RANGES):
                start = generator.randint(0, len(file))
                size = generator.choice([1, 2, 7, generator.randint(0, len(file))])
                assert content.read(start, size) == file[start : start + size], (start, size)

    def test_the_file_contains_the_values(self) -> None:
        for presented, _ in self.presented():
            values = self.read(read_all(self.view.content(presented)))
            if values is None:
                return
            expected = np.asarray(presented.array[...])
            assert values.reshape(-1).tolist() == expected.reshape(-1).tolist()


def read_all(content: VirtualFileContent) -> bytes:
    return content.read(0, content.size)
