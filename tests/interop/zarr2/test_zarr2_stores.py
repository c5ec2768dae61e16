"""zarrfs and zarr-python 2 read each other's hierarchies in every kind of store."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import free_port, redis_server, wait_for
from tests.interop.samples import same_bits
from tests.interop.zarr2.zarr2_environment import Zarr2
from tests.processes import running
from tests.programs import require_program
from zarrfs.tools import consolidate_metadata

StoreName = tuple[str, dict[str, Any]]

NUMBERS = np.arange(35, dtype="<i4").reshape(7, 5)
CUBE = np.arange(24, dtype="<f8").reshape(2, 3, 4)
WORDS = np.array(["a", "", "Ångström", "🧬"], object)


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    with redis_server() as url:
        yield url


@pytest.fixture(scope="module")
def mongodb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = require_program("mongod")
    port = free_port()
    folder = tmp_path_factory.mktemp("mongodb")
    command = [program, "--port", str(port), "--dbpath", str(folder), "--bind_ip", "127.0.0.1"]
    with running(command, stdout=subprocess.DEVNULL) as process:
        wait_for(port, process)
        yield f"mongodb://127.0.0.1:{port}"


def _server(url: str) -> dict[str, Any]:
    host, _, port = url.partition("://")[2].partition(":")
    return {"host": host, "port": int(port)}


Place = tuple[StoreName, str]
"""The store for zarr-python 2, and the location for zarrfs."""


def _redis(path: Path, request: pytest.FixtureRequest) -> Place:
    url, prefix = request.getfixturevalue("redis"), uuid.uuid4().hex
    return ("RedisStore", {"prefix": prefix, **_server(url)}), f"{url}?prefix={prefix}"


def _mongodb(path: Path, request: pytest.FixtureRequest) -> Place:
    url, name = request.getfixturevalue("mongodb"), uuid.uuid4().hex
    return (
        ("MongoDBStore", {"database": "tests", "collection": name, **_server(url)}),
        f"{url}/tests?collection={name}",
    )


def _in(kind: str, option: str, scheme: str, name: str, **more: Any) -> Callable[[Path, Any], Place]:
    return lambda path, request: ((kind, {option: str(path / name), **more}), f"{scheme}{path / name}")


STORES: dict[str, Callable[[Path, Any], Place]] = {
    "directory": _in("DirectoryStore", "path", "", "a.zarr"),
    "directory, slashes": _in("DirectoryStore", "path", "file://", "a.zarr", dimension_separator="/"),
    "nested directory": _in("NestedDirectoryStore", "path", "", "a.zarr"),
    "fsspec": _in("FSStore", "url", "", "a.zarr"),
    "fsspec, slashes": _in("FSStore", "url", "local://", "a.zarr", dimension_separator="/"),
    "zip": _in("ZipStore", "path", "", "a.zip"),
    "zip, compressed": _in("ZipStore", "path", "", "a.zip", compression=8),
    "sqlite": _in("SQLiteStore", "path", "sqlite://", "a.sqldb"),
    "sqlite, by content": _in("SQLiteStore", "path", "", "a.sqldb"),
    "lmdb": _in("LMDBStore", "path", "lmdb://", "a.lmdb"),
    "lmdb, by content": _in("LMDBStore", "path", "", "a.lmdb"),
    "dbm, dumb": _in("DBMStore", "path", "dbm://", "a.dbm"),
    "dbm, by default": _in("DBMStore", "path", "dbm://", "a.dbm", open=None),
    "redis": _redis,
    "mongodb": _mongodb,
}

NOT_CREATED = ("sqlite, by content", "lmdb, by content", "dbm, dumb", "fsspec, slashes")
CREATED = [name for name in STORES if name not in NOT_CREATED]
"""The stores that zarrfs creates at the same location. A database that is recognized by its content must exist. The dbm
files of zarrfs have the type that Python selects. An FSStore with slashes ignores the separator in the documents."""


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return STORES[request.param](tmp_path, request)


def nodes(with_strings: bool = True) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the nodes of a hierarchy: (path, kind, options of arrays and attributes)."""
    specs: list[tuple[str, str, dict[str, Any]]] = [
        ("", "group", {"attributes": {"title": "Ångström", "list": [1, None, {"x": 2.5}]}}),
        ("numbers", "array", {"data": NUMBERS, "chunks": (3, 2), "attributes": {"unit": "µm"}}),
        ("inner", "group", {"attributes": {}}),
        ("inner/deep", "group", {"attributes": {"deep": True}}),
        ("inner/deep/cube", "array", {"data": CUBE, "chunks": (1, 2, 3), "attributes": {}}),
        ("inner/empty", "group", {"attributes": {}}),
    ]
    if with_strings:
        specs.append(("inner/words", "array", {"data": WORDS, "chunks": (3,), "attributes": {"a": {}}}))
    return specs


