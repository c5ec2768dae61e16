"""How long data are used without a comparison with the store, and the stamps by which open files notice that the
metadata of their arrays have changed.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from weakref import WeakValueDictionary

from zarrfs.engine.array.array import Array
from zarrfs.engine.formats.api import document_keys

__all__ = ["REVALIDATION_SECONDS", "ArrayStamp", "array_stamp", "renew_array_stamp", "stamp_before_reading"]

REVALIDATION_SECONDS = 0.5
"""What the server has in memory (metadata, decoded chunks, blocks) is used for this time before it is compared with the
store again. The kernel uses names, attributes and pages for the same time before it asks the server again. A change is
therefore seen within a second.
"""


class ArrayStamp:
    """The stamp that the document of an array had when its first stream was created. All streams of the array share it.

    Attributes:
        value: the stamp, or None if there is no document. It is renewed if a changed document is found to be equal.
    """

    def __init__(self, array: Array, key: str) -> None:
        self._array = array  # As long as it is alive, no other array has the same identity.
        self._key = key
        self.value = self.current()

    def current(self) -> Hashable | None:
        """Return the stamp that the document has now."""
        return self._array.store.stamp(self._key)

    @property
    def is_current(self) -> bool:
        """Whether the document has not changed."""
        return self.current() == self.value


_stamps: WeakValueDictionary[int, ArrayStamp] = WeakValueDictionary()
_lock = threading.Lock()


def array_stamp(array: Array) -> ArrayStamp | None:
    """Return the stamp of an array, None if its store has no cheap stamps. It is shared as long as it is referenced."""
    found = _stamps.get(id(array))
    if found is not None:
        return found
    store = array.store
    if store.is_remote or not array.spec.document:
        return None
    stamp = ArrayStamp(array, document_keys(store, array.path, array.spec)[0])
    with _lock:
        return _stamps.setdefault(id(array), stamp)


def renew_array_stamp(array: object, read: Hashable | None) -> None:
    """Set the stamp of an array whose document was read again and is equal. ``read`` is the stamp before that."""
    found = _stamps.get(id(array))
    if found is not None:
        found.value = read


def stamp_before_reading(array: object) -> Hashable | None:
    """Return the stamp that the document of an array has now, for ``renew_array_stamp``, if its streams use it."""
    found = _stamps.get(id(array))
    return None if found is None else found.current()
