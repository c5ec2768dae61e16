"""Text from a store as plain text in widgets.

Qt and pyqtgraph interpret some texts as rich text, which can load files. A label such as ``<img src="/dev/zero">`` must
therefore never reach them unescaped. Control characters and characters that change the text direction are replaced by
escape sequences. Long texts are elided, because the layout of a text of several megabytes blocks the window.

Every text that is not a literal must pass through a function of this module. ``tests/viewer/qt/test_plain_text.py``
checks this in the sources.
"""

from __future__ import annotations

import re

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QLabel, QSizePolicy, QWidget

__all__ = [
    "MAX_LINE",
    "MAX_NAME",
    "MAX_TEXT",
    "PlainLabel",
    "allow_narrow",
    "button_text",
    "document_text",
    "html_text",
    "plain",
    "plain_lines",
    "plain_name",
    "tooltip",
    "window_title",
]

MAX_NAME = 40
"""The maximum number of characters of a name in a control, such as a check box, whose width depends on its text."""

MAX_TITLE = 150
"""The maximum number of characters of a name in the title of a window."""

MAX_LINE = 300
"""The maximum number of characters of a line in a label, list or tree."""

MAX_TEXT = 2000
"""The maximum number of characters of a message or tooltip."""

MAX_DOCUMENT = 1 << 20
"""The maximum number of characters of a document in a text editor."""

MAX_DOCUMENT_LINE = 4000
"""The maximum number of characters of one line in a text editor, which lays out complete lines."""

ELLIPSIS = "…"

HTML_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
"""The escapes of ``html.escape``, whose module also contains a large table of entities."""

LINE_BREAKS_AND_TABS = "\t\n"

UNSAFE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u206f"  # text direction
    "\u180e\u200b\u2060-\u2065\ufeff\ufff9-\ufffc"  # invisible characters and place holders for objects
    "\u2028\u2029"  # line and paragraph separators
    "\ud800-\udfff"  # surrogates, which are not valid Unicode text
    "\U000e0000-\U000e0fff"  # tags
    "]"
)


def plain(text: object, limit: int = MAX_LINE) -> str:
    """Return one line of at most ``limit`` characters, with unsafe characters and line breaks escaped."""
    return _clean(str(text), limit, "")


def plain_name(text: object) -> str:
    """Return a name for an item or a control that does not use ``&`` for a mnemonic."""
    return plain(text, MAX_NAME)


def button_text(text: object, limit: int = MAX_NAME) -> str:
    """Return text for a button, check box, group box, action or tab, with ``&`` displayed as ``&``."""
    return plain(text, limit).replace("&", "&&")


def plain_lines(text: object, limit: int = MAX_TEXT) -> str:
    """Return text of at most ``limit`` characters that keeps its line breaks."""
    return _clean(str(text), limit, LINE_BREAKS_AND_TABS)


def tooltip(text: object, limit: int = MAX_TEXT) -> str:
    """Return HTML that displays the text unchanged: a tooltip has no plain-text format. Empty for an empty text."""
    return f'<p style="white-space:pre-wrap">{html_text(text, limit)}</p>' if str(text) else ""


def html_text(text: object, limit: int = MAX_TEXT) -> str:
    """Return escaped text, for pyqtgraph, whose labels and legends are HTML."""
    return plain_lines(text, limit).translate(HTML_ESCAPES)


def window_title(text: object) -> str:
    """Return the window title for a document. ``[*]`` is doubled, because Qt replaces a single one in titles."""
    return plain(f"{plain(text, MAX_TITLE)} - zarrfs viewer").replace("[*]", "[*][*]")


def document_text(text: str) -> str:
    """Return a document for a text editor, with limited size and line length."""
    cut = text[:MAX_DOCUMENT]
    lines = [_clean(line, MAX_DOCUMENT_LINE, "\t") for line in cut.split("\n")]
    if len(text) > len(cut):
        lines.append(f"{ELLIPSIS} ({len(text) - len(cut):,} more characters)")
    return "\n".join(lines)


def _clean(text: str, limit: int, kept: str) -> str:
    if len(text) <= limit and text.isprintable():
        return text
    # Cut first, so that the cost does not depend on the length of the text. Escaping makes the text longer again.
    escaped = UNSAFE.sub(lambda match: _escape(match[0], kept), text[: limit + 1])
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + ELLIPSIS


def _escape(character: str, kept: str) -> str:
    return character if character in kept else character.encode("unicode_escape").decode("ascii")


def allow_narrow(widget: QWidget, width: int = 0) -> None:
    """Let a widget become narrower than its text, so that a long text does not widen the window."""
    policy = widget.sizePolicy()
    policy.setHorizontalPolicy(QSizePolicy.Policy.Ignored)
    widget.setSizePolicy(policy)
    widget.setMinimumWidth(width)


class PlainLabel(QLabel):
    """A label that never interprets its text as rich text.

    With ``wrap`` the text is wrapped, and a long word does not widen the window.
    """

    def __init__(self, text: str = "", wrap: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(text)
        if wrap:
            self.setWordWrap(True)
            allow_narrow(self)
