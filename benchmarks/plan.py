"""The data sets that are read or written, and the reads of each data set. This module is independent of contenders."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["SMALL_SIDE", "VOLUME_SIDE", "DataSet", "Read", "data_sets", "reads", "written_sets"]


def _blosc(cname: str, clevel: int) -> dict[str, Any]:
    configuration = {
        "cname": cname,
        "clevel": clevel,
        "shuffle": "shuffle",
        "typesize": 2,
        "blocksize": 0,
    }
    return {"name": "blosc", "configuration": configuration}


CODECS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "Blosc-LZ4": [_blosc("lz4", 5)],
    "Blosc-zstd": [_blosc("zstd", 3)],
    "zstd": [{"name": "zstd", "configuration": {"level": 3, "checksum": False}}],
    "gzip": [{"name": "gzip", "configuration": {"level": 5}}],
}

VOLUME_SIDE = 512
SHARD_SIDE = 256
SMALL_SIDE = 100


@dataclass(frozen=True)
class DataSet:
    """A uint16 cube of noisy nuclei in Zarr v3: its side, chunk side, shard side (None without shards) and codec."""

    side: int
    chunk: int
    shard: int | None
    codec: str

    @property
    def is_small(self) -> bool:
        """Whether reads of everything take milliseconds."""
        return self.side == SMALL_SIDE

    @property
    def name(self) -> str:
        """The name in tables."""
        shard = f" in shards of {self.shard}" if self.shard else ""
        return f"{self.codec}, chunks of {self.chunk}{shard}"

    @property
    def directory(self) -> str:
        """The name of its directory."""
        return f"{self.side}-{self.chunk}-{self.shard or 'plain'}-{self.codec.lower()}.zarr"

    def metadata(self) -> dict[str, Any]:
        """Return the fields of the Zarr v3 document that differ between data sets."""
        little = {"name": "bytes", "configuration": {"endian": "little"}}
        chain = [little, *CODECS[self.codec]]
        if self.shard is not None:
            configuration = {
                "chunk_shape": [self.chunk] * 3,
                "codecs": chain,
                "index_codecs": [little, {"name": "crc32c"}],
            }
            chain = [{"name": "sharding_indexed", "configuration": configuration}]
        return {
            "shape": [self.side] * 3,
            "data_type": "uint16",
            "chunk_grid": {
                "name": "regular",
                "configuration": {"chunk_shape": [self.shard or self.chunk] * 3},
            },
            "chunk_key_encoding": {"name": "default"},
            "codecs": chain,
        }


@dataclass(frozen=True)
class Read:
    """A read that is timed.

    ``kind`` is "full read", "plane" (along an axis), "next plane" (the one after the previous read, as in scrolling),
    "one voxel", "region" (64 cubed, at random positions), "region again" (the same regions a second time), or "open".
    """

    kind: str
    axis: int | None = None

    @property
    def name(self) -> str:
        """The name in tables."""
        return self.kind if self.axis is None else f"{self.kind} along {'zyx'[self.axis]}"


def data_sets(side: int = VOLUME_SIDE) -> Iterator[DataSet]:
    """Yield the data sets of the read benchmark: those with small chunks, then the large volume."""
    yield DataSet(SMALL_SIDE, 10, None, "Blosc-LZ4")
    yield DataSet(SMALL_SIDE, 10, SMALL_SIDE, "Blosc-LZ4")
    for chunk in (64, 32, 128):
        for codec in CODECS:
            yield DataSet(side, chunk, None, codec)
    for codec in ("Blosc-LZ4", "zstd"):
        for chunk in (64, 32):
            yield DataSet(side, chunk, min(SHARD_SIDE, side), codec)


def written_sets(side: int = VOLUME_SIDE) -> Iterator[DataSet]:
    """Yield the data sets of the write benchmark: the large volume, shards of two sizes, then small chunks."""
    for codec in CODECS:
        for chunk in (32, 64, 128):
            yield DataSet(side, chunk, None, codec)
    for codec in ("none", "Blosc-LZ4", "zstd"):
        for shard in (128, 256):
            yield DataSet(side, 32, min(shard, side), codec)
    yield DataSet(SMALL_SIDE, 10, None, "Blosc-LZ4")
    yield DataSet(SMALL_SIDE, 10, SMALL_SIDE, "Blosc-LZ4")


def reads(data_set: DataSet) -> list[Read]:
    """Return the reads of a data set."""
    planes = [Read("plane", axis) for axis in range(3)]
    if data_set.is_small:
        return [Read("full read"), planes[0], Read("one voxel"), Read("open")]
    regions = data_set.chunk == 64 and data_set.codec == "Blosc-LZ4" and data_set.shard is None
    return [
        Read("full read"),
        *planes,
        Read("next plane", 0),
        *([Read("region"), Read("region again")] if regions else []),
    ]
