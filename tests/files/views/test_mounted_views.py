"""All views through a real mount, opened by their readers."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import h5py
import numpy as np
import rasterio
import tifffile

import zarrfs
from tests.files.views.images import image_attributes
from tests.files.views.presented import sample
from tests.files.views.test_contract import READERS
from tests.mount.mounted import mounted, needs_fuse
from zarrfs.files.views import all_views

pytestmark = needs_fuse


def test_each_reader_reads_the_elements_from_a_mount(tmp_path: Path) -> None:
    data = sample("<u2", (4, 5, 6))
    group = zarrfs.create_group(tmp_path / "s.zarr", zarr_format=2)
    group.attrs.update(image_attributes("zyx", path="img"))
    group.create_array("img", data=data, chunks=(2, 3, 4))
    table = np.array([(1, b"a,b"), (2, b"c")], [("n", "<i4"), ("text", "S3")])
    group.create_array("table", data=table, chunks=1)
    with mounted(tmp_path / "s.zarr", tmp_path / "mnt", "--views", "all") as mount:
        listed = set(os.listdir(mount))
        for suffix, reader in READERS.items():
            assert f"img{suffix}" in listed
            np.testing.assert_array_equal(reader(mount / f"img{suffix}"), data, suffix)
        for view in all_views():
            path = mount / f"img{view.suffix}"
            if path.exists():
                assert path.stat().st_size == len(path.read_bytes()), view.suffix
        assert "img.planes" in listed
        planes = [tifffile.imread(path) for path in sorted((mount / "img.planes").iterdir())]
        assert np.array_equal(planes, data)
        with (mount / "table.csv").open(newline="") as file:
            assert [row[1:] for row in csv.reader(file)] == [["n", "text"], ["1", "a,b"], ["2", "c"]]
        assert (mount / "table.csv").stat().st_size == len((mount / "table.csv").read_bytes())


def test_programs_read_parts_of_large_files(tmp_path: Path) -> None:
    """The file has more than 4 GiB. Almost all of its chunks are missing."""
    shape = (3000, 1024, 1024)
    array = zarrfs.create_array(
        tmp_path / "s.zarr",
        "img",
        shape=shape,
        chunks=(1, 512, 512),
        dtype="<u2",
        fill_value=9,
        dimension_names=["z", "y", "x"],
        dimension_units=["2 um", "0.5 um", "0.5 um"],
    )
    array[2999, 1000] = np.arange(1024)
    array[1500, 3, :5] = 1, 2, 3, 4, 5
    with mounted(tmp_path / "s.zarr", tmp_path / "mnt") as mount:
        for suffix in (".tif", ".ome.tif"):
            mapped = tifffile.memmap(mount / f"img{suffix}", mode="r")
            assert mapped.shape == shape
            assert mapped[2999, 1000].tolist() == list(range(1024))
            assert mapped[1500, 3, :7].tolist() == [1, 2, 3, 4, 5, 9, 9]
            del mapped
        with h5py.File(mount / "img.h5", locking=False) as file:
            assert file["img"][2999, 1000, 1020:].tolist() == [1020, 1021, 1022, 1023]
            assert file["img"].attrs["element_size_um"].tolist() == [2, 0.5, 0.5]
        with rasterio.open(mount / "img.vrt") as file:
            window = rasterio.windows.Window(0, 3, 7, 1)
            assert file.read(1501, window=window).tolist() == [[1, 2, 3, 4, 5, 9, 9]]
        assert tifffile.imread(mount / "img.planes" / "z2999.tif")[1000].tolist() == list(range(1024))
