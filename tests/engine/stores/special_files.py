"""Files that are not regular files. Reading them can block forever."""

from __future__ import annotations

import os
import socket
from pathlib import Path

__all__ = ["SPECIAL_KINDS", "make_special_file"]

SPECIAL_KINDS = ("pipe", "socket", "zero")


def make_special_file(path: Path, kind: str) -> Path:
    """Create a FIFO, a socket, or a link to /dev/zero at ``path``, and return the path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        current_directory = os.open(".", os.O_RDONLY)
        try:
            os.chdir(path.parent)  # the path of a socket has at most 107 bytes
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(path.name)
        finally:
            os.fchdir(current_directory)
            os.close(current_directory)
    else:
        path.symlink_to("/dev/zero")
    return path
