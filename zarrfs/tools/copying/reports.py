"""What a copy says of itself: a line for each node, and what is missing from the copy."""

from __future__ import annotations

from collections.abc import Mapping

from zarrfs.errors import IncompleteCopyError
from zarrfs.tools.copying.advice import option

__all__ = ["CopyReport", "incomplete"]

MAX_NAMED = 10
"""How many missing members an error names."""


class CopyReport(list[str]):
    """A line for each node that was copied (or would be).

    Attributes:
        missing: the members of the source that are not in the copy, by path, with the reason. Only what
            ``skip_broken`` allows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.missing: dict[str, str] = {}


def incomplete(where: str, state: str, missing: Mapping[str, str]) -> IncompleteCopyError:
    """Make the error for a copy from ``where`` without some members; ``state`` says what was written."""
    named = [f"{path} ({reason})" for path, reason in list(missing.items())[:MAX_NAMED]]
    if len(missing) > MAX_NAMED:
        named.append(f"and {len(missing) - MAX_NAMED} more")
    count = f"{len(missing)} member{'' if len(missing) == 1 else 's'}"
    return IncompleteCopyError(
        f"{where}: {state}; {count} cannot be copied: {'; '.join(named)}. "
        f"Repair the source, or leave them out with {option('skip_broken')}"
    )
