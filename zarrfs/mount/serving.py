"""Serving of a mount in the current process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from zarrfs.engine.stores.base import Store
from zarrfs.errors import MountError
from zarrfs.mount.mount_table import SUBTYPE
from zarrfs.mount.mountpoints import prepare_mountpoint
from zarrfs.mount.options import MountOptions, default_cache_size
from zarrfs.text import safe_text

__all__ = ["root_name", "serve"]

LIBFUSE_SIGNAL_STATUS = 8
"""The status of libfuse 3 after SIGINT, SIGTERM or SIGHUP. The file system is then unmounted."""

MIN_SHARED_CACHE_NBYTES = 256 << 20
"""A smaller cache is used for decoded chunks only."""

DIRTY_CACHE_DIVISOR = 4
"""The written bytes that are not stored yet may occupy a quarter of the size of a large cache, in addition to it."""

MAX_SOURCE_LENGTH = 1000
"""The maximum number of characters of the location in the mount table."""


def serve(
    location: str | Store, mountpoint: str, options: MountOptions, ready: Callable[[], None] = lambda: None
) -> None:
    """Mount, and serve requests until the file system is unmounted or SIGINT or SIGTERM is received.

    ``ready`` is called when libfuse has initialized the mount. Raises ZarrError if the store cannot be opened or the
    mount fails. It must be called on the main thread because libfuse installs signal handlers.
    """
    import zarrfs
    from zarrfs.mount.binding import load_binding
    from zarrfs.mount.blocks import DEFAULT_POOL_NBYTES, BlockPool
    from zarrfs.mount.operations import ZarrOperations
    from zarrfs.mount.tree import Tree
    from zarrfs.mount.writing.operations import WritableOperations
    from zarrfs.mount.writing.synchronization import check_store, find_synchronizer
    from zarrfs.mount.writing.write_buffer import DEFAULT_DIRTY_NBYTES, WriteBuffer

    if options.writable and options.immutable:
        raise MountError("--rw and --immutable exclude each other: a writable mount changes the data")
    target = prepare_mountpoint(mountpoint)
    binding = load_binding()
    source = location.url if isinstance(location, Store) else location
    cache_size = default_cache_size() if options.cache_size is None else options.cache_size
    # Half of a large cache holds blocks of files, for sequential access; the rest holds decoded chunks. A working
    # buffer for blocks, which does not depend on the size of the cache, is added.
    blocks_nbytes = cache_size // 2 if cache_size >= MIN_SHARED_CACHE_NBYTES else 0
    pool = BlockPool(DEFAULT_POOL_NBYTES + blocks_nbytes, is_immutable=options.immutable)
    synchronizer = None
    if options.writable:
        with zarrfs.open(location, options.path, "r", storage_options=options.storage_options) as probe:
            check_store(probe.store)
            synchronizer = find_synchronizer(probe.store, options.synchronizer)
    node = zarrfs.open(
        location,
        options.path,
        "r+" if options.writable else "r",
        cache_size=cache_size - blocks_nbytes,
        storage_options=options.storage_options,
        synchronizer=synchronizer,
        access=zarrfs.Access(max_document=options.max_document),
    )
    try:
        tree = Tree(
            node, root_name(source), list_all_views=options.list_all_views, immutable=options.immutable
        )
        is_ready = False

        def mark_ready() -> None:
            nonlocal is_ready
            is_ready = True
            ready()

        if options.writable:
            operations: ZarrOperations = WritableOperations(
                tree,
                mark_ready,
                pool=pool,
                options=options.creation,
                write_buffer=WriteBuffer(max(DEFAULT_DIRTY_NBYTES, cache_size // DIRTY_CACHE_DIVISOR)),
            )
        else:
            operations = ZarrOperations(tree, mark_ready, pool=pool)
        try:
            binding.run(operations, target, _fuse_arguments(source, options))
        except RuntimeError as error:
            if is_ready and error.args == (LIBFUSE_SIGNAL_STATUS,):
                return
            if is_ready:
                raise MountError(f"{target}: the mount terminated with the libfuse status {error}") from error
            raise MountError(
                f"{target}: libfuse could not mount (status {error}). Its own message is printed above; "
                "`zarrfs doctor` shows missing requirements"
            ) from error
    finally:
        pool.close()
        node.store.close()


def _fuse_arguments(location: str, options: MountOptions) -> dict[str, object]:
    arguments: dict[str, object] = {
        "ro": not options.writable,
        "fsname": _escape_option(safe_text(location, MAX_SOURCE_LENGTH)),
        "subtype": SUBTYPE,
        "allow_other": options.allow_other,
        "default_permissions": options.allow_other,
    }
    if options.writable:
        # Bytes that are written through one file are visible in the other files of the array at once. An open file that
        # is removed or replaced is not kept under another name.
        arguments.update(auto_cache=True, attr_timeout=0, entry_timeout=0, hard_remove=True)
    elif options.immutable:
        arguments.update(kernel_cache=True, attr_timeout=3600, entry_timeout=3600)
    else:
        # On open, the kernel drops cached pages of a file whose size or modification time has changed.
        arguments.update(auto_cache=True)
    for option in options.fuse_options:
        key, separator, value = option.partition("=")
        arguments[key] = value if separator else True
    return arguments


def _escape_option(text: str) -> str:
    """Escape the characters that separate libfuse options."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def root_name(location: str) -> str:
    """Return the file name of an array that is the root of a store: the name of the location without .zarr and .zip."""
    name = Path(location.rstrip("/")).name
    for suffix in (".zip", ".zarr"):
        name = name.removesuffix(suffix)
    return name or "array"
