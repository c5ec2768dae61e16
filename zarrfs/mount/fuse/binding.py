"""The FUSE bindings: mfusepy, or fusepy if mfusepy is not installed. The differences between them are here."""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import importlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from zarrfs.engine.codecs.pipeline.scratch import release_scratch
from zarrfs.errors import MountError
from zarrfs.mount.fuse.file_statuses import StatusLayout
from zarrfs.mount.fuse.interruption import has_ending_signal, process_of

__all__ = ["BINDING_VARIABLE", "Binding", "load_binding"]

BINDING_VARIABLE = "ZARRFS_FUSE_BINDING"
"""The environment variable that chooses a binding: ``mfusepy`` or ``fusepy``."""

RENAME_NOREPLACE = 1
READDIR_PLUS = 1
"""The flag of a request for a directory with the attributes of its entries."""
FILL_DIR_PLUS = 2
"""The flag of an entry that has all attributes."""

MODULES = {"mfusepy": "mfusepy", "fusepy": "fuse"}

MAX_THREADS = 64
"""The number of requests that are served concurrently. With the default of libfuse 3 (10), ten reads that wait for a
server would block all other requests.
"""

MAX_THREADS_VERSION = (3, 12)
"""The first version of libfuse with the option ``max_threads``. libfuse 2 has no limit."""


class Binding:
    """A FUSE binding. It takes the operations from the methods of an object that have the names of FUSE operations."""

    def __init__(self, name: str, module: ModuleType) -> None:
        self.name = name
        self._module = module

    def run(
        self,
        operations: object,
        mountpoint: str,
        options: Mapping[str, object],
        *,
        is_debugging: bool = False,
    ) -> None:
        """Mount, and serve requests until the file system is unmounted.

        ``options`` are ``-o`` options of libfuse. Operations on open files receive the structure of the open file
        (``raw_fi``), which has the attributes ``fh``, ``flags`` and ``direct_io``. With ``is_debugging`` libfuse prints
        each request on standard error. Raises RuntimeError with the status of libfuse if it is not 0.
        """
        arguments = dict(options)
        if self._is_libfuse_3:
            # libfuse 3.14 prints a warning about its own default.
            arguments.setdefault("max_idle_threads", 10)
            arguments.pop("nonempty", None)  # an option of libfuse 2; libfuse 3 mounts over any directory
        if self._libfuse_version >= MAX_THREADS_VERSION:
            # Threads whose state is kept must not end: see _keeping_thread_state.
            arguments |= {"max_threads": MAX_THREADS, "max_idle_threads": MAX_THREADS}
        fuse = self._module.FUSE
        if self._is_libfuse_3:
            layout = StatusLayout(self._module.c_stat)
            methods: dict[str, Any] = {
                "getattr_fuse_3": _status_reader(layout),
                "rename_fuse_3": _rename_with_flags,
                "truncate_fuse_3": _truncate,
                "readdir_fuse_3": _directory_reader(self._module, layout),
                "read": _read,
                "lseek": _seek,
            }
            if self._libfuse_version >= MAX_THREADS_VERSION:
                methods["_wrapper"] = _keeping_thread_state(fuse._wrapper)
            fuse = type("Fuse", (fuse,), methods)
        elif not arguments.get("ro"):
            # In libfuse 3 these are defaults.
            arguments |= {"big_writes": True, "atomic_o_trunc": True}
        if self.name == "fusepy":
            operations = FusepyOperations(operations)
        with _keeping_signal_handlers(self._module):
            fuse(operations, mountpoint, raw_fi=True, foreground=True, debug=is_debugging, **arguments)

    def calling_process(self) -> int:
        """Return the process whose request the current thread serves; 0 if it is not known, as in other containers."""
        return process_of(self._module.fuse_get_context()[2])

    def is_interrupted(self) -> bool:
        """Return whether the program that waits for the request of this thread has received a signal that ends it."""
        library = self._module._libfuse
        return bool(library.fuse_interrupted()) and has_ending_signal(self._module.fuse_get_context()[2])

    @property
    def library(self) -> str:
        """The name and the version of the libfuse that the binding uses, as far as the binding knows it."""
        major, minor = self._libfuse_version
        return f"libfuse {major}.{minor}" if minor else f"libfuse {major}"

    @property
    def _libfuse_version(self) -> tuple[int, int]:
        major = getattr(self._module, "fuse_version_major", 2)
        return major, getattr(self._module, "fuse_version_minor", 0)

    @property
    def _is_libfuse_3(self) -> bool:
        return self.name == "mfusepy" and "fuse3" in os.environ.get("FUSE_LIBRARY_NAME", "")


def _keeping_thread_state(call: Callable[..., int]) -> Callable[..., int]:
    """Return the method ``call``, by which libfuse calls each operation, so that threads keep their state in Python.

    The interpreter creates a new state for each call by a thread that it did not start, and maps memory for its stack,
    which costs as much as a short read. A state that was acquired once more than it was released is retained. libfuse
    never ends its threads here, so that there are at most ``MAX_THREADS`` states. Scratch memory is released after each
    call, because most threads are idle.
    """
    local = threading.local()

    def keep(*arguments: Any) -> int:
        if not hasattr(local, "is_kept"):
            ctypes.pythonapi.PyGILState_Ensure()
            local.is_kept = True
        try:
            return call(*arguments)
        finally:
            release_scratch()

    return keep


