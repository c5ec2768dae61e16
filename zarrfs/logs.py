"""The logger of the package. Applications configure it by the name ``zarrfs``.

Each record is sanitized before it reaches a handler: its message becomes one line of printable characters of limited
length, without credentials. The lines of a traceback are indented, so that no text in it can be mistaken for a record.
"""

from __future__ import annotations

import logging

from zarrfs.credentials import hide_credentials
from zarrfs.text import MAX_MESSAGE, safe_text

__all__ = ["SafeRecords", "logger"]

INDENT = "    "


class SafeRecords(logging.Filter):
    """Replaces the message of each record by text that is safe to display. Accepts every record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = safe_text(hide_credentials(record.getMessage()), MAX_MESSAGE)
        record.args = ()
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            lines = record.exc_text.splitlines()
            record.exc_text = "\n".join(
                INDENT + safe_text(hide_credentials(line), MAX_MESSAGE) for line in lines
            )
        return True


logger = logging.getLogger("zarrfs")
logger.addFilter(SafeRecords())
