"""The backend of FTP servers, with the connection of fsspec.

Reading follows RFC 959 (replies) and RFC 3659 (SIZE, MLSD, REST). The read functions of fsspec are not used. They
report every negative reply as a missing file, including "421 too many connections". They list a whole directory to get
the size of one file.

Nor is ``ls`` of fsspec. If the server refuses to list a directory (450 busy, 550 not allowed), it returns no entries
for the root and FileNotFoundError for others. It drops the text of the reply 226, with which vsftpd reports that it
could not open the directory. A chunk in such a directory would be read as missing, so as the fill value, without an
error.

Reply 550 means "no such file" or "not allowed". If the text of the reply does not distinguish them, the parent
directory is listed. This costs one more command for a missing file, and one for each parent that is missing too.
"""

from __future__ import annotations

import ftplib
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

from zarrfs.engine.stores.base import Buffer
from zarrfs.engine.stores.remote.backend import Entry
from zarrfs.engine.stores.remote.files import RenamingBackend
from zarrfs.engine.stores.remote.presence import reply_means_missing

__all__ = ["FTPBackend"]

T = TypeVar("T")

RECEIVE_NBYTES = 64 << 10

UNSUPPORTED_REPLIES = ("500", "501", "502", "504")
"""Reply codes for a command or an argument that the server does not support."""


class FTPEntry(NamedTuple):
    """A name in a directory. ``size`` is None for a directory, and if the server does not report it."""

    is_directory: bool
    size: int | None


