"""Opening of locations of other formats: image files, NumPy, HDF5, kerchunk references and TensorStore specs."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import zarrfs
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations import HDF5_MAGIC
from zarrfs.engine.stores.locations.local import split_reference_file
from zarrfs.errors import LocationError, LocationNotFoundError, NodeNotFoundError, UnsupportedError, ZarrError
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.images.reader import is_image_file
from zarrfs.files.metaimage.reader import is_metaimage
from zarrfs.files.nifti.reader import is_nifti
from zarrfs.files.stacks.reader import files_of_directory, open_image_stack

__all__ = ["SUFFIXES", "is_known_file", "is_spec", "open_node", "open_stack"]

SUFFIXES: tuple[str, ...] = (
    ".tif",
    ".tiff",
    ".npy",
    ".npz",
    ".h5",
    ".hdf5",
    ".nc",
    ".json",
    ".nrrd",
    ".nhdr",
    ".mha",
    ".mhd",
    ".nii",
)
SUFFIXES += (".nii.gz", ".png", ".jpg", ".jpeg")
"""The usual suffixes of the files. They are recognized by their content, except for JSON."""

TIFF_MAGIC = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
NPY_MAGIC = b"\x93NUMPY"
HDF5_OFFSETS = (0, 512, 1024, 2048)
"""An HDF5 file may begin with a user block."""
MAX_SPEC_NBYTES = 1 << 20
"""The maximum size of a JSON file that is examined for a TensorStore spec."""


def open_node(location: str | Store, path: str, allow_external: bool = False) -> Any:
    """Open the node at a path of a location: any location of ``zarrfs.open``, or one of the formats of this package.

    A directory that is no Zarr hierarchy, and that contains TIFF, PNG or JPEG files, is opened as the stack of them.
    ``allow_external`` follows links of HDF5 files to other files. Blocks. Raises ZarrError.
    """
    if isinstance(location, str):
        if is_spec(location):
            return _open_spec(location)
        found = _find_file(location)
        if found is not None:
            opener, file, inner = found
            node = _opened(opener, file, allow_external)
            full = "/".join(filter(None, (inner, path)))
            return zarrfs.open(node, full) if isinstance(node, Store) else node[full] if full else node
        if os.path.isdir(location):
            try:
                return zarrfs.open(location, path)
            except (NodeNotFoundError, LocationNotFoundError):
                try:
                    files = files_of_directory(location)
                except LocationNotFoundError:
                    files = []
                if not files:
                    raise
            return zarrfs.open(open_stack(files), path)
    return zarrfs.open(location, path)


def open_stack(
    files: Sequence[str], pattern: str | None = None, how_to_name: str = "use zarrfs import with --pattern"
) -> ForeignStore:
    """Open several files as one image; see ``open_image_stack``. Raises ZarrError."""
    return open_image_stack(files, _open_file, pattern, how_to_name)


def _open_file(file: str) -> Any:
    found = _find_file(file)
    if found is None or found[2]:
        raise UnsupportedError(f"{file} is not an image of a known format; a stack consists of image files")
    return _opened(found[0], file, allow_external=False)


def _opened(opener: Callable[[str], Any], file: str, allow_external: bool) -> Any:
    try:
        return _hdf5(file, allow_external) if opener is _hdf5 else opener(file)
    except (ZarrError, OSError) as error:
        if not os.path.lexists(file):
            raise LocationNotFoundError(
                f"{file} was deleted or renamed by another program while it was opened"
            ) from error
        if isinstance(error, ZarrError):
            raise
        raise LocationError(f"{file} cannot be opened: {error.strerror or error}") from error


def is_known_file(path: str) -> bool:
    """Return whether the content of a file is of one of the formats of this package."""
    return _find_file(path) is not None


def is_spec(location: str) -> bool:
    """Return whether a location is a TensorStore spec as JSON text, or a TensorStore URL with ``|``."""
    return location.lstrip().startswith("{") or ("|" in location and "://" in location.partition("|")[0])


def _open_spec(text: str) -> Any:
    """Open a TensorStore spec: JSON text, or a URL such as ``file:///a.zip|zip:image/|zarr3:``."""
    from zarrfs.tensorstore import open as open_spec

    if not text.lstrip().startswith("{"):
        return open_spec(text)
    return open_spec(_parsed(text, "the TensorStore spec"))


