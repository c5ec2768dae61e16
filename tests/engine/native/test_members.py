"""The scan of many members of a group: the native function returns what the Python function does."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import zarrfs
from tests.engine.native.executors import require_library
from zarrfs.engine.native import members
from zarrfs.engine.native.members import ScannedMember, scan_members
from zarrfs.engine.stores.local.store import LocalStore

LIMIT = 4096
PREPARATIONS: dict[str, Callable[[Path], object]] = {
    "ordinary": lambda path: (path / "c" / "0").write_bytes(b"12345"),
    "limit": lambda path: (path / "zarr.json").write_bytes(b"x" * LIMIT),
    "empty document": lambda path: (path / "zarr.json").write_bytes(b""),
    "temporary file": lambda path: (path / "c" / ".zarrfs-writing-1").write_bytes(b"12345"),
    "temporary directory": lambda path: (path / ".zarrfs-writing-1").mkdir(),
    "nested document": lambda path: (path / "c" / "zarr.json").write_bytes(b"12345"),
    "nested v2": lambda path: (path / "c" / ".zarray").write_bytes(b"12345"),
    "FIFO": lambda path: os.mkfifo(path / "c" / "1"),
    "attributes of another version": lambda path: (path / ".zattrs").write_bytes(b"{}"),
    "v2 array": lambda path: (
        (path / "zarr.json").rename(path / ".zarray"),
        (path / "0.0").write_bytes(b"12"),
    ),
    "v2 attributes": lambda path: (
        (path / "zarr.json").rename(path / ".zarray"),
        (path / ".zattrs").write_bytes(b'{"a": 1}'),
    ),
    "newline\nname": lambda path: (path / "c" / "a\nb").write_bytes(b"1"),
}
REFUSED: dict[str, Callable[[Path], object]] = {
    "no document": lambda path: (path / "zarr.json").unlink(),
    "too large": lambda path: (path / "zarr.json").write_bytes(b"x" * (LIMIT + 1)),
    "v2": lambda path: (path / ".zarray").write_bytes(b"{}"),
    "v2 attributes only": lambda path: (path / "zarr.json").rename(path / ".zattrs"),
    "v2 array and group": lambda path: (
        (path / "zarr.json").rename(path / ".zarray"),
        (path / ".zgroup").touch(),
    ),
    "v2 attributes are too large": lambda path: (
        (path / "zarr.json").rename(path / ".zarray"),
        (path / ".zattrs").write_bytes(b"x" * (LIMIT + 1)),
    ),
    "v2 group": lambda path: (path / ".zgroup").write_bytes(b"{}"),
    "link": lambda path: os.symlink("0", path / "c" / "link"),
    "linked directory": lambda path: os.symlink("c", path / "link"),
    "linked document": lambda path: (
        (path / "zarr.json").rename(path / "d") and os.symlink("d", path / "zarr.json")
    ),
    "document is a FIFO": lambda path: ((path / "zarr.json").unlink(), os.mkfifo(path / "zarr.json")),
    "document is a directory": lambda path: ((path / "zarr.json").unlink(), (path / "zarr.json").mkdir()),
    "many": lambda path: [(path / "c" / f"{n}").touch() for n in range(members.MAX_ENTRIES)],
    "deep": lambda path: (path / "/".join("d" * (members.MAX_DEPTH + 1))).mkdir(parents=True),
}


@pytest.fixture
def group(tmp_path: Path) -> Path:
    path = tmp_path / "g.zarr"
    zarrfs.create_group(path)
    for name, prepare in {**PREPARATIONS, **REFUSED}.items():
        (path / name / "c").mkdir(parents=True)
        (path / name / "zarr.json").write_text(f'{{"name": "{name}"}}')
        prepare(path / name)
    os.symlink("ordinary", path / "linked member")
    (path / "file").touch()
    return path


def scan(path: Path, names: list[str], **options: bool) -> list[ScannedMember | None]:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return scan_members(directory, names, LIMIT, **options)
    finally:
        os.close(directory)


@pytest.mark.parametrize("is_native", [True, False], ids=["native", "Python"])
def test_documents_and_usages(is_native: bool, group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_native:
        assert members._native_function(require_library()) is not None
    else:
        monkeypatch.setattr(members, "native_library", lambda: None)
    others = ["linked member", "file", "missing", "", ".", "..", "ordinary/c", "nul\0name"]
    store = LocalStore(group)
    for names in ([*PREPARATIONS, *REFUSED, *others], list(PREPARATIONS), ["ordinary"], [], others[:-1]):
        found = dict(zip(names, scan(group, names), strict=True))
        assert {name for name, member in found.items() if member is not None} == set(PREPARATIONS) & set(
            names
        )
        for name, member in found.items():
            if member is not None:
                assert member.zarr_format == (2 if name.startswith("v2") else 3)
                document = group / name / ("zarr.json" if member.zarr_format == 3 else ".zarray")
                assert member.document == document.read_bytes()
                assert member.attributes == (b'{"a": 1}' if name == "v2 attributes" else None)
                assert member.usage == store.usage(name)
                status = document.stat()
                assert member.access == (status.st_mode, status.st_uid, status.st_gid)


@pytest.mark.parametrize("is_native", [True, False], ids=["native", "Python"])
def test_documents_without_usages(is_native: bool, group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if is_native:
        require_library()
    else:
        monkeypatch.setattr(members, "native_library", lambda: None)
    names = [*PREPARATIONS, *REFUSED]
    found = dict(zip(names, scan(group, names, with_usage=False), strict=True))
    complete = dict(zip(names, scan(group, names), strict=True))
    others = {"link", "linked directory", "many", "deep"}  # Only documents are examined.
    assert {name for name, member in found.items() if member is not None} == {*PREPARATIONS, *others}
    for name in PREPARATIONS:
        member = complete[name]
        assert member is not None
        assert found[name] == member._replace(usage=None)


def test_more_documents_than_an_array_has_do_not_leave_the_buffer(tmp_path: Path) -> None:
    """Each document has the maximum size, and the buffer has room for two of them."""
    function = members._native_function(require_library())
    assert function is not None
    member = tmp_path / "a"
    member.mkdir()
    for name in members.DOCUMENTS:
        (member / name).write_bytes(b"x" * LIMIT)
    buffer = bytearray(4 * LIMIT)
    address = ctypes.addressof((ctypes.c_char * len(buffer)).from_buffer(buffer))
    results = (ctypes.c_int64 * members._RESULTS)()
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        arguments = (address, 2 * LIMIT, LIMIT, members.MAX_ENTRIES, 0, results)
        assert function(directory, b"a\0", 1, *arguments) == 1
    finally:
        os.close(directory)
    assert results[0] == -1
    assert not any(buffer[2 * LIMIT :])


def test_documents_that_do_not_fit_into_one_buffer(tmp_path: Path) -> None:
    require_library()
    zarrfs.create_group(tmp_path / "g.zarr")
    names = [f"m{number}" for number in range(300)]
    for name in names:
        (tmp_path / "g.zarr" / name).mkdir()
        (tmp_path / "g.zarr" / name / "zarr.json").write_bytes(name.encode() * 900)
    found = scan(tmp_path / "g.zarr", names)
    assert [member and member.document for member in found] == [name.encode() * 900 for name in names]
