"""The region of one image in the coordinates of another."""

from __future__ import annotations

import numpy as np
import pytest
from zarrfs_viewer.display.pairing import pair
from zarrfs_viewer.images.dataset import initial_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.open_image import image_from_multiscales
from zarrfs_viewer.state.view_state import Viewport, with_displayed, with_position

import zarrfs
from zarrfs.ngff import load


def image(shape: tuple[int, ...], scale: list[float], translation: list[float], names: str) -> Image:
    group = zarrfs.create_group(zarrfs.MemoryStore())
    group.create_array("0", data=np.zeros(shape, "u1"), chunks=shape)
    transforms = [{"type": "scale", "scale": scale}, {"type": "translation", "translation": translation}]
    axes = [{"name": name, "type": "space", "unit": "micrometer"} for name in names]
    multiscales = [{"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": transforms}]}]
    group.attrs.update({"ome": {"version": "0.5", "multiscales": multiscales}})
    return image_from_multiscales(group, load(group))


def test_viewports_and_rectangles_are_mapped_by_physical_coordinates() -> None:
    first = image((10, 40, 40), [2.0, 1.0, 1.0], [0.0, 0.0, 0.0], "zyx")
    second = image((5, 80, 20), [4.0, 0.5, 2.0], [2.0, 10.0, 4.0], "zyx")
    settings = with_position(initial_settings(first), 0, 5.0)
    pairing = pair(first, settings, second)
    assert pairing is not None
    assert pairing.settings.position[0] == pytest.approx((5.0 * 2.0 - 2.0) / 4.0)
    viewport = Viewport(200, 100, (20.0, 12.0), 3.0)
    mapped = pairing.to_second(viewport)
    assert mapped.center == pytest.approx(((20.0 - 10.0) / 0.5, (12.0 - 4.0) / 2.0))
    for row, column in ((0.0, 0.0), (20.0, 12.0), (33.0, 7.0)):
        point = (row - 10.0) / 0.5, (column - 4.0) / 2.0
        assert mapped.to_device(*point) == pytest.approx(viewport.to_device(row, column))
    back = pairing.to_first(mapped)
    assert back.center == pytest.approx(viewport.center)
    assert (back.zoom, back.aspect) == pytest.approx((viewport.zoom, viewport.aspect))
    assert pairing.rect_to_first((0.0, 0.0, 2.0, 3.0)) == pytest.approx((10.0, 4.0, 11.0, 10.0))
    assert pairing.mirrored == (False, False)


def test_an_image_without_the_displayed_axes_has_no_pairing() -> None:
    first = image((4, 8, 8), [1.0] * 3, [0.0] * 3, "zyx")
    second = image((8, 8), [1.0] * 2, [0.0] * 2, "yx")
    assert pair(first, initial_settings(first), second) is not None
    assert pair(first, with_displayed(initial_settings(first), 0, 2), second) is None


def test_mirrored_axes_are_reported() -> None:
    first = image((8, 8), [0.5, 0.5], [0.0, 0.0], "yx")
    second = image((8, 8), [0.5, -0.5], [0.0, 3.5], "yx")
    pairing = pair(first, initial_settings(first), second)
    assert pairing is not None
    assert pairing.mirrored == (False, True)
    assert pairing.rect_to_first((-0.5, -0.5, 7.5, 7.5)) == pytest.approx((-0.5, -0.5, 7.5, 7.5))


@pytest.mark.parametrize("turns", range(4))
@pytest.mark.parametrize("is_mirrored", [False, True])
@pytest.mark.parametrize("signs", [(1, -1), (-1, 1), (-1, -1)])
def test_an_image_with_reversed_axes_is_displayed_in_the_same_orientation(
    turns: int, is_mirrored: bool, signs: tuple[int, int]
) -> None:
    first = image((8, 8), [0.5, 0.5], [0.0, 0.0], "yx")
    offsets = [0.0 if sign > 0 else 3.5 for sign in signs]
    second = image((8, 8), [0.5 * sign for sign in signs], offsets, "yx")
    pairing = pair(first, initial_settings(first), second)
    assert pairing is not None
    viewport = Viewport(200, 100, (2.0, 3.0), 5.0, turns=turns, mirrored=is_mirrored)
    mapped = pairing.to_second(viewport)
    for row, column in ((0.0, 0.0), (5.0, 1.0), (7.0, 6.0)):
        point = (row if signs[0] > 0 else 7 - row), (column if signs[1] > 0 else 7 - column)
        assert mapped.to_device(*point) == pytest.approx(viewport.to_device(row, column))
    assert pairing.to_first(mapped) == viewport
