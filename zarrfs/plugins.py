"""What other packages add by entry points: codecs, data types, chunk grids, chunk key encodings, stores, views,
names of members.

They are looked for only when a name is met that the package itself does not know, as the search costs more than most
of what it is needed for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache, wraps
from importlib import import_module
from types import FunctionType
from typing import Any

from zarrfs.errors import MetadataError, UnsupportedError
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


GUARDED = "_zarrfs_guarded"

_descriptions: dict[type | None, str] = {}
"""By class, what a plugin is called in messages."""

METADATA_METHODS = ("from_configuration", "configuration", "check", "fill_from_json", "fill_to_json")


@cache
def _points(group: str) -> tuple[Any, ...]:
    # Imported here because it is slow to import and seldom needed.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def find_plugin(group: str, name: str, expected: Any, error: type[Exception] | None = None) -> Any | None:
    """Return what a package registers under ``name`` in an entry point group, or None.

    ``expected`` says what it must be: ``type[Base]`` a subclass of Base, a class an instance of it. With ``error``,
    whatever its methods raise becomes an error of that type that names the package. Raises UnsupportedError for one
    that cannot be imported or is something else.
    """
    for point in _points(group):
        if point.name == name:
            found = _loaded(point, expected)
            if error is not None:
                _guard(found if isinstance(found, type) else type(found), _describe(point), error)
            return found
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


def _describe(point: Any) -> str:
    package = getattr(point.dist, "name", None) or "an unknown package"
    return f"{point.name!r} of {package} (entry point {point.value} of the group {point.group})"


def _guard(kind: type, what: str, error: type[Exception]) -> None:
    """Let the methods of a class of another package raise nothing but our errors. Each class is changed once."""
    _descriptions.setdefault(kind, what)
    for owner in kind.__mro__:
        if owner.__module__.partition(".")[0] in ("zarrfs", "builtins", "abc") or GUARDED in vars(owner):
            continue
        with suppress(TypeError):  # a class that cannot be changed
            setattr(owner, GUARDED, True)
            for name, method in list(vars(owner).items()):
                if name.startswith("__"):
                    continue
                kept = MetadataError if name in METADATA_METHODS else error
                if isinstance(method, classmethod | staticmethod):
                    setattr(owner, name, type(method)(_guarded(method.__func__, what, kept)))
                elif isinstance(method, FunctionType):
                    setattr(owner, name, _guarded(method, what, kept))


def _guarded(method: Callable[..., Any], what: str, kept: type[Exception]) -> Callable[..., Any]:
    @wraps(method)
    def guarded(*args: Any, **options: Any) -> Any:
        try:
            result = method(*args, **options)
        except Exception as error:
            if isinstance(error, kept) or type(error).__module__.startswith("zarrfs."):
                raise
            owner = args[0] if args and isinstance(args[0], type) else type(args[0]) if args else None
            plugin = _descriptions.get(owner, what)  # of a method that is inherited
            raise kept(f"the plugin {plugin} raised {type(error).__name__}: {error}") from error
        if method.__name__ == "axis":  # of a chunk grid: an object of a class that is not registered itself
            _guard(type(result), what, kept)
        return result

    return guarded


def _loaded(point: Any, expected: Any) -> Any:
    what = _describe(point)
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
