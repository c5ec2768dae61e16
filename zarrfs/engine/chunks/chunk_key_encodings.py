"""Chunk key encodings: translation between chunk coordinates and store keys relative to the array's prefix.

Zarr v3 "Chunk key encodings": ``default`` and ``v2``. Other encodings are registered with the entry point group
``zarrfs.chunk_key_encodings`` (name of the encoding -> subclass of ChunkKeyEncoding). The encodings of other formats
are in the modules of those formats.
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
from zarrfs.text import MAX_VALUE, safe_text

__all__ = [
    "ENTRY_POINTS",
    "ChunkKeyEncoding",
    "Coords",
    "DefaultKeys",
    "Separator",
    "SeparatorKeys",
    "V2Keys",
    "chunk_key_encoding_from_json",
    "chunk_key_encoding_to_json",
    "resembles_chunk_key",
]

ENTRY_POINTS = "zarrfs.chunk_key_encodings"

Coords = tuple[int, ...]
Separator = Literal["/", "."]

_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)
_CHUNK_LIKE = re.compile(r"(c[./])?[0-9]+([./][0-9]+)*", re.ASCII)
_SEPARATORS = ("/", ".")


def resembles_chunk_key(key: str) -> bool:
    """Return whether a key, relative to the array's prefix, is that of a chunk with any of the encodings of this module
    and any number of dimensions, except for the key ``c``.
    """
    return _CHUNK_LIKE.fullmatch(key) is not None


def _indices(text: str, separator: str) -> Coords | None:
    """Return the decimal numbers between the separators, or None if a part is not a canonical number."""
    parts = text.split(separator)
    return tuple(map(int, parts)) if all(len(p) < 20 and _INDEX.fullmatch(p) for p in parts) else None


class ChunkKeyEncoding(ABC):
    """The keys of an array's chunks, relative to the array's prefix. Immutable, hashable and thread-safe."""

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        """Create the encoding from its v3 ``configuration``. Raises MetadataError that names the invalid key."""

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Return the v3 ``configuration`` object of the encoding."""

    @abstractmethod
    def encode(self, coords: Coords) -> str:
        """Return the key of a chunk, relative to the array's prefix."""

    @abstractmethod
    def decode(self, key: str) -> Coords | None:
        """Return the coordinates of the chunk with this key, or None if ``encode`` never returns the key.

        The key of the only chunk of a 0-dimensional array decodes to ``()``. If it equals the key of the first chunk of
        a 1-dimensional array, as in ``v2``, it decodes to ``(0,)``; ``decoder`` resolves the ambiguity.
        """

    def encoder(self, ndim: int) -> Callable[[Coords], str]:
        """Return a function that is equivalent to ``encode`` for this number of dimensions, possibly faster."""
        return self.encode

    def decoder(self, ndim: int) -> Callable[[str], Coords | None]:
        """Return a function like ``decode`` that returns None for coordinates of another number of dimensions."""

        def decode(key: str) -> Coords | None:
            coords = self.decode(key)
            return coords if coords is not None and len(coords) == ndim else None

        return decode


@dataclass(frozen=True)
class SeparatorKeys(ChunkKeyEncoding):
    """The base class of the encodings whose keys are the coordinates, joined by a separator."""

    separator: Separator = "/"

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any], where: str) -> Self:
        check_keys(configuration, where, ("separator",))
        given = configuration.get("separator", cls.separator)
        separator = expect_string(given, f"{where}/separator", _SEPARATORS)
        return cls("/" if separator == "/" else ".")

    def configuration(self) -> dict[str, Any]:
        return {"separator": self.separator}


@dataclass(frozen=True)
class DefaultKeys(SeparatorKeys):
    """Keys such as ``c/1/23/45``. The key of the chunk of a 0-dimensional array is ``c``."""

    name: ClassVar[str] = "default"
    separator: Separator = "/"

    def encode(self, coords: Coords) -> str:
        return self.separator.join(("c", *map(str, coords)))

    def decode(self, key: str) -> Coords | None:
        if key == "c":
            return ()
        return _indices(key[2:], self.separator) if key.startswith("c" + self.separator) else None

    def encoder(self, ndim: int) -> Callable[[Coords], str]:
        return ("c" + f"{self.separator}%d" * ndim).__mod__


@dataclass(frozen=True)
class V2Keys(SeparatorKeys):
    """Keys such as ``1.23.45``. The key of the chunk of a 0-dimensional array is ``0``."""

    name: ClassVar[str] = "v2"
    separator: Separator = "."

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


_ENCODINGS: dict[str, type[ChunkKeyEncoding]] = {"default": DefaultKeys, "v2": V2Keys}


def chunk_key_encoding_from_json(value: Any, where: str) -> ChunkKeyEncoding:
    """Return the encoding of the ``chunk_key_encoding`` of a v3 document.

    Raises UnsupportedError for an unsupported encoding and MetadataError for invalid metadata.
    """
    name, configuration = named_configuration(value, where, "chunk key encoding")
    if name not in _ENCODINGS:
        plugin = find_plugin(ENTRY_POINTS, name, type[ChunkKeyEncoding], MetadataError)
        if plugin is not None:
            _ENCODINGS[name] = plugin
    if name not in _ENCODINGS:
        names = ", ".join(f'"{known}"' for known in _ENCODINGS)
        raise UnsupportedError(
            f'{where}: the chunk key encoding "{safe_text(name, MAX_VALUE)}" is not supported; expected one of '
            f"{names}, or one that an installed package registers with the entry point group {ENTRY_POINTS}"
        )
    return _ENCODINGS[name].from_configuration(configuration, f"{where}/configuration")


def chunk_key_encoding_to_json(encoding: ChunkKeyEncoding) -> dict[str, Any]:
    """Return the v3 object of the encoding. Raises UnsupportedError for an encoding that only another format has."""
    if _ENCODINGS.get(encoding.name) is not type(encoding):
        raise UnsupportedError(f'Zarr v3 does not support the chunk key encoding "{encoding.name}"')
    return {"name": encoding.name, "configuration": encoding.configuration()}
