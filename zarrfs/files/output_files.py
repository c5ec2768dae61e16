"""Files that appear under their names when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from zarrfs.engine.stores.temporary_files import create_temporary
from zarrfs.errors import LocationError, StoreError, ZarrError

__all__ = ["check_new", "new_file"]


def check_new(path: str, replace: bool) -> None:
    """Raise LocationError if a file exists and is not to be replaced, is a directory, or has no directory."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise LocationError(f"{path} cannot be written: there is no directory {folder}")
    if os.path.isdir(path):
        raise LocationError(f"{path} is a directory; give the name of a file")
    if not replace and os.path.lexists(path):
        raise LocationError(f"{path} exists; choose another name, or use if_exists='replace'")


@contextmanager
def new_file(path: str, replace: bool) -> Iterator[BinaryIO]:
    """Yield a temporary file in the directory of ``path``, which becomes ``path`` when the block succeeds.

    Raises LocationError as ``check_new``, or if the directory does not exist, and StoreError if the file cannot be
    written. If the block fails, no file is left behind, and an existing file is unchanged.
    """
    check_new(path, replace)
    try:
        descriptor, temporary = create_temporary(os.path.dirname(os.path.abspath(path)), os.O_RDWR)
    except OSError as error:
        raise LocationError(f"{path} cannot be written: {error.strerror}") from error
    try:
        # The file has a name, which tifffile needs; os.fdopen would name it by its descriptor.
        with open(temporary, "w+b", opener=lambda *_: descriptor) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        check_new(path, replace)
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        if isinstance(error, OSError) and not isinstance(error, ZarrError):
            raise StoreError(f"{path} cannot be written: {error.strerror or error}", error.errno) from error
        raise
