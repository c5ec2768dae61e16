""".fits: a FITS file with one image.

Specification: FITS 4.0, https://fits.gsfc.nasa.gov/fits_standard.html. NAXIS1 is the last dimension of the array.
Elements are big-endian. Unsigned integers and signed bytes are stored with an offset (BZERO). The position of the
elements is a linear world coordinate system.
"""

from __future__ import annotations

from typing import ClassVar

from zarrfs.engine.array.array import Array
from zarrfs.files.byte_order import differs_from
from zarrfs.files.content.content import (
    ArraySegment,
    BytesSegment,
    Segment,
    StreamSegment,
    VirtualFileContent,
)
from zarrfs.files.content.streams import ArrayStream, ByteSwappedStream, FlatStream, SignFlippedStream
from zarrfs.files.hdf5.h5_view import has_position
from zarrfs.files.pixel_grids import element_unsupported_reason
from zarrfs.files.view import PresentedArray, View, fixed_size_unsupported_reason
from zarrfs.ngff.geometry import ArrayAxis
from zarrfs.text import safe_text

__all__ = ["FitsView"]

BITPIX = {
    "bool": 8,
    "uint8": 8,
    "int8": 8,
    "int16": 16,
    "uint16": 16,
    "int32": 32,
    "uint32": 32,
    "int64": 64,
    "uint64": 64,
    "float32": -32,
    "float64": -64,
}
"""Name of a NumPy dtype -> BITPIX."""

OFFSETS = {"int8": -(2**7), "uint16": 2**15, "uint32": 2**31, "uint64": 2**63}
"""Name of a NumPy dtype -> BZERO, for types that FITS stores with the opposite sign."""

BLOCK_NBYTES = 2880
CARD_LENGTH = 80
MAX_STRING_LENGTH = 68
MAX_TEXT_LENGTH = 1000
MAX_AXES = 99
"""Keywords have at most eight characters, which leaves two digits for the number of an axis (CDELT99)."""


class FitsView(View):
    """A FITS image in the primary header and data unit."""

    suffix: ClassVar[str] = ".fits"
    needs_attributes: ClassVar[bool] = False

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        unsupported_reason = fixed_size_unsupported_reason(array) or element_unsupported_reason(
            array.dtype, BITPIX, "FITS"
        )
        if unsupported_reason is None and array.ndim > MAX_AXES:
            return f"its {array.ndim} dimensions exceed the supported maximum ({MAX_AXES})"
        return unsupported_reason

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        array = presented.array
        header = "".join(_cards(presented)).encode("ascii")
        padding = bytes(-array.nbytes % BLOCK_NBYTES)
        return VirtualFileContent(
            [
                BytesSegment(header.ljust(-(-len(header) // BLOCK_NBYTES) * BLOCK_NBYTES)),
                _elements(array),
                BytesSegment(padding),
            ]
        )


def _elements(array: Array) -> Segment:
    width = array.itemsize
    is_swapped = differs_from(array.dtype, "big")
    if array.dtype.name not in OFFSETS:
        return ArraySegment(array, swap=is_swapped)
    stream: FlatStream = ArrayStream(array)
    if is_swapped:
        stream = ByteSwappedStream(stream, width)
    return StreamSegment(SignFlippedStream(stream, width))


def _cards(presented: PresentedArray) -> list[str]:
    """Return the header without the padding, in cards of 80 characters."""
    array = presented.array
    # A file without axes has no data: a scalar is an array with one element.
    lengths = array.shape[::-1] or (1,)
    cards = [
        _card("SIMPLE", True),
        _card("BITPIX", BITPIX[array.dtype.name]),
        _card("NAXIS", len(lengths)),
        *(_card(f"NAXIS{number}", length) for number, length in enumerate(lengths, 1)),
    ]
    if array.dtype.name in OFFSETS:
        cards += [_card("BSCALE", 1), _card("BZERO", OFFSETS[array.dtype.name])]
    cards.append(_card("EXTNAME", presented.name))
    axes = presented.geometry.axes[::-1]
    has_positions = any(has_position(axis) for axis in axes)
    for number, axis in enumerate(axes, 1):
        cards += _axis_cards(number, axis, has_positions)
    return [*cards, "END".ljust(CARD_LENGTH)]


def _axis_cards(number: int, axis: ArrayAxis, has_positions: bool) -> list[str]:
    """Return the cards of an axis. ``has_positions`` is whether the positions on any axis are known."""
    if not has_position(axis):
        cards = [] if axis.name is None else [_card(f"CTYPE{number}", axis.name)]
        # If one axis has a reference point, all have one. The coordinates of the others are their indices.
        reference = (("CRPIX", 1.0), ("CRVAL", 0.0), ("CDELT", 1.0)) if has_positions else ()
        return cards + [_card(f"{keyword}{number}", value) for keyword, value in reference]
    return [
        _card(f"CTYPE{number}", axis.name or ""),
        _card(f"CRPIX{number}", 1.0),
        _card(f"CRVAL{number}", axis.translation),
        _card(f"CDELT{number}", axis.scale),
        *([] if axis.unit is None else [_card(f"CUNIT{number}", _unit(axis.unit))]),
    ]


def _unit(unit: str) -> str:
    """Return the symbol of a unit of length or time, as FITS requires, or the unit unchanged."""
    return UNIT_SYMBOLS.get(unit, unit)


UNIT_SYMBOLS = {
    **{
        f"{prefix}meter": f"{symbol}m"
        for prefix, symbol in (("", ""), ("milli", "m"), ("micro", "u"), ("nano", "n"))
    },
    **{
        f"{prefix}second": f"{symbol}s"
        for prefix, symbol in (("", ""), ("milli", "m"), ("micro", "u"), ("nano", "n"))
    },
    "kilometer": "km",
    "centimeter": "cm",
    "angstrom": "Angstrom",
    "minute": "min",
    "hour": "h",
    "day": "d",
    "\u00b5m": "um",
    "\u03bcm": "um",
    "micron": "um",
}


def _card(keyword: str, value: bool | int | float | str) -> str:
    """Return a card with a value in the fixed format."""
    if isinstance(value, bool):
        text = "T".rjust(20)
    elif isinstance(value, int):
        text = str(value).rjust(20)
    elif isinstance(value, float):
        text = repr(value).upper().rjust(20)
    else:
        # Text consists of printable ASCII characters; a quote is doubled.
        ascii_text = (
            safe_text(value, MAX_TEXT_LENGTH)
            .encode("ascii", "backslashreplace")
            .decode("ascii")
            .replace("\t", " ")
        )
        ascii_text = ascii_text[:MAX_STRING_LENGTH].replace("'", "''")[:MAX_STRING_LENGTH]
        if ascii_text.count("'") % 2:
            ascii_text = ascii_text[:-1]
        text = f"'{ascii_text.ljust(8)}'"
    return f"{keyword:<8}= {text}".ljust(CARD_LENGTH)
