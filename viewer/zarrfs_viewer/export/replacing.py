"""Writing files so that they appear only when complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from zarrfs.errors import StoreError

__all__ = ["replacing"]


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a temporary name beside ``file``, which replaces it at the end; on failure nothing is left."""
    temporary = file.with_name(f".{file.stem}.{os.getpid()}{file.suffix}")
    try:
        yield temporary
        temporary.replace(file)
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror or error}", error.errno) from error
    finally:
        temporary.unlink(missing_ok=True)
