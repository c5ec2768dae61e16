"""What is measured: data sets that are read or written, and the reads asked of each. No contender is named here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["SMALL", "VOLUME", "DataSet", "Read", "data_sets", "reads", "written_sets"]


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

VOLUME = 512
SHARD = 256
SMALL = 100


@dataclass(frozen=True)
class DataSet:
    """A cube of noisy nuclei, uint16, Zarr v3: its side, chunk side, shard side (None for none) and codec."""

    side: int
    chunk: int
    shard: int | None
    codec: str

    @property
    def name(self) -> str:
        """For tables and directories."""
        shard = f" in shards of {self.shard}" if self.shard else ""
        return f"{self.codec}, chunks of {self.chunk}{shard}"

    @property
    def directory(self) -> str:
        """The name of the directory that holds it."""
        return f"{self.side}-{self.chunk}-{self.shard or 'plain'}-{self.codec.lower()}.zarr"

    def metadata(self) -> dict[str, Any]:
        """The Zarr v3 document, but for what every one of them says."""
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
    """One read to be timed: everything, a plane along an axis, the plane after one that was just read (as in
    scrolling), or single voxels one after the other.
    """

    kind: str
    axis: int | None = None

    @property
    def name(self) -> str:
        """For tables."""
        return self.kind if self.axis is None else f"{self.kind} along {'zyx'[self.axis]}"

    @property
    def key(self) -> str:
        """For the command line of a contender."""
        return self.kind if self.axis is None else f"{self.kind}:{self.axis}"


def data_sets(side: int = VOLUME) -> Iterator[DataSet]:
    """The table of the large volume, then the small chunks."""
    for codec in ("none", "Blosc-LZ4", "zstd", "gzip"):
        for chunk in (32, 64, 128):
            yield DataSet(side, chunk, None, codec)
    for codec in ("Blosc-LZ4", "zstd"):
        for chunk in (32, 64, 128):
            yield DataSet(side, chunk, min(SHARD, side), codec)
    yield DataSet(SMALL, 10, None, "Blosc-LZ4")
    yield DataSet(SMALL, 10, SMALL, "Blosc-LZ4")


def written_sets(side: int = VOLUME) -> Iterator[DataSet]:
    """The table of writes: the large volume, shards of two sizes, then the small chunks."""
    for codec in CODECS:
        for chunk in (32, 64, 128):
            yield DataSet(side, chunk, None, codec)
    for codec in ("none", "Blosc-LZ4", "zstd"):
        for shard in (128, 256):
            yield DataSet(side, 32, min(shard, side), codec)
    yield DataSet(SMALL, 10, None, "Blosc-LZ4")
    yield DataSet(SMALL, 10, SMALL, "Blosc-LZ4")


def reads(data_set: DataSet) -> list[Read]:
    """What is read of a data set."""
    if data_set.side == SMALL:
        return [Read("everything"), Read("one voxel")]
    return [Read("everything"), *(Read("plane", axis) for axis in range(3)), Read("next plane", 0)]
