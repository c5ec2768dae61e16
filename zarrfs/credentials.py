"""Removal of credentials from text that other users can see: messages, logs, the mount table and the process list.

Credentials are the user information and the query of a URL (a query can contain a signature), and values that were
registered as secret, such as passwords among storage options.
"""

from __future__ import annotations

import re
import string
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

__all__ = ["hide_credentials", "is_secret_name", "register_secrets", "register_url"]

SECRET_NAMES = re.compile(
    r"pass|secret|token|key|auth|credential|signature|sas|cookie|connection_string|headers", re.IGNORECASE
)
"""Names of storage options whose values are secret. Everything in a dictionary of such a name is secret."""

MIN_SECRET_LENGTH = 3
"""Replacing shorter values would damage unrelated text."""

REPLACEMENT = "***"

USER_INFORMATION = re.compile(r"(://)[^\s/'\"<>]*@")

WORD = re.compile(r"[^\s'\"<>]+")
"""Text that can be a URL, or URLs that are chained with ``::``."""

SCHEME_CHARACTERS = string.ascii_letters + string.digits + "+.-"

LOCAL_SCHEMES = frozenset({"file", "local", "sqlite", "dbm", "lmdb", "temporary"})
"""URLs with these schemes contain a path. A question mark is part of it."""

_secrets: set[str] = set()
_lock = threading.Lock()


def is_secret_name(name: str) -> bool:
    """Return whether the value of a storage option with this name is a credential."""
    return SECRET_NAMES.search(name) is not None


def register_secrets(options: Mapping[str, Any] | None, *, inside_secret: bool = False) -> None:
    """Register the secret values of storage options, so that ``hide_credentials`` removes them."""
    for name, value in (options or {}).items():
        _register_value(value, inside_secret or is_secret_name(str(name)))


def _register_value(value: Any, is_secret: bool) -> None:
    if isinstance(value, Mapping):
        register_secrets(value, inside_secret=is_secret)
    elif isinstance(value, list | tuple):
        for item in value:
            _register_value(item, is_secret)
    elif is_secret and isinstance(value, str | bytes):
        _register(value.decode("utf-8", "replace") if isinstance(value, bytes) else value)


def register_url(url: str) -> None:
    """Register the password of a URL, which a library may quote without the URL."""
    for part in url.split("::"):
        user_information, at, _ = part.partition("://")[2].partition("/")[0].rpartition("@")
        password = user_information.partition(":")[2]
        if at and password:
            _register(password)
            _register(unquote(password))


def _register(secret: str) -> None:
    if len(secret) >= MIN_SECRET_LENGTH:
        with _lock:
            _secrets.update({secret, quote(secret, safe="")})


def hide_credentials(text: str) -> str:
    """Return the text without user information and queries of URLs, and without the registered secrets.

    The time is proportional to the length of the text, which can be a document of megabytes.
    """
    if _secrets:
        with _lock:
            secrets = sorted(_secrets, key=len, reverse=True)
        for secret in secrets:
            text = text.replace(secret, REPLACEMENT)
    if "://" not in text:
        return text
    return WORD.sub(_without_query, USER_INFORMATION.sub(r"\1", text))


def _without_query(found: re.Match[str]) -> str:
    """Return a word without the query that follows a URL of a server."""
    word = found[0]
    start = 0
    has_server = False
    for mark in re.finditer(r"://|\?", word):
        if mark[0] == "://":
            # Characters before the previous mark are not examined again: no scheme contains a character of a mark.
            before = word[start : mark.start()]
            scheme = before[len(before.rstrip(SCHEME_CHARACTERS)) :].lstrip(string.digits + "+.-")
            has_server = has_server or (bool(scheme) and scheme.lower() not in LOCAL_SCHEMES)
        elif has_server:
            return word[: mark.start()]
        start = mark.end()
    return word
