"""Removal of credentials from the command line of this process, which every user can read (``ps``)."""

from __future__ import annotations

import ctypes
from pathlib import Path

from zarrfs.credentials import hide_credentials, is_secret_name
from zarrfs.logs import logger

__all__ = ["hide_credentials_in_arguments"]

STORAGE_OPTION = b"--storage-option"

ARGUMENT_START_FIELD, ARGUMENT_END_FIELD = 47, 48
"""Positions in /proc/PID/stat, counted from 0; see proc(5)."""


def hide_credentials_in_arguments() -> None:
    """Overwrite credentials in the memory from which the kernel reads the command line of this process.

    User information and queries of URLs, and values of storage options that are secret or JSON, are replaced.
    ``sys.argv`` does not change. Before the call the arguments are visible. Does nothing on systems where the address
    of the arguments is not known.
    """
    try:
        # The name of the command, in parentheses, may contain spaces. It is the second field.
        rest = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
        start, end = int(rest[ARGUMENT_START_FIELD - 2]), int(rest[ARGUMENT_END_FIELD - 2])
    except (OSError, ValueError, IndexError):
        return
    if not 0 < start < end:
        return
    original = ctypes.string_at(start, end - start)
    if original != Path("/proc/self/cmdline").read_bytes()[: end - start]:
        logger.debug("the memory of the command line was not found")
        return
    hidden = without_credentials(original)
    if hidden != original:
        ctypes.memmove(start, hidden, end - start)


def without_credentials(arguments: bytes) -> bytes:
    """Return null-terminated arguments with credentials replaced, padded to the same length."""
    result: list[bytes] = []
    previous = b""
    for argument in arguments.split(b"\0"):
        text = hide_credentials(argument.decode("utf-8", "surrogateescape"))
        prefix = f"{STORAGE_OPTION.decode()}="
        pair = text if previous == STORAGE_OPTION else text.removeprefix(prefix)
        name, equals, value = pair.partition("=")
        if (
            equals
            and value
            and (previous == STORAGE_OPTION or text.startswith(prefix))
            and (is_secret_name(name) or value.startswith(("{", "[")))
        ):
            # JSON may contain a secret in another notation (escapes), so all of it is hidden.
            text = text[: len(text) - len(value)] + "*"
        result.append(text.encode("utf-8", "surrogateescape"))
        previous = argument
    joined = b"\0".join(result)
    # A replacement of a secret may be longer than the secret.
    return joined[: len(arguments)].ljust(len(arguments), b"\0")
