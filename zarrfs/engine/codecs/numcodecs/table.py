"""The codecs of numcodecs: their adapters, and what they encode. Zarr v2 and Zarr v3 use this one table."""

from __future__ import annotations

from importlib import import_module
from typing import Literal, NamedTuple

from zarrfs.engine.codecs.base import Codec

__all__ = ["ADAPTERS", "IMAGECODECS_PREFIX", "Adapter", "adapter_class"]

PACKAGE = "zarrfs.engine.codecs"

IMAGECODECS_PREFIX = "imagecodecs_"
"""The prefix of the names of the codecs of the package imagecodecs, in v2 and v3."""


class Adapter(NamedTuple):
    """The adapter of a codec.

    Attributes:
        location: the module, relative to this package's parent, and the class. None for codecs that are refused.
        encodes: ``elements`` (array -> array), ``numbers``, ``objects`` or ``variable`` (array -> bytes; the latter
            need elements of variable length), or ``bytes`` (bytes -> bytes).
        compresses: whether v2 stores the codec as the compressor and not as a filter.
        in_v3: whether v3 metadata can name the codec, with the prefix ``numcodecs.``.
        is_core: whether the v3 codec of the same name without the prefix has the same encoded bytes.
    """

    location: str | None
    encodes: Literal["elements", "numbers", "objects", "variable", "bytes"]
    compresses: bool = False
    in_v3: bool = True
    is_core: bool = False


ADAPTERS = {
    "delta": Adapter("numcodecs.arrays:DeltaCodec", "elements"),
    "fixedscaleoffset": Adapter("numcodecs.arrays:FixedScaleOffsetCodec", "elements"),
    "quantize": Adapter("numcodecs.arrays:QuantizeCodec", "elements"),
    "astype": Adapter("numcodecs.arrays:AsTypeCodec", "elements"),
    "packbits": Adapter("numcodecs.arrays:PackBitsCodec", "elements"),
    "bitround": Adapter("array_to_array.bitround:BitroundCodec", "elements", is_core=True),
    "pcodec": Adapter("numcodecs.numbers:NumcodecsPcodecCodec", "numbers", compresses=True),
    "zfpy": Adapter("numcodecs.numbers:NumcodecsZfpyCodec", "numbers", compresses=True),
    "vlen-utf8": Adapter("array_to_bytes.vlen:VlenUtf8Codec", "variable", is_core=True),
    "vlen-bytes": Adapter("array_to_bytes.vlen:VlenBytesCodec", "variable", is_core=True),
    "vlen-array": Adapter("numcodecs.objects:VlenArrayCodec", "variable", is_core=True),
    "json2": Adapter("numcodecs.objects:JsonCodec", "objects"),
    "msgpack2": Adapter("numcodecs.objects:MessagePackCodec", "objects"),
    "categorize": Adapter("numcodecs.objects:CategorizeCodec", "objects"),
    "pickle": Adapter("numcodecs.objects:PickleCodec", "objects", in_v3=False),
    "json": Adapter(None, "objects", in_v3=False),
    "msgpack": Adapter(None, "objects", in_v3=False),
    "blosc": Adapter("numcodecs.core:NumcodecsBloscCodec", "bytes", compresses=True, is_core=True),
    "zstd": Adapter("numcodecs.core:NumcodecsZstdCodec", "bytes", compresses=True, is_core=True),
    "gzip": Adapter("numcodecs.core:NumcodecsGzipCodec", "bytes", compresses=True, is_core=True),
    "zlib": Adapter("numcodecs.bytes:ZlibCodec", "bytes", compresses=True),
    "lz4": Adapter("numcodecs.bytes:Lz4Codec", "bytes", compresses=True),
    "bz2": Adapter("numcodecs.bytes:Bz2Codec", "bytes", compresses=True),
    "lzma": Adapter("numcodecs.bytes:LzmaCodec", "bytes", compresses=True),
    "shuffle": Adapter("numcodecs.bytes:ShuffleCodec", "bytes"),
    "base64": Adapter("numcodecs.bytes:Base64Codec", "bytes"),
    "crc32c": Adapter("numcodecs.core:NumcodecsCrc32cCodec", "bytes", is_core=True),
    "crc32": Adapter("numcodecs.bytes:Crc32Codec", "bytes"),
    "adler32": Adapter("numcodecs.bytes:Adler32Codec", "bytes"),
    "fletcher32": Adapter("numcodecs.bytes:Fletcher32Codec", "bytes"),
    "jenkins_lookup3": Adapter("numcodecs.bytes:JenkinsLookup3Codec", "bytes"),
}
"""The adapters by the name that numcodecs registers.

``json`` and ``msgpack`` are the first versions of ``json2`` and ``msgpack2``; their data are ambiguous.
"""


def adapter_class(codec_id: str) -> type[Codec] | None:
    """Return the adapter of a codec, or None if the codec is refused or not in the table."""
    adapter = ADAPTERS.get(codec_id)
    if adapter is None or adapter.location is None:
        return None
    module, _, name = adapter.location.partition(":")
    loaded: type[Codec] = getattr(import_module(f"{PACKAGE}.{module}"), name)
    return loaded
