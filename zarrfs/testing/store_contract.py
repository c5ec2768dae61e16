"""The contract of stores (``zarrfs.storage.Store``) as tests that run on any store.

The tests need neither pytest nor another test library. Their assertions are readable in the reports of pytest after
``pytest.register_assert_rewrite("zarrfs.testing")`` in a ``conftest.py``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise

from zarrfs.engine.stores.base import Buffer, ByteRange, Store, ValueTooLargeError
from zarrfs.engine.stores.wrappers.wrapper import ReadOnlyStore
from zarrfs.errors import KeyNameError, ReadOnlyError, StoreError
from zarrfs.testing.contracts import run_tests

__all__ = ["StoreTests", "check_store"]

INVALID_KEYS = ("", "/", "/a", "a/", "a//b", "..", "../a", "a/../b", "a/..", ".", "a/./b", "a\0b")


def check_store(open_store: Callable[[], Store], suite: type[StoreTests] | None = None) -> None:
    """Run the contract. ``open_store`` is called once for each test and returns a new, empty, writable store.

    ``suite`` is a subclass of ``StoreTests`` (default: itself). Raises ExceptionGroup with the error of each test that
    has failed; the name of the test is a note of the error.
    """

    def run(test: Callable[[Store], None]) -> None:
        with open_store() as store:
            test(store)

    run_tests((suite or StoreTests)(), run, "The store does not keep the contract")


class StoreTests:
    """The contract of a store. Subclass it and define a fixture ``store`` that returns a new, empty, writable store.

    Example, for pytest::

        class TestMyStore(StoreTests):
            @pytest.fixture
            def store(self, tmp_path):
                with MyStore(tmp_path) as store:
                    yield store

    The attributes state what a store does not support.
    """

    refused_keys: frozenset[str] = frozenset()
    """Those keys of ``unusual_keys`` that the store may refuse with StoreError."""
    stores_empty_values: bool = True
    """Whether values can have no bytes. Otherwise the store refuses them with StoreError."""
    unusual_keys: frozenset[str] = frozenset(
        {"...", "a/...b", " ", "a b", "-x", "a:b", "%2F", "é", "e\u0301", "{x}", "a\nb", "a?b#c"}
    )

    def test_whether_a_store_is_remote_does_not_depend_on_the_number_of_requests(self, store: Store) -> None:
        is_remote = store.is_remote
        assert is_remote or store.concurrency == 1
        store.limit_requests(1)
        assert store.is_remote == is_remote

    # -- values ------------------------------------------------------------------------------------------------

    def test_a_stored_value_is_returned(self, store: Store) -> None:
        values: tuple[Buffer, ...] = (
            b"",
            b"x",
            bytes(range(256)) * 1000,
            bytearray(b"ab"),
            memoryview(b"abc")[1:],
        )
        for value in values:
            if not value and not self.stores_empty_values:
                with raises(StoreError):
                    store.set("a/b/c", value)
                continue
            store.set("a/b/c", value)
            stored = store.get("a/b/c")
            assert stored is not None
            assert bytes(stored) == bytes(value)
            assert store.size("a/b/c") == len(bytes(value))
            assert store.exists("a/b/c")

    def test_set_parts_stores_the_concatenated_parts(self, store: Store) -> None:
        store.set_parts("a/b/c", [b"12", bytearray(b"3"), b"", memoryview(b"456")])
        assert read(store, "a/b/c") == b"123456"

    def test_changing_the_buffer_after_set_does_not_change_the_stored_value(self, store: Store) -> None:
        value = bytearray(b"before")
        store.set("a/b", value)
        store.set_parts("a/c", [value, memoryview(value)])
        value[:] = b"after."
        assert read(store, "a/b") == b"before"
        assert read(store, "a/c") == b"beforebefore"

    def test_missing_keys_are_none(self, store: Store) -> None:
        store.set("a/b", b"1")
        for key in ("x", "a", "a/x", "a/b/c", "A/B", "x" * 300, "a/" + "y" * 300):
            assert store.get(key) is None
            assert store.get_ranges(key, [ByteRange(0, 1)]) is None
            assert store.get_into(key, memoryview(bytearray(1))) is None
            assert store.size(key) is None
            assert not store.exists(key)

    def test_ranges_are_clipped_to_the_value(self, store: Store) -> None:
        value = bytes(range(100))
        store.set("a", value)
        expected = {
            ByteRange(0, 10): value[:10],
            ByteRange(90, 20): value[90:],
            ByteRange(50): value[50:],
            ByteRange(-7): value[-7:],
            ByteRange(-200): value,
            ByteRange(200, 5): b"",
            ByteRange(3, 0): b"",
        }
        parts = store.get_ranges("a", list(expected))
        assert parts is not None
        assert [bytes(part) for part in parts] == list(expected.values())
        assert store.get_ranges("a", []) == []
        clipped = store.get_ranges("a", [ByteRange(0, 2**60)])
        assert clipped is not None
        assert bytes(clipped[0]) == value

    def test_get_into_fills_a_buffer_of_the_right_size(self, store: Store) -> None:
        store.set("a", b"abcd")
        memory = bytearray(4)
        assert store.get_into("a", memoryview(memory)) == 4
        assert memory == b"abcd"
        for wrong_size in (0, 3, 5):
            assert store.get_into("a", memoryview(bytearray(wrong_size))) == 4

    def test_a_stamp_changes_with_the_value(self, store: Store) -> None:
        store.set("a", b"1")
        stamps = [store.stamp("a")]
        assert store.stamp("a") == stamps[0]
        for value in (b"22", b"1", b"333"):
            store.set("a", value)
            stamps.append(store.stamp("a"))
        if stamps[0] is not None:
            assert all(earlier != later for earlier, later in pairwise(stamps))

    def test_flush_does_not_change_values_or_stamps(self, store: Store) -> None:
        store.set("a/b", b"1")
        stamp = store.stamp("a/b")
        store.flush()
        assert read(store, "a/b") == b"1"
        assert store.stamp("a/b") == stamp
        store.set("a/b", b"22")
        store.set("c", b"3")
        store.flush()
        store.delete("c")
        assert read(store, "a/b") == b"22"
        assert stamp is None or store.stamp("a/b") != stamp
        assert list(store.list_prefix()) == ["a/b"]
        assert store.clean(dry_run=True) == []

    # -- keys --------------------------------------------------------------------------------------------------

    def test_listings_contain_one_level_or_all_keys(self, store: Store) -> None:
        for key in ("zarr.json", "a/zarr.json", "a/c/0/0", "a/c/0/1", "ab/x", "größe/日本"):
            store.set(key, b"1")
        root = store.list_dir()
        assert root.keys == ["zarr.json"]
        assert root.prefixes == ["a", "ab", "größe"]
        assert store.list_dir("a") == (["zarr.json"], ["c"])
        assert store.list_dir("a/c/0") == (["0", "1"], [])
        assert store.list_dir("nothing") == ([], [])
        assert sorted(store.list_prefix("a")) == ["a/c/0/0", "a/c/0/1", "a/zarr.json"]
        assert len(list(store.list_prefix())) == 6
        usage = store.usage("a")
        assert (usage.keys, usage.nbytes) == (3, 3)
        assert store.usage("nothing").keys == 0

    def test_keys_and_prefixes_are_deleted(self, store: Store) -> None:
        for key in ("a/1", "a/b/2", "ab/3"):
            store.set(key, b"1")
        store.delete("a/1")
        store.delete("a/1")
        store.delete("missing/key")
        assert sorted(store.list_prefix()) == ["a/b/2", "ab/3"]
        store.delete_prefix("a")
        assert sorted(store.list_prefix()) == ["ab/3"]
        assert store.list_dir().prefixes == ["ab"]

    def test_move_prefix_moves_keys_and_replaces_existing_values(self, store: Store) -> None:
        for key in ("a/b/c", "a/b/d/e", "ab/c", "z"):
            store.set(key, key.encode())
        store.move_prefix("a/b", "x/y")
        assert sorted(store.list_prefix()) == ["ab/c", "x/y/c", "x/y/d/e", "z"]
        assert read(store, "x/y/d/e") == b"a/b/d/e"
        store.set("x/y/c", b"old")
        store.set("n/c", b"new")
        store.move_prefix("n", "x/y")
        assert read(store, "x/y/c") == b"new"
        store.move_prefix("x/y", "")
        assert sorted(store.list_prefix()) == ["ab/c", "c", "d/e", "z"]
        store.move_prefix("nothing", "q")
        store.move_prefix("", "all")
        assert sorted(store.list_prefix()) == ["all/ab/c", "all/c", "all/d/e", "all/z"]

    def test_move_prefix_to_a_target_below_it_retains_the_siblings_of_the_target(self, store: Store) -> None:
        for key in ("p", "q/r/s", "x/new/p"):
            store.set(key, key.encode())
        store.move_prefix("", "x/old")
        assert sorted(store.list_prefix()) == ["x/new/p", "x/old/p", "x/old/q/r/s"]
        assert read(store, "x/old/q/r/s") == b"q/r/s"
        store.move_prefix("x/old/q", "x/old/q/t/u")
        assert sorted(store.list_prefix()) == ["x/new/p", "x/old/p", "x/old/q/t/u/r/s"]

    def test_invalid_keys_are_refused(self, store: Store) -> None:
        for key in INVALID_KEYS:
            with raises(KeyNameError):
                store.set(key, b"1")
            with suppress(KeyNameError):
                assert store.get(key) is None
        assert list(store.list_prefix()) == []

    def test_unusual_keys_are_stored_unchanged_or_refused(self, store: Store) -> None:
        for key in sorted(self.unusual_keys):
            try:
                store.set(key, key.encode())
            except StoreError:
                assert key in self.refused_keys
        for key in store.list_prefix():
            assert read(store, key) == key.encode()
        assert self.unusual_keys - self.refused_keys <= set(store.list_prefix()) <= self.unusual_keys

    def test_a_key_that_is_not_unicode_is_stored_or_refused(self, store: Store) -> None:
        key = "a/\udcff\udcfe"  # the bytes ff fe in a file name on Linux
        is_stored = False
        with suppress(StoreError, KeyNameError):
            store.set(key, b"1")
            is_stored = True
        if is_stored:
            assert read(store, key) == b"1"
            assert list(store.list_prefix("a")) == [key]
            store.delete(key)
        with suppress(StoreError, KeyNameError):
            assert store.get(key) is None
        assert list(store.list_prefix()) == []

    # -- threads, read-only stores, closing --------------------------------------------------------------------

    def test_concurrent_reads_and_writes_return_whole_values(self, store: Store) -> None:
        errors: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for round_ in range(30):
                    store.set(f"own/{number}", bytes([number]) * (round_ + 1))
                    store.set("shared", bytes([number]) * 1000)
                    assert read(store, f"own/{number}") == bytes([number]) * (round_ + 1)
                    assert len(set(read(store, "shared"))) == 1
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors

    def test_a_read_only_wrapper_refuses_changes(self, store: Store) -> None:
        store.set("a", b"1")
        wrapped = ReadOnlyStore(store)
        assert wrapped.read_only
        changes: tuple[Callable[[], object], ...] = (
            lambda: wrapped.set("a", b"2"),
            lambda: wrapped.delete("a"),
            lambda: wrapped.delete_prefix(""),
        )
        for change in changes:
            with raises(ReadOnlyError):
                change()
        assert read(wrapped, "a") == b"1"

    def test_a_value_that_is_larger_than_a_limit_is_not_returned(self, store: Store) -> None:
        store.set("a/b", b"12345")
        for limit in (None, 5, 6, 1 << 40):
            value = store.get_within("a/b", limit)
            assert value is not None
            assert bytes(value) == b"12345"
        for limit in (0, 4):
            with raises(ValueTooLargeError, "5 bytes"):
                store.get_within("a/b", limit)
        assert store.get_within("a/c", 0) is None

    def test_a_store_can_be_closed_twice(self, store: Store) -> None:
        store.set("a", b"1")
        store.close()
        store.close()
        assert store.url in repr(store)

    def test_a_closed_store_refuses_every_operation(self, store: Store) -> None:
        store.set("a/b", b"1")
        assert read(store, "a/b") == b"1"
        url = store.url
        store.close()
        operations: tuple[Callable[[], object], ...] = (
            lambda: store.get("a/b"),
            lambda: store.get("missing/key"),
            lambda: store.get_within("a/b", 10),
            lambda: store.get_into("a/b", memoryview(bytearray(1))),
            lambda: store.get_ranges("a/b", [ByteRange(0, 1)]),
            lambda: store.size("a/b"),
            lambda: store.exists("a/b"),
            lambda: store.stamp("a/b"),
            lambda: store.version("a/b"),
            lambda: store.list_dir(),
            lambda: store.list_dir("a"),
            lambda: list(store.list_prefix()),
            lambda: store.usage(),
            lambda: store.set("c", b"1"),
            lambda: store.set_parts("c", [b"1", b"2"]),
            lambda: store.delete("a/b"),
            lambda: store.delete("missing/key"),
            lambda: store.delete_prefix("a"),
            lambda: store.move_prefix("a", "d"),
        )
        for operation in operations:
            with raises(StoreError, "is closed; open it again"):
                operation()
        assert store.url == url


def read(store: Store, key: str) -> bytes:
    """Return a value that exists."""
    value = store.get(key)
    assert value is not None, f"{key!r} is missing"
    return bytes(value)


@contextmanager
def raises(expected: type[Exception], text: str = "") -> Iterator[None]:
    """Fail unless the block raises an error of exactly this class, whose message contains ``text``."""
    caught: Exception | None = None
    try:
        yield
    except expected as error:
        caught = error
    assert type(caught) is expected, f"expected {expected.__name__}, found {caught!r}"
    assert text in str(caught)
