"""A directory that is there as long as it is needed."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any

from zarrfs.engine.stores.local import LocalStore
from zarrfs.errors import LocationError

__all__ = ["TemporaryStore"]


class TemporaryStore(LocalStore):
    """A new directory, deleted with all it holds when the store is closed, forgotten, or the interpreter ends.

    ``directory`` is where it is made; by default the system's place for temporary files (``TMPDIR``). A copy by pickle
    sees the same directory and leaves it alone.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        try:
            made = tempfile.mkdtemp(prefix="zarrfs-", suffix=".zarr", dir=directory)
        except OSError as error:  # also FileNotFoundError where no usable place is found at all
            where = (
                os.fspath(directory) if directory is not None else "the system's place for temporary files"
            )
            raise LocationError(
                f"no temporary directory can be made in {where}: {error.strerror or error}; name another one "
                "(temporary:///path, or TMPDIR)"
            ) from error
        super().__init__(made)
        self._delete = weakref.finalize(self, _delete, self.root, os.getpid())

    def close(self) -> None:
        super().close()
        self._delete()

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStore, (self.root,)


def _delete(path: str, owner: int) -> None:
    # A process that was forked off ends too, and is not to take the directory with it.
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
