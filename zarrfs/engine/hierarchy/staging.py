"""Replacement of a node through a staging prefix, and the removal of the staging prefixes of killed processes.

Samples of a dry run and probe keys have staging names, too. The names identify the process that writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.base import NodeKeys
from zarrfs.engine.hierarchy.subtrees import copy_keys, delete_keys, documents_first
from zarrfs.engine.stores.base import Store, Usage
from zarrfs.engine.stores.locks import locked_documents
from zarrfs.engine.stores.temporary_files import Owner, owned_name, owner
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.errors import StoreError
from zarrfs.logs import logger

__all__ = ["StagingStore", "clean_staging", "is_staging_key", "locked_exchanges", "replacing", "staging_name"]

STAGING = ".zarrfs-copy-"
"""The beginning of the names of staging prefixes and probe keys."""

EXCHANGE = "exchange"
"""The key below a staging prefix that exists while nodes are exchanged. Its value is the path of the replaced node."""

MAX_COPIED_KEYS = 1000
MAX_COPIED_NBYTES = 256 << 20
"""In a store that cannot rename, a node with at most this many keys and bytes is copied aside before it is replaced, so
that it can be restored. A larger node is deleted first.
"""


class StagingStore(PrefixStore):
    """A staging prefix of a store. Messages contain the URL of the store, without the prefix."""

    @property
    def url(self) -> str:
        return self.store.url


def is_staging_key(key: str) -> bool:
    """Return whether a key is a probe key or below a staging prefix."""
    return any(part.startswith(STAGING) for part in key.split("/"))


def staging_name() -> str:
    """Return a name of a staging prefix, or of a probe key, that identifies this process and is not used again."""
    return owned_name(STAGING)


def locked_exchanges(store: Store) -> AbstractContextManager[None]:
    """Exclude exchanges of nodes of a store, of this process and of those that ``Store.lock`` excludes."""
    return locked_documents(store, "zarr.json")  # It need not exist.


def _begin_exchange(store: Store, staging: str, path: str) -> None:
    """Note that the node at ``path`` is being replaced: from now on the staging prefix may have the only copy of it."""
    store.set(f"{staging}/{EXCHANGE}", path.encode())


def _delete_staging(store: Store, staging: str) -> None:
    """Delete a staging prefix of which nothing is needed any more."""
    store.delete(f"{staging}/{EXCHANGE}")
    store.delete_prefix(staging)


@contextmanager
def replacing(store: Store, path: str) -> Iterator[Store]:
    """Replace the node at ``path``: yield a staging store in which the caller creates the new node at the same path.

    If the block succeeds, the old node is moved aside, the new node is moved to its path, and the old one is deleted
    with everything below it. If the block or a step of the exchange raises an exception, the new node is deleted and
    the old one is at its path as before.

    In a store that cannot rename, a node with more than ``MAX_COPIED_KEYS`` keys or ``MAX_COPIED_NBYTES`` bytes is not
    moved aside. Raises StoreError if the new node cannot be moved in this case, or if the old one cannot be restored.
    The message names the prefixes below which the nodes are.

    Exchanges in one store exclude each other (``locked_exchanges``); that of the root excludes others from the
    beginning.
    """
    staging = staging_name()
    staging_store = StagingStore(store, f"{staging}/new")
    with ExitStack() as lock:
        if not path:
            # The exchange of the root moves the staging prefixes of others, too.
            lock.enter_context(locked_exchanges(store))
        try:
            if path:
                formats.copy_root_document(store, staging_store)
            yield staging_store
            if path:
                lock.enter_context(locked_exchanges(store))
            _begin_exchange(store, staging, path)
        except BaseException:
            _delete_staging(store, staging)
            raise
        _exchange_nodes(store, path, staging_store, staging)
        _delete_staging(store, staging)


def _exchange_nodes(store: Store, path: str, staging_store: StagingStore, staging: str) -> None:
    old = formats.node_keys(store, path)[0]
    new = formats.node_keys(staging_store, path)[0]
    if store.renames:
        _exchange(store, path, old, new, staging_store, staging)
    elif _can_be_copied(store, old, staging):
        _exchange_copies(store, path, old, new, staging_store, staging)
    else:
        _delete_and_move(store, path, old, new, staging_store, staging)


def _can_be_copied(store: Store, old: NodeKeys, staging: str) -> bool:
    """Return whether the old node, without the staged one, is within the limits for copying it aside."""
    usages = [store.usage(prefix) for prefix in old.prefixes]
    staged = store.usage(staging) if "" in old.prefixes else Usage(0, 0, None)
    keys = sum(usage.keys for usage in usages) - staged.keys
    nbytes = sum(usage.nbytes for usage in usages) - staged.nbytes
    return keys <= MAX_COPIED_KEYS and nbytes <= MAX_COPIED_NBYTES


def _exchange(
    store: Store, path: str, old: NodeKeys, new: NodeKeys, staging_store: StagingStore, staging: str
) -> None:
    """Rename the old node aside and the new one to its path. If a step fails, the old node is restored."""
    aside = f"{staging}/old"
    is_aside = False
    documents = {key: bytes(value) for key in old.keys if (value := store.get(key)) is not None}
    try:
        for key in documents:
            store.delete(key)
        for prefix in old.prefixes:
            store.move_prefix(prefix, f"{aside}/{prefix}".rstrip("/"))
        is_aside = True
        for prefix in new.prefixes:
            store.move_prefix(f"{staging_store.prefix}/{prefix}".rstrip("/"), prefix)
        for key in new.keys:
            value = staging_store.get(key)
            if value is not None:
                store.set(key, value)
    except BaseException as error:
        try:
            if is_aside:
                _delete_except(store, new, staging)
            for prefix in old.prefixes:
                store.move_prefix(f"{aside}/{prefix}".rstrip("/"), prefix)
            for key, value in documents.items():
                store.set(key, value)
            _delete_staging(store, staging)
        except StoreError as second:
            raise _not_restored_error(store, path, error, second, staging_store, aside) from error
        raise


def _exchange_copies(
    store: Store, path: str, old: NodeKeys, new: NodeKeys, staging_store: StagingStore, staging: str
) -> None:
    """Copy the old node aside, delete it, and copy the new one to its path. If a step fails, the old node is restored.

    At any time each array is complete or does not exist.
    """
    aside = f"{staging}/old"
    listed = [key for prefix in old.prefixes for key in store.list_prefix(prefix)]
    keys = [key for key in dict.fromkeys((*old.keys, *listed)) if not key.startswith(f"{staging}/")]
    try:
        copy_keys(store, {key: f"{aside}/{key}" for key in keys})
    except BaseException:
        _delete_staging(store, staging)
        raise
    try:
        for key in documents_first(keys):
            store.delete(key)
        _copy_from_staging(store, new, staging_store)
    except BaseException as error:
        try:
            _delete_except(store, new, staging)
            copy_keys(store, {f"{aside}/{key}": key for key in keys})
            _delete_staging(store, staging)
        except StoreError as second:
            raise _not_restored_error(store, path, error, second, staging_store, aside) from error
        raise


def _not_restored_error(
    store: Store, path: str, error: BaseException, second: StoreError, staging_store: StagingStore, aside: str
) -> StoreError:
    return StoreError(
        f"{store.url}: {path or '/'!r} could not be replaced ({error}) and could not be restored ({second}); "
        f"what is left of the old node is below {aside!r}, and of the replacement below {staging_store.prefix!r}",
        second.errno,
    )


def _delete_and_move(
    store: Store, path: str, old: NodeKeys, new: NodeKeys, staging_store: StagingStore, staging: str
) -> None:
    """Delete the old node, its documents first, and copy the new one to its path."""
    try:
        for key in formats.node_document_keys(store, path):
            store.delete(key)
        _delete_except(store, old, staging)
        _copy_from_staging(store, new, staging_store)
    except StoreError as error:
        raise StoreError(
            f"{store.url}: {path or '/'!r} could not be replaced and may be incomplete: {error}; the complete "
            f"replacement is below {staging_store.prefix!r}",
            error.errno,
        ) from error


def _delete_except(store: Store, node_keys: NodeKeys, staging: str) -> None:
    """Delete what a node consists of, but not what is below the staging prefix."""
    if "" not in node_keys.prefixes:
        delete_keys(store, node_keys, has_members=True)
        return
    for key in documents_first(store.list_prefix()):
        if not key.startswith(f"{staging}/"):
            store.delete(key)


def _copy_from_staging(store: Store, new: NodeKeys, staging_store: StagingStore) -> None:
    """Copy the staged node, which stays complete, to its path, where nothing is. Documents are written last."""
    listed = [key for prefix in new.prefixes for key in staging_store.list_prefix(prefix)]
    copy_keys(store, {f"{staging_store.prefix}/{key}": key for key in dict.fromkeys((*listed, *new.keys))})


def clean_staging(store: Store, *, dry_run: bool, other_machines: bool) -> list[str]:
    """Delete the staging prefixes and probe keys of processes that no longer run, and return their URLs. ``dry_run``
    only returns them. ``other_machines`` includes those of other machines, of which it is not known.

    Those that hold the nodes of an exchange that was interrupted are kept, and a warning names them. All directories of
    a local store are searched, of other stores only the root.
    """
    removed, unknown = [], []
    for name in sorted(_staged(store)):
        url = f"{store.directory or store.url}/{name}"
        state = owner(name.rpartition("/")[2], STAGING)
        if state is Owner.OTHER_MACHINE and not other_machines:
            unknown.append(url)
        if state in (None, Owner.RUNNING) or (state is Owner.OTHER_MACHINE and not other_machines):
            continue
        path = store.get(f"{name}/{EXCHANGE}")
        if path is not None:
            logger.warning(
                "%s is kept: the replacement of %r was interrupted. The new node is below new, and what was moved of "
                "the old one below old. Move what you need, and delete the rest",
                *(url, bytes(path).decode(errors="replace") or "/"),
            )
            continue
        if not dry_run:
            store.delete(name)
            store.delete_prefix(name)
        removed.append(url)
    if unknown:
        logger.warning(
            "temporary names of other machines are kept, because it is not known whether their processes run: %s",
            ", ".join(unknown),
        )
    return removed


def _staged(store: Store) -> Iterator[str]:
    """Yield the keys and prefixes of the store with staging names."""
    root = store.directory
    if root is None:
        listing = store.list_dir() if store.listable else ((), ())
        for names in listing:
            yield from (name for name in names if name.startswith(STAGING))
        return
    for directory, directories, files in os.walk(root):
        found = [name for name in (*directories, *files) if name.startswith(STAGING)]
        yield from (os.path.relpath(f"{directory}/{name}", root) for name in found)
        directories[:] = [name for name in directories if not name.startswith(STAGING)]
