"""The settings of an image whose metadata were edited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from zarrfs_viewer.state.view_state import ChannelSettings, ViewIntent

__all__ = ["with_edited_channels"]


def with_edited_channels(
    intent: ViewIntent, before: Sequence[ChannelSettings], after: Sequence[ChannelSettings]
) -> ViewIntent:
    """Return the intent with the initial channel settings that the edit has changed.

    ``before`` and ``after`` are the settings that follow from the metadata. What is equal in both keeps the user's
    setting. An image with another number of channels gets the new settings.
    """
    if not len(intent.channels) == len(before) == len(after):
        return replace(intent, channels=tuple(after))
    channels = []
    for settings, old, new in zip(intent.channels, before, after, strict=True):
        names = [entry.name for entry in fields(ChannelSettings)]
        edited = {name: getattr(new, name) for name in names if getattr(old, name) != getattr(new, name)}
        channels.append(replace(settings, **edited))
    return replace(intent, channels=tuple(channels))
