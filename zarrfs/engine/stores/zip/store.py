"""A zip file as a store: keys are member names.

For reading, the central directory is read once. Stored (uncompressed) members are read directly at their offset, also
in part.

Writing never modifies the existing archive. Each value is appended, when it is set, as a stored member to a temporary
file in the same directory (``spool.py``). Only what the central directory states of it is in memory: some hundred bytes
for each new key, and a hundred for each one of the existing archive (``directory.py``). The store reads these values
from the temporary file. ``close``, ``flush`` or the exit of the interpreter copies the existing members unchanged to
the beginning of that file, writes the central directory, and renames the file over the archive. At any time the archive
is either the old one or the new one. A writer that is killed leaves the old archive and a hidden file, which the next
writer removes (``temporary_files.py``). Stores that have the old archive open continue to read it. No name occurs twice
in the central directory of an archive.

Rejected alternative: appending to the archive needs no copy, but it is not atomic. The file must grow before its new
central directory can be written. A writer that is killed in between leaves a file that ends in a member, which no
program can read. The kernel makes the copy. On file systems that share blocks between files (XFS, Btrfs) it costs
almost nothing, on others it runs at the speed of the disk. For large archives that change often, a directory is
better. Writing a new archive has no such cost.

Values that are replaced or deleted remain in the file without an entry in the central directory. If they are more than
a fifth of the file, the other members are copied to a new file when the archive is completed. While values are written,
the temporary file is compacted in the same way when more than half of it, and at least 64 MiB, is unused.

``zipfile`` encodes the local headers of new members. The rest is done here, because ``zipfile`` cannot do it:

* hold the directory of many members (``directory.py``): it makes an object of 700 bytes for each member, and opening an
  archive with a million members takes three times as long;
* find the end records without an object for each member, and encode a central directory (``records.py``);
* refuse members whose local header differs from the directory, which overlap, or which declare impossible sizes, and
  decompress no more than the declared size; read a part of a member at its offset (``archive.py``);
* replace and delete members, copy them without decompression, and complete an archive atomically (``spool.py``).
"""

from __future__ import annotations

import atexit
import os
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TypeVar

from zarrfs.engine.stores.base import Buffer, Listing, Usage, check_key
from zarrfs.engine.stores.regular_files import check_regular_file, open_regular_file
from zarrfs.engine.stores.temporary_files import is_abandoned, remove_abandoned
from zarrfs.engine.stores.zip.archive import ArchiveState, ArchiveStore
from zarrfs.engine.stores.zip.directory import ArchiveFile, Members
from zarrfs.engine.stores.zip.single_file import Layout, is_single_file, single_file_layout
from zarrfs.engine.stores.zip.writer import (
    WriterState,
    file_identity,
    find_writer,
    register_writer,
    writers_lock,
)
from zarrfs.errors import KeyNameError, LocationError, OptionError, StoreError
from zarrfs.logs import logger

__all__ = ["ZipStore"]

T = TypeVar("T")

MAX_NAME_NBYTES = 0xFFFF


