"""Making a numcodecs codec from its name and parameters, with an error that a user can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.engine.codecs.configuration import shown
from zarrfs.engine.codecs.libraries import import_library
from zarrfs.engine.json_checks import found
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.plugins import install_hint

__all__ = ["is_third_party", "make_numcodec", "numcodec_class"]

EXTRAS = {"pcodec": "pcodec", "zfpy": "zfp"}
"""The extras of this package that bring what a codec of numcodecs needs."""


def numcodec_class(codec_id: str) -> Any:
    """Return the class that is registered with numcodecs as ``codec_id``. Raises UnsupportedError if there is none."""
    import_library("numcodecs")
    registry = import_library("numcodecs.registry")
    made = registry.codec_registry.get(codec_id)
    if made is not None:
        return made
    if codec_id not in registry.entries:
        advice = "is a package missing that provides it?"
        if codec_id in EXTRAS:
            advice = install_hint(EXTRAS[codec_id])
        raise UnsupportedError(f"codec {shown(codec_id)} is not known to numcodecs here; {advice}")
    try:
        return registry.entries[codec_id].load()
    except Exception as error:  # another package's code may raise anything
        raise UnsupportedError(f"codec {codec_id!r} cannot be loaded: {error}") from error


def is_third_party(codec_id: str) -> bool:
    """Return whether another package than numcodecs provides the codec. Raises UnsupportedError if there is none."""
    return str(getattr(numcodec_class(codec_id), "__module__", "")).partition(".")[0] != "numcodecs"


def make_numcodec(codec_id: str, options: Mapping[str, Any]) -> Any:
    """Return the numcodecs codec ``codec_id``. Raises UnsupportedError if there is none, MetadataError if its
    parameters are wrong.
    """
    made = numcodec_class(codec_id)
    try:
        return made.from_config(dict(options))
    except Exception as error:
        raise MetadataError(
            f"codec {codec_id!r} cannot be made with {found(dict(options))}: {found_text(error)}"
        ) from error


def found_text(error: Exception) -> str:
    """Return the message of another library in one line of bounded length."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
