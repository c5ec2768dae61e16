"""Chunk key encodings: chunk coordinates <-> the part of a store key that follows the array's prefix.

Zarr v3 "Chunk key encodings": ``default`` and ``v2``. Others register by the entry point group
``zarrfs.chunk_key_encodings`` (name of the encoding -> subclass of ChunkKeyEncoding). The encodings of other formats
stand with those formats.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from zarrfs.engine.json_checks import check_keys, expect_string, named_configuration
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.plugins import find_plugin

__all__ = [
    "ENTRY_POINTS",
    "ChunkKeyEncoding",
    "Coords",
    "DefaultKeys",
    "Separator",
    "V2Keys",
    "chunk_key_encoding_from_json",
    "chunk_key_encoding_to_json",
]

ENTRY_POINTS = "zarrfs.chunk_key_encodings"

Coords = tuple[int, ...]
Separator = Literal["/", "."]

_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_SEPARATORS = ("/", ".")


def _indices(text: str, separator: str) -> Coords | None:
    """Return the decimal numbers between the separators, or None if any part is no canonical number."""
    parts = text.split(separator)
    return tuple(map(int, parts)) if all(len(p) < 20 and _INDEX.fullmatch(p) for p in parts) else None


class ChunkKeyEncoding(ABC):
    """Where the chunks of an array are, below its prefix. Immutable, hashable, shared by threads."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        """Make the encoding from its v3 ``configuration``. Raises MetadataError that names the bad key."""

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the v3 ``configuration`` object that makes an equal encoding."""

    @abstractmethod
    def encode(self, coords: Coords) -> str:
        """Return the key of the chunk, without the array's prefix."""

    @abstractmethod
    def decode(self, key: str) -> Coords | None:
        """Return the coordinates of the chunk with that key, or None when the key is none that ``encode``
        gives.

        A 0-dimensional array's one chunk decodes to ``()`` where the key can tell; where the key of a
        1-dimensional array's first chunk is the same (``v2``), to ``(0,)``: see ``decoder``.
        """

    def encoder(self, ndim: int) -> Callable[[Coords], str]:
        """Return the fastest function there is that does ``encode`` for this number of dimensions."""
        return self.encode

    def decoder(self, ndim: int) -> Callable[[str], Coords | None]:
        """Return a function that does ``decode`` and gives None for any other number of dimensions."""

        def decode(key: str) -> Coords | None:
            coords = self.decode(key)
            return coords if coords is not None and len(coords) == ndim else None

        return decode


@dataclass(frozen=True)
class DefaultKeys(ChunkKeyEncoding):
    """``c/1/23/45``; the 0-dimensional chunk is ``c``."""

    name: ClassVar[str] = "default"
    separator: Separator = "/"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        return cls(_separator(configuration, where, "/"))

    def configuration(self) -> dict[str, Any]:
        return {"separator": self.separator}

    def encode(self, coords: Coords) -> str:
        return self.separator.join(("c", *map(str, coords)))

    def decode(self, key: str) -> Coords | None:
        if key == "c":
            return ()
        return _indices(key[2:], self.separator) if key.startswith("c" + self.separator) else None

    def encoder(self, ndim: int) -> Callable[[Coords], str]:
        return ("c" + f"{self.separator}%d" * ndim).__mod__


@dataclass(frozen=True)
class V2Keys(ChunkKeyEncoding):
    """``1.23.45``; the 0-dimensional chunk is ``0``."""

    name: ClassVar[str] = "v2"
    separator: Separator = "."

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        return cls(_separator(configuration, where, "."))

    def configuration(self) -> dict[str, Any]:
        return {"separator": self.separator}

    def encode(self, coords: Coords) -> str:
        return self.separator.join(map(str, coords)) if coords else "0"

    def decode(self, key: str) -> Coords | None:
        return _indices(key, self.separator)

    def encoder(self, ndim: int) -> Callable[[Coords], str]:
        return self.separator.join(["%d"] * ndim).__mod__ if ndim else self.encode

    def decoder(self, ndim: int) -> Callable[[str], Coords | None]:
        if ndim == 0:
            return lambda key: () if key == "0" else None
        return super().decoder(ndim)


def _separator(configuration: Mapping[str, Any], where: str, default: Separator) -> Separator:
    check_keys(configuration, where, ("separator",))
    separator = expect_string(configuration.get("separator", default), f"{where}/separator", _SEPARATORS)
    return "/" if separator == "/" else "."


_ENCODINGS: dict[str, type[ChunkKeyEncoding]] = {"default": DefaultKeys, "v2": V2Keys}


def chunk_key_encoding_from_json(value: Any, where: str) -> ChunkKeyEncoding:
    """Return the encoding that a v3 document's ``chunk_key_encoding`` asks for.

    Raises UnsupportedError for one that is not known, MetadataError for a broken one.
    """
    name, configuration = named_configuration(value, where, "chunk key encoding")
    if name not in _ENCODINGS:
        found = find_plugin(ENTRY_POINTS, name, type[ChunkKeyEncoding], MetadataError)
        if found is not None:
            _ENCODINGS[name] = found
    if name not in _ENCODINGS:
        known = ", ".join(f'"{known}"' for known in _ENCODINGS)
        raise UnsupportedError(
            f'{where}: the chunk key encoding "{name}" is not known here; known are {known}, and what is installed '
            f"for the entry point group {ENTRY_POINTS}"
        )
    return _ENCODINGS[name].from_configuration(configuration, f"{where}/configuration")


def chunk_key_encoding_to_json(encoding: ChunkKeyEncoding) -> dict[str, Any]:
    """Return the v3 object that makes an equal encoding. Raises UnsupportedError for keys of another
    format.
    """
    if _ENCODINGS.get(encoding.name) is not type(encoding):
        raise UnsupportedError(f'Zarr v3 has no chunk key encoding for the chunk keys "{encoding.name}"')
    return {"name": encoding.name, "configuration": encoding.configuration()}
