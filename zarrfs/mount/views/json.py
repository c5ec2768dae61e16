""".json: what the array is, and why it may lack other views."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from zarrfs.engine.array import Array
from zarrfs.engine.group import Group
from zarrfs.engine.summary import array_summary, group_summary
from zarrfs.mount.byte_layout import ByteLayout, BytesPiece
from zarrfs.mount.views.base import View

__all__ = ["JsonView", "group_json"]


class JsonView(View):
    """The metadata as one JSON object."""

    suffix: ClassVar[str] = ".json"
    listed: ClassVar[bool] = True

    def refusal(self, array: Array) -> str | None:
        return None

    def layout(self, array: Array, name: str) -> ByteLayout:
        from zarrfs.mount.views import all_views

        refusals = {view.suffix: view.refusal(array) for view in all_views()}
        views = {
            "views": [name + suffix for suffix, refusal in refusals.items() if refusal is None],
            "not_available": {
                name + suffix: f"the array cannot be shown as {suffix}: {refusal}"
                for suffix, refusal in refusals.items()
                if refusal is not None
            },
        }
        return ByteLayout([BytesPiece(_dump({**array_summary(array), **views}))])


def group_json(group: Group) -> bytes:
    """Return the contents of a directory's ``.group.json``."""
    return _dump(group_summary(group))


def _dump(value: dict[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, allow_nan=False) + "\n").encode("ascii")
