"""Serving of a mount in the current process."""

from __future__ import annotations

import ctypes
import gc
import importlib
import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from zarrfs.engine.stores.base import Store
from zarrfs.errors import MountError, ZarrError
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.logs import logger
from zarrfs.mount.fuse.binding import load_binding
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.filesystem import Filesystem
from zarrfs.mount.process.mount_table import SUBTYPE, is_mounted
from zarrfs.mount.process.mountpoints import prepare_mountpoint
from zarrfs.mount.process.records import (
    MountRecord,
    boot_identifier,
    lost_error,
    remove_record,
    start_time,
    write_record,
)
from zarrfs.mount.process.signals import handled_signals
from zarrfs.mount.process.sources import absolute_location
from zarrfs.mount.process.unmounting import unmount
from zarrfs.mount.statistics import MountDescription, prometheus_text
from zarrfs.text import safe_text

__all__ = ["serve"]

MAX_SOURCE_LENGTH = 1000
"""The maximum number of characters of the location in the mount table."""

EXIT_SECONDS = 2.0
"""The process exits this time after the unmount, even if requests are in progress: they may wait for a server."""

IMMUTABLE_SECONDS = 3600

M_ARENA_MAX = -8
"""The parameter of ``mallopt`` for the number of heaps (malloc.h of glibc)."""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MAPPED_NBYTES, KEPT_NBYTES = 16 << 20, 16 << 20
"""Larger allocations are mapped, and this much free memory at the end of the heap is kept. By default the buffers of
requests and of decoders are returned to the system after each use, and each of their pages is a page fault at the next.
"""

GC_THRESHOLDS = (20_000, 20, 50)
"""The thresholds of the garbage collector in the process of a mount."""


def serve(
    location: str | Store | Sequence[str | Store],
    mountpoint: str,
    options: MountOptions,
    ready: Callable[[], None] = lambda: None,
    *,
    is_created: bool = False,
) -> None:
    """Mount, and serve requests until the file system is unmounted or SIGINT or SIGTERM is received.

    Several locations become directories of the mount, named after the locations. ``ready`` is called when libfuse has
    initialized the mount. A mount point that was created for the mount (``is_created``) is removed afterwards. If
    requests are in progress after the unmount that do not end, the process exits.

    Raises ZarrError if a store cannot be opened, the mount fails, or written data are lost. It must be called on the
    main thread, because it handles signals.
    """
    given = [location] if isinstance(location, str | Store) else list(location)
    locations = [absolute_location(each) if isinstance(each, str) else each for each in given]
    if len(locations) > 1 and options.path:
        raise MountError("--path applies to one location; give the path as a part of each location instead")
    if options.writable and options.immutable:
        raise MountError("--rw and --immutable exclude each other: a writable mount changes the data")
    _use_one_heap()
    target = prepare_mountpoint(mountpoint, may_hide_files="nonempty" in options.fuse_options)
    ending = _Ending(target, is_created, options.writable)
    try:
        filesystem = Filesystem(locations, target, options)
        try:
            _run(filesystem, target, options, ready, ending)
        finally:
            ending.exit_soon()
            filesystem.commit_last()
            filesystem.close()
    finally:
        ending.finish()
    ending.check()


def _run(
    filesystem: Filesystem,
    target: str,
    options: MountOptions,
    ready: Callable[[], None],
    ending: _Ending,
) -> None:
    """Run the loop of libfuse."""
    binding = load_binding()
    statistics = filesystem.statistics
    is_ready = False

    def mark_ready() -> None:
        nonlocal is_ready
        is_ready = True
        ending.record = _record(
            statistics.description, ending.is_created, str(arguments["subtype"]), options.writable
        )
        write_record(ending.record)
        ready()
        threading.Thread(target=_prepare_reading, name="zarrfs-prepare").start()

    arguments = _fuse_arguments(filesystem.sources, options)
    max_read = arguments.get("max_read")
    dispatcher = filesystem.dispatcher(
        mark_ready,
        int(max_read) if isinstance(max_read, str) and max_read.isdecimal() else None,
        binding.calling_process,
        binding.is_interrupted,
    )

    # After a signal, written data are stored before the process exits.
    def store_everything() -> None:
        dispatcher.destroy("/")
        filesystem.commit_last()

    ending.flush = store_everything
    ending.lost = lambda: [*dispatcher.lost, *filesystem.lost]
    metrics = None
    if options.metrics is not None:
        from zarrfs.mount.process.metrics import MetricsServer

        metrics = MetricsServer(options.metrics, lambda: prometheus_text(statistics.snapshot()))
    try:
        with handled_signals(ending.stop, filesystem.rescan), _fewer_collections():
            binding.run(dispatcher, target, arguments, is_debugging=options.debug)
    except RuntimeError as error:
        if is_ready:
            raise MountError(f"{target}: the mount terminated with the libfuse status {error}") from error
        raise MountError(
            f"{target}: libfuse could not mount (status {error}). Its own message is printed above; "
            "`zarrfs doctor` shows missing requirements"
        ) from error
    finally:
        if metrics is not None:
            metrics.close()


