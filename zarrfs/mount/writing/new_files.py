"""Converting complete pending files to nodes and attributes, as determined by their names."""

from __future__ import annotations

import errno
import re

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.mount.fuse.error_numbers import RefusedError
from zarrfs.mount.tree.presentation import GROUP_DOCUMENT
from zarrfs.mount.writing.documents import (
    copied_attributes,
    edited_attributes,
    has_other_layout,
    is_copied_document,
    new_array_options,
    parse_document,
)
from zarrfs.mount.writing.hierarchy_editor import HierarchyEditor
from zarrfs.mount.writing.image_file import IMAGE_SUFFIXES, ImageFileError, opened_image
from zarrfs.mount.writing.npy_file import IncompleteNpyError, NpyError, read_npy
from zarrfs.mount.writing.pending import PendingFile

__all__ = [
    "CREATED_SUFFIXES",
    "IncompleteFileError",
    "check_creatable",
    "created_suffix",
    "is_temporary",
    "store_file",
]

CREATED_SUFFIXES = (".npy", ".raw", ".json", *IMAGE_SUFFIXES)
"""The suffixes of files that can create or replace an array."""

UNPRESENTED_SUFFIXES = (".nii.gz", ".tiff", ".mhd", ".nhdr", ".h5", ".png", ".jpg", ".npz")

TEMPORARY_NAME = re.compile(
    r"\..*|.*~|#.*#|.*\.(tmp|temp|part|partial|swp|swo|swx|bak|new|lock|[0-9]+)|[0-9]+|sed\w{6}|tmp\w{8}",
    re.DOTALL,
)
"""The names of temporary files of editors and copy programs."""


class IncompleteFileError(RefusedError):
    """A new file has fewer bytes than its header requires, or its array does not exist yet. It is kept until a program
    has written the rest.
    """


def is_temporary(path: str) -> bool:
    """Return whether programs use such a name for temporary files. ``.group.json`` is not one."""
    name = path.rpartition("/")[2]
    return name != GROUP_DOCUMENT and TEMPORARY_NAME.fullmatch(name) is not None


def created_suffix(path: str) -> str:
    """Return the suffix by which a file becomes an array, or an empty string."""
    return next((suffix for suffix in CREATED_SUFFIXES if path.endswith(suffix)), "")


def check_creatable(path: str) -> None:
    """Raise RefusedError with EOPNOTSUPP if a file of this name can neither become an array nor be temporary."""
    name = path.rpartition("/")[2]
    if name == GROUP_DOCUMENT or is_temporary(path):
        return
    if created_suffix(name) not in ("", name):
        return
    if name.endswith(UNPRESENTED_SUFFIXES):
        raise RefusedError(
            f"{path}: no file of a mount has this suffix, so that the file would not exist afterwards; write it as "
            ".nii or .tif, or use `zarrfs import`",
            errno.EOPNOTSUPP,
        )
    raise RefusedError(
        f"{path}: a new file must be an array ({', '.join(CREATED_SUFFIXES)}) or have the name of a temporary file "
        "(.NAME, NAME~, NAME.tmp)",
        errno.EOPNOTSUPP,
    )


def store_file(file: PendingFile, editor: HierarchyEditor, is_new: bool = False) -> bool:
    """Apply a complete pending file to the hierarchy. Return False if its name is that of a temporary file.

    ``is_new`` states that the file belongs to a node that is being copied, whose other files created the node. A
    document describes it then.
    Raises RefusedError with EINVAL if the bytes are not complete or not valid, and the errors of the store. The
    hierarchy is unchanged then.
    """
    path = file.path.strip("/")
    parent, _, name = path.rpartition("/")
    if is_temporary(file.path) and not file.replaces:
        return False
    with file.lock:
        if isinstance(editor.tree.root, Array):
            # The mount presents one array. Only its attributes can be replaced as a whole.
            if not name.endswith(".json"):
                _ = editor.root
            _edit(file, editor, "")
            file.is_changed = False
            return True
        if name == GROUP_DOCUMENT:
            _edit(file, editor, parent, is_new)
        elif name.endswith(".json"):
            _store_json(file, editor, path.removesuffix(".json"), is_new)
        elif name.endswith(".npy"):
            _store_npy(file, editor, path.removesuffix(".npy"))
        elif name.endswith(".raw"):
            _store_raw(file, editor, path.removesuffix(".raw"))
        elif name.endswith(IMAGE_SUFFIXES):
            _store_image(file, editor, path)
        else:
            return False
        file.is_changed = False
    return True


