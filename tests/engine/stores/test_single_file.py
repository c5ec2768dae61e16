"""Single-file OME-Zarr (``.ozx``, RFC-9 of OME-NGFF): writing, checking, and reading from servers."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import web_server
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.zip import remote
from zarrfs.engine.stores.zip.remote import RemoteZipStore
from zarrfs.engine.stores.zip.single_file import single_file_layout
from zarrfs.errors import LocationError
from zarrfs.files.importing import import_files
from zarrfs.ngff import check_node
from zarrfs.testing import CountingStore
from zarrfs.tools import build_pyramid, convert

DATA = np.arange(4096, dtype="u2").reshape(64, 64)

COMMENT = {"ome": {"version": "0.5", "zipFile": {"centralDirectory": {"jsonFirst": True}}}}


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A directory with an OME-NGFF image with two levels, with shards, and labels."""
    with zarrfs.create_array(tmp_path / "plain.zarr", data=DATA, chunks=(8, 8), shards=(32, 32)) as array:
        build_pyramid(array, tmp_path / "image.ome.zarr", axes=["y", "x"], levels=2)
    return tmp_path / "image.ome.zarr"


def archive(path: Path) -> tuple[list[str], list[str], Any]:
    """Return the names of the members in the order of the directory and of the file, and the comment."""
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None
        members = file.infolist()
        assert all(member.compress_type == zipfile.ZIP_STORED for member in members)
        by_offset = sorted(members, key=lambda member: member.header_offset)
        return (
            [member.filename for member in members],
            [member.filename for member in by_offset],
            json.loads(file.comment) if file.comment else None,
        )


def messages(path: Path) -> dict[str, bool]:
    """Return the messages of the check, and whether they are errors."""
    with zarrfs.open_group(path) as group:
        return {message.message: message.is_error for message in check_node(group).messages}


def write_with_convert(source: Path, target: Path) -> None:
    convert(source, target)


def write_with_pyramid(source: Path, target: Path) -> None:
    build_pyramid(source, target, levels=2)


def write_with_import(source: Path, target: Path) -> None:
    np.save(target.with_suffix(".npy"), DATA)
    import_files([target.with_suffix(".npy")], target, axes=["y", "x"], levels=2, chunks=(8, 8))


@pytest.mark.parametrize("write", [write_with_convert, write_with_pyramid, write_with_import])
def test_tools_write_the_recommended_form(
    image: Path, tmp_path: Path, write: Callable[[Path, Path], None]
) -> None:
    path = tmp_path / "result.ozx"
    write(image, path)
    in_directory, in_file, comment = archive(path)
    assert in_directory[:3] == in_file[:3] == ["zarr.json", "0/zarr.json", "1/zarr.json"]
    assert not any(name.endswith("zarr.json") for name in in_directory[3:])
    assert comment == COMMENT
    assert b"PK\x06\x06" in path.read_bytes()
    assert messages(path) == {}
    with zarrfs.open_group(path) as group:
        np.testing.assert_array_equal(group["0"][...], DATA)
        assert group["0"].shards is not None


def test_ngff_zarr_reads_the_comment(image: Path, tmp_path: Path) -> None:
    package = importlib.util.find_spec("ngff_zarr")
    assert package is not None
    assert package.submodule_search_locations is not None
    # Importing the package takes ten seconds.
    module = Path(package.submodule_search_locations[0]) / "rfc9_zip.py"
    specification = importlib.util.spec_from_file_location("rfc9_zip", module)
    assert specification is not None
    assert specification.loader is not None
    rfc9_zip = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(rfc9_zip)
    convert(image, tmp_path / "ours.ozx")
    assert rfc9_zip.read_ozx_version(str(tmp_path / "ours.ozx")) == "0.5"
    assert rfc9_zip.read_ozx_json_first(str(tmp_path / "ours.ozx")) is True


def test_changes_keep_the_form(image: Path, tmp_path: Path) -> None:
    path = tmp_path / "image.ozx"
    convert(image, path)
    with zarrfs.open_group(path, mode="r+") as group:
        group.create_array("labels/cells/0", data=DATA, shards=(64, 64), chunks=(32, 32))
        group["0"][0, 0] = 9
        del group["1"]
        group.attrs["more"] = "x"
    in_directory, in_file, comment = archive(path)
    documents = [
        "zarr.json",
        "0/zarr.json",
        "labels/zarr.json",
        "labels/cells/zarr.json",
        "labels/cells/0/zarr.json",
    ]
    assert in_directory[:5] == in_file[:5] == documents
    assert sorted(in_directory) == sorted(set(in_directory))
    assert comment == COMMENT
    with zarrfs.open_group(path) as group:
        assert group["0"][0, :2].tolist() == [9, 1]
        np.testing.assert_array_equal(group["labels/cells/0"][...], DATA)
        assert group.attrs["more"] == "x"


def test_other_members_of_the_comment_are_kept_and_other_hierarchies_get_none() -> None:
    root = json.dumps({"attributes": {"ome": {"version": "0.6"}}}).encode()
    existing = b'{"who": 1, "ome": {"version": "0.5", "x": 2, "zipFile": {"y": 3}}}\0'
    layout = single_file_layout(
        ["a/c/0", "b/zarr.json", "zarr.json", "a/b/zarr.json"], lambda key: root, existing
    )
    assert [key for key, _ in layout.documents] == ["zarr.json", "b/zarr.json", "a/b/zarr.json"]
    assert json.loads(layout.comment) == {
        "who": 1,
        "ome": {"version": "0.6", "x": 2, "zipFile": {"y": 3, "centralDirectory": {"jsonFirst": True}}},
    }
    for text in (b"{}", b"", b"[", b'{"attributes": {"ome": {"version": 1}}}'):
        assert single_file_layout(["zarr.json"], lambda key, text=text: text, b"old").comment == b"old"


