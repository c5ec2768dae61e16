"""Files that are no regular files: reading them never ends, or waits for somebody else."""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["SPECIAL_KINDS", "special_file"]

SPECIAL_KINDS = ("pipe", "socket", "zero")


def special_file(path: Path, kind: str) -> Path:
    """Put a FIFO, a socket, or a link to /dev/zero at a path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        before = os.open(".", os.O_RDONLY)
        try:
            os.chdir(path.parent)  # the name of a socket has at most 107 bytes
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(path.name)
        finally:
            os.fchdir(before)
            os.close(before)
    else:
        path.symlink_to("/dev/zero")
    return path