class FTPBackend(RenamingBackend):
    """One FTP server.

    Raises the errors of ftplib and of sockets. A lost connection is opened again, once per command, because servers
    close idle connections.
    """

    def __init__(self, file_system: Any, root: str, url: str) -> None:
        super().__init__(file_system, root, url)
        self._is_connection_lost = False
        self._supports_mlsd = True

    def _run(self, command: Callable[[ftplib.FTP], T], *, retry: bool) -> T:
        """Run a command on an open connection. With ``retry`` it runs again if the connection was lost."""
        if self._is_connection_lost:
            self._connect()
        try:
            return command(self.file_system.ftp)
        except ftplib.error_perm:
            raise
        except (OSError, EOFError, ftplib.Error) as error:
            if isinstance(error, ftplib.error_temp) and not str(error).startswith("421"):
                raise
            # Late data on this connection would be parsed as the reply to the next command.
            self._is_connection_lost = True
            if not retry or isinstance(error, TimeoutError):
                raise
        return self._run(command, retry=False)

    def _connect(self) -> None:
        with suppress(OSError):
            self.file_system.ftp.close()
        self.file_system._connect()
        if getattr(self.file_system, "tls", False) is True:
            self.file_system.ftp.prot_p()
        self._is_connection_lost = False

    # -- reading -----------------------------------------------------------------------------------------------

    def _fetch(self, path: str, max_nbytes: int | None) -> Buffer:
        return self._run(partial(self._retrieve, path=path), retry=True)

    def _fetch_bounds(self, path: str, bounds: Sequence[tuple[int, int]], max_requests: int) -> list[bytes]:
        return [
            self._run(partial(self._retrieve, path=path, start=start, length=stop - start), retry=True)
            for start, stop in bounds
        ]

    def size(self, path: str) -> int | None:
        """Return the size of a file; None if the file is missing."""

        def request_size(ftp: ftplib.FTP) -> int | None:
            ftp.voidcmd("TYPE I")
            return ftp.size(path)

        try:
            size = self._none_if_missing(path, lambda: self._run(request_size, retry=True))
        except ftplib.error_perm as error:
            if not str(error).startswith(UNSUPPORTED_REPLIES):
                raise
            entry = self._entry(path)
            if entry is None or entry.is_directory:
                return None
            if entry.size is None:
                raise
            size = entry.size
        return size

    def _retrieve(self, ftp: ftplib.FTP, path: str, start: int = 0, length: int | None = None) -> bytes:
        """Return ``length`` bytes from ``start``, or all bytes from there."""
        ftp.voidcmd("TYPE I")
        blocks: list[bytes] = []
        remaining = length
        with ftp.transfercmd(f"RETR {path}", rest=start or None) as connection:
            while (remaining is None or remaining > 0) and (block := connection.recv(RECEIVE_NBYTES)):
                blocks.append(block if remaining is None else block[:remaining])
                remaining = None if remaining is None else remaining - len(block)
        if remaining is None or remaining > 0:
            ftp.voidresp()
        else:
            try:  # All requested bytes were received. The server can report an aborted transfer.
                ftp.voidresp()
            except (ftplib.Error, OSError, EOFError) as error:
                if not isinstance(error, ftplib.Error) or str(error).startswith("421"):
                    self._is_connection_lost = True
        return b"".join(blocks)

    def version(self, path: str) -> Hashable | None:
        """Return None: FTP servers report times in seconds only."""
        return None

    def _is_missing(self, path: str, error: Exception) -> bool:
        if not isinstance(error, ftplib.error_perm | ftplib.error_temp):
            return False
        if reply_means_missing(str(error)):
            return True
        if not str(error).startswith("550"):
            return False
        entry = self._entry(path)
        return entry is None or entry.is_directory

    # -- directories -------------------------------------------------------------------------------------------

    def entries(self, path: str) -> list[Entry]:
        """Return the entries of a directory. There are none if the directory is missing."""
        listing = self._list(path or "/") or {}
        return [Entry(name, entry.is_directory, entry.size or 0) for name, entry in listing.items()]

    def _list(self, path: str) -> dict[str, FTPEntry] | None:
        """Return the entries of a directory by name; None if the directory is missing."""
        try:
            return self._request_list(path)
        except ftplib.error_perm as error:
            if str(error).startswith("550") and path.strip("/"):
                entry = self._entry(path)
                if entry is None or not entry.is_directory:
                    return None
            raise

    def _entry(self, path: str) -> FTPEntry | None:
        """Return the entry of a path in its parent directory, or None. Lists further parents if they are missing."""
        parent, _, name = path.rstrip("/").rpartition("/")
        if not name:
            return FTPEntry(True, None)
        entries = self._list(parent or "/")
        return None if entries is None else entries.get(name)

    def _request_list(self, path: str) -> dict[str, FTPEntry] | None:
        if self._supports_mlsd:
            try:
                return self._run(lambda ftp: _list_directory_facts(ftp, path), retry=True)
            except (ftplib.error_perm, ftplib.error_temp) as error:
                if reply_means_missing(str(error)):
                    return None
                if not str(error).startswith(UNSUPPORTED_REPLIES):
                    raise
                self._supports_mlsd = str(error).startswith("501")
        try:
            return self._run(lambda ftp: _list_directory_text(ftp, path), retry=True)
        except (ftplib.error_perm, ftplib.error_temp) as error:
            if reply_means_missing(str(error)):
                return None
            raise

    # -- writing -----------------------------------------------------------------------------------------------

    def write(self, path: str, data: bytes) -> None:
        """Write a temporary file and rename it over the target."""
        write = super().write
        self._run(lambda ftp: write(path, data), retry=False)

    def delete(self, path: str) -> None:
        """Delete a file."""
        delete = super().delete
        self._run(lambda ftp: delete(path), retry=False)

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self.file_system.ftp.close()


def _list_directory_facts(ftp: ftplib.FTP, path: str) -> dict[str, FTPEntry]:
    entries: dict[str, FTPEntry] = {}
    for name, facts in ftp.mlsd(path):
        kind = facts.get("type", "").lower()
        if kind in ("cdir", "pdir") or name in (".", ".."):
            continue
        size = facts.get("size", "")
        entries[name] = FTPEntry(kind == "dir", int(size) if kind != "dir" and size.isdigit() else None)
    return entries


def _list_directory_text(ftp: ftplib.FTP, path: str) -> dict[str, FTPEntry]:
    """List a directory by LIST, for servers without MLSD (vsftpd). Parses the output format of ``ls -l``."""
    lines: list[str] = []
    reply = ftp.retrlines(f"LIST {path}", lines.append)
    if "fail" in reply.lower():  # vsftpd: "226 Transfer done (but failed to open directory)."
        raise ftplib.error_temp(f"451 {path} cannot be listed: {reply}")
    entries: dict[str, FTPEntry] = {}
    for line in lines:
        fields = line.split(maxsplit=8)
        if len(fields) < 9:
            continue
        name, size = fields[8], fields[4]
        if line.startswith("l"):
            name = name.partition(" -> ")[0]
        if name not in (".", ".."):
            is_directory = line.startswith("d")
            entries[name] = FTPEntry(is_directory, int(size) if size.isdigit() and not is_directory else None)
    return entries
