"""Views of arrays whose metadata are very long or contain characters that formats do not allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.files.views.presented import axes_of, sample
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.files.tiff.planes_view import PlanesView
from zarrfs.files.view import PresentedArray
from zarrfs.files.views import all_views
from zarrfs.ngff.geometry import Geometry
from zarrfs.ngff.model import Channel, Window

NAMES = [
    *("x" * 100_000, "ä" * 300, "a\0b", "\ud800", "\uffff", "\x1b[31m", "\n\r\t"),
    *("a/b", "..", " ", "", "'\"<&>]]>{},"),
]

MAX_HEADER_NBYTES = 10 << 20


def check_all_views(array: zarrfs.Array, geometry: Geometry, name: str = "img") -> None:
    presented = PresentedArray(array, name, lambda: geometry)
    for view in all_views():
        if view.unsupported_reason(presented) is None and view.suffix != ".json":
            content = view.content(presented)
            assert len(content.read(0, content.size)) == content.size
            assert content.memory_nbytes < MAX_HEADER_NBYTES, view.suffix
    planes = PlanesView()
    if planes.unsupported_reason(presented) is None:
        files = planes.directory(presented)
        names = files.names()
        assert all(len(name) < 200 and "/" not in name for name in names)
        assert len(names) == len(set(names))
        assert all(files.find(name) is not None for name in names)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_of_axes_units_channels_and_images(name: str) -> None:
    array = zarrfs.create_array(MemoryStore(), "img", data=sample("<u2", (2, 3, 4)), chunks=(1, 2, 2))
    known = axes_of("c", "y", "x", y=(0.5, "um"), x=(0.5, "um"))()
    channels = (Channel(name, (1, 2, 3), Window(0, 1, 0, 1)),) * 2
    check_all_views(array, replace(known, channels=channels, image_name=name))
    for number in range(3):
        axes = list(known.axes)
        axes[number] = replace(axes[number], name=name)
        check_all_views(array, replace(known, axes=tuple(axes)))


@pytest.mark.parametrize("scale", [5e-324, 1e308, -1e-300, 1e-12, 2**40 + 0.5])
@pytest.mark.parametrize("unit", ["um", "parsec", "second", None, "bananas"])
def test_distances_of_any_size(scale: float, unit: str | None) -> None:
    array = zarrfs.create_array(MemoryStore(), "img", data=sample("<u2", (2, 3, 4, 5)), chunks=(1, 2, 2, 2))
    known = axes_of("t", "z", "y", "x", y=(scale, unit), x=(scale, unit), z=(scale, unit), t=(scale, unit))()
    check_all_views(array, known)
    axes = tuple(replace(axis, translation=scale) for axis in known.axes)
    check_all_views(array, replace(known, axes=axes))


@pytest.mark.parametrize("name", [name for name in NAMES if name and name != "\ud800"])
def test_attributes_and_fields(name: str) -> None:
    attributes: dict[str, Any] = {
        name: name,
        "list": [name] * 3,
        "nested": {name: {name: None}},
        "long": list(range(100_000)),
        **{f"a{number}": number for number in range(2000)},
    }
    array = zarrfs.create_array(MemoryStore(), "img", data=sample("<u2", (2, 3)), attributes=attributes)
    check_all_views(array, axes_of("y", "x")())


@pytest.mark.parametrize("name", [name for name in NAMES if name and len(name) < 300])
def test_names_of_arrays(name: str) -> None:
    array = zarrfs.create_array(MemoryStore(), "img", data=sample("<u2", (2, 3)))
    check_all_views(array, axes_of("y", "x")(), name)
    structured = zarrfs.create_array(
        MemoryStore(), "img", data=np.zeros(2, [("a", "i4"), ("b", "S2")]), zarr_format=2
    )
    check_all_views(structured, axes_of("x")(), name)
