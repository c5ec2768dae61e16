"""The contract suite of all stores and wrappers in ``every_store.STORES``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.engine.stores.every_store import STORES, stop_all_servers
from zarrfs.engine.stores.base import Buffer, ByteRange, Store
from zarrfs.engine.stores.databases.mongodb import MongoDBStore
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.remote.backends import is_remote_url
from zarrfs.errors import KeyNameError, ZarrError
from zarrfs.testing import FailingStore, StoreTests, check_store


@pytest.fixture(scope="module", autouse=True)
def stop_servers() -> Iterator[None]:
    yield
    stop_all_servers()


URL_DELIMITERS = frozenset({"a\nb", "a?b#c"})

STORES_WITH_URLS = (
    "s3",
    "azure",
    "gs",
    "fsspec, s3",
    "fsspec, ftp",
    "fsspec, sftp",
    "fsspec, azure",
    "fsspec, gcs",
    "zarr-python, obstore",
)
"""FTP commands cannot contain line breaks, nor can keys of the S3 test server. Azure and SFTP parse URL delimiters."""

REMOTE_STORES = (
    "redis",
    "mongodb",
    "zarr-python, wrapper",
    "zarr-python, obstore",
    "zarr-python, fsspec",
    *("s3", "azure", "gs"),
    *("fsspec, s3", "fsspec, ftp", "fsspec, sftp", "fsspec, azure", "fsspec, gcs"),
)


class TestStores(StoreTests):
    """Every store and wrapper of ours."""

    @pytest.fixture(params=STORES)
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
        self.refused_keys = URL_DELIMITERS if request.param in STORES_WITH_URLS else frozenset()
        self.stores_empty_values = request.param != "icechunk"
        with STORES[request.param](tmp_path) as opened:
            yield opened

    def test_a_store_on_a_server_is_remote(self, store: Store, request: pytest.FixtureRequest) -> None:
        assert store.is_remote == (request.node.callspec.params["store"] in REMOTE_STORES)

    def test_concurrent_reads_and_writes_return_whole_values(self, store: Store) -> None:
        if isinstance(store, MongoDBStore):
            pytest.skip("mongomock does not support threads")
        super().test_concurrent_reads_and_writes_return_whole_values(store)


class FaultyStore(MemoryStore):
    """Ignores invalid keys, and deletes nothing."""

    def set(self, key: str, value: Buffer) -> None:
        with suppress(KeyNameError):
            super().set(key, value)

    def delete(self, key: str) -> None:
        """Do nothing."""


def test_check_store_runs_the_contract_without_pytest() -> None:
    check_store(MemoryStore)
    with pytest.raises(ExceptionGroup, match="does not keep the contract") as caught:
        check_store(FaultyStore)
    names = [note for error in caught.value.exceptions for note in error.__notes__]
    assert "in StoreTests.test_keys_and_prefixes_are_deleted" in names
    assert "in StoreTests.test_invalid_keys_are_refused" in names
    assert "in StoreTests.test_a_stored_value_is_returned" not in names


@pytest.mark.parametrize(
    ("url", "is_remote"),
    [
        ("memory://a", False),
        ("local:///a", False),
        ("zip::file:///a.zip", False),
        ("simplecache::file:///a", False),
        ("ftp://host/a", True),
        ("zip::https://host/a.zip", True),
        ("zip://a.zarr::sftp://host/a.zip", True),
        ("simplecache::s3://bucket/a", True),
        ("reference::/a.json", True),
        ("reference://", True),
    ],
)
def test_whether_a_url_is_remote_is_decided_by_the_innermost_protocol(url: str, is_remote: bool) -> None:
    assert is_remote_url(url) == is_remote


class StoreModel(RuleBasedStateMachine):
    """Random sequences of operations on a store and on a dictionary."""

    make: Callable[[], Store]
    keys = st.sampled_from(["a", "b", "c/d", "c/e", "c/f/g", "h/i/j/k"])

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).make()
        self.model: dict[str, bytes] = {}

    @rule(key=keys, value=st.binary(max_size=20))
    def set(self, key: str, value: bytes) -> None:
        self.store.set(key, value)
        self.model[key] = value

    @rule(key=keys)
    def delete(self, key: str) -> None:
        self.store.delete(key)
        self.model.pop(key, None)

    @rule(prefix=st.sampled_from(["c", "h/i", "c/f", "nothing"]))
    def delete_prefix(self, prefix: str) -> None:
        self.store.delete_prefix(prefix)
        self.model = {key: value for key, value in self.model.items() if not key.startswith(prefix + "/")}

    @rule(key=keys, start=st.integers(-25, 25), length=st.none() | st.integers(0, 25))
    def read(self, key: str, start: int, length: int | None) -> None:
        byte_range = ByteRange(start, None if start < 0 else length)
        values = self.store.get_ranges(key, [byte_range])
        value = self.model.get(key)
        if value is None:
            assert values is None
            return
        first, stop = byte_range.resolve(len(value))
        assert values is not None
        assert bytes(values[0]) == value[first:stop]

    @invariant()
    def store_equals_model(self) -> None:
        assert sorted(self.store.list_prefix()) == sorted(self.model)
        for key, value in self.model.items():
            assert bytes(self.store.get(key) or b"") == value
        prefixes = {key.partition("/")[0] for key in self.model if "/" in key}
        assert set(self.store.list_dir().prefixes) == prefixes

    def teardown(self) -> None:
        self.store.close()


@pytest.mark.parametrize(
    "kind", ["local", "memory", "zip", "zip, existing", "sqlite", "lmdb", "redis", "mongodb"]
)
def test_random_operations_match_a_dictionary(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    class Machine(StoreModel):
        make = staticmethod(lambda: STORES[kind](tmp_path_factory.mktemp("model")))

    run_state_machine_as_test(
        Machine, settings=settings(max_examples=25, stateful_step_count=15, deadline=None)
    )


def test_a_failing_store_raises_the_given_errors() -> None:
    store = FailingStore(MemoryStore(), lambda operation, key: OSError(5, "broken") if key == "bad" else None)
    with pytest.raises(OSError, match="broken"):
        store.get("bad")
    assert store.get("good") is None


def test_a_failed_write_to_the_file_system_is_a_zarr_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    local = LocalStore(tmp_path)
    with pytest.raises(ZarrError, match="cannot be written"):
        local.set("file/below", b"1")
    assert (tmp_path / "file").read_text() == "x"
