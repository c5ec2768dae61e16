"""The error for an operation that the mount refuses."""

from __future__ import annotations

import errno
import functools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from zarrfs.errors import (
    KeyNameError,
    NodeExistsError,
    NodeNotFoundError,
    ReadOnlyError,
    ZarrError,
    describe_error,
)
from zarrfs.logs import logger

__all__ = ["ErrorLog", "RefusedError", "error_number", "errors_to_errno", "os_error"]


class RefusedError(ZarrError):
    """A program requests a change that the mount does not support. ``number`` is the error number for the program."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number


F = TypeVar("F", bound=Callable[..., Any])

MAX_REPORTED_ERRORS = 10_000

PRESERVED_ERRNOS = (
    errno.EACCES,
    errno.ENOENT,
    errno.ENOMEM,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.ENAMETOOLONG,
    errno.ETIMEDOUT,
)
"""Error numbers of the store that are errnos unchanged. All others become EIO."""


class ErrorLog:
    """Logs each error once, even if the kernel repeats the request."""

    def __init__(self) -> None:
        self._reported_hashes: set[int] = set()
        self._lock = threading.Lock()

    def report(self, context: str, error: Exception) -> None:
        """Log an error. The traceback of an unexpected error is logged too."""
        text = describe_error(error)
        with self._lock:
            if hash(text) in self._reported_hashes:
                return
            if len(self._reported_hashes) >= MAX_REPORTED_ERRORS:
                self._reported_hashes.clear()
            self._reported_hashes.add(hash(text))
        expected = isinstance(error, ZarrError | OSError | MemoryError)
        if isinstance(error, RefusedError):
            logger.warning("%s", text)
            return
        logger.error("%s: %s", context, text, exc_info=None if expected else error)


def error_number(error: Exception) -> int:
    """Return the error number that the kernel receives for an exception."""
    if isinstance(error, NodeNotFoundError):
        return errno.ENOENT
    if isinstance(error, ReadOnlyError):
        return errno.EROFS
    if isinstance(error, RefusedError):
        return error.number
    if isinstance(error, NodeExistsError):
        return errno.EEXIST
    if isinstance(error, KeyNameError):
        return errno.EINVAL
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    errnos = {errno.EPERM: errno.EACCES} | {number: number for number in PRESERVED_ERRNOS}
    return errnos.get(error.errno or 0, errno.EIO) if isinstance(error, OSError) else errno.EIO


class OperationError(OSError):
    """The error number that the kernel receives. It is not converted again."""


def os_error(number: int) -> OSError:
    return OperationError(number, os.strerror(number))


def errors_to_errno(operation: F) -> F:
    """Convert the exceptions of an operation to error numbers. Each error is logged once."""

    @functools.wraps(operation)
    def translated(self: Any, *args: Any) -> Any:
        try:
            return operation(self, *args)
        except OperationError:
            raise
        except Exception as error:
            raise translated_error(error, self._error_log, operation, args) from error

    return translated  # type: ignore[return-value]


def entries_with_errno(operation: F) -> F:
    """Convert the exceptions of an operation that is a generator, as ``errors_to_errno`` does."""

    @functools.wraps(operation)
    def translated(self: Any, *args: Any) -> Any:
        try:
            yield from operation(self, *args)
        except OperationError:
            raise
        except Exception as error:
            raise translated_error(error, self._error_log, operation, args) from error

    return translated  # type: ignore[return-value]


def translated_error(
    error: Exception, error_log: ErrorLog, operation: Callable[..., Any], args: tuple[Any, ...]
) -> OSError:
    """Return the error that the kernel receives for an exception of an operation, which is logged once."""
    number = error_number(error)
    if number not in (errno.ENOENT, errno.EROFS):
        error_log.report(f"{operation.__name__} {args[0] if args else ''}", error)
    return os_error(number)
