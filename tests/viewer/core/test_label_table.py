"""The labels of a label image are counted correctly, whichever level and data type are used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from zarrfs_viewer.analysis import label_table as module
from zarrfs_viewer.analysis.label_table import label_position, label_table, table_csv
from zarrfs_viewer.images.dataset import describe, open_dataset
from zarrfs_viewer.images.open_image import can_be_labels, image_from_array, is_among_labels

import zarrfs
from zarrfs.errors import UnsupportedError
from zarrfs.synthetic import make_picture, write_image


def labels_of(data: np.ndarray, chunks: tuple[int, ...], names: tuple[str, ...], **attributes: Any) -> Any:
    array = zarrfs.array(data, chunks=chunks, dimension_names=list(names), attributes=attributes)
    return image_from_array(array, "cells", as_labels=True)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint32", "int64", "uint64"])
def test_labels_are_counted_with_centroids(dtype: str) -> None:
    rng = np.random.default_rng(1)
    data = rng.integers(0, 2 if dtype == "bool" else 7, (9, 20, 17)).astype(dtype)
    if dtype == "uint64":
        data[data == 5] = np.uint64(2**64 - 2)
    image = labels_of(data, (4, 8, 5), ("z", "y", "x"))
    table = label_table(image, image.default_position, image.default_displayed)
    expected = {int(v): int((data == v).sum()) for v in np.unique(data) if v}
    assert {row.value: row.size for row in table.rows} == expected
    assert (table.scope, table.level, table.unit) == ("volume", 0, "px")
    for row in table.rows:
        pixels = np.argwhere(data == row.value)
        assert row.centroid == pytest.approx(tuple(pixels.mean(axis=0)))
        assert row.box == tuple(zip(pixels.min(axis=0).tolist(), pixels.max(axis=0).tolist(), strict=True))
        position = label_position(image, table, row)
        assert data[tuple(int(value) for value in position)] == row.value
        distances = ((pixels - np.array(row.centroid)) ** 2).sum(axis=1)
        assert ((np.array(position) - np.array(row.centroid)) ** 2).sum() == pytest.approx(distances.min())


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 400), st.tuples(st.integers(1, 9), st.integers(1, 9)), st.integers(0, 5))
def test_the_size_of_the_blocks_does_not_change_the_counts(
    block: int, chunks: tuple[int, int], seed: int
) -> None:
    data = np.random.default_rng(seed).integers(0, 4, (23, 31)).astype("u4")
    image = labels_of(data, chunks, ("y", "x"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_BLOCK_ELEMENTS", block)
        table = label_table(image, image.default_position, image.default_displayed)
    assert {row.value: row.size for row in table.rows} == {v: int((data == v).sum()) for v in (1, 2, 3)}


def test_a_time_lapse_is_counted_at_the_displayed_time() -> None:
    data = np.zeros((2, 6, 8), "u2")
    data[0, 1:3, 1:3] = 1
    data[1, 2:6, 0:5] = 2
    image = labels_of(data, (1, 6, 8), ("t", "y", "x"))
    for time, (value, size) in enumerate(((1, 4), (2, 20))):
        table = label_table(image, (time, 0.0, 0.0), image.default_displayed)
        assert [(row.value, row.size) for row in table.rows] == [(value, size)]
        assert label_position(image, table, table.rows[0])[0] == time


def test_a_slice_is_counted_if_the_volume_is_too_large() -> None:
    data = np.zeros((10, 16, 16), "u1")
    data[3, 4, 5], data[4, 4, 5] = 7, 8
    image = labels_of(data, (1, 16, 16), ("z", "y", "x"))
    table = label_table(image, (3.0, 0.0, 0.0), (1, 2), max_elements=300)
    assert (table.scope, [row.value for row in table.rows]) == ("slice", [7])
    assert label_position(image, table, table.rows[0]) == (3.0, 4.0, 5.0)
    with pytest.raises(UnsupportedError, match="not listed"):
        label_table(image, (3.0, 0.0, 0.0), (1, 2), max_elements=10)


def test_a_coarse_level_gives_physical_sizes_and_properties(tmp_path: Path) -> None:
    write_image(tmp_path / "a.zarr", make_picture((12, 128, 160)))
    dataset = open_dataset(str(tmp_path / "a.zarr"))
    (labels,) = dataset.open_labels(dataset.open_image())
    assert len(labels.levels) > 1
    fine = label_table(labels, labels.default_position, labels.default_displayed)
    coarse_elements = int(np.prod(labels.levels[1].shape))
    coarse = label_table(labels, labels.default_position, labels.default_displayed, coarse_elements)
    assert (fine.level, coarse.level) == (0, 1)
    assert fine.unit == coarse.unit == "µm³"
    total_fine = sum(row.size or 0 for row in fine.rows)
    assert sum(row.size or 0 for row in coarse.rows) == pytest.approx(total_fine, rel=0.3)
    text = table_csv(labels, fine).splitlines()
    assert text[0].startswith("label,size (µm³),centroid z,centroid y,centroid x")
    assert len(text) == len(fine.rows) + 1


def test_labels_of_the_metadata_are_listed_even_if_they_do_not_occur() -> None:
    ome = {"version": "0.5", "image-label": {"properties": [{"label-value": 9, "class": "gone"}]}}
    image = labels_of(np.ones((4, 4), "u1"), (4, 4), ("y", "x"), ome=ome)
    table = label_table(image, image.default_position, image.default_displayed)
    assert [(row.value, row.size) for row in table.rows] == [(1, 16.0), (9, None)]
    assert table.properties == ("class",)
    with pytest.raises(UnsupportedError, match="does not occur"):
        label_position(image, table, table.rows[1])


def test_integers_can_be_labels_and_are_labels_below_a_labels_group(tmp_path: Path) -> None:
    assert can_be_labels(np.dtype("?"))
    assert not can_be_labels(np.dtype("f4"))
    assert is_among_labels("/home/a/x.zarr", "labels/cells/0")
    assert is_among_labels("/home/a/x.zarr/labels/cells", "")
    assert not is_among_labels("/home/labels/x.zarr", "0")
    assert is_among_labels("/home/a/x.zarr", "labels")
    group = zarrfs.create_group(tmp_path / "x.zarr")
    group.create_array("labels/cells", data=np.ones((4, 4), "u2"), chunks=(4, 4))
    group.create_array("labels/distance", data=np.ones((4, 4), "f4"), chunks=(4, 4))
    group.create_array(
        "raw", data=np.ones((2, 4, 4), "u2"), chunks=(1, 4, 4), dimension_names=["c", "y", "x"]
    )
    dataset = describe(group, str(tmp_path / "x.zarr"))
    assert dataset.open_image("labels/cells").kind == "labels"
    assert dataset.open_image("labels/distance").kind == "image"
    assert dataset.open_image("raw").kind == "image"
    raw = dataset.open_image("raw", as_labels=True)
    assert (raw.kind, raw.channels, raw.channel_axis) == ("labels", (), None)
    assert 0 in raw.slider_axes


def test_properties_of_the_background_are_not_a_label() -> None:
    properties = [{"label-value": value, "class": "x"} for value in (0, 1, 2)]
    ome = {"version": "0.5", "image-label": {"properties": properties}}
    image = labels_of(np.ones((4, 4), "u1"), (4, 4), ("y", "x"), ome=ome)
    table = label_table(image, image.default_position, image.default_displayed)
    assert [row.value for row in table.rows] == [1, 2]
