"""The native library and the functions of codec libraries that it calls.

The decompressors are not linked. numcodecs and isal export the C functions of the libraries that they contain; their
addresses are passed to the native library. The files of numcodecs are loaded without importing the package, which takes
longer and more memory than the decoders. Before a decoder is used, its library's version is checked, and a known buffer
is decoded with it. The Python executor decodes what the library cannot.
"""

from __future__ import annotations

import ctypes
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from zarrfs.engine.native.build import LIBRARY_NAME
from zarrfs.engine.native.structures import DECODERS, STRUCTURES, VERSION, FunctionsStructure, ReadStructure
from zarrfs.libraries import import_library

__all__ = [
    "DISABLING_VARIABLE",
    "NativeLibrary",
    "describe",
    "is_disabled",
    "load_library",
    "native_library",
    "native_library_disabled",
]

DISABLING_VARIABLE = "ZARRFS_NATIVE"
"""The environment variable that disables the native library if its value is 0."""

SAMPLE = bytes(range(256)) * 16


class _Provider(NamedTuple):
    """Where the functions of a decoder are: fields of FunctionsStructure and their names in a module's library."""

    module: str
    functions: dict[str, str]
    version: Callable[[ctypes.CDLL], str]
    """Return the version of the library, or of the package that contains it. Only versions 1.x are used."""
    encoded: bytes
    """SAMPLE, encoded."""
    optional: dict[str, str] = {}  # noqa: RUF012 - never changed
    """Functions that make reading faster, in the order in which their fields are set. They are used only together."""


def _symbol_version(symbol: str) -> Callable[[ctypes.CDLL], str]:
    def version(library: ctypes.CDLL) -> str:
        function = getattr(library, symbol)
        function.restype = ctypes.c_char_p
        return bytes(function()).decode()

    return version


def _isal_version(library: ctypes.CDLL) -> str:
    return str(import_library("isal").__version__)


def _deflated(wbits: int) -> bytes:
    encoder = zlib.compressobj(6, zlib.DEFLATED, wbits)
    return encoder.compress(SAMPLE) + encoder.flush()


# The first 256 bytes of SAMPLE are literals of each format, and the rest repeats them.
_LZ4_BLOCK = b"\xff\xf1" + SAMPLE[:256] + b"\x00\x01" + b"\xff" * 14 + b"\xf6\x50" + SAMPLE[251:256]
_ZSTD_FRAME = bytes.fromhex("28b52ffd60000f5508000410") + SAMPLE[:256] + bytes.fromhex("010000fd1ef0d714")
_BLOSC_HEADER = bytes.fromhex("020121010010000000100000310100001400000019010000")
"""The header of a buffer of one LZ4 block."""

_INFLATE = {"isal_inflate_init": "isal_inflate_init", "isal_inflate_stateless": "isal_inflate_stateless"}

_PROVIDERS = {
    "blosc": _Provider(
        "numcodecs.blosc",
        {"blosc_decompress_ctx": "blosc_decompress_ctx"},
        _symbol_version("blosc_get_version_string"),
        _BLOSC_HEADER + _LZ4_BLOCK,
        {
            "blosc_lz4_decompress": "LZ4_decompress_safe",
            "blosc_zstd_create_context": "ZSTD_createDCtx",
            "blosc_zstd_free_context": "ZSTD_freeDCtx",
            "blosc_zstd_decompress": "ZSTD_decompressDCtx",
        },
    ),
    "zstd": _Provider(
        "numcodecs.zstd",
        {
            "zstd_create_context": "ZSTD_createDCtx",
            "zstd_free_context": "ZSTD_freeDCtx",
            "zstd_decompress": "ZSTD_decompressDCtx",
        },
        _symbol_version("ZSTD_versionString"),
        _ZSTD_FRAME,
        {
            "zstd_begin": "ZSTD_decompressBegin",
            "zstd_next_size": "ZSTD_nextSrcSizeToDecompress",
            "zstd_continue": "ZSTD_decompressContinue",
        },
    ),
    "lz4": _Provider(
        "numcodecs.lz4",
        {"lz4_decompress_safe": "LZ4_decompress_safe"},
        _symbol_version("LZ4_versionString"),
        len(SAMPLE).to_bytes(4, "little") + _LZ4_BLOCK,
    ),
    "gzip": _Provider(
        "isal.isal_zlib",
        {**_INFLATE, "isal_crc32": "crc32_gzip_refl"},
        _isal_version,
        _deflated(31),
    ),
    "zlib": _Provider(
        "isal.isal_zlib",
        {**_INFLATE, "isal_adler32": "isal_adler32"},
        _isal_version,
        _deflated(15),
    ),
}


