"""An example of a package that extends zarrfs: a codec, a data type, a format, a store and a view.

See docs/extensions.md.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from zarrfs.ext.codecs import Buffer, BytesBytesCodec, CodecError
from zarrfs.ext.data_types import DataType, DataTypeFamily
from zarrfs.ext.formats import TranslatedFormat, join, read_object
from zarrfs.ext.metadata import MetadataError, check_keys, expect_integer, expect_shape
from zarrfs.ext.stores import LocationError, Store
from zarrfs.ext.views import BytesSegment, PresentedArray, View, VirtualFileContent
from zarrfs.storage import LocalStore


class XorCodec(BytesBytesCodec):
    """Combines each byte with a mask."""

    name = "example.xor"

    def __init__(self, mask: int) -> None:
        self.mask = mask

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        check_keys(configuration, "example.xor", ("mask",))
        return cls(expect_integer(configuration.get("mask"), "example.xor/mask", 0, 255))

    def configuration(self) -> dict[str, Any]:
        return {"mask": self.mask}

    def encoded_size(self, size: int) -> int:
        return size

    def encode(self, data: Buffer) -> Buffer:
        return (np.frombuffer(data, np.uint8) ^ np.uint8(self.mask)).tobytes()

    def decode(self, data: Buffer, size: int | None, out: memoryview | None = None) -> Buffer:
        found = memoryview(data).nbytes
        if size is not None and found != size:
            raise CodecError(f"the value has {found} bytes, expected {size}")
        return self.encode(data)


class Angle(DataTypeFamily):
    """Angles in memory as float32. The fill value in metadata has a unit: ``"90 deg"``."""

    def from_configuration(self, name: str, configuration: Mapping[str, Any], where: str) -> DataType:
        check_keys(configuration, where, ())
        return DataType(name, np.dtype("float32"))

    def fill_from_json(self, data_type: DataType, value: Any, where: str) -> Any:
        try:
            return np.float32(value.removesuffix(" deg"))
        except (AttributeError, ValueError) as error:
            raise MetadataError(f'{where}: expected an angle such as "90 deg", found {value!r}') from error

    def fill_to_json(self, data_type: DataType, value: Any) -> str:
        return f"{float(value)} deg"


ANGLE = Angle()


class TilesFormat(TranslatedFormat):
    """Images of 8 bits in uncompressed tiles: ``tiles.json``, and a file such as ``2.0`` for each tile.

    ``tiles.json`` is ``{"size": [height, width], "tile": [height, width]}``. A directory with an ``album.json`` is a
    group.
    """

    name = "example.tiles"
    document_names = ("tiles.json", "album.json")

    def metadata(self, store: Store, path: str) -> Mapping[str, Any] | None:
        key = join(path, "tiles.json")
        document = read_object(store, key)
        if document is None:
            album = read_object(store, join(path, "album.json"))
            return None if album is None else {"zarr_format": 3, "node_type": "group", "attributes": album}
        check_keys(document, key, ("size", "tile"))
        tile = expect_shape(document.get("tile"), f"{key}: /tile")
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": expect_shape(document.get("size"), f"{key}: /size"),
            "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": tile}},
            "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
            "fill_value": 0,
            "codecs": [{"name": "bytes"}],
        }


def open_shelf(url: str, mode: str, *, storage_options: dict[str, Any]) -> tuple[Store, str]:
    """Open ``shelf://DIRECTORY//PATH``: a directory, and the path of a node in it. The option ``root`` is prepended."""
    root = storage_options.pop("root", "")
    if storage_options:
        raise LocationError(f"{url}: unknown storage options {sorted(storage_options)}, expected root")
    directory, _, path = url.removeprefix("shelf://").partition("//")
    return LocalStore(f"{root}{directory}", read_only=mode == "r"), path


class ChecksumView(View):
    """A file with the CRC-32 checksum of the elements in hexadecimal digits, in C order."""

    suffix = ".crc32"
    listed = True
    depends_on_elements = True

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        if presented.array.dtype.hasobject:
            return "its elements vary in length"
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        checksum = zlib.crc32(np.ascontiguousarray(presented.array[...]).tobytes())
        return VirtualFileContent([BytesSegment(f"{checksum:08x}\n".encode())])
