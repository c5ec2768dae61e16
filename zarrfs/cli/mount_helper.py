"""``mount.zarrfs``: the helper of mount(8), for ``mount -t fuse.zarrfs`` and entries of fstab(5).

mount(8) calls it as ``mount.zarrfs SOURCE DIRECTORY [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]``. mount.fuse(8)
calls ``zarrfs SOURCE DIRECTORY -o OPTIONS``.
"""

from __future__ import annotations

import sys

from zarrfs.cli.main import run
from zarrfs.cli.mount_options import mount_arguments

__all__ = ["main"]

USAGE = "usage: mount.zarrfs SOURCE DIRECTORY [-sfnv] [-N NAMESPACE] [-o OPTION[=VALUE],...] [-t TYPE]"

USAGE_STATUS, FAILURE_STATUS = 1, 32
"""Exit codes; see mount(8)."""


def main() -> None:
    """Run the helper with the arguments of the process."""
    try:
        arguments = mount_arguments(sys.argv[1:])
    except ValueError as error:
        sys.stderr.write(f"mount.zarrfs: {error}\n{USAGE}\n")
        sys.exit(USAGE_STATUS)
    if arguments is None:
        return
    try:
        run(arguments)
    except SystemExit as exit_status:
        sys.exit(FAILURE_STATUS if exit_status.code else 0)
