"""No path, key or name accesses files outside a store, whether it comes from a user, a document or a zip file."""

from __future__ import annotations

import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

import zarrfs
from tests.faults.files import GROUP, write
from tests.faults.hostile import v2, v3
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore

PATHS_OUTSIDE = ["..", "../secret", "a/../../secret", "/../secret", "a/..", "./../secret", "a\0b"]


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A group, and an array next to it that must not be accessible through the group."""
    write(tmp_path / "secret", v3())
    write(tmp_path / "store", GROUP)
    write(tmp_path / "store" / "image", v3())
    return tmp_path / "store"


@pytest.mark.parametrize("path", PATHS_OUTSIDE)
def test_a_path_outside_the_store_cannot_be_opened(inside: Path, path: str) -> None:
    with pytest.raises(zarrfs.ZarrError):
        zarrfs.open(inside, path)
    with pytest.raises(zarrfs.ZarrError):
        zarrfs.open_group(inside)[path]


@pytest.mark.parametrize("path", PATHS_OUTSIDE)
def test_nothing_is_created_outside_the_store(inside: Path, path: str) -> None:
    before = sorted(inside.parent.rglob("*"))
    with pytest.raises(zarrfs.ZarrError):
        zarrfs.create_array(inside, path, shape=(2,), dtype="u1")
    with pytest.raises(zarrfs.ZarrError):
        zarrfs.create_group(inside, path)
    assert sorted(inside.parent.rglob("*")) == before


@pytest.mark.parametrize("path", PATHS_OUTSIDE)
def test_nothing_is_moved_or_deleted_outside_the_store(inside: Path, path: str) -> None:
    before = sorted(inside.parent.rglob("*"))
    group = zarrfs.open_group(inside, mode="r+")
    with pytest.raises(zarrfs.ZarrError):
        group.move("image", path)
    with pytest.raises(zarrfs.ZarrError):
        del group[path]
    assert sorted(inside.parent.rglob("*")) == before


@pytest.mark.parametrize("key", [*PATHS_OUTSIDE, "", "/", "a//b", "a/", "/a", "."])
@pytest.mark.parametrize("kind", ["local", "memory"])
def test_a_store_refuses_invalid_keys(inside: Path, kind: str, key: str) -> None:
    store = LocalStore(inside) if kind == "local" else MemoryStore({"a": b"x"})
    before = sorted(inside.parent.rglob("*"))
    for lookup in (store.get, store.size):
        with suppress(zarrfs.KeyNameError):
            assert lookup(key) is None
    with suppress(zarrfs.KeyNameError):
        store.delete(key)
    with pytest.raises(zarrfs.KeyNameError):
        store.set(key, b"x")
    assert sorted(inside.parent.rglob("*")) == before


def test_consolidated_metadata_of_nodes_outside_the_group_is_ignored(inside: Path) -> None:
    """Entries outside the group are ignored, and the group can be opened."""
    v2_document = json.loads(v2()[".zarray"])
    consolidated = {
        "zarr_consolidated_format": 1,
        "metadata": {
            ".zgroup": {"zarr_format": 2},
            "../secret/.zarray": v2_document,
            "/etc/.zarray": v2_document,
            "a/../../secret/.zarray": v2_document,
        },
    }
    store = {".zgroup": b'{"zarr_format": 2}', ".zmetadata": json.dumps(consolidated).encode()}
    group = zarrfs.open_group(store)
    assert [name for name in group if ".." in name or name.startswith("/")] == []


def test_zip_members_outside_the_archive_are_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in {**GROUP, "image/zarr.json": v3()["zarr.json"]}.items():
            archive.writestr(key, value)
        for name in ("../zarr.json", "/zarr.json", "a/../../b/zarr.json"):
            archive.writestr(name, v3()["zarr.json"])
    group = zarrfs.open_group(path)
    assert list(group) == ["image"]
    assert "leaves the archive" in caplog.text
    group.store.close()
