"""Reading and writing JSON documents in a store. Reading is bounded and strict.

Documents are untrusted: their size and nesting depth are limited, duplicate keys are errors, and the encoding must be
UTF-8. Two deviations from JSON that occur in real documents are accepted: a byte order mark, and the literals NaN,
Infinity and -Infinity.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np

from zarrfs.engine.formats.repeated_objects import parse_shortened, shorten
from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.stores.base import Buffer, ByteRange, Store, ValueTooLargeError
from zarrfs.errors import MetadataError, ZarrError, describe_error

__all__ = [
    "LIMIT_VARIABLE",
    "MAX_DEPTH",
    "MAX_DOCUMENT",
    "MAX_NODE_DOCUMENT",
    "DocumentTooLargeError",
    "configured_limit",
    "convert_unexpected_errors",
    "current_limit",
    "document_limit",
    "dump_json",
    "location",
    "pairs_of",
    "parse_json",
    "parse_object",
    "parse_pairs",
    "parse_shared",
    "read_document",
    "read_object",
    "value_of_pairs",
    "write_object",
]

T = TypeVar("T")

MAX_DOCUMENT = 64 << 20
"""The maximum size in bytes of a document that describes a hierarchy or contains attributes, unless ``LIMIT_VARIABLE``
or ``document_limit`` sets another limit. A parsed document takes up to 25 times as much memory.
"""

LIMIT_VARIABLE = "ZARRFS_MAX_DOCUMENT"
"""The environment variable that overrides ``MAX_DOCUMENT``: a number of bytes."""

MAX_NODE_DOCUMENT = 4 << 20
"""The maximum size in bytes of a document that describes one array or group and contains no user attributes."""

LARGE_DOCUMENT = 4 << 20
"""Documents of more bytes than this are parsed one at a time, to bound memory use."""

MAX_DEPTH = 200
"""The maximum nesting depth of lists and objects. Python's parser and writer recurse and fail near 1000."""

_limit: ContextVar[int | None] = ContextVar("zarrfs_max_document", default=None)

_large_documents = threading.RLock()


def _after_fork() -> None:
    # Another thread may have held the lock when the process forked.
    global _large_documents
    _large_documents = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_NOT_STRUCTURE = bytes(set(range(256)).difference(b'{}[]"\\'))
_DEPTH = np.zeros(256, np.int8)
_DEPTH[[ord("["), ord("{")]] = 1
_DEPTH[[ord("]"), ord("}")]] = -1


class DocumentTooLargeError(MetadataError):
    """A document has more bytes than the limit that applies to it."""


def _limit_of_environment() -> int | None:
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return None
    if not text.isdecimal() or not int(text):
        raise MetadataError(f"{LIMIT_VARIABLE} is {text!r}; expected a number of bytes of at least 1")
    return int(text)


def default_limit() -> int:
    """Return the default document limit: the value of ``LIMIT_VARIABLE``, or ``MAX_DOCUMENT``. Raises MetadataError."""
    return _limit_of_environment() or MAX_DOCUMENT


def configured_limit() -> int | None:
    """Return the document limit that the current context or ``LIMIT_VARIABLE`` sets, or None. Raises MetadataError."""
    limit = _limit.get()
    return _limit_of_environment() if limit is None else limit


def current_limit() -> int:
    """Return the maximum document size, in bytes, that applies in the current context."""
    return configured_limit() or MAX_DOCUMENT


@contextmanager
def document_limit(nbytes: int | None) -> Iterator[None]:
    """Set the document limit within the context to this number of bytes; None leaves the limit unchanged."""
    if nbytes is None:
        yield
        return
    token = _limit.set(nbytes)
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def convert_unexpected_errors(where: str) -> Iterator[None]:
    """Convert an unexpected exception within the context to a MetadataError.

    ZarrError, OSError and MemoryError are passed on. Other exceptions are caused by an unusual document or by the code
    of a plugin. One such node must not prevent access to the others.
    """
    try:
        yield
    except (ZarrError, OSError, MemoryError):
        raise
    except Exception as error:
        raise MetadataError(
            f"{where}: the metadata cannot be interpreted: {describe_error(error)}"
        ) from error


