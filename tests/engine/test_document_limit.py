"""The limit on the size of metadata documents is enforced before they are read, and can be set in three ways."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.testing import CountingStore
from zarrfs.tools import consolidate_metadata

LIMIT = 5000


def store_with_attributes(nbytes: int) -> MemoryStore:
    store = MemoryStore()
    zarrfs.create_group(store, attributes={"text": "x" * nbytes})
    return store


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_document_above_the_limit_is_refused_without_reading_it(zarr_format: int) -> None:
    inner = MemoryStore()
    zarrfs.create_group(inner, attributes={"text": "x" * 10_000}, zarr_format=zarr_format)
    store = CountingStore(inner)
    with pytest.raises(zarrfs.MetadataError, match="at most 5,000 bytes, found 10,"):
        zarrfs.open(store, access=zarrfs.Access(max_document=LIMIT))
    assert store.bytes_read < LIMIT
    assert len(zarrfs.open(store, access=zarrfs.Access(max_document=20_000)).attrs["text"]) == 10_000


def test_a_remote_document_is_read_only_up_to_the_limit() -> None:
    store = CountingStore(store_with_attributes(100_000))
    store.concurrency = 8
    store.is_remote = True
    with pytest.raises(zarrfs.MetadataError, match="too large"):
        zarrfs.open(store, access=zarrfs.Access(max_document=LIMIT))
    assert store.bytes_read <= LIMIT + 1


def test_the_limit_is_exact() -> None:
    store = store_with_attributes(1000)
    size = store.size("zarr.json")
    assert size is not None
    zarrfs.open(store, access=zarrfs.Access(max_document=size))
    with pytest.raises(zarrfs.MetadataError, match="too large"):
        zarrfs.open(store, access=zarrfs.Access(max_document=size - 1))


def test_the_limit_of_a_group_applies_to_members_and_to_changes() -> None:
    store = store_with_attributes(10)
    root = zarrfs.open_group(store, mode="r+")
    root.create_array("a", shape=3, dtype="u1", attributes={"text": "x" * 10_000})
    with pytest.raises(zarrfs.MetadataError, match="too large"):
        zarrfs.open_group(store, access=zarrfs.Access(max_document=LIMIT))["a"]
    big = zarrfs.open_array(store, "a", "r+", access=zarrfs.Access(max_document=1 << 20))
    big.attrs["more"] = 1
    big.resize(5)
    assert zarrfs.open_array(store, "a").shape == (5,)


def test_the_limit_applies_to_consolidated_metadata_read_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format=2)
    root.create_array("a", shape=3, dtype="u1", attributes={"text": "x" * 3000})
    consolidate_metadata(store)
    remote = CountingStore(store)
    remote.concurrency = 8
    remote.is_remote = True
    zarrfs.open_group(remote, access=zarrfs.Access(max_document=3200))["a"]
    assert "too large" in caplog.text


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_document_in_an_archive_larger_than_declared_is_refused(compression: int, tmp_path: Path) -> None:
    document = b'{"zarr_format": 3, "node_type": "group", "attributes": {"text": "%s"}}' % (b"x" * 10**6)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", compression) as archive:
        archive.writestr("zarr.json", document)
    with pytest.raises(zarrfs.MetadataError, match="too large"):
        zarrfs.open(tmp_path / "a.zip", access=zarrfs.Access(max_document=10**5))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="max_document"):
        zarrfs.Access(max_document=limit)


def test_the_environment_and_the_option_set_the_limit(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "a.zarr", attributes={"text": "x" * 10_000})

    def run(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "zarrfs", "info", str(tmp_path / "a.zarr"), *options]
        environment = {**os.environ, **environment}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)

    assert run().returncode == 0
    assert run("--max-document", "1M", ZARRFS_MAX_DOCUMENT="5000").returncode == 0
    for refused in (run("--max-document", "5000"), run(ZARRFS_MAX_DOCUMENT="5000")):
        assert refused.returncode == 1
        assert "at most 5,000 bytes" in refused.stderr
    wrong = run(ZARRFS_MAX_DOCUMENT="much")
    assert wrong.returncode == 1
    assert "expected a number of bytes" in wrong.stderr
