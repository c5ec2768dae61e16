"""Undo and redo of the settings of one image, and of other states such as the regions that are drawn on it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import fields, replace

from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["History"]

MAX_STEPS = 200
"""Older steps are forgotten."""

MAX_PAUSE_SECONDS = 1.0
"""Changes of one setting with shorter pauses between them, such as the drag of a slider, are one step."""


class History:
    """The steps from the first to the current settings, and those that were undone.

    Changes of the position are one step until another setting changes: stepping through slices is not undone slice by
    slice. Limits that auto-contrast sets are not a step.

    Attributes:
        others: further state that is recorded with the settings, such as regions: any value that can be compared.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[DisplaySettings, Hashable]] = []
        self._redo: list[tuple[DisplaySettings, Hashable]] = []
        self.others: Hashable = ()
        self._current: DisplaySettings | None = None
        self._last_change: frozenset[str] = frozenset()
        self._last_time = 0.0

    @property
    def can_undo(self) -> bool:
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        return bool(self._redo)

    def clear(self, current: DisplaySettings | None, others: Hashable = ()) -> None:
        """Forget all steps: another image is displayed."""
        self._undo.clear()
        self._redo.clear()
        self._current, self._last_change, self.others = current, frozenset(), others

    def record(self, settings: DisplaySettings, time: float, others: Hashable = ()) -> None:
        """Add a change at a time in seconds. What is equal to the current state is ignored."""
        current, self._current = self._current, settings
        others_before, self.others = self.others, others
        if current is None or (current == settings and others_before == others):
            return
        if _with_limits_of(current, settings) == settings and others_before == others:
            return
        change = frozenset(_changed(current, settings))
        if others_before != others:
            change |= {"others"}
        is_continued = change == self._last_change and (
            change == {"position"} or (change != {"others"} and time - self._last_time < MAX_PAUSE_SECONDS)
        )
        self._last_change, self._last_time = change, time
        if not (is_continued and self._undo):
            self._undo.append((current, others_before))
            del self._undo[:-MAX_STEPS]
        self._redo.clear()

    def undo(self) -> DisplaySettings | None:
        """Return the settings before the last step and set ``others`` to its value then; None if there is no step."""
        return self._move(self._undo, self._redo)

    def redo(self) -> DisplaySettings | None:
        """Return the settings after the step that was undone last and set ``others``; None if there is no step."""
        return self._move(self._redo, self._undo)

    def _move(
        self, source: list[tuple[DisplaySettings, Hashable]], target: list[tuple[DisplaySettings, Hashable]]
    ) -> DisplaySettings | None:
        if not source or self._current is None:
            return None
        target.append((self._current, self.others))
        self._current, self.others = source.pop()
        self._last_change = frozenset()
        return self._current


def _changed(old: DisplaySettings, new: DisplaySettings) -> Iterator[str]:
    """Yield the names of the settings that differ, with the numbers of channels and label images."""
    for entry in fields(DisplaySettings):
        before, after = getattr(old, entry.name), getattr(new, entry.name)
        if before == after:
            continue
        if entry.name not in ("channels", "labels") or len(before) != len(after):
            yield entry.name
            continue
        for number, (a, b) in enumerate(zip(before, after, strict=True)):
            for part in fields(a):
                if getattr(a, part.name) != getattr(b, part.name):
                    yield f"{entry.name} {number} {part.name}"


def _with_limits_of(old: DisplaySettings, new: DisplaySettings) -> DisplaySettings:
    """Return ``old`` with the limits of ``new`` in channels without limits."""
    if len(old.channels) != len(new.channels):
        return old
    channels = tuple(
        replace(a, limits=b.limits) if a.limits is None else a
        for a, b in zip(old.channels, new.channels, strict=True)
    )
    return replace(old, channels=channels)
