"""The stamps by which a mount notices that metadata documents of a node have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

import zarrfs
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.mount.tree.document_stamps import document_stamps

CHANGES = [
    ("array", 2, ".zarray"),
    ("array", 2, ".zattrs"),
    ("array", 2, "zarr.json"),
    ("array", 3, "zarr.json"),
    ("group", 2, ".zgroup"),
    ("group", 2, ".zattrs"),
    ("group", 2, "zarr.json"),
    ("group", 3, "zarr.json"),
]


class StoreWithLatency(LocalStore):
    """A directory that has the concurrency of a server."""

    concurrency = 64
    is_remote = True


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize(("kind", "zarr_format", "name"), CHANGES)
def test_a_changed_or_new_document_changes_the_stamps(
    kind: str, zarr_format: int, name: str, is_known: bool, tmp_path: Path
) -> None:
    zarrfs.create_group(tmp_path, zarr_format=zarr_format)
    if kind == "array":
        zarrfs.create_array(tmp_path, "node", shape=(2,), dtype="u1", zarr_format=zarr_format)
    else:
        zarrfs.create_group(tmp_path, "node", zarr_format=zarr_format)
    store = LocalStore(str(tmp_path))
    known = zarr_format if is_known else None
    before = document_stamps(store, "node", known)
    assert before is not None
    assert document_stamps(store, "node", known) == before
    (tmp_path / "node" / "c").mkdir(exist_ok=True)
    assert document_stamps(store, "node", known) == before
    document = tmp_path / "node" / name
    document.write_bytes((document.read_bytes() if document.exists() else b"{}") + b"\n")
    assert document_stamps(store, "node", known) not in (before, None)


def test_there_are_no_stamps_without_documents_or_with_latency(tmp_path: Path) -> None:
    store = LocalStore(str(tmp_path))
    assert document_stamps(store, "missing", 2) is None
    assert document_stamps(store, "missing", None) is None
    zarrfs.create_group(tmp_path, zarr_format=3)
    assert document_stamps(store, "", 3) is not None
    assert document_stamps(StoreWithLatency(str(tmp_path)), "", 3) is None