def _parsed(text: str | bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LocationError(f"{where} is not valid JSON: {error}") from error


def _find_file(location: str) -> tuple[Callable[[str], Any], str, str] | None:
    """Return the function that opens a file of another format, its path, and the path in it; None for others."""
    if "://" in location:
        return None
    file, inner = os.path.abspath(os.path.expanduser(location)), ""
    while True:
        try:
            mode = os.stat(file).st_mode
            break
        except (FileNotFoundError, NotADirectoryError):
            parent, name = os.path.split(file)
            if parent == file:
                return None
            file, inner = parent, f"{name}/{inner}".rstrip("/")
        except (OSError, ValueError):
            return None
    if not stat.S_ISREG(mode):
        return None
    opener = _opener(file)
    return None if opener is None else (opener, file, inner)


def _opener(file: str) -> Callable[[str], Any] | None:
    """Return the function for the format of a file, which is recognized by its first bytes."""
    try:
        with open(file, "rb") as stream:
            head = stream.read(HDF5_OFFSETS[-1] + len(HDF5_MAGIC))
    except OSError:
        return None  # the engine reports it
    if head[:4] in TIFF_MAGIC:
        return _tiff
    if head.startswith(NPY_MAGIC):
        return _npy
    if any(head[offset:].startswith(HDF5_MAGIC) for offset in HDF5_OFFSETS):
        return _hdf5
    name = os.path.basename(file)
    for opener, is_format in OPENERS:
        if is_format(head, name):
            return opener
    is_json = name.lower().endswith(".json") and name not in ("zarr.json", "attributes.json")
    return _json if is_json and head.lstrip()[:1] == b"{" else None


def _tiff(file: str) -> ForeignStore:
    from zarrfs.files.tiff.reader import open_tiff

    return open_tiff(file)


def _npy(file: str) -> ForeignStore:
    from zarrfs.files.npy.reader import open_npy

    return open_npy(file)


def _hdf5(file: str, allow_external: bool = False) -> ForeignStore:
    from zarrfs.files.hdf5.reader import open_hdf5

    return open_hdf5(file, allow_external=allow_external)


def _nrrd(file: str) -> ForeignStore:
    from zarrfs.files.nrrd.reader import open_nrrd

    return open_nrrd(file)


def _npz(file: str) -> ForeignStore:
    from zarrfs.files.npy.npz_reader import open_npz

    return open_npz(file)


def _nifti(file: str) -> ForeignStore:
    from zarrfs.files.nifti.reader import open_nifti

    return open_nifti(file)


def _metaimage(file: str) -> ForeignStore:
    from zarrfs.files.metaimage.reader import open_metaimage

    return open_metaimage(file)


def _image_file(file: str) -> ForeignStore:
    from zarrfs.files.images.reader import open_image_file

    return open_image_file(file)


OPENERS: tuple[tuple[Callable[[str], ForeignStore], Callable[[bytes, str], bool]], ...] = (
    (_nrrd, lambda head, name: head.startswith(b"NRRD0")),
    (_npz, lambda head, name: head.startswith(b"PK") and name.lower().endswith(".npz")),
    (_nifti, is_nifti),
    (_metaimage, lambda head, name: is_metaimage(head)),
    (_image_file, lambda head, name: is_image_file(head)),
)
"""The function for each further format, and the function that recognizes it by the first bytes and the file name."""


def _json(file: str) -> Any:
    """Open the store of kerchunk references, which are not followed to other locations, or the node of a TensorStore
    spec.
    """
    if os.stat(file).st_size <= MAX_SPEC_NBYTES:
        document = _parsed(Path(file).read_bytes(), file)
        if "driver" in document:
            return _open_spec(json.dumps(document))
    if split_reference_file(file) is None:
        raise LocationError(f"{file} is neither a set of kerchunk references nor a TensorStore spec")
    from zarrfs.engine.stores.locations.remote import open_references  # it imports asyncio and ssl

    return open_references(file, "r", None, external=False)
