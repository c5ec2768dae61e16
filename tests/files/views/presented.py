"""Arrays and the files that present them, for the tests of the views."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.view import PresentedArray, View
from zarrfs.files.views import all_views
from zarrfs.ngff.geometry import ArrayAxis, Geometry

__all__ = [
    "NUMBERS",
    "ContentFile",
    "axes_of",
    "make_array",
    "present",
    "refused",
    "sample",
    "view_of",
    "write_file",
]

NUMBERS = (
    *(
        "|b1",
        "|i1",
        "|u1",
        "<i2",
        ">i2",
        "<u2",
        ">u2",
        "<i4",
        ">i4",
        "<u4",
        ">u4",
        "<i8",
        ">i8",
        "<u8",
        ">u8",
    ),
    *("<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<c8", ">c8", "<c16", ">c16"),
)
"""The dtypes of numbers."""


def sample(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    """Return an array of all kinds of values of a dtype. Floats have no NaN, so that values can be compared."""
    dtype = np.dtype(dtype)
    generator = np.random.default_rng(seed)
    if dtype.kind == "b":
        return generator.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        native = dtype.newbyteorder("=")
        values = generator.integers(limits.min, limits.max, shape, native, endpoint=True)
        flat = np.atleast_1d(values).reshape(-1)
        flat[:2] = (limits.min, limits.max)[: flat.size]
        return flat.reshape(shape).astype(dtype)
    if dtype.kind == "c":
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    return np.asarray(generator.standard_normal(shape) * 100).astype(dtype)


def make_array(
    data: np.ndarray[Any, Any], name: str = "img", order: str = "C", **options: Any
) -> zarrfs.Array:
    """Return an array of format 2 in memory, whose chunks do not divide its shape."""
    chunks = tuple(max(1, n // 2 + 1) for n in data.shape)
    return zarrfs.create_array(
        MemoryStore(), name, data=data, chunks=chunks, zarr_format=2, order=order, **options
    )


def axes_of(*axes: str, **scales: tuple[float, str | None]) -> Callable[[], Geometry]:
    """Return a function that returns a geometry with these axes. ``scales`` are distances and units by axis name."""
    kinds = {"t": "time", "c": "channel"} | dict.fromkeys("xyz", "space")
    entries = []
    for name in axes:
        scale, unit = scales.get(name, (1.0, None))
        role = name if name in kinds else None
        entries.append(ArrayAxis(name, kinds.get(name), unit, scale, 0.0, role))  # type: ignore[arg-type]
    return lambda: Geometry(tuple(entries), "", ())


def view_of(suffix: str) -> View:
    """Return the view of a suffix."""
    return next(view for view in all_views() if view.suffix == suffix)


def present(array: zarrfs.Array, suffix: str, name: str = "img", **options: Any) -> VirtualFileContent:
    """Return the content of a view of an array, which must have the view. ``options`` are those of PresentedArray."""
    presented = PresentedArray(array, name, **options)
    view = view_of(suffix)
    assert view.unsupported_reason(presented) is None
    return view.content(presented)


def write_file(array: zarrfs.Array, suffix: str, directory: Path, name: str = "img", **options: Any) -> Path:
    """Write a view of an array to a file, and return its path."""
    content = present(array, suffix, name, **options)
    data = content.read(0, content.size)
    assert len(data) == content.size
    path = directory / f"{name}{suffix}"
    path.write_bytes(data)
    return path


def refused(array: zarrfs.Array, suffix: str, **options: Any) -> str:
    """Return the reason why a view is absent. The array must not have the view."""
    reason = view_of(suffix).unsupported_reason(PresentedArray(array, "img", **options))
    assert reason is not None
    return reason


class ContentFile(io.RawIOBase):
    """A read-only Python file object of a virtual file, which is read lazily."""

    def __init__(self, content: VirtualFileContent) -> None:
        super().__init__()
        self._content = content
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = {0: 0, 1: self._position, 2: self._content.size}[whence] + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        count = self._content.read_into(self._position, memoryview(buffer).cast("B"))
        self._position += count
        return count
