"""Credentials of servers: storage options by origin, in memory and in the keyring of the user.

An origin is the scheme and the host (or bucket) of URLs, such as ``s3://bucket``. The keyring is that of the package
``keyring``, where it is installed and has a back end.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from zarrfs.errors import UnsupportedError
from zarrfs.plugins import install_hint

__all__ = ["FIELDS", "SECRET_FIELDS", "find_options", "forget", "origin_of", "remember", "storage_options"]

SERVICE = "zarrfs-viewer"

WEB = (("user", "User"), ("password", "Password"), ("token", "Bearer token, instead of a password"))
LOGIN = (("username", "User"), ("password", "Password"))
S3 = (
    ("key", "Access key"),
    ("secret", "Secret key"),
    ("token", "Session token"),
    ("endpoint_url", "Endpoint URL"),
)
AZURE = (("account_name", "Account"), ("account_key", "Account key"), ("sas_token", "SAS token"))

FIELDS: dict[str, tuple[tuple[str, str], ...]] = {
    "http": WEB,
    "https": WEB,
    "s3": S3,
    "s3a": S3,
    "gs": (("token", "File with the key of a service account"),),
    "gcs": (("token", "File with the key of a service account"),),
    "abfs": AZURE,
    "abfss": AZURE,
    "az": AZURE,
    "sftp": LOGIN,
    "ssh": LOGIN,
    "ftp": LOGIN,
}
"""Scheme -> the names and titles of the fields that a user fills in."""

SECRET_FIELDS = ("password", "secret", "token", "account_key", "sas_token")

_lock = threading.Lock()
_known: dict[str, Mapping[str, str] | None] = {}
"""Origin -> values of the fields. None if the keyring has none."""


def origin_of(location: object) -> str | None:
    """Return the origin of a URL whose scheme has credentials, or None for any other location."""
    if not isinstance(location, str):
        return None
    try:
        parts = urlsplit(location)
        host = parts.hostname
        port = parts.port
    except ValueError:
        return None
    if parts.scheme.lower() not in FIELDS or not host:
        return None
    return f"{parts.scheme.lower()}://{host}" + (f":{port}" if port is not None else "")


def storage_options(origin: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the storage options of ``zarrfs.open`` for the values of the fields. Empty values are omitted."""
    given = {name: value for name, value in values.items() if value}
    scheme = origin.partition("://")[0]
    if scheme in ("http", "https"):
        if "token" in given:
            return {"headers": {"Authorization": f"Bearer {given['token']}"}}
        if "user" not in given and "password" not in given:
            return {}
        login = f"{given.get('user', '')}:{given.get('password', '')}".encode()
        return {"headers": {"Authorization": f"Basic {base64.b64encode(login).decode('ascii')}"}}
    return dict(given)


def remember(origin: str, values: Mapping[str, str], in_keyring: bool) -> None:
    """Use credentials for an origin until the process ends, and store them in the keyring on request.

    Blocks. Raises UnsupportedError if there is no keyring; the credentials are then used until the process ends.
    """
    given = {name: value for name, value in values.items() if value}
    with _lock:
        _known[origin] = given
    if in_keyring:
        try:
            _keyring().set_password(SERVICE, origin, json.dumps(given))
        except UnsupportedError:
            raise
        except Exception as error:  # the back ends raise errors of many kinds
            raise UnsupportedError(
                f"the keyring cannot store the credentials of {origin}: {error}"
            ) from error


def forget(origin: str) -> None:
    """Remove the credentials of an origin, also from the keyring. Blocks."""
    with _lock:
        _known[origin] = None
    try:
        _keyring().delete_password(SERVICE, origin)
    except Exception:  # there is no keyring, or no entry
        return


def find_options(location: object) -> dict[str, Any] | None:
    """Return the storage options of the credentials of a location, or None if there are none. Blocks."""
    origin = origin_of(location)
    if origin is None:
        return None
    with _lock:
        is_known, values = origin in _known, _known.get(origin)
    if not is_known:
        values = _stored(origin)
        with _lock:
            values = _known.setdefault(origin, values)
    return (storage_options(origin, values) or None) if values else None


def _stored(origin: str) -> dict[str, str] | None:
    """Return the values in the keyring, or None."""
    try:
        text = _keyring().get_password(SERVICE, origin)
        document = json.loads(text) if text else None
    except Exception:  # there is no keyring, it is locked, or its entry is damaged
        return None
    if not isinstance(document, dict):
        return None
    return {name: value for name, value in document.items() if isinstance(value, str)}


def _keyring() -> Any:
    try:
        return import_module("keyring")
    except ImportError as error:
        raise UnsupportedError(
            f"the credentials are used until the viewer ends; storing them needs the package keyring: "
            f"{install_hint('keyring')}"
        ) from error
