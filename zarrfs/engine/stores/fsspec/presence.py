"""Whether an error of a file system says that a key is absent, or that something is wrong. Pure: no request is made.

An absent chunk is the fill value, so to take trouble for absence is to show wrong data. File systems of fsspec raise
FileNotFoundError for both: ftp for every reply that it does not like, http for every failure of a look-up, references
for a target that cannot be reached. What they were raised *from* tells them apart.
"""

from __future__ import annotations

import asyncio
import errno
import ftplib
from collections.abc import Mapping
from enum import Enum
from typing import Any

__all__ = ["Presence", "classify_error", "hint", "reply_says_absent", "status_of"]

ABSENT_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG}

ABSENT_TYPES = (FileNotFoundError, NotADirectoryError, IsADirectoryError, KeyError)
"""What file systems raise for a name that they do not have; dictionaries and archives raise KeyError."""

ABSENT_NAMES = ("NotFound", "NotFoundError")
"""Ends of the names of errors of libraries that have a type for it: of Azure, Google, WebDAV and others."""

TROUBLE_TYPES = (ConnectionError, TimeoutError, asyncio.TimeoutError, PermissionError, EOFError)

ABSENT_WORDS = (
    "no such",
    "not found",
    "cannot find",
    "can't find",
    "does not exist",
    "doesn't exist",
    "not exist",
)
"""How servers word reply 550 where they tell "not there" from "not allowed" (RFC 959, 4.2.1 has one code for both)."""


class Presence(Enum):
    """What an error says of a key."""

    ABSENT = "absent"
    TROUBLE = "trouble"
    DOUBTFUL = "doubtful"
    """It claims absence, but because of something that need not mean it: a second look must tell."""


def classify_error(error: BaseException) -> Presence:
    """Return what an error says: absence is believed only where all that it was raised from says so too."""
    if not _claims_absence(error):
        return Presence.TROUBLE
    verdict, link = Presence.ABSENT, error
    while True:
        status = status_of(link)
        if status is not None:
            return Presence.ABSENT if status == 404 else Presence.TROUBLE
        if isinstance(link, ftplib.Error):
            if reply_says_absent(str(link)):
                return Presence.ABSENT
            return Presence.DOUBTFUL if str(link).startswith("550") else Presence.TROUBLE
        if not _claims_absence(link) and not type(link).__name__.endswith(ABSENT_NAMES):
            if isinstance(link, TROUBLE_TYPES) or (isinstance(link, OSError) and link.errno is not None):
                return Presence.TROUBLE
            verdict = Presence.DOUBTFUL
        if link.__cause__ is None:
            return verdict
        link = link.__cause__


def _claims_absence(error: BaseException) -> bool:
    return (
        isinstance(error, ABSENT_TYPES)
        or getattr(error, "errno", None) in ABSENT_ERRNOS
        or status_of(error) == 404
        or (
            isinstance(error, ftplib.Error)
            and (str(error).startswith("550") or reply_says_absent(str(error)))
        )
    )


def status_of(error: BaseException) -> int | None:
    """Return the HTTP status that an error carries, as the libraries of http, s3, gs and abfs each name it."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):  # botocore
        metadata = response.get("ResponseMetadata")
        found: Any = metadata.get("HTTPStatusCode") if isinstance(metadata, Mapping) else None
    else:
        found = next(
            (
                value
                for owner, name in (
                    (error, "status"),  # aiohttp
                    (error, "status_code"),  # azure
                    (response, "status_code"),  # requests, httpx
                    (error, "code"),  # gcsfs
                )
                if (value := getattr(owner, name, None)) is not None
            ),
            None,
        )
    try:
        status = int(found)
    except (TypeError, ValueError):
        return None
    return status if 100 <= status < 600 else None


def reply_says_absent(reply: str) -> bool:
    """Tell whether a reply of FTP says in words that there is no such file. 421 closes the connection: never."""
    return not reply.startswith("421") and any(words in reply.lower() for words in ABSENT_WORDS)


def hint(error: BaseException) -> str:
    """Return what a user can do, to be put behind a message, or nothing."""
    status, links = None, error
    while True:
        status = status_of(links) if status is None else status
        if links.__cause__ is None:
            break
        links = links.__cause__
    if status in (401, 403) or isinstance(links, PermissionError):
        return (
            "; check the credentials (storage_options). Where names may not be listed, some servers refuse what is "
            "absent: then it cannot be told from what is forbidden"
        )
    if status in (408, 425, 429) or (status is not None and status >= 500):
        return "; the server may be busy: try again, or read through RetryStore"
    if isinstance(links, TROUBLE_TYPES) or (isinstance(links, ftplib.Error) and str(links).startswith("4")):
        return "; check that the server is reachable, and try again, or read through RetryStore"
    return ""
