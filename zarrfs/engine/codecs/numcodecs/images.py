"""Adapters for the codecs of the package imagecodecs in Zarr v3: images as array->bytes codecs, and compressors.

Specification: the module ``imagecodecs.zarr`` of https://github.com/cgohlke/imagecodecs; there is no document.

Names: ``imagecodecs_`` and the name of the codec (``IMAGES``, ``COMPRESSORS``). Its filters, and its codecs whose
parameters depend on the data type, are not supported.

Example::

    {"name": "imagecodecs_jpegxl", "configuration": {"level": 90}}

The adapters use the codecs of ``imagecodecs.numcodecs``, which have the same parameters and encoded bytes and do not
need zarr-python.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.codecs.base import ArrayBytesCodec, Buffer, ChunkSpec, Codec, CodecError
from zarrfs.engine.codecs.numcodecs.bytes import NumcodecsBytesCodec
from zarrfs.engine.codecs.numcodecs.instances import NumcodecsOptions, make_numcodec
from zarrfs.engine.codecs.numcodecs.table import IMAGECODECS_PREFIX

__all__ = ["imagecodecs_adapter"]

IMAGES = (
    "apng avif bmp gif heif htj2k jpeg jpeg2k jpegls jpegxl jpegxr jpegxs lerc ljpeg pcx png qoi spng tga tiff "
    "webp"
)
COMPRESSORS = (
    "aec blosc blosc2 brotli bz2 deflate isal lz4 lz4f lz4h5 lzf lzfse lzham lzma lzo lzw packbits pglz snappy szip "
    "zlib zlibng zopfli zstd"
)


class _ImageCodec(NumcodecsOptions, ArrayBytesCodec):
    """array -> bytes: a chunk as an image, without its dimensions of length 1."""

    id: ClassVar[str]

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self._codec = make_numcodec(self.id, self._options)

    def encode(self, array: np.ndarray[Any, Any], spec: ChunkSpec) -> Buffer:
        native = np.ascontiguousarray(array, spec.dtype.newbyteorder("="))
        return bytes(self._codec.encode(np.atleast_2d(np.squeeze(native))))

    def decode(self, data: Buffer, spec: ChunkSpec) -> np.ndarray[Any, Any]:
        # The decoder refuses images of another shape. It does not allocate what they declare.
        out = np.atleast_2d(np.squeeze(np.empty(spec.shape, spec.dtype.newbyteorder("="))))
        decoded = self._codec.decode(bytes(data), out=out)
        if decoded.shape != out.shape or decoded.dtype != out.dtype:
            raise CodecError(
                f"the image has the shape {decoded.shape} and data type {decoded.dtype}, expected {out.shape} and "
                f"{out.dtype}"
            )
        return np.asarray(decoded).reshape(spec.shape)


def imagecodecs_adapter(name: str) -> type[Codec] | None:
    """Return the adapter of a codec by its name with the prefix, or None if it is not supported."""
    bare = name.removeprefix(IMAGECODECS_PREFIX)
    bases: tuple[type[Codec], ...]
    if bare in IMAGES.split():
        bases = (_ImageCodec,)
    elif bare in COMPRESSORS.split():
        bases = (NumcodecsBytesCodec,)
    else:
        return None
    # The module of a class that the metaclass creates would otherwise be that of the metaclass, "abc".
    members = {"name": name, "id": name, "__doc__": bases[0].__doc__, "__module__": __name__}
    return type(f"Imagecodecs{bare.title()}Codec", bases, members)
