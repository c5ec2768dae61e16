"""Text in XML documents. ``xml.sax.saxutils`` of the standard library imports an HTTP client and TLS."""

from __future__ import annotations

__all__ = ["escape", "quoteattr"]


def escape(text: str) -> str:
    """Return text for the content of an element."""
    return text.replace("&", "&amp;").replace(">", "&gt;").replace("<", "&lt;")


def quoteattr(text: str) -> str:
    """Return text as the value of an attribute, in quotation marks."""
    value = escape(text).replace("\n", "&#10;").replace("\r", "&#13;").replace("\t", "&#9;")
    if '"' not in value:
        return f'"{value}"'
    return f"'{value}'" if "'" not in value else '"{}"'.format(value.replace('"', "&quot;"))
