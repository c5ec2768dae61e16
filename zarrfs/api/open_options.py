"""The options of the functions that open and create nodes: modes, checks, and the resulting ``ReadWriteOptions``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Literal

from zarrfs.engine.access import ReadWriteOptions
from zarrfs.engine.create.array_options import (
    ArrayOptions,
    check_option_names,
    check_option_types,
    described,
    engine_options,
)
from zarrfs.engine.stores.locations import Location
from zarrfs.engine.values import describe_value
from zarrfs.errors import OptionError

__all__ = [
    "FOR_OPENING",
    "MODES",
    "MODE_ALIASES",
    "Mode",
    "check_options",
    "resolve_access",
    "resolve_mode",
]

Mode = Literal["r", "r+", "a", "w", "w-", "x"]

MODES = ("r", "r+", "a", "w", "w-")

MODE_ALIASES = {"x": "w-"}

DEFAULT_MODE: Mode = "r"
"""The mode if none is given and there are no options for creating a node. zarr-python uses ``"a"``: a mistyped path
then creates an empty group, and data that are only to be read can be changed by mistake.
"""

FOR_OPENING = tuple(name for name, option in described(ArrayOptions).items() if option.applies_to_existing)
"""The options of ``ArrayOptions`` that also apply to an existing node."""


def resolve_mode(mode: str | None, store: Location | None, options: Mapping[str, Any]) -> str:
    """Return the mode of a call: ``mode`` without aliases or, if it is None, the mode that the options require. Raises
    OptionError.
    """
    if mode is None:
        creating = [name for name in options if name not in (*FOR_OPENING, "zarr_format", "zarr_version")]
        return "a" if creating or store is None else DEFAULT_MODE
    mode = MODE_ALIASES.get(mode, mode)
    if mode not in MODES:
        raise OptionError(f"mode must be one of {', '.join(map(repr, MODES))}, found {mode!r}")
    if store is None and mode in ("r", "r+"):
        raise OptionError(f"mode {mode!r} opens an existing node and needs a location")
    return mode


def resolve_access(options: Mapping[str, Any]) -> ReadWriteOptions:
    """Return the ReadWriteOptions that results from all options of a call."""
    given = {name: options[name] for name in FOR_OPENING if name in options}
    translated = engine_options(given) if given else {}
    access: ReadWriteOptions = translated.get("access") or ReadWriteOptions()
    changes: dict[str, Any] = {}
    if "write_empty_chunks" in translated and translated["write_empty_chunks"] is not None:
        changes["write_empty_chunks"] = translated["write_empty_chunks"]
    for name in ("allow_pickle", "allow_external"):
        if options.get(name):
            changes[name] = True
    if options.get("use_consolidated") is not None:
        changes["use_consolidated"] = options["use_consolidated"]
    return replace(access, **changes) if changes else access


def check_options(
    function: str, given: Mapping[str, Any], options: type, parameters: Collection[str] = ()
) -> None:
    """Raise OptionError for an option that a function does not have, or whose value has an invalid type.

    ``options`` is the typed dictionary of the options of the function. Its other ``parameters`` are also suggested.
    The values of options for creating a node are checked later.
    """
    check_option_names(function, given, {*described(options), *parameters})
    cache_size, synchronizer = given.get("cache_size"), given.get("synchronizer")
    check_option_types(given)
    if cache_size is not None and cache_size < 0:
        raise OptionError(f"cache_size must be at least 0, found {cache_size}; 0 caches nothing")
    if synchronizer is not None and not hasattr(synchronizer, "lock"):
        raise OptionError(
            f"synchronizer must be a ProcessSynchronizer or ThreadSynchronizer, found {describe_value(synchronizer)}"
        )
