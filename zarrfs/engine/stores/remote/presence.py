"""Classification of file system errors: a missing key or a failure. Pure functions; no requests are sent.

A missing chunk is read as the fill value. If a failure were treated as a missing key, wrong data would be returned.
File systems of fsspec raise FileNotFoundError in both cases: ftp for every negative reply, http for every failed
lookup, and reference for a target that cannot be reached. The cause of the error (``__cause__``) distinguishes them.
"""

from __future__ import annotations

import asyncio
import errno
import ftplib
from collections.abc import Mapping
from enum import Enum
from typing import Any

__all__ = [
    "Presence",
    "classify_error",
    "error_hint",
    "failure_reason",
    "http_status",
    "http_status_of",
    "is_overload",
    "is_refusal",
    "is_temporary",
    "names_missing_container",
    "reply_means_missing",
]

MISSING_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}

MISSING_TYPES = (FileNotFoundError, NotADirectoryError, IsADirectoryError, KeyError)
"""Errors that file systems raise for a missing name. Dictionaries and archives raise KeyError."""

MISSING_TYPE_SUFFIXES = ("NotFound", "NotFoundError")
"""Suffixes of the names of error types that mean a missing key in the libraries of Azure, Google, WebDAV and others."""

MISSING_CONTAINER_CODES = ("NoSuchBucket", "ContainerNotFound")
"""Codes in replies of S3 and Azure. Google replies to requests for values with the status 404 only."""

FAILURE_TYPES = (ConnectionError, TimeoutError, asyncio.TimeoutError, PermissionError, EOFError)

MISSING_PHRASES = (
    "no such",
    "not found",
    "cannot find",
    "can't find",
    "does not exist",
    "doesn't exist",
    "not exist",
)
"""Phrases in FTP reply 550 that mean a missing file. The code also means "not allowed" (RFC 959, section 4.2.1)."""


class Presence(Enum):
    """What an error means for a key."""

    MISSING = "missing"
    FAILURE = "failure"
    UNCERTAIN = "uncertain"
    """The error states that the key is missing, but its cause may be a failure. A second lookup decides."""


def classify_error(error: BaseException) -> Presence:
    """Return what an error means. A key is missing only if the error and all of its causes mean that."""
    if not _claims_missing(error):
        return Presence.FAILURE
    presence, link = Presence.MISSING, error
    while True:
        status = http_status_of(link)
        if status is not None:
            return Presence.MISSING if status == 404 else Presence.FAILURE
        if isinstance(link, ftplib.Error):
            if reply_means_missing(str(link)):
                return Presence.MISSING
            return Presence.UNCERTAIN if str(link).startswith("550") else Presence.FAILURE
        if not _claims_missing(link) and not type(link).__name__.endswith(MISSING_TYPE_SUFFIXES):
            if isinstance(link, FAILURE_TYPES) or (isinstance(link, OSError) and link.errno is not None):
                return Presence.FAILURE
            presence = Presence.UNCERTAIN
        if link.__cause__ is None:
            return presence
        link = link.__cause__


def names_missing_container(error: BaseException) -> bool:
    """Return whether an error, or a cause of it, states that the bucket does not exist, and not only the key."""
    link: BaseException | None = error
    while link is not None:
        code = getattr(link, "error_code", None)  # azure
        response = getattr(link, "response", None)
        if isinstance(response, Mapping) and isinstance(response.get("Error"), Mapping):  # botocore
            code = response["Error"].get("Code")
        if code in MISSING_CONTAINER_CODES:
            return True
        link = link.__cause__
    return False


def _claims_missing(error: BaseException) -> bool:
    return (
        isinstance(error, MISSING_TYPES)
        or getattr(error, "errno", None) in MISSING_ERRNOS
        or http_status_of(error) == 404
        or (
            isinstance(error, ftplib.Error)
            and (str(error).startswith("550") or reply_means_missing(str(error)))
        )
    )


def http_status_of(error: BaseException) -> int | None:
    """Return the HTTP status of an error of the libraries of http, s3, gs and abfs, or None if it has none."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        metadata = response.get("ResponseMetadata")
        value: Any = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    else:
        value = next(
            (
                candidate
                for owner, name in (
                    (error, "status"),  # aiohttp
                    (error, "status_code"),  # azure
                    (response, "status_code"),  # requests, httpx
                    (error, "code"),  # gcsfs
                )
                if (candidate := getattr(owner, name, None)) is not None
            ),
            None,
        )
    try:
        status = int(value)
    except (TypeError, ValueError):
        return None
    return status if 100 <= status < 600 else None


def reply_means_missing(reply: str) -> bool:
    """Return whether the text of an FTP reply means a missing file. Reply 421 (connection closed) never does."""
    return not reply.startswith("421") and any(phrase in reply.lower() for phrase in MISSING_PHRASES)


def failure_reason(error: BaseException) -> str:
    """Return why an operation has failed, as a clause."""
    link: BaseException | None = error
    while link is not None:
        # Names of classes of aiohttp, which is not imported for other protocols.
        name = type(link).__name__
        if name in ("NonHttpUrlRedirectClientError", "InvalidUrlRedirectClientError"):
            return (
                f"the server redirects to {link}; only redirects to http:// and https:// are followed; if you trust "
                "that location, open it by its own name"
            )
        if name == "TooManyRedirects":
            return "the server redirects too often, probably in a circle; check the URL"
        link = link.__cause__
    if isinstance(error, asyncio.TimeoutError | TimeoutError):
        return "the server did not respond in time"
    reason = str(error) or type(error).__name__
    if error.__cause__ is None:
        return reason
    return f"{reason} ({error.__cause__ or type(error.__cause__).__name__})"


def is_refusal(error: BaseException) -> bool:
    """Return whether a server does not permit an operation. The server itself works."""
    status, cause = _status_and_cause(error)
    return status in (401, 403) or isinstance(cause, PermissionError)


def is_overload(error: BaseException) -> bool:
    """Return whether a server has too many requests: it states this, or does not respond in time."""
    return _status_and_cause(error)[0] in (429, 503) or isinstance(error, asyncio.TimeoutError | TimeoutError)


def is_temporary(error: BaseException) -> bool:
    """Return whether the same request may succeed later: the server is overloaded or failed, or a connection was
    lost.
    """
    status, cause = _status_and_cause(error)
    if status is not None:
        return status in (408, 425, 429) or status >= 500
    return isinstance(cause, ConnectionError | TimeoutError | asyncio.TimeoutError)


def http_status(error: BaseException) -> int | None:
    """Return the first HTTP status in the chain of the causes of an error, or None."""
    return _status_and_cause(error)[0]


def _status_and_cause(error: BaseException) -> tuple[int | None, BaseException]:
    """Return the first HTTP status in the chain of the causes of an error, and the last cause."""
    status, cause = None, error
    while True:
        status = http_status_of(cause) if status is None else status
        if cause.__cause__ is None:
            return status, cause
        cause = cause.__cause__


def error_hint(error: BaseException) -> str:
    """Return advice for the user, to be appended to a message, or an empty string."""
    status, cause = _status_and_cause(error)
    if is_refusal(error):
        return (
            "; check the credentials (storage_options). Some servers that do not permit listing return the same error "
            "for missing keys"
        )
    if status in (408, 425, 429) or (status is not None and status >= 500):
        return "; the server may be busy: try again, or read through RetryStore"
    if isinstance(cause, FAILURE_TYPES) or (isinstance(cause, ftplib.Error) and str(cause).startswith("4")):
        return "; check that the server is reachable, and try again, or read through RetryStore"
    return ""
