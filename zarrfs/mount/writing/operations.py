"""The FUSE operations of a writable mount."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, NoReturn

from zarrfs.engine.nodes.array import Array
from zarrfs.errors import describe_error
from zarrfs.logs import logger
from zarrfs.mount.blocks import BlockPool
from zarrfs.mount.open_files import OpenFile
from zarrfs.mount.operations import XATTR_PREFIX, ZarrOperations, errors_to_errno, os_error
from zarrfs.mount.options import CreationOptions
from zarrfs.mount.refusal import RefusedError
from zarrfs.mount.tree import GROUP_DOCUMENT, Directory, Entry, Tree, VirtualFile
from zarrfs.mount.writing.array_file import ArrayFile
from zarrfs.mount.writing.documents import CREATION_OPTIONS
from zarrfs.mount.writing.hierarchy_editor import HierarchyEditor
from zarrfs.mount.writing.local_storage import free_space, synchronize
from zarrfs.mount.writing.new_files import (
    CREATED_SUFFIXES,
    IncompleteFileError,
    check_creatable,
    is_temporary,
    store_file,
)
from zarrfs.mount.writing.pending import PendingFile, PendingFiles
from zarrfs.mount.writing.write_buffer import WriteBuffer

__all__ = ["WritableOperations"]

ATTRIBUTE_PREFIX = XATTR_PREFIX + "attrs."
"""The prefix of the extended attributes that are user attributes of a node."""

MAX_HIDDEN_NAMES = 100_000

SET_IF_EQUAL = ("kind", "path", "data_type", "dimension_units", "nbytes", "attributes")
"""Extended attributes that cannot be changed. Programs that copy files set them to their present value."""


class WritableOperations(ZarrOperations):
    """Operations on a Tree that change the store.

    An array is presented by several names. Removing a name hides it, and removing the last listed name removes the
    array. Renaming a name renames the array.
    """

    file_mode = 0o644
    directory_mode = 0o755

    def __init__(
        self,
        tree: Tree,
        ready: Callable[[], None],
        mounted_at: float | None = None,
        pool: BlockPool | None = None,
        options: CreationOptions | None = None,
        write_buffer: WriteBuffer | None = None,
    ) -> None:
        super().__init__(tree, ready, mounted_at, pool)
        self._write_buffer = WriteBuffer() if write_buffer is None else write_buffer
        self._editor = HierarchyEditor(tree, self._write_buffer, options or CreationOptions())
        self._pending = PendingFiles()
        self._hidden: set[str] = set()
        # Held while the hierarchy is changed. It also guards the hidden names.
        self._structure = threading.RLock()
        self._handles_of_pending: dict[int, PendingFile] = {}

    def destroy(self, path: str) -> None:
        for file in self._pending:
            try:
                is_stored = not file.is_changed or (file.size > 0 and store_file(file, self._editor))
            except Exception as error:
                logger.error("%s: the file is lost: %s", file.path, describe_error(error))
            else:
                if not is_stored and file.size:
                    logger.warning("%s: the temporary file of %d bytes is removed", file.path, file.size)
            self._pending.remove(file)
        self._write_buffer.close()
        super().destroy(path)

    # -- lookup ------------------------------------------------------------------------------------------------

    def _entry(self, path: str) -> Entry:
        if path in self._hidden:
            raise os_error(errno.ENOENT)
        return super()._entry(path)

    def _modified(self, entry: Entry) -> float:
        modified = super()._modified(entry)
        if isinstance(entry.node, Array):
            return max(modified, self._write_buffer.modified(entry.node))
        return modified

    @errors_to_errno
    def getattr(self, path: str, fh: Any = None) -> dict[str, Any]:
        file = self._pending.get(path)
        if file is not None:
            return self._file_status(file.size, file.size, file.modified)
        return super().getattr(path, fh)

    @errors_to_errno
    def access(self, path: str, mode: int) -> int:
        if self._pending.get(path) is None:
            self._entry(path)
        return 0

    @errors_to_errno
    def readdir(self, path: str, fh: Any) -> list[str]:
        prefix = path.rstrip("/") + "/"
        names = [name for name in super().readdir(path, fh) if prefix + name not in self._hidden]
        return list(dict.fromkeys([*names, *self._pending.names(path)]))

    @errors_to_errno
    def statfs(self, path: str) -> dict[str, int]:
        return free_space(self._tree.root.store) or super().statfs(path)

    # -- open files --------------------------------------------------------------------------------------------

    @errors_to_errno
    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_ACCMODE | os.O_TRUNC):
            self._check_writable()
        file = self._pending.get(path)
        if file is not None:
            if flags & os.O_TRUNC:
                file.truncate(0)
            return self._add_pending_handle(file)
        entry = self._entry(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.EISDIR)
        if flags & os.O_ACCMODE == os.O_RDONLY:
            return self._add_array_file(path, entry)
        if entry.node is None:
            raise RefusedError(f"{path}: the file describes an error and cannot be changed", errno.EPERM)
        is_document = path.endswith(".json")
        if not is_document and not flags & os.O_TRUNC:
            return self._add_array_file(path, entry)
        if not path.endswith(CREATED_SUFFIXES):
            raise RefusedError(
                f"{path}: files of this kind cannot be replaced; expected {', '.join(CREATED_SUFFIXES)}",
                errno.EOPNOTSUPP,
            )
        content = b"" if flags & os.O_TRUNC else entry.content.read(0, entry.content.size)
        file = PendingFile(path, content)
        file.is_changed = bool(flags & os.O_TRUNC)
        file.replaces = True
        self._pending.add(file)
        return self._add_pending_handle(file)

    @errors_to_errno
    def create(self, path: str, mode: int) -> int:
        self._check_writable()
        parent = path.rpartition("/")[0]
        if not isinstance(self._entry(parent or "/"), Directory):
            raise os_error(errno.ENOTDIR)
        _ = self._editor.root
        check_creatable(path)
        file = PendingFile(path)
        self._pending.add(file)
        self._hidden.discard(path)
        return self._add_pending_handle(file)

    def _check_writable(self) -> None:
        if self._tree.root.store.read_only:
            raise os_error(errno.EROFS)

    def _add_array_file(self, path: str, entry: VirtualFile) -> int:
        handle = next(self._handles)
        self._files[handle] = ArrayFile(path, entry.content, self._pool, self._write_buffer)
        return handle

    def _add_pending_handle(self, file: PendingFile) -> int:
        handle = next(self._handles)
        file.acquire()
        self._handles_of_pending[handle] = file
        return handle

    def _array_file(self, path: str, fh: int) -> ArrayFile:
        """Return the open file of a handle. It follows the array if that was replaced, renamed or resized."""
        file: OpenFile | None = self._files.get(fh)
        if isinstance(file, ArrayFile) and not file.is_stale:
            return file
        entry = self._tree.lookup(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.ESTALE)
        file = ArrayFile(path, entry.content, self._pool, self._write_buffer)
        if fh in self._files:
            self._files[fh] = file
        return file

    def _mark_stale(self, path: str) -> None:
        """Let open files of the nodes at or below a path look up their content again."""
        top = self._editor.store_path("" if isinstance(self._tree.root, Array) else path.strip("/"))
        for file in list(self._files.values()):
            if isinstance(file, ArrayFile):
                file.mark_stale(top)

    @errors_to_errno
    def read(self, path: str, size: int, offset: int, fh: int) -> Any:
        pending = self._handles_of_pending.get(fh)
        if pending is not None:
            return pending.read(offset, size)
        try:
            return self._array_file(path, fh).read(offset, size)
        except Exception as error:
            if isinstance(error, OSError) and error.errno == errno.ESTALE:
                raise
            self._error_log.report(path, error)
            raise os_error(errno.EIO) from error

    @errors_to_errno
    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:
        pending = self._handles_of_pending.get(fh)
        if pending is not None:
            with pending.lock:
                if fh in self._handles_of_pending:
                    return pending.write(offset, data)
        return self._array_file(path, fh).write(offset, data)

    @errors_to_errno
    def flush(self, path: str, fh: Any) -> int:
        self._flush(path, fh)
        return 0

    @errors_to_errno
    def fsync(self, path: str, datasync: int, fh: Any) -> int:
        self._flush(path, fh)
        synchronize(self._tree.root.store)
        return 0

    @errors_to_errno
    def fsyncdir(self, path: str, datasync: int, fh: Any) -> int:
        synchronize(self._tree.root.store)
        return 0

    def _flush(self, path: str, fh: int) -> None:
        pending = self._handles_of_pending.get(fh)
        if pending is None:
            file = self._files.get(fh)
            if isinstance(file, ArrayFile):
                file.flush()
        elif pending.is_changed and pending.size:
            try:
                self._store(pending)
            except IncompleteFileError as error:
                # numpy.lib.format.open_memmap writes the header, closes the file, and opens it again.
                logger.info("%s", error)

    def _store(self, file: PendingFile) -> bool:
        """Apply a pending file to the hierarchy, and remove it. Return False if it has a temporary name."""
        with self._structure, file.lock:
            if not store_file(file, self._editor):
                return False
            self._show_stem(file.path)
            self._pending.remove(file)
            self._continue_in_place(file)
        return True

    def _continue_in_place(self, file: PendingFile) -> None:
        """Let open handles of a file that became an array write to the array, if the array has a file of equal bytes.

        A program may write to a mapping of a file that it has closed. Its lock is held.
        """
        entry = self._tree.lookup(file.path)
        if not isinstance(entry, VirtualFile) or entry.content.size != file.size:
            return
        header_nbytes = file.size - sum(array.nbytes for array in entry.content.arrays)
        if file.path.endswith(".json") or entry.content.read(0, header_nbytes) != file.read(0, header_nbytes):
            return
        for handle, pending in list(self._handles_of_pending.items()):
            if pending is file:
                self._files[handle] = ArrayFile(file.path, entry.content, self._pool, self._write_buffer)
                del self._handles_of_pending[handle]
                file.release()

    def _show_stem(self, path: str) -> None:
        """Show all names of the node that a stored file presents, and let open files of it look up their content."""
        stem = path.removesuffix(GROUP_DOCUMENT).rpartition(".")[0]
        self._show_names(f"{stem}.")
        self._mark_stale(stem)

    @errors_to_errno
    def release(self, path: str, fh: int) -> int:
        pending = self._handles_of_pending.pop(fh, None)
        if pending is None:
            return super().release(path, fh)
        last = not pending.is_shared
        if last and pending.is_changed and pending.size and self._pending.get(pending.path) is not pending:
            self._store_again(path, pending)
        if last and not (pending.is_changed and pending.size) and self._is_shadow(pending):
            if pending.is_changed:
                logger.warning("%s: the file was truncated and closed empty; the array is unchanged", path)
            self._pending.remove(pending)
        pending.release()
        return 0

    def _store_again(self, path: str, file: PendingFile) -> None:
        """Store a file that was written by a mapping after it had been stored. No program receives an error of this."""
        try:
            self._store(file)
        except Exception as error:
            logger.error("%s: the last changes are not stored: %s", path, describe_error(error))
            if self._pending.get(file.path) is None:
                self._pending.add(file)

    def _is_shadow(self, file: PendingFile) -> bool:
        """Return whether a pending file has the path of a file of the hierarchy."""
        return self._pending.get(file.path) is file and self._tree.lookup(file.path) is not None

    # -- the hierarchy -----------------------------------------------------------------------------------------

    @errors_to_errno
    def truncate(self, path: str, length: int, fh: Any = None) -> int:
        pending = self._handles_of_pending.get(fh) or self._pending.get(path)
        if pending is not None:
            pending.truncate(length)
            return 0
        entry = self._entry(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.EISDIR)
        if length == entry.content.size:
            return 0
        if not path.endswith(".raw") or not isinstance(entry.node, Array):
            raise RefusedError(
                f"{path}: the size of {entry.content.size} bytes is determined by the shape of the array; truncate the "
                ".raw file to change the shape",
                errno.EINVAL,
            )
        with self._structure:
            self._editor.resize(entry.node, length)
            self._mark_stale(path.removesuffix(".raw"))
        return 0

    @errors_to_errno
    def mkdir(self, path: str, mode: int) -> int:
        if self._pending.get(path) is not None:
            raise os_error(errno.EEXIST)
        with self._structure:
            self._editor.make_group(path.strip("/"))
            self._hidden.discard(f"{path}/{GROUP_DOCUMENT}")
        return 0

    @errors_to_errno
    def rmdir(self, path: str) -> int:
        entry = self._entry(path)
        if not isinstance(entry, Directory):
            raise os_error(errno.ENOTDIR)
        if self._pending.names(path):
            raise os_error(errno.ENOTEMPTY)
        with self._structure:
            if isinstance(entry.node, Array) and path != "/":
                self._remove_name(path, entry)
            else:
                self._editor.remove_group(path.strip("/"))
                self._show_names(path + "/")
        return 0

    @errors_to_errno
    def unlink(self, path: str) -> int:
        pending = self._pending.get(path)
        if pending is not None:
            self._pending.remove(pending)
            return 0
        entry = self._entry(path)
        if isinstance(entry, Directory):
            raise os_error(errno.EISDIR)
        with self._structure:
            self._remove_name(path, entry)
        return 0

    def _remove_name(self, path: str, entry: Entry) -> None:
        """Hide a name of a node. The last listed name of an array removes the array."""
        node_path = self._array_path(path, entry)
        is_part = isinstance(entry.node, Array) and entry.node is not self._tree.root
        if node_path is None and not is_part and not path.endswith("/" + GROUP_DOCUMENT):
            raise RefusedError(f"{path}: this file cannot be removed", errno.EPERM)
        self._check_writable()
        if len(self._hidden) >= MAX_HIDDEN_NAMES:
            raise RefusedError(f"{path}: too many names of arrays that exist were removed", errno.ENOSPC)
        self._hidden.add(path)
        if node_path is not None:
            parent = path.rpartition("/")[0]
            names = self._tree.array_names(node_path)
            if all(f"{parent}/{name}" in self._hidden for name in names):
                self._editor.remove(node_path)
                self._show_names(f"/{node_path}.")
                self._mark_stale(node_path)

    def _array_path(self, path: str, entry: Entry) -> str | None:
        """Return the path of the array of which a file or directory is a view.

        None for other files, and for files in the directory of a view.
        """
        node = entry.node
        if not isinstance(node, Array) or node is self._tree.root:
            return None
        parent, _, name = path.strip("/").rpartition("/")
        found = f"{parent}/{node.basename}" if parent else node.basename
        if not name.startswith(node.basename + ".") or self._editor.store_path(found) != node.path:
            return None
        return found

    def _show_names(self, stem: str) -> None:
        """Stop hiding the names that begin with a path."""
        with self._structure:
            self._hidden -= {name for name in self._hidden if name.startswith(stem)}

    @errors_to_errno
    def rename(self, old: str, new: str) -> int:
        with self._structure:
            pending = self._pending.get(old)
            if pending is not None:
                self._rename_pending(pending, new)
            else:
                self._rename_node(old, new)
        return 0

    def _rename_node(self, old: str, new: str) -> None:
        entry = self._entry(old)
        if isinstance(entry, VirtualFile) and old.endswith(".json") and is_temporary(new):
            # An editor keeps the old document under the name of a backup, and writes a new one.
            self._check_writable()
            self._pending.add(PendingFile(new, entry.content.read(0, entry.content.size)))
            self._hidden.add(old)
            return
        if isinstance(entry, Directory) and not isinstance(entry.node, Array):
            if any(file.path.startswith(old + "/") for file in self._pending):
                raise RefusedError(f"{old}: it contains files that are not stored yet", errno.EBUSY)
            source, target = old.strip("/"), new.strip("/")
        else:
            array_path = self._array_path(old, entry)
            if array_path is None:
                raise RefusedError(f"{old}: this file cannot be renamed", errno.EPERM)
            suffix = old.strip("/").removeprefix(array_path)
            target = new.strip("/").removesuffix(suffix)
            if not new.endswith(suffix) or not target or target.endswith("/") or is_temporary(new):
                raise RefusedError(
                    f"{old}: renaming a file renames its array; the new name {new} must end with {suffix}",
                    errno.EINVAL,
                )
            source = array_path
        if source != target:
            replaced = self._pending.get(new)
            self._editor.move(source, target)
            if replaced is not None:
                self._pending.remove(replaced)
            for path in (source, target):
                self._show_names(f"/{path}.")
                self._mark_stale(path)

    def _rename_pending(self, file: PendingFile, new: str) -> None:
        check_creatable(new)
        old = file.path
        if not isinstance(self._entry(new.rpartition("/")[0] or "/"), Directory):
            raise os_error(errno.ENOTDIR)
        file.replaces = new not in self._hidden and self._tree.lookup(new) is not None
        if (is_temporary(new) and not file.replaces) or not file.size:
            self._pending.rename(file, new)
            return
        file.path = new
        try:
            store_file(file, self._editor)
        except BaseException:
            file.path = old
            raise
        file.path = old
        self._pending.remove(file)
        file.path = new
        replaced = self._pending.get(new)
        if replaced is not None:
            self._pending.remove(replaced)
        self._show_stem(new)

    # -- attributes --------------------------------------------------------------------------------------------

    def _attributes(self, path: str) -> dict[str, bytes]:
        file = self._pending.get(path)
        if file is not None:
            texts = {XATTR_PREFIX + name: text for name, text in file.options.items()}
            texts |= {ATTRIBUTE_PREFIX + name: _text(value) for name, value in file.attributes.items()}
            return {name: text.encode() for name, text in texts.items()}
        entry = self._entry(path)
        attributes = super()._attributes(path)
        if entry.node is not None and entry.has_attributes:
            for name, value in entry.node.attrs.asdict().items():
                attributes[ATTRIBUTE_PREFIX + name] = _text(value).encode()
        return attributes

    @errors_to_errno
    def setxattr(self, path: str, name: str, value: bytes, options: int, position: int = 0) -> int:
        key = name.removeprefix(XATTR_PREFIX)
        if key == name:
            raise os_error(errno.EOPNOTSUPP)
        text = value.decode("utf-8")
        file = self._pending.get(path)
        if name.startswith(ATTRIBUTE_PREFIX):
            attribute = name.removeprefix(ATTRIBUTE_PREFIX)
            if file is not None:
                file.attributes[attribute] = _value(text)
            else:
                self._editor.set_attribute(self._node_path(path), attribute, _value(text))
        elif file is not None and (key in CREATION_OPTIONS or key in SET_IF_EQUAL):
            file.options[key] = text
        elif self._attributes(path).get(name) != value:
            raise RefusedError(
                f"{path}: the extended attribute {name} of an existing node cannot be changed; {ATTRIBUTE_PREFIX}NAME "
                "sets a user attribute",
                errno.EPERM,
            )
        return 0

    @errors_to_errno
    def removexattr(self, path: str, name: str) -> int:
        file = self._pending.get(path)
        attribute = name.removeprefix(ATTRIBUTE_PREFIX)
        if file is not None:
            container = file.options if attribute == name else file.attributes
            key = name.removeprefix(XATTR_PREFIX) if attribute == name else attribute
            if container.pop(key, None) is None:
                raise os_error(errno.ENODATA)
        elif attribute == name:
            raise os_error(errno.EPERM if name in self._attributes(path) else errno.ENODATA)
        else:
            self._editor.remove_attribute(self._node_path(path), attribute)
        return 0

    def _node_path(self, path: str) -> str:
        """Return the path of the node that a file or directory presents."""
        entry = self._entry(path)
        if isinstance(entry, VirtualFile) and entry.node is not None and entry.node is not self._tree.root:
            top = self._tree.root.path
            return entry.node.path[len(top) :].strip("/") if top else entry.node.path
        return path.strip("/") if isinstance(entry, Directory) else ""

    @errors_to_errno
    def chmod(self, path: str, mode: int) -> int:
        # Modes and times are not stored. Programs that copy files set them, and must not fail.
        return self.access(path, os.F_OK)

    @errors_to_errno
    def chown(self, path: str, uid: int, gid: int) -> int:
        owner = self._owner
        if uid not in (-1, owner[0]) or gid not in (-1, owner[1]):
            raise os_error(errno.EPERM)
        return self.access(path, os.F_OK)

    @errors_to_errno
    def utimens(self, path: str, times: Any = None) -> int:
        file = self._pending.get(path)
        if file is not None:
            file.modified = time.time() if times is None else times[1] / 1e9
            return 0
        return self.access(path, os.F_OK)

    def _not_supported(self, *arguments: Any) -> NoReturn:
        raise os_error(errno.EOPNOTSUPP)

    link = symlink = mknod = fallocate = _not_supported


def _value(text: str) -> Any:
    """Return the JSON value of an extended attribute; other text is a string."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
