"""The result of a check: messages with their tier and their JSON pointer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from zarrfs.engine import json_checks

__all__ = ["Finding", "Message", "Report", "Tier", "pointer"]

Tier = Literal["schema", "strict", "semantic"]


class Finding(NamedTuple):
    """A finding of one tier: a JSON pointer relative to the OME-NGFF metadata, and a sentence."""

    pointer: str
    message: str


@dataclass(frozen=True)
class Message:
    """One message. ``pointer`` is a JSON pointer (RFC 6901) into the attributes of the node; ``""`` is the root."""

    tier: Tier
    pointer: str
    message: str


@dataclass(frozen=True)
class Report:
    """The result of a check. ``valid`` is whether the schema tier has no findings. ``version`` is the version of the
    specification that was used, None if there is no metadata to check.
    """

    valid: bool
    version: str | None
    messages: tuple[Message, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {
            "valid": self.valid,
            "version": self.version,
            "messages": [
                {"tier": message.tier, "pointer": message.pointer, "message": message.message}
                for message in self.messages
            ],
        }


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer of a path of keys and list indices."""
    return json_checks.pointer("", *parts)