def location(store: Store, key: str) -> str:
    """Return the URL of a key in a store, for messages."""
    return f"{store.url}/{key}"


def parse_json(data: Buffer, where: str, limit: int | None = None, share: bool = False) -> Any:
    """Return the value of a JSON document. With ``share``, equal parts of the value can be the same object.

    Raises MetadataError, with line and column, if the text is not JSON; also for a document that is too large, too
    deeply nested, not UTF-8, or has a duplicate key in an object.
    """
    limit = _effective_limit(limit)
    raw = bytes(data)
    if len(raw) > limit:
        raise _too_large(where, limit, len(raw))
    if not raw.strip():
        raise MetadataError(
            f"{where}: expected a JSON document, found an empty one; the file may have been truncated"
        )

    try:
        text = raw.decode("utf-8-sig")
        shortened = shorten(text) if share else None
        if shortened is not None and sum(_depth(part.encode()) for part in shortened) <= MAX_DEPTH:
            # An error is raised again below, with its position in the document.
            with suppress(ValueError, RecursionError):
                return parse_shortened(shortened, _unique)
        depth = _depth(raw)
        if depth > MAX_DEPTH:
            raise MetadataError(f"{where}: nested {depth} levels deep; the maximum is {MAX_DEPTH}")
        return _decoder.decode(text)
    except _DuplicateKeyError as error:
        raise MetadataError(
            f'{where}: the key "{error.args[0]}" occurs twice in one object; remove one'
        ) from None
    except MetadataError:
        raise
    except UnicodeDecodeError as error:
        raise MetadataError(
            f"{where}: expected UTF-8 text, but byte {error.start} is not valid: {error}"
        ) from error
    except json.JSONDecodeError as error:
        raise MetadataError(
            f"{where}: not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        # For example an integer with more digits than Python converts.
        raise MetadataError(f"{where}: the document cannot be read: {error}") from error


class _DuplicateKeyError(Exception):
    """A key occurs twice in an object. The argument is the key."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object. Raises _DuplicateKeyError if a key occurs twice."""
    # Most of the time of large documents is spent here.
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in result if names.count(name) > 1))
    return result


_decoder = json.JSONDecoder(object_pairs_hook=_unique)


_pairs_decoder = json.JSONDecoder(object_pairs_hook=tuple)


