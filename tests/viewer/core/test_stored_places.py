"""The slice that is displayed first, and the next slice with data, of images that are empty in most places."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.images.dataset import describe
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.stored_places import at_data, has_stored_chunk, next_stored_slice

import zarrfs
from tests.viewer.core.doubles import open_pyramid, pyramid
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import UnsupportedError
from zarrfs.testing.stores import ObservedStore


def sparse(chunks: list[tuple[int, int, int]], store: Store | None = None) -> Image:
    """An image of a terabyte with some stored chunks of 1 x 512 x 512."""
    array = zarrfs.create_array(
        MemoryStore() if store is None else store,
        shape=(20_000, 100_000, 100_000),
        chunks=(1, 512, 512),
        dtype="u2",
        dimension_names=["z", "y", "x"],
    )
    for z, y, x in chunks:
        array[z, y * 512 : y * 512 + 8, x * 512 : x * 512 + 8] = 7
    return describe(array).open_image()


def test_an_image_is_opened_at_the_stored_slice_that_is_nearest_to_the_default_one() -> None:
    image = sparse([(123, 100, 100), (15_000, 7, 9), (19_000, 7, 9)])
    assert image.default_position[0] == 9999
    assert at_data(image).default_position == (15_000, *image.default_position[1:])
    assert at_data(image).uid == image.uid


@pytest.mark.parametrize("chunk", [(9999, 97, 97), (9999, 0, 3)])
def test_an_image_with_data_in_its_default_slice_is_opened_there(chunk: tuple[int, int, int]) -> None:
    image = sparse([chunk, (9998, 97, 97)])
    assert at_data(image) is image


def test_an_image_without_any_data_is_opened_at_its_default_slice() -> None:
    image = sparse([])
    assert at_data(image) is image


def test_the_keys_of_a_store_are_not_listed_if_the_default_slice_is_stored() -> None:
    class Listed(ObservedStore):
        def perform(self, name: str, *args: Any) -> Any:
            assert not name.startswith("list"), "the store was listed"
            return super().perform(name, *args)

    store = MemoryStore()
    zarrfs.create_array(store, data=np.ones((9, 64, 64), "u1"), chunks=(1, 32, 32))
    image = describe(zarrfs.open(Listed(store))).open_image()
    assert at_data(image) is image


def test_a_pyramid_is_opened_where_its_coarsest_level_has_values() -> None:
    """Chunks of zeros are stored, so that keys say nothing."""
    data = np.zeros((3, 40, 64, 64), "u2")
    data[1, 33] = 5
    image = open_pyramid(pyramid(data, "tzyx", 3, (1, 8, 32, 32)))
    assert image.default_position[:2] == (0, 19)
    assert at_data(image).default_position[:2] == (1, 33)
    data[0, 19, 32, 32] = 5
    image = open_pyramid(pyramid(data, "tzyx", 3, (1, 8, 32, 32)))
    assert at_data(image) is image


@given(
    st.sets(st.integers(0, 39), min_size=1, max_size=4), st.integers(0, 39), st.sampled_from([-3, -1, 1, 2])
)
def test_the_next_stored_slice_is_the_nearest_one_of_a_stored_chunk(
    stored: set[int], here: int, step: int
) -> None:
    array = zarrfs.create_array(
        MemoryStore(), shape=(120, 64, 64), chunks=(3, 32, 32), dtype="u1", dimension_names=["z", "y", "x"]
    )
    for chunk in stored:
        array[3 * chunk, 0, 40] = 1
    image = describe(array).open_image()
    slices = [z for chunk in stored for z in range(3 * chunk, 3 * chunk + 3)]
    candidates = [z for z in slices if (z >= here + step if step > 0 else z <= here + step)]
    expected = min(candidates, key=lambda z: abs(z - here), default=None)
    assert next_stored_slice(image, (here, 0, 0), (1, 2), 0, step) == expected


def test_the_next_stored_slice_is_that_of_the_same_time_point() -> None:
    array = zarrfs.create_array(
        MemoryStore(),
        shape=(2, 9, 8, 8),
        chunks=(1, 1, 8, 8),
        dtype="u1",
        dimension_names=["t", "z", "y", "x"],
    )
    array[1, 3] = 1
    array[0, 5] = 1
    image = describe(array).open_image()
    assert next_stored_slice(image, (0, 0, 4, 4), (2, 3), 1, 1) == 5
    assert next_stored_slice(image, (1, 0, 4, 4), (2, 3), 1, 1) == 3
    assert next_stored_slice(image, (1, 3, 4, 4), (2, 3), 1, 1) is None


def test_a_store_that_does_not_list_its_chunks_has_no_next_stored_slice(tmp_path: Path) -> None:
    class Unlisted(MemoryStore):
        listable = False

    image = sparse([(5, 0, 0)], Unlisted())
    with pytest.raises(UnsupportedError, match="not known which planes are stored"):
        next_stored_slice(image, image.default_position, (1, 2), 0, 1)
    assert has_stored_chunk(image, image.default_position, (1, 2), 0, (0, 0, 9, 9))
    assert at_data(image) is image


def test_whether_a_part_of_a_slice_is_stored_depends_on_its_chunks() -> None:
    image = sparse([(123, 100, 100)])
    at = (123.0, 0.0, 0.0)
    assert has_stored_chunk(image, at, (1, 2), 0, (-10, -10, 1e5, 1e5))
    assert has_stored_chunk(image, at, (1, 2), 0, (51_711, 51_700, 60_000, 60_000))
    assert not has_stored_chunk(image, at, (1, 2), 0, (51_712, 51_700, 60_000, 60_000))
    assert not has_stored_chunk(image, (124.0, 0.0, 0.0), (1, 2), 0, (-10, -10, 1e5, 1e5))
