"""Reading from an FTP server through fsspec's connection, by commands whose replies are told apart.

After RFC 959 (replies), RFC 3659 (SIZE, MLSD, REST). fsspec's own reading is not used: it calls every reply that is not
a success, "421 too many connections" included, a file that is not there, takes a directory that cannot be listed for an
empty one, and lists a whole directory for the size of one file.

Reply 550 stands for "no such file" and for "not allowed". Where the words of the reply do not tell, the directory above
is listed: one more command for an absent file (one more for each directory above it that is absent too).
"""

from __future__ import annotations

import ftplib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from zarrfs.engine.stores.fsspec.presence import reply_says_absent

__all__ = ["FTPEntry", "FTPReader"]

T = TypeVar("T")

BLOCK = 64 << 10

NOT_KNOWN = ("500", "501", "502", "504")
"""Replies of a server that does not know a command or its argument."""


class FTPEntry(NamedTuple):
    """A name in a directory; ``size`` is None for a directory, and where the server does not tell."""

    is_directory: bool
    size: int | None


class FTPReader:
    """Asks one server, one command at a time; the caller sees to that.

    Errors are those of ftplib and of sockets. A connection that was lost is made anew, once per question, since servers
    close those that were idle.
    """

    def __init__(self, files: Any) -> None:
        self._files = files
        self._lost = False
        self._knows_mlsd = True

    def run(self, ask: Callable[[ftplib.FTP], T], *, again: bool) -> T:
        """Ask on a connection that works; ``again``: twice, if the connection turns out to be lost."""
        if self._lost:
            self._connect()
        try:
            return ask(self._files.ftp)
        except ftplib.error_perm:
            raise
        except (OSError, EOFError, ftplib.Error) as error:
            if isinstance(error, ftplib.error_temp) and not str(error).startswith("421"):
                raise
            # Whatever else may still come on this connection would be taken for the answer to the next command.
            self._lost = True
            if not again or isinstance(error, TimeoutError):
                raise
        return self.run(ask, again=False)

    def _connect(self) -> None:
        with suppress(OSError):
            self._files.ftp.close()
        self._files._connect()
        if getattr(self._files, "tls", False) is True:
            self._files.ftp.prot_p()
        self._lost = False

    # -- files -------------------------------------------------------------------------------------------------

    def read(self, path: str, start: int = 0, length: int | None = None) -> bytes | None:
        """Return ``length`` bytes from ``start``, or to the end; None if there is no such file."""
        return self._unless_absent(path, lambda ftp: self._retrieve(ftp, path, start, length))

    def size(self, path: str) -> int | None:
        """Return the size of a file; None if there is no such file."""

        def ask(ftp: ftplib.FTP) -> int | None:
            ftp.voidcmd("TYPE I")
            return ftp.size(path)

        try:
            found = self._unless_absent(path, ask)
        except ftplib.error_perm as error:
            if not str(error).startswith(NOT_KNOWN):
                raise
            entry = self._entry(path)
            if entry is None or entry.is_directory:
                return None
            if entry.size is None:
                raise
            found = entry.size
        return found

    def _retrieve(self, ftp: ftplib.FTP, path: str, start: int, length: int | None) -> bytes:
        ftp.voidcmd("TYPE I")
        pieces: list[bytes] = []
        left = length
        with ftp.transfercmd(f"RETR {path}", rest=start or None) as connection:
            while (left is None or left > 0) and (piece := connection.recv(BLOCK)):
                pieces.append(piece if left is None else piece[:left])
                left = None if left is None else left - len(piece)
        if left is None or left > 0:
            ftp.voidresp()
        else:
            try:  # All is here; the server may say that it was cut off.
                ftp.voidresp()
            except (ftplib.Error, OSError, EOFError) as error:
                if not isinstance(error, ftplib.Error) or str(error).startswith("421"):
                    self._lost = True
        return b"".join(pieces)

    def _unless_absent(self, path: str, ask: Callable[[ftplib.FTP], T]) -> T | None:
        try:
            return self.run(ask, again=True)
        except (ftplib.error_perm, ftplib.error_temp) as error:
            if reply_says_absent(str(error)):
                return None
            if str(error).startswith("550"):
                entry = self._entry(path)
                if entry is None or entry.is_directory:
                    return None
            raise

    # -- directories -------------------------------------------------------------------------------------------

    def list(self, path: str) -> dict[str, FTPEntry] | None:
        """Return what is in a directory; None if there is no such directory."""
        try:
            return self._list(path)
        except ftplib.error_perm as error:
            if str(error).startswith("550") and path.strip("/"):
                entry = self._entry(path)
                if entry is None or not entry.is_directory:
                    return None
            raise

    def _entry(self, path: str) -> FTPEntry | None:
        """Return what the directory above says of a path, or None. Goes up as far as directories are absent."""
        above, _, name = path.rstrip("/").rpartition("/")
        if not name:
            return FTPEntry(True, None)
        found = self.list(above or "/")
        return None if found is None else found.get(name)

    def _list(self, path: str) -> dict[str, FTPEntry] | None:
        if self._knows_mlsd:
            try:
                return self.run(lambda ftp: _machine_listing(ftp, path), again=True)
            except (ftplib.error_perm, ftplib.error_temp) as error:
                if reply_says_absent(str(error)):
                    return None
                if not str(error).startswith(NOT_KNOWN):
                    raise
                self._knows_mlsd = str(error).startswith("501")
        try:
            return self.run(lambda ftp: _human_listing(ftp, path), again=True)
        except (ftplib.error_perm, ftplib.error_temp) as error:
            if reply_says_absent(str(error)):
                return None
            raise


def _machine_listing(ftp: ftplib.FTP, path: str) -> dict[str, FTPEntry]:
    entries: dict[str, FTPEntry] = {}
    for name, facts in ftp.mlsd(path):
        kind = facts.get("type", "").lower()
        if kind in ("cdir", "pdir") or name in (".", ".."):
            continue
        size = facts.get("size", "")
        entries[name] = FTPEntry(kind == "dir", int(size) if kind != "dir" and size.isdigit() else None)
    return entries


def _human_listing(ftp: ftplib.FTP, path: str) -> dict[str, FTPEntry]:
    """Read what ``ls -l`` prints, as servers without MLSD (vsftpd) send it."""
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
