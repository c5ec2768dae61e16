"""The versions of a repository of Icechunk, as the sources of a mount: branches, tags and the last snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from urllib.parse import quote

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.icechunk.addresses import is_icechunk
from zarrfs.errors import MountError
from zarrfs.logs import logger
from zarrfs.mount.options import MountOptions
from zarrfs.mount.process.sources import is_on_server, limited_in_time, with_password

__all__ = ["MAX_NAMES", "MAX_SNAPSHOTS", "open_versions"]

MAX_NAMES = 100
"""The maximum number of branches, and of tags, that become directories."""

MAX_SNAPSHOTS = 20
"""The number of the last snapshots of all branches that become directories."""

TIME_FORMAT = "%Y-%m-%dT%H.%M.%S.%f"
"""The names of snapshots are in the order of their times, also of several snapshots in one second."""


def open_versions(locations: Sequence[str | Store], options: MountOptions) -> dict[str, Store] | None:
    """Return the stores of the versions of a repository by the names of their directories.

    None if the locations are not a single repository without a version and a path, or if the mount is writable. The
    names are ``branch.NAME``, ``tag.NAME`` and ``snapshot.TIME.ID``, which can also follow ``@`` in a location. The
    time is in UTC. Versions without data, such as the first snapshot of each repository, are omitted. The caller closes
    the stores. Raises ZarrError.
    """
    location = locations[0]
    if len(locations) > 1 or options.writable or options.path or not is_icechunk(location):
        return None
    located, storage = with_password(str(location), options)
    from zarrfs.engine.stores.icechunk.store import IcechunkStore, open_repository

    repository = open_repository(located, storage)
    if repository is None:
        return None
    snapshots: dict[str, str] = {}
    branches = repository.branches()
    latest = sorted(
        {entry[:2] for branch in branches for entry in repository.history(branch, MAX_SNAPSHOTS)},
        key=lambda entry: entry[1],
        reverse=True,
    )[:MAX_SNAPSHOTS]
    for identifier, time in latest:
        snapshots[f"snapshot.{time.strftime(TIME_FORMAT)}.{identifier}"] = identifier
    names = {
        **_named("branch", branches, repository.url),
        **_named("tag", repository.tags(), repository.url),
        **{name: f"snapshot.{identifier}" for name, identifier in snapshots.items()},
    }
    stores: dict[str, Store] = {}
    with ExitStack() as stack:
        for name, version in names.items():
            store: Store = IcechunkStore(repository, repository.find_version(version), read_only=True)
            if is_on_server(location):
                store = limited_in_time(store, options)
            stack.callback(store.close)
            if store.exists("zarr.json"):
                stores[name] = store
        if not stores:
            raise MountError(f"{repository.url}: no branch, tag or snapshot contains an array or a group")
        stack.pop_all()
    return stores


def _named(kind: str, names: Sequence[str], url: str) -> dict[str, str]:
    """Return the names of directories -> the names after ``@``."""
    if len(names) > MAX_NAMES:
        logger.warning(
            "%s has %d names of kind %s; the first %d are directories of the mount. Mount a version to access another "
            "one: %s@%s",
            *(url, len(names), kind, MAX_NAMES, url, names[-1]),
        )
    return {f"{kind}.{quote(name, safe=' @+:,')}": f"{kind}.{name}" for name in names[:MAX_NAMES]}
