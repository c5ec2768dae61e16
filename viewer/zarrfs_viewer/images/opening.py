"""Opening of a location, of its first image and of the label images. These functions block: call them on a worker."""

from __future__ import annotations

from typing import Any

from zarrfs.engine.stores.base import Store
from zarrfs.errors import ZarrError
from zarrfs.foreign.opening import open_node
from zarrfs_viewer.images.dataset import Dataset, describe
from zarrfs_viewer.images.image import Image

__all__ = ["OpenedDataset", "open_dataset", "open_first_image", "open_with_labels"]

OpenedDataset = tuple[Dataset, Image | None, tuple[Image, ...], tuple[str, ...]]
"""A dataset, the image to display, the label images, and notes for the user."""


def open_dataset(location: str | Store, name: str, path: str, image: str | None) -> tuple[Any, OpenedDataset]:
    """Open a location, and the image at the path ``image`` or else its first image. Returns the node too.

    If no image can be opened, the image is None and the notes contain the reason.
    """
    node = open_node(location, path)
    return node, open_first_image(describe(node, name, path), image)


def open_first_image(dataset: Dataset, path: str | None, as_labels: bool = False) -> OpenedDataset:
    """Open the image at a path of a dataset, as labels if requested; None stands for its first image."""
    try:
        image, labels, problems = open_with_labels(dataset, path, as_labels)
    except ZarrError as error:
        return dataset, None, (), dataset.problems or (str(error),)
    return dataset, image, labels, problems


def open_with_labels(
    dataset: Dataset, path: str | None, as_labels: bool = False
) -> tuple[Image, tuple[Image, ...], tuple[str, ...]]:
    """Open an image and its label images. Returns also the problems of label images. Raises ZarrError."""
    problems: list[str] = []
    image = dataset.open_image(path, as_labels)
    return image, dataset.open_labels(image, problems.append), tuple(problems)
