"""The formats by the ``zarr_format`` of their nodes: those of zarrfs, and those that other packages register."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from zarrfs.engine.formats import draft2019, n5
from zarrfs.engine.formats.base import Format
from zarrfs.engine.formats.v1 import V1Format
from zarrfs.engine.formats.v2 import V2Format
from zarrfs.engine.formats.v3 import V3Format
from zarrfs.errors import MetadataError, UnsupportedError
from zarrfs.logs import logger
from zarrfs.plugins import find_plugin, plugin_names

__all__ = [
    "ENTRY_POINTS",
    "FORMATS_BELOW_PATHS",
    "WRITABLE_FORMATS",
    "all_formats",
    "check_format",
    "format_named",
]

ENTRY_POINTS = "zarrfs.formats"
"""The entry point group of formats. The name of an entry point is the ``zarr_format`` of the nodes."""

_BUILT_IN: dict[int | str, Format] = {
    3: V3Format(),
    2: V2Format(),
    n5.NAME: n5.N5Format(),
    1: V1Format(),
    draft2019.NAME: draft2019.Draft2019Format(),
}
"""The formats of zarrfs, in the order in which they are tried."""

FORMATS_BELOW_PATHS = [name for name, known in _BUILT_IN.items() if not known.features.root_prefixes]
"""The formats of zarrfs that store a node below its path."""

WRITABLE_FORMATS = tuple(
    name for name in (2, 3, n5.NAME, draft2019.NAME) if _BUILT_IN[name].features.writable
)
"""The values of ``zarr_format`` of new nodes, apart from the formats of other packages."""


def all_formats() -> Iterator[tuple[int | str, Format]]:
    """Yield the formats in the order in which they are tried: those of other packages last, by name."""
    yield from _BUILT_IN.items()
    yield from _registered().items()


def format_named(zarr_format: int | str) -> Format:
    """Return the format of nodes with this ``zarr_format``. Raises UnsupportedError if there is none."""
    found = _BUILT_IN.get(zarr_format) or (
        _registered().get(zarr_format) if isinstance(zarr_format, str) else None
    )
    if found is None:
        known = [name for name, _ in all_formats()]
        raise UnsupportedError(f"zarr_format {zarr_format!r} is not supported; expected one of {known}")
    return found


def check_format(zarr_format: int | str) -> None:
    """Raise UnsupportedError unless new nodes can have this format."""
    if zarr_format in WRITABLE_FORMATS:
        return
    registered = _registered()
    if zarr_format not in registered or not registered[str(zarr_format)].features.writable:
        names = (*WRITABLE_FORMATS, *(name for name, known in registered.items() if known.features.writable))
        raise UnsupportedError(f"zarr_format {zarr_format!r} cannot be written; expected one of {names}")


@cache
def _registered() -> dict[str, Format]:
    """Return the formats of other packages. One that cannot be loaded is skipped with a warning."""
    formats: dict[str, Format] = {}
    for name in plugin_names(ENTRY_POINTS):
        try:
            kind: type[Format] | None = find_plugin(ENTRY_POINTS, name, type[Format], MetadataError)
            if kind is not None:
                formats[name] = kind()
        except UnsupportedError as error:
            logger.warning("%s; it is skipped", error)
        except Exception as error:  # another package's code may raise anything
            logger.warning(
                "the format %r (entry point group %s) cannot be created: %s: %s; it is skipped",
                *(name, ENTRY_POINTS, type(error).__name__, error),
            )
    return formats