class ZipStore(ArchiveStore):
    """Values in a zip file, which stays open until ``close``.

    ``mode`` is ``"r"``, ``"a"`` (created if missing) or ``"w"`` (replaced). Other programs can read written values only
    after ``close`` or ``flush``, because the central directory is at the end of a zip file. A store that is not closed
    is completed when it is garbage collected, when the interpreter exits, or when this process opens the file for
    reading. Errors are only logged then, so call ``close`` or use ``with``.

    Several stores and threads of one process can write to an archive at the same time. They share the written values.
    Only one process can write: if another one has replaced the file, ``close`` raises StoreError and does not modify
    the file. If ``close`` fails, the old file is unchanged, and ``close`` can be called again. With ``durable``,
    ``close`` returns after all data have reached the disk (fsync).

    A forked process can read the values that existed at the time of the fork, but cannot write.
    """

    def __init__(self, path: str | os.PathLike[str], mode: str = "r", *, durable: bool = False) -> None:
        self._closed = True
        self.path = self._display_path = os.path.abspath(os.fspath(path))
        if mode not in ("r", "a", "w"):
            raise OptionError(f"{self.path}: mode must be 'r', 'a' or 'w', found {mode!r}")
        self.read_only = mode == "r"
        self.durable = durable
        self._raised = ""  # the message of the last error of writing, which is not logged again
        super().__init__()
        # Links to the archive are retained: the file that they point to is replaced.
        target_path = os.path.realpath(self.path)
        self._writer: WriterState | None = None
        if self.read_only:
            writer = find_writer(target_path)
            if writer is not None:
                # If this fails, the reader opens the old archive, and the writer gets the error when it is closed.
                with suppress(StoreError):
                    self._complete(writer)
            self._open_archive(target_path)
            self._closed = False
            return
        with writers_lock:
            writer = find_writer(target_path)
            if (
                writer is None
                or writer.process_id != os.getpid()
                or writer.identity != file_identity(target_path)
            ):
                # There is no writer, or another process has replaced the file.
                writer = self._create_writer(target_path, mode == "w")
                register_writer(writer)
            elif mode == "w":
                writer.clear()
            writer.durable |= durable
            self._state = self._writer = writer
            self._closed = False
            _open_for_writing.add(self)

    def __reduce__(self) -> tuple[object, ...]:
        if not self.read_only:
            raise StoreError(
                f"{self.url} is open for writing and cannot be pickled; close it and open it for reading"
            )
        return ZipStore, (self.path, "r")

    def _create_writer(self, target_path: str, truncate: bool) -> WriterState:
        """Return the state of an archive that no other store of this process writes to."""
        self._state = writer = WriterState(target_path)
        writer.identity = file_identity(target_path)
        if truncate and writer.identity is not None:
            with self._opening_errors():
                _as_location_error(check_regular_file, target_path)
        writer.is_dirty = truncate or writer.identity is None
        if not writer.is_dirty:
            writer.file = self._open_archive(target_path)
        return writer

    def _open_archive(self, target_path: str) -> ArchiveFile:
        """Open the existing archive and read its central directory. Raises LocationError."""
        with self._opening_errors():
            file = ArchiveFile(_as_location_error(open_regular_file, target_path))
            directory = self._read_directory(file, os.fstat(file.fd).st_size)
        self._state.members = Members(directory)
        return file

    @property
    def url(self) -> str:
        return Path(self.path).as_uri()

    def list_dir(self, prefix: str = "") -> Listing:
        with self._writer.lock if self._writer is not None else nullcontext():
            return super().list_dir(prefix)

    def list_prefix(self, prefix: str = "") -> Iterator[str]:
        with self._writer.lock if self._writer is not None else nullcontext():
            return super().list_prefix(prefix)

    def usage(self, prefix: str = "") -> Usage:
        members = self._state.members
        sizes = [
            member.compressed_size
            for key in self.list_prefix(prefix)
            if (member := members.get(key)) is not None
        ]
        try:
            modified: float | None = os.stat(self.path).st_mtime
        except OSError:
            modified = None
        return Usage(len(sizes), sum(sizes), modified)

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        self.set_parts(key, (value,))

    def set_parts(self, key: str, parts: Sequence[Buffer]) -> None:
        writer = self._require_writer(f"writing {key!r}")
        try:
            encoded = check_key(key).encode()
        except UnicodeEncodeError as error:
            raise KeyNameError(
                f"{self.path}: a key in a zip file must be Unicode text, found {key!r}"
            ) from error
        if len(encoded) > MAX_NAME_NBYTES:
            raise KeyNameError(
                f"{self.path}: the key {key[:50]!r}... has {len(encoded):,} bytes; a key in a zip file has at most "
                f"{MAX_NAME_NBYTES:,}"
            )
        size = crc = 0
        for part in parts:
            size += memoryview(part).nbytes
            crc = zlib.crc32(part, crc)
        with writer.lock:
            self._check_open()
            try:
                writer.write_count += 1
                member = writer.get_spool().write(key, parts, size, crc, writer.write_count)
            except OSError as error:
                raise self._write_error(error) from error
            writer.replace_member(key, member)
            writer.compact()

    def delete(self, key: str) -> None:
        writer = self._require_writer(f"deleting {key!r}")
        with writer.lock:
            self._check_open()
            if writer.members.get(key) is not None:
                writer.replace_member(key, None)

    def _require_writer(self, operation: str) -> WriterState:
        writer = self._writer
        if writer is None:
            self._check_open()
            raise self._read_only_error(operation)
        if writer.process_id != os.getpid():
            raise StoreError(
                f"{self.url} was opened for writing before this process was forked: {operation} is refused; open it "
                "again in this process"
            )
        return writer

    def _write_error(self, error: OSError) -> StoreError:
        self._raised = f"{self.path} cannot be written: {error.strerror}"
        return StoreError(self._raised, error.errno)

    def flush(self) -> None:
        """Write all changes to the archive, atomically. This copies the existing members."""
        if self._writer is not None and not self._closed:
            self._complete(self._writer)

    def _complete(self, writer: WriterState) -> None:
        if writer.process_id != os.getpid():
            return
        with writer.lock:
            if not writer.is_dirty:
                return
            if file_identity(writer.target_path) != writer.identity:
                raise StoreError(
                    f"{self.path} was changed by another process after this store opened it: it is not replaced, and "
                    "the changes of this store are lost; write to a zip file from one process at a time"
                )
            try:
                spool = writer.get_spool()
                file, directory = spool.complete(
                    writer.members,
                    writer.target_path,
                    writer.durable,
                    writer.write_count,
                    self._layout(writer.members) if is_single_file(writer.target_path) else None,
                )
            except OSError as error:
                raise self._write_error(error) from error
            writer.identity = file_identity(writer.target_path)
            writer.file = file
            writer.spool, writer.members, writer.is_dirty = None, Members(directory), False

    def _layout(self, members: Members) -> Layout:
        """Return the layout of a single-file OME-Zarr with these members."""

        def read(key: str) -> Buffer | None:
            member = members.get(key)
            return None if member is None else self._read_member(key, member)

        comment = b"" if members.directory is None else members.directory.comment
        return single_file_layout(list(members.list_prefix("")), read, comment)

    def close(self) -> None:
        self.flush()
        self._release()

    def _release(self) -> None:
        """Release the files. Reads in progress are completed."""
        super().close()
        self._writer, self._state = None, ArchiveState()

    def clean(self, *, dry_run: bool = False) -> list[str]:
        self._check_open()
        if self.read_only and not dry_run:
            raise self._read_only_error("removing files")
        directory = os.path.dirname(os.path.realpath(self.path))
        try:
            names = sorted(os.listdir(directory))
        except OSError as error:
            raise StoreError(f"{directory} cannot be listed: {error.strerror}", error.errno) from error
        abandoned = [path for name in names if is_abandoned(path := f"{directory}/{name}")]
        if not dry_run:
            remove_abandoned(directory)
        return abandoned

    def __del__(self) -> None:
        # Complete the archive if the store was not closed.
        self._close_and_log_errors()

    def _close_and_log_errors(self) -> None:
        """Close the store, for callers that cannot handle exceptions. Errors that were not raised before are logged."""
        if self._closed:
            return
        raised = self._raised
        try:
            self.close()
        except Exception as error:
            if str(error) != raised:
                logger.error("%s", error)
            self._release()

    def discard(self) -> None:
        """Close without writing the changes to the archive.

        If other stores of this process write to the same archive, the changes are shared with them and are retained.
        """
        self._release()


_open_for_writing: weakref.WeakSet[ZipStore] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for store in list(_open_for_writing):
        store._close_and_log_errors()


def _as_location_error(check: Callable[[str], T], path: str) -> T:
    """Return ``check(path)``. Raises LocationError instead of StoreError."""
    try:
        return check(path)
    except StoreError as error:
        raise LocationError(str(error)) from error
