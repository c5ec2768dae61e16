"""A mounted file system without FUSE: the nodes, the trees and caches, the operations, and the statistics."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

import zarrfs
from zarrfs.engine.hierarchy.unfinished import unfinished_note
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.icechunk.store import IcechunkStore
from zarrfs.engine.stores.wrappers.wrapper import unwrapped
from zarrfs.errors import ChunkDecodeError, ZarrError
from zarrfs.files.content.blocks import DEFAULT_IDLE_NBYTES, DEFAULT_POOL_NBYTES, BlockPool
from zarrfs.logs import logger
from zarrfs.mount.fuse.control import COMMIT_NAME, STATISTICS_NAME, ControlOperations
from zarrfs.mount.fuse.dispatch import Dispatcher
from zarrfs.mount.fuse.error_numbers import ErrorLog
from zarrfs.mount.fuse.interruption import InterruptibleCalls
from zarrfs.mount.fuse.operations import ZarrOperations
from zarrfs.mount.fuse.permissions import Permissions
from zarrfs.mount.options import MountOptions, default_cache_size
from zarrfs.mount.process.sources import display_location, is_on_server, open_sources, source_names
from zarrfs.mount.process.versions import open_versions
from zarrfs.mount.statistics import MountDescription, MountStatistics
from zarrfs.mount.tree.tree import Tree

__all__ = ["Filesystem"]

MIN_SHARED_CACHE_NBYTES = 256 << 20
"""A cache smaller than this is used for decoded chunks only."""

DIRTY_CACHE_DIVISOR = 4
"""Written bytes that are not stored yet may occupy the size of a large cache divided by this number, in addition to the
cache.
"""


class Filesystem:
    """The sources of a mount, opened. ``close`` closes them. Raises ZarrError if a source cannot be opened."""

    def __init__(self, locations: Sequence[str | Store], mountpoint: str, options: MountOptions) -> None:
        cache_size = default_cache_size() if options.cache_size is None else options.cache_size
        # Half of a large cache holds blocks of files, for sequential access; the rest holds decoded chunks. A working
        # buffer for blocks is added to a small cache.
        blocks_nbytes = cache_size // 2 if cache_size >= MIN_SHARED_CACHE_NBYTES else 0
        self._reported = ErrorLog()
        self.lost: list[str] = []
        """Descriptions of changes of branches that could not be committed."""
        self._waits = any(map(is_on_server, locations))
        access = zarrfs.Access(
            max_document=options.max_document,
            recheck_data=False if options.immutable else None,
            on_corrupt=self._report_corrupt if options.on_error == "fill" else None,
        )
        self._options = options
        self._cache_size = cache_size
        versions = open_versions(locations, options)
        self._has_directories = len(locations) > 1 or versions is not None
        opened = locations if versions is None else list(versions.values())
        self._nodes = open_sources(opened, options, cache_size - blocks_nbytes, access)
        self._pool = BlockPool(
            blocks_nbytes or DEFAULT_POOL_NBYTES,
            idle_nbytes=blocks_nbytes or DEFAULT_IDLE_NBYTES,
            is_immutable=options.immutable,
        )
        names = source_names(locations) if versions is None else list(versions)
        self._trees = {
            name: Tree(
                node,
                name,
                views=options.views,
                order=options.order,
                immutable=options.immutable,
                # The permissions of other users are those of the metadata documents.
                with_permissions=options.allow_other,
            )
            for name, node in zip(names, self._nodes, strict=True)
        }
        self.sources = tuple(display_location(location) for location in locations)
        self.statistics = MountStatistics(
            MountDescription(
                self.sources,
                mountpoint,
                os.getpid(),
                time.time(),
                cache_size,
                options.writable,
                tuple(self._unfinished(opened)),
            ),
            self._pool,
            [node._cache for node in self._nodes],
            lambda: sum(tree.cached_nbytes for tree in self._trees.values()),
            [node.store for node in self._nodes],
        )

    def _unfinished(self, locations: Sequence[str | Store]) -> Iterator[str]:
        """Yield the sources that are not complete, and log a warning for each."""
        for source, node in zip(map(display_location, locations), self._nodes, strict=True):
            note = unfinished_note(node)
            if note is not None:
                logger.warning("%s is %s", source, note)
                yield source

    def dispatcher(
        self,
        ready: Callable[[], None],
        max_read: int | None = None,
        caller: Callable[[], int] = lambda: 0,
        is_interrupted: Callable[[], bool] | None = None,
    ) -> Dispatcher:
        """Return the operations for the binding. ``ready`` is called when libfuse has initialized the mount.

        ``caller`` returns the process whose request is being served, 0 if it is not known, and ``is_interrupted``
        whether the request of the calling thread was interrupted.
        """
        call = None
        # The operations of a writable mount need the thread of the request, which knows the calling process.
        if self._waits and not self._options.writable and is_interrupted is not None:
            call = InterruptibleCalls(is_interrupted)
        options = self._options
        permissions = Permissions(
            follow_store=options.allow_other, uid=options.uid, gid=options.gid, umask=options.umask
        )
        sources = {name: self._operations(tree, caller) for name, tree in self._trees.items()}
        control = ControlOperations(
            {STATISTICS_NAME: self.statistics.json},
            commands={COMMIT_NAME: partial(self._commit, list(sources.values()))} if self._branches() else {},
        )
        counters = self.statistics.counters
        names = list(sources)
        top = ControlOperations(directories=lambda: names) if self._has_directories else sources.pop(names[0])
        return Dispatcher(
            top,
            sources,
            control,
            counters,
            ready,
            permissions,
            max_read,
            call,
            # Those of libfuse are the same after a rename.
            numbers_inodes=not options.writable,
        )

    def _operations(self, tree: Tree, caller: Callable[[], int]) -> ZarrOperations:
        if self._options.writable:
            from zarrfs.mount.writing.operations import WritableOperations
            from zarrfs.mount.writing.write_buffer import DEFAULT_DIRTY_NBYTES, WriteBuffer

            dirty_nbytes = self._cache_size // DIRTY_CACHE_DIVISOR // len(self._trees)
            return WritableOperations(
                tree,
                lambda: None,
                pool=self._pool,
                options=self._options.creation,
                write_buffer=WriteBuffer(max(DEFAULT_DIRTY_NBYTES, dirty_nbytes)),
                caller=caller,
            )
        return ZarrOperations(tree, lambda: None, pool=self._pool)

    def _branches(self) -> list[IcechunkStore]:
        """Return the stores of the branches of repositories that are mounted for writing."""
        stores = [unwrapped(node.store) for node in self._nodes]
        return [store for store in stores if isinstance(store, IcechunkStore) and not store.read_only]

    def _commit(self, sources: Sequence[Any], message: str) -> str:
        """Store what was written, and commit it. Return a description of the snapshots."""
        for operations in sources:
            operations.store_changes()
        lines = []
        for store in self._branches():
            snapshot = store.commit(message or None)
            lines.append(
                f"{store.url}: " + ("nothing was changed" if snapshot is None else f"snapshot {snapshot}")
            )
        return "\n".join(lines)

    def commit_last(self) -> None:
        """Commit what was written when the mount has ended. What cannot be committed is added to ``lost``."""
        for store in self._branches():
            try:
                snapshot = store.commit()
            except ZarrError as error:
                logger.error("%s", error)
                self.lost.append(str(error))
                store.roll_back()
            else:
                if snapshot is not None:
                    logger.info("%s: snapshot %s", store.url, snapshot)

    def _report_corrupt(self, error: ChunkDecodeError) -> None:
        self._reported.report("it reads as the fill value", error)

    def rescan(self) -> None:
        """Compare everything that is cached with the stores at the next access."""
        for tree in self._trees.values():
            tree.rescan()
        self._pool.clear()

    def close(self) -> None:
        """Stop reading ahead, and close the stores."""
        with ExitStack() as stack:
            for node in self._nodes:
                stack.callback(node.store.close)
            for tree in self._trees.values():
                stack.callback(tree.close)
            self._pool.close()
