"""Errors of obstore as errors whose meaning ``presence.py`` recognizes. Pure functions.

obstore has few classes of errors, and states the cause in its text: a first line for users, with the status and the
body of the response, and a description of the Rust error, with the kind of a failed connection.
"""

from __future__ import annotations

import re

__all__ = ["InvalidKeyError", "RequestError", "convert_error", "names_other_region"]

STATUS = re.compile(r"status code: (\d{3}) ?([A-Za-z' -]*):? ?(.*)", re.DOTALL)
CODE = re.compile(r"<Code>\s*([\w.]+)\s*</Code>")
DETAIL = re.compile(r"<Message>([^<]*)</Message>")
REGION = re.compile(r"<Region>\s*([\w-]+)\s*</Region>")
SYSTEM_MESSAGE = re.compile(r'(?:message|error): "([^"]+)"')
CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(?:Other\(\s*OtherError\(\s*)?(\w+)")
PREFIX = re.compile(r"^(?:Generic \w+ error: |Error performing .*? in [^ ]+ - |HTTP error: )+")

MAX_DETAIL = 300

REFUSAL_CODES = ("ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired")
"""Codes of S3 that mean invalid credentials although the status is 400."""

IGNORED_RANGE = ("Received non-partial response", "Range request not supported")

REDIRECTED = "incorrectly configured region"
"""Part of the text for a redirect without a target, which S3 sends for a bucket in another region."""

INVALID_KEY = "Encountered object with invalid path"

EMPTY_STATUS = 416
"""The status for a range that starts beyond the end of the value."""


class RequestError(Exception):
    """A failed request. ``status`` is the HTTP status, and ``error_code`` the code in the body, if there are any.

    ``region`` is the region that the response names, and ``ignored_range`` tells whether the server has sent the whole
    value instead of a range.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        error_code: str | None = None,
        region: str | None = None,
        ignored_range: bool = False,
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.error_code = error_code
        self.region = region
        self.ignored_range = ignored_range


class InvalidKeyError(Exception):
    """A listing contains a key that obstore cannot represent, such as ``a//b``. None of the keys is returned then."""


class _MissingError(FileNotFoundError):
    """The status 404. ``error_code`` tells a missing bucket from a missing key."""

    error_code: str | None = None


class _RefusedError(PermissionError):
    """Credentials that have expired."""


def convert_error(error: Exception) -> Exception:
    """Return the error for an error of obstore; other errors unchanged.

    A missing value is a FileNotFoundError, a time-out a TimeoutError, and a failed connection a ConnectionError. All
    others are RequestError, with the status first in the text. URLs are omitted, because they can contain signatures.
    """
    if isinstance(error, RequestError | InvalidKeyError | _MissingError | _RefusedError):
        return error
    module = type(error).__module__
    if not module.startswith("obstore") and not isinstance(error, FileNotFoundError):
        return error
    text, _, source = str(error).partition("\n\nDebug source:")
    status = STATUS.search(text)
    body = status[3] if status else text
    code = CODE.search(body)
    error_code = code[1] if code else None
    if isinstance(error, FileNotFoundError):
        missing = _MissingError(_status_reason(status, error_code) if status else "404 Not Found")
        missing.error_code = error_code
        return missing
    if status:
        reason = _status_reason(status, error_code)
        if error_code in REFUSAL_CODES:
            return _RefusedError(reason)
        region = REGION.search(body)
        return RequestError(
            reason, status=int(status[1]), error_code=error_code, region=region[1] if region else None
        )
    if INVALID_KEY in text:
        return InvalidKeyError(_short(text))
    if "kind: Timeout" in source or "TimedOut" in source:
        return TimeoutError("the server did not respond in time")
    if certificate := CERTIFICATE.search(source):
        return RequestError(
            f"the certificate of the server is not trusted ({certificate[1]}); if you trust the server, give the file "
            "of the certificate authority: storage option client_kwargs={'verify': FILE}"
        )
    if "kind: Connect" in source:
        detail = SYSTEM_MESSAGE.search(source)
        return ConnectionError(f"cannot connect: {detail[1] if detail else _short(text)}")
    if "IncompleteBody" in source or "kind: Interrupted" in source or "kind: Body" in source:
        return ConnectionError("the connection was lost during the transfer")
    return RequestError(
        _short(text) or type(error).__name__,
        status=301 if REDIRECTED in text else None,
        ignored_range=text.startswith(IGNORED_RANGE) or any(part in text for part in IGNORED_RANGE),
    )


def names_other_region(error: Exception) -> bool:
    """Return whether an error of S3 means that the bucket is in another region."""
    return isinstance(error, RequestError) and (
        error.status == 301
        or error.error_code in ("AuthorizationHeaderMalformed", "IllegalLocationConstraintException")
    )


def _status_reason(status: re.Match[str], error_code: str | None) -> str:
    """Return the status, the code and the message of a response as text."""
    detail = DETAIL.search(status[3])
    parts = [
        f"{status[1]} {status[2].strip()}".strip(),
        error_code,
        detail[1].strip()[:MAX_DETAIL] if detail else None,
    ]
    return ": ".join(part for part in parts if part)


def _short(text: str) -> str:
    return PREFIX.sub("", text.strip())[:MAX_DETAIL]