def _edit(file: PendingFile, editor: HierarchyEditor, path: str, is_new: bool = False) -> None:
    node = editor.node(path)
    if node is None:
        raise RefusedError(f"{file.path}: there is no such group", errno.ENOENT)
    document = parse_document(file.path, file.read(0, file.size))
    if is_copied_document(document, node, is_new):
        editor.set_attributes(path, copied_attributes(file.path, document, node))
    else:
        editor.set_attributes(path, edited_attributes(file.path, document, node))


def _store_json(file: PendingFile, editor: HierarchyEditor, path: str, is_new: bool) -> None:
    node = editor.node(path)
    document = parse_document(file.path, file.read(0, file.size))
    if not isinstance(node, Array):
        options = new_array_options(file.path, document)
        editor.create_array(path, None, file.options, file.attributes, options)
    elif not is_copied_document(document, node, is_new):
        editor.set_attributes(path, edited_attributes(file.path, document, node))
    else:
        attributes = copied_attributes(file.path, document, node)
        if has_other_layout(document, node):
            options = new_array_options(file.path, document)
            editor.create_array(path, node, file.options, None, options, keeps_options=False)
        editor.set_attributes(path, attributes)


def _store_npy(file: PendingFile, editor: HierarchyEditor, path: str) -> None:
    try:
        data = read_npy(file)
    except IncompleteNpyError as error:
        raise IncompleteFileError(f"{file.path}: the file is incomplete: {error}", errno.EINVAL) from error
    except NpyError as error:
        raise RefusedError(f"{file.path}: the file cannot become an array: {error}", errno.EINVAL) from error
    editor.create_array(path, data, file.options, file.attributes)


def _store_image(file: PendingFile, editor: HierarchyEditor, path: str) -> None:
    suffix = next(suffix for suffix in IMAGE_SUFFIXES if path.endswith(suffix))
    try:
        with opened_image(file, suffix) as image:
            editor.create_array(
                path.removesuffix(suffix),
                image.values,
                file.options,
                {**image.attributes, **file.attributes},
                {} if image.dimension_names is None else {"dimension_names": image.dimension_names},
            )
    except ImageFileError as error:
        raise RefusedError(f"{file.path}: the file cannot become an array: {error}", errno.EINVAL) from error


def _store_raw(file: PendingFile, editor: HierarchyEditor, path: str) -> None:
    """Replace the elements of an array, whose data type and shape (except for the number of rows) are retained."""
    node = editor.node(path)
    if not isinstance(node, Array) or node.dtype.hasobject:
        raise RefusedError(
            f"{file.path}: a .raw file has no shape and data type. Create the array first: write a JSON file with the "
            f"members 'shape' and 'dtype' to /{path}.json",
            errno.EINVAL,
        )
    row = int(np.prod(node.shape[1:], dtype=object)) * node.itemsize
    if not row or file.size % row or (not node.ndim and file.size != row):
        raise RefusedError(
            f"{file.path}: {file.size} bytes are not a whole number of rows of {row} bytes of the array of shape "
            f"{node.shape} and type {node.dtype}",
            errno.EINVAL,
        )
    shape = (file.size // row, *node.shape[1:]) if node.ndim else ()
    data = file.mapped(node.dtype, 0, shape, "C")
    editor.create_array(path, data, file.options, file.attributes)
