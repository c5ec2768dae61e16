"""Unusual directories and zip files: symlink cycles, pipes, devices, files of a terabyte, zip bombs."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.documents import named
from tests.faults.hostile import GIGABYTE, NBYTES, StoreDict, little, v2, v3

TERABYTE = 1 << 40


class FileCase(NamedTuple):
    """A store that ``make`` creates at a path, and whether reading it raises ZarrError or succeeds."""

    name: str
    make: Callable[[Path], None]
    fails: bool = True


def cases() -> Iterator[FileCase]:
    yield from _directories()
    yield from _zip_files()


def write(path: Path, store: StoreDict) -> None:
    """Write the keys and values of a store into a directory."""
    for key, value in store.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(value)


GROUP = {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}
GZIPPED = {"codecs": [little(), named("gzip", level=5)]}


# -- directories -----------------------------------------------------------------------------------------------


def _directories() -> Iterator[FileCase]:
    yield FileCase("links to itself", _symlink_cycles, fails=False)
    yield FileCase("metadata that links to itself", _symlink_to_itself("zarr.json"))
    yield FileCase("chunk that links to itself", _symlink_to_itself("c/0/0"))
    yield FileCase("chunk that links to nothing", partial(_symlink_to, "c/0/0", "nowhere"), fails=False)
    yield FileCase("chunk that is a directory", _chunk_directory, fails=False)
    yield FileCase("metadata from a pipe", partial(_pipe, "zarr.json"))
    yield FileCase("v2 metadata from a pipe", partial(_pipe, ".zarray"))
    yield FileCase("chunk from a pipe", partial(_pipe, "c/0/0"))
    for device in ("zero", "urandom", "full"):
        yield FileCase(f"metadata from /dev/{device}", partial(_symlink_to, "zarr.json", f"/dev/{device}"))
        yield FileCase(f"chunk from /dev/{device}", partial(_symlink_to, "c/0/0", f"/dev/{device}"))
    yield FileCase("metadata of a terabyte", partial(_sparse_file, "zarr.json", v3()))
    yield FileCase("v2 metadata of a terabyte", partial(_sparse_file, ".zarray", v2()))
    yield FileCase("v2 attributes of a terabyte", partial(_sparse_file, ".zattrs", v2()))
    yield FileCase("chunk of a terabyte", partial(_sparse_file, "c/0/0", v3()))
    yield FileCase("gzipped chunk of a terabyte", partial(_sparse_file, "c/0/0", v3(**GZIPPED)))


def _symlink_cycles(path: Path) -> None:
    write(path, GROUP)
    write(path / "image", v3())
    for name in ("a", "b", "c"):
        (path / name).symlink_to(".")


def _symlink_to_itself(key: str) -> Callable[[Path], None]:
    return lambda path: _symlink_to(key, Path(key).name, path)


def _symlink_to(key: str, target: str, path: Path) -> None:
    write(path, v3())
    (path / key).unlink()
    (path / key).symlink_to(target)


def _chunk_directory(path: Path) -> None:
    write(path, v3(chunk=None))
    (path / "c/0/0").mkdir(parents=True)


def _pipe(key: str, path: Path) -> None:
    write(path, v2() if key == ".zarray" else v3())
    (path / key).unlink()
    os.mkfifo(path / key)


def _sparse_file(key: str, store: StoreDict, path: Path) -> None:
    write(path, store)
    (path / key).touch()
    os.truncate(path / key, TERABYTE)


# -- zip files -------------------------------------------------------------------------------------------------


def _zip_files() -> Iterator[FileCase]:
    yield FileCase("zip: not a zip file.zip", lambda path: path.write_bytes(b"PK\3\4" + bytes(100)) and None)
    yield FileCase("zip: empty.zip", lambda path: path.write_bytes(b"") and None)
    yield FileCase("zip: truncated.zip", _truncated_zip)
    yield FileCase("zip: metadata bomb.zip", partial(_zip, {"zarr.json": bytes(GIGABYTE // 4)}))
    yield FileCase("zip: chunk bomb.zip", partial(_zip, v3(chunk=bytes(GIGABYTE // 4))))
    yield FileCase("zip: false size of metadata.zip", partial(_zip_with_false_size, "zarr.json"))
    yield FileCase("zip: false size of a chunk.zip", partial(_zip_with_false_size, "c/0/0"))
    yield FileCase(
        "zip: members outside.zip", partial(_zip, v3() | {"../evil": b"x", "/etc/evil": b"x"}), fails=False
    )
    yield FileCase("zip: member with the encryption flag.zip", _encrypted_zip)


def _zip(store: StoreDict, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in store.items():
            archive.writestr(key, value)


def _truncated_zip(path: Path) -> None:
    _zip(v3(), path)
    os.truncate(path, path.stat().st_size - 30)


def _directory_entry(data: bytes, key: str) -> int:
    """Return the offset of the entry of a member in the central directory."""
    name = key.encode()
    position = data.rindex(name)
    start = position - 46
    assert data[start : start + 4] == b"PK\1\2"
    return start


def _zip_with_false_size(key: str, path: Path) -> None:
    """Write a zip file whose central directory declares four gigabytes for a member of a few bytes."""
    _zip(v3(chunk=bytes(NBYTES)), path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, _directory_entry(bytes(data), key) + 24, 2**32 - 2)
    path.write_bytes(bytes(data))


def _encrypted_zip(path: Path) -> None:
    _zip(v3(), path)
    data = bytearray(path.read_bytes())
    data[_directory_entry(bytes(data), "zarr.json") + 8] |= 1
    path.write_bytes(bytes(data))
