"""The settings of the process that submits tasks, which are sent to the workers with them. Workers are other processes,
often on other machines, with environments of their own.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from zarrfs.engine.codecs.limits import configured_variable_limit, replaced_variable_limit
from zarrfs.engine.formats.json_document import configured_limit, document_limit
from zarrfs.engine.native.library import is_disabled, native_library_disabled

__all__ = ["TaskSettings", "pickled_with_settings", "unpickled_with_settings"]


@dataclass(frozen=True)
class TaskSettings:
    """How tasks read and write, apart from what the tasks themselves contain: arrays with their stores, storage
    options, caches and ``ReadWriteOptions``. A setting that is not set here is that of the worker.

    Attributes:
        max_document: the maximum size of a metadata document in bytes, or None.
        variable_limit: the maximum size of a decoded chunk of variable-length values in bytes, or None.
        without_native: whether chunks are read and written by Python only.
    """

    max_document: int | None
    variable_limit: int | None
    without_native: bool

    @classmethod
    def current(cls) -> TaskSettings:
        """Return the settings of this process. Raises MetadataError if an environment variable is not valid."""
        return cls(configured_limit(), configured_variable_limit(), is_disabled())

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the settings to what this thread does within the context."""
        with (
            document_limit(self.max_document),
            replaced_variable_limit(self.variable_limit),
            native_library_disabled(self.without_native),
        ):
            yield


def pickled_with_settings(value: Any) -> bytes:
    """Pickle a value, and the settings of this process. Raises the errors of ``pickle.dumps``."""
    # Separately, because unpickling the value opens stores and reads metadata, for which the settings apply.
    return pickle.dumps((TaskSettings.current(), pickle.dumps(value)))


def unpickled_with_settings(payload: bytes) -> tuple[TaskSettings, Any]:
    """Return the settings and the value of ``pickled_with_settings``. Raises the errors of opening its nodes."""
    settings, data = pickle.loads(payload)
    with settings.applied():
        return settings, pickle.loads(data)
