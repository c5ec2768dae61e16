"""The report of a copy: one line per node, and the members that are missing from the copy."""

from __future__ import annotations

from collections.abc import Mapping

from zarrfs.errors import IncompleteCopyError
from zarrfs.tools.copying.advice import option

__all__ = ["CopyReport", "incomplete_copy_error"]

MAX_NAMED_MEMBERS = 10
"""The maximum number of missing members that an error names."""


class CopyReport(list[str]):
    """One line for each node that was copied, or would be in a dry run.

    Attributes:
        skipped: the reason for each member of the source that is not in the copy, by path. Empty unless
            ``skip_broken`` is given.
    """

    def __init__(self) -> None:
        super().__init__()
        self.skipped: dict[str, str] = {}


def incomplete_copy_error(where: str, state: str, missing: Mapping[str, str]) -> IncompleteCopyError:
    """Return the error for a copy from ``where`` that lacks members. ``state`` describes what was written."""
    descriptions = [f"{path} ({reason})" for path, reason in list(missing.items())[:MAX_NAMED_MEMBERS]]
    if len(missing) > MAX_NAMED_MEMBERS:
        descriptions.append(f"and {len(missing) - MAX_NAMED_MEMBERS} more")
    count = f"{len(missing)} member{'' if len(missing) == 1 else 's'}"
    return IncompleteCopyError(
        f"{where}: {state}; {count} cannot be copied: {'; '.join(descriptions)}. "
        f"Repair the source, or skip them with {option('skip_broken')}"
    )
