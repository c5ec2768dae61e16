"""Far stores as their users have them: web servers of all manners, S3, references, archives, missing packages."""

from __future__ import annotations

import base64
import json
import pickle
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import s3fs
import zarr
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.servers import WebServer, s3_server, web_server
from tests.engine.stores.special_files import special_file
from tests.processes import TIMEOUT
from zarrfs.cli.main import main
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.fsspec.store import RemoteStore
from zarrfs.engine.stores.zip.remote import RemoteZipStore
from zarrfs.errors import LocationError, NodeNotFoundError, StoreError
from zarrfs.synthetic import make_picture, write_image

DATA = np.arange(40 * 60, dtype="u2").reshape(40, 60)


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    """A server of one group with a plain array, a sharded one and one of v2."""
    root = tmp_path / "site"
    zarrfs.create_group(root / "g.zarr", attributes={"title": "far"})
    zarrfs.create_array(root / "g.zarr", "plain", data=DATA, chunks=(10, 10))
    zarrfs.create_array(root / "g.zarr", "shards", data=DATA, chunks=(5, 5), shards=(20, 20))
    zarrfs.create_array(root / "old.zarr", data=DATA, chunks=(7, 11), zarr_format=2)
    with web_server(root) as server:
        yield server


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
@pytest.mark.parametrize("path", ["g.zarr/plain", "g.zarr/shards", "old.zarr"])
def test_arrays_of_a_plain_web_server(path: str, ranges: bool, web: WebServer) -> None:
    web.ranges = ranges
    array = zarrfs.open_array(f"{web.url}/{path}")
    assert np.array_equal(array[...], DATA)
    assert np.array_equal(array[13:29, 7], DATA[13:29, 7])
    assert array[-1, -1] == DATA[-1, -1]
    array.store.close()


def test_a_document_stands_for_its_node(web: WebServer) -> None:
    with zarrfs.open_group(f"{web.url}/g.zarr/zarr.json").store as store:
        assert store.url == f"{web.url}/g.zarr"


