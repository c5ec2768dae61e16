"""How messages name an option: as an argument of a function, or as an option of the command that runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["command_line", "on_command_line", "option"]

_on_command_line: ContextVar[bool] = ContextVar("zarrfs_on_command_line", default=False)


@contextmanager
def command_line() -> Iterator[None]:
    """Within, messages name options as they are typed in a shell."""
    token = _on_command_line.set(True)
    try:
        yield
    finally:
        _on_command_line.reset(token)


def on_command_line() -> bool:
    """Whether a command runs."""
    return _on_command_line.get()


def option(name: str, value: object = True) -> str:
    """Return ``name=value`` in Python, ``--name value`` on a command line."""
    if not _on_command_line.get():
        return f"{name}={value!r}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"
