"""Checks of a TIFF file before its images are read: tifffile reads the parts of a damaged file without an error."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError

__all__ = [
    "check_expansion",
    "check_files",
    "check_pages",
    "image_files",
    "metadata_file",
    "ome_problem",
    "ome_root",
]

MAX_XML = 1 << 26
"""The maximum number of characters of OME-XML. A longer document is not read."""

MAX_XML_HEAD = 4096
"""The characters of a description that are searched for the beginning of OME-XML."""

MAX_TAGS = 4096
"""The maximum number of tags of a page. tifffile has the same limit."""

MAX_SEGMENT_NBYTES = 1 << 28
"""A segment that may be decoded to more bytes is decompressed once to count them."""

ZLIB = (8, 32946, 50013)
"""The values of the tag Compression for zlib."""

BLOCK_NBYTES = 1 << 20
MAX_DEFLATE_RATIO = 1032


def check_pages(file: Any, path: str) -> None:
    """Raise LocationError if the chain of pages is damaged: tifffile would omit the pages after the damage."""
    if file.is_lsm or file.is_scanimage:
        return  # their offsets are wrong above 4 GB, and tifffile corrects them
    tiff, handle = file.tiff, file.filehandle
    offset, number, seen = int(file.pages.first.offset), 0, set[int]()
    while offset:
        if offset in seen:
            raise LocationError(f"{path}: page {number} is followed by an earlier page")
        seen.add(offset)
        handle.seek(offset)
        head = handle.read(tiff.tagnosize)
        count = struct.unpack(tiff.tagnoformat, head)[0] if len(head) == tiff.tagnosize else -1
        handle.seek(offset + tiff.tagnosize + max(0, count) * tiff.tagsize)
        tail = handle.read(tiff.offsetsize)
        if not 0 < count <= MAX_TAGS or len(tail) != tiff.offsetsize:
            raise LocationError(
                f"{path}: page {number} at offset {offset} cannot be read; the file is truncated or damaged"
            )
        offset, number = int(struct.unpack(tiff.offsetformat, tail)[0]), number + 1


def ome_root(file: Any) -> ElementTree.Element | None:
    """Return the root of the OME-XML of a file, or None if there is none or it is not valid."""
    return _parsed_ome(file)[0]


def ome_problem(file: Any) -> str:
    """Return why the OME-XML of a file is ignored; an empty string if it is read, or if there is none."""
    problem = _parsed_ome(file)[1]
    if not problem and file.is_ome and file.series and file.series[0].kind != "ome":
        return "it does not describe the pages of the file"
    return problem


def _parsed_ome(file: Any) -> tuple[ElementTree.Element | None, str]:
    text = file.ome_metadata
    if not isinstance(text, str):
        # The reader recognizes OME-XML by its end, which a truncated document lacks.
        description = file.pages.first.description if len(file.pages) else ""
        is_truncated = "<OME " in description[:MAX_XML_HEAD]
        return None, "it is truncated" if is_truncated else ""
    if len(text) > MAX_XML:
        return None, f"it has {len(text)} characters; at most {MAX_XML} are read"
    try:
        return ElementTree.fromstring(text), ""
    except (ElementTree.ParseError, ValueError) as error:
        return None, f"it is not valid XML: {error}"


def metadata_file(file: Any, path: str) -> str | None:
    """Return the path of the TIFF file that contains the OME-XML of a file which only refers to it (BinaryOnly).

    None: the file contains its own OME-XML, or the other one is no TIFF file of the directory, or refers to others.
    """
    name = _metadata_name(file)
    if not name or os.path.basename(name) != name or not name.lower().endswith((".tif", ".tiff")):
        return None
    other = os.path.join(os.path.dirname(path), name)
    return other if name != os.path.basename(path) and os.path.isfile(other) else None


def _metadata_name(file: Any) -> str | None:
    root = ome_root(file)
    elements = () if root is None else root
    return next(
        (
            element.get("MetadataFile")
            for element in elements
            if element.tag.rpartition("}")[2] == "BinaryOnly"
        ),
        None,
    )


def image_files(file: Any, path: str) -> list[str]:
    """Return the names of the files that contain the images, if the OME-XML of a file states several."""
    names = list(dict.fromkeys([os.path.basename(path), *_ome_files(file)]))
    return names if len(names) > 1 else []


def check_files(file: Any, path: str, tifffile: Any) -> None:
    """Raise LocationError if an image needs files that are missing, not regular, or in another directory."""
    directory = os.path.dirname(os.path.abspath(path))
    names = list(_ome_files(file))
    if file.is_ndtiff:
        index = tifffile.read_ndtiff_index(os.path.join(directory, "NDTiff.index"))
        names += [str(entry[1]) for entry in index]
    for name in dict.fromkeys(names):
        if os.path.basename(name) != name or name in ("", ".", ".."):
            raise LocationError(
                f"{path}: a part of the image is in {name}; only files of the same directory are read"
            )
        if name != os.path.basename(path):
            try:
                os.close(open_regular_file(os.path.join(directory, name)))
            except OSError as error:
                raise LocationError(
                    f"{path}: a part of the image is in {name}, which cannot be read: {error.strerror or error}"
                ) from error


def _ome_files(file: Any) -> Iterator[str]:
    """Yield the names of the files that contain planes of the images. See OME-XML, TiffData."""
    root = ome_root(file)
    if root is None:
        return
    own = root.get("UUID")
    for element in root.iter():
        if element.tag.rpartition("}")[2] == "UUID" and "FileName" in element.attrib and element.text != own:
            yield element.attrib["FileName"]


def check_expansion(data: bytes, compression: int, nbytes: int) -> None:
    """Raise ValueError if a zlib stream that may be very large has more than ``nbytes`` bytes when it is decoded."""
    if compression not in ZLIB or len(data) * MAX_DEFLATE_RATIO <= max(nbytes, MAX_SEGMENT_NBYTES):
        return
    decoder, count, rest = zlib.decompressobj(), 0, data
    while rest and not decoder.eof:
        decoded = decoder.decompress(rest, BLOCK_NBYTES)
        count += len(decoded)
        if count > nbytes:
            raise ValueError(f"the strip or tile decodes to more than the expected {nbytes} bytes")
        rest = decoder.unconsumed_tail
