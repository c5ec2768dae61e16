"""Files in the formats of the views of a mount, alone, compressed, or together with the file of their elements."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO

from zarrfs.errors import UnsupportedError
from zarrfs.files.content.blocks import BlockPool
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.content.open_files import OpenFile
from zarrfs.files.exporting.conversion import converted
from zarrfs.files.view import PresentedArray, View
from zarrfs.files.views import make_content, unsupported_reason, views_of_name

__all__ = ["DETACHED", "Progress", "content_of", "find_view", "write_content", "write_gzip", "write_npz"]

Progress = Callable[[str, int, int], object]
"""A function that is called with the name of a file, the bytes that are written, and the size in bytes."""

READ_NBYTES = 1 << 20

SIMILAR_TYPES = {
    "b": ("uint8",),
    "u": ("uint32", "uint16", "int32", "uint8"),
    "i": ("int32", "int16", "int8"),
    "f": ("float32", "float64"),
}
"""Kind of a NumPy dtype -> the data types to which a conversion is suggested."""

DETACHED = (".mhd", ".nhdr", ".hdr", ".vrt")
"""The suffixes of headers whose elements are in another file, with the suffix .raw."""


def find_view(name: str) -> View | None:
    """Return the view whose suffix a file name has, the longest one, or None."""
    found = [view for view, _ in views_of_name(name)]
    return max(found, key=lambda view: len(view.suffix)) if found else None


def content_of(view: View, presented: PresentedArray) -> VirtualFileContent:
    """Return the content of the file in which a view presents an array. Raises UnsupportedError if it cannot."""
    reason = unsupported_reason(view, presented)
    if reason is not None:
        raise UnsupportedError(
            f"{presented.array.store.url}: {presented.array.name} cannot be written as {view.suffix}: "
            f"{reason}{_advice(view, presented)}"
        )
    return make_content(view, presented)


def _advice(view: View, presented: PresentedArray) -> str:
    """Return the advice to convert the values, if the format has a similar data type but not that of the array."""
    kind = presented.array.dtype.kind
    for name in SIMILAR_TYPES.get("" if presented.array.dtype.hasobject else kind, ()):
        if unsupported_reason(view, converted(presented, name)) is None:
            return f"; dtype={name!r} converts the values, if they fit"
    return ""


def write_content(
    content: VirtualFileContent, file: BinaryIO, name: str, progress: Progress | None = None
) -> None:
    """Write a content sequentially. Each chunk is decoded once, in bounded memory."""
    for data in _blocks(content, name, progress):
        file.write(data)


def write_gzip(
    content: VirtualFileContent, file: BinaryIO, name: str, progress: Progress | None = None
) -> None:
    """Write a content as one gzip member, without a name and a time, so that equal contents give equal files."""
    with gzip.GzipFile("", "wb", 6, file, mtime=0) as compressed:
        write_content(content, compressed, name, progress)  # type: ignore[arg-type]  # has the method write


def write_npz(
    contents: Mapping[str, VirtualFileContent], file: BinaryIO, progress: Progress | None = None
) -> None:
    """Write contents of ``.npy`` files as a zip file without compression, as ``numpy.savez`` does."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in contents.items():
            member = zipfile.ZipInfo(f"{name}.npy")
            with archive.open(member, "w", force_zip64=True) as target:
                for data in _blocks(content, name, progress):
                    target.write(data)


def _blocks(content: VirtualFileContent, name: str, progress: Progress | None) -> Iterator[memoryview]:
    opened = OpenFile(content, BlockPool())
    done = 0
    while done < content.size:
        data = memoryview(opened.read(done, READ_NBYTES)).cast("B")
        if not data:
            raise AssertionError("a read before the end of the file returned nothing")
        yield data
        done += len(data)
        if progress is not None:
            progress(name, done, content.size)
