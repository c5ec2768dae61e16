"""Tests of remote stores: web servers, S3, references, remote zip files, and missing packages."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.servers import WebServer, s3_server, web_server
from tests.engine.stores.special_files import make_special_file
from tests.processes import TIMEOUT
from zarrfs.cli.main import main
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.errors import LocationError, NodeNotFoundError, StoreError
from zarrfs.synthetic import make_picture, write_image

DATA = np.arange(40 * 60, dtype="u2").reshape(40, 60)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    """A web server for a group with an unsharded and a sharded array, and for an array of Zarr v2."""
    root = tmp_path / "site"
    zarrfs.create_group(root / "g.zarr", attributes={"title": "remote"})
    zarrfs.create_array(root / "g.zarr", "plain", data=DATA, chunks=(10, 10))
    zarrfs.create_array(root / "g.zarr", "shards", data=DATA, chunks=(5, 5), shards=(20, 20))
    zarrfs.create_array(root / "old.zarr", data=DATA, chunks=(7, 11), zarr_format=2)
    with web_server(root) as server:
        yield server


@pytest.mark.parametrize("supports_ranges", [True, False], ids=["ranges", "no ranges"])
@pytest.mark.parametrize("path", ["g.zarr/plain", "g.zarr/shards", "old.zarr"])
def test_arrays_on_a_web_server_are_read(path: str, supports_ranges: bool, web: WebServer) -> None:
    web.supports_ranges = supports_ranges
    array = zarrfs.open_array(f"{web.url}/{path}")
    assert np.array_equal(array[...], DATA)
    assert np.array_equal(array[13:29, 7], DATA[13:29, 7])
    assert array[-1, -1] == DATA[-1, -1]
    array.store.close()


def test_the_url_of_a_metadata_document_opens_its_node(web: WebServer) -> None:
    with zarrfs.open_group(f"{web.url}/g.zarr/zarr.json").store as store:
        assert store.url == f"{web.url}/g.zarr"


def test_reading_an_inner_chunk_takes_two_requests(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/shards")
    assert sum(web.requests.values()) == 1
    web.requests.clear()
    assert array[0, 0] == DATA[0, 0]
    # The index and the inner chunk. Other shards are not read.
    assert dict(web.requests) == {"/g.zarr/shards/c/0/0": 2}
    web.requests.clear()
    assert array[0, 1] == DATA[0, 1]
    assert sum(web.requests.values()) == 0
    array.store.close()


def test_chunks_are_fetched_concurrently(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain")
    barrier = threading.Barrier(12)
    timed_out: list[str] = []

    def wait_for_others(path: str) -> None:
        try:
            barrier.wait(TIMEOUT)
        except threading.BrokenBarrierError:
            timed_out.append(path)

    web.before_response = wait_for_others
    assert np.array_equal(array[...], DATA)  # 24 chunks: two rounds of twelve
    assert not timed_out
    web.before_response = lambda path: None
    array.store.close()


def test_a_missing_chunk_is_the_fill_value_and_an_error_status_is_an_error(web: WebServer) -> None:
    (web.folder / "g.zarr" / "plain" / "c" / "0" / "0").unlink()
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain", cache_size=0)
    assert (array[:10, :10] == 0).all()
    for status in (403, 500, 503):
        web.status_for = lambda path, status=status: status if path.endswith("c/1/1") else None
        with pytest.raises(StoreError, match=f"c/1/1 cannot be read: {status}"):
            array[10:20, 10:20]
        assert np.array_equal(array[20:], DATA[20:])
    web.status_for = lambda path: None
    assert np.array_equal(array[10:20], DATA[10:20])
    array.store.close()


def test_a_stopped_server_is_an_error(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain")
    web.close()
    with pytest.raises(StoreError, match="cannot be read"):
        array[...]
    with pytest.raises(StoreError, match="cannot be read"):
        zarrfs.open(f"{web.url}/g.zarr")
    array.store.close()


def test_a_url_without_a_node_is_an_error(web: WebServer) -> None:
    with pytest.raises(NodeNotFoundError, match="no Zarr array or group here"):
        zarrfs.open(f"{web.url}/nothing.zarr")


def test_credentials_in_the_url_are_used_and_not_displayed(web: WebServer) -> None:
    web.credentials = ("ada", "secret")
    with pytest.raises(StoreError, match="401"):
        zarrfs.open(f"{web.url}/g.zarr")
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain".replace("http://", "http://ada:secret@"))
    assert np.array_equal(array[...], DATA)
    assert "secret" not in array.store.url
    assert "secret" not in repr(array)
    array.store.close()


def test_headers_in_storage_options_are_sent(web: WebServer) -> None:
    web.credentials = ("ada", "secret")
    options = {"headers": {"Authorization": "Basic YWRhOnNlY3JldA=="}}
    array = zarrfs.open(f"{web.url}/g.zarr/shards", storage_options=options)
    assert isinstance(array, zarrfs.Array)
    assert np.array_equal(array[...], DATA)
    array.store.close()


def test_nearby_inner_chunks_are_fetched_as_one_range(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/shards")
    web.reset()
    assert np.array_equal(array[5:15, 0:20], DATA[5:15, 0:20])
    # Eight of sixteen inner chunks, which are near each other: the index, and one range for all of them.
    assert dict(web.requests) == {"/g.zarr/shards/c/0/0": 2}
    array.store.close()


def test_distant_inner_chunks_are_fetched_concurrently_as_separate_ranges(web: WebServer) -> None:
    data = np.random.default_rng(1).integers(0, 2**16, (512, 512), "u2")
    zarrfs.create_array(
        web.folder / "large.zarr", data=data, chunks=(128, 128), shards=(512, 512), compressors=[]
    )
    array = zarrfs.open_array(f"{web.url}/large.zarr")
    web.reset()
    assert array[0, 0] == data[0, 0]
    assert dict(web.requests) == {"/large.zarr/c/0/0": 2}
    index = 16 * 16 + 4
    assert web.bytes_sent == index + 128 * 128 * 2
    barrier = threading.Barrier(4)
    timed_out: list[str] = []

    def wait_for_others(path: str) -> None:
        try:
            barrier.wait(TIMEOUT)
        except threading.BrokenBarrierError:
            timed_out.append(path)

    web.reset()
    web.before_response = wait_for_others
    # A column of inner chunks. The server responds after all four requests have arrived.
    assert np.array_equal(array[:, 130], data[:, 130])
    assert not timed_out
    assert dict(web.requests) == {"/large.zarr/c/0/0": 4}
    assert web.bytes_sent < 5 * 128 * 128 * 2
    web.before_response = lambda path: None
    array.store.close()


def test_members_are_opened_without_a_listing(web: WebServer) -> None:
    group = zarrfs.open_group(f"{web.url}/g.zarr")
    assert np.array_equal(group["plain"][...], DATA)
    with pytest.raises(StoreError, match="cannot be listed"):
        group.names()
    group.store.close()


def test_consolidated_metadata_need_no_listing(web: WebServer) -> None:
    with pytest.warns(match="not part in the Zarr format 3"):
        zarr.consolidate_metadata(str(web.folder / "g.zarr"))
    group = zarrfs.open_group(f"{web.url}/g.zarr")
    assert sorted(group.names()) == ["plain", "shards"]
    assert sum(web.requests.values()) == 1
    group.store.close()


def test_consolidated_metadata_of_v2_need_no_listing(web: WebServer) -> None:
    group = zarrfs.create_group(web.folder / "two.zarr", zarr_format=2)
    group.create_array("a", data=DATA, chunks=(10, 10))
    group.create_group("b").create_array("c", data=DATA, chunks=(10, 10))
    zarr.consolidate_metadata(str(web.folder / "two.zarr"))
    remote_group = zarrfs.open_group(f"{web.url}/two.zarr")
    assert sorted(remote_group.names()) == ["a", "b"]
    assert np.array_equal(remote_group["b/c"][...], DATA)
    assert {path for path in web.requests if path.rpartition("/")[2].startswith(".z")} <= {
        "/two.zarr/.zmetadata",
        "/two.zarr/.zgroup",
        "/two.zarr/.zattrs",
        "/two.zarr/.zarray",
    }
    remote_group.store.close()


def test_ome_metadata_name_the_members_on_a_web_server(web: WebServer) -> None:
    write_image(web.folder / "i.zarr", make_picture((2, 32, 32)), levels=2)
    result = CliRunner().invoke(main, ["tree", f"{web.url}/i.zarr"])
    assert result.exit_code == 0, result.output
    for name in ("── 0", "── 1", "── labels", "── nuclei"):
        assert name in result.output
    result = CliRunner().invoke(main, ["info", f"{web.url}/i.zarr"])
    assert result.exit_code == 0, result.output
    assert "labels" in result.output


def test_a_zip_file_on_a_web_server_is_opened(web: WebServer) -> None:
    with zipfile.ZipFile(web.folder / "g.zarr.zip", "w") as archive:
        for file in (web.folder / "g.zarr").rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(web.folder / "g.zarr"))
    for url in (f"{web.url}/g.zarr.zip", f"zip::{web.url}/g.zarr.zip"):
        group = zarrfs.open_group(url)
        assert sorted(group.names()) == ["plain", "shards"]
        assert np.array_equal(group["shards"][...], DATA)
        group.store.close()


def zip_directory(folder: Path, compression: int) -> Path:
    """Write a directory to a zip file with the same name and the suffix ``.zip``, and return its path."""
    archive_path = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(archive_path, "w", compression) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return archive_path


def test_a_path_continues_into_a_zip_file_on_a_web_server(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    shutil.copytree(web.folder / "g.zarr", tmp_path / "root" / "my image.zarr")
    shutil.copy(zip_directory(tmp_path / "root", zipfile.ZIP_STORED), web.folder / "a.zip")
    for inner in ("", "/", "/zarr.json", "/plain", "/plain/zarr.json"):
        with zarrfs.open(f"{web.url}/a.zip/my%20image.zarr{inner}") as node:
            array = node["plain"] if isinstance(node, zarrfs.Group) else node
            assert np.array_equal(array[...], DATA)
    result = CliRunner().invoke(main, ["info", f"{web.url}/a.zip/my%20image.zarr/plain?token=1"])
    assert result.exit_code == 0, result.output
    with pytest.raises(NodeNotFoundError, match="plane"):
        zarrfs.open(f"{web.url}/a.zip/my%20image.zarr/plane")
    with pytest.raises(LocationError, match="a remote zip file cannot be changed"):
        zarrfs.create_group(f"{web.url}/a.zip/new.zarr")


def test_a_directory_of_a_server_may_have_the_suffix_of_a_zip_file(web: WebServer) -> None:
    shutil.copytree(web.folder / "g.zarr", web.folder / "b.zip" / "g.zarr")
    assert np.array_equal(zarrfs.open_array(f"{web.url}/b.zip/g.zarr/plain")[...], DATA)
    zarrfs.create_array("memory://bucket/c.zip/new.zarr", data=[1, 2])
    assert zarrfs.open_array("memory://bucket/c.zip/new.zarr")[:].tolist() == [1, 2]


def test_only_requested_ranges_of_a_remote_zip_file_are_fetched(web: WebServer) -> None:
    data = np.random.default_rng(1).integers(0, 2**16, (2048, 512), "u2")
    zarrfs.create_array(
        web.folder / "big.zarr", data=data, chunks=(64, 64), shards=(512, 512), compressors=[]
    )
    zip_directory(web.folder / "big.zarr", zipfile.ZIP_STORED)
    array = zarrfs.open_array(f"zip::{web.url}/big.zarr.zip")
    # The size, the end with the central directory, and zarr.json.
    assert dict(web.requests) == {"/big.zarr.zip": 3}
    assert web.bytes_sent < (70 << 10)
    web.reset()
    assert array[700, 300] == data[700, 300]
    # The local header with the name, the index of the shard, and the inner chunk.
    assert (web.requests["/big.zarr.zip"], web.bytes_sent) == (
        3,
        30 + len("c/1/0") + 64 * 16 + 4 + 64 * 64 * 2,
    )
    web.reset()
    assert array[900, 10] == data[900, 10]
    assert (web.requests["/big.zarr.zip"], web.bytes_sent) == (1, 64 * 64 * 2)
    assert np.array_equal(array[...], data)
    array.store.close()


def test_reading_a_member_of_a_remote_zip_file_takes_one_request(web: WebServer) -> None:
    zip_directory(web.folder / "old.zarr", zipfile.ZIP_DEFLATED)
    for url, path in (
        (f"zip::{web.url}/old.zarr.zip", ""),
        (f"zip://::{web.url}/old.zarr.zip", ""),
        (f"{web.url}/old.zarr.zip?token=1", ""),
    ):
        array = zarrfs.open_array(url, path)
        web.reset()
        assert np.array_equal(array[:7, :11], DATA[:7, :11])
        assert web.requests["/old.zarr.zip"] == 1
        assert np.array_equal(array[...], DATA)
        array.store.close()
    zip_directory(web.folder / "g.zarr", zipfile.ZIP_STORED)
    inner = zarrfs.open_array(f"zip://plain::{web.url}/g.zarr.zip")
    assert np.array_equal(inner[...], DATA)
    inner.store.close()


def test_failures_of_a_remote_zip_file_are_errors(web: WebServer) -> None:
    zip_directory(web.folder / "old.zarr", zipfile.ZIP_STORED)
    url = f"zip::{web.url}/old.zarr.zip"
    with pytest.raises(LocationError, match="does not exist"):
        zarrfs.open(f"zip::{web.url}/nothing.zip")
    with pytest.raises(LocationError, match="a remote zip file cannot be changed"):
        zarrfs.open(url, mode="r+")
    array = zarrfs.open_array(url, cache_size=0)
    for status, message in ((404, "was deleted"), (503, "503")):
        web.status_for = lambda path, status=status: status
        with pytest.raises(StoreError, match=message):
            array[0, 0]
        with pytest.raises((StoreError, LocationError), match=r"old\.zarr\.zip"):
            zarrfs.open(url)
    web.status_for = lambda path: None
    (web.folder / "old.zarr.zip").write_bytes((web.folder / "old.zarr.zip").read_bytes()[:2000])
    with pytest.raises(StoreError, match=r"corrupt|truncated"):
        array[...]
    array.store.close()


def references(web: WebServer, target: str) -> str:
    """Return a document with references to two chunks at a target, and one inline chunk."""
    folder = web.folder / "old.zarr"
    refs = {
        ".zarray": (folder / ".zarray").read_text(),
        "0.0": [f"{target}/0.0", 0, (folder / "0.0").stat().st_size],
        "1.0": [f"{target}/1.0"],
        "0.1": "base64:" + base64.b64encode((folder / "0.1").read_bytes()).decode(),
    }
    return json.dumps({"version": 1, "refs": refs})


def open_references(location: str | Path, protocol: str, **options: Any) -> zarrfs.Array:
    storage: dict[str, Any] = {"fo": str(location), "remote_protocol": protocol}
    if protocol == "http":
        storage["target_options"] = {"skip_instance_cache": True}
        storage["remote_options"] = {"skip_instance_cache": True}
    array = zarrfs.open("reference://", storage_options=storage, cache_size=0, **options)
    assert isinstance(array, zarrfs.Array)
    return array


def check_references(array: zarrfs.Array, allowed: bool) -> None:
    assert np.array_equal(array[:7, 11:22], DATA[:7, 11:22])
    assert (array[28:35] == 0).all()
    for rows, key in ((slice(0, 7), "0.0"), (slice(7, 14), "1.0")):
        if allowed:
            assert np.array_equal(array[rows, :11], DATA[rows, :11])
            continue
        for read in (
            lambda rows=rows: array[rows, :11],
            lambda key=key: array.store.get(key),
            lambda key=key: array.store.size(key),
            lambda key=key: array.store.get_ranges(key, [ByteRange(0, 1)]),
        ):
            with pytest.raises(StoreError, match=rf"'{key}' is a reference to .*--allow-external"):
                read()


def test_local_references_to_a_host_need_allow_external(web: WebServer, tmp_path: Path) -> None:
    path = tmp_path / "refs.json"
    path.write_text(references(web, f"{web.url}/old.zarr"))
    check_references(open_references(path, "http"), allowed=False)
    check_references(open_references(path, "http", allow_external=True), allowed=True)
    access = zarrfs.Access(allow_external=True)
    check_references(open_references(path, "http", access=access), allowed=True)


def test_web_references_to_local_files_need_allow_external(web: WebServer) -> None:
    (web.folder / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    for protocol in ("file", "http"):
        check_references(open_references(f"{web.url}/refs.json", protocol), allowed=False)
    allowed = open_references(f"{web.url}/refs.json", "file", allow_external=True)
    check_references(allowed, allowed=True)


def test_web_references_to_other_hosts_are_refused(web: WebServer) -> None:
    host = web.url.replace("127.0.0.1", "localhost")
    (web.folder / "refs.json").write_text(references(web, f"{web.url}/old.zarr"))
    check_references(open_references(f"{host}/refs.json", "http"), allowed=False)
    check_references(open_references(f"{web.url}/refs.json", "http"), allowed=True)


def test_references_to_files_in_other_directories_are_refused(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    (web.folder / "refs.json").write_text(references(web, (web.folder / "old.zarr").as_uri()))
    check_references(open_references(tmp_path / "elsewhere" / "refs.json", "file"), allowed=False)
    check_references(open_references(web.folder / "refs.json", "file"), allowed=True)
    array = zarrfs.open(f"reference::file://{web.folder}/refs.json")
    assert isinstance(array, zarrfs.Array)
    check_references(array, allowed=True)


@pytest.mark.parametrize("form", ["{}", "{}/", "file://{}", "reference://{}"])
def test_references_whose_path_looks_like_a_chain_of_urls_are_refused(
    form: str, web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "a::b"
    folder.mkdir()
    (folder / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    with pytest.raises(LocationError, match=r"contains '::'.*symbolic link"):
        zarrfs.open(form.format(folder / "refs.json"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LocationError, match="contains '::'"):
        zarrfs.open("a::b/refs.json")
    (tmp_path / "link").symlink_to(folder)
    assert zarrfs.open("link/refs.json").shape == zarrfs.open(web.folder / "old.zarr").shape
    zarrfs.create_array(folder / "new.zarr", data=[1, 2])
    for location in ("a::b/new.zarr", folder / "new.zarr", f"file://{folder}/new.zarr"):
        assert zarrfs.open(location)[...].tolist() == [1, 2]


@pytest.mark.parametrize("form", ["{}", "{}/", "reference://{}", "file://{}"])
def test_a_local_file_with_references_is_a_location(form: str, web: WebServer) -> None:
    (web.folder / "refs.json").write_text(references(web, (web.folder / "old.zarr").as_uri()))
    array = zarrfs.open(form.format(web.folder / "refs.json"), cache_size=0)
    assert isinstance(array, zarrfs.Array)
    check_references(array, allowed=True)


@pytest.mark.parametrize("form", ["file", "url", "mapping"])
def test_generated_references_are_refused(form: str, web: WebServer) -> None:
    """fsspec ignores them by default, and the chunks read as the fill value."""
    document = {
        "version": 1,
        "templates": {"u": (web.folder / "old.zarr").as_uri()},
        "refs": {".zarray": (web.folder / "old.zarr/.zarray").read_text()},
        "gen": [{"key": "{{i}}.0", "url": "{{u}}/{{i}}.0", "dimensions": {"i": {"stop": 2}}}],
    }
    path = web.folder / "generated.json"
    path.write_text(json.dumps(document))
    location, storage = {
        "file": (str(path), {}),
        "url": (f"reference::{web.url}/generated.json", {}),
        "mapping": ("reference://", {"fo": document}),
    }[form]
    with pytest.raises(LocationError, match=r"section 'gen'.*simple_templates=False"):
        zarrfs.open(location, storage_options=storage)
    path.write_text(json.dumps({**document, "gen": [], "refs": {**document["refs"], "gen": "gen"}}))
    zarrfs.open(str(path))


def test_a_path_points_into_a_file_with_references(tmp_path: Path) -> None:
    metadata = {"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|u1", "compressor": None}
    metadata |= {"fill_value": 0, "order": "C", "filters": None}
    (tmp_path / "data.bin").write_bytes(bytes([9, 1, 2, 3, 4]))
    refs = {"a/b/.zarray": json.dumps(metadata), "a/b/0": [(tmp_path / "data.bin").as_uri(), 1, 4]}
    (tmp_path / "r.json").write_text(json.dumps({"version": 1, "refs": refs}))
    assert zarrfs.open_array(tmp_path / "r.json" / "a" / "b")[:].tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("allow_external", [False, True])
@pytest.mark.parametrize("target", ["old.zarr", "./x/../old.zarr"])
def test_relative_targets_are_relative_to_the_file_with_references(
    web: WebServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, allow_external: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    (web.folder / "refs.json").write_text(references(web, target))
    for location in (str(web.folder / "refs.json"), os.path.relpath(web.folder / "refs.json")):
        array = zarrfs.open_array(location, cache_size=0, allow_external=allow_external)
        check_references(array, allowed=True)
    storage = {"fo": f"{web.url}/refs.json"}
    array = zarrfs.open_array("reference://", storage_options=storage, allow_external=allow_external)
    check_references(array, allowed=True)


def test_references_and_targets_can_be_given_without_double_slashes(
    web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(web.folder)
    Path("refs.json").write_text(references(web, (web.folder / "old.zarr").as_uri().replace("///", "/")))
    for location in ("reference::refs.json", f"reference::{web.folder}/refs.json", "refs.json"):
        check_references(zarrfs.open_array(location, cache_size=0), allowed=True)


def test_relative_targets_cannot_leave_the_directory_of_the_references(web: WebServer) -> None:
    (web.folder / "deep").mkdir()
    (web.folder / "deep" / "refs.json").write_text(references(web, "../old.zarr"))
    check_references(zarrfs.open_array(web.folder / "deep" / "refs.json", cache_size=0), allowed=False)
    with_access = zarrfs.open_array(web.folder / "deep" / "refs.json", cache_size=0, allow_external=True)
    check_references(with_access, allowed=True)


@pytest.mark.parametrize("mode", ["r+", "a", "w"])
def test_a_file_with_references_cannot_be_changed(mode: Literal["r+", "a", "w"], tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text('{"version": 1, "refs": {".zgroup": "{\\"zarr_format\\": 2}"}}')
    before = (tmp_path / "r.json").read_bytes()
    with pytest.raises(zarrfs.ZarrError, match="cannot be changed; open it with mode 'r'"):
        zarrfs.open_group(tmp_path / "r.json", mode=mode)
    assert (tmp_path / "r.json").read_bytes() == before


def test_references_by_chains_of_protocols_are_refused(web: WebServer) -> None:
    (web.folder / "refs.json").write_text(references(web, f"simplecache::file://{web.folder}/old.zarr"))
    check_references(open_references(web.folder / "refs.json", "file"), allowed=False)


def test_a_cache_of_fsspec_keeps_the_values_of_a_server(web: WebServer, tmp_path: Path) -> None:
    values = np.arange(12).reshape(3, 4)
    zarrfs.create_array(web.folder / "cached.zarr", data=values, chunks=(2, 2))
    options = {"simplecache": {"cache_storage": str(tmp_path / "cache")}}
    location = f"simplecache::{web.url}/cached.zarr"
    with zarrfs.open_array(location, storage_options=options, cache_size=0) as array:
        assert np.array_equal(array[...], values)
    web.reset()
    with zarrfs.open_array(location, storage_options=options, cache_size=0) as array:
        assert np.array_equal(array[...], values)
    assert [path for path in web.requests if "/c/" in path] == []


def test_references_in_a_dictionary_need_allow_external(web: WebServer) -> None:
    document = json.loads(references(web, str(web.folder / "old.zarr")))
    for allowed in (False, True):
        array = zarrfs.open(
            "reference://", storage_options={"fo": document, "allow_external": allowed}, cache_size=0
        )
        assert isinstance(array, zarrfs.Array)
        check_references(array, allowed)


def test_the_command_line_option_allows_external_references(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    location = f"reference::file://{tmp_path}/elsewhere/refs.json"
    result = CliRunner().invoke(main, ["copy", location, f"{tmp_path}/refused.zarr"])
    assert result.exit_code != 0
    assert "--allow-external" in str(result.exception)
    result = CliRunner().invoke(main, ["copy", location, f"{tmp_path}/a.zarr", "--allow-external"])
    assert result.exit_code == 0, result.output
    assert np.array_equal(zarrfs.open_array(tmp_path / "a.zarr")[:7, :11], DATA[:7, :11])


@pytest.mark.parametrize("kind", ["pipe", "zero", "socket"])
def test_fsspec_stores_refuse_special_files(kind: str, tmp_path: Path) -> None:
    path = make_special_file(tmp_path / "x", kind)
    for location in (f"reference::file://{path}", f"zip::file://{path}", f"tar::local://{path}"):
        with pytest.raises(zarrfs.ZarrError, match=r"expected a regular file|leads out of the store"):
            zarrfs.open(location)
    (tmp_path / "s").mkdir()
    make_special_file(tmp_path / "s" / "zarr.json", kind)
    with pytest.raises(StoreError, match=r"expected a regular file|leads out of the store"):
        zarrfs.open(f"local://{tmp_path}/s")
    with pytest.raises(StoreError, match="expected a regular file"):
        zarrfs.open(f"local://{tmp_path}/s", allow_external=True)


def test_fsspec_stores_refuse_external_links(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=np.arange(3), chunks=3)
    zarrfs.create_array(tmp_path / "b", shape=3, dtype=int, chunks=3)
    (tmp_path / "b" / "c").symlink_to("../a/c")
    with pytest.raises(StoreError, match="leads out of the store"):
        zarrfs.open_array(f"local://{tmp_path}/b")[...]
    assert zarrfs.open_array(f"local://{tmp_path}/b", allow_external=True)[...].tolist() == [0, 1, 2]


def test_the_command_line_accepts_urls(web: WebServer) -> None:
    result = CliRunner().invoke(main, ["info", f"{web.url}/g.zarr/plain"])
    assert result.exit_code == 0, result.output
    assert "uint16" in result.output
    result = CliRunner().invoke(main, ["info", f"{web.url}/nothing"])
    assert result.exit_code != 0
    assert "Traceback" not in result.output


def test_suffix_ranges_and_ranges_past_the_end_are_clipped(web: WebServer) -> None:
    (web.folder / "value").write_bytes(bytes(range(100)))
    with RemoteStore(web.url, read_only=True) as store:
        for supports_ranges in (True, False):
            web.supports_ranges = supports_ranges
            requests = [ByteRange(-3), ByteRange(98, 10), ByteRange(100, 5), ByteRange(5, 0), ByteRange(40)]
            parts = store.get_ranges("value", requests)
            assert parts is not None
            expected = [bytes(range(97, 100)), bytes([98, 99]), b"", b"", bytes(range(40, 100))]
            assert [bytes(part) for part in parts] == expected
            assert store.get_ranges("missing", requests) is None


def test_unknown_protocols_and_missing_packages_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LocationError, match="'nonsense' URLs are not supported"):
        zarrfs.open("nonsense://host/x")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(LocationError, match=r"pip install 'fsspec>=.*' 'aiohttp>="):
        zarrfs.open("https://localhost/x.zarr")
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(LocationError, match=r"pip install 'redis>="):
        zarrfs.open("redis://localhost")


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """The storage options of an S3 server with a bucket."""
    import s3fs

    with s3_server() as endpoint:
        options = {"endpoint_url": endpoint, "key": "x", "secret": "x"}
        s3fs.S3FileSystem(**options).mkdir("bucket")
        yield options


@pytest.mark.emulators
def test_zarr_python_and_zarrfs_read_each_other_in_s3(s3: dict[str, str]) -> None:
    options = s3
    ours = zarrfs.create_array(
        "s3://bucket/ours.zarr", data=DATA, chunks=(10, 10), shards=(20, 20), storage_options=options
    )
    assert np.array_equal(ours[...], DATA)
    theirs = zarr.open_array("s3://bucket/ours.zarr", mode="r", storage_options=options)
    assert np.array_equal(np.asarray(theirs[...]), DATA)
    zarr.create_array("s3://bucket/theirs.zarr", data=DATA, chunks=(9, 9), storage_options=options)
    opened = zarrfs.open("s3://bucket/theirs.zarr", storage_options=options)
    assert isinstance(opened, zarrfs.Array)
    assert np.array_equal(opened[...], DATA)
    arguments = [word for key, value in options.items() for word in ("--storage-option", f"{key}={value}")]
    for verb in ("info", "tree"):
        result = CliRunner().invoke(main, [verb, "s3://bucket/theirs.zarr", *arguments])
        assert result.exit_code == 0, result.output
        assert "uint16" in result.output
    unpickled = pickle.loads(pickle.dumps(opened.store))
    assert unpickled.get("zarr.json") == opened.store.get("zarr.json")
