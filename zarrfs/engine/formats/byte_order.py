"""The byte order of stored elements. Zarr v3 has it in the ``bytes`` codec, older formats have it in the data type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zarrfs.engine.dtypes import DataType
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import MetadataError
from zarrfs.logs import logger

__all__ = ["check_endian", "stored_data_type", "with_endian"]

_BYTES_NAMES = ("bytes", "endian")


def stored_data_type(spec: ArraySpec) -> DataType:
    """Return the data type of the array in the byte order of its stored bytes."""
    first = next((codec for codec in spec.codecs if codec.name != "transpose"), None)
    endian = first.configuration().get("endian") if first is not None and first.name == "bytes" else None
    if endian is None:
        return spec.data_type
    dtype = spec.data_type.numpy.newbyteorder("<" if endian == "little" else ">")
    return replace(spec.data_type, numpy=dtype)


def check_endian(codecs: Sequence[Any], dtype: np.dtype[Any], where: str) -> None:
    """Raise MetadataError if a ``bytes`` codec in a v3 ``codecs`` list lacks the ``endian`` that its elements need.

    The inner codecs of shards are checked too.
    """
    _check_endian(codecs, dtype.names is None and _has_byte_order(dtype), where)


def _has_byte_order(dtype: np.dtype[Any]) -> bool:
    if dtype.names is not None:
        return any(_has_byte_order(dtype[name].base) for name in dtype.names)
    return dtype.itemsize > 1 and (dtype.kind in "iufcmMU" or dtype.isbuiltin == 2)


def _check_endian(codecs: Sequence[Any], needed: bool, where: str) -> None:
    for index, codec in enumerate(codecs):
        name, configuration = _parts(codec)
        pointer = f"{where}/{index}/configuration"
        if name in _BYTES_NAMES:
            if needed and configuration.get("endian") is None:
                raise MetadataError(
                    f'{pointer}/endian: expected "little" or "big", because the elements have more than one byte; '
                    "found nothing"
                )
        elif name == "sharding_indexed":
            for key, inner_needed in (("codecs", needed), ("index_codecs", True)):
                if isinstance(configuration.get(key), list):
                    _check_endian(configuration[key], inner_needed, f"{pointer}/{key}")
        elif name != "transpose":
            # The output of another codec may have another data type.
            return


def with_endian(codecs: Sequence[Any], dtype: np.dtype[Any], where: str) -> Sequence[Any]:
    """Return the ``codecs`` list of structured elements with ``bytes`` codecs without ``endian`` set to little-endian.

    A warning is logged. Such arrays were written before the data type ``struct`` was specified.
    """
    if not _has_byte_order(dtype):
        return codecs
    result: list[Any] = []
    for index, codec in enumerate(codecs):
        name, configuration = _parts(codec)
        if name in _BYTES_NAMES and configuration.get("endian") is None:
            logger.warning(
                '%s/%d: the bytes codec has no "endian"; structured elements are assumed to be little-endian',
                where,
                index,
            )
            codec = {"name": name, "configuration": {**configuration, "endian": "little"}}
        elif name == "sharding_indexed" and isinstance(configuration.get("codecs"), list):
            inner = with_endian(configuration["codecs"], dtype, f"{where}/{index}/configuration/codecs")
            codec = {"name": name, "configuration": {**configuration, "codecs": inner}}
        result.append(codec)
    return result


def _parts(codec: Any) -> tuple[Any, Mapping[str, Any]]:
    """Return name and configuration of an entry. Invalid entries give None and {}; they are reported elsewhere."""
    if isinstance(codec, str):
        return codec, {}
    if not isinstance(codec, Mapping):
        return None, {}
    configuration = codec.get("configuration")
    return codec.get("name"), configuration if isinstance(configuration, Mapping) else {}
