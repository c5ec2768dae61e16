""".txt: text, one element per line.

The elements are in C order. In them a backslash is written as ``\\\\``, a line feed as ``\\n`` and a carriage return as
``\\r``. A scalar is the text itself, without a line break. The encoding is UTF-8.

The size of the file depends on the elements. They are read when the file is looked up, and again after a change.
"""

from __future__ import annotations

import errno
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, ClassVar

import numpy as np

from zarrfs.engine.array.array import Array
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.read.flat_blocks import flat_version
from zarrfs.errors import StoreError
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.tables.columns import text_of_bytes
from zarrfs.files.view import PresentedArray, View

__all__ = ["TxtView"]

MAX_ELEMENTS = 1 << 18
MAX_CHUNKS = 4096
"""The version of an array with more chunks is not determined."""
MAX_TEXT_NBYTES = 16 << 20
MAX_CACHE_NBYTES = 64 << 20

VARIABLE_LENGTH_TYPES = ("string", "bytes")

ESCAPES = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})


class TxtView(View):
    """The elements of an array of text as lines. The texts of the last arrays are in memory."""

    suffix: ClassVar[str] = ".txt"
    needs_attributes: ClassVar[bool] = False
    depends_on_elements: ClassVar[bool] = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: OrderedDict[tuple[str, str], tuple[ArraySpec, Hashable, bytes]] = OrderedDict()
        self._nbytes = 0

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        array = presented.array
        if array.dtype.kind not in "SU" and array.spec.data_type.name not in VARIABLE_LENGTH_TYPES:
            return f"its elements ({array.spec.data_type.name}) are not text"
        if array.size > MAX_ELEMENTS:
            return f"its {array.size:,} elements exceed the maximum ({MAX_ELEMENTS:,})"
        if array.nbytes > MAX_TEXT_NBYTES:
            return f"its {array.nbytes:,} bytes exceed the maximum ({MAX_TEXT_NBYTES:,})"
        if array.nshards > MAX_CHUNKS:
            return f"its {array.nshards:,} chunks exceed the maximum ({MAX_CHUNKS:,})"
        return None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        return VirtualFileContent([BytesSegment(self._text(presented.array))])

    def _text(self, array: Array) -> bytes:
        """Return the text of an array: that in memory, if no chunk has changed since it was read."""
        key = array.store.url, array.path
        # The version is determined before the elements are read, so that a change in between is noticed.
        version = flat_version(array.storage, 0, array.nbytes, "C")
        with self._lock:
            cached = self._texts.get(key)
            if cached is not None and version is not None and cached[:2] == (array.spec, version):
                self._texts.move_to_end(key)
                return cached[2]
        text = _encode(array)
        if version is not None:
            self._remember(key, (array.spec, version, text))
        return text

    def _remember(self, key: tuple[str, str], entry: tuple[ArraySpec, Hashable, bytes]) -> None:
        with self._lock:
            old = self._texts.pop(key, None)
            self._texts[key] = entry
            self._nbytes += len(entry[2]) - (0 if old is None else len(old[2]))
            while self._nbytes > MAX_CACHE_NBYTES:
                _, (_, _, dropped) = self._texts.popitem(last=False)
                self._nbytes -= len(dropped)


def _encode(array: Array) -> bytes:
    """Return the text of an array. Raises StoreError with EFBIG if it is too long."""
    text = bytearray()
    for block in _blocks(array):
        for element in block.reshape(-1).tolist():
            line = _element_text(element)
            if array.ndim:
                line = line.translate(ESCAPES) + "\n"
            text += line.encode("utf-8", "backslashreplace")
            if len(text) > MAX_TEXT_NBYTES:
                raise StoreError(
                    f"{array.name}: the text of its elements exceeds the maximum size ({MAX_TEXT_NBYTES:,} bytes)",
                    errno.EFBIG,
                )
    return bytes(text)


def _blocks(array: Array) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the elements in C order, in blocks as long as the chunks."""
    if not array.ndim or not array.size:
        yield np.asarray(array[...])
        return
    lengths = array.chunks[0]
    step = lengths if isinstance(lengths, int) else max(lengths)
    for start in range(0, array.shape[0], step):
        yield np.asarray(array[start : start + step])


def _element_text(element: object) -> str:
    if isinstance(element, bytes):
        return text_of_bytes(element)
    return "" if element is None else str(element)
