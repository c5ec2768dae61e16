"""Entry points of other packages: codecs, data types, chunk grids, chunk key encodings, formats, stores, views and
functions that return names of members.

Entry points are searched only for names that zarrfs itself does not know, because the search is slow compared with
opening an array.
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

__all__ = ["find_plugin", "install_hint", "load_plugins", "plugin_names", "provide"]

_provided: dict[str, list[str]] = {}
"""Entry point group -> references (``"module:name"``) to objects of zarrfs itself that are loaded like plugins."""


def provide(group: str, reference: str) -> None:
    """Add an object of zarrfs (``"module:name"``) to the result of ``load_plugins`` for an entry point group.

    In this way a package uses objects of a package that imports it. The module is imported on first use.
    """
    references = _provided.setdefault(group, [])
    if reference not in references:
        references.append(reference)


GUARDED = "_zarrfs_guarded"

_descriptions: dict[type | None, str] = {}
"""Class -> the description of its plugin in messages."""

METADATA_METHODS = ("from_configuration", "configuration", "check", "fill_from_json", "fill_to_json")


@cache
def _entry_points(group: str) -> tuple[Any, ...]:
    # Imported here because the import is slow and rarely needed.
    from importlib.metadata import entry_points

    return tuple(entry_points(group=group))


def find_plugin(group: str, name: str, expected: Any, error: type[Exception] | None = None) -> Any | None:
    """Return the object that a package registers under ``name`` in an entry point group, or None.

    Args:
        expected: ``type[Base]`` if the object must be a subclass of Base; a class if it must be an instance of it.
        error: if given, all exceptions of the object's methods are converted to this type, with a message that names
            the package.

    Raises UnsupportedError if the object cannot be imported or is not of the expected kind.
    """
    for point in _entry_points(group):
        if point.name == name:
            plugin = _load(point, expected)
            if error is not None:
                _guard(plugin if isinstance(plugin, type) else type(plugin), _describe(point), error)
            return plugin
    return None


def plugin_names(group: str) -> list[str]:
    """Return the names that packages register in an entry point group, sorted."""
    return sorted({point.name for point in _entry_points(group)})


def load_plugins(group: str, expected: Any) -> list[Any]:
    """Return all objects that are registered in an entry point group; ``expected`` as in ``find_plugin``.

    An object that cannot be loaded, or is not of the expected kind, is skipped with a warning.
    """
    plugins = [_import_reference(reference) for reference in _provided.get(group, ())]
    for point in _entry_points(group):
        try:
            plugins.append(_load(point, expected))
        except UnsupportedError as error:
            logger.warning("%s; it is skipped", error)
    return plugins


def _import_reference(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def install_hint(extra: str) -> str:
    """Return the pip command that installs the requirements of an extra of zarrfs.

    It lists the packages instead of ``zarrfs[extra]``, which pip can install only if zarrfs is in a package index.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        lines = requires("zarrfs") or []
    except PackageNotFoundError:
        lines = []
    marker = re.compile(rf"\bextra\s*==\s*['\"]{re.escape(extra)}['\"]")
    requirements = [line.partition(";")[0].strip() for line in lines if marker.search(line)]
    return "pip install " + " ".join(f"'{name}'" for name in requirements or [f"zarrfs[{extra}]"])


def _describe(point: Any) -> str:
    package = getattr(point.dist, "name", None) or "an unknown package"
    return f"{point.name!r} of {package} (entry point {point.value} of the group {point.group})"


def _guard(kind: type, description: str, error: type[Exception]) -> None:
    """Wrap the methods of a class of another package, so that they raise only exceptions of zarrfs.

    The class is modified in place, once. Methods that handle metadata raise MetadataError, all others ``error``.
    """
    _descriptions.setdefault(kind, description)
    for owner in kind.__mro__:
        if owner.__module__.partition(".")[0] in ("zarrfs", "builtins", "abc") or GUARDED in vars(owner):
            continue
        with suppress(TypeError):  # an immutable class
            setattr(owner, GUARDED, True)
            for name, method in list(vars(owner).items()):
                if name.startswith("__"):
                    continue
                raised = MetadataError if name in METADATA_METHODS else error
                if isinstance(method, classmethod | staticmethod):
                    setattr(owner, name, type(method)(_guarded(method.__func__, description, raised)))
                elif isinstance(method, FunctionType):
                    setattr(owner, name, _guarded(method, description, raised))


def _guarded(method: Callable[..., Any], description: str, raised: type[Exception]) -> Callable[..., Any]:
    """Return a function that calls ``method`` and converts its exceptions to ``raised``."""

    @wraps(method)
    def guarded(*args: Any, **options: Any) -> Any:
        try:
            result = method(*args, **options)
        except Exception as error:
            if isinstance(error, raised) or type(error).__module__.startswith("zarrfs."):
                raise
            owner = args[0] if args and isinstance(args[0], type) else type(args[0]) if args else None
            plugin = _descriptions.get(owner, description)  # the owner differs if the method is inherited
            raise raised(f"the plugin {plugin} raised {type(error).__name__}: {error}") from error
        if method.__name__ == "axis":  # a chunk grid returns objects of another class of the plugin
            _guard(type(result), description, raised)
        return result

    return guarded


def _load(point: Any, expected: Any) -> Any:
    description = _describe(point)
    try:
        plugin = point.load()
    except (Exception, SystemExit) as error:  # another package's code may raise anything
        raise UnsupportedError(
            f"{description} cannot be loaded: {type(error).__name__}: {error}; repair or remove that package"
        ) from error
    bases = getattr(expected, "__args__", ())
    fits = isinstance(plugin, type) and issubclass(plugin, bases) if bases else isinstance(plugin, expected)
    if not fits:
        kind = f"a subclass of {bases[0].__name__}" if bases else f"an instance of {expected.__name__}"
        raise UnsupportedError(
            f"{description} is {short_repr(plugin)}, expected {kind}; repair or remove that package"
        )
    return plugin