def parse_pairs(data: Buffer, where: str) -> Any:
    """Return the value of a JSON document in which each object is the tuple of its members (key, value), in their order
    and also if a key occurs twice. It takes half the time of ``parse_json``: no Python function is called.

    Raises MetadataError, without the place of the error, if the text is not JSON or has many levels.
    """
    raw = bytes(data)
    try:
        if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
            raise MetadataError(f"{where}: may be nested deeply")
        return _pairs_decoder.decode(str(raw, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise MetadataError(f"{where}: the document cannot be read: {error}") from error


def pairs_of(value: Any) -> Any:
    """Return a JSON value in the form that ``parse_pairs`` returns."""
    if isinstance(value, Mapping):
        return tuple([(key, pairs_of(item)) for key, item in value.items()])
    return [pairs_of(item) for item in value] if isinstance(value, list) else value


def value_of_pairs(value: Any, where: str) -> Any:
    """Return the usual form of a value that ``parse_pairs`` returned. Raises MetadataError if a key occurs twice."""
    if type(value) is tuple:
        result = {key: value_of_pairs(item, where) for key, item in value}
        if len(result) != len(value):
            raise MetadataError(f"{where}: a key occurs twice in one object")
        return result
    return [value_of_pairs(item, where) for item in value] if type(value) is list else value


def _depth(raw: bytes) -> int:
    """Return the nesting depth of a JSON document, or an upper bound that is at most ``MAX_DEPTH``."""
    opening = raw.count(b"[") + raw.count(b"{")
    if opening <= MAX_DEPTH:
        return opening
    # Without a backslash, each second part between quotation marks is a string.
    structure = raw if b"\\" in raw else b"".join(raw.translate(None, _NOT_STRUCTURE).split(b'"')[::2])
    steps = _DEPTH[np.frombuffer(_STRING.sub(b"", structure), np.uint8)]
    return int(np.cumsum(steps[steps != 0], dtype=np.int64).max(initial=0))


def dump_json(value: Any, where: str) -> bytes:
    """Return the value as an indented JSON document. NaN and Infinity are written as literals.

    Raises MetadataError for a value that JSON cannot represent.
    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=_to_json_value)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MetadataError(f"{where}: the value cannot be written as JSON: {error}") from error


def _to_json_value(value: Any) -> Any:
    """Return a JSON value for a NumPy scalar or array or a mapping; attributes often contain these."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON type")


def read_object(store: Store, key: str, limit: int | None = None) -> dict[str, Any] | None:
    """Return the JSON object stored under the key, or None if the key is missing. Raises MetadataError.

    ``limit`` is its maximum size in bytes. The limit for all documents (``current_limit``) applies too.
    """
    return read_document(store, key, parse_object, limit)


def read_document(
    store: Store, key: str, parse: Callable[[Buffer, str, int], T], limit: int | None = None
) -> T | None:
    """Return ``parse(data, where, limit)`` of the document stored under the key, or None if the key is missing.

    ``where`` is the location of the document. Raises MetadataError, as ``read_object`` does, and the errors of
    ``parse``.
    """
    where = location(store, key)
    limit = _effective_limit(limit)
    if store.is_remote:
        # One bounded request. Getting the size first would be a second request.
        ranges = store.get_ranges(key, [ByteRange(0, limit + 1)])
        if ranges is None:
            return None
        (data,) = ranges
        if len(data) > limit:
            raise _too_large(where, limit, None)
        with _one_at_a_time(len(data)):
            return parse(data, where, limit)
    size: int | None
    value: Buffer | None
    if store.checks_size_first:
        # Most documents are small. They are read without a separate call for their size.
        try:
            value = store.get_within(key, min(limit, LARGE_DOCUMENT))
            return None if value is None else parse(value, where, limit)
        except ValueTooLargeError as error:
            size = error.size
    else:
        size = store.size(key)
        if size is None:
            return None
    if size > limit:
        raise _too_large(where, limit, size)
    with _one_at_a_time(size):
        try:
            # The size is checked again, because the document may have been replaced by a larger one.
            value = store.get_within(key, limit)
        except ValueTooLargeError as error:
            raise _too_large(where, limit, error.size) from None
        return None if value is None else parse(value, where, limit)


def parse_object(data: Buffer, where: str, limit: int | None = None, share: bool = False) -> dict[str, Any]:
    """Return the JSON object of a document. Raises MetadataError; see ``parse_json``."""
    return dict(expect_object(parse_json(data, where, limit, share), where, "a JSON object"))


def parse_shared(data: Buffer, where: str, limit: int | None = None) -> dict[str, Any]:
    """Return the JSON object of a document with consolidated metadata. Equal parts of the object can be the same
    object.
    """
    return parse_object(data, where, limit, share=True)


def _one_at_a_time(nbytes: int) -> AbstractContextManager[Any]:
    """Return a context in which no other thread parses a large document, because parsing takes many times its size."""
    return _large_documents if nbytes > LARGE_DOCUMENT else nullcontext()


def _effective_limit(limit: int | None) -> int:
    return current_limit() if limit is None else min(limit, current_limit())


def _too_large(where: str, limit: int, size: int | None) -> DocumentTooLargeError:
    size_text = f"more than {limit:,}" if size is None or size <= limit else f"{size:,}"
    advice = (
        ""
        if limit < current_limit()
        else "; to read it, raise the limit: Access(max_document=...), the option "
        f"--max-document, or the environment variable {LIMIT_VARIABLE}"
    )
    return DocumentTooLargeError(
        f"{where}: the document is too large: expected at most {limit:,} bytes, found {size_text}{advice}"
    )


def write_object(store: Store, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Store the object as JSON under the key; return the object as it would be read back. Raises MetadataError."""
    data = dump_json(value, location(store, key))
    store.set(key, data)
    result: dict[str, Any] = json.loads(data)
    return result
