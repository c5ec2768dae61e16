"""TIFF, OME-TIFF and ImageJ files as OME-Zarr images, read with tifffile."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from zarrfs.engine.stores.regular_files import open_regular_file
from zarrfs.errors import LocationError, UnsupportedError, ZarrError
from zarrfs.files.contiguous import ContiguousValues, path_stamp
from zarrfs.files.foreign_array import CHUNK_NBYTES, ForeignArray, is_presentable, plane_chunks
from zarrfs.files.foreign_store import ForeignStore
from zarrfs.files.tiff.checks import (
    check_expansion,
    check_files,
    check_pages,
    image_files,
    metadata_file,
    ome_problem,
)
from zarrfs.files.tiff.metadata import image_attributes
from zarrfs.libraries import load_library
from zarrfs.logs import logger
from zarrfs.plugins import install_hint

__all__ = ["open_tiff"]

MAX_SERIES = 10_000

MAX_OPEN_FILES = 32
"""The maximum number of open files of a data set of many files, besides the first one."""

SEPARATE = 2
"""The value of the tag PlanarConfiguration for samples in separate planes."""


def open_tiff(path: str, *, is_complete: bool = False, may_refer: bool = True) -> ForeignStore:
    """Return a store with the images of a TIFF file: one image at the root, or several as series.

    Files of the same directory that contain parts of the images are read too, and are the ``files`` of the store. If
    the OME-XML is in another TIFF file of the directory, that one is opened (``may_refer``). Planes that OME-XML does
    not list, or that the file lacks, read as zeros, with a warning. If the OME-XML is not valid, the pages are
    presented without it, and ``ignored_metadata`` of the store states the reason. With ``is_complete`` such planes and
    other files are errors, and ``path`` may be a link to a file without a name.

    Raises LocationError if a file is damaged, missing or in another directory, or tifffile is missing, and
    UnsupportedError if nothing in it can be displayed.
    """
    tifffile = load_library("tifffile", "tiff", "reading TIFF")
    # Not a FIFO or a device. The reader closes it.
    stream = open(path, "rb", opener=lambda name, _: open_regular_file(name))  # noqa: SIM115
    reader = None
    try:
        with _reported_errors() as reported:
            file = tifffile.TiffFile(stream if is_complete else path)
            master = metadata_file(file, path) if may_refer and not is_complete else None
            if master is not None:
                file.close()
                stream.close()
                return open_tiff(master, may_refer=False)
            reader = _Reader(tifffile, file, path, stream, is_complete)
            if not len(file.pages):
                raise LocationError(
                    f"{path} contains no images; the writing of it was probably not completed"
                )
            check_pages(file, path)
            if not is_complete:
                check_files(file, path, tifffile)
            nodes = reader.nodes()
            problem = ome_problem(file)
        if is_complete and reported:
            raise LocationError(f"{path} is not a complete TIFF file: {reported[0]}")
    except BaseException as error:  # tifffile raises errors of many kinds for damaged files
        stream.close() if reader is None else reader.close()
        if isinstance(error, ZarrError) or not isinstance(error, Exception):
            raise
        reason = f"{type(error).__name__}: {error}" if isinstance(error, LookupError) else error
        raise LocationError(f"{path} cannot be read as TIFF: {reason}") from error
    store = ForeignStore(f"file://{path}", nodes, lambda: path_stamp(path), reader.close)
    store.files = tuple(os.path.join(os.path.dirname(path), name) for name in image_files(file, path))
    if problem:
        store.ignored_metadata = (
            f"{path}: the OME-XML is ignored, because {problem}; the order of the dimensions, pixel sizes and channels "
            "are unknown"
        )
    return store


@contextmanager
def _reported_errors() -> Iterator[list[str]]:
    """Collect the errors that tifffile only logs, such as pages outside of the file. The block runs on one thread."""
    found: list[str] = []
    thread = threading.get_ident()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.thread == thread:
                found.append(record.getMessage())

    handler = Collector(logging.ERROR)
    reader_logger = logging.getLogger("tifffile")
    reader_logger.addHandler(handler)
    try:
        yield found
    finally:
        reader_logger.removeHandler(handler)


class _Reader:
    """An open TIFF file. Its pages and handles are used by one thread at a time; segments are decoded without lock."""

    def __init__(self, tifffile: Any, file: Any, path: str, stream: BinaryIO, is_complete: bool) -> None:
        self._tifffile, self._file, self._path = tifffile, file, path
        self._stream = stream
        self._is_complete = is_complete
        self._lock = threading.Lock()
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._is_closed = False
        self._handles: dict[int, Any] = {}
        """The open handles of other files of the data set, in the order of their use."""

    def close(self) -> None:
        """Close the file, and the other files of the data set."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._file.close()
                self._stream.close()
                os.close(self._fd)

    def _use(self, handle: Any) -> None:
        """Open the handle of another file of the data set, and close the one that was not used for longest."""
        if handle is self._file.filehandle:
            return
        if handle.closed:
            handle.open()
        self._handles.pop(id(handle), None)
        self._handles[id(handle)] = handle
        if len(self._handles) > MAX_OPEN_FILES:
            self._handles.pop(next(iter(self._handles))).close()

    def nodes(self) -> dict[str, Any]:
        """Return the images as nodes of a hierarchy. Raises ZarrError."""
        images: list[dict[str, Any]] = []
        reasons: list[UnsupportedError] = []
        series = self._file.series
        if len(series) > MAX_SERIES:
            raise LocationError(
                f"{self._path} has {len(series)} images; at most {MAX_SERIES} images of a file are presented"
            )
        listed, stored = sum(len(one.pages) for one in series), len(self._file.pages)
        if series and series[0].kind == "ome" and listed < stored:
            logger.warning(
                "%s: %d of the %d pages are omitted: the OME-XML assigns them to no image",
                *(self._path, stored - listed, stored),
            )
        for number, one in enumerate(series):
            try:
                images.append(self._image(number, one))
            except UnsupportedError as error:
                reasons.append(error)
                images.append({"": error})
        if len(reasons) == len(images):
            raise reasons[0] if reasons else UnsupportedError(f"{self._path} contains no images")
        if len(images) == 1:
            return images[0]
        nodes: dict[str, Any] = {"": {"ome": {"version": "0.5", "bioformats2raw.layout": 3}}}
        for number, image in enumerate(images):
            for name, node in image.items():
                nodes[f"{number}/{name}" if name else str(number)] = node
        return nodes

    def _image(self, number: int, series: Any) -> dict[str, Any]:
        """Return the nodes of one image: the group with its metadata, and the array of each pyramid level."""
        if series.kind == "ome" or self._is_complete:
            missing = sum(page is None for page in series.pages)
            if missing and self._is_complete:
                raise LocationError(f"{self._path}: planes of the image are missing, or are in other files")
            if missing:
                logger.warning(
                    "%s: %d of the %d planes that the OME-XML declares for image %d are missing; they are zeros",
                    *(self._path, missing, len(series.pages), number),
                )
        levels = [self._array(level) for level in series.levels]
        first = levels[0]
        arrays = [level for level in levels if len(level.shape) == len(first.shape)]
        attributes = image_attributes(
            self._file, self._path, number, series, [level.shape for level in arrays]
        )
        return {"": attributes, **{str(level): array for level, array in enumerate(arrays)}}

    def _array(self, level: Any) -> ForeignArray:
        dtype, shape = level.dtype, tuple(level.shape)
        if dtype is None or not is_presentable(np.dtype(dtype)):
            raise UnsupportedError(f"{self._path}: the data type {dtype} is not supported; expected numbers")
        if min(shape, default=1) < 1 or any(length < 1 for length in _segment_shape(level.keyframe)):
            raise LocationError(f"{self._path}: an image of shape {shape} is not valid; the file is damaged")
        letters = tuple(name.lower() for name in level.axes)
        names = letters if len(set(letters)) == len(letters) else None
        keyframe = level.keyframe
        if level.dataoffset is not None:
            stored = np.dtype(dtype).newbyteorder(self._file.byteorder)
            values = ContiguousValues(self._fd, level.dataoffset, shape, stored)
            chunks = plane_chunks(shape, stored.itemsize)
            return ForeignArray(
                shape, _with_samples(chunks, shape, level.axes), np.dtype(dtype), values.read, names
            )
        if keyframe.compression not in self._tifffile.TIFF.DECOMPRESSORS:
            raise UnsupportedError(
                f"{self._path}: the compression {_name_of(keyframe.compression)} needs the package imagecodecs: "
                f"{install_hint('tiff')}"
            )
        if shape[len(shape) - len(keyframe.shape) :] != tuple(keyframe.shape):
            raise UnsupportedError(
                f"{self._path}: the shape {shape} of the image does not end with that of its pages, {keyframe.shape}"
            )
        if keyframe.imagedepth > 1:
            raise UnsupportedError(f"{self._path}: TIFF images with depth are not supported")
        return ForeignArray(
            shape,
            _page_chunks(keyframe, shape),
            np.dtype(dtype).newbyteorder("="),
            lambda region: self._read(level, region),
            names,
        )

    def _read(self, level: Any, region: tuple[slice, ...]) -> npt.NDArray[Any]:
        """Return a region of a level, which is decoded from the segments of its pages."""
        keyframe = level.keyframe
        leading = len(level.shape) - len(keyframe.shape)
        out = np.zeros([part.stop - part.start for part in region], np.dtype(level.dtype).newbyteorder("="))
        for index in np.ndindex(*out.shape[:leading]):
            place = tuple(part.start + i for part, i in zip(region[:leading], index, strict=True))
            number = int(np.ravel_multi_index(place, level.shape[:leading])) if leading else 0
            self._read_page(level, number, region[leading:], out[index])
        return out

    def _read_page(self, level: Any, number: int, region: tuple[slice, ...], out: npt.NDArray[Any]) -> None:
        """Decode a region of a page into ``out``. A missing page remains 0."""
        keyframe = level.keyframe
        height, width = _segment_shape(keyframe)
        rows_axis = keyframe.axes.index("Y")
        rows, columns = region[rows_axis], region[rows_axis + 1]
        down, across = -(-keyframe.imagelength // height), -(-keyframe.imagewidth // width)
        separate = rows_axis > 0
        planes = range(region[0].start, region[0].stop) if separate else range(1)
        for plane in planes:
            target = out[plane - region[0].start] if separate else out
            for y in range(rows.start // height, -(-rows.stop // height)):
                for x in range(columns.start // width, -(-columns.stop // width)):
                    values = self._segment(level, number, (plane * down + y) * across + x)
                    if values is None:
                        continue
                    top, left = y * height, x * width
                    inner_rows = slice(max(rows.start, top), min(rows.stop, top + values.shape[0]))
                    inner_columns = slice(max(columns.start, left), min(columns.stop, left + values.shape[1]))
                    part = values[
                        inner_rows.start - top : inner_rows.stop - top,
                        inner_columns.start - left : inner_columns.stop - left,
                    ]
                    samples = region[rows_axis + 2] if len(region) > rows_axis + 2 else None
                    target[
                        inner_rows.start - rows.start : inner_rows.stop - rows.start,
                        inner_columns.start - columns.start : inner_columns.stop - columns.start,
                    ] = part[:, :, 0] if samples is None else part[:, :, samples]

    def _segment(self, level: Any, number: int, segment: int) -> npt.NDArray[Any] | None:
        """Return a decoded strip or tile as (rows, columns, samples), or None if it is not stored."""
        keyframe = level.keyframe
        with self._lock:
            if self._is_closed:
                raise OSError(0, "the file is closed")
            page = level.pages[number]
            if page is None:
                return None
            if segment >= len(page.dataoffsets) or segment >= len(page.databytecounts):
                raise OSError(0, f"page {number} has {len(page.dataoffsets)} strips or tiles; expected more")
            offset, count = page.dataoffsets[segment], page.databytecounts[segment]
            if not count:
                return None
            handle = page.parent.filehandle
            self._use(handle)
            if offset + count > handle.size:
                raise OSError(0, f"the file ends after {handle.size} bytes; expected {offset + count}")
            handle.seek(offset)
            data = handle.read(count)
        height, width = _segment_shape(keyframe)
        samples = keyframe.samplesperpixel if keyframe.planarconfig != SEPARATE else 1
        nbytes = height * width * samples * keyframe.dtype.itemsize
        check_expansion(data, int(keyframe.compression), nbytes)
        options = {} if keyframe.jpegtables is None else {"jpegtables": keyframe.jpegtables}
        decoded, _, shape = keyframe.decode(data, segment, **options)
        return None if decoded is None else decoded[0, : shape[1], : shape[2], : shape[3]]


def _name_of(compression: Any) -> str:
    """Return the name of a compression of tifffile, which is an integer if tifffile does not know it."""
    return str(getattr(compression, "name", compression))


def _segment_shape(keyframe: Any) -> tuple[int, int]:
    """Return the height and width of the tiles or strips."""
    if keyframe.is_tiled:
        return keyframe.tilelength, keyframe.tilewidth
    return min(max(1, keyframe.rowsperstrip), keyframe.imagelength), keyframe.imagewidth


def _page_chunks(keyframe: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return chunks of whole tiles or strips. Several thin strips are one chunk."""
    height, width = _segment_shape(keyframe)
    itemsize = keyframe.dtype.itemsize * keyframe.samplesperpixel
    strips = max(1, math.ceil(CHUNK_NBYTES / max(1, height * width * itemsize)))
    height = height if keyframe.is_tiled else min(height * strips, keyframe.imagelength)
    page = [
        1 if axis == "S" and keyframe.planarconfig == SEPARATE else size
        for axis, size in zip(keyframe.axes, keyframe.shape, strict=True)
    ]
    rows_axis = keyframe.axes.index("Y")
    page[rows_axis], page[rows_axis + 1] = min(height, keyframe.imagelength), min(width, keyframe.imagewidth)
    return (*(1 for _ in shape[: len(shape) - len(page)]), *page)


def _with_samples(chunks: tuple[int, ...], shape: tuple[int, ...], axes: str) -> tuple[int, ...]:
    """Return chunks of rows with all samples, for arrays whose last axis has the samples of pixels."""
    if not axes.endswith("YXS"):
        return chunks
    rows = max(1, min(shape[-3], CHUNK_NBYTES // max(1, shape[-2] * shape[-1])))
    return (*(1 for _ in shape[:-3]), rows, *shape[-2:])
