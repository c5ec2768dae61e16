"""Text that is safe to display. This module imports nothing of ours.

Names, keys and values come from stores, which are untrusted: they can hold escape sequences that change a terminal,
line breaks that forge lines of a log, and megabytes of text. Every exception message (``errors.py``), log record
(``logs.py``) and line of output (``cli/console.py``) passes through ``safe_text``.
"""

from __future__ import annotations

__all__ = ["MAX_MESSAGE", "MAX_VALUE", "safe_text", "short_repr"]

MAX_MESSAGE = 1800
"""The longest message of an exception or log record, in characters."""

MAX_VALUE = 120
"""The longest value that is quoted in a message, in characters."""

HEAD_SHARE = 0.75
"""How much of a shortened text is its beginning. The rest is its end, which often has the advice."""


def safe_text(text: str, limit: int | None = None) -> str:
    """Return the text in one line of printable characters, shortened to ``limit`` characters.

    Control characters, line breaks, invisible format characters and surrogates become escape sequences as in Python.
    Tabs are kept.
    """
    if limit is not None and len(text) > limit:
        # Escape only what is kept: the text may be very long.
        text = _shortened(text, limit)
    if text.isprintable():
        return text
    escaped = "".join(
        c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode("ascii") for c in text
    )
    return escaped if limit is None or len(escaped) <= limit else _shortened(escaped, limit)


def _shortened(text: str, limit: int) -> str:
    mark = f" ... ({len(text):,} characters) ... "
    room = max(0, limit - len(mark))
    head = round(room * HEAD_SHARE)
    return text[:head] + mark + text[len(text) - (room - head) :]


def short_repr(value: object, limit: int = MAX_VALUE) -> str:
    """Return the ``repr`` of a value, safe to display and shortened; for values that are quoted in messages."""
    try:
        text = repr(value)
    except Exception:  # an object of another package, or an integer of more digits than Python converts
        return f"<{type(value).__name__}>"
    return safe_text(text, limit)
