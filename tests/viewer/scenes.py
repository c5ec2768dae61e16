"""Scenes of OME-Zarr 0.6 with data, and the values at positions of their images, computed with NumPy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import zarrfs

__all__ = ["MICROMETERS", "affine_rows", "value_at", "write_scene"]

Step = dict[str, Any]

MICROMETERS = {"type": "space", "unit": "micrometer"}


def write_scene(
    path: Path,
    images: Mapping[str, tuple[npt.NDArray[Any], Sequence[float], Step | None]],
    names: str = "yx",
    system: str = "world",
    chunk: int = 32,
) -> None:
    """Write a scene. Each image has values, the size of a pixel, and its transformation to the system of the scene.

    The spatial axes are ``names``. Images of two and more lengths get a second level by averaging of 2 x 2 (x 2).
    """
    axes = [{"name": name, **MICROMETERS} for name in names]
    edges = [
        {"input": {"path": name, "name": "physical"}, "output": {"name": system}, **step}
        for name, (_, _, step) in images.items()
        if step is not None
    ]
    scene = {"coordinateSystems": [{"name": system, "axes": axes}], "coordinateTransformations": edges}
    root = zarrfs.create_group(path, attributes={"ome": {"version": "0.6rc0", "scene": scene}})
    for name, (data, size, _) in images.items():
        coarse = data
        for axis in range(data.ndim):
            half = coarse.shape[axis] // 2 * 2
            pairs = np.take(coarse, range(half), axis).astype(np.float64)
            coarse = (np.take(pairs, range(0, half, 2), axis) + np.take(pairs, range(1, half, 2), axis)) / 2
        datasets = []
        for number, factor in enumerate((1, 2)):
            steps = [
                {"type": "scale", "scale": [each * factor for each in size]},
                {"type": "translation", "translation": [each * (factor - 1) / 2 for each in size]},
            ]
            trafo = {"type": "sequence", "input": {"path": f"s{number}"}, "output": {"name": "physical"}}
            datasets.append(
                {"path": f"s{number}", "coordinateTransformations": [{**trafo, "transformations": steps}]}
            )
        item = {"coordinateSystems": [{"name": "physical", "axes": axes}], "datasets": datasets}
        group = root.create_group(name, attributes={"ome": {"version": "0.6rc0", "multiscales": [item]}})
        for number, values in enumerate((data, coarse.astype(data.dtype))):
            group.create_array(f"s{number}", data=values, chunks=(chunk,) * data.ndim)


def affine_rows(matrix: npt.NDArray[np.float64], offset: Sequence[float]) -> Step:
    """Return an affine transformation for metadata."""
    return {"type": "affine", "affine": np.column_stack([matrix, offset]).tolist()}


def value_at(
    data: npt.NDArray[Any],
    size: Sequence[float],
    matrix: npt.NDArray[np.float64],
    offset: Sequence[float],
    point: Sequence[float],
) -> Any:
    """Return the value of the nearest pixel at a point of the system of the scene; None outside of the image."""
    position = np.linalg.solve(matrix, np.subtract(point, offset)) / size
    index = np.floor(position + 0.5).astype(int)
    if (index < 0).any() or (index >= data.shape).any():
        return None
    return data[tuple(index)]
