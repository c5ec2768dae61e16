"""Atomic replacement of files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zarrfs.errors import StoreError

__all__ = ["replacing"]


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary path in the same directory, whose file replaces ``file`` at the end.

    On failure the temporary file is deleted. Raises StoreError for every OSError.
    """
    temporary = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix}")
    try:
        yield temporary
        temporary.replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror or error}", error.errno) from error
    finally:
        temporary.unlink(missing_ok=True)
