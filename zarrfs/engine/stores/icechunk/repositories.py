"""Repositories of Icechunk: opening and creating them, and their versions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from zarrfs.engine.stores.icechunk.addresses import PREFIX, is_repository, is_url
from zarrfs.errors import LocationError, LocationNotFoundError, OptionError, ServerError, ZarrError
from zarrfs.libraries import load_library

__all__ = ["Repository", "Version", "icechunk_reason", "load_icechunk"]

BRANCH_PREFIX, TAG_PREFIX, SNAPSHOT_PREFIX = "branch.", "tag.", "snapshot."
"""Before the name of a version whose kind is stated, as in the URLs of TensorStore."""

SNAPSHOT_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{20}")
"""The ID of a snapshot: 12 bytes in the base 32 of Crockford."""

DEFAULT_BRANCH = "main"

LOG_VARIABLE = "ICECHUNK_LOG"

MAX_LISTED_NAMES = 10

S3_OPTIONS = {
    "key": "access_key_id",
    "secret": "secret_access_key",
    "token": "session_token",
    "anon": "anonymous",
    **{
        name: name
        for name in (
            *("access_key_id", "secret_access_key", "session_token", "anonymous", "from_env", "region"),
            *("endpoint_url", "allow_http", "force_path_style", "requester_pays"),
        )
    },
}
GCS_OPTIONS = {
    "anon": "anonymous",
    **{
        name: name
        for name in (
            *("anonymous", "from_env", "service_account_file", "service_account_key"),
            *("application_credentials", "bearer_token", "config"),
        )
    },
}
AZURE_OPTIONS = {
    "account_name": "account",
    "account_key": "access_key",
    "anon": "anonymous",
    **{
        name: name
        for name in (
            *("account", "access_key", "sas_token", "bearer_token", "anonymous", "from_env", "config"),
        )
    },
}
HTTP_OPTIONS = {"opts": "opts", "headers": "headers"}
"""Storage options, by the names of fsspec and of icechunk -> the names of icechunk."""


def load_icechunk() -> Any:
    """Import icechunk. Raises LocationError with the command that installs it.

    Its log writes to standard error, also for each local repository that is opened. It is limited to errors, unless the
    user has configured it.
    """
    icechunk = load_library("icechunk", "icechunk", "opening a repository of Icechunk")
    if LOG_VARIABLE not in os.environ:
        icechunk.set_logs_filter("error")
    return icechunk


def icechunk_reason(error: BaseException) -> str:
    """Return the message of an error of icechunk without the lines that describe its calls."""
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    # Version 1 writes "x" before the message and "|" before the other lines.
    words = text.partition("context:")[0].replace("|", " ").strip().removeprefix("x ").split()
    return " ".join(words) or type(error).__name__


class Version(NamedTuple):
    """A version of a repository. One of the first three is not None.

    Attributes:
        branch, tag, snapshot: the name or ID.
        as_of: the time of the last snapshot of the branch that is read; None: the newest one.
    """

    branch: str | None = None
    tag: str | None = None
    snapshot: str | None = None
    as_of: datetime | None = None

    @property
    def is_writable(self) -> bool:
        """Whether snapshots can be added to it."""
        return self.branch is not None and self.as_of is None

    @property
    def description(self) -> str:
        """What it is, for messages."""
        if self.as_of is not None:
            return f"the branch {self.branch!r} at {self.as_of.isoformat()}"
        if self.branch is not None:
            return f"the branch {self.branch!r}"
        return f"the tag {self.tag!r}" if self.tag is not None else f"the snapshot {self.snapshot}"

    @property
    def suffix(self) -> str:
        """The text after ``@`` in a location."""
        if self.as_of is not None:
            return self.as_of.isoformat()
        return self.branch or self.tag or self.snapshot or ""


class Repository:
    """An open repository. ``url`` is its location without a version. Pickled by its address and options."""

    def __init__(
        self,
        address: str,
        options: Mapping[str, Any],
        *,
        create: bool = False,
        allow_external: bool = False,
    ) -> None:
        self.address = address
        self.options = dict(options)
        self.allow_external = allow_external
        self.url = PREFIX + address
        self._icechunk = load_icechunk()
        if not create and not is_url(address) and not is_repository(address):
            # Version 1 of icechunk creates the directory when it looks into it.
            raise self._missing()
        places = {name: value for name, value in self.options.items() if name != VIRTUAL}
        storage = _make_storage(self._icechunk, address, places)
        with self.errors("opening the repository"):
            if self._icechunk.Repository.exists(storage):
                access = self._virtual_access(storage)
                self._repository = self._icechunk.Repository.open(
                    storage, authorize_virtual_chunk_access=access
                )
            elif create:
                self._repository = self._icechunk.Repository.create(storage)
            else:
                raise self._missing()

    def _missing(self) -> LocationNotFoundError:
        return LocationNotFoundError(f"{self.url}: there is no repository of Icechunk here")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Repository, allow_external=self.allow_external), (self.address, self.options)

    def _virtual_access(self, storage: Any) -> dict[str, Any] | None:
        """Return the credentials of the containers of virtual chunks that may be read; None if there are none.

        A container is a prefix of URLs of other files. The storage option ``virtual`` names containers and their
        options; ``allow_external`` allows all others.
        """
        given = self.options.get(VIRTUAL) or {}
        if not isinstance(given, Mapping):
            raise OptionError(
                f"the storage option {VIRTUAL!r} must be a mapping of prefixes of URLs to options, found {given!r}"
            )
        if not given and not self.allow_external:
            return None
        config = self._icechunk.Repository.fetch_config(storage)
        prefixes = list((config and config.virtual_chunk_containers) or {})
        for prefix in given:
            if prefix not in prefixes:
                raise OptionError(
                    f"{self.url}: the repository has no container of virtual chunks {prefix!r}; it has "
                    f"{', '.join(map(repr, prefixes)) or 'none'}"
                )
        allowed = prefixes if self.allow_external else list(given)
        return {prefix: self._credentials(prefix, given.get(prefix)) for prefix in allowed} or None

    def _credentials(self, prefix: str, options: Any) -> Any:
        """Return the credentials of icechunk for the files below a URL, by default those of the environment."""
        scheme = prefix.partition("://")[0].lower()
        kinds = self._icechunk.Credentials
        if scheme in ACCESS_NAMES:
            # Version 1 has None instead.
            access = getattr(kinds, ACCESS_NAMES[scheme], None)
            return None if access is None else access()
        service, names = CREDENTIALS.get(scheme, (None, {}))
        if service is None:
            raise LocationError(f"{self.url}: virtual chunks at {prefix} are not supported")
        chosen = options if isinstance(options, Mapping) else {}
        arguments = _translated(f"the container of virtual chunks {prefix}", chosen, names)
        made = getattr(self._icechunk, f"{service}_credentials")(**(arguments or {"from_env": True}))
        return self._icechunk.containers_credentials({prefix: made})[prefix]

    @contextmanager
    def errors(self, operation: str) -> Iterator[None]:
        """Raise errors of icechunk as LocationError or, for a server, as ServerError."""
        try:
            yield
        except ZarrError:
            raise
        except Exception as error:
            kind = ServerError if is_url(self.address) else LocationError
            raise kind(f"{self.url}: {operation} failed: {icechunk_reason(error)}") from error

    def branches(self) -> list[str]:
        """Return the names of the branches, sorted."""
        with self.errors("listing the branches"):
            return sorted(self._repository.list_branches())

    def tags(self) -> list[str]:
        """Return the names of the tags, sorted."""
        with self.errors("listing the tags"):
            return sorted(self._repository.list_tags())

    def history(self, branch: str, count: int) -> list[tuple[str, datetime, str]]:
        """Return ID, time and message of the last snapshots of a branch, the newest first."""
        with self.errors(f"listing the snapshots of the branch {branch!r}"):
            ancestry = islice(self._repository.ancestry(branch=branch), count)
            return [(each.id, each.written_at, each.message) for each in ancestry]

    def find_version(self, text: str) -> Version:
        """Return the version with a name: of a branch, a tag or a snapshot, or a time on the branch main.

        A kind can be stated: ``branch.NAME``, ``tag.NAME``, ``snapshot.ID``. Raises LocationError.
        """
        branches = self.branches()
        if text in branches:
            return Version(branch=text)
        tags = self.tags()
        if text in tags:
            return Version(tag=text)
        if text.startswith(BRANCH_PREFIX) and text.removeprefix(BRANCH_PREFIX) in branches:
            return Version(branch=text.removeprefix(BRANCH_PREFIX))
        if text.startswith(TAG_PREFIX) and text.removeprefix(TAG_PREFIX) in tags:
            return Version(tag=text.removeprefix(TAG_PREFIX))
        snapshot = text.removeprefix(SNAPSHOT_PREFIX).rpartition(".")[2].upper()
        if SNAPSHOT_ID.fullmatch(snapshot):
            return Version(snapshot=snapshot)
        as_of = parse_time(text)
        if as_of is not None:
            return Version(branch=DEFAULT_BRANCH, as_of=as_of)
        raise LocationError(
            f"{self.url}: there is no branch, tag or snapshot {text!r}; expected {_listed('branch', branches)}, "
            f"{_listed('tag', tags)}, the ID of a snapshot, or a time such as 2026-11-26T08:00:00Z"
        )

    def readonly_session(self, version: Version) -> Any:
        """Return a session that reads a version."""
        self._check_names(version)
        arguments: dict[str, Any] = {"branch": version.branch}
        if version.tag is not None:
            arguments = {"tag": version.tag}
        elif version.snapshot is not None:
            arguments = {"snapshot_id": version.snapshot}
        elif version.as_of is not None:
            arguments["as_of"] = version.as_of
        with self.errors(f"opening {version.description}"):
            return self._repository.readonly_session(**arguments)

    def writable_session(self, version: Version) -> Any:
        """Return a session that writes to a branch. Raises LocationError for other versions."""
        if not version.is_writable:
            raise LocationError(
                f"{self.url}: {version.description} cannot be changed; open a branch, such as "
                f"{self.url}@{DEFAULT_BRANCH}"
            )
        self._check_names(version)
        with self.errors(f"opening {version.description}"):
            return self._repository.writable_session(version.branch)

    def _check_names(self, version: Version) -> None:
        """Raise LocationError with the existing names if a branch or tag does not exist."""
        for kind, name, names in (
            ("branch", version.branch, self.branches),
            ("tag", version.tag, self.tags),
        ):
            if name is not None and name not in (existing := names()):
                raise LocationError(
                    f"{self.url}: there is no {kind} {name!r}; expected {_listed(kind, existing)}"
                )


def _listed(kind: str, names: list[str]) -> str:
    """Return the text of a choice between names."""
    if not names:
        return f"a {kind} (there are none)"
    more = ", ..." if len(names) > MAX_LISTED_NAMES else ""
    return f"the {kind} {' or '.join(map(repr, names[:MAX_LISTED_NAMES]))}{more}"


def parse_time(text: str) -> datetime | None:
    """Return the time that a text in the format of ISO 8601 states, by default in UTC; None for other texts."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _make_storage(icechunk: Any, address: str, options: Mapping[str, Any]) -> Any:
    """Return the storage of icechunk for a path or URL. Raises OptionError or LocationError."""
    if not is_url(address):
        _translated("a local repository", options, {})
        return icechunk.local_filesystem_storage(address)
    parts = urlsplit(address)
    scheme, place = parts.scheme.lower(), parts.path.strip("/")
    maker = STORAGES.get(scheme)
    if maker is None:
        raise LocationError(
            f"{PREFIX}{address}: repositories at {scheme}:// URLs are not supported; expected a path or a URL of "
            f"{', '.join(STORAGES)}"
        )
    try:
        return maker(icechunk, address, parts.netloc, place, options)
    except ZarrError:
        raise
    except Exception as error:
        raise LocationError(f"{PREFIX}{address} cannot be opened: {icechunk_reason(error)}") from error


