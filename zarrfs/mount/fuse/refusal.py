"""The error for an operation that the mount refuses."""

from __future__ import annotations

from zarrfs.errors import ZarrError

__all__ = ["RefusedError"]


class RefusedError(ZarrError):
    """A program requests a change that the mount does not support. ``number`` is the error number for the program."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message)
        self.number = number
