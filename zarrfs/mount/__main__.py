"""The process that ``zarrfs.mount.mount`` starts. It reads the request from standard input.

Its arguments are not used; they show sources and mount point in the output of ``ps``.
"""

from __future__ import annotations

import logging
import sys

from zarrfs.errors import describe_error
from zarrfs.logs import logger
from zarrfs.mount.process.background import mount_requested


def main() -> int:
    """Mount. Return the exit code."""
    logger.handlers[:] = [logging.StreamHandler()]
    logger.setLevel(logging.WARNING)
    try:
        mount_requested(sys.stdin.read())
    except Exception as error:
        sys.stderr.write(f"zarrfs: {describe_error(error)}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