def options_for_zarr2(specs: list[tuple[str, str, dict[str, Any]]]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, kind, {**options, **({"object_codec": {"id": "vlen-utf8"}} if "words" in path else {})})
        for path, kind, options in specs
    ]


def create_hierarchy(
    location: Any, specs: list[tuple[str, str, dict[str, Any]]], zarr_format: Any = 2
) -> None:
    root = zarrfs.create_group(location, zarr_format=zarr_format, attributes=specs[0][2]["attributes"])
    for path, kind, options in specs[1:]:
        if kind == "group":
            root.create_group(path, attributes=options["attributes"])
        else:
            more = {"dtype": str} if "words" in path else {}
            root.create_array(path, **options, **more)
    root.store.close()


def read_hierarchy(location: Any) -> dict[str, Any]:
    """Read every node; the counterpart of ``walk`` of the worker."""
    root = zarrfs.open_group(location)
    found: dict[str, Any] = {"": (root.attrs.asdict(), None)}
    for path, node in root.walk():
        found[path] = (node.attrs.asdict(), node[...] if isinstance(node, zarrfs.Array) else None)
    root.store.close()
    return found


def check(found: dict[str, Any], specs: list[tuple[str, str, dict[str, Any]]]) -> None:
    assert sorted(found) == sorted(path for path, _, _ in specs)
    for path, kind, options in specs:
        attributes, values = found[path]
        assert attributes == options["attributes"], path
        if kind == "group":
            assert values is None
        else:
            assert same_bits(values, options["data"]), path


@pytest.mark.parametrize("place", STORES, indirect=True)
def test_hierarchies_of_zarr_python_2_are_read(zarr2: Zarr2, place: Place) -> None:
    store, location = place
    # In an SQLite database, consolidation of zarr-python 2 stops at the first document.
    zarr2("build", store, options_for_zarr2(nodes()), consolidate=store[0] != "SQLiteStore")
    check(read_hierarchy(location), nodes())


@pytest.mark.parametrize("place", CREATED, indirect=True)
def test_zarr_python_2_reads_our_hierarchies(zarr2: Zarr2, place: Place) -> None:
    store, location = place
    create_hierarchy(location, nodes())
    check(zarr2("walk", store), nodes())


@pytest.mark.parametrize("place", CREATED, indirect=True)
def test_each_modifies_a_hierarchy_of_the_other(zarr2: Zarr2, place: Place) -> None:
    store, location = place
    zarr2("build", store, options_for_zarr2(nodes()[:3]))
    root = zarrfs.open_group(location, mode="r+")
    root.create_array("inner/more", data=CUBE, chunks=(2, 2, 2), attributes={"by": "us"})
    root["numbers"].attrs["again"] = 1
    if not location.endswith(".zip"):
        root["numbers"][1, 1:3] = -1
    root.store.close()
    found = zarr2("walk", store)
    assert found["inner/more"][0] == {"by": "us"}
    assert same_bits(found["inner/more"][1], CUBE)
    assert found["numbers"][0] == {"unit": "µm", "again": 1}
    changed = NUMBERS.copy()
    if not location.endswith(".zip"):
        changed[1, 1:3] = -1
    assert same_bits(found["numbers"][1], changed)


