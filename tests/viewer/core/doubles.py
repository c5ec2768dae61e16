"""Test doubles of arrays and groups on NumPy data, and images of them."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_array, image_from_multiscales

from tests.processes import TIMEOUT
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import ChunkDecodeError, NodeNotFoundError
from zarrfs.ngff import parse


class FakeArray:
    """A chunked array in memory. It records reads, blocks reads while ``gate`` is not set, and fails to decode the
    chunks in ``broken``.
    """

    def __init__(
        self,
        data: npt.NDArray[Any],
        chunks: Sequence[int] | None = None,
        names: Sequence[str | None] | None = None,
        attrs: Mapping[str, Any] | None = None,
    ) -> None:
        self.data = data
        self.shape = data.shape
        self.dtype = data.dtype
        self.chunks = tuple(chunks or data.shape)
        self.dimension_names = tuple(names) if names else None
        self.attrs = dict(attrs or {})
        self.gate = threading.Event()
        self.gate.set()
        self.started = threading.Semaphore(0)
        self.reads: list[Any] = []
        self.broken: set[tuple[int, ...]] = set()

    def __getitem__(self, selection: Any) -> Any:
        self.reads.append(selection)
        self.started.release()
        if not self.gate.wait(TIMEOUT):
            raise TimeoutError("the gate was not opened")
        for coords in self.broken:
            if all(self._intersects(s, c, n) for s, c, n in zip(selection, coords, self.chunks, strict=True)):
                raise ChunkDecodeError(f"chunk {coords} is broken")
        return self.data[selection].copy()

    @staticmethod
    def _intersects(selector: Any, coord: int, length: int) -> bool:
        if isinstance(selector, slice):
            stop = selector.stop if selector.stop is not None else 1 << 60
            return (selector.start or 0) < (coord + 1) * length and stop > coord * length
        return bool(selector // length == coord)


class FakeGroup(dict[str, Any]):
    """A group in memory: a mapping of paths to nodes, with attributes."""

    store = MemoryStore()
    """A store that supports listing, as callers expect of a group. The members are in the mapping instead."""

    def __init__(
        self, attrs: Mapping[str, Any] | None = None, members: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(members or {})
        self.attrs = dict(attrs or {})

    def __getitem__(self, path: str) -> Any:
        name, _, rest = path.partition("/")
        if name not in self:
            raise NodeNotFoundError(f"member {path!r} does not exist")
        node = super().__getitem__(name)
        return node[rest] if rest else node

    def names(self) -> list[str]:
        return sorted(self)

    def known_names(self, listing: object = None) -> list[str] | None:
        return self.names()


def halved(data: npt.NDArray[Any], axes: Sequence[int]) -> npt.NDArray[Any]:
    """Return every second element along some axes."""
    return data[tuple(slice(None, None, 2) if a in axes else slice(None) for a in range(data.ndim))]


def pyramid(
    data: npt.NDArray[Any],
    axes: str,
    levels: int = 2,
    chunks: Sequence[int] | None = None,
    halve: str = "yx",
    scale: Sequence[float] | None = None,
    omero: Mapping[str, Any] | None = None,
    labels: Mapping[str, FakeGroup] | None = None,
    image_label: Mapping[str, Any] | None = None,
) -> FakeGroup:
    """Return an OME-NGFF 0.4 image. A coarser level is every second element along the axes in ``halve``."""
    axis_types = {"t": "time", "c": "channel"}
    finest_scale = list(scale or [1.0] * len(axes))
    members: dict[str, Any] = {}
    datasets = []
    halved_axes = [axes.index(name) for name in halve if name in axes]
    for level in range(levels):
        level_scale = [finest_scale[a] * (2**level if a in halved_axes else 1) for a in range(len(axes))]
        members[str(level)] = FakeArray(
            data, [min(c, n) for c, n in zip(chunks or data.shape, data.shape, strict=True)]
        )
        datasets.append(
            {"path": str(level), "coordinateTransformations": [{"type": "scale", "scale": level_scale}]}
        )
        data = halved(data, halved_axes)
    unit = {"unit": "micrometer"}
    multiscales = {
        "version": "0.4",
        "name": "test image",
        "axes": [
            {"name": name, "type": axis_types.get(name, "space"), **({} if name in axis_types else unit)}
            for name in axes
        ],
        "datasets": datasets,
    }
    attrs: dict[str, Any] = {"multiscales": [multiscales]}
    if omero is not None:
        attrs["omero"] = omero
    if image_label is not None:
        attrs["image-label"] = image_label
    if labels:
        members["labels"] = FakeGroup({"labels": list(labels)}, labels)
    return FakeGroup(attrs, members)


def open_pyramid(group: FakeGroup) -> Image:
    """Return the image of a group from ``pyramid``."""
    return image_from_multiscales(group, parse(group.attrs))


def array_image(data: npt.NDArray[Any], chunks: Sequence[int] | None = None, **options: Any) -> Image:
    """Return the image of an array without OME-NGFF metadata."""
    return image_from_array(FakeArray(data, chunks, **options), "array")


def random_values(shape: Sequence[int], dtype: Any = np.uint16, seed: int = 0) -> npt.NDArray[Any]:
    """Return reproducible values of any numeric data type. Integers use the whole range."""
    generator = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return generator.random(shape) > 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        native = dtype.newbyteorder("=")
        return generator.integers(info.min, info.max, shape, dtype=native, endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (generator.normal(size=shape) + 1j * generator.normal(size=shape)).astype(dtype)
    return generator.normal(size=shape).astype(dtype)
