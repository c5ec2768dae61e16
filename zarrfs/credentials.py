"""Removal of credentials from text that other users can see: messages, logs, the mount table and the process list.

Credentials are the user information and the query of a URL (a query can contain a signature), and values that were
registered as secret, such as passwords among storage options.
"""

from __future__ import annotations

import re
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

QUERY = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)(://[^\s?'\"<>]*)\?[^\s'\"<>]*")

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
    """Return the text without user information and queries of URLs, and without the registered secrets."""
    if _secrets:
        with _lock:
            secrets = sorted(_secrets, key=len, reverse=True)
        for secret in secrets:
            text = text.replace(secret, REPLACEMENT)
    if "://" not in text:
        return text
    text = USER_INFORMATION.sub(r"\1", text)
    return QUERY.sub(
        lambda found: found[0] if found[1].lower() in LOCAL_SCHEMES else found[1] + found[2], text
    )
