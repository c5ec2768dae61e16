"""The attributes of files in the structure ``stat``."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
import sys

import pytest

from zarrfs.mount.fuse.file_statuses import INTEGERS, StatusLayout

ATTRIBUTES = {
    "st_ino": 2**63 - 1,
    "st_mode": stat.S_IFREG | 0o644,
    "st_nlink": 1,
    "st_uid": 2**32 - 2,
    "st_gid": 1000,
    "st_size": 2**63 - 1,
    "st_blocks": 2**40,
    "st_blksize": 1 << 20,
    "st_atime": 0,
    "st_mtime": 1_700_000_000_123_456_789,
    "st_ctime": -1,
    "other": "ignored",
}


class Time(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class Mixed(ctypes.Structure):
    """A structure whose fields have another order than in Linux."""

    _fields_ = [
        ("st_mtimespec", Time),
        ("st_mode", ctypes.c_uint16),
        ("unknown", ctypes.c_uint64),
        ("st_size", ctypes.c_int64),
        ("st_uid", ctypes.c_uint32),
        ("st_ctimespec", Time),
        ("st_flags", ctypes.c_uint32),
    ]


def structures() -> list[type[ctypes.Structure]]:
    module = pytest.importorskip("mfusepy")
    return [Mixed, module.c_stat]


def test_all_fields_are_set() -> None:
    for structure in structures():
        layout = StatusLayout(structure)
        target = structure()
        names = {name for name, *_ in structure._fields_}
        for attributes in (ATTRIBUTES, {"st_mode": stat.S_IFDIR | 0o755}):
            ctypes.memset(ctypes.addressof(target), 0xFF, ctypes.sizeof(target))
            layout.write(attributes, target)
            for name in INTEGERS:
                if name in names:
                    assert getattr(target, name) == attributes.get(name, 0), name
            for name in ("st_atime", "st_mtime", "st_ctime"):
                if name + "spec" in names:
                    time = getattr(target, name + "spec")
                    assert time.tv_sec * 10**9 + time.tv_nsec == attributes.get(name, 0)
                    assert 0 <= time.tv_nsec < 10**9
            expected = structure()
            for name in names & {*INTEGERS}:
                setattr(expected, name, attributes.get(name, 0))
            for name in ("st_atime", "st_mtime", "st_ctime"):
                if name + "spec" in names:
                    parts = divmod(int(attributes.get(name, 0)), 10**9)
                    setattr(expected, name + "spec", type(getattr(expected, name + "spec"))(*parts))
            assert bytes(target) == bytes(expected)


def test_type_and_inode_number_only() -> None:
    for structure in structures():
        target, expected = structure(), structure()
        ctypes.memset(ctypes.addressof(target), 0xFF, ctypes.sizeof(target))
        expected.st_mode = stat.S_IFDIR
        if "st_ino" in {name for name, *_ in structure._fields_}:
            expected.st_ino = 2**63 - 1
        StatusLayout(structure).write_entry(stat.S_IFDIR, 2**63 - 1, target)
        assert bytes(target) == bytes(expected)


def test_a_value_that_does_not_fit_is_an_error() -> None:
    for structure in structures():
        with pytest.raises(struct.error):
            StatusLayout(structure).write({"st_size": -1}, structure())


@pytest.mark.skipif(sys.platform != "linux", reason="the structure of the system is compared on Linux")
def test_the_layout_is_that_of_the_system() -> None:
    module = pytest.importorskip("mfusepy")
    libc = ctypes.CDLL(None, use_errno=True)
    expected = module.c_stat()
    found = module.c_stat()
    if not hasattr(libc, "stat") or libc.stat(os.fsencode(__file__), ctypes.byref(expected)):
        pytest.skip("the C library does not export stat")
    status = os.stat(__file__)
    attributes = {name: getattr(status, name) for name in INTEGERS}
    attributes |= {name: getattr(status, f"{name}_ns") for name in ("st_atime", "st_mtime", "st_ctime")}
    StatusLayout(module.c_stat).write(attributes, found)
    expected.st_dev = 0
    assert bytes(found) == bytes(expected)
