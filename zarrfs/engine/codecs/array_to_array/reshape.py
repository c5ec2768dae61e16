"""reshape: changes the shape of a chunk and keeps the C order of its elements.

Specification: https://github.com/zarr-developers/zarr-extensions, codecs/reshape

Names: ``reshape``.

The example merges dimensions 0 and 1. The length of the last output dimension follows from the others.

Example::

    {"name": "reshape", "configuration": {"shape": [[0, 1], -1]}}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["ReshapeCodec"]

INFERRED = -1


class ReshapeCodec(ArrayArrayCodec):
    """array -> array: ``shape`` has one entry per output dimension.

    An entry is a length, -1 for the length that follows from the others (at most once), or a list of input dimensions,
    whose product is the length. Input dimensions occur in increasing order.
    """

    name: ClassVar[str] = "reshape"

    def __init__(self, shape: Sequence[int | Sequence[int]]) -> None:
        self.shape = tuple(entry if isinstance(entry, int) else tuple(entry) for entry in shape)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("shape",))
        shape = configuration.get("shape")
        if not isinstance(shape, list | tuple) or not all(map(_is_entry, shape)):
            raise MetadataError(
                f"codec 'reshape': shape must be a list of lengths, -1, and lists of input dimensions, "
                f"found {short_repr(shape)}"
            )
        axes = [axis for entry in shape if isinstance(entry, list | tuple) for axis in entry]
        if list(shape).count(INFERRED) > 1 or axes != sorted(set(axes)):
            raise MetadataError(
                "codec 'reshape': shape may contain -1 once, and each input dimension once in increasing order; found "
                f"{short_repr(shape)}"
            )
        return cls(shape)

    def configuration(self) -> dict[str, Any]:
        return {"shape": [entry if isinstance(entry, int) else list(entry) for entry in self.shape]}

    def _lengths(self, spec: ChunkSpec) -> tuple[int, ...]:
        lengths: list[int] = []
        for entry in self.shape:
            if isinstance(entry, int):
                lengths.append(entry)
                continue
            if entry and entry[-1] >= len(spec.shape):
                raise MetadataError(
                    f"codec 'reshape': shape contains input dimension {entry[-1]}, but the chunk has "
                    f"{len(spec.shape)} dimensions"
                )
            lengths.append(prod(spec.shape[axis] for axis in entry))
        known = prod(length for length in lengths if length != INFERRED)
        if INFERRED in lengths:
            if known == 0 or spec.size % known:
                raise MetadataError(
                    f"codec 'reshape': a chunk of shape {spec.shape} cannot have the shape {self.shape}: no length "
                    "fits -1"
                )
            lengths[lengths.index(INFERRED)] = spec.size // known
        for position, entry in enumerate(self.shape):
            if isinstance(entry, tuple) and entry:
                _check_dimensions(lengths, position, spec.shape, entry)
        if prod(lengths) != spec.size:
            raise MetadataError(
                f"codec 'reshape': the shape {tuple(lengths)} has {prod(lengths)} elements, but the chunk of shape "
                f"{spec.shape} has {spec.size}"
            )
        return tuple(lengths)

    def check(self, spec: ChunkSpec) -> None:
        self._lengths(spec)

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return ChunkSpec(self._lengths(spec), spec.dtype, spec.fill_value)

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return array.reshape(self._lengths(spec))

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return array.reshape(spec.shape)


def _check_dimensions(
    lengths: Sequence[int], position: int, shape: Sequence[int], axes: Sequence[int]
) -> None:
    """Raise MetadataError unless output dimension ``position`` consists of the elements of input dimensions
    ``axes``.
    """
    before, after = prod(lengths[:position]), prod(lengths[position + 1 :])
    if before != prod(shape[: axes[0]]) or after != prod(shape[axes[-1] + 1 :]):
        raise MetadataError(
            f"codec 'reshape': output dimension {position} has the length of the input dimensions {list(axes)}, but "
            f"not their elements: the chunk has the shape {tuple(shape)}, the output {tuple(lengths)}"
        )


def _is_entry(entry: Any) -> bool:
    if isinstance(entry, list | tuple):
        return all(type(axis) is int and axis >= 0 for axis in entry)
    return type(entry) is int and (entry > 0 or entry == INFERRED)
