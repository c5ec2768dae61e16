"""Warnings about consolidated metadata that are out of date, because of a change made here or by what is read.

Each warning is logged once. Consolidated metadata are not updated automatically: each change would rewrite the whole
document, and concurrent updates would overwrite each other. The user consolidates again after all changes. A function
that makes one change, and updates the consolidated metadata itself, prevents the warning.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from zarrfs.engine.formats import api as formats
from zarrfs.engine.model import ArraySpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.logs import logger

__all__ = [
    "equivalent_specs",
    "forget_warnings",
    "warn_of_change",
    "warn_of_changed_members",
    "warn_of_difference",
    "warn_of_omission",
    "without_warnings_of_changes",
]

MAX_RECORDED_WARNINGS = 10_000

_warned: set[tuple[str, str]] = set()
"""(store URL, path) of the groups and nodes for which a warning was logged."""

_lock = threading.Lock()

_updated_by_caller: ContextVar[bool] = ContextVar(
    "consolidated metadata are updated by the caller", default=False
)


@contextmanager
def without_warnings_of_changes() -> Iterator[None]:
    """Within the context changes of this thread cause no warning: the caller updates the consolidated metadata."""
    token = _updated_by_caller.set(True)
    try:
        yield
    finally:
        _updated_by_caller.reset(token)


def warn_of_change(store: Store, path: str, zarr_format: int | str) -> None:
    """Log a warning for each group whose consolidated metadata include the node at the path, or should include it.

    Call this after the node was created, changed or deleted. Reads the metadata of the groups above it.
    """
    if _updated_by_caller.get():
        return
    for group in formats.consolidating_paths(path, zarr_format):
        _warn_if_consolidated(store, group, zarr_format, f"{path or '/'!r} was changed")


def warn_of_changed_members(store: Store, path: str, zarr_format: int | str) -> None:
    """Log a warning if the group at the path has consolidated metadata. Call this after nodes below it were changed."""
    if not _updated_by_caller.get():
        _warn_if_consolidated(store, path, zarr_format, "members of it were changed")


def _warn_if_consolidated(store: Store, group: str, zarr_format: int | str, change: str) -> None:
    if (store.url, group) not in _warned and formats.is_consolidated(store, group, zarr_format):
        _warn_once(
            store, group, f"the consolidated metadata of {group or '/'!r} are out of date since {change}"
        )


def warn_of_omission(store: Store, path: str) -> None:
    """Log a warning for a node that exists but is not in the consolidated metadata."""
    _warn_once(store, path, f"{path!r} is missing from the consolidated metadata")


def warn_of_difference(store: Store, path: str, listed: NodeSpec, own: NodeSpec) -> None:
    """Log a warning if the consolidated metadata of a node differ from its own documents, which take precedence."""
    if not equivalent_specs(listed, own):
        _warn_once(store, path, f"{path!r} differs from its consolidated metadata")


def equivalent_specs(one: NodeSpec, other: NodeSpec) -> bool:
    """Return whether two specs have the same meaning. Their documents may differ in keys that may be omitted."""
    return bool(_comparison_key(one) == _comparison_key(other))


def _comparison_key(spec: NodeSpec) -> Any:
    # Attributes and fill value are compared as text, because NaN is not equal to itself.
    attributes = json.dumps(dict(spec.attributes), sort_keys=True)
    if isinstance(spec, ArraySpec):
        return attributes, repr(spec.fill_value), replace(spec, document={}, attributes={}, fill_value=None)
    return attributes, replace(spec, document={}, attributes={}, consolidated=None)


def forget_warnings(store: Store, path: str) -> None:
    """Allow new warnings for the group at the path and all nodes below it, because its metadata were consolidated."""
    with _lock:
        below = f"{path}/" if path else ""
        for url, other in list(_warned):
            if url == store.url and (other == path or other.startswith(below)):
                _warned.discard((url, other))


def _warn_once(store: Store, path: str, problem: str) -> None:
    with _lock:
        if (store.url, path) in _warned:
            return
        if len(_warned) >= MAX_RECORDED_WARNINGS:
            _warned.clear()
        _warned.add((store.url, path))
    logger.warning("%s: %s; zarrfs consolidate writes them again", store.url, problem)
