"""The functions of codec libraries with which the native library encodes chunks, and the parameters of codecs for them.

As for decoding, the codec libraries are not linked: numcodecs contains them. A codec is used only if it encodes a known
buffer to the same bytes as its Python implementation. The Python executor encodes all other chunks, also those with
gzip and zlib: most of the time is that of zlib, with which the native library took 0.9 to 1.2 times as long.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from zarrfs.engine.codecs.base import BytesBytesCodec
from zarrfs.engine.codecs.bytes_to_bytes.blosc import SHUFFLES, BloscCodec
from zarrfs.engine.codecs.bytes_to_bytes.crc32c import Crc32cCodec
from zarrfs.engine.codecs.bytes_to_bytes.zstd import ZstdCodec
from zarrfs.engine.codecs.numcodecs.bytes import Lz4Codec, NumcodecsBytesCodec
from zarrfs.engine.native.library import SAMPLE, NativeLibrary, describe, native_library
from zarrfs.engine.native.structures import DECODERS
from zarrfs.engine.native.write_structures import (
    WRITE_STRUCTURES,
    EncodersStructure,
    StepOptionsStructure,
    WriteStructure,
)
from zarrfs.libraries import import_library

__all__ = ["NativeWriter", "describe_executor", "native_writer"]

_FUNCTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "blosc": ("numcodecs.blosc", {"blosc_compress_ctx": "blosc_compress_ctx"}),
    "zstd": (
        "numcodecs.zstd",
        {
            "zstd_create_context": "ZSTD_createCCtx",
            "zstd_free_context": "ZSTD_freeCCtx",
            "zstd_set_parameter": "ZSTD_CCtx_setParameter",
            "zstd_compress": "ZSTD_compress2",
            "zstd_bound": "ZSTD_compressBound",
            "zstd_is_error": "ZSTD_isError",
        },
    ),
    "lz4": ("numcodecs.lz4", {"lz4_compress_fast": "LZ4_compress_fast"}),
}
"""Per step the module that contains the library, and its functions by the fields of EncodersStructure."""


def _samples(step: str) -> Sequence[BytesBytesCodec]:
    """Return the codecs of a step that are compared with the library before it is used."""
    if step == "blosc":
        return BloscCodec("lz4", 5, "shuffle", 2, 0), BloscCodec("zstd", 1, "bitshuffle", 1, 1024)
    if step == "zstd":
        return ZstdCodec(0), ZstdCodec(5, True), ZstdCodec(-3)
    return Lz4Codec({}), Lz4Codec({"acceleration": 9})


class NativeWriter:
    """The functions of the native library for writing. Thread-safe.

    Raises OSError if the library was built from other sources.

    Attributes:
        encoders: the functions of codec libraries. Fields are set when ``supports`` is called for a step; they do not
            change afterwards.
    """

    def __init__(self, library: NativeLibrary) -> None:
        handle = ctypes.CDLL(str(library.path))
        sizes = (ctypes.c_int64 * len(WRITE_STRUCTURES))()
        handle.zarrfs_write_structure_sizes(sizes)
        if list(sizes) != [ctypes.sizeof(structure) for structure in WRITE_STRUCTURES]:
            raise OSError(f"{library.path} was built from other sources; install the package again")
        self.encoders = EncodersStructure()
        self.check: Callable[[Any], int] = handle.zarrfs_check_write
        self.execute: Callable[[Any], int] = handle.zarrfs_execute_write
        """Call with a reference to a WriteStructure. The interpreter lock is released during the call."""
        self.end: Callable[[Any], None] = handle.zarrfs_end_write
        handle.zarrfs_end_write.restype = None
        for function in (handle.zarrfs_check_write, handle.zarrfs_execute_write, handle.zarrfs_end_write):
            function.argtypes = [ctypes.POINTER(WriteStructure)]
        self._encode_step = handle.zarrfs_encode_step
        self._encode_step.restype = ctypes.c_int64
        self._encode_step.argtypes = [
            ctypes.POINTER(EncodersStructure),
            ctypes.c_int,
            ctypes.POINTER(StepOptionsStructure),
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int64,
        ]
        self._unsupported_reasons: dict[str, str] = {"crc32c": ""}

    def supports(self, step: str) -> bool:
        """Return whether a step (a key of ``DECODERS``) can be used. The first call loads its functions."""
        return not self.unsupported_reason(step)

    def unsupported_reason(self, step: str) -> str:
        """Return why a step cannot be used, or an empty string if it can."""
        reason = self._unsupported_reasons.get(step)
        if reason is None:
            # Two threads may do this at once. Both store the same addresses.
            reason = self._unsupported_reasons[step] = self._load(step)
        return reason

    def options(self, codec: BytesBytesCodec, size: int | None) -> tuple[str, StepOptionsStructure] | None:
        """Return step and parameters for a codec that encodes ``size`` bytes (None: the size depends on the data), or
        None if the library does not support it. The codec has passed ``check_encoding``.
        """
        found = _options(codec, size)
        return found if found is not None and self.supports(found[0]) else None

    def encode(self, codec: BytesBytesCodec, data: bytes) -> bytes | None:
        """Encode a buffer; None if the codec is not supported or fails."""
        found = self.options(codec, len(data))
        return None if found is None else self._encode(*found, data)

    def _encode(self, step: str, options: StepOptionsStructure, data: bytes) -> bytes | None:
        out = ctypes.create_string_buffer(2 * len(data) + 4096)
        size = self._encode_step(self.encoders, DECODERS[step], options, data, len(data), out, len(out))
        return None if size < 0 else out.raw[:size]

    def _load(self, step: str) -> str:
        name, functions = _FUNCTIONS[step]
        try:
            library = ctypes.CDLL(import_library(name).__file__)
            addresses = {
                field: ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
                for field, symbol in functions.items()
            }
        except (ImportError, OSError, AttributeError) as error:
            return f"{name}: {error}"
        for field, address in addresses.items():
            setattr(self.encoders, field, address)
        for codec in _samples(step):
            found = _options(codec, len(SAMPLE))
            if found is None or self._encode(*found, SAMPLE) != bytes(codec.encode(SAMPLE)):
                return f"{name}: a known buffer was encoded to other bytes than in Python"
        return ""


def _options(codec: BytesBytesCodec, size: int | None) -> tuple[str, StepOptionsStructure] | None:
    options = StepOptionsStructure()
    encode = type(codec).encode  # A subclass may encode to other bytes.
    if isinstance(codec, Crc32cCodec) and encode is Crc32cCodec.encode:
        return "crc32c", options
    if size is None:
        return None
    if isinstance(codec, BloscCodec) and encode is BloscCodec.encode:
        typesize = codec.typesize if codec.typesize <= 255 else 1
        options.level = codec.clevel
        options.shuffle = SHUFFLES[codec.shuffle]
        options.typesize = typesize if size % typesize == 0 else 1
        options.blocksize = codec.blocksize
        options.cname = codec.cname.encode()
        return "blosc", options
    if isinstance(codec, ZstdCodec) and encode is ZstdCodec.encode:
        options.level = codec.level
        options.checksum = bool(codec.checksum)
        return "zstd", options
    if isinstance(codec, Lz4Codec) and encode is NumcodecsBytesCodec.encode:
        options.level = codec.configuration().get("acceleration", 1)
        return "lz4", options
    return None


_writers: WeakKeyDictionary[NativeLibrary, NativeWriter] = WeakKeyDictionary()


def native_writer(library: NativeLibrary) -> NativeWriter:
    """Return the writing functions of a library. Raises OSError; see NativeWriter."""
    writer = _writers.get(library)
    # As for the library, all threads must use one object. ``setdefault`` is atomic.
    return writer if writer is not None else _writers.setdefault(library, NativeWriter(library))


def describe_executor() -> tuple[bool, str]:
    """Return whether the native library is used, and for reports to the user its path with the steps that it lacks, or
    the reason why it is not used.
    """
    is_used, found = describe()
    library = native_library()
    if library is None:
        return is_used, found
    try:
        writer = native_writer(library)
    except (OSError, AttributeError) as error:
        return False, f"reads only: {error}"
    missing = [step for step in _FUNCTIONS if not writer.supports(step)]
    return True, found + (f"; does not compress with {', '.join(missing)}" if missing else "")
