"""The options of a mount."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = [
    "DEFAULT_RETRIES",
    "DEFAULT_TIMEOUT_SECONDS",
    "CreationOptions",
    "MountOptions",
    "default_cache_size",
]

CACHE_MEMORY_DIVISOR = 4
"""The default chunk cache uses at most a quarter of the memory. A sequential read of a file accesses each chunk once
for every plane that the chunk contains.
"""


DEFAULT_TIMEOUT_SECONDS = 30.0

DEFAULT_RETRIES = 2


@dataclass(frozen=True)
class CreationOptions:
    """How new arrays are stored, unless the extended attributes of a file state otherwise.

    Attributes:
        zarr_format: the format; None for that of the group.
        chunks: the chunk shape of arrays of this number of dimensions, or one length for all dimensions; None or
            ``"auto"`` for an automatic one.
        compressors: the bytes->bytes codecs as for ``create_array``; None or ``"auto"`` for the default, ``"none"`` for
            no compression.
    """

    zarr_format: int | str | None = None
    chunks: tuple[int, ...] | int | str | None = None
    compressors: Any = None

    def for_array(self, ndim: int) -> dict[str, Any]:
        """Return the options of ``create_array`` for an array of ``ndim`` dimensions."""
        options: dict[str, Any] = {}
        if self.zarr_format is not None:
            options["zarr_format"] = self.zarr_format
        if isinstance(self.chunks, int) or (isinstance(self.chunks, tuple) and len(self.chunks) == ndim):
            options["chunks"] = self.chunks
        if self.compressors is not None:
            options["compressors"] = None if self.compressors == "none" else self.compressors
        return options


@dataclass(frozen=True)
class MountOptions:
    """The options of a mount.

    Attributes:
        path: the node below the location that becomes the root of the mount. It applies to a single location.
        cache_size: the size of the caches in bytes; None for a quarter of the memory.
        views: the kinds of files that directory listings contain, by suffix without the dot (``("npy", "nii")``);
            ``("all",)`` for all kinds; None for the default ones.
        order: the memory order of the files of elements that are listed by default: ``"C"`` for ``.npy`` and ``.raw``,
            ``"F"`` for ``.F.npy`` and ``.F.raw``.
        immutable: whether the store is guaranteed not to change, so that the kernel may cache without revalidation.
        allow_other: whether other users can access the mount. The kernel then checks file permissions.
        uid, gid: the owner and the group of all files; None for those of the process, or with ``allow_other`` those of
            the files of a local store.
        umask: the permission bits that no file has; None for none.
        timeout: the maximum time in seconds of a request to a remote store, repetitions included.
        retries: how often a failed request to a remote store is repeated.
        on_error: what a corrupt chunk reads as: ``"eio"`` an input/output error, ``"fill"`` the fill value.
        log_file: the log file of a background mount; None for ``mount.log`` in the state directory of the user.
        log_level: the minimum level of messages in the log: debug, info, warning or error; None for that of the logger.
        debug: whether libfuse prints each request on standard error. It needs a mount in the foreground.
        metrics: the port on 127.0.0.1 at which statistics are served as Prometheus text; None for no server.
        fuse_options: additional ``-o`` options of libfuse.
        storage_options: the fsspec options for a URL, such as credentials.
        password: the password for the user in the location.
        max_document: the maximum size of a metadata document in bytes; None for the default.
        writable: whether files can be changed. The store is then opened for writing.
        creation: how new arrays are stored, if the mount is writable.
        synchronizer: the directory of a ``ProcessSynchronizer`` that other writers of the store use. None: writers of a
            directory exclude each other by locks of its files; writers of other stores do not exclude each other.
    """

    path: str = ""
    cache_size: int | None = None
    views: tuple[str, ...] | None = None
    order: Literal["C", "F"] = "C"
    immutable: bool = False
    allow_other: bool = False
    uid: int | None = None
    gid: int | None = None
    umask: int | None = None
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    retries: int = DEFAULT_RETRIES
    on_error: Literal["eio", "fill"] = "eio"
    log_file: str | None = None
    log_level: str | None = None
    debug: bool = False
    metrics: int | None = None
    fuse_options: tuple[str, ...] = ()
    storage_options: dict[str, Any] | None = None
    password: str | None = None
    max_document: int | None = None
    writable: bool = False
    creation: CreationOptions = field(default_factory=CreationOptions)
    synchronizer: str | None = None


def default_cache_size() -> int:
    """Return the default size of the chunk cache of a mount in bytes."""
    # The options are imported for the help of the command line, which does not need NumPy.
    from zarrfs.engine.cache import available_memory

    return available_memory() // CACHE_MEMORY_DIVISOR
