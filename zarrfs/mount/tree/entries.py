"""The entries of the directories of a mount: what a path leads to, and what a listing contains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.base import Store, Usage
from zarrfs.files.content.content import VirtualFileContent
from zarrfs.files.tiff.planes_view import PlaneDirectory

__all__ = ["Directory", "Entry", "FileSummary", "ListedEntry", "VirtualFile"]


@dataclass(frozen=True)
class Directory:
    """A group, the root, a directory that presents an array, or a directory of files of other programs.

    Attributes:
        node: the group; the root may be an array. None for files of other programs.
        modified: the time of the last change in seconds since the epoch, or None if it is unknown.
        has_attributes: whether ``node`` has its user attributes. Large attributes are not cached.
        files: the files of a directory that presents an array, else None.
        record_path: the path of that array relative to the root.
        access: the mode, the user and the group, if they are not those of the node.
        foreign_path: the path of a directory of files of other programs relative to the root, else None.
    """

    node: Group | Array | None
    modified: float | None = None
    has_attributes: bool = True
    files: PlaneDirectory | None = None
    record_path: str | None = None
    access: tuple[int, int, int] | None = None
    foreign_path: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether it contains files of other programs."""
        return self.foreign_path is not None


@dataclass(frozen=True)
class VirtualFile:
    """A file whose bytes are computed when they are read, or a file of another program.

    Attributes:
        content: the bytes of the file.
        stored_nbytes: the number of bytes that count as the size of the file on disk. The stored size of an array
            counts for one of its files, the .raw file if there is one; the others count what they contain in memory.
        modified: the time of the last change of its data in seconds since the epoch, or None if it is unknown.
        node: the array or group that the file presents, or None if there is none or it could not be opened.
        has_attributes: whether ``node`` has its user attributes. Large attributes are not cached.
        record_path: the path of the node relative to the root, or None if the node could not be opened.
        version: the stored size and the time of the last change if they change with every chunk, else None.
        access: the mode, the user and the group, if they are not those of the node.
        is_foreign: whether it is a file of another program.
    """

    content: VirtualFileContent
    stored_nbytes: int
    modified: float | None
    node: Array | Group | None
    has_attributes: bool = True
    record_path: str | None = None
    version: Usage | None = None
    access: tuple[int, int, int] | None = None
    is_foreign: bool = False


Entry = Directory | VirtualFile


class FileSummary(NamedTuple):
    """A file that presents an array which was not opened.

    Attributes:
        nbytes: its size in bytes, None for a directory.
        stored_nbytes: the number of bytes that count as the size of the file on disk.
        modified: the time of the last change of its data in seconds since the epoch, or None if it is unknown.
        store, path: where the array is.
        access: the mode, the user and the group of the metadata document of the array, if they are needed.
    """

    nbytes: int | None
    stored_nbytes: int
    modified: float | None
    store: Store
    path: str
    access: tuple[int, int, int] | None = None


class ListedEntry(NamedTuple):
    """An entry of a listing.

    Attributes:
        name: the file name.
        is_directory: whether it is a directory.
        find: returns the entry; None if it does not exist any more. Raises StoreError.
        summarize: returns the sizes of a file that were determined for the listing; None if they are too old to be
            used. None for an entry without such sizes.
    """

    name: str
    is_directory: bool
    find: Callable[[], Entry | None]
    summarize: Callable[[], FileSummary | None] | None = None
