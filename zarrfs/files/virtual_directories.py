"""Directories whose files present parts of an array."""

from __future__ import annotations

from typing import Protocol

from zarrfs.files.content.content import VirtualFileContent

__all__ = ["VirtualDirectory"]


class VirtualDirectory(Protocol):
    """The files of a directory. The number of files may be large: each one is created when it is looked up."""

    def names(self) -> list[str]:
        """Return the names of all files, sorted."""

    def find(self, name: str) -> VirtualFileContent | None:
        """Return the content of the file ``name``, or None if there is no such file."""
