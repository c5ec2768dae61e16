"""The execution of the examples of a page, in order, in one directory and one Python namespace."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.documentation.pages import Block
from tests.documentation.samples import write_sample
from tests.documentation.servers import SharedServers
from tests.processes import output_of
from zarrfs.mount import mounts, unmount

__all__ = ["Session", "session"]

COMMAND = re.compile(r"^\$ (?P<command>.*\n(?:> .*\n)*)(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)
"""A command, its continuation lines, and its output."""

DIRECTORY = re.compile(r"(?<![\w./~:-])(?=/(?:mnt|data)/)")
"""The beginning of the name of a directory of the examples."""

SERVER = "https://example.org/"


class Session:
    """Executes blocks. Absolute directories of the examples, ``/mnt`` and ``/data``, are below the working directory.

    ``https://example.org/`` is a web server for the working directory, and ``s3://bucket`` a bucket of an emulator.
    """

    def __init__(self, directory: Path, servers: SharedServers) -> None:
        self.directory = directory
        self._shared = servers
        self._namespace: dict[str, Any] = {"__name__": "page"}
        self._server = ""
        self._servers = ExitStack()

    def run(self, block: Block, name: str) -> None:
        for sample in block.samples:
            write_sample(sample, self.directory)
        if block.language == "python":
            # With these empty lines, the line numbers in a traceback are those of the page.
            code = compile("\n" * (block.line - 1) + self._resolved(block.text), name, "exec")
            exec(code, self._namespace)
        elif block.language == "sh":
            self._shell(f"set -euo pipefail\n{block.text}")
        else:
            self._console(block, name)

    def _console(self, block: Block, name: str) -> None:
        """Run each line that starts with ``$`` and compare its output with the lines below it.

        ``...`` matches any text. The output is not compared if the page has none, or if the command ends with ``&``.
        """
        found = list(COMMAND.finditer(block.text))
        assert found, f"{name}, line {block.line}: no line begins with $"
        for match in found:
            command = match["command"].replace("\n> ", "\n")
            output = self._shell(command).replace(str(self.directory), "")
            if self._server:
                output = output.replace(self._server, SERVER)
            expected = _stripped(match["output"])
            if not expected:
                continue
            pattern = r"[\s\S]*?".join(map(re.escape, expected.split("...")))
            assert re.fullmatch(pattern, _stripped(output)), (
                f"{name}, line {block.line}: $ {command}\n{output}\nexpected:\n{expected}"
            )

    def _shell(self, command: str) -> str:
        command = self._resolved(command)
        paths = [str(self._shared.commands), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(paths),
            "COLUMNS": "100",
            "HOME": str(self.directory),
            "QT_QPA_PLATFORM": "offscreen",
        }
        return output_of(["bash", "-c", command], cwd=self.directory, env=environment)

    def _resolved(self, text: str) -> str:
        """Return the text of a block with the directories and servers of this session, which are started if needed."""
        if SERVER in text and not self._server:
            from tests.engine.stores.servers import web_server

            self._server = f"{self._servers.enter_context(web_server(self.directory)).url}/"
        if "s3://bucket" in text and "AWS_ENDPOINT_URL" not in os.environ:
            os.environ |= self._shared.empty_bucket()
        return DIRECTORY.sub(str(self.directory), text).replace(SERVER, self._server)

    def close(self) -> None:
        """Unmount what the examples have mounted, and end the servers."""
        for mount in mounts():
            if mount.mountpoint.startswith(str(self.directory)):
                unmount(mount.mountpoint, lazy=True)
        self._servers.close()
        close_cached_sessions()


@contextmanager
def session(directory: Path, servers: SharedServers) -> Iterator[Session]:
    """A session in a directory. The environment of the process is restored at the end."""
    environment = dict(os.environ)
    opened = Session(directory, servers)
    try:
        yield opened
    finally:
        opened.close()
        _restore(environment)


def _restore(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


def _stripped(text: str) -> str:
    """Remove trailing spaces, and empty lines at the beginning and the end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def close_cached_sessions() -> None:
    """Close the HTTP sessions of the file systems that fsspec shares between users, such as those below a cache.

    Otherwise the garbage collector warns of them in a later test.
    """
    from fsspec.asyn import sync
    from fsspec.implementations.http import HTTPFileSystem

    for file_system in HTTPFileSystem._cache.values():
        if file_system._session is not None and not file_system._session.closed:
            sync(file_system.loop, file_system._session.close)
    HTTPFileSystem.clear_instance_cache()
