"""The names of options in messages: Python keyword arguments, or command-line options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["command_line", "is_command_line", "option", "option_name"]

_is_command_line: ContextVar[bool] = ContextVar("zarrfs_on_command_line", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """While the context is active, ``option`` returns command-line options."""
    token = _is_command_line.set(True)
    try:
        yield
    finally:
        _is_command_line.reset(token)


def is_command_line() -> bool:
    """Return whether a ``command_line`` context is active."""
    return _is_command_line.get()


def option(name: str, value: object = True) -> str:
    """Return ``name=value`` in Python, ``--name value`` on a command line."""
    if not _is_command_line.get():
        return f"{name}={value!r}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"


def option_name(name: str) -> str:
    """Return ``name`` in Python, ``--name`` on a command line."""
    return f"--{name.replace('_', '-')}" if _is_command_line.get() else name
