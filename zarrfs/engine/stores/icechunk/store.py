"""Sessions of Icechunk as stores: a version that is read, or a branch to which one snapshot is added."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from zarrfs._version import __version__
from zarrfs.engine.stores.base import IMMUTABLE, Buffer, ByteRange, Listing
from zarrfs.engine.stores.icechunk.addresses import is_url, split_address, split_version
from zarrfs.engine.stores.icechunk.repositories import (
    DEFAULT_BRANCH,
    SESSION_OPTIONS,
    Repository,
    Version,
    icechunk_reason,
    parse_time,
)
from zarrfs.engine.stores.zarr_python import ZarrPythonStore
from zarrfs.errors import OptionError, StoreError
from zarrfs.logs import logger

__all__ = ["IcechunkStore", "open_icechunk", "open_repository"]

MAIN = Version(branch=DEFAULT_BRANCH)

DEFAULT_MESSAGE = f"zarrfs {__version__}"


class IcechunkStore(ZarrPythonStore):
    """A version of a repository, for reading, or the changes of a branch.

    A version that is read does not change: later snapshots of its branch are visible when it is opened again. Changes
    are visible in this store only, until ``commit``, ``flush`` or ``close`` adds them to the branch as one snapshot.
    ``roll_back`` drops them, and so does the end of the process.
    """

    def __init__(
        self, repository: Repository, version: Version, *, read_only: bool, message: str | None = None
    ) -> None:
        self.repository = repository
        self.version_read = version
        self.message = message or DEFAULT_MESSAGE
        self._changes = 0
        self._commit_lock = threading.RLock()
        self._session: Any = None
        open_session = repository.readonly_session if read_only else repository.writable_session
        self._session = open_session(version)
        super().__init__(self._session.store)
        self.is_remote = is_url(repository.address)
        # Other processes see no changes before they are committed.
        self.in_process = not read_only
        if not self.is_remote:
            self.concurrency = 1

    @property
    def url(self) -> str:
        return f"{self.repository.url}@{self.version_read.suffix}"

    @property
    def snapshot(self) -> str:
        """The ID of the snapshot that is read, or from which the changes start."""
        return str(self._session.snapshot_id)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, IcechunkStore)
            and self.read_only
            and other.read_only
            and (self.url, self.snapshot) == (other.url, other.snapshot)
        )

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.read_only:
            raise StoreError(
                f"{self.url} is open for writing and can be used by one process only: its changes are committed by the "
                "process that opened it"
            )
        return _reopen, (self.repository, Version(snapshot=self.snapshot))

    def _reason(self, error: Exception) -> str:
        reason = icechunk_reason(error)
        if "authorize the virtual chunk container" in reason:
            reason += (
                ". Open with allow_external=True (--allow-external) if you trust the repository to name other files, "
                "or name the prefix in the storage option 'virtual'"
            )
        return reason

    # -- reading -----------------------------------------------------------------------------------------------

    def get_ranges(self, key: str, ranges: Sequence[ByteRange]) -> list[Buffer] | None:
        """Request the ranges of a chunk without its size. Only if they are not within the chunk, the size is requested.

        Ranges of documents always need it: icechunk ends its thread if they are past the end. For ranges of chunks past
        the end, version 1 returns other bytes, and version 2 raises an error.
        """
        self._check_open()
        lengths = [-start if start < 0 else length for start, length in ranges]
        if key.endswith("zarr.json") or not self._is_possible(key) or not lengths or not all(lengths):
            return super().get_ranges(key, ranges)
        try:
            values = self._sync(self._get_parts(key, ranges))
        except Exception:  # the requests for the clipped ranges raise other errors
            return super().get_ranges(key, ranges)
        if None in values:
            return None
        parts: list[Buffer] = [value.to_bytes() for value in values]
        return parts if [len(part) for part in parts] == lengths else super().get_ranges(key, ranges)

    async def _get_parts(self, key: str, ranges: Sequence[ByteRange]) -> list[Any]:
        from asyncio import gather

        from zarr.abc.store import RangeByteRequest, SuffixByteRequest

        requests = (
            SuffixByteRequest(-start) if start < 0 else RangeByteRequest(start, start + (length or 0))
            for start, length in ranges
        )
        return list(await gather(*(self._get_or_none(key, request) for request in requests)))

    async def _get_or_none(self, key: str, request: Any = None) -> Any:
        try:
            return await super()._get_or_none(key, request)
        except Exception as error:
            # Version 1 raises an error of its general class for the chunks of an array that does not exist.
            if icechunk_reason(error).startswith("node not found"):
                return None
            raise

    async def _get_size(self, key: str) -> int | None:
        try:
            size = int(await self.zarr_store.getsize(key))
        except KeyError:
            return None
        # The size of a missing chunk is 0.
        return size if size or await self.zarr_store.exists(key) else None

    def stamp(self, key: str) -> Hashable | None:
        self._check_open()
        return IMMUTABLE if self.read_only else self._changes

    def list_dir(self, prefix: str = "") -> Listing:
        self._check_open()
        names = self._run(f"listing {prefix!r}", self._list_names(prefix))
        return Listing(
            sorted({name for name, is_key in names if is_key}),
            sorted({name for name, is_key in names if not is_key}),
        )

    # -- writing -----------------------------------------------------------------------------------------------

    def set(self, key: str, value: Buffer) -> None:
        super().set(key, value)
        self._changes += 1

    def delete(self, key: str) -> None:
        super().delete(key)
        self._changes += 1

    @property
    def has_changes(self) -> bool:
        """Whether there are changes that are not committed."""
        return not self._closed and not self.read_only and bool(self._session.has_uncommitted_changes)

    def commit(self, message: str | None = None) -> str | None:
        """Add the changes to the branch as one snapshot, and return its ID; None if nothing was changed.

        ``message`` describes the snapshot; by default it is that with which the store was opened. Raises StoreError if
        the branch has got another snapshot meanwhile. The changes are then kept, but cannot be committed.
        """
        self._check_open()
        with self._commit_lock:
            if self.read_only:
                raise self._read_only_error("committing")
            if not self.has_changes:
                return None
            try:
                snapshot = str(self._session.commit(message or self.message))
            except Exception as error:
                if type(error).__name__ == "ConflictError":
                    raise StoreError(
                        f"{self.url}: another writer has added a snapshot to the branch since it was opened at the "
                        f"snapshot {self.snapshot}; nothing was committed. Open the branch again and repeat the changes"
                    ) from error
                raise StoreError(f"{self.url}: the commit failed: {icechunk_reason(error)}") from error
            self._begin_session(snapshot)
            return snapshot

    def _begin_session(self, snapshot: str) -> None:
        """Continue with a new session: one that was committed cannot be changed."""
        self._session = self.repository.writable_session(self.version_read)
        self.zarr_store = self._session.store
        if self.snapshot != snapshot:  # Another writer was faster.
            self._changes += 1

    def close(self) -> None:
        """Commit the changes, and close. If that fails, the store is closed, and the changes are dropped."""
        if self._closed:
            return
        try:
            if not self.read_only:
                self.commit()
        finally:
            super().close()

    def flush(self) -> None:
        """Commit the changes."""
        if not self._closed and not self.read_only:
            self.commit()

    def roll_back(self) -> None:
        """Drop the changes: the branch stays as it was."""
        with self._commit_lock:
            if self.has_changes:
                self._session.discard_changes()
                self._changes += 1

    def discard(self) -> None:
        """Close without a commit."""
        self.roll_back()
        self.close()

    def __del__(self) -> None:
        if not self._closed and self._session is not None and self.has_changes:
            logger.error("%s was not closed: its changes are not committed, and are lost", self.url)


def _reopen(repository: Repository, version: Version) -> IcechunkStore:
    return IcechunkStore(repository, version, read_only=True)


def open_icechunk(
    location: str, mode: str, options: Mapping[str, Any] | None, *, allow_external: bool = False
) -> tuple[IcechunkStore, str]:
    """Open a location of Icechunk. Return the store of its version, and the path in it.

    ``allow_external``: whether virtual chunks in other files may be read.

    Without a version it is the branch main. In the modes "a" and "w" a repository that does not exist is created.
    Raises LocationError, LocationNotFoundError, OptionError and, for a server, ServerError.
    """
    given = dict(options or {})
    session = {name: given.pop(name) for name in SESSION_OPTIONS if name in given}
    message = session.pop("message", None)
    for name, value in {**session, "message": message}.items():
        if not isinstance(value, str) and not (name == "message" and value is None):
            raise OptionError(f"the storage option {name!r} must be a text, found {value!r}")
    address = split_address(location, has_version=bool(session))
    version, path = _version_of_options(session), address.path
    # A new repository has the branch main only.
    is_main = version in (None, MAIN) and split_version(address.version, ())[0] in ("", DEFAULT_BRANCH)
    repository = Repository(
        address.repository,
        given,
        create=mode in ("a", "w") and is_main,
        allow_external=allow_external,
    )
    if version is None and address.version:
        name, path = split_version(address.version, {*repository.branches(), *repository.tags()})
        version = repository.find_version(name)
    store = IcechunkStore(repository, version or MAIN, read_only=mode == "r", message=message)
    return store, path


def open_repository(location: str, options: Mapping[str, Any] | None) -> Repository | None:
    """Open the repository of a location; None if the location or the options name a version or a path in it."""
    given = {name: value for name, value in (options or {}).items() if name != "message"}
    if any(name in given for name in SESSION_OPTIONS):
        return None
    address = split_address(location, has_version=False)
    allow_external = bool(given.pop("allow_external", False))
    if address.version or address.path:
        return None
    return Repository(address.repository, given, allow_external=allow_external)


def _version_of_options(options: Mapping[str, str]) -> Version | None:
    """Return the version that storage options name; None if there are none."""
    if not options:
        return None
    names = [name for name in ("branch", "tag", "snapshot") if name in options]
    if len(names) > 1 or ("as_of" in options and names not in ([], ["branch"])):
        raise OptionError(
            f"the storage options {' and '.join(map(repr, options))} exclude each other: name one version"
        )
    as_of = None
    if "as_of" in options:
        as_of = parse_time(options["as_of"])
        if as_of is None:
            raise OptionError(
                f"the storage option 'as_of' must be a time such as 2026-11-26T08:00:00Z, found {options['as_of']!r}"
            )
        return Version(branch=options.get("branch", DEFAULT_BRANCH), as_of=as_of)
    return Version(options.get("branch"), options.get("tag"), options.get("snapshot"))
