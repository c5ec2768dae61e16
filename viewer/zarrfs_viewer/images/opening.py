"""Opening of a location, its first image and its label images. The functions block; call them on a worker thread."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import Any

import zarrfs
from zarrfs.engine.stores.base import Store
from zarrfs.errors import LocationError, ZarrError
from zarrfs.ngff import SystemReference
from zarrfs_viewer.images.dataset import Dataset, describe, describe_member
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.stored_places import at_data
from zarrfs_viewer.process_memory import release_free_memory
from zarrfs_viewer.url_credentials import find_options, origin_of

__all__ = [
    "OpenedDataset",
    "import_engine",
    "open_dataset",
    "open_first_image",
    "open_with_credentials",
    "open_with_labels",
    "reopen",
]

ENGINE_MODULES = (
    "zarrfs.files.recognition",
    "zarrfs.api.open",
    "zarrfs.engine.hierarchy.summary",
    "zarrfs.engine.read.native_reading",
)

FREQUENT_DECODERS = ("blosc", "zstd")
"""The decoders of the native library that most images need."""

MAX_CAUSES = 10
"""The maximum number of chained causes of an error that are examined."""

OpenedDataset = tuple[Dataset, Image | None, tuple[Image, ...], tuple[str, ...]]
"""A dataset, the image to display, the label images, and notes for the user."""


def import_engine() -> None:
    """Import the modules that are needed to open the first data set and to read its first tile.

    The modules of a window do not import them, because this takes as long as everything else that a window needs.
    """
    for name in ENGINE_MODULES:
        import_module(name)
    from zarrfs.engine.native.library import native_library
    from zarrfs.libraries import import_library

    library = native_library()
    if library is None:
        import_library("numcodecs")
    else:
        for decoder in FREQUENT_DECODERS:
            library.supports(decoder)  # the first call loads its functions and tries them
    release_free_memory()


def open_dataset(
    location: str | Store,
    name: str,
    path: str,
    image: str | None,
    as_labels: bool = False,
    system: SystemReference | None = None,
) -> tuple[Any, OpenedDataset]:
    """Open a location, and the image at the path ``image`` or else its first image, as labels if requested, in a
    coordinate system.

    Returns the node too.
    If no image can be opened, the image is None and the notes contain the reason.
    """
    node = open_with_credentials(location, path)
    return node, open_first_image(describe(node, name, path), image, as_labels, system)


def reopen(
    location: str,
    path: str,
    image: str | None,
    as_labels: bool = False,
    system: SystemReference | None = None,
) -> tuple[Any, OpenedDataset]:
    """Open a location again, as it is now stored, and the image of its member at a path. Blocks. Raises ZarrError.

    Returns the node of the location too.
    """
    node = open_with_credentials(location, "")
    return node, open_first_image(describe_member(node, location, path), image, as_labels, system)


def open_with_credentials(location: str | Store, path: str) -> Any:
    """Open the node at a path of a location, with the credentials of its server. Raises ZarrError.

    If the server refused a request, the error states how to enter credentials.
    """
    from zarrfs.files.recognition import open_node  # the engine takes long to import

    options = find_options(location)
    try:
        return zarrfs.open(location, path, storage_options=options) if options else open_node(location, path)
    except ZarrError as error:
        if origin_of(location) is not None and _is_denied(error):
            raise LocationError(f"{error}; use 'Credentials of a URL' in the menu File to sign in") from error
        raise


def _is_denied(error: BaseException) -> bool:
    """Return whether a server refused a request because of missing or wrong credentials."""
    found: BaseException | None = error
    for _ in range(MAX_CAUSES):
        if found is None:
            return False
        if isinstance(found, PermissionError) or getattr(found, "status", None) in (401, 403):
            return True
        if type(found).__name__ in ("NoCredentialsError", "PartialCredentialsError"):  # of botocore
            return True
        found = found.__cause__
    return False


def open_first_image(
    dataset: Dataset, path: str | None, as_labels: bool = False, system: SystemReference | None = None
) -> OpenedDataset:
    """Open the image at a path of a dataset, as labels if requested; None stands for its first image.

    A coordinate system that does not exist any more is ignored.
    """
    if system is not None and dataset.coordinates is not None and system in dataset.coordinates.systems:
        dataset = replace(dataset, system=system)
    try:
        image, labels, problems = open_with_labels(dataset, path, as_labels)
    except ZarrError as error:
        return dataset, None, (), dataset.problems or (str(error),)
    from zarrfs.engine.hierarchy.unfinished import unfinished_note  # the engine takes long to import

    node = dataset.node
    note = unfinished_note(node) if isinstance(node, zarrfs.Array | zarrfs.Group) else None
    return dataset, image, labels, problems if note is None else (note, *problems)


def open_with_labels(
    dataset: Dataset, path: str | None, as_labels: bool = False
) -> tuple[Image, tuple[Image, ...], tuple[str, ...]]:
    """Open an image at a slice that has data, and its label images. Returns also the problems of label images. Raises
    ZarrError.
    """
    problems: list[str] = []
    image = at_data(dataset.open_image(path, as_labels))
    return image, dataset.open_labels(image, problems.append), tuple(problems)