def _status_reader(layout: StatusLayout) -> Callable[..., int]:
    """Return the method of libfuse 3 that determines the attributes of a file."""

    def read_status(fuse: Any, path: bytes | None, target: Any, file: Any) -> int:
        handle = file.contents if file else None
        attributes = fuse.operations.getattr(None if path is None else os.fsdecode(path), handle)
        layout.write(attributes, target.contents)
        return 0

    return read_status


_copy = ctypes.PyDLL(None).memmove
_copy.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_copy.restype = None


def _read(fuse: Any, path: bytes | None, target: Any, size: int, offset: int, file: Any) -> int:
    """Read from an open file.

    The interpreter lock is kept while the bytes are copied. Releasing it for 20 us costs more, because the thread of
    the next request takes it: a pass over blocks in memory needs 0.21 instead of 0.16 s of processor time.
    """
    data = fuse.operations.read(None if path is None else os.fsdecode(path), size, offset, file.contents)
    nbytes = len(data)
    _copy(target, data, nbytes)
    return nbytes


def _seek(fuse: Any, path: bytes | None, offset: int, whence: int, file: Any) -> int:
    """Return the offset of the next data or hole in an open file. mfusepy has no method for this operation."""
    found: int = fuse.operations.lseek(
        None if path is None else os.fsdecode(path), offset, whence, file.contents
    )
    return found


def _truncate(fuse: Any, path: bytes | None, length: int, file: Any) -> int:
    """Truncate with the open file, which mfusepy does not pass on. A file that was removed has no path."""
    handle = file.contents if file else None
    result: int = fuse.operations.truncate(None if path is None else os.fsdecode(path), length, handle)
    return result


def _directory_reader(module: Any, layout: StatusLayout) -> Callable[..., int]:
    """Return the method of libfuse 3 that reads a directory. mfusepy passes the names of entries only.

    The names are passed with the types and inode numbers of the files, so that programs such as ``find`` need no other
    request, and with all attributes if the kernel asks for them (FUSE_READDIRPLUS).
    """

    def read_directory(
        fuse: Any, path: bytes, buffer: Any, fill: Callable[..., int], offset: int, file: Any, flags: int
    ) -> int:
        entries = fuse.operations.read_directory(
            os.fsdecode(path), file.contents.fh, offset, bool(flags & READDIR_PLUS)
        )
        status = module.c_stat()
        reference = ctypes.byref(status)
        for name, kind, attributes, _, inode in entries:
            offset += 1
            if attributes is None:
                layout.write_entry(kind, inode, status)
                is_full = fill(buffer, os.fsencode(name), reference, offset, 0)
            else:
                layout.write(attributes, status)
                is_full = fill(buffer, os.fsencode(name), reference, offset, FILL_DIR_PLUS)
            if is_full:
                break  # The page is full.
        return 0

    return read_directory


@contextmanager
def _keeping_signal_handlers(module: Any) -> Iterator[None]:
    """Keep the handler of SIGINT. The bindings reset it, and libfuse then installs its own handler."""
    original = module.signal
    module.signal = lambda *arguments: signal.SIG_DFL
    try:
        yield
    finally:
        module.signal = original


def _rename_with_flags(fuse: Any, old: bytes, new: bytes, flags: int) -> int:
    """Rename with the flags of renameat2, which mfusepy ignores."""
    if flags & ~RENAME_NOREPLACE:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    if flags:
        try:
            fuse.operations.getattr(os.fsdecode(new))
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        else:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST))
    result: int = fuse.rename_fuse_2(old, new)
    return result


class FusepyOperations:
    """Operations in the form that fusepy requires. It calls the object with the name of the operation."""

    def __init__(self, operations: object) -> None:
        self._operations = operations

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operations, name)

    def __call__(self, operation: str, *arguments: Any) -> Any:
        return getattr(self, operation)(*arguments)

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        # fusepy accepts only bytes. mfusepy copies from any ctypes array.
        operations: Any = self._operations
        return bytes(operations.read(path, size, offset, fh))


def load_binding() -> Binding:
    """Return the binding. Raises MountError, with instructions for installation, if there is none."""
    requested = os.environ.get(BINDING_VARIABLE, "")
    if requested and requested not in MODULES:
        raise MountError(f"{BINDING_VARIABLE} is {requested!r}; expected one of {', '.join(MODULES)}")
    if "FUSE_LIBRARY_NAME" not in os.environ and ctypes.util.find_library("fuse3"):
        # mfusepy prefers libfuse 2 if both libraries are installed.
        os.environ["FUSE_LIBRARY_NAME"] = "fuse3"
    failures = []
    for name in [requested] if requested else list(MODULES):
        try:
            return Binding(name, importlib.import_module(MODULES[name]))
        except (ImportError, OSError, AttributeError) as error:
            failures.append(f"{name}: {error}")
    raise MountError(
        f"FUSE is not available ({'; '.join(failures)}). Install libfuse (Debian, Ubuntu: apt install fuse3) and the "
        "Python package mfusepy. `zarrfs doctor` shows more"
    )
