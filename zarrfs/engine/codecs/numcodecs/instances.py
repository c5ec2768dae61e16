"""Creating numcodecs codecs from names and parameters, with errors as ZarrError; the parameters of an adapter."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any, Self

from zarrfs.engine.codecs.numcodecs.table import IMAGECODECS_PREFIX
from zarrfs.engine.json_checks import describe_json
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.libraries import import_library
from zarrfs.plugins import install_hint
from zarrfs.text import short_repr

__all__ = ["NumcodecsOptions", "is_third_party", "make_numcodec", "numcodec_class"]

EXTRAS = {"pcodec": "pcodec", "zfpy": "zfp", "msgpack2": "msgpack"}
"""The extras of this package that install the requirements of a codec of numcodecs."""


class NumcodecsOptions:
    """The configuration of an adapter: the parameters of numcodecs, unchanged. The first base class of adapters."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = dict(options)

    @classmethod
    def from_configuration(cls, configuration: Mapping[str, Any]) -> Self:
        return cls(configuration)

    def configuration(self) -> dict[str, Any]:
        return dict(self._options)


def numcodec_class(codec_id: str) -> Any:
    """Return the class that is registered with numcodecs as ``codec_id``. Raises UnsupportedError if there is none."""
    import_library("numcodecs")
    registry = import_library("numcodecs.registry")
    codec_type = registry.codec_registry.get(codec_id)
    if codec_type is None and codec_id.startswith(IMAGECODECS_PREFIX):
        codec_type = _imagecodecs_class(codec_id)
    if codec_type is not None:
        return codec_type
    if codec_id not in registry.entries:
        advice = (
            install_hint(EXTRAS[codec_id]) if codec_id in EXTRAS else "install the package that provides it"
        )
        raise UnsupportedError(f"codec {short_repr(codec_id)} is not registered with numcodecs; {advice}")
    try:
        return registry.entries[codec_id].load()
    except Exception as error:  # Code of another package may raise any exception.
        raise UnsupportedError(f"codec {codec_id!r} cannot be loaded: {error}") from error


def _imagecodecs_class(codec_id: str) -> Any:
    """Register a codec of the package imagecodecs, which has no entry points, and return its class; None if it has no
    such codec. Raises UnsupportedError if the package is not installed.
    """
    try:
        codecs = importlib.import_module("imagecodecs.numcodecs")
    except ImportError as error:
        raise UnsupportedError(
            f"codec {short_repr(codec_id)} is one of the package imagecodecs: pip install imagecodecs ({error})"
        ) from error
    codecs.register_codecs([codec_id], verbose=False)
    return import_library("numcodecs.registry").codec_registry.get(codec_id)


def is_third_party(codec_id: str) -> bool:
    """Return whether a package other than numcodecs provides the codec. Raises UnsupportedError if none does."""
    return str(getattr(numcodec_class(codec_id), "__module__", "")).partition(".")[0] != "numcodecs"


def make_numcodec(codec_id: str, options: Mapping[str, Any]) -> Any:
    """Return the numcodecs codec ``codec_id`` with its parameters.

    Raises UnsupportedError if no such codec is registered, MetadataError if the parameters are invalid.
    """
    codec_type = numcodec_class(codec_id)
    try:
        return codec_type.from_config(dict(options))
    except Exception as error:
        raise MetadataError(
            f"codec {codec_id!r}: invalid configuration {describe_json(dict(options))}: {_reason(error)}"
        ) from error


def _reason(error: Exception) -> str:
    """Return what is wrong with the parameters, without the signature of a Python function."""
    text = one_line(error)
    if not isinstance(error, TypeError):
        return text
    unknown = re.search(r"unexpected keyword argument '(\w{1,100})'", text)
    if unknown is not None:
        return f"unknown parameter {unknown[1]!r}"
    if "required positional argument" in text:
        return f"missing: {text.rpartition(': ')[2]}"
    return "a required parameter is missing" if "positional argument" in text else text


def one_line(error: Exception) -> str:
    """Return the message of an error of another library in one line of at most 200 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