def _prepare_reading() -> None:
    """Import the native executor when the mount is ready, so that neither the mount nor the first read waits for it."""
    with suppress(OSError):  # The first read reports it.
        importlib.import_module("zarrfs.engine.read.native_reading")


def _use_one_heap() -> None:
    """Let all threads allocate from one heap. With the default of glibc, each heap retains memory of evicted chunks."""
    with suppress(AttributeError, OSError):  # Other C libraries do not have the function.
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_ARENA_MAX, 1)
        mallopt(M_MMAP_THRESHOLD, MAPPED_NBYTES)
        mallopt(M_TRIM_THRESHOLD, KEPT_NBYTES)


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Collect cycles of objects less often: listings create many objects without cycles, which are all examined."""
    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


class _Ending:
    """Ends a mount: unmounts it after a signal, and exits the process if requests do not end after the unmount."""

    def __init__(self, target: str, is_created: bool, is_writable: bool) -> None:
        self.target = target
        self.is_created = is_created
        self.flush: Callable[[], None] = lambda: None
        """Writes changes. Called before the process exits although its loop has not ended."""
        self.lost: Callable[[], list[str]] = list
        """Returns descriptions of the written data that are lost, when the mount has ended."""
        self.record: MountRecord | None = None
        self._is_writable = is_writable
        self._finished = threading.Event()
        self._is_exiting = False

    def stop(self) -> None:
        """Unmount, and exit if the loop of libfuse does not end. Called by the thread that handles signals."""
        try:
            unmount(self.target, lazy=True, timeout=EXIT_SECONDS, waits_for_process=False)
        except ZarrError as error:
            # Another program may have unmounted it, such as `zarrfs umount` before SIGTERM.
            if is_mounted(self.target):
                logger.error("%s", error)
        self.exit_soon()

    def exit_soon(self) -> None:
        """Exit after ``EXIT_SECONDS`` unless ``finish`` is called before."""
        if not self._is_exiting:
            self._is_exiting = True
            threading.Thread(target=self._exit, name="zarrfs-exit", daemon=True).start()

    def _exit(self) -> None:
        if self._finished.wait(EXIT_SECONDS):
            return
        logger.info("%s: requests in progress are abandoned", self.target)
        if self._is_writable:
            try:
                self.flush()
            except Exception:
                logger.exception("%s: changes could not be written", self.target)
        self._clean()
        logging.shutdown()
        os._exit(1 if self.lost() else 0)

    def finish(self) -> None:
        """Remove what was created for the mount."""
        self._finished.set()
        self._clean()

    def check(self) -> None:
        """Raise MountError if written data are lost."""
        lost = self.lost()
        error = lost_error(replace(self.record, lost=lost)) if lost and self.record is not None else None
        if error is not None:
            raise error

    def _clean(self) -> None:
        lost = self.lost()
        if lost and self.record is not None:
            # The program that has unmounted it reads the record.
            write_record(replace(self.record, lost=lost))
        else:
            remove_record(self.target)
        if self.is_created and not is_mounted(self.target):
            with suppress(OSError):
                os.rmdir(self.target)


def _record(description: MountDescription, is_created: bool, subtype: str, is_writable: bool) -> MountRecord:
    return MountRecord(
        description.mountpoint,
        list(description.sources),
        description.pid,
        start_time(description.pid),
        boot_identifier(),
        description.since,
        description.cache_size,
        is_created,
        subtype,
        is_writable,
    )


def _fuse_arguments(sources: Sequence[str], options: MountOptions) -> dict[str, object]:
    arguments: dict[str, object] = {
        "ro": not options.writable,
        "fsname": _escape_option(safe_text(" ".join(sources), MAX_SOURCE_LENGTH)),
        "subtype": SUBTYPE,
        "allow_other": options.allow_other,
        "default_permissions": options.allow_other,
    }
    if options.writable:
        # Bytes that are written through one file are visible in the other files of the array at once. An open file that
        # is removed or replaced is not kept under another name.
        arguments.update(auto_cache=True, attr_timeout=0, entry_timeout=0, hard_remove=True)
    elif options.immutable:
        arguments.update(
            kernel_cache=True,
            attr_timeout=IMMUTABLE_SECONDS,
            entry_timeout=IMMUTABLE_SECONDS,
            negative_timeout=IMMUTABLE_SECONDS,
        )
    else:
        # On open, the kernel drops cached pages of a file unless the operations state that they are current.
        arguments.update(
            attr_timeout=REVALIDATION_SECONDS,
            entry_timeout=REVALIDATION_SECONDS,
            negative_timeout=REVALIDATION_SECONDS,
        )
    for option in options.fuse_options:
        key, separator, value = option.partition("=")
        arguments[key] = value if separator else True
    # In a read-only mount inode numbers are those of the paths. In a writable one they are those of libfuse, which are
    # the same after a rename.
    arguments.pop("readdir_ino", None)
    arguments["use_ino"] = not options.writable
    return arguments


def _escape_option(text: str) -> str:
    """Escape the characters that separate libfuse options."""
    return text.replace("\\", "\\\\").replace(",", "\\,")
