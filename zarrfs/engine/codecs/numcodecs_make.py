"""Making a numcodecs codec from its name and parameters, with an error that a user can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.plugins import install_hint

__all__ = ["make_numcodec"]

EXTRAS = {"pcodec": "pcodec", "zfpy": "zfp"}
"""The extras of this package that bring what a codec of numcodecs needs."""


def make_numcodec(codec_id: str, options: Mapping[str, Any]) -> Any:
    """Return the numcodecs codec ``codec_id``. Raises UnsupportedError if there is none, MetadataError if its
    parameters are wrong.
    """
    import numcodecs
    from numcodecs.registry import codec_registry, entries

    if codec_id not in codec_registry and codec_id not in entries:
        advice = "is a package missing that provides it?"
        if codec_id in EXTRAS:
            advice = install_hint(EXTRAS[codec_id])
        raise UnsupportedError(f"codec {codec_id!r} is not known to numcodecs here; {advice}")
    try:
        return numcodecs.get_codec({"id": codec_id, **options})
    except Exception as error:
        raise MetadataError(f"codec {codec_id!r} cannot be made with {dict(options)}: {error}") from error