def _s3_storage(icechunk: Any, url: str, bucket: str, prefix: str, options: Mapping[str, Any]) -> Any:
    given = dict(options)
    client = given.pop("client_kwargs", None) or {}
    arguments = _translated("a repository in S3", {**_region(client), **given}, S3_OPTIONS)
    endpoint = arguments.get("endpoint_url")
    if endpoint:  # Servers other than Amazon's have no host for each bucket, and clients need a region.
        arguments.setdefault("allow_http", str(endpoint).startswith("http://"))
        arguments.setdefault("force_path_style", True)
        arguments.setdefault("region", "us-east-1")
    return icechunk.s3_storage(bucket=bucket, prefix=prefix or None, **arguments)


def _region(client: Mapping[str, Any]) -> dict[str, Any]:
    """Translate ``client_kwargs`` of s3fs."""
    names = {"region_name": "region", "endpoint_url": "endpoint_url"}
    return {names.get(name, f"client_kwargs.{name}"): value for name, value in client.items()}


def _gcs_storage(icechunk: Any, url: str, bucket: str, prefix: str, options: Mapping[str, Any]) -> Any:
    arguments = _translated("a repository in Google Cloud Storage", options, GCS_OPTIONS)
    return icechunk.gcs_storage(bucket=bucket, prefix=prefix or None, **arguments)


