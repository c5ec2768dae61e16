"""Conversion of text to a form that is safe to display. This module imports no other module of zarrfs.

Names, keys and values come from stores, which are untrusted. They can contain escape sequences that control a terminal,
line breaks that forge lines of a log, and megabytes of text. Every exception message (``errors.py``), log record
(``logs.py``) and line of output (``cli/console.py``) is passed through ``safe_text``.
"""

from __future__ import annotations

__all__ = ["MAX_MESSAGE", "MAX_VALUE", "safe_text", "short_repr"]

MAX_MESSAGE = 1800
"""The maximum length of the message of an exception or log record, in characters."""

MAX_VALUE = 120
"""The maximum length of a value that is quoted in a message, in characters."""

HEAD_FRACTION = 0.75
"""The fraction of a shortened text that is taken from its beginning. The rest is its end, which often has advice."""


def safe_text(text: str, limit: int | None = None) -> str:
    """Return the text as one line of printable characters, shortened to ``limit`` characters.

    Control characters, line breaks, invisible format characters and surrogates are replaced by Python escape sequences.
    Tabs are not replaced.
    """
    if limit is not None and len(text) > limit:
        # Shorten before escaping, because the text may be very long.
        text = _shortened(text, limit)
    if text.isprintable():
        return text
    escaped = "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in text
    )
    return escaped if limit is None or len(escaped) <= limit else _shortened(escaped, limit)


def _shortened(text: str, limit: int) -> str:
    ellipsis = f" ... ({len(text):,} characters) ... "
    remaining = max(0, limit - len(ellipsis))
    head = round(remaining * HEAD_FRACTION)
    return text[:head] + ellipsis + text[len(text) - (remaining - head) :]


def short_repr(value: object, limit: int = MAX_VALUE) -> str:
    """Return the shortened ``repr`` of a value as text that is safe to display, for values quoted in messages."""
    try:
        text = repr(value)
    except Exception:  # an object of another package, or an integer with more digits than Python converts
        return f"<{type(value).__name__}>"
    return safe_text(text, limit)
