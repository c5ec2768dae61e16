"""``copy_store`` of zarr-python 2: copying keys between stores."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from zarrfs.engine.formats.paths import normalize_path
from zarrfs.engine.locations import Location, open_store
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.base import Store
from zarrfs.errors import NodeExistsError
from zarrfs.tools.copy_log import CopyResult, Log, line_writer

__all__ = ["copy_store"]


def copy_store(
    source: Location,
    dest: Location,
    source_path: str = "",
    dest_path: str = "",
    excludes: str | list[str] | None = None,
    includes: str | list[str] | None = None,
    flags: int = 0,
    if_exists: Literal["raise", "replace", "skip"] = "raise",
    dry_run: bool = False,
    log: Log = None,
) -> CopyResult:
    """Copy keys and values between stores unchanged.

    Args:
        excludes, includes: regular expressions. A key that matches one of ``excludes`` is skipped, unless it matches
            one of ``includes``. ``flags`` are those of ``re.compile``.

    Raises NodeExistsError before anything is copied if a key exists in the destination.
    """
    if if_exists not in ("raise", "replace", "skip"):
        raise ValueError(f"if_exists must be 'raise', 'replace' or 'skip', found {if_exists!r}")
    source_store, source_root = open_store(source, mode="r")
    dest_store, dest_root = open_store(dest, mode="a")
    source_prefix = "/".join(part for part in (source_root, normalize_path(source_path)) if part)
    dest_prefix = "/".join(part for part in (dest_root, normalize_path(dest_path)) if part)
    try:
        is_selected = _key_selector(excludes, includes, flags)
        return _copy_keys(
            source_store, dest_store, source_prefix, dest_prefix, is_selected, if_exists, dry_run, log
        )
    finally:
        for store, given in ((source_store, source), (dest_store, dest)):
            if isinstance(given, str) or hasattr(given, "__fspath__"):
                store.close()


def _key_selector(
    excludes: str | list[str] | None, includes: str | list[str] | None, flags: int
) -> Callable[[str], bool]:
    exclude_patterns, include_patterns = (
        [re.compile(pattern, flags) for pattern in ([given] if isinstance(given, str) else given or ())]
        for given in (excludes, includes)
    )

    def is_selected(key: str) -> bool:
        return not any(p.search(key) for p in exclude_patterns) or any(
            p.search(key) for p in include_patterns
        )

    return is_selected


def _copy_keys(
    source: Store,
    dest: Store,
    source_prefix: str,
    dest_prefix: str,
    is_selected: Callable[[str], bool],
    if_exists: str,
    dry_run: bool,
    log: Log,
) -> CopyResult:
    prefix_length = len(source_prefix) + 1 if source_prefix else 0
    keys = {
        key: "/".join(part for part in (dest_prefix, key[prefix_length:]) if part)
        for key in sorted(source.list_prefix(source_prefix))
        if is_selected(key)
    }
    existing = {key for key, new in keys.items() if dest.exists(new)}
    if existing and if_exists == "raise":
        raise NodeExistsError(
            f"{dest.url}: key {keys[min(existing)]!r} and {len(existing) - 1} more exist already; "
            "use if_exists='replace' or 'skip'"
        )
    selected = [key for key in keys if if_exists != "skip" or key not in existing]
    with line_writer(log) as write:
        for key, new in keys.items():
            write(f"{'copy' if if_exists != 'skip' or key not in existing else 'skip'} {key} -> {new}")
        if dry_run:
            return CopyResult(len(selected), len(keys) - len(selected), 0)
        nbytes: list[int] = []

        def copy_key(key: str) -> None:
            value = source.get(key)
            if value is not None:
                dest.set(keys[key], value)
                nbytes.append(len(value))

        for_each(copy_key, selected, max(CORES, source.concurrency, dest.concurrency))
    return CopyResult(len(nbytes), len(keys) - len(selected), sum(nbytes))