@pytest.mark.parametrize("kind", ["N5Store", "N5FSStore"])
def test_n5_of_zarr_python_2_is_read(zarr2: Zarr2, kind: str, tmp_path: Path) -> None:
    store = kind, {("path" if kind == "N5Store" else "url"): str(tmp_path / "a.n5")}
    zarr2("build", store, nodes(with_strings=False))
    found = read_hierarchy(tmp_path / "a.n5")
    check(found, nodes(with_strings=False))


@pytest.mark.parametrize("kind", ["N5Store", "N5FSStore"])
def test_zarr_python_2_reads_our_n5(zarr2: Zarr2, kind: str, tmp_path: Path) -> None:
    store = kind, {("path" if kind == "N5Store" else "url"): str(tmp_path / "a.n5")}
    create_hierarchy(tmp_path / "a.n5", nodes(with_strings=False), "n5")
    check(zarr2("walk", store), nodes(with_strings=False))


N5_COMPRESSORS: dict[str, Any] = {
    "raw": None,
    "gzip": {"id": "gzip", "level": 3},
    "zlib": {"id": "zlib", "level": 3},
    "bz2": {"id": "bz2", "level": 3},
    "lzma": {"id": "lzma", "format": 1, "check": -1, "preset": 1, "filters": None},
    "blosc": {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
    "zstd": {"id": "zstd", "level": 2, "checksum": False},
    "lz4": {"id": "lz4", "acceleration": 1},
}


@pytest.mark.parametrize("dtype", ["u1", "i2", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("compressor", N5_COMPRESSORS)
def test_n5_compressors_are_exchanged(zarr2: Zarr2, compressor: str, dtype: str, tmp_path: Path) -> None:
    data = (NUMBERS * 3).astype(dtype)
    store = "N5FSStore", {"url": str(tmp_path / "theirs")}
    zarr2("create", store, "x", data=data, compressor=N5_COMPRESSORS[compressor], **array_options(data))
    assert same_bits(zarrfs.open_array(tmp_path / "theirs", "x")[...], data)
    group = zarrfs.create_group(tmp_path / "ours", zarr_format="n5")
    group.create_array("x", data=data, chunks=(3, 2), compressors=N5_COMPRESSORS[compressor])
    assert same_bits(zarr2("read", ("N5FSStore", {"url": str(tmp_path / "ours")}), "x")[0], data)


def array_options(data: Any) -> dict[str, Any]:
    return {"shape": data.shape, "dtype": data.dtype, "chunks": (3, 2)}


def test_temporary_stores_are_read(zarr2: Zarr2, tmp_path: Path) -> None:
    zarr2("temporary", NUMBERS, str(tmp_path / "copy"))
    assert same_bits(zarrfs.open_array(tmp_path / "copy")[...], NUMBERS)


def test_nested_chunks_without_a_declared_separator_are_read(
    zarr2: Zarr2, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """zarr-python before 2.8 wrote no separator into the document, although the chunks are in nested directories."""
    import json

    zarr2("create", ("NestedDirectoryStore", {"path": str(tmp_path)}), data=NUMBERS, **array_options(NUMBERS))
    document = json.loads((tmp_path / ".zarray").read_text())
    assert document.pop("dimension_separator") == "/"
    (tmp_path / ".zarray").write_text(json.dumps(document))
    assert same_bits(zarrfs.open_array(tmp_path)[...], NUMBERS)
    assert "nested directories" in caplog.text


@pytest.mark.parametrize("place", ["directory", "zip", "sqlite"], indirect=True)
def test_consolidated_metadata(zarr2: Zarr2, place: Place) -> None:
    """Each implementation reads the consolidated metadata of the other one."""
    store, location = place
    create_hierarchy(location, nodes())
    assert consolidate_metadata(location).nmembers(None) == len(nodes()) - 1
    check(zarr2("walk", store, consolidated=True), nodes())
