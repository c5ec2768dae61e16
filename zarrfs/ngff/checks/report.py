"""The result of a check: messages with their tier and their JSON pointer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from zarrfs.engine import json_checks

__all__ = ["Finding", "Message", "Report", "Tier", "pointer"]

Tier = Literal["schema", "strict", "semantic"]


class Finding(NamedTuple):
    """A finding of one tier: a JSON pointer relative to the OME-NGFF metadata, a sentence, and whether the metadata are
    not valid for this reason. All findings of the schema tier are such errors.
    """

    pointer: str
    message: str
    is_error: bool = False


@dataclass(frozen=True)
class Message:
    """One message. ``pointer`` is a JSON pointer (RFC 6901) into the attributes of the node; ``""`` is the root.
    Messages are warnings unless they are errors, which make the metadata invalid.
    """

    tier: Tier
    pointer: str
    message: str
    is_error: bool = False


@dataclass(frozen=True)
class Report:
    """The result of a check. ``valid`` is whether there are no errors. ``version`` is the version of the specification
    that was used, None if there is no metadata to check.
    """

    valid: bool
    version: str | None
    messages: tuple[Message, ...]

    @property
    def warnings(self) -> int:
        """The number of messages that are not errors."""
        return sum(not message.is_error for message in self.messages)

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {
            "valid": self.valid,
            "version": self.version,
            "warnings": self.warnings,
            "messages": [
                {
                    "tier": message.tier,
                    "severity": "error" if message.is_error else "warning",
                    "pointer": message.pointer,
                    "message": message.message,
                }
                for message in self.messages
            ],
        }


def pointer(*parts: str | int) -> str:
    """Return the JSON pointer of a path of keys and list indices."""
    return json_checks.pointer("", *parts)
