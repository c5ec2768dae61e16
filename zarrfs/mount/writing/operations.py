"""The FUSE operations of a writable mount that change the hierarchy and the attributes of nodes."""

from __future__ import annotations

import errno
import json
import os
import time
from typing import Any, NoReturn

from zarrfs.engine.array.array import Array
from zarrfs.mount.fuse.error_numbers import RefusedError, errors_to_errno, os_error
from zarrfs.mount.fuse.extended_attributes import XATTR_PREFIX
from zarrfs.mount.tree.entries import Directory, Entry, VirtualFile
from zarrfs.mount.tree.presentation import GROUP_DOCUMENT
from zarrfs.mount.writing.documents import CREATION_OPTIONS
from zarrfs.mount.writing.file_handles import is_raw
from zarrfs.mount.writing.file_operations import FileOperations
from zarrfs.mount.writing.new_files import check_creatable, is_temporary
from zarrfs.mount.writing.pending import PendingFile

__all__ = ["WritableOperations"]

ATTRIBUTE_PREFIX = XATTR_PREFIX + "attrs."
"""The prefix of the extended attributes that are user attributes of a node."""

SET_IF_EQUAL = ("kind", "path", "data_type", "dimension_units", "nbytes", "attributes")
"""Extended attributes that cannot be changed. Programs that copy files set them to their current value."""


class WritableOperations(FileOperations):
    """Operations on a Tree that change the store.

    An array is presented by several names. Removing a name hides it, and removing the last listed name removes the
    array. Renaming a name renames the array.
    """

    # -- the hierarchy -----------------------------------------------------------------------------------------

    @errors_to_errno
    def truncate(self, path: str, length: int, fh: Any = None) -> int:
        pending = self._file_handles.pending(fh) or self._pending.get(path)
        if pending is not None:
            pending.truncate(length)
            return 0
        entry = self._entry(path)
        if not isinstance(entry, VirtualFile):
            raise os_error(errno.EISDIR)
        self._check_own(path, entry)
        appended = self._appended.get(path)
        if appended is not None:
            with self._structure:
                if entry.content.size <= length <= entry.content.size + appended.size:
                    appended.truncate(length - entry.content.size)
                    return 0
                self._store_appended(path)
                entry = self._entry(path)
                assert isinstance(entry, VirtualFile)
        if length == entry.content.size:
            return 0
        if not isinstance(entry.node, Array) or not is_raw(path, entry.content):
            raise RefusedError(
                f"{path}: the size of {entry.content.size} bytes is determined by the shape of the array; truncate the "
                ".raw file in C order to change the shape",
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
        self._check_parent(path)
        with self._structure:
            self._editor.make_group(path.strip("/"))
            self._hidden.show(f"{path}/{GROUP_DOCUMENT}")
            process = self._caller()
            self._implied.add(f"{path}/{GROUP_DOCUMENT}", process)
            self._group_creators.add(path, process)
        return 0

    @errors_to_errno
    def rmdir(self, path: str) -> int:
        entry = self._entry(path)
        if not isinstance(entry, Directory):
            raise os_error(errno.ENOTDIR)
        self._check_own(path, entry)
        if self._pending.names(path):
            raise os_error(errno.ENOTEMPTY)
        with self._structure:
            if isinstance(entry.node, Array) and path != "/":
                self._remove_name(path, entry)
            else:
                self._editor.remove_group(path.strip("/"))
                self._hidden.show_all(path + "/")
                self._implied.discard(path + "/")
        return 0

    @errors_to_errno
    def unlink(self, path: str) -> int:
        pending = self._pending.get(path)
        if pending is not None:
            self._pending.delete(pending)
            return 0
        entry = self._entry(path)
        if isinstance(entry, Directory):
            raise os_error(errno.EISDIR)
        self._check_own(path, entry)
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
        self._hidden.add(path)
        if node_path is not None:
            parent = path.rpartition("/")[0]
            names = self._tree.array_names(node_path)
            if all(f"{parent}/{name}" in self._hidden for name in names):
                try:
                    self._editor.remove(node_path)
                except BaseException:
                    self._hidden.show(path)
                    raise
                self._discard_appended(f"/{node_path}.raw")
                self._implied.discard(f"/{node_path}.")
                self._hidden.show_all(f"/{node_path}.")
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

    @errors_to_errno
    def rename(self, old: str, new: str) -> int:
        self._check_parent(new)
        with self._structure:
            pending = self._pending.get(old)
            if pending is not None:
                self._rename_pending(pending, new)
            else:
                self._rename_node(old, new)
        return 0

    def _rename_node(self, old: str, new: str) -> None:
        entry = self._entry(old)
        self._check_own(old, entry)
        if isinstance(entry, VirtualFile) and old.endswith(".json") and is_temporary(new):
            # An editor keeps the old document under the name of a backup, and writes a new one.
            self._check_writable()
            document = entry.content.read(0, entry.content.size)
            self._hidden.add(old)
            try:
                self._pending.add(PendingFile(new, document))
            except RefusedError:
                self._hidden.show(old)
                raise
            return
        if isinstance(entry, Directory) and not isinstance(entry.node, Array):
            if any(file.path.startswith(old + "/") for file in (*self._pending, *self._appended)):
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
            self._store_appended(f"/{source}.raw")
            self._editor.move(source, target)
            self._discard_appended(f"/{target}.raw")
            self._file_handles.move(source, target, self._editor.store_path(source))
            if replaced is not None:
                self._pending.delete(replaced)
            for path in (source, target):
                for separator in "./":
                    self._implied.discard(f"/{path}{separator}")
                self._hidden.show_all(f"/{path}.")
                self._mark_stale(path)

    def _rename_pending(self, file: PendingFile, new: str) -> None:
        check_creatable(new)
        old = file.path
        self._check_own(new, self._tree.lookup(new))
        file.replaces = new not in self._hidden and self._tree.lookup(new) is not None
        if (is_temporary(new) and not file.replaces) or not file.size:
            self._pending.rename(file, new)
            return
        file.path = new
        try:
            self._apply(file)
        except BaseException:
            file.path = old
            raise
        file.path = old
        self._pending.remove(file)
        file.path = new
        replaced = self._pending.get(new)
        if replaced is not None:
            self._pending.delete(replaced)
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
                # A copy of a string that is also valid JSON is not that JSON value.
                if self._attributes(path).get(name) != value:
                    self._editor.set_attribute(self._node_path(path), attribute, _value(text))
        elif file is not None and (key in CREATION_OPTIONS or key in SET_IF_EQUAL):
            file.options[key] = text
        elif path in self._implied or path in self._group_creators:
            pass  # A program copies a file with its extended attributes. They describe the copied node.
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
        self._check_own(path, entry)
        if isinstance(entry, VirtualFile) and entry.node is None:
            raise RefusedError(f"{path}: the file presents no node, and has no attributes", errno.EPERM)
        if isinstance(entry, VirtualFile) and entry.node is not None and entry.node is not self._tree.root:
            top = self._tree.root.path
            return entry.node.path[len(top) :].strip("/") if top else entry.node.path
        return path.strip("/") if isinstance(entry, Directory) else ""

    @errors_to_errno
    def chmod(self, path: str, mode: int) -> int:
        # Modes, owners and times are not stored. Programs that copy files set them, and must not fail.
        return self.access(path, os.F_OK)

    @errors_to_errno
    def chown(self, path: str, uid: int, gid: int) -> int:
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