def _azure_storage(icechunk: Any, url: str, container: str, prefix: str, options: Mapping[str, Any]) -> Any:
    arguments = _translated("a repository in Azure", options, AZURE_OPTIONS)
    if "account" not in arguments:
        raise OptionError(f"{PREFIX}{url}: the storage option 'account_name' is missing")
    return icechunk.azure_storage(container=container, prefix=prefix, **arguments)


def _http_storage(icechunk: Any, url: str, host: str, path: str, options: Mapping[str, Any]) -> Any:
    return icechunk.http_storage(url, **_translated("a repository on the web", options, HTTP_OPTIONS))


STORAGES: dict[str, Callable[[Any, str, str, str, Mapping[str, Any]], Any]] = {
    "s3": _s3_storage,
    "gs": _gcs_storage,
    "gcs": _gcs_storage,
    "az": _azure_storage,
    "abfs": _azure_storage,
    "http": _http_storage,
    "https": _http_storage,
}
"""Scheme -> the function that makes the storage."""


def _translated(where: str, options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return options with the names of icechunk. Raises OptionError for an option that ``names`` does not contain."""
    for name in options:
        if name not in names:
            known = ", ".join(map(repr, (*SESSION_OPTIONS, VIRTUAL, *names)))
            raise OptionError(f"{where} does not accept the storage option {name!r}; it accepts {known}")
    return {names[name]: value for name, value in options.items()}


SESSION_OPTIONS = ("branch", "tag", "snapshot", "as_of", "message")
VIRTUAL = "virtual"
"""The storage options of all repositories."""

ACCESS_NAMES = {"file": "LocalFileSystemAccess", "http": "HttpAccess", "https": "HttpAccess"}
"""Scheme of virtual chunks that need no credentials -> what icechunk has in their place."""

CREDENTIALS: dict[str, tuple[str, dict[str, str]]] = {
    "s3": (
        "s3",
        {
            name: S3_OPTIONS[name]
            for name in (
                *("key", "secret", "token", "anon", "access_key_id", "secret_access_key", "session_token"),
                *("anonymous", "from_env"),
            )
        },
    ),
    **dict.fromkeys(
        ("gs", "gcs"), ("gcs", {name: value for name, value in GCS_OPTIONS.items() if name != "config"})
    ),
    **dict.fromkeys(
        ("az", "azure", "abfs"),
        (
            "azure",
            {name: AZURE_OPTIONS[name] for name in ("account_key", "access_key", "sas_token", "from_env")},
        ),
    ),
}
"""Scheme of virtual chunks -> the service, and the options of its credentials by their names."""
