"""transpose: permutes the dimensions.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/ (version 1.0)

Names: ``transpose``.

Example::

    {"name": "transpose", "configuration": {"order": [2, 0, 1]}}

Encoding and decoding return views and copy nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from zarrfs.engine.codecs.base import ArrayArrayCodec, ChunkSpec, Region
from zarrfs.engine.codecs.configuration import check_keys
from zarrfs.errors import MetadataError
from zarrfs.text import short_repr

__all__ = ["TransposeCodec"]


class TransposeCodec(ArrayArrayCodec):
    """array -> array: dimension ``i`` of the encoded array is dimension ``order[i]`` of the decoded one."""

    name: ClassVar[str] = "transpose"

    def __init__(self, order: Sequence[int]) -> None:
        self.order = tuple(order)
        self._inverse = tuple(sorted(range(len(self.order)), key=self.order.__getitem__))

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(cls.name, configuration, ("order",))
        order = configuration.get("order")
        integers = isinstance(order, list | tuple) and all(type(axis) is int for axis in order)
        if not isinstance(order, list | tuple) or not integers or sorted(order) != list(range(len(order))):
            raise MetadataError(
                f"codec 'transpose': order must be a permutation of 0 to n-1 for n dimensions, "
                f"found {short_repr(order)}"
            )
        return cls(order)

    def configuration(self) -> dict[str, Any]:
        return {"order": list(self.order)}

    def check(self, spec: ChunkSpec) -> None:
        if len(self.order) != len(spec.shape):
            raise MetadataError(
                f"codec 'transpose': order {list(self.order)} has {len(self.order)} entries, the chunk has "
                f"{len(spec.shape)} dimensions"
            )

    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        return ChunkSpec(tuple(spec.shape[axis] for axis in self.order), spec.dtype, spec.fill_value)

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return array.transpose(self.order)

    def decode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> np.ndarray[Any, Any]:
        return array.transpose(self._inverse)

    def encoded_region(self, region: Region, spec: ChunkSpec) -> Region:
        return tuple(region[axis] for axis in self.order)

    def view(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return array.transpose(self.order)
