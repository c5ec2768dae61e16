"""The one logger of the package, so that a program can direct or silence all of it by the name ``zarrfs``.

Each record is made safe before any handler sees it: one line of printable characters, of limited length. A traceback
keeps its lines, indented, so that no text in it can look like a record of its own.
"""

from __future__ import annotations

import logging

from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["SafeRecords", "logger"]

INDENT = "    "


class SafeRecords(logging.Filter):
    """Replaces the message of each record by its safe form. Lets every record pass."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = safe_text(record.getMessage(), MAX_MESSAGE)
        record.args = ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            lines = record.exc_text.splitlines()
            record.exc_text = "\n".join(INDENT + safe_text(line, MAX_MESSAGE) for line in lines)
        return True


logger = logging.getLogger("zarrfs")
logger.addFilter(SafeRecords())
