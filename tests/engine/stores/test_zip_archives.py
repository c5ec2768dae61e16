"""Tests of ZipStore with archives of other programs: compared with ``zipfile``, damaged, and with many members."""

from __future__ import annotations

import io
import logging
import os
import random
import subprocess
import tracemalloc
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.programs import find_program
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.zip import directory as directory_module
from zarrfs.engine.stores.zip.records import central_record, end_records
from zarrfs.engine.stores.zip.remote import RemoteZipStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import ZarrError

UNZIP_PATH = find_program("unzip")

EXAMPLES = int(os.environ.get("ZARRFS_TEST_EXAMPLES", "60"))

SEGMENTS = st.sampled_from(
    ["a", "b", "c.d", ".zarray", "größe", "日本", "..", ".", "", "x\\y", "PK\1\2", "0"]
)
NAMES = st.lists(SEGMENTS, min_size=1, max_size=3).map("/".join)
VALUES = st.binary(max_size=40) | st.integers(0, 3000).map(lambda size: b"PK\5\6" + bytes(size))
METHODS = st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
MEMBERS = st.lists(st.tuples(NAMES, VALUES, METHODS, st.booleans()), max_size=8)
"""Name, value, compression method, and whether the sizes are in zip64 fields."""


class UnseekableFile(io.BytesIO):
    """A file in which ``zipfile`` cannot go back, so that it writes the sizes of a member after its data."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: int) -> int:
        raise OSError("not seekable")


def foreign_archive(
    members: list[tuple[str, bytes, int, bool]], *, prefix: bytes, comment: bytes, streamed: bool
) -> bytes:
    """Return an archive that ``zipfile`` writes."""
    file = UnseekableFile() if streamed else io.BytesIO()
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(file, "w") as archive:
        archive.comment = comment
        for name, value, method, zip64 in members:
            info = zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6))
            info.compress_type = method
            info.extra = b"\2\1\3\0xyz"
            with archive.open(info, "w", force_zip64=zip64) as member:
                member.write(value)
    return prefix + file.getvalue()


def is_key(name: str) -> bool:
    return "\\" not in name and all(segment not in ("", ".", "..") for segment in name.split("/"))


def values_by_zipfile(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if is_key(name)}


def check_equal(store: ZipStore | RemoteZipStore, expected: dict[str, bytes]) -> None:
    """Check values, parts and listings of a store."""
    assert sorted(store.list_prefix()) == sorted(expected)
    for key, value in expected.items():
        # A part is read first: then the local header has not been read yet.
        parts = store.get_ranges(key, [ByteRange(0, 1), ByteRange(-2)])
        assert parts is not None
        assert [bytes(part) for part in parts] == [value[:1], value[-2:]]
        assert bytes(store.get(key) or b"") == value
        assert store.size(key) == len(value)
    for prefix in {"", *("/".join(key.split("/")[:depth]) for key in expected for depth in (1, 2))}:
        start = f"{prefix}/" if prefix else ""
        below = [key.removeprefix(start) for key in expected if key.startswith(start)]
        listing = store.list_dir(prefix)
        assert listing.keys == sorted({name for name in below if "/" not in name})
        assert listing.prefixes == sorted({name.partition("/")[0] for name in below if "/" in name})
        assert sorted(store.list_prefix(prefix)) == sorted(start + name for name in below)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archives")


@pytest.fixture(autouse=True)
def _no_records() -> object:
    """Disable the warnings of ignored members."""
    logging.getLogger("zarrfs").disabled = True
    yield
    logging.getLogger("zarrfs").disabled = False


@settings(max_examples=EXAMPLES, deadline=None)
@given(
    members=MEMBERS,
    prefix=st.sampled_from([b"", b"#!/bin/sh\n", b"PK\1\2" * 20]),
    comment=st.sampled_from([b"", b"of the archive", b"PK\1\2"]),
    streamed=st.booleans(),
    block_nbytes=st.sampled_from([500, 1 << 24]),
    changes=st.dictionaries(NAMES.filter(is_key), st.none() | VALUES, max_size=5),
)
def test_archives_are_equal_to_what_zipfile_reads_and_writes(
    folder: Path,
    members: list[tuple[str, bytes, int, bool]],
    prefix: bytes,
    comment: bytes,
    streamed: bool,
    block_nbytes: int,
    changes: dict[str, bytes | None],
) -> None:
    path = folder / "a.zip"
    original = foreign_archive(members, prefix=prefix, comment=comment, streamed=streamed)
    path.write_bytes(original)
    expected = values_by_zipfile(path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(directory_module, "BLOCK_NBYTES", block_nbytes)
        for store in (ZipStore(path), RemoteZipStore(LocalStore(folder, read_only=True), "a.zip")):
            with store:
                check_equal(store, expected)
        with ZipStore(path, "a") as writer:
            for key, value in changes.items():
                if value is None:
                    writer.delete(key)
                    expected.pop(key, None)
                else:
                    writer.set(key, value)
                    expected[key] = value
            check_equal(writer, expected)
            writer.flush()
            check_equal(writer, expected)
    assert values_by_zipfile(path) == expected
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.comment == comment
        names = [name for name in archive.namelist() if is_key(name)]
    if path.read_bytes() != original:
        assert len(names) == len(set(names))  # no name twice
        assert path.read_bytes().startswith(prefix)  # a program before the archive is retained
    # unzip warns of bytes before the archive, of absolute names, and so on (status 1).
    if UNZIP_PATH is not None and expected:
        result = subprocess.run([UNZIP_PATH, "-tqq", str(path)], capture_output=True, check=False)
        assert result.returncode in (0, 1), result.stdout + result.stderr


def mutated(good: bytes, rng: random.Random) -> bytes:
    """Return an archive with one to four changes, most of them in its records."""
    data = bytearray(good)
    signatures = [at for at in range(len(good) - 4) if good[at : at + 2] == b"PK"]
    for _ in range(rng.randint(1, 4)):
        at = (
            min(rng.choice(signatures) + rng.randrange(60), len(data) - 1)
            if rng.random() < 0.7
            else rng.randrange(len(data))
        )
        kind = rng.randrange(6)
        if kind <= 1:
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        elif kind == 2:
            data[at : at + 4] = rng.choice([b"\xff" * 4, bytes(4), b"\xff\xff\xff\x7f", rng.randbytes(4)])
        elif kind == 3:
            del data[at : at + rng.choice([1, 4, 46, len(data)])]
        elif kind == 4:
            source = rng.randrange(len(good))
            data[at:at] = good[source : source + rng.randrange(1, 200)]
        else:
            data[at : at + 8] = rng.choice([b"\xff" * 8, b"\0\0\0\0\0\1\0\0"])
        if not data:
            return b""
    return bytes(data)


def test_damaged_archives_raise_errors_or_return_the_values(tmp_path: Path) -> None:
    values = {
        f"{name}/{number}": value
        for name in ("a", "größe")
        for number, value in enumerate((b"", b"0123456789", b"x" * 3000, os.urandom(500)))
    }
    archives = [
        foreign_archive(
            [(name, value, method, zip64) for name, value in values.items()],
            prefix=prefix,
            comment=comment,
            streamed=streamed,
        )
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        for zip64, streamed in ((False, False), (True, False), (False, True))
        for prefix, comment in ((b"", b""), (b"#!/bin/sh\n", b"of the archive"))
    ]
    # More than 65535 members are not needed for the zip64 end records.
    records = b"".join(central_record(b"a/%d" % number, 0, 0, 0, 0) for number in range(3))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("zarrfs.engine.stores.zip.records.MAX_UINT16", 2)
        archives.append(records + end_records(0, len(records), 3, b""))
    path = tmp_path / "a.zip"
    rng = random.Random(1)
    allowed = set(values.values())
    read = refused = 0
    tracemalloc.start()
    try:
        for number in range(5 * EXAMPLES):
            path.write_bytes(mutated(archives[number % len(archives)], rng))
            for remote in (False, True):
                with suppress(ZarrError):
                    store = (
                        RemoteZipStore(LocalStore(tmp_path, read_only=True), "a.zip")
                        if remote
                        else ZipStore(path)
                    )
                    with store:
                        store.list_dir()
                        for key in store.list_prefix():
                            try:
                                value = store.get(key)
                            except ZarrError:
                                refused += 1
                                continue
                            assert value is not None
                            assert bytes(value) in allowed
                            read += 1
                            with suppress(ZarrError):
                                store.get_ranges(key, [ByteRange(1, 2)])
            if number % 4 == 0:
                with suppress(ZarrError), ZipStore(path, "a") as writer:
                    before = {key: _value_or_none(writer, key) for key in writer.list_prefix()}
                    writer.set("new", b"1")
                    writer.flush()
                    for key, value in before.items():
                        # A member that overlaps another one can be read when the other one is gone.
                        assert _value_or_none(writer, key) in (
                            (value,) if value is not None else (None, *allowed)
                        )
                    writer.discard()
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()
    assert read > EXAMPLES
    assert refused > EXAMPLES / 10
    assert os.listdir(tmp_path) == ["a.zip"]


def _value_or_none(store: ZipStore, key: str) -> bytes | None:
    try:
        return bytes(store.get(key) or b"")
    except ZarrError:
        return None


def test_a_directory_takes_little_memory(tmp_path: Path) -> None:
    count = 20_000
    records = b"".join(
        central_record(b"labels/0/c/%d/%d" % divmod(number, 100), 0, 0, 0, 0) for number in range(count)
    )
    path = tmp_path / "a.zip"
    path.write_bytes(records + end_records(0, len(records), count, b""))
    nbytes_per_record = len(records) / count
    del records
    tracemalloc.start()
    try:
        with ZipStore(path) as store:
            retained, peak = tracemalloc.get_traced_memory()
            assert retained < count * (nbytes_per_record + 30)
            assert peak < count * (nbytes_per_record + 70)
            tracemalloc.reset_peak()
            assert len(store.list_dir("labels/0/c").prefixes) == 200
            retained, peak = tracemalloc.get_traced_memory()
            assert peak < count * (nbytes_per_record + 60)
            assert store.size("labels/0/c/199/99") == 0
    finally:
        tracemalloc.stop()


def test_a_wrong_size_of_the_directory_allocates_little_memory(tmp_path: Path) -> None:
    """A sparse file of 4 TB whose end records declare a directory of that size."""
    path = tmp_path / "a.zip"
    size = 1 << 42
    with path.open("wb") as file:
        file.write(central_record(b"a", 0, 0, 0, 0))
        file.seek(size)
        file.write(end_records(0, size, 1, b""))
    tracemalloc.start()
    try:
        for store in (
            lambda: ZipStore(path),
            lambda: RemoteZipStore(LocalStore(tmp_path, read_only=True), "a.zip"),
        ):
            with pytest.raises(
                ZarrError, match="is not a readable zip file: its central directory has no record"
            ):
                store()
        assert tracemalloc.get_traced_memory()[1] < 80 << 20
    finally:
        tracemalloc.stop()
