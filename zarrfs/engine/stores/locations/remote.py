"""Opening of URLs with fsspec."""

from __future__ import annotations

import os
from urllib.parse import unquote

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.locations.local import METADATA_NAMES
from zarrfs.engine.stores.locations.storage_options import Options
from zarrfs.engine.stores.locations.urls import path_of
from zarrfs.engine.stores.remote.protocols import is_known_protocol
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.engine.stores.zip.remote import RemoteZipStore
from zarrfs.errors import LocationError, OptionError

__all__ = ["open_references", "open_remote"]

ARCHIVE_SUFFIXES = (".zip", ".ozx")


def open_remote(
    url: str, scheme: str, read_only: bool, storage_options: Options, external: bool
) -> tuple[Store, str]:
    """Open a URL with fsspec. Return the store and the path in it.

    A zip file is opened as an archive, and the rest of the path is a path in it. The name of a metadata document refers
    to the directory that contains it.
    """
    if not all(is_known_protocol(part) for part in scheme.split("::")):
        raise LocationError(
            f"{url}: {scheme!r} URLs are not supported; expected a path, or a URL such as file://, https:// or s3://; "
            "if another package opens them (entry point group zarrfs.stores), install it"
        )
    if "durable" in (storage_options or {}):
        raise OptionError(
            f"a {scheme} location does not accept the storage option 'durable'; it applies to local files only"
        )
    path = path_of(url) if scheme == "reference" else ""
    if path and ("::" not in url or os.path.lexists(path)):
        return open_references(path, "r" if read_only else "a", storage_options, external), ""
    if scheme.startswith("zip::"):
        return _open_remote_zip(url.removeprefix("zip::"), read_only, storage_options, external), ""
    if scheme == "zip" and "::" in url:  # zip://path/in/it::s3://bucket/a.zip
        inner, _, archive = url.removeprefix("zip://").partition("::")
        return _open_remote_zip(archive, read_only, storage_options, external), inner.strip("/")
    bare, mark, query = url.partition("?")
    head, _, last = bare.rpartition("/")
    if last in METADATA_NAMES:
        bare = head
    elif last.lower().endswith(ARCHIVE_SUFFIXES) and "::" not in scheme:
        return _open_remote_zip(url, read_only, storage_options, external), ""
    archive, inner = ("", "") if "::" in scheme else _split_archive(bare)
    if archive:
        try:
            store = _open_remote_zip(archive + mark + query, True, storage_options, external)
        except LocationError:
            pass  # a directory whose name ends with .zip, or the prefix of objects
        else:
            if not read_only:
                store.close()
                raise _unchangeable(archive)
            return store, unquote(inner) if scheme in ("http", "https") else inner
    return RemoteStore(
        bare + mark + query, read_only=read_only, storage_options=storage_options, allow_external=external
    ), ""


def _split_archive(url: str) -> tuple[str, str]:
    """Return the URL of the first component with the suffix of an archive and the path after it; empty without both."""
    start = url.find("/", url.find("://") + 3)  # a host is not an archive
    ends = [
        url.find(f"{suffix}/", start) + len(suffix)
        for suffix in ARCHIVE_SUFFIXES
        if f"{suffix}/" in url[start:]
    ]
    return (url[: min(ends)], url[min(ends) :].strip("/")) if start >= 0 and ends else ("", "")


def _unchangeable(url: str) -> LocationError:
    return LocationError(f"zip::{url}: a remote zip file cannot be changed; open it with mode 'r'")


def open_references(path: str, mode: str, storage_options: Options, external: bool) -> Store:
    """Open the hierarchy that a local JSON file with references (kerchunk) describes. It is read-only."""
    if mode != "r":
        raise LocationError(
            f"{path}: a file with references (kerchunk) cannot be changed; open it with mode 'r'"
        )
    path = os.path.abspath(path)
    if "::" in path:
        raise LocationError(
            f"{path}: a file with references (kerchunk) cannot be opened if its path contains '::', which separates "
            "the parts of a chain of URLs for fsspec; rename the directory or the file, or open it through a symbolic "
            "link whose path does not contain '::'"
        )
    return RemoteStore(
        f"reference::file://{path}",
        read_only=True,
        storage_options=storage_options,
        allow_external=external,
    )


def _open_remote_zip(url: str, read_only: bool, storage_options: Options, external: bool) -> Store:
    """Open a zip file at a URL. Options for the protocol ``zip`` of fsspec are ignored."""
    if not read_only:
        raise _unchangeable(url)
    bare, mark, query = url.partition("?")
    folder, _, name = bare.rpartition("/")
    if folder.endswith(":/"):  # memory://image.zip
        folder += "/"
    if not name:
        raise LocationError(
            f"zip::{url} has no file name; expected a URL such as zip::https://host/image.zip"
        )
    options = {key: value for key, value in (storage_options or {}).items() if key != "zip"}
    store = RemoteStore(
        folder + mark + query, read_only=True, storage_options=options, allow_external=external
    )
    return RemoteZipStore(store, name)
