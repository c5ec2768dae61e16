"""Translation between the ``compression`` of an N5 dataset and the codec after ``bytes``.

See https://github.com/saalfeldlab/n5#file-system-specification, n5-blosc and n5-zstandard. Objects with an ``id``
were written by zarr-python 2; they are numcodecs configurations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.engine.codecs.base import Codec
from zarrfs.engine.codecs.registry import codec_to_json
from zarrfs.engine.json_checks import expect_object, expect_string
from zarrfs.errors import UnsupportedError
from zarrfs.text import MAX_VALUE, safe_text

__all__ = ["codecs_of_compression", "compression_of_codecs"]

_SHUFFLES = ("noshuffle", "shuffle", "bitshuffle")
_XZ_FORMAT = 1  # lzma.FORMAT_XZ
_DEFAULT_GZIP_LEVEL = 6
_TYPES = ("raw", "gzip", "bzip2", "xz", "lz4", "blosc", "zstd")


def codecs_of_compression(value: Any, itemsize: int, where: str) -> list[dict[str, Any]]:
    """Return the v3 metadata of the codecs, at most one, that are equivalent to a ``compression``.

    Raises MetadataError that names the invalid key, and UnsupportedError for an unsupported type.
    """
    compression = expect_object(value, where, 'an object with the "type" of a compression')
    name = expect_string(compression.get("type"), f"{where}/type")
    options: dict[str, Any]

    # Decoding does not need the parameters. The codecs check them before encoding.
    if name == "raw":
        return []
    if name == "gzip":
        level = compression.get("level", -1)
        level = _DEFAULT_GZIP_LEVEL if level == -1 else level
        kind = "numcodecs.zlib" if compression.get("useZlib") is True else "gzip"
        return [{"name": kind, "configuration": {"level": level}}]
    if name == "bzip2":
        return [{"name": "numcodecs.bz2", "configuration": {"level": compression.get("blockSize", 9)}}]
    if name == "xz":
        options = {"format": _XZ_FORMAT, "check": -1, "preset": compression.get("preset", 6), "filters": None}
        return [{"name": "numcodecs.lzma", "configuration": options}]
    if name == "lz4" and "id" in compression:
        return [
            {"name": "numcodecs.lz4", "configuration": {"acceleration": compression.get("acceleration", 1)}}
        ]
    if name == "lz4":
        return [{"name": "n5_lz4", "configuration": {"block_size": compression.get("blockSize", 1 << 16)}}]
    if name == "blosc":
        options = {
            "cname": compression.get("cname", "blosclz"),
            "clevel": compression.get("clevel", 6),
            "shuffle": _shuffle(compression.get("shuffle", 0)),
            "typesize": itemsize,
            "blocksize": compression.get("blocksize", 0),
        }
        return [{"name": "blosc", "configuration": options}]
    if name == "zstd":
        level = compression.get("level", 3)
        return [
            {
                "name": "zstd",
                "configuration": {"level": level, "checksum": compression.get("checksum") is True},
            }
        ]
    raise UnsupportedError(
        f'{where}/type: the compression "{safe_text(name, MAX_VALUE)}" is not supported; '
        f"expected one of {', '.join(_TYPES)}"
    )


def _shuffle(value: Any) -> Any:
    """Return the name of a shuffle given by its number; any other value is returned unchanged."""
    return _SHUFFLES[value] if type(value) is int and 0 <= value < len(_SHUFFLES) else value


def compression_of_codecs(codecs: tuple[Codec, ...]) -> dict[str, Any]:
    """Return the ``compression`` for the codecs after ``bytes``. Raises UnsupportedError if N5 has no equivalent."""
    if not codecs:
        return {"type": "raw"}
    entry = codec_to_json(codecs[0])
    options: Mapping[str, Any] = entry.get("configuration", {})
    compression = _compression(entry["name"], options) if len(codecs) == 1 else None
    if compression is None:
        names = ", ".join(codec.name for codec in codecs)
        raise UnsupportedError(f"N5 has no compression for the codecs {names}; it has {', '.join(_TYPES)}")
    return compression


def _compression(name: str, options: Mapping[str, Any]) -> dict[str, Any] | None:
    if name in ("gzip", "numcodecs.zlib", "numcodecs.gzip"):
        return {"type": "gzip", "level": options.get("level", 1), "useZlib": name == "numcodecs.zlib"}
    if name == "numcodecs.bz2":
        return {"type": "bzip2", "blockSize": options.get("level", 1)}
    if (
        name == "numcodecs.lzma"
        and options.get("format", _XZ_FORMAT) == _XZ_FORMAT
        and not options.get("filters")
    ):
        preset = options.get("preset")
        return {"type": "xz", "preset": 6 if preset is None else preset}
    if name == "numcodecs.lz4":
        return {"type": "lz4", "id": "lz4", "acceleration": options.get("acceleration", 1)}
    if name == "n5_lz4":
        return {"type": "lz4", "blockSize": options["block_size"]}
    if name == "blosc":
        shuffle = options.get("shuffle")
        shuffle = _SHUFFLES.index(shuffle) if shuffle in _SHUFFLES else shuffle
        common = {key: options[key] for key in ("cname", "clevel", "blocksize") if key in options}
        return {"type": "blosc", **common, "shuffle": shuffle}
    if name == "zstd":
        return {"type": "zstd", "level": options["level"]}
    return None
