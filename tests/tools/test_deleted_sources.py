"""An array that is deleted while it is copied or exported is an error: its chunks would read as the fill value."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import WebServer
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError
from zarrfs.files.exporting import export
from zarrfs.testing import FailingStore
from zarrfs.tools import build_pyramid, convert, copy, rechunk

Run = Callable[[zarrfs.Array, Path], Any]

VALUES = np.arange(1, 601, dtype="u2").reshape(20, 30)
OLD = np.arange(7)


def copied_into_group(array: zarrfs.Array, target: Path) -> None:
    copy(array, zarrfs.open_group(target, mode="a"), "copy")


NEW_TARGETS: dict[str, Run] = {
    "convert": lambda array, target: convert(array, target),
    "convert --compressor": lambda array, target: convert(array, target, compressors="gzip"),
    "convert --verify": lambda array, target: convert(array, target, compressors="gzip", verify=True),
    "rechunk": lambda array, target: rechunk(array, target, chunks=(7, 7)),
    "pyramid": lambda array, target: build_pyramid(array, target, levels=2),
    "copy of zarr-python 2": copied_into_group,
    "export .png": lambda array, target: export(array, target / "a.png"),
}

REPLACED_TARGETS: dict[str, Run] = {
    "convert": lambda array, target: convert(array, target, if_exists="replace"),
    "pyramid": lambda array, target: build_pyramid(array, target, levels=2, if_exists="replace"),
    "copy of zarr-python 2": lambda array, target: copy(
        array, zarrfs.open_group(target.parent, mode="r+"), target.name, if_exists="replace"
    ),
}

FILES = ("a.npy", "a.npz", "a.tif", "a.nii.gz", "a.nhdr")


@pytest.fixture
def vanishing() -> zarrfs.Array:
    """An array that is deleted when its first chunk is read."""
    inner = MemoryStore()
    zarrfs.create_array(inner, data=VALUES, chunks=(10, 10))

    def delete(operation: str, key: str) -> None:
        if operation.startswith("get") and key.startswith("c/"):
            inner.delete_prefix("")

    return zarrfs.open_array(FailingStore(inner, delete))


@pytest.mark.parametrize("command", NEW_TARGETS)
def test_a_deleted_source_is_an_error(command: str, vanishing: zarrfs.Array, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="the array '/' was deleted by another program while it was"):
        NEW_TARGETS[command](vanishing, tmp_path)


@pytest.mark.parametrize("command", REPLACED_TARGETS)
def test_what_was_to_be_replaced_remains(command: str, vanishing: zarrfs.Array, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path).create_array("old", data=OLD)
    with pytest.raises(StoreError, match="was deleted by another program while it was"):
        REPLACED_TARGETS[command](vanishing, tmp_path / "old")
    assert zarrfs.open_array(tmp_path / "old")[...].tolist() == OLD.tolist()


@pytest.mark.parametrize("name", FILES)
def test_no_file_is_written(name: str, vanishing: zarrfs.Array, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(
        StoreError, match=r"was deleted by another program|have changed since the file was opened"
    ):
        export(vanishing, tmp_path / name, if_exists="replace")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(name, b"old")]


def test_an_array_with_consolidated_metadata_only_is_copied(tmp_path: Path) -> None:
    source = zarrfs.create_group(tmp_path / "g.zarr", zarr_format=2)
    source.create_array("a", data=VALUES)
    zarrfs.consolidate_metadata(tmp_path / "g.zarr")
    (tmp_path / "g.zarr/a/.zarray").unlink()
    with closing(WebServer(tmp_path)) as server:
        convert(f"{server.url}/g.zarr", tmp_path / "t.zarr")
    assert np.array_equal(zarrfs.open_array(tmp_path / "t.zarr/a")[...], VALUES)
