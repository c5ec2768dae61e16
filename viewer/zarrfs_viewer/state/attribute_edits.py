"""The attributes of a node while they are edited, with undo and redo."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["AttributeEdits"]

MAX_STEPS = 200
"""Older steps are forgotten."""


class AttributeEdits:
    """The edited attributes, the stored ones, and the steps between. Steps can be undone also after saving.

    The dictionaries are never changed in place.
    """

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self._stored: dict[str, Any] = dict(stored)
        self._current = self._stored
        self._undo: list[dict[str, Any]] = []
        self._redo: list[dict[str, Any]] = []

    @property
    def current(self) -> dict[str, Any]:
        """The edited attributes."""
        return self._current

    @property
    def stored(self) -> dict[str, Any]:
        """The attributes that the store contains, as far as is known."""
        return self._stored

    @property
    def is_changed(self) -> bool:
        """Whether there is something to save."""
        return self._current != self._stored

    @property
    def can_undo(self) -> bool:
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        return bool(self._redo)

    def change(self, attributes: Mapping[str, Any]) -> bool:
        """Add a step. Returns False, with no step, if nothing is different."""
        if attributes == self._current:
            return False
        self._undo.append(self._current)
        del self._undo[:-MAX_STEPS]
        self._redo.clear()
        self._current = dict(attributes)
        return True

    def undo(self) -> None:
        """Return to the attributes before the last step."""
        if self._undo:
            self._redo.append(self._current)
            self._current = self._undo.pop()

    def redo(self) -> None:
        """Repeat the step that was undone last."""
        if self._redo:
            self._undo.append(self._current)
            self._current = self._redo.pop()

    def set_stored(self, attributes: Mapping[str, Any]) -> None:
        """Record what was saved."""
        self._stored = dict(attributes)
