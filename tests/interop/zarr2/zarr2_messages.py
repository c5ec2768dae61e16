"""Messages between two interpreters with different versions of NumPy: pickles with NumPy objects in ``.npy`` format.

NumPy 2.2 cannot unpickle structured and datetime dtypes of NumPy 2.4. Pickles are safe here, because both ends of the
pipe belong to the tests.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, BinaryIO

import numpy as np

__all__ = ["receive", "send"]


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()


class _Pickler(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        if isinstance(value, np.dtype):
            return "dtype", _npy(np.empty(0, value)) if not value.hasobject else b""
        if isinstance(value, np.generic):
            return "scalar", _npy(np.asarray(value))
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            return "array", _npy(value)
        return None


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: Any) -> Any:
        kind, data = name
        if not data:
            return np.dtype(object)
        array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
        return array.dtype if kind == "dtype" else array[()] if kind == "scalar" else array


def send(value: Any, to: BinaryIO) -> None:
    """Write one message."""
    message = io.BytesIO()
    _Pickler(message).dump(value)
    to.write(message.getvalue())
    to.flush()


def receive(source: BinaryIO) -> Any:
    """Read one message. Raises EOFError if the other end is closed."""
    return _Unpickler(source).load()
