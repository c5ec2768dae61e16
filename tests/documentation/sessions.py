"""The execution of the examples of a page, in order, in one directory and one Python namespace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.documentation.pages import ROOT, Block
from tests.documentation.samples import write_sample
from tests.processes import TIMEOUT, running
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

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._namespace: dict[str, Any] = {"__name__": "page"}
        self._server = ""
        self._commands: Path | None = None
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
        if self._commands is None:
            self._commands = self._servers.enter_context(_command_server())
        paths = [str(self._commands), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join(paths),
            "COLUMNS": "100",
            "HOME": str(self.directory),
            "QT_QPA_PLATFORM": "offscreen",
        }
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.directory,
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def _resolved(self, text: str) -> str:
        """Return the text of a block with the directories and servers of this session, which are started if needed."""
        if SERVER in text and not self._server:
            from tests.engine.stores.servers import web_server

            self._server = f"{self._servers.enter_context(web_server(self.directory)).url}/"
        if "s3://bucket" in text and "AWS_ENDPOINT_URL" not in os.environ:
            self._servers.enter_context(_bucket())
        return DIRECTORY.sub(str(self.directory), text).replace(SERVER, self._server)

    def close(self) -> None:
        """Unmount what the examples have mounted, and end the servers."""
        for mount in mounts():
            if mount.mountpoint.startswith(str(self.directory)):
                unmount(mount.mountpoint, lazy=True)
        self._servers.close()


@contextmanager
def session(directory: Path) -> Iterator[Session]:
    """A session in a directory. The environment of the process is restored at the end."""
    environment = dict(os.environ)
    opened = Session(directory)
    try:
        yield opened
    finally:
        opened.close()
        _restore(environment)


def _restore(environment: Mapping[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


@contextmanager
def _command_server() -> Iterator[Path]:
    """Run the server that executes ``zarrfs`` commands. Yields a directory with a program ``zarrfs`` that uses it."""
    program = Path(__file__).with_name("command_server.py")
    with tempfile.TemporaryDirectory() as scratch:
        client = Path(scratch, "zarrfs")
        client.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{program}" "{scratch}" "$@"\n')
        client.chmod(0o755)
        command = [sys.executable, program, scratch]
        with running(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield Path(scratch)


@contextmanager
def _bucket() -> Iterator[None]:
    """Run an emulator of S3, which s3fs uses by its environment variables. The bucket named ``bucket`` is public."""
    import s3fs

    from tests.engine.stores.servers import s3_server

    with s3_server() as endpoint:
        os.environ |= {
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        buckets = s3fs.S3FileSystem(skip_instance_cache=True)
        buckets.mkdir("bucket")
        rule = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"],
        }
        policy = {"Version": "2012-10-17", "Statement": [rule]}
        buckets.call_s3("put_bucket_policy", Bucket="bucket", Policy=json.dumps(policy))
        try:
            yield
        finally:
            s3fs.S3FileSystem.clear_instance_cache()  # the next page has another server


def _stripped(text: str) -> str:
    """Remove trailing spaces, and empty lines at the beginning and the end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
