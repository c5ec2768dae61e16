"""zarrfs and zarr-python 2 copy nodes and keys with equal counts, log lines, documents and values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest

import zarrfs
from tests.interop.zarr2.zarr2_environment import Zarr2, Zarr2Error

DATA = np.arange(24, dtype="i4").reshape(4, 6)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = zarrfs.group(tmp_path / "source", zarr_format=2, attributes={"root": 1})
    foo = root.create_group("foo", attributes={"level": 1})
    foo.create_array("x", data=DATA, chunks=(2, 3), attributes={"unit": "m"}, compressors=numcodecs.Zlib(2))
    foo.create_array("deep/y", data=DATA[0], chunks=4, compressors=None)
    return tmp_path / "source"


def files(folder: Path) -> dict[str, Any]:
    """Return the stored chunks, and the parsed documents without default values."""
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        if path.name.startswith(".z"):
            document = json.loads(path.read_bytes())
            if document.get("dimension_separator") == ".":
                del document["dimension_separator"]
            if document:
                found[str(path.relative_to(folder))] = document
        elif path.is_file():
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def directory(path: Path) -> Any:
    return "DirectoryStore", {"path": str(path)}


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("copy", {"source_path": "foo"}),
    ("copy", {"source_path": "foo", "name": "bar"}),
    ("copy", {"source_path": "foo", "shallow": True}),
    ("copy", {"source_path": "foo", "without_attrs": True}),
    ("copy", {"source_path": "foo", "dry_run": True}),
    ("copy", {"source_path": "foo/x", "chunks": (4, 3)}),
    ("copy", {"source_path": "foo/x", "compressor": None, "order": "F"}),
    ("copy_all", {}),
    ("copy_all", {"source_path": "foo"}),
    ("copy_store", {"source_path": "foo", "dest_path": "bar"}),
    ("copy_store", {"excludes": "zattrs", "includes": ["deep"]}),
    ("copy_store", {"dry_run": True}),
]


@pytest.mark.parametrize("again", [None, "raise", "skip", "replace", "skip_initialized"])
@pytest.mark.parametrize(("name", "options"), CALLS, ids=str)
def test_copies_are_equal(
    name: str, options: dict[str, Any], again: Any, zarr2: Zarr2, source: Path, tmp_path: Path
) -> None:
    if name == "copy_store" and again == "skip_initialized":
        return
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    for if_exists in ["raise"] if again is None else ["raise", again]:
        error = None
        try:
            expected, lines = zarr2(
                "copies", name, directory(source), directory(theirs), if_exists=if_exists, **options
            )
        except Zarr2Error as found:
            error = found.kind
        given = {**options, "if_exists": if_exists}
        mine: list[str] = []
        if error is not None:
            assert error == "CopyError"
            with pytest.raises(zarrfs.NodeExistsError):
                call(name, source, ours, given, mine)
            continue
        assert call(name, source, ours, given, mine) == tuple(expected)
        if name != "copy_store":
            assert mine[:-1] == lines[:-1]
    if name == "copy_store" and "dry_run" not in options:
        zarrfs.group(ours, zarr_format=2)
        zarrfs.group(theirs, zarr_format=2)
    assert files(ours) == files(theirs)


def call(name: str, source: Path, dest: Path, given: dict[str, Any], lines: list[str]) -> Any:
    options = dict(given)
    if name == "copy_store":
        return zarrfs.copy_store(source, dest, log=lines.append, **options)
    root = zarrfs.open_group(source)
    inner = options.pop("source_path", "")
    node: Any = root[inner] if inner else root
    group = zarrfs.group(dest, zarr_format=2)
    return getattr(zarrfs, name)(node, group, log=lines.append, **options)
