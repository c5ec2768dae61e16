"""Saying, once, that consolidated metadata are out of date: because of a change that is made here, or by what is read.

They are not put right by the way: each change would cost the whole document, and two who put it right at once would
undo each other's. Who has made all changes consolidates again.
"""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any

from zarrfs.engine.formats import api as formats
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.logs import logger

__all__ = ["equivalent_specs", "forget_warnings", "warn_of_change", "warn_of_difference", "warn_of_omission"]

MAX_REMEMBERED = 10_000

_told: set[tuple[str, str]] = set()
"""(store, path) of the groups and nodes of which it was said."""

_lock = threading.Lock()


def warn_of_change(store: Store, path: str, zarr_format: int | str) -> None:
    """Log a warning for each group whose consolidated metadata mention the node at the path, or should, which has been
    made, changed or deleted. Costs a look at the groups above.
    """
    for group in formats.consolidating_paths(path, zarr_format):
        if (store.url, group) not in _told and formats.is_consolidated(store, group, zarr_format):
            _tell(
                store,
                group,
                f"the consolidated metadata of {group or '/'!r} are out of date since {path or '/'!r} was changed",
            )


def warn_of_omission(store: Store, path: str) -> None:
    """Log a warning for a node that is there, but not in the consolidated metadata that were asked for it."""
    _tell(store, path, f"{path!r} is missing from the consolidated metadata")


def warn_of_difference(store: Store, path: str, listed: NodeSpec, own: NodeSpec) -> None:
    """Log a warning if what consolidated metadata say of a node is not what its own documents say, which holds."""
    if not equivalent_specs(listed, own):
        _tell(store, path, f"{path!r} is otherwise in the consolidated metadata than it is")


def equivalent_specs(one: NodeSpec, other: NodeSpec) -> bool:
    """Tell whether two specs mean the same, though their documents differ: what goes without saying some leave out."""
    return bool(_meaning(one) == _meaning(other))


def _meaning(spec: NodeSpec) -> Any:
    # As text, in which NaN is the same as NaN.
    attributes = json.dumps(dict(spec.attributes), sort_keys=True)
    if isinstance(spec, ArraySpec):
        return attributes, repr(spec.fill_value), replace(spec, document={}, attributes={}, fill_value=None)
    return attributes, replace(spec, document={}, attributes={}, consolidated=None)


def forget_warnings(store: Store, path: str) -> None:
    """Warn anew of the group at the path, and of all below: its metadata have been consolidated."""
    with _lock:
        below = f"{path}/" if path else ""
        for url, other in list(_told):
            if url == store.url and (other == path or other.startswith(below)):
                _told.discard((url, other))


def _tell(store: Store, path: str, what: str) -> None:
    with _lock:
        if (store.url, path) in _told:
            return
        if len(_told) >= MAX_REMEMBERED:
            _told.clear()
        _told.add((store.url, path))
    logger.warning("%s: %s; zarrfs consolidate writes them anew", store.url, what)
