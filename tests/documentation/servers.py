"""The servers that the examples of all pages share, because starting them takes seconds."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from tests.documentation.pages import ROOT
from tests.processes import lasting, running

__all__ = ["SharedServers"]

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
BUCKET = "bucket"


class SharedServers:
    """Servers that are started when they are first needed."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    @cached_property
    def commands(self) -> Path:
        """A directory with a program ``zarrfs``, which runs commands in a server."""
        with lasting():
            return self._stack.enter_context(_command_server())

    @cached_property
    def _endpoint(self) -> str:
        from tests.engine.stores.servers import s3_server

        with lasting():
            return self._stack.enter_context(s3_server())

    def empty_bucket(self) -> dict[str, str]:
        """Empty the public bucket ``bucket`` of the emulator of S3. Return the variables with which s3fs finds it."""
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        options = {"key": "key", "secret": "secret", "endpoint_url": self._endpoint}
        buckets = s3fs.S3FileSystem(skip_instance_cache=True, **options)
        if buckets.exists(BUCKET):
            buckets.rm(BUCKET, recursive=True)
        buckets.mkdir(BUCKET)
        rule = {
            "Effect": "Allow",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [f"arn:aws:s3:::{BUCKET}", f"arn:aws:s3:::{BUCKET}/*"],
        }
        policy = {"Version": "2012-10-17", "Statement": [rule]}
        buckets.call_s3("put_bucket_policy", Bucket=BUCKET, Policy=json.dumps(policy))
        return {**KEYS, "AWS_ENDPOINT_URL": self._endpoint}

    def close(self) -> None:
        self._stack.close()


@contextmanager
def _command_server() -> Iterator[Path]:
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
