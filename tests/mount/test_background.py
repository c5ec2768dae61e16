"""The process of a mount in the background ends in the function that started it."""

from __future__ import annotations

import os
from typing import Any

import pytest

from zarrfs.errors import MountError
from zarrfs.mount.options import MountOptions
from zarrfs.mount.serving import background


class Exited(BaseException):
    """The process would have ended with this status."""


@pytest.mark.parametrize(
    ("outcome", "expected"), [(0, 0), (3, 3), (MountError("no"), 1), (KeyboardInterrupt(), 1)], ids=repr
)
def test_the_child_process_never_returns_to_the_caller(
    outcome: int | BaseException, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the program of the caller would run twice."""

    def serve(location: Any, mountpoint: str, options: Any, write_end: int, is_created: bool) -> int:
        os.close(write_end)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def leave(status: int) -> None:
        raise Exited(status)

    monkeypatch.setattr(os, "fork", lambda: 0)
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(background, "_serve_in_child", serve)
    with pytest.raises(Exited) as caught:
        background.serve_in_background("image.zarr", "mountpoint", MountOptions())
    assert caught.value.args == (expected,)
