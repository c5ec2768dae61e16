"""Synthetic images are deterministic, have realistic values, and are valid OME-NGFF in both versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import zarrfs
from zarrfs import synthetic
from zarrfs.ngff import check_node

SHAPE = (8, 96, 128)


def test_equal_seeds_give_equal_images() -> None:
    first, second, other = (synthetic.make_picture(SHAPE, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(first.intensities, second.intensities)
    assert np.array_equal(first.labels, second.labels)
    assert not np.array_equal(first.intensities, other.intensities)


def test_nuclei_are_brighter_than_the_background() -> None:
    picture = synthetic.make_picture(SHAPE)
    assert picture.intensities.shape == (len(synthetic.CHANNELS), *SHAPE)
    assert picture.intensities.dtype == picture.labels.dtype == np.uint16
    nuclei = picture.intensities[0]
    assert nuclei[picture.labels > 0].mean() > 2 * nuclei[picture.labels == 0].mean()
    assert abs(np.median(nuclei[picture.labels == 0]) - synthetic.CAMERA_OFFSET) < 20
    assert 0 < picture.labels.max() < 1000


def test_nuclei_are_as_frequent_as_stated_and_keep_a_distance() -> None:
    """The centres are those of the visible labels, which other nuclei cover a little."""
    labels = synthetic.make_picture((12, 256, 256)).labels
    numbers = np.unique(labels)[1:]
    assert 0.7 < len(numbers) / (256 * 256 / (60 * 60)) < 1.3
    centers = np.array([np.argwhere(labels == number).mean(0) for number in numbers]) / (9, 20, 20)
    distances = np.sqrt(((centers[:, None] - centers[None]) ** 2).sum(-1))
    assert distances[~np.eye(len(numbers), dtype=bool)].min() > 1.7


def test_a_single_channel_volume_is_deterministic() -> None:
    volume = synthetic.volume((4, 40, 50), seed=3)
    assert volume.shape == (4, 40, 50)
    assert volume.dtype == np.uint16
    assert np.array_equal(volume, synthetic.volume((4, 40, 50), seed=3))


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 3), (3, 2, 70)])
def test_small_images_are_written(shape: tuple[int, int, int], tmp_path: Path) -> None:
    picture = synthetic.make_picture(shape)
    group = synthetic.write_image(str(tmp_path / "image.zarr"), picture)
    assert np.array_equal(group["0"][...], picture.intensities)


@pytest.mark.parametrize(("version", "shards"), [("0.4", None), ("0.5", None), ("0.5", (8, 64, 64))])
def test_an_image_is_written_as_valid_ome_zarr(
    version: str, shards: tuple[int, int, int] | None, tmp_path: Path
) -> None:
    picture = synthetic.make_picture(SHAPE)
    path = tmp_path / "image.zarr"
    synthetic.write_image(str(path), picture, version=version, levels=2, chunks=(4, 32, 32), shards=shards)
    group = zarrfs.open_group(path)
    assert group.zarr_format == (3 if version == "0.5" else 2)
    assert np.array_equal(group["0"][...], picture.intensities)
    assert group["1"].shape == (3, 8, 48, 64)
    assert np.array_equal(group["labels/nuclei/0"][...], picture.labels)
    assert set(np.unique(group["labels/nuclei/1"])) <= set(np.unique(picture.labels))
    coarse = picture.intensities.astype(float).reshape(3, 8, 48, 2, 64, 2).mean((3, 5))
    assert np.abs(group["1"][...] - coarse).max() <= 0.5
    for node in (group, group["labels/nuclei"]):
        report = check_node(node)
        assert report.valid
        assert report.version == version
        assert report.messages == ()
