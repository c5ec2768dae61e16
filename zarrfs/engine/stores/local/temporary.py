"""A temporary directory as a store."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from typing import Any

from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.errors import LocationError

__all__ = ["TemporaryStore"]


class TemporaryStore(LocalStore):
    """A new directory, which is deleted when the store is closed or garbage collected, or the interpreter exits.

    It is created in ``directory``, by default in the directory for temporary files (``TMPDIR``). A pickled copy of the
    store uses the same directory and does not delete it. Raises LocationError if no directory can be created.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        try:
            path = tempfile.mkdtemp(prefix="zarrfs-", suffix=".zarr", dir=directory)
        except OSError as error:  # FileNotFoundError if no usable directory exists
            parent = os.fspath(directory) if directory is not None else "the directory for temporary files"
            raise LocationError(
                f"no temporary directory can be created in {parent}: {error.strerror or error}; choose another one "
                "(temporary:///path, or TMPDIR)"
            ) from error
        super().__init__(path)
        self._finalizer = weakref.finalize(self, _remove_directory, self.root, os.getpid())

    def close(self) -> None:
        super().close()
        self._finalizer()

    def __reduce__(self) -> tuple[Any, ...]:
        return LocalStore, (self.root,)


def _remove_directory(path: str, owner_process_id: int) -> None:
    # Finalizers run in forked processes too, which must not delete the directory.
    if os.getpid() == owner_process_id:
        shutil.rmtree(path, ignore_errors=True)
