"""Making a numcodecs codec from its name and parameters, with an error that a user can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from zarrfs.errors import MetadataError, UnsupportedError

__all__ = ["make_numcodec"]


def make_numcodec(codec_id: str, options: Mapping[str, Any]) -> Any:
    """Return the numcodecs codec ``codec_id``. Raises UnsupportedError if there is none, MetadataError if its
    parameters are wrong.
    """
    import numcodecs
    from numcodecs.registry import codec_registry, entries

    if codec_id not in codec_registry and codec_id not in entries:
        raise UnsupportedError(
            f"codec {codec_id!r} is not known to numcodecs; is a package missing that provides it?"
        )
    try:
        return numcodecs.get_codec({"id": codec_id, **options})
    except Exception as error:
        raise MetadataError(f"codec {codec_id!r} cannot be made with {dict(options)}: {error}") from error
