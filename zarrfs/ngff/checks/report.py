"""What a check finds: messages, each with its tier and the place in the document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

__all__ = ["Finding", "Message", "Report", "Tier", "pointer"]

Tier = Literal["schema", "strict", "semantic"]


class Finding(NamedTuple):
    """What one tier finds: a JSON pointer within the part of the attributes that OME-NGFF rules, and a
    sentence.
    """

    pointer: str
    message: str


@dataclass(frozen=True)
class Message:
    """One message. ``pointer`` is a JSON pointer (RFC 6901) into the node's attributes; ``""`` is all of
    them.
    """

    tier: Tier
    pointer: str
    message: str


@dataclass(frozen=True)
class Report:
    """The result. ``valid`` is the verdict of the schema tier; ``version`` the version that was checked
    against, None where there is nothing to check.
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
    """Return the JSON pointer of a path of keys and positions."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