def test_zip_files_of_other_names_are_unchanged(image: Path, tmp_path: Path) -> None:
    convert(image, tmp_path / "image.zip")
    assert archive(tmp_path / "image.zip")[2] is None
    assert messages(tmp_path / "image.zip") == {}


# -- the check -----------------------------------------------------------------------------------------------------


def rewrite(
    path: Path,
    target: Path,
    *,
    order: Callable[[list[str]], list[str]] = list,
    comment: Any = COMMENT,
    **more: Any,
) -> dict[str, bool]:
    """Write the members of an archive in another order with zipfile. Return the messages of the check."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w", **more) as new:
        for name in order(old.namelist()):
            new.writestr(name, old.read(name) if name in old.namelist() else b"x")
        new.comment = b"" if comment is None else json.dumps(comment).encode()
    return messages(target)


@pytest.mark.parametrize(
    ("changes", "expected", "is_error"),
    [
        ({"comment": None}, "the comment of the archive is not a JSON object", False),
        ({"comment": {"ome": {"version": "0.4"}}}, "states version '0.4', the root has '0.5'", False),
        ({"comment": {"ome": {"version": "0.5"}}}, "does not state jsonFirst", False),
        ({"order": lambda names: names[::-1]}, "states jsonFirst, but the zarr.json documents are not", True),
        (
            {"order": lambda names: names[::-1], "comment": None},
            "first entries of the central directory",
            False,
        ),
        ({"order": lambda names: names[::-1], "comment": None}, "not the first members of the file", False),
        ({"order": lambda names: [*names, "more/a.zip"]}, "contains another archive, more/a.zip", True),
        ({"compression": zipfile.ZIP_DEFLATED}, "compressed by zip", False),
        ({}, "has no zip64 records", False),
    ],
)
def test_the_check_reports_what_an_archive_does_not_follow(
    image: Path, tmp_path: Path, changes: dict[str, Any], expected: str, is_error: bool
) -> None:
    convert(image, tmp_path / "image.ozx")
    found = rewrite(tmp_path / "image.ozx", tmp_path / "changed.ozx", **changes)
    assert [is_wrong for message, is_wrong in found.items() if expected in message] == [is_error], found
    assert any(found.values()) == is_error


def test_the_check_reports_chunks_without_shards_and_the_name(tmp_path: Path, image: Path) -> None:
    convert(image, tmp_path / "image.ozx", shards=False)
    assert messages(tmp_path / "image.ozx") == {
        "the array 0 has 64 chunks and no shards": False,
        "the array 1 has 16 chunks and no shards": False,
    }
    convert(image, tmp_path / "named.ozx")
    (tmp_path / "named.ozx").rename(tmp_path / "named.zip")
    assert messages(tmp_path / "named.zip") == {"the name of the file does not end with .ozx": False}


def test_an_archive_without_a_root_document_is_an_error(tmp_path: Path) -> None:
    with zarrfs.create_group(tmp_path / "old.ozx", zarr_format=2) as group:
        group.create_array("0", data=DATA)
    with zarrfs.open_group(tmp_path / "old.ozx") as group:
        report = check_node(group)
    assert any("has no zarr.json" in each.message and each.is_error for each in report.messages)


def test_an_archive_in_several_parts_cannot_be_opened(tmp_path: Path, image: Path) -> None:
    convert(image, tmp_path / "image.zip")
    data = bytearray((tmp_path / "image.zip").read_bytes())
    end = data.rfind(b"PK\x05\x06")
    data[end + 4 : end + 6] = b"\x01\x00"
    (tmp_path / "image.ozx").write_bytes(data)
    with pytest.raises(LocationError, match="it spans several files"):
        zarrfs.open(tmp_path / "image.ozx")


# -- servers -------------------------------------------------------------------------------------------------------


def test_a_url_of_a_single_file_is_an_archive(image: Path, tmp_path: Path) -> None:
    convert(image, tmp_path / "image.ozx")
    with web_server(tmp_path) as web:
        for path in ("image.ozx/0", "image.ozx"):
            with zarrfs.open(f"{web.url}/{path}") as node:
                array = node if isinstance(node, zarrfs.Array) else node["0"]
                np.testing.assert_array_equal(array[...], DATA)


def test_metadata_are_read_without_the_whole_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "TAIL_NBYTES", 400)
    monkeypatch.setattr(remote, "DOCUMENTS_NBYTES", 400)
    attributes = {"ome": {"version": "0.5"}}
    with zarrfs.create_group(tmp_path / "image.ozx", attributes=attributes) as group:
        group.create_array("0", data=DATA, chunks=(8, 8))
    counting = CountingStore(LocalStore(tmp_path, read_only=True))
    with RemoteZipStore(counting, "image.ozx") as store:
        assert store.get("0/zarr.json") is not None
        assert store.get("1/zarr.json") is None
        assert store.size("zarr.json") is not None
        assert store._documents is not None
        assert len(list(store._documents.members())) < 10
        group = zarrfs.open_group(store)
        assert store._documents is not None
        np.testing.assert_array_equal(group["0"][...], DATA)
        assert store._documents is None
        assert len(list(store.list_prefix())) == 66
    with RemoteZipStore(LocalStore(tmp_path, read_only=True), "image.ozx") as store:
        assert store.list_dir("0") == (["zarr.json"], ["c"])
        assert store.get("1/.zarray") is None
