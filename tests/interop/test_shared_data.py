"""The engine and a mount read the same values from real microscopy data as zarr-python."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import LocalStore, ZipStore

import zarrfs
from tests.interop.samples import same_bits
from tests.interop.zarr_python import quietly
from tests.mount.mounted import mounted, needs_fuse

NAMES = [
    "dna_conf_wf_v04.ome.zarr",
    "golgi_timelapse_v05.ome.zarr",
    "nuclei_labels.zarr.zip",
    "xy_8bit__nuclei_PLK1_control.ome.zarr",
]


@pytest.fixture(params=NAMES)
def location(request: pytest.FixtureRequest, shared_data: Path) -> Path:
    path: Path = shared_data / request.param
    assert path.exists(), f"{path} does not exist"
    return path


def arrays_by_zarr_python(location: Path) -> Iterator[tuple[str, Any]]:
    """Yield the path and all data of every array."""
    store: Any = (
        ZipStore(location, mode="r") if location.suffix == ".zip" else LocalStore(location, read_only=True)
    )
    with quietly():
        root = zarr.open_group(store, mode="r")
        members = sorted(name for name, node in root.members(max_depth=None) if isinstance(node, zarr.Array))
        for name in members:
            yield name, np.asarray(root[name][...])
    store.close()


def test_the_engine_reads_the_same_values(location: Path) -> None:
    array_count = 0
    for name, expected in arrays_by_zarr_python(location):
        assert same_bits(zarrfs.open_array(location, name, cache_size=0)[...], expected), name
        array_count += 1
    assert array_count


def test_the_engine_lists_the_same_arrays(location: Path) -> None:
    expected = [name for name, _ in arrays_by_zarr_python(location)]
    group = zarrfs.open_group(location)
    assert sorted(name for name, node in group.walk() if isinstance(node, zarrfs.Array)) == expected


@needs_fuse
def test_the_mount_contains_the_same_values(location: Path, tmp_path: Path) -> None:
    array_count = 0
    with mounted(location, tmp_path / "mnt") as mountpoint:
        for name, expected in arrays_by_zarr_python(location):
            mapped = np.load(mountpoint / f"{name}.npy", mmap_mode="r")
            assert same_bits(mapped, expected), name
            raw = np.fromfile(mountpoint / f"{name}.raw", mapped.dtype).reshape(mapped.shape)
            assert same_bits(raw, expected), name
            array_count += 1
            del mapped
    assert array_count