class NativeLibrary:
    """The loaded library. Thread-safe.

    Attributes:
        path: the file.
        functions: the functions of codec libraries. Fields are set when ``supports`` is called for a decoder; they do
            not change afterwards.
    """

    def __init__(self, path: Path) -> None:
        """Load the library. Raises OSError if it cannot be loaded, or was built from other sources."""
        self.path = path
        self.functions = FunctionsStructure()
        self._library = ctypes.CDLL(str(path))
        self._supported: dict[str, str] = {"crc32c": ""}
        found = self._library.zarrfs_native_version()
        sizes = (ctypes.c_int64 * len(STRUCTURES))()
        self._library.zarrfs_structure_sizes(sizes)
        if found != VERSION or list(sizes) != [ctypes.sizeof(structure) for structure in STRUCTURES]:
            raise OSError(f"{path} has version {found}, expected {VERSION}; install the package again")
        self.check: Callable[[Any], int] = self._library.zarrfs_check
        self.execute: Callable[[Any], int] = self._library.zarrfs_execute
        """Call with a reference to a ReadStructure. The interpreter lock is released during the call."""
        for function in (self._library.zarrfs_check, self._library.zarrfs_execute):
            function.argtypes = [ctypes.POINTER(ReadStructure)]
        self._library.zarrfs_decode_step.argtypes = [
            ctypes.POINTER(FunctionsStructure),
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_int64,
            ctypes.c_void_p,
            ctypes.c_int64,
        ]
        for name in ("zarrfs_crc32c", "zarrfs_crc32c_tables"):
            function = getattr(self._library, name)
            function.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
            function.restype = ctypes.c_uint32
        self.crc32c: Callable[[bytes, int], int] = self._library.zarrfs_crc32c
        self.crc32c_tables: Callable[[bytes, int], int] = self._library.zarrfs_crc32c_tables

    def supports(self, decoder: str) -> bool:
        """Return whether a decoder (a key of ``DECODERS``) can be used. The first call loads its functions."""
        return not self.unsupported_reason(decoder)

    def unsupported_reason(self, decoder: str) -> str:
        """Return why a decoder cannot be used, or an empty string if it can."""
        reason = self._supported.get(decoder)
        if reason is None:
            # Two threads may do this at once. Both store the same addresses.
            reason = self._supported[decoder] = self._load_decoder(decoder)
        return reason

    def decode(self, decoder: str, data: bytes, size: int) -> bytes | None:
        """Decode a buffer to exactly ``size`` bytes; None if that fails. The decoder must be supported."""
        out = ctypes.create_string_buffer(max(size, 1))
        step = DECODERS[decoder]
        if self._library.zarrfs_decode_step(self.functions, step, data, len(data), out, size):
            return None
        return out.raw[:size]

    def _load_decoder(self, decoder: str) -> str:
        provider = _PROVIDERS[decoder]
        try:
            library = ctypes.CDLL(str(_extension_file(provider.module)))
            version = provider.version(library)
            addresses = _addresses(library, provider.functions)
        except (ImportError, OSError, AttributeError) as error:
            return f"{provider.module}: {error}"
        if not version.startswith("1."):
            return f"{provider.module}: the version of the library is {version}, expected 1"
        for field, address in addresses.items():
            setattr(self.functions, field, address)
        if self.decode(decoder, provider.encoded, len(SAMPLE)) != SAMPLE:
            return f"{provider.module}: a known buffer was not decoded correctly"
        if self.decode(decoder, provider.encoded[:-1], len(SAMPLE)) is not None:
            return f"{provider.module}: a truncated buffer was not detected"
        with suppress(AttributeError):
            for field, address in _addresses(library, provider.optional).items():
                setattr(self.functions, field, address)
        return ""


def _extension_file(name: str) -> Path:
    """Return the file of an extension module in a package, which is not imported. Raises ImportError if absent."""
    package, _, module = name.partition(".")
    spec = find_spec(package)
    for directory in (spec.submodule_search_locations or ()) if spec is not None else ():
        for suffix in EXTENSION_SUFFIXES:
            file = Path(directory, module + suffix)
            if file.is_file():
                return file
    raise ImportError(f"the extension module {name} was not found")


def _addresses(library: ctypes.CDLL, symbols: dict[str, str]) -> dict[str, int | None]:
    """Return the address of each function. Raises AttributeError if the library does not have one of them."""
    return {
        field: ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
        for field, symbol in symbols.items()
    }


def load_library(path: Path | None = None) -> tuple[NativeLibrary | None, str]:
    """Return the library, or None, and why it is not used. The result is not cached; see ``native_library``."""
    if os.environ.get(DISABLING_VARIABLE) == "0":
        return None, f"disabled by the environment variable {DISABLING_VARIABLE}"
    path = path or Path(__file__).with_name(LIBRARY_NAME)
    if not path.exists():
        return None, "not built: no C compiler was found when the package was installed"
    try:
        return NativeLibrary(path), ""
    except (OSError, AttributeError) as error:
        return None, str(error)


_loaded_library: dict[str, tuple[NativeLibrary | None, str]] = {}


def _loaded() -> tuple[NativeLibrary | None, str]:
    # Threads that come here at the same time must use the same object: plans refer to its functions, and a second
    # object would not have the functions of the decoders that the first one has loaded. ``setdefault`` is atomic, and
    # unlike a lock it cannot be held while the process forks.
    return _loaded_library.get("") or _loaded_library.setdefault("", load_library())


_disabled: ContextVar[bool] = ContextVar("zarrfs_native_disabled", default=False)


@contextmanager
def native_library_disabled(disabled: bool = True) -> Iterator[None]:
    """Do not use the library within the context. If ``disabled`` is False, nothing changes."""
    token = _disabled.set(disabled or _disabled.get())
    try:
        yield
    finally:
        _disabled.reset(token)


def native_library() -> NativeLibrary | None:
    """Return the library of the installed package, or None if it is not available or disabled."""
    return None if _disabled.get() else _loaded()[0]


def is_disabled() -> bool:
    """Return whether ``DISABLING_VARIABLE`` or ``native_library_disabled`` disables the library."""
    return _disabled.get() or os.environ.get(DISABLING_VARIABLE) == "0"


def describe() -> tuple[bool, str]:
    """Return whether the native library is used, and its path or the reason, for reports to the user."""
    library, reason = _loaded()
    if library is None:
        return False, reason
    missing = [decoder for decoder in _PROVIDERS if not library.supports(decoder)]
    return True, f"{library.path}" + (f"; does not decompress {', '.join(missing)}" if missing else "")
