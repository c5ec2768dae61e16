"""The data sets that examples of the documentation use. Each is small, and written in a fraction of a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import zarrfs
from zarrfs.synthetic import make_picture, write_image

__all__ = ["SAMPLES", "write_sample"]


def _image(path: Path) -> None:
    write_image(str(path), make_picture((24, 64, 64)), levels=3, chunks=(8, 32, 32), name="cells")


def _stack(path: Path) -> None:
    """A single volume without metadata of an image."""
    zarrfs.create_array(str(path), data=make_picture((16, 64, 64)).intensities[0], chunks=(8, 32, 32))


def _table(path: Path) -> None:
    zarrfs.create_array(str(path), data=np.arange(200).reshape(100, 2) / 4, chunks=(50, 2))


def _scan(path: Path) -> None:
    """A file of a microscope."""
    import tifffile

    metadata = {"axes": "ZYX", "PhysicalSizeX": 0.65, "PhysicalSizeY": 0.65, "PhysicalSizeZ": 2.0}
    tifffile.imwrite(path, make_picture((8, 48, 64)).intensities[0], ome=True, metadata=metadata)


def _slices(path: Path) -> None:
    from PIL import Image

    path.mkdir()
    for number, plane in enumerate(make_picture((3, 32, 48)).intensities[0]):
        Image.fromarray(plane).save(path / f"slice{number}.png")


def _planes(path: Path) -> None:
    import tifffile

    path.mkdir()
    for channel in ("DAPI", "GFP"):
        for number, plane in enumerate(make_picture((3, 32, 48)).intensities[0]):
            tifffile.imwrite(path / f"cells_{channel}_z{number + 1}.tif", plane)


def _old(path: Path) -> None:
    """A hierarchy of Zarr format 2."""
    group = zarrfs.create_group(str(path), zarr_format=2, attributes={"instrument": "A"})
    group.create_array("a", data=np.arange(100).reshape(10, 10), chunks=(5, 5))


def _broken(path: Path) -> None:
    """An array with a corrupt chunk."""
    zarrfs.create_array(str(path), data=np.arange(100).reshape(10, 10), chunks=(5, 5), compressors="gzip")
    (path / "c" / "1" / "1").write_bytes(b"not gzip")


SAMPLES: dict[str, Callable[[Path], None]] = {
    "image.zarr": _image,
    "image.ome.zarr": _image,
    "first.zarr": _stack,
    "second.zarr": _stack,
    "stack.zarr": _stack,
    "table.zarr": _table,
    "scan.ome.tif": _scan,
    "slices": _slices,
    "planes": _planes,
    "old.zarr": _old,
    "broken.zarr": _broken,
}


def write_sample(name: str, directory: Path) -> None:
    """Write a data set, or make an empty directory if the name ends with a slash."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if name.endswith("/"):
        path.mkdir(exist_ok=True)
    else:
        SAMPLES[path.name](path)