def test_few_requests(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/shards")
    assert sum(web.requests.values()) == 1
    web.requests.clear()
    assert array[0, 0] == DATA[0, 0]
    # Its index, its inner chunk; nothing else, and the other shards not at all.
    assert dict(web.requests) == {"/g.zarr/shards/c/0/0": 2}
    web.requests.clear()
    assert array[0, 1] == DATA[0, 1]
    assert sum(web.requests.values()) == 0
    array.store.close()


def test_many_chunks_are_in_flight_at_once(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain")
    together = threading.Barrier(12)
    alone: list[str] = []

    def wait(path: str) -> None:
        try:
            together.wait(TIMEOUT)
        except threading.BrokenBarrierError:
            alone.append(path)

    web.waiting = wait
    assert np.array_equal(array[...], DATA)  # 24 chunks: two rounds of twelve
    assert not alone
    web.waiting = lambda path: None
    array.store.close()


def test_a_missing_chunk_is_the_fill_value_and_trouble_is_an_error(web: WebServer) -> None:
    (web.folder / "g.zarr" / "plain" / "c" / "0" / "0").unlink()
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain", cache_size=0)
    assert (array[:10, :10] == 0).all()
    for status in (403, 500, 503):
        web.trouble = lambda path, status=status: status if path.endswith("c/1/1") else None
        with pytest.raises(StoreError, match=f"c/1/1 cannot be read: {status}"):
            array[10:20, 10:20]
        assert np.array_equal(array[20:], DATA[20:])
    web.trouble = lambda path: None
    assert np.array_equal(array[10:20], DATA[10:20])
    array.store.close()


def test_a_server_that_is_gone(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain")
    web.close()
    with pytest.raises(StoreError, match="cannot be read"):
        array[...]
    with pytest.raises(StoreError, match="cannot be read"):
        zarrfs.open(f"{web.url}/g.zarr")
    array.store.close()


def test_nothing_at_a_url_says_so(web: WebServer) -> None:
    with pytest.raises(NodeNotFoundError, match="no Zarr array or group here"):
        zarrfs.open(f"{web.url}/nothing.zarr")


def test_a_login(web: WebServer) -> None:
    web.login = ("ada", "secret")
    with pytest.raises(StoreError, match="401"):
        zarrfs.open(f"{web.url}/g.zarr")
    array = zarrfs.open_array(f"{web.url}/g.zarr/plain".replace("http://", "http://ada:secret@"))
    assert np.array_equal(array[...], DATA)
    assert "secret" not in array.store.url
    assert "secret" not in repr(array)
    array.store.close()


def test_headers_by_storage_options(web: WebServer) -> None:
    web.login = ("ada", "secret")
    options = {"headers": {"Authorization": "Basic YWRhOnNlY3JldA=="}}
    array = zarrfs.open(f"{web.url}/g.zarr/shards", storage_options=options)
    assert isinstance(array, zarrfs.Array)
    assert np.array_equal(array[...], DATA)
    array.store.close()


def test_chunks_of_a_shard_are_asked_for_together(web: WebServer) -> None:
    array = zarrfs.open_array(f"{web.url}/g.zarr/shards")
    web.reset()
    assert np.array_equal(array[5:15, 0:20], DATA[5:15, 0:20])
    # Eight of sixteen inner chunks, which lie near each other: the index, and one range for all.
    assert dict(web.requests) == {"/g.zarr/shards/c/0/0": 2}
    array.store.close()


def test_chunks_of_a_shard_that_lie_far_apart(web: WebServer) -> None:
    data = np.random.default_rng(1).integers(0, 2**16, (512, 512), "u2")
    zarrfs.create_array(
        web.folder / "far.zarr", data=data, chunks=(128, 128), shards=(512, 512), compressors=[]
    )
    array = zarrfs.open_array(f"{web.url}/far.zarr")
    web.reset()
    assert array[0, 0] == data[0, 0]
    assert dict(web.requests) == {"/far.zarr/c/0/0": 2}
    index = 16 * 16 + 4
    assert web.sent == index + 128 * 128 * 2
    together = threading.Barrier(4)
    alone: list[str] = []

    def wait(path: str) -> None:
        try:
            together.wait(TIMEOUT)
        except threading.BrokenBarrierError:
            alone.append(path)

    web.reset()
    web.waiting = wait
    # A column of them: the server answers none before all four are asked for.
    assert np.array_equal(array[:, 130], data[:, 130])
    assert not alone
    assert dict(web.requests) == {"/far.zarr/c/0/0": 4}
    assert web.sent < 5 * 128 * 128 * 2
    web.waiting = lambda path: None
    array.store.close()


def test_members_without_listing(web: WebServer) -> None:
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
    far = zarrfs.open_group(f"{web.url}/two.zarr")
    assert sorted(far.names()) == ["a", "b"]
    assert np.array_equal(far["b/c"][...], DATA)
    assert {path for path in web.requests if path.rpartition("/")[2].startswith(".z")} <= {
        "/two.zarr/.zmetadata",
        "/two.zarr/.zgroup",
        "/two.zarr/.zattrs",
        "/two.zarr/.zarray",
    }
    far.store.close()


def test_ome_metadata_name_members_where_nothing_lists_them(web: WebServer) -> None:
    write_image(web.folder / "i.zarr", make_picture((2, 32, 32)), levels=2)
    done = CliRunner().invoke(main, ["tree", f"{web.url}/i.zarr"])
    assert done.exit_code == 0, done.output
    for name in ("── 0", "── 1", "── labels", "── nuclei"):
        assert name in done.output
    done = CliRunner().invoke(main, ["info", f"{web.url}/i.zarr"])
    assert done.exit_code == 0, done.output
    assert "labels" in done.output


def test_a_zip_file_of_a_web_server(web: WebServer) -> None:
    with zipfile.ZipFile(web.folder / "g.zarr.zip", "w") as archive:
        for file in (web.folder / "g.zarr").rglob("*"):
            if file.is_file():
                archive.write(file, file.relative_to(web.folder / "g.zarr"))
    for url in (f"{web.url}/g.zarr.zip", f"zip::{web.url}/g.zarr.zip"):
        group = zarrfs.open_group(url)
        assert sorted(group.names()) == ["plain", "shards"]
        assert np.array_equal(group["shards"][...], DATA)
        group.store.close()


def pack(folder: Path, kind: int) -> Path:
    """Put a hierarchy into a zip file beside it."""
    packed = folder.with_name(f"{folder.name}.zip")
    with zipfile.ZipFile(packed, "w", kind) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return packed


def test_no_more_of_a_far_zip_file_is_fetched_than_is_touched(web: WebServer) -> None:
    data = np.random.default_rng(1).integers(0, 2**16, (2048, 512), "u2")
    zarrfs.create_array(
        web.folder / "big.zarr", data=data, chunks=(64, 64), shards=(512, 512), compressors=[]
    )
    pack(web.folder / "big.zarr", zipfile.ZIP_STORED)
    array = zarrfs.open_array(f"zip::{web.url}/big.zarr.zip")
    # Its size, its end, and zarr.json.
    assert dict(web.requests) == {"/big.zarr.zip": 3}
    assert web.sent < (70 << 10)
    web.reset()
    assert array[700, 300] == data[700, 300]
    # The header of the member with its name, the index of the shard, the inner chunk.
    assert (web.requests["/big.zarr.zip"], web.sent) == (3, 30 + len("c/1/0") + 64 * 16 + 4 + 64 * 64 * 2)
    web.reset()
    assert array[900, 10] == data[900, 10]
    assert (web.requests["/big.zarr.zip"], web.sent) == (1, 64 * 64 * 2)
    assert np.array_equal(array[...], data)
    array.store.close()


def test_members_of_a_far_zip_file_take_one_request(web: WebServer) -> None:
    pack(web.folder / "old.zarr", zipfile.ZIP_DEFLATED)
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
    pack(web.folder / "g.zarr", zipfile.ZIP_STORED)
    inner = zarrfs.open_array(f"zip://plain::{web.url}/g.zarr.zip")
    assert np.array_equal(inner[...], DATA)
    inner.store.close()


def test_a_far_zip_file_in_trouble(web: WebServer) -> None:
    pack(web.folder / "old.zarr", zipfile.ZIP_STORED)
    url = f"zip::{web.url}/old.zarr.zip"
    with pytest.raises(LocationError, match="there is no such file"):
        zarrfs.open(f"zip::{web.url}/nothing.zip")
    with pytest.raises(LocationError, match="a remote zip file cannot be changed"):
        zarrfs.open(url, mode="r+")
    array = zarrfs.open_array(url, cache_size=0)
    for status, words in ((404, "is gone"), (503, "503")):
        web.trouble = lambda path, status=status: status
        with pytest.raises(StoreError, match=words):
            array[0, 0]
        with pytest.raises((StoreError, LocationError)):
            zarrfs.open(url)
    web.trouble = lambda path: None
    (web.folder / "old.zarr.zip").write_bytes((web.folder / "old.zarr.zip").read_bytes()[:2000])
    with pytest.raises(StoreError, match=r"broken|truncated|gone|short"):
        array[...]
    array.store.close()


def references(web: WebServer, target: str) -> str:
    """Return a document of references to one chunk at a target, and to another in the document itself."""
    folder = web.folder / "old.zarr"
    refs = {
        ".zarray": (folder / ".zarray").read_text(),
        "0.0": [f"{target}/0.0", 0, (folder / "0.0").stat().st_size],
        "1.0": [f"{target}/1.0"],
        "0.1": "base64:" + base64.b64encode((folder / "0.1").read_bytes()).decode(),
    }
    return json.dumps({"version": 1, "refs": refs})


def open_references(location: str | Path, protocol: str, **options: Any) -> zarrfs.Array:
    storage = {"fo": str(location), "remote_protocol": protocol}
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


def test_references_of_this_machine_that_name_another_host(web: WebServer, tmp_path: Path) -> None:
    path = tmp_path / "refs.json"
    path.write_text(references(web, f"{web.url}/old.zarr"))
    check_references(open_references(path, "http"), allowed=False)
    check_references(open_references(path, "http", allow_external=True), allowed=True)
    access = zarrfs.Access(allow_external=True)
    check_references(open_references(path, "http", access=access), allowed=True)


def test_references_of_the_web_that_name_local_files(web: WebServer) -> None:
    (web.folder / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    for protocol in ("file", "http"):
        check_references(open_references(f"{web.url}/refs.json", protocol), allowed=False)
    allowed = open_references(f"{web.url}/refs.json", "file", allow_external=True)
    check_references(allowed, allowed=True)


def test_references_of_the_web_that_name_other_hosts(web: WebServer) -> None:
    host = web.url.replace("127.0.0.1", "localhost")
    (web.folder / "refs.json").write_text(references(web, f"{web.url}/old.zarr"))
    check_references(open_references(f"{host}/refs.json", "http"), allowed=False)
    check_references(open_references(f"{web.url}/refs.json", "http"), allowed=True)


def test_references_to_files_of_other_directories(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    (web.folder / "refs.json").write_text(references(web, (web.folder / "old.zarr").as_uri()))
    check_references(open_references(tmp_path / "elsewhere" / "refs.json", "file"), allowed=False)
    check_references(open_references(web.folder / "refs.json", "file"), allowed=True)
    array = zarrfs.open(f"reference::file://{web.folder}/refs.json")
    assert isinstance(array, zarrfs.Array)
    check_references(array, allowed=True)


def test_references_that_are_given_as_a_dictionary(web: WebServer) -> None:
    document = json.loads(references(web, str(web.folder / "old.zarr")))
    for allowed in (False, True):
        array = zarrfs.open(
            "reference://", storage_options={"fo": document, "allow_external": allowed}, cache_size=0
        )
        assert isinstance(array, zarrfs.Array)
        check_references(array, allowed)


def test_the_command_line_allows_references_to_other_places(web: WebServer, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "refs.json").write_text(references(web, str(web.folder / "old.zarr")))
    location = f"reference::file://{tmp_path}/elsewhere/refs.json"
    done = CliRunner().invoke(main, ["copy", location, f"{tmp_path}/refused.zarr"])
    assert done.exit_code != 0
    assert "--allow-external" in str(done.exception)
    done = CliRunner().invoke(main, ["copy", location, f"{tmp_path}/a.zarr", "--allow-external"])
    assert done.exit_code == 0, done.output
    assert np.array_equal(zarrfs.open_array(tmp_path / "a.zarr")[:7, :11], DATA[:7, :11])


@pytest.mark.parametrize("kind", ["pipe", "zero", "socket"])
def test_fsspec_does_not_open_what_is_no_regular_file(kind: str, tmp_path: Path) -> None:
    path = special_file(tmp_path / "x", kind)
    for location in (f"reference::file://{path}", f"zip::file://{path}", f"tar::local://{path}"):
        with pytest.raises(zarrfs.ZarrError, match=r"expected a regular file|leads out of the store"):
            zarrfs.open(location)
    (tmp_path / "s").mkdir()
    special_file(tmp_path / "s" / "zarr.json", kind)
    with pytest.raises(StoreError, match=r"expected a regular file|leads out of the store"):
        zarrfs.open(f"local://{tmp_path}/s")
    with pytest.raises(StoreError, match="expected a regular file"):
        zarrfs.open(f"local://{tmp_path}/s", allow_external=True)


def test_links_of_local_files_of_fsspec_stay_in_the_store(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a", data=np.arange(3), chunks=3)
    zarrfs.create_array(tmp_path / "b", shape=3, dtype=int, chunks=3)
    (tmp_path / "b" / "c").symlink_to("../a/c")
    with pytest.raises(StoreError, match="leads out of the store"):
        zarrfs.open_array(f"local://{tmp_path}/b")[...]
    assert zarrfs.open_array(f"local://{tmp_path}/b", allow_external=True)[...].tolist() == [0, 1, 2]


def test_the_command_line_reads_urls(web: WebServer) -> None:
    done = CliRunner().invoke(main, ["info", f"{web.url}/g.zarr/plain"])
    assert done.exit_code == 0, done.output
    assert "uint16" in done.output
    done = CliRunner().invoke(main, ["info", f"{web.url}/nothing"])
    assert done.exit_code != 0
    assert "Traceback" not in done.output


def test_suffixes_and_ends(web: WebServer) -> None:
    (web.folder / "value").write_bytes(bytes(range(100)))
    with RemoteStore(web.url, read_only=True) as store:
        for ranges in (True, False):
            web.ranges = ranges
            asked = [ByteRange(-3), ByteRange(98, 10), ByteRange(100, 5), ByteRange(5, 0), ByteRange(40)]
            found = store.get_ranges("value", asked)
            assert found is not None
            expected = [bytes(range(97, 100)), bytes([98, 99]), b"", b"", bytes(range(40, 100))]
            assert [bytes(piece) for piece in found] == expected
            assert store.get_ranges("absent", asked) is None


def test_what_is_unknown_or_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
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
    """Options for an S3 server with a bucket."""
    with s3_server() as endpoint:
        options = {"endpoint_url": endpoint, "key": "x", "secret": "x"}
        s3fs.S3FileSystem(**options).mkdir("bucket")
        yield options


def requests_of(store: RemoteStore) -> list[str]:
    """Return a list that gets the method of each request to S3 from now on."""
    asked: list[str] = []
    store._files.connect()
    store._files._s3.meta.events.register(
        "before-send.s3", lambda request, **more: asked.append(request.method)
    )
    return asked


def test_ranges_of_s3_take_one_request_each(s3: dict[str, str]) -> None:
    with RemoteStore("s3://bucket/counted.zarr", storage_options=s3) as store:
        zarrfs.create_array(store, data=DATA, chunks=(5, 5), shards=(20, 20))
        array = zarrfs.open_array(store, cache_size=None)
        asked = requests_of(store)
        assert array[0, 0] == DATA[0, 0]
        # Others may write too: the shard must be the same before and after.
        assert asked == ["HEAD", "GET", "GET", "HEAD"]
        with RemoteStore("s3://bucket/counted.zarr", read_only=True, storage_options=s3) as settled:
            array = zarrfs.open_array(settled, cache_size=None)
            looked = requests_of(settled)
            assert array[0, 0] == DATA[0, 0]
            # The index of the shard by its distance from the end, and the inner chunk; the size is not asked for.
            assert looked == ["GET", "GET"]
        asked.clear()
        assert store.get("c/7/7") is None
        assert asked == ["GET"]
        store.set("value", bytes(range(100)))
        asked.clear()
        assert store.get_ranges("value", [ByteRange(5, 10), ByteRange(-3)]) == [
            bytes(range(5, 15)),
            bytes(range(97, 100)),
        ]
        assert asked == ["GET", "GET"]


def test_a_zip_file_in_s3(s3: dict[str, str], tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=DATA, chunks=(5, 5), shards=(20, 20))
    s3fs.S3FileSystem(**s3).put_file(str(pack(tmp_path / "a.zarr", zipfile.ZIP_STORED)), "bucket/a.zarr.zip")
    # Options for the server, as they are or by its protocol, as fsspec has them.
    for url, options in (("zip::s3://bucket/a.zarr.zip", {"s3": s3}), ("s3://bucket/a.zarr.zip", s3)):
        array = zarrfs.open(url, storage_options=options)
        assert isinstance(array, zarrfs.Array)
        assert isinstance(array.store, RemoteZipStore)
        behind = array.store._store
        assert isinstance(behind, RemoteStore)
        asked = requests_of(behind)
        assert array[21, 21] == DATA[21, 21]
        assert 1 <= len(asked) <= 3
        asked.clear()
        assert array[26, 26] == DATA[26, 26]
        assert len(asked) <= 1
        assert np.array_equal(array[...], DATA)
        assert np.array_equal(pickle.loads(pickle.dumps(array))[...], DATA)


def test_s3_both_ways_with_zarr_python(s3: dict[str, str]) -> None:
    options = s3
    ours = zarrfs.create_array(
        "s3://bucket/ours.zarr", data=DATA, chunks=(10, 10), shards=(20, 20), storage_options=options
    )
    assert np.array_equal(ours[...], DATA)
    theirs = zarr.open_array("s3://bucket/ours.zarr", mode="r", storage_options=options)
    assert np.array_equal(np.asarray(theirs[...]), DATA)
    made = zarr.create_array("s3://bucket/theirs.zarr", data=DATA, chunks=(9, 9), storage_options=options)
    assert made.shape == DATA.shape
    found = zarrfs.open("s3://bucket/theirs.zarr", storage_options=options)
    assert isinstance(found, zarrfs.Array)
    assert np.array_equal(found[...], DATA)
    given = [word for key, value in options.items() for word in ("--storage-option", f"{key}={value}")]
    for verb in ("info", "tree"):
        done = CliRunner().invoke(main, [verb, "s3://bucket/theirs.zarr", *given])
        assert done.exit_code == 0, done.output
        assert "uint16" in done.output
    again = pickle.loads(pickle.dumps(found.store))
    assert again.get("zarr.json") == found.store.get("zarr.json")
