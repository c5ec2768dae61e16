"""The display settings of an image after its metadata were edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from zarrfs_viewer.state.view_state import ChannelSettings, ViewIntent

__all__ = ["with_edited_channels"]


def with_edited_channels(
    intent: ViewIntent, before: Sequence[ChannelSettings], after: Sequence[ChannelSettings]
) -> ViewIntent:
    """Return the intent with those channel settings replaced that an edit of the metadata has changed.

    ``before`` and ``after`` are the initial settings of the old and the new metadata. A setting that is equal in both
    keeps the value that the user has chosen. If the number of channels has changed, ``after`` is used.
    """
    if not len(intent.channels) == len(before) == len(after):
        return replace(intent, channels=tuple(after))
    channels = []
    for settings, old, new in zip(intent.channels, before, after, strict=True):
        names = [entry.name for entry in fields(ChannelSettings)]
        edited = {name: getattr(new, name) for name in names if getattr(old, name) != getattr(new, name)}
        channels.append(replace(settings, **edited))
    return replace(intent, channels=tuple(channels))
