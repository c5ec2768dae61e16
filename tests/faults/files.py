"""Directories and zip files that are traps: links in circles, pipes, devices, files of a terabyte, zip bombs."""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tests.faults.hostile import GIGABYTE, NBYTES, StoreDict, codec, little, v2, v3

TERABYTE = 1 << 40


class FileCase(NamedTuple):
    """What ``make`` puts at a path, and whether meeting it is an error (or just nothing to fall for)."""

    name: str
    make: Callable[[Path], None]
    fails: bool = True


def cases() -> Iterator[FileCase]:
    yield from _directories()
    yield from _zip_files()


def write(path: Path, store: StoreDict) -> None:
    """Put a store into a directory."""
    for key, value in store.items():
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(value)


GROUP = {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}'}
GZIPPED = {"codecs": [little(), codec("gzip", level=5)]}


# -- directories -----------------------------------------------------------------------------------------------


def _directories() -> Iterator[FileCase]:
    yield FileCase("links to itself", _links_in_circles, fails=False)
    yield FileCase("metadata that links to itself", _loop("zarr.json"))
    yield FileCase("chunk that links to itself", _loop("c/0/0"))
    yield FileCase("chunk that links to nothing", partial(_linked, "c/0/0", "nowhere"), fails=False)
    yield FileCase("chunk that is a directory", _chunk_directory, fails=False)
    yield FileCase("metadata from a pipe", partial(_pipe, "zarr.json"))
    yield FileCase("v2 metadata from a pipe", partial(_pipe, ".zarray"))
    yield FileCase("chunk from a pipe", partial(_pipe, "c/0/0"))
    for device in ("zero", "urandom", "full"):
        yield FileCase(f"metadata from /dev/{device}", partial(_linked, "zarr.json", f"/dev/{device}"))
        yield FileCase(f"chunk from /dev/{device}", partial(_linked, "c/0/0", f"/dev/{device}"))
    yield FileCase("metadata of a terabyte", partial(_sparse, "zarr.json", v3()))
    yield FileCase("v2 metadata of a terabyte", partial(_sparse, ".zarray", v2()))
    yield FileCase("v2 attributes of a terabyte", partial(_sparse, ".zattrs", v2()))
    yield FileCase("chunk of a terabyte", partial(_sparse, "c/0/0", v3()))
    yield FileCase("gzipped chunk of a terabyte", partial(_sparse, "c/0/0", v3(**GZIPPED)))


def _links_in_circles(path: Path) -> None:
    write(path, GROUP)
    write(path / "image", v3())
    for name in ("a", "b", "c"):
        (path / name).symlink_to(".")


def _loop(key: str) -> Callable[[Path], None]:
    return lambda path: _linked(key, Path(key).name, path)


def _linked(key: str, target: str, path: Path) -> None:
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


def _sparse(key: str, store: StoreDict, path: Path) -> None:
    write(path, store)
    (path / key).touch()
    os.truncate(path / key, TERABYTE)


# -- zip files -------------------------------------------------------------------------------------------------


def _zip_files() -> Iterator[FileCase]:
    yield FileCase("zip: no zip at all.zip", lambda path: path.write_bytes(b"PK\3\4" + bytes(100)) and None)
    yield FileCase("zip: empty.zip", lambda path: path.write_bytes(b"") and None)
    yield FileCase("zip: cut short.zip", _cut_zip)
    yield FileCase("zip: metadata bomb.zip", partial(_zip, {"zarr.json": bytes(GIGABYTE // 4)}))
    yield FileCase("zip: chunk bomb.zip", partial(_zip, v3(chunk=bytes(GIGABYTE // 4))))
    yield FileCase("zip: metadata size that lies.zip", partial(_lying_zip, "zarr.json"))
    yield FileCase("zip: chunk size that lies.zip", partial(_lying_zip, "c/0/0"))
    yield FileCase(
        "zip: members outside.zip", partial(_zip, v3() | {"../evil": b"x", "/etc/evil": b"x"}), fails=False
    )
    yield FileCase("zip: member that says it is encrypted.zip", _encrypted_zip)


def _zip(store: StoreDict, path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in store.items():
            archive.writestr(key, value)


def _cut_zip(path: Path) -> None:
    _zip(v3(), path)
    os.truncate(path, path.stat().st_size - 30)


def _directory_entry(data: bytes, key: str) -> int:
    """Where the central directory speaks of a member."""
    name = key.encode()
    position = data.rindex(name)
    start = position - 46
    assert data[start : start + 4] == b"PK\1\2"
    return start


def _lying_zip(key: str, path: Path) -> None:
    """The directory claims four gigabytes for a member of a few bytes."""
    _zip(v3(chunk=bytes(NBYTES)), path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, _directory_entry(bytes(data), key) + 24, 2**32 - 2)
    path.write_bytes(bytes(data))


def _encrypted_zip(path: Path) -> None:
    _zip(v3(), path)
    data = bytearray(path.read_bytes())
    data[_directory_entry(bytes(data), "zarr.json") + 8] |= 1
    path.write_bytes(bytes(data))
