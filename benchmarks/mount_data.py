"""The data of the benchmark of the mount: volumes with different chunks, and groups of many small arrays."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from zarrfs import synthetic

__all__ = ["CHUNK_LENGTH", "THIN", "VOLUMES", "Volume", "make_many_arrays", "make_many_chunks", "make_volume"]

ITEM = np.dtype("<u2")

CHUNK_LENGTH = 2048
"""The number of elements of a chunk of ``make_many_chunks``: one page."""


@dataclass(frozen=True)
class Volume:
    """A uint16 volume and how it is stored. ``side`` is the edge length of the cube that the sizes are relative to."""

    name: str
    codec: str
    chunks: tuple[int, int, int]
    shards: tuple[int, int, int] | None = None
    shape: tuple[int, int, int] | None = None
    """The shape relative to a side of 512; None for a cube."""

    def stored_shape(self, side: int) -> tuple[int, int, int]:
        if self.shape is None:
            return (side, side, side)
        z, y, x = (max(1, length * side // 512) for length in self.shape)
        return z, y, x

    def options(self, side: int) -> dict[str, Any]:
        def scaled(lengths: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(max(1, min(n, n * side // 512 if n > 64 else n)) for n in lengths)

        chunks = tuple(map(min, scaled(self.chunks), self.stored_shape(side)))
        options: dict[str, Any] = {"chunks": chunks}
        if self.shards is not None:
            options["shards"] = tuple(
                -(-n // chunk) * chunk for n, chunk in zip(scaled(self.shards), chunks, strict=True)
            )
        if self.codec == "zstd":
            options["compressors"] = zarrfs.codecs.ZstdCodec(level=1)
        elif self.codec == "Blosc-LZ4":
            options["compressors"] = zarrfs.codecs.BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
        return options


VOLUMES = (
    Volume("Blosc-LZ4, chunks of 64", "Blosc-LZ4", (64, 64, 64)),
    Volume("zstd, chunks of 64", "zstd", (64, 64, 64)),
    Volume("Blosc-LZ4, chunks of 64 in shards of 256", "Blosc-LZ4", (64, 64, 64), (256, 256, 256)),
    Volume("Blosc-LZ4, chunks of 1 x 2048 x 2048", "Blosc-LZ4", (1, 2048, 2048), shape=(32, 2048, 2048)),
)
THIN = VOLUMES[3]


@contextmanager
def new_directory(target: Path) -> Iterator[Path]:
    """Yield the path of a directory to write, which gets the name ``target`` when it is complete."""
    print(f"writing {target}", file=sys.stderr)
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    yield partial
    partial.rename(target)


def make_volume(volume: Volume, side: int, scratch: Path) -> Path:
    """Return the directory of a volume, which is written if it does not exist."""
    name = volume.name.replace(" ", "-").replace(",", "")
    target = scratch / f"mount-{name}-{side}" / "a"
    if target.exists():
        return target
    with new_directory(target) as partial:
        shape = volume.stored_shape(side)
        array = zarrfs.create_array(partial, shape=shape, dtype=ITEM, **volume.options(side))
        base = synthetic.volume((min(64, shape[0]), shape[1], shape[2]), seed=1).astype(ITEM)
        step = max(array.shards[0] if array.shards else 0, base.shape[0])
        for start in range(0, shape[0], step):
            count = min(step, shape[0] - start)
            array[start : start + count] = np.resize(base, (count, *shape[1:]))
        array.close()
    return target


def make_many_arrays(count: int, scratch: Path) -> Path:
    """Return the directory of a group of ``count`` arrays of one chunk, which is written if it does not exist."""
    target = scratch / f"mount-arrays-{count}"
    if target.exists():
        return target
    with new_directory(target) as partial:
        zarrfs.create_group(partial)
        zarrfs.create_array(partial / "first", data=np.arange(1000, dtype=ITEM)).attrs["index"] = 0
        document = json.loads((partial / "first" / "zarr.json").read_text())
        chunk = next(
            path for path in (partial / "first").rglob("*") if path.name != "zarr.json" and path.is_file()
        )
        data = chunk.read_bytes()
        place = chunk.relative_to(partial / "first")
        shutil.rmtree(partial / "first")
        for index in range(count):
            document["attributes"] = {"index": index}
            path = partial / f"array{index:05}" / place
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
            (partial / f"array{index:05}" / "zarr.json").write_text(json.dumps(document))
    return target


def make_many_chunks(count: int, scratch: Path) -> Path:
    """Return the directory of a group with an array ``a`` of ``count`` chunks. It is written if it does not exist."""
    target = scratch / f"mount-chunks-{count}"
    if target.exists():
        return target
    with new_directory(target) as partial:
        zarrfs.create_group(partial)
        array = zarrfs.create_array(
            partial / "a", shape=(count, CHUNK_LENGTH), chunks=(1, CHUNK_LENGTH), dtype=ITEM
        )
        for start in range(0, count, 10_000):
            array[start : start + 10_000] = 1
        array.close()
    return target
