"""JSON documents in a store: bounded and strict reading, and writing.

Nothing is trusted: a document has a largest size and depth, says each thing once, and is UTF-8. What real
documents have and JSON has not is taken: a byte order mark, and the literals NaN, Infinity and -Infinity.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

import numpy as np

from zarrfs.engine.json_checks import expect_object
from zarrfs.engine.stores.base import Buffer, ByteRange, Store, ValueTooLargeError
from zarrfs.errors import MetadataError, ZarrError, describe_error

__all__ = [
    "LIMIT_VARIABLE",
    "MAX_DEPTH",
    "MAX_DOCUMENT",
    "MAX_NODE_DOCUMENT",
    "current_limit",
    "document_limit",
    "dump_json",
    "location",
    "parse_json",
    "read_object",
    "unforeseen_errors",
    "write_object",
]

MAX_DOCUMENT = 64 << 20
"""The most bytes of a document that may describe a whole hierarchy or hold attributes, unless ``LIMIT_VARIABLE`` or
``document_limit`` set another limit. Parsed, a document takes up to 25 times as much memory.
"""

LIMIT_VARIABLE = "ZARRFS_MAX_DOCUMENT"
"""The environment variable that replaces ``MAX_DOCUMENT``: a number of bytes."""

MAX_NODE_DOCUMENT = 4 << 20
"""The most bytes of a document that describes one array or group and holds nothing of the user's."""

LARGE_DOCUMENT = 4 << 20
"""Documents of more bytes than this are parsed one at a time."""

MAX_DEPTH = 200
"""How deep lists and objects may be nested; Python's own parser and writer recurse, and end near 1000."""

_limit: ContextVar[int | None] = ContextVar("zarrfs_max_document", default=None)

_large_documents = threading.RLock()


def _after_fork() -> None:
    # Another thread may have held the lock when the process forked.
    global _large_documents
    _large_documents = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_DEPTH = np.zeros(256, np.int8)
_DEPTH[[ord("["), ord("{")]] = 1
_DEPTH[[ord("]"), ord("}")]] = -1


def default_limit() -> int:
    """Return the limit of documents that holds where nobody set another: MAX_DOCUMENT, or what the environment says."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return MAX_DOCUMENT
    if not text.isdecimal() or not int(text):
        raise MetadataError(f"{LIMIT_VARIABLE} is {text!r}; expected a number of bytes of at least 1")
    return int(text)


def current_limit() -> int:
    """Return the most bytes that a document may have here and now."""
    limit = _limit.get()
    return default_limit() if limit is None else limit


@contextmanager
def document_limit(nbytes: int | None) -> Iterator[None]:
    """Within, documents may have this many bytes; None leaves the limit as it is."""
    if nbytes is None:
        yield
        return
    token = _limit.set(nbytes)
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def unforeseen_errors(where: str) -> Iterator[None]:
    """Make a MetadataError of any exception that is not one of ours nor of the system: a document, or the code of a
    plugin that reads a part of it, caused what nobody thought of. One bad node must not stop the work on others.
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
    """Return where a key of a store is, for messages."""
    return f"{store.url}/{key}"


def parse_json(data: Buffer, where: str, limit: int | None = None) -> Any:
    """Return the value of a JSON document.

    Raises MetadataError with line and column where the text is not JSON, and for a document that is too
    large or too deep, is not UTF-8, or has a key twice in one object.
    """
    limit = _lower(limit)
    raw = bytes(data)
    if len(raw) > limit:
        raise _too_large(where, limit, len(raw))
    if not raw.strip():
        raise MetadataError(
            f"{where}: expected a JSON document, found nothing; the file may have been cut off"
        )
    _check_depth(raw, where)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in result if names.count(name) > 1)
            raise MetadataError(f'{where}: the key "{twice}" is there twice in one object; remove one')
        return result

    try:
        return json.loads(raw.decode("utf-8-sig"), object_pairs_hook=unique)
    except UnicodeDecodeError as error:
        raise MetadataError(
            f"{where}: expected UTF-8 text, found byte {error.start} that is not: {error}"
        ) from error
    except json.JSONDecodeError as error:
        raise MetadataError(
            f"{where}: not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from error
    except (ValueError, RecursionError) as error:
        # An integer of more digits than Python converts.
        raise MetadataError(f"{where}: not a document that can be read: {error}") from error


def _check_depth(raw: bytes, where: str) -> None:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    steps = _DEPTH[np.frombuffer(_STRING.sub(b"", raw), np.uint8)]
    depth = int(np.cumsum(steps[steps != 0], dtype=np.int64).max(initial=0))
    if depth > MAX_DEPTH:
        raise MetadataError(f"{where}: nested {depth} deep; at most {MAX_DEPTH} levels are read")


def dump_json(value: Any, where: str) -> bytes:
    """Return the value as a JSON document, indented, NaN and Infinity as literals.

    Raises MetadataError for what JSON cannot say.
    """
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, default=_plain)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise MetadataError(f"{where}: this cannot be written as JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Return what JSON knows for NumPy scalars and arrays, and for mappings, as attributes often hold."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON type")


def read_object(store: Store, key: str, limit: int | None = None) -> dict[str, Any] | None:
    """Return the JSON object stored under the key, or None when the key is absent. Raises MetadataError.

    ``limit`` is the most bytes it may have; the limit that holds for all documents (``current_limit``) may be lower.
    """
    where = location(store, key)
    limit = _lower(limit)
    if store.concurrency > 1:
        # One request, bounded, where asking for the size first would be another.
        pieces = store.get_ranges(key, [ByteRange(0, limit + 1)])
        if pieces is None:
            return None
        (data,) = pieces
        if len(data) > limit:
            raise _too_large(where, limit, store.size(key))
        with _one_at_a_time(len(data)):
            return _object(data, where, limit)
    size = store.size(key)
    if size is None:
        return None
    if size > limit:
        raise _too_large(where, limit, size)
    with _one_at_a_time(size):
        try:
            # The size is checked again: the document may have been replaced by a larger one.
            found = store.get_within(key, limit)
        except ValueTooLargeError as error:
            raise _too_large(where, limit, error.size) from None
        return None if found is None else _object(found, where, limit)


def _object(data: Buffer, where: str, limit: int) -> dict[str, Any]:
    return dict(expect_object(parse_json(data, where, limit), where, "a JSON object"))


def _one_at_a_time(nbytes: int) -> AbstractContextManager[Any]:
    """Return a context in which no other thread parses a large document: that takes many times its size."""
    return _large_documents if nbytes > LARGE_DOCUMENT else nullcontext()


def _lower(limit: int | None) -> int:
    return current_limit() if limit is None else min(limit, current_limit())


def _too_large(where: str, limit: int, size: int | None) -> MetadataError:
    found = f"more than {limit:,}" if size is None or size <= limit else f"{size:,}"
    advice = (
        ""
        if limit < current_limit()
        else "; to read it nevertheless, raise the limit: Access(max_document=...), the option "
        f"--max-document of a command that has it, or the environment variable {LIMIT_VARIABLE}"
    )
    return MetadataError(
        f"{where}: the document is too large: expected at most {limit:,} bytes, found {found}{advice}"
    )


def write_object(store: Store, key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Store the object as JSON under the key; return what reading it would give. Raises MetadataError."""
    data = dump_json(value, location(store, key))
    store.set(key, data)
    result: dict[str, Any] = json.loads(data)
    return result
