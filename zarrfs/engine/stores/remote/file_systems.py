"""Opening the file system of fsspec for a URL, with checks of the local files that the URL or its options name."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from zarrfs.engine.stores.regular_files import check_regular_file
from zarrfs.engine.stores.remote.clients import shared_client
from zarrfs.engine.stores.remote.http import new_session
from zarrfs.engine.stores.remote.protocols import EXTRAS_BY_PROTOCOL, copy_options, redact_url, unknown_option
from zarrfs.engine.stores.remote.references import (
    ReferencePolicy,
    check_generators,
    find_reference_file_system,
    is_local_url,
    is_parquet,
    local_path,
    read_parquet,
    resolve_relative_targets,
)
from zarrfs.errors import LocationError, OptionError, StoreError
from zarrfs.libraries import load_library
from zarrfs.plugins import install_hint

__all__ = ["OpenedFileSystem", "open_file_system", "raise_for_options"]


class OpenedFileSystem(NamedTuple):
    """A file system of fsspec, the path in it that a URL names, and the policy for references (None: all allowed)."""

    file_system: Any
    root: str
    reference_policy: ReferencePolicy | None


def open_file_system(url: str, options: Mapping[str, Any], *, allow_external: bool) -> OpenedFileSystem:
    """Return the file system for a URL or a chain of URLs. ``options`` are those of fsspec and are not changed.

    Raises OptionError for an option that the protocol does not have. Raises LocationError if a package is missing, if
    the file system cannot be opened, if the archive or the file of references that it reads is a local file that is
    not a regular file, or if references are generated (``check_generators``).
    """
    display_url = redact_url(url)
    protocol = url.partition("://")[0].rpartition("::")[2].lower()
    extra = EXTRAS_BY_PROTOCOL.get(protocol)
    fsspec = load_library("fsspec", extra or "remote", f"{display_url}:")
    options = copy_options(options)
    origin, origin_protocol = _find_origin(url, options)
    if origin is not None and is_local_url(origin, origin_protocol):
        _check_local_file(local_path(origin))
    reads_parquet = origin is not None and is_parquet(origin, origin_protocol)
    if url.partition("::")[0].partition("://")[0] == "reference" and (not allow_external or reads_parquet):
        # Without this option the references choose the protocols, and fsspec reads all Parquet files to find them.
        reference_options = _options_of_references(options)
        if "fs" not in reference_options:
            reference_options.setdefault("remote_protocol", _protocol_of(origin, origin_protocol))
    try:
        file_system, root = _open(fsspec, url, options)
        # There is an option for this, but sftp and webdav pass it on to client libraries that do not accept it.
        if isinstance(getattr(file_system, "dircache", None), fsspec.dircache.DirCache):
            file_system.dircache.use_listings_cache = False
        reference_files = find_reference_file_system(file_system)
        if reference_files is not None:
            check_generators(reference_files, display_url)
    except LocationError:
        raise
    except ImportError as error:
        advice = f": {install_hint(extra)}" if extra else ""
        raise LocationError(f"{display_url}: a package is missing{advice} ({error})") from error
    except Exception as error:
        raise_for_options(error, options, display_url)
        raise LocationError(f"{display_url} cannot be opened: {error or type(error).__name__}") from error
    policy = None
    if reference_files is not None:
        if origin is not None:
            remote_options = _options_of_references(options).get("remote_options") or {}
            if reads_parquet:
                read_parquet(reference_files, origin, origin_protocol, remote_options, display_url)
            resolve_relative_targets(reference_files, origin, origin_protocol, remote_options)
        if reads_parquet or not allow_external:
            policy = ReferencePolicy(reference_files, origin, origin_protocol, allow_external=allow_external)
    return OpenedFileSystem(file_system, root, policy)


def _open(fsspec: Any, url: str, options: dict[str, Any]) -> tuple[Any, str]:
    """Return a file system of fsspec and the path in it. URLs of a web server with equal options share one, with its
    connections.
    """
    if url.partition("://")[0].lower() not in ("http", "https"):
        file_system, root = fsspec.core.url_to_fs(url, skip_instance_cache=True, **options)
        return file_system, root
    key = ("http", urlsplit(url)[:2], repr(sorted(options.items())))
    if "connector" not in (options.get("client_kwargs") or {}):
        options.setdefault("get_client", new_session)
    return shared_client(key, lambda: fsspec.core.url_to_fs(url, skip_instance_cache=True, **options)[0]), url


def raise_for_options(error: BaseException, options: Mapping[str, Any], display_url: str) -> None:
    """Raise OptionError if an error of a library means that a storage option is unknown."""
    name = unknown_option(error, options)
    if name is not None:
        raise OptionError(
            f"{display_url}: the storage option {name!r} is unknown; see the documentation of fsspec for the options "
            f"of this protocol ({error})"
        ) from error


def _options_of_references(options: dict[str, Any]) -> dict[str, Any]:
    nested = options.get("reference")
    return nested if isinstance(nested, dict) else options


def _find_origin(url: str, options: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the location and the default protocol of the file that a chain of file systems reads.

    This is an archive or a file of references. Both are None if there is no such file.
    """
    chain, separator, last = url.rpartition("::")
    nested_options = options.get("reference")
    nested_options = nested_options if isinstance(nested_options, Mapping) else options
    if separator and "reference" not in chain.split("::")[-1].partition("://")[0]:
        return last, None
    if separator:
        return last, nested_options.get("target_protocol")
    for name in ("fo", "archive"):
        if isinstance(nested_options.get(name), str):
            return nested_options[name].rpartition("::")[2], nested_options.get("target_protocol")
    return None, None


def _protocol_of(origin: str | None, protocol: str | None) -> str:
    if origin is None:
        return "file"
    return origin.partition("://")[0] if "://" in origin else protocol or "file"


def _check_local_file(path: str) -> None:
    try:
        with suppress(IsADirectoryError):
            check_regular_file(path)
    except StoreError as error:
        raise LocationError(str(error)) from error
    except OSError as error:
        raise LocationError(f"{path} cannot be opened: {error.strerror}") from error
