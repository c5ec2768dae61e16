"""What other packages add by entry points: codecs, data types, chunk grids, chunk key encodings, stores, views,
names of members.

They are looked for only when a name is met that the package itself does not know, as the search costs more than most
of what it is needed for.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from typing import Any

from zarrfs.errors import UnsupportedError
from zarrfs.logs import logger
from zarrfs.text import short_repr

__all__ = ["find_plugin", "install_hint", "load_plugins", "provide"]

_provided: dict[str, list[str]] = {}
"""By group, what of zarrfs itself is found as plugins are: module and name."""


def provide(group: str, place: str) -> None:
    """Add something of zarrfs (``"module:name"``) to what ``load_plugins`` returns for a group. So a package below uses
    one above it without importing it. It is imported when it is first needed.
    """
    places = _provided.setdefault(group, [])
    if place not in places:
        places.append(place)


@cache
def _points(group: str) -> tuple[Any, ...]:
    # Imported here because it is slow to import and seldom needed.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def find_plugin(group: str, name: str, expected: Any) -> Any | None:
    """Return what a package registers under ``name`` in an entry point group, or None.

    ``expected`` says what it must be: ``type[Base]`` a subclass of Base, a class an instance of it. Raises
    UnsupportedError for one that cannot be imported or is something else.
    """
    for point in _points(group):
        if point.name == name:
            return _loaded(point, expected)
    return None


def load_plugins(group: str, expected: Any) -> list[Any]:
    """Return all that packages register in an entry point group and that is as ``expected``, as for ``find_plugin``.
    What is broken is left out, with a warning: nobody asked for it by name.
    """
    found = [_provision(place) for place in _provided.get(group, ())]
    for point in _points(group):
        try:
            found.append(_loaded(point, expected))
        except UnsupportedError as error:
            logger.warning("%s; it is left out", error)
    return found


def _provision(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)


def install_hint(extra: str) -> str:
    """Return the command that installs what an extra of zarrfs needs. It names those packages, not ``zarrfs[extra]``,
    which pip finds only where zarrfs comes from an index.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("zarrfs") or []
    except PackageNotFoundError:
        lines = []
    marker = re.compile(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]")
    needed = [line.partition(";")[0].strip() for line in lines if marker.search(line)]
    return "pip install " + " ".join(f"'{name}'" for name in needed or [f"zarrfs[{extra}]"])


def _loaded(point: Any, expected: Any) -> Any:
    package = getattr(point.dist, "name", None) or "an unknown package"
    what = f"{point.name!r} of {package} (entry point {point.value} of the group {point.group})"
    try:
        found = point.load()
    except (Exception, SystemExit) as error:  # another package's code may raise anything
        raise UnsupportedError(
            f"{what} cannot be loaded: {type(error).__name__}: {error}; repair or remove that package"
        ) from error
    bases = getattr(expected, "__args__", ())
    fits = isinstance(found, type) and issubclass(found, bases) if bases else isinstance(found, expected)
    if not fits:
        wanted = f"a subclass of {bases[0].__name__}" if bases else f"an instance of {expected.__name__}"
        raise UnsupportedError(
            f"{what} is {short_repr(found)}, expected is {wanted}; repair or remove that package"
        )
    return found
