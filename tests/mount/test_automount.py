"""A mount that an automounter makes, as systemd does for ``x-systemd.automount``: the test is the automounter.

Kernel interface: https://docs.kernel.org/filesystems/autofs.html
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT, running
from zarrfs.mount import is_mounted, unmount

READY, CATATONIC = 0x9360, 0x9362
"""AUTOFS_IOC_READY and AUTOFS_IOC_CATATONIC of linux/auto_fs.h."""

PACKET_NBYTES = 300
"""The size of struct autofs_v5_packet on 64-bit machines without padding; the pipe has packet boundaries."""

MNT_DETACH = 2


@contextmanager
def automount_point(directory: Path) -> Iterator[tuple[int, int]]:
    """Mount autofs on a directory. Yield a descriptor of it, and the pipe with the requests of the kernel."""
    libc = ctypes.CDLL(None, use_errno=True)
    requests, sink = os.pipe()
    options = f"fd={sink},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
    target = os.fsencode(directory)
    if libc.mount(b"test", target, b"autofs", 0, options.encode()):
        os.close(requests)
        os.close(sink)
        pytest.skip(f"autofs cannot be mounted: {os.strerror(ctypes.get_errno())}")
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor, requests
    finally:
        fcntl.ioctl(descriptor, CATATONIC)  # processes that still wait get an error
        os.close(descriptor)
        os.close(requests)
        os.close(sink)
        libc.umount2(target, MNT_DETACH)


@needs_fuse
def test_an_automounter_mounts_at_the_first_access(tmp_path: Path) -> None:
    values = np.arange(6, dtype="u2")
    zarrfs.create_group(tmp_path / "image.zarr").create_array("a", data=values)
    directory = tmp_path / "mnt"
    directory.mkdir()
    helper = Path(sys.executable).with_name("mount.zarrfs")
    with automount_point(directory) as (descriptor, requests):
        # Processes of another group wait for the automounter.
        with running(["cat", directory / "a.raw"], stdout=subprocess.PIPE, start_new_session=True) as reader:
            packet = os.read(requests, PACKET_NBYTES)
            _, _, token = struct.unpack_from("iiI", packet)
            done = subprocess.run(
                [helper, tmp_path / "image.zarr", directory],
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
                env={**os.environ, "HOME": str(tmp_path)},
            )
            assert done.returncode == 0, done.stderr
            fcntl.ioctl(descriptor, READY, token)
            assert reader.communicate(timeout=TIMEOUT)[0] == values.tobytes()
        unmount(str(directory))
        assert not is_mounted(str(directory))
