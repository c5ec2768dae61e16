"""Lookup tables of ImageJ, and colour maps of the package cmap, as names of colour maps.

The name of an imported lookup table contains its colours, so that saved views and links need no other file:
``lut:TITLE:`` and the 768 bytes (256 values of red, then of green, then of blue), compressed with zlib, in URL-safe
Base64. ``cmap:NAME`` is a colour map of the package cmap.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import zlib
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from zarrfs.errors import UnsupportedError, ZarrError
from zarrfs.plugins import install_hint

__all__ = ["MAX_LUT_NBYTES", "cmap_names", "cmap_table", "lut_name", "lut_table", "lut_title", "parse_lut"]

Table = npt.NDArray[np.uint8]

COLORS = 256
TABLE_NBYTES = 3 * COLORS
MAX_LUT_NBYTES = 1 << 16
"""The maximum size of a file with a lookup table. Text with 256 rows is smaller."""
MAX_TITLE = 40
NIH_HEADER_NBYTES = 32
NIH_MAGIC = b"ICOL"


def parse_lut(content: bytes, file: str) -> Table:
    """Return the colours of a lookup table file of ImageJ as an array of shape (256, 3).

    The file contains 768 bytes, a header of NIH Image and up to 256 values per colour, or text with a row ``red green
    blue`` or ``index red green blue`` per colour, divided by spaces, tabs or commas, with or without a header row.
    Fewer than 256 colours are interpolated. ``file`` is its name, for messages.

    Raises ZarrError for anything else.
    """
    if content.startswith(NIH_MAGIC) and len(content) > NIH_HEADER_NBYTES:
        (count,) = struct.unpack_from(">h", content, 6)
        planes = content[NIH_HEADER_NBYTES : NIH_HEADER_NBYTES + 3 * max(count, 0)]
        if not 2 <= count <= COLORS or len(planes) != 3 * count:
            raise ZarrError(
                f"{file}: the header states {count} colours; expected 2 to {COLORS}, and their values"
            )
        return _interpolated(np.frombuffer(planes, np.uint8).reshape(3, count).T)
    if len(content) == TABLE_NBYTES and not _is_text(content):
        return np.frombuffer(content, np.uint8).reshape(3, COLORS).T.copy()
    if not _is_text(content):
        raise ZarrError(
            f"{file} is not a lookup table: expected {TABLE_NBYTES} bytes, a header of NIH Image, or text; "
            f"found {len(content)} bytes"
        )
    return _interpolated(_parse_text(content.decode("ascii"), file))


def _is_text(content: bytes) -> bool:
    return bool(content) and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in content)


def _parse_text(text: str, file: str) -> npt.NDArray[np.uint8]:
    rows: list[list[int]] = []
    for number, line in enumerate(text.splitlines(), 1):
        parts = re.split(r"[\s,;]+", line.strip(" \t,;"))
        if parts == [""] or (not rows and any(re.search("[A-Za-z]", part) for part in parts)):
            continue  # an empty line, or the header
        if len(parts) not in (3, 4) or not all(re.fullmatch(r"\d{1,3}(\.0*)?", part) for part in parts):
            raise ZarrError(
                f"{file}, line {number}: expected 'red green blue' or 'index red green blue', found {line[:60]!r}"
            )
        rows.append([int(float(part)) for part in parts[-3:]])
    if not 2 <= len(rows) <= COLORS or max(map(max, rows)) > 255:
        raise ZarrError(f"{file} has {len(rows)} colours; expected 2 to {COLORS}, with values from 0 to 255")
    return np.array(rows, np.uint8)


def _interpolated(colors: npt.NDArray[np.uint8]) -> Table:
    positions = np.linspace(0, COLORS - 1, len(colors))
    columns = [np.interp(np.arange(COLORS), positions, colors[:, part]) for part in range(3)]
    return np.stack(columns, axis=1).round().astype(np.uint8)


def lut_name(title: str, table: Table) -> str:
    """Return the name of a colour map with a title and a table of shape (256, 3)."""
    data = zlib.compress(np.ascontiguousarray(table.T, np.uint8).tobytes(), 9)
    clean = re.sub(r"[^\w .()+-]", "_", title)[:MAX_TITLE].strip() or "LUT"
    return f"lut:{clean}:{base64.urlsafe_b64encode(data).decode('ascii')}"


def lut_title(name: str) -> str:
    """Return the title of a colour map that is displayed: that of an imported table, or the name in cmap."""
    kind, _, rest = name.partition(":")
    if kind == "lut":
        return rest.rpartition(":")[0]
    return rest if kind == "cmap" else name


def lut_table(name: str) -> Table | None:
    """Return the table of a name that ``lut_name`` returned, or None if it is not valid."""
    match = re.fullmatch(r"lut:[\w .()+-]{1,40}:([A-Za-z0-9_=-]{1,2000})", name)
    if match is None:
        return None
    try:
        decompressor = zlib.decompressobj()
        data = decompressor.decompress(base64.urlsafe_b64decode(match[1]), TABLE_NBYTES + 1)
    except (binascii.Error, zlib.error):
        return None
    return np.frombuffer(data, np.uint8).reshape(3, COLORS).T.copy() if len(data) == TABLE_NBYTES else None


def _cmap() -> Any:
    try:
        return import_module("cmap")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"more colour maps need the package cmap: {install_hint('colormaps')}"
        ) from error


@lru_cache(maxsize=1)
def cmap_names() -> tuple[str, ...]:
    """Return the names of the continuous colour maps of the package cmap, with the prefix ``cmap:``.

    Raises UnsupportedError if it is not installed.
    """
    catalog = _cmap().Catalog()
    names = set()
    for key in catalog.unique_keys():
        item = catalog[key]
        # Names such as Blues_5 are lists of few colours for maps and charts.
        if item.category != "qualitative" and item.interpolation and not re.search(r"_\d+$", item.name):
            names.add(f"cmap:{item.namespace}:{item.name}" if item.namespace else f"cmap:{item.name}")
    return tuple(sorted(names, key=str.casefold))


def cmap_table(name: str) -> Table | None:
    """Return the table of ``cmap:NAME``, or None if there is no such colour map or cmap is not installed."""
    match = re.fullmatch(r"cmap:([\w:.-]{1,80})", name)
    if match is None:
        return None
    try:
        colors = np.asarray(_cmap().Colormap(match[1])(np.linspace(0, 1, COLORS)))[:, :3]
    except (ZarrError, ValueError, KeyError, TypeError):
        return None
    table: Table = (np.clip(colors, 0, 1) * 255).round().astype(np.uint8)
    return table
