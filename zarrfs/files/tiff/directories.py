"""Image file directories (IFD) of TIFF and BigTIFF files with one uncompressed image, gray or RGB.

Specifications: TIFF 6.0, and https://www.awaresystems.be/imaging/tiff/bigtiff.html. Offsets have 4 bytes in TIFF and 8
bytes in BigTIFF.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from zarrfs.files.byte_order import byte_order

__all__ = [
    "ASCII",
    "BYTE",
    "LONG",
    "RATIONAL",
    "ImageTags",
    "Tag",
    "TiffForm",
    "fraction_tag_values",
    "sample_format",
]

BYTE, ASCII, SHORT, LONG, RATIONAL, LONG8 = 1, 2, 3, 4, 5, 16
"""The data types of tags."""

VALUE_FORMATS = {BYTE: "B", ASCII: "B", SHORT: "H", LONG: "I", RATIONAL: "II", LONG8: "Q"}

BLACK_IS_ZERO, RGB = 1, 2
CONTIGUOUS = 1
"""The value of PlanarConfiguration for samples that follow each other."""
UNASSOCIATED_ALPHA = 2
"""The value of ExtraSamples for an opacity by which the colours are not multiplied."""
RGB_SAMPLES = 3
NO_COMPRESSION = 1

SAMPLE_FORMATS = {"u": 1, "b": 1, "i": 2, "f": 3, "c": 6}
"""Kind of a NumPy dtype -> SampleFormat."""

MAX_LONG = 2**32 - 1
MAX_RATIONAL = 2**31 - 1
"""The maximum of the two parts of a RATIONAL. Some programs read them as signed numbers."""

MAX_STRIP_NBYTES = 1 << 30
"""The maximum size of a strip. Programs in Java cannot read a strip of 2 GiB."""


class Tag(NamedTuple):
    """A tag: its code, the data type of its values, and the values. A RATIONAL has two values."""

    code: int
    kind: int
    values: Sequence[int]


class TiffForm(NamedTuple):
    """The byte order of a file (``<`` or ``>``), and whether it is a BigTIFF file."""

    order: str
    is_big: bool

    @classmethod
    def of(cls, dtype: np.dtype[Any], is_big: bool) -> TiffForm:
        """Return the form whose byte order is that of the elements. Elements of one byte are little-endian."""
        return cls(">" if byte_order(dtype) == "big" else "<", is_big)

    @property
    def header_nbytes(self) -> int:
        """The size of the header. The first directory follows the header."""
        return 16 if self.is_big else 8

    def header(self) -> bytes:
        """Return the header of a file whose first directory follows the header."""
        byte_order = b"II" if self.order == "<" else b"MM"
        if self.is_big:
            return byte_order + struct.pack(f"{self.order}HHHQ", 43, 8, 0, self.header_nbytes)
        return byte_order + struct.pack(f"{self.order}HI", 42, self.header_nbytes)

    def directory_nbytes(self, tags: Sequence[Tag]) -> int:
        """Return the size of a directory and of the values that follow it."""
        count_nbytes, entry_nbytes, offset_nbytes = (8, 20, 8) if self.is_big else (2, 12, 4)
        own = count_nbytes + entry_nbytes * len(tags) + offset_nbytes
        return own + sum(
            nbytes + nbytes % 2 for nbytes in map(_values_nbytes, tags) if nbytes > offset_nbytes
        )

    def directory(self, tags: Sequence[Tag], start: int, following: int) -> bytes:
        """Return the directory at the offset ``start``. ``following`` is the offset of the next one, or 0.

        ``tags`` are in the order of their codes.
        """
        count_format, entry_format, offset_format = ("Q", "HHQ", "Q") if self.is_big else ("H", "HHI", "I")
        offset_nbytes = struct.calcsize(offset_format)
        directory = bytearray(struct.pack(self.order + count_format, len(tags)))
        entry_nbytes = struct.calcsize(f"={entry_format}") + offset_nbytes
        values_start = start + len(directory) + entry_nbytes * len(tags) + offset_nbytes
        values = bytearray()
        for tag in tags:
            encoded = _encode(tag, self.order)
            count = len(tag.values) // len(VALUE_FORMATS[tag.kind])
            directory += struct.pack(self.order + entry_format, tag.code, tag.kind, count)
            if len(encoded) <= offset_nbytes:
                directory += encoded.ljust(offset_nbytes, b"\0")
            else:
                directory += struct.pack(self.order + offset_format, values_start + len(values))
                values += encoded + b"\0" * (len(encoded) % 2)
        directory += struct.pack(self.order + offset_format, following)
        return bytes(directory + values)


def _encode(tag: Tag, order: str) -> bytes:
    if tag.kind in (BYTE, ASCII):
        return bytes(tag.values)
    return struct.pack(f"{order}{len(tag.values)}{VALUE_FORMATS[tag.kind][0]}", *tag.values)


def _values_nbytes(tag: Tag) -> int:
    return len(tag.values) * struct.calcsize(f"={VALUE_FORMATS[tag.kind][0]}")


@dataclass(frozen=True)
class ImageTags:
    """The tags of an uncompressed image whose rows are contiguous.

    Attributes:
        form: the form of the file.
        dtype: the data type of the pixels.
        width, height: the size in pixels.
        resolution: pixels per ``resolution_unit`` in x and y, as numerator and denominator; None if unknown.
        resolution_unit: 1 for no unit, 3 for centimetre.
        samples: the number of values of a pixel: 1, 3 for red, green and blue, or 4 with the opacity.
    """

    form: TiffForm
    dtype: np.dtype[Any]
    width: int
    height: int
    resolution: tuple[tuple[int, int], tuple[int, int]] | None = None
    resolution_unit: int = 1
    samples: int = 1

    def tags(self, offset: int, extra: Sequence[Tag] = ()) -> list[Tag]:
        """Return the tags of an image whose pixels begin at ``offset``, and additional ones."""
        row_nbytes = self.width * self.dtype.itemsize * self.samples
        rows = max(1, min(self.height, MAX_STRIP_NBYTES // row_nbytes))
        starts = range(0, self.height, rows)
        long = LONG8 if self.form.is_big else LONG
        tags = [
            Tag(256, LONG, (self.width,)),
            Tag(257, LONG, (self.height,)),
            Tag(258, SHORT, (8 * self.dtype.itemsize,) * self.samples),
            Tag(259, SHORT, (NO_COMPRESSION,)),
            Tag(262, SHORT, (BLACK_IS_ZERO if self.samples == 1 else RGB,)),
            Tag(273, long, [offset + row * row_nbytes for row in starts]),
            Tag(277, SHORT, (self.samples,)),
            Tag(278, LONG, (rows,)),
            Tag(279, long, [min(rows, self.height - row) * row_nbytes for row in starts]),
            Tag(339, SHORT, (sample_format(self.dtype),) * self.samples),
            *extra,
        ]
        if self.samples > 1:
            tags.append(Tag(284, SHORT, (CONTIGUOUS,)))
        if self.samples > RGB_SAMPLES:
            tags.append(Tag(338, SHORT, (UNASSOCIATED_ALPHA,)))
        if self.resolution is not None:
            x, y = self.resolution
            tags += [Tag(282, RATIONAL, x), Tag(283, RATIONAL, y), Tag(296, SHORT, (self.resolution_unit,))]
        return sorted(tags)


def sample_format(dtype: np.dtype[Any]) -> int:
    """Return the value of SampleFormat for numbers of a dtype."""
    return SAMPLE_FORMATS[dtype.kind]


def fraction_tag_values(value: Fraction) -> tuple[int, int] | None:
    """Return a positive fraction as the two values of a RATIONAL, rounded; None if it is out of range."""
    if not 0 < value < MAX_RATIONAL:
        return None
    limit = max(1, int(MAX_RATIONAL / value) - 1) if value > 1 else MAX_RATIONAL
    rounded = value.limit_denominator(limit)
    return (rounded.numerator, rounded.denominator) if 0 < rounded.numerator <= MAX_RATIONAL else None
