"""The volume of the benchmarks of the viewer's window: uint16, chunks of 64 cubed, zstd, four levels."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import zarrfs

__all__ = ["LEVELS", "write_volume"]

LEVELS = 4
"""Each level is half as large as the one before it along all three axes."""
CHUNK = 64
NOISE = 64


def write_volume(directory: Path, planes: int, size: int) -> None:
    """Write a volume of ``planes`` x ``size`` x ``size``: a pattern that differs in all slices, with camera noise."""
    rng = np.random.default_rng(0)
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in "zyx"]
    datasets = []
    for level in range(LEVELS):
        factor = 2.0**level
        scale, shift = [factor, 0.5 * factor, 0.5 * factor], (factor - 1) / 2
        transformations = [
            {"type": "scale", "scale": scale},
            {"type": "translation", "translation": [shift, 0.5 * shift, 0.5 * shift]},
        ]
        datasets.append({"path": str(level), "coordinateTransformations": transformations})
    document = {"version": "0.5", "multiscales": [{"name": "benchmark", "axes": axes, "datasets": datasets}]}
    zarrfs.create_group(str(directory), attributes={"ome": document})
    arrays = [
        zarrfs.create_array(
            str(directory),
            str(level),
            shape=(planes >> level, size >> level, size >> level),
            dtype="uint16",
            chunks=(CHUNK, CHUNK, CHUNK),
        )
        for level in range(LEVELS)
    ]
    y, x = np.ogrid[:size, :size]
    texture = 400 * (1 + np.sin(x / 37) * np.sin(y / 53))
    coarse = [np.empty(array.shape, np.uint16) for array in arrays[1:]]
    for start in range(0, planes, CHUNK):
        depth = min(CHUNK, planes - start)
        slab = np.empty((depth, size, size), np.uint16)
        for offset in range(depth):
            wave = 200 * (1 + np.sin((x + y + 9 * (start + offset)) / 71))
            slab[offset] = texture + wave + rng.integers(0, NOISE, (size, size), np.uint16)
        arrays[0][start : start + depth] = slab
        for level, data in enumerate(coarse, 1):
            step = 1 << level
            data[start >> level : (start + depth) >> level] = slab[::step, ::step, ::step][
                : (start + depth >> level) - (start >> level)
            ]
    for array, data in zip(arrays[1:], coarse, strict=True):
        array[:] = data
