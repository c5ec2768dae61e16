"""Stores of other programs: files beside the nodes, consolidated metadata and further members of documents are in each
copy, and are compared.
"""

from __future__ import annotations

import json
import logging
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import WebServer
from tests.tools.foreign_stores import WRITERS, write_anndata, write_nczarr, write_spatialdata
from tests.tools.test_complete_copies import command
from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations import open_store
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import NodeExistsError, NodeTypeError, StoreError, UnsupportedError
from zarrfs.testing import CountingStore, FailingStore
from zarrfs.tools import clean, convert, rechunk, stale_consolidation, verify
from zarrfs.tools.copying.stored_keys import ArrayKeys, foreign_keys


@pytest.fixture(params=sorted(WRITERS))
def written(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[str]]:
    """Return a store of another program, and its keys that belong to no node."""
    return tmp_path / "source", WRITERS[request.param](tmp_path / "source")


def arrays(location: Any) -> dict[str, zarrfs.Array]:
    group = zarrfs.open_group(location, mode="r")
    return {path: node for path, node in group.walk() if isinstance(node, zarrfs.Array)}


def assert_equal_arrays(location: Any, other: Any) -> None:
    own, others = arrays(location), arrays(other)
    assert set(own) == set(others) != set()
    for path, array in own.items():
        assert np.array_equal(array[...], others[path][...]), path


def files_of(store: Store) -> list[str]:
    node = zarrfs.open_group(store, mode="r")
    return foreign_keys(node, list(node.walk()))


@pytest.mark.parametrize("target", ["copy", "copy.zip", "memory"])
def test_a_copy_contains_all_that_the_program_stored(
    written: tuple[Path, list[str]], tmp_path: Path, target: str
) -> None:
    source, files = written
    location: Any = MemoryStore() if target == "memory" else tmp_path / target
    report = convert(source, location, verify=True)
    assert report.files == files
    counts = [line for line in report if "no node" in line]
    assert counts == ([f"/: {_count(len(files))} to no node: copied unchanged"] if files else [])
    with open_store(location, mode="r")[0] as store, LocalStore(source) as original:
        # An empty .zattrs is equivalent to a missing one.
        keys = {key for key in original.list_prefix() if original.get(key) != b"{}"}
        assert set(store.list_prefix()) == keys
        for key in keys:
            if key.endswith((".zmetadata", "zarr.json", ".zgroup", ".zarray", ".zattrs")):
                assert _document(store, key) == _document(original, key), key
            else:
                assert store.get(key) == original.get(key), key
        assert_equal_arrays(source, store)
        assert stale_consolidation(zarrfs.open_group(store, mode="r")) == []
        compared = verify(source, store)
        assert compared.problems == []
        assert compared.files == len(files)


def _count(number: int) -> str:
    return "1 file that belongs" if number == 1 else f"{number} files that belong"


def _document(store: Store, key: str) -> Any:
    """Return a document without the empty consolidated metadata of groups, and other members that mean nothing."""
    document = json.loads(bytes(store.get(key) or b""))

    def simplified(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        section = value.get("consolidated_metadata")
        return {
            name: simplified(member)
            for name, member in value.items()
            if not (name == "consolidated_metadata" and not section["metadata"])
            and not (name.endswith(".zattrs") and not member)
        }

    return simplified(document)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_converted_copies_contain_the_files_and_open_again(
    written: tuple[Path, list[str]], tmp_path: Path, zarr_format: int
) -> None:
    source, files = written
    convert(source, tmp_path / "copy", zarr_format=zarr_format, keep_ngff=True, verify=True)
    with LocalStore(tmp_path / "copy") as store:
        assert files_of(store) == files
        assert_equal_arrays(source, store)
    assert verify(source, tmp_path / "copy").problems == []
    is_consolidated = zarrfs.open_group(source, mode="r").spec.consolidated is not None
    assert (zarrfs.open_group(tmp_path / "copy", mode="r").spec.consolidated is not None) == is_consolidated


def test_rechunked_copies_contain_the_files(tmp_path: Path) -> None:
    files = write_spatialdata(tmp_path / "source")
    assert rechunk(tmp_path / "source", tmp_path / "copy", 4, verify=True).files == files
    assert verify(tmp_path / "source", tmp_path / "copy").problems == []


def test_files_beside_and_below_arrays_are_foreign_and_chunks_are_not(tmp_path: Path) -> None:
    for path, options in (
        ("two", {"zarr_format": 2}),
        ("three", {"zarr_format": 3}),
        ("n.n5", {"zarr_format": "n5"}),
    ):
        group = zarrfs.create_group(tmp_path / path, **options)
        group.create_array("a", data=np.ones((4, 4)), chunks=(2, 2))
        files = ["a/notes.txt", "a/c/thumbnails/1.png", "b/table.parquet", "b/zarr.txt", ".hidden", "a.json"]
        for name in files:
            (tmp_path / path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path / name).write_bytes(name.encode())
        (tmp_path / path / "a" / ".zarrfs-copy-0").write_bytes(b"of a replacement")
        assert convert(tmp_path / path, tmp_path / f"{path}-copy").files == sorted(files)
        assert all((tmp_path / f"{path}-copy" / name).read_bytes() == name.encode() for name in files)


def test_nothing_in_a_draft_of_2019_is_foreign_but_what_is_outside_of_its_prefixes(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "d", zarr_format="draft2019")
    group.create_array("a", data=np.ones((4, 4)), chunks=(2, 2))
    (tmp_path / "d" / "readme.txt").write_text("read me")
    assert convert(tmp_path / "d", tmp_path / "copy").files == ["readme.txt"]
    assert convert(tmp_path / "d", tmp_path / "copy3", zarr_format=3).files == ["readme.txt"]
    zarrfs.create_group(tmp_path / "g").create_array("a", data=np.ones(4))
    (tmp_path / "g" / "meta").mkdir()
    (tmp_path / "g" / "meta" / "x.txt").write_text("x")
    with pytest.raises(UnsupportedError, match=r"meta/x\.txt: a metadata document"):
        convert(tmp_path / "g", tmp_path / "d2", zarr_format="draft2019")
    report = convert(tmp_path / "g", tmp_path / "d2", zarr_format="draft2019", skip_broken=True)
    assert report.files == []
    assert list(report.skipped) == ["meta/x.txt"]


def test_a_file_with_the_name_of_a_document_of_the_copy_is_refused(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g", zarr_format=2).create_array("a", data=np.ones((4, 4)))
    (tmp_path / "g" / "a" / "attributes.json").write_text("{}")
    assert convert(tmp_path / "g", tmp_path / "copy").files == ["a/attributes.json"]
    with pytest.raises(UnsupportedError, match=r"a/attributes\.json: a metadata document"):
        convert(tmp_path / "g", tmp_path / "copy.n5", zarr_format="n5")
    assert not (tmp_path / "copy.n5").exists()


def test_files_below_skipped_members_are_not_copied(tmp_path: Path) -> None:
    write_spatialdata(tmp_path / "s")
    (tmp_path / "s" / "points" / "pts" / "zarr.json").write_text("{")
    report = convert(tmp_path / "s", tmp_path / "t", skip_broken=True)
    assert report.files == ["shapes/cells/shapes.parquet"]
    assert list(report.skipped) == ["points/pts"]
    assert not (tmp_path / "t" / "points" / "pts").exists()


def test_nodes_only(tmp_path: Path) -> None:
    files = write_spatialdata(tmp_path / "s")
    assert convert(tmp_path / "s", tmp_path / "t", nodes_only=True).files == []
    assert files_of(LocalStore(tmp_path / "t")) == []
    assert [(problem.path, problem.kind) for problem in verify(tmp_path / "s", tmp_path / "t").problems] == [
        (name, "different") for name in files
    ]
    result = command("copy", tmp_path / "s", tmp_path / "u", "--nodes-only")
    assert result.returncode == 0
    assert "no node" not in result.stdout
    assert command("verify", tmp_path / "s", tmp_path / "u").returncode == 1


def test_the_command_counts_files_and_verify_compares_them(tmp_path: Path) -> None:
    write_spatialdata(tmp_path / "s")
    result = command("copy", tmp_path / "s", tmp_path / "t")
    assert (result.returncode, result.stderr) == (0, "")
    assert "/: 3 files that belong to no node: copied unchanged" in result.stdout
    assert "would be /: 3 files" in command("copy", tmp_path / "s", tmp_path / "u", "--dry-run").stdout
    assert not (tmp_path / "u").exists()
    result = command("verify", tmp_path / "s", tmp_path / "t")
    assert result.stdout == "1 chunk of 1 array and 3 other files verified: no problems\n"
    (tmp_path / "t" / "shapes" / "cells" / "shapes.parquet").write_bytes(b"PAR1 Shapes PAR1")
    (tmp_path / "t" / "points" / "pts" / "points.parquet" / "part.1.parquet").unlink()
    (tmp_path / "t" / "new.txt").write_text("new")
    result = command("verify", tmp_path / "s", tmp_path / "t")
    assert result.returncode == 1
    assert "different: shapes/cells/shapes.parquet: the file differs from that in" in result.stdout
    assert "different: points/pts/points.parquet/part.1.parquet: the file does not exist in" in result.stdout
    assert "different: new.txt: the file exists only in" in result.stdout


def test_existing_files_follow_if_exists(tmp_path: Path) -> None:
    write_spatialdata(tmp_path / "s")
    existing = tmp_path / "t" / "shapes" / "cells" / "shapes.parquet"
    existing.parent.mkdir(parents=True)
    existing.write_bytes(b"another")
    with pytest.raises(
        NodeExistsError, match=r"the file 'shapes/cells/shapes\.parquet' exists; use if_exists"
    ):
        convert(tmp_path / "s", tmp_path / "t")
    assert not (tmp_path / "t" / "zarr.json").exists()
    for if_exists in ("skip", "resume"):
        convert(tmp_path / "s", tmp_path / "t", if_exists=if_exists)
        assert existing.read_bytes() == b"another"
    with pytest.raises(StoreError, match=r"'shapes/cells/shapes\.parquet' differs from the source"):
        convert(tmp_path / "s", tmp_path / "t", if_exists="resume", verify=True)
    convert(tmp_path / "s", tmp_path / "t", if_exists="replace")
    assert existing.read_bytes() == b"PAR1 shapes PAR1"


def test_an_interrupted_copy_continues_with_the_remaining_files(tmp_path: Path) -> None:
    files = write_spatialdata(tmp_path / "s")
    target = MemoryStore()
    broken = FailingStore(
        target,
        lambda operation, key: (
            StoreError("the disk is full") if (operation, key) == ("set", files[1]) else None
        ),
    )
    with pytest.raises(StoreError, match="full"):
        convert(tmp_path / "s", broken)
    convert(tmp_path / "s", target, if_exists="resume")
    assert verify(tmp_path / "s", target).problems == []


def test_a_group_does_not_replace_an_array_below_the_copy(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "s").create_group("g").create_array("a", data=np.ones(3))
    zarrfs.create_group(tmp_path / "t").create_array("g", data=np.ones(3))
    for if_exists in ("replace", "resume", "skip"):
        with pytest.raises(
            NodeTypeError, match="an array at 'g', where the source has a group; nothing was written"
        ):
            convert(tmp_path / "s", tmp_path / "t", if_exists=if_exists)


def test_a_web_server_cannot_list_files(tmp_path: Path) -> None:
    write_anndata(tmp_path / "s")
    with closing(WebServer(tmp_path)) as server:
        result = command("copy", f"{server.url}/s", tmp_path / "t")
        assert result.returncode == 0
        assert (
            "cannot be listed: files beside the arrays and groups are not found, and not copied"
            in result.stderr
        )
        assert_equal_arrays(tmp_path / "s", tmp_path / "t")
        assert zarrfs.open_group(tmp_path / "t", mode="r").spec.consolidated is not None
        assert verify(f"{server.url}/s", tmp_path / "t").problems == []
        result = command("copy", f"{server.url}/s", tmp_path / "u", "--nodes-only")
        assert (result.returncode, result.stderr) == (0, "")


def test_existing_consolidated_metadata_are_written_again_or_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_anndata(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "t")
    with caplog.at_level(logging.WARNING):
        convert(tmp_path / "s", tmp_path / "t", if_exists="replace")
        assert caplog.messages == []
    zarrfs.create_group(tmp_path / "s2", zarr_format=2).create_array("new", data=np.ones(3))
    with caplog.at_level(logging.WARNING):
        convert(tmp_path / "s2", tmp_path / "t", if_exists="replace")
    (message,) = caplog.messages
    assert "the consolidated metadata of '/' are out of date since members of it were changed" in message
    caplog.clear()


def test_members_of_group_documents_are_kept_in_their_format(tmp_path: Path) -> None:
    write_nczarr(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "t")
    document = json.loads((tmp_path / "t" / ".zgroup").read_text())
    assert document == json.loads((tmp_path / "s" / ".zgroup").read_text())
    assert "_NCZARR_GROUP" in document
    convert(tmp_path / "s", tmp_path / "u", zarr_format=3)
    assert set(json.loads((tmp_path / "u" / "zarr.json").read_text())) == {
        "zarr_format",
        "node_type",
        "attributes",
    }


def test_the_requests_of_a_copy_grow_in_proportion_to_the_depth() -> None:
    counts = []
    for depth in (20, 40, 80):
        source, target = MemoryStore(), CountingStore(MemoryStore())
        path = "/".join("g" * depth)
        zarrfs.create_group(source)
        zarrfs.create_group(source, path=path)
        zarrfs.create_array(source, f"{path}/a", data=np.ones(3))
        convert(source, target)
        assert verify(source, target).problems == []
        target.reset()
        convert(source, target, if_exists="replace")
        convert(source, counting := CountingStore(MemoryStore()))
        counts.append(sum(counting.calls.values()))
    assert counts[2] - counts[1] == 2 * (counts[1] - counts[0])


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_keys_of_another_separator_are_unreachable(
    tmp_path: Path, zarr_format: int, caplog: pytest.LogCaptureFixture
) -> None:
    options: dict[str, Any] = {"dimension_separator": "."} if zarr_format == 2 else {}
    zarrfs.create_array(
        tmp_path / "a", data=np.ones((4, 6)), chunks=(2, 2), zarr_format=zarr_format, **options
    )
    name = ".zarray" if zarr_format == 2 else "zarr.json"
    text = (tmp_path / "a" / name).read_text()
    before, after = (('r": "."', 'r": "/"'), ('r": "/"', 'r": "."'))[zarr_format - 2]
    assert before in text
    assert verify(tmp_path / "a").problems == []
    (tmp_path / "a" / name).write_text(text.replace(before, after))
    assert caplog.messages == []
    (problem,) = verify(tmp_path / "a").problems
    (message,) = caplog.messages
    assert "no chunks were found with keys such as" in message
    assert problem.kind == "unreachable"
    assert "the dimension separator (chunk key encoding)" in problem.message
    assert "and 3 more" in problem.message
    result = command("verify", tmp_path / "a")
    assert result.returncode == 1
    assert "0 chunks of 1 array verified: 1 unreachable" in result.stdout
    # The metadata are wrong, so nothing is removed.
    result = command("clean", tmp_path / "a", "--unreachable")
    assert result.stdout == "0 files removed\n"
    assert "is not cleaned" in result.stderr
    (tmp_path / "a" / name).write_text(text)
    assert verify(tmp_path / "a").problems == []


def test_chunks_outside_of_the_grid_are_unreachable_and_can_be_removed(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g").create_array("a", data=np.ones((4, 6)), chunks=(2, 2))
    array = zarrfs.open_array(tmp_path / "g" / "a", mode="r+")
    array.resize((2, 6), delete=False)
    keys = ["a/c/1/0", "a/c/1/1", "a/c/1/2"]
    assert ArrayKeys(array).unreachable == [key[2:] for key in keys]
    (problem,) = verify(tmp_path / "g").problems
    assert problem.path == "a"
    assert "zarrfs clean --unreachable removes them" in problem.message
    assert convert(tmp_path / "g", tmp_path / "copy").files == []
    assert verify(tmp_path / "copy").problems == []
    url = LocalStore(tmp_path / "g").url
    assert clean(tmp_path / "g") == []
    assert clean(tmp_path / "g", unreachable=True, dry_run=True) == [f"{url}/{key}" for key in keys]
    assert len(verify(tmp_path / "g").problems) == 1
    assert command("clean", tmp_path / "g", "--unreachable").stdout.endswith("3 files removed\n")
    assert verify(tmp_path / "g").problems == []
    assert clean(tmp_path / "g", unreachable=True) == []


def test_files_that_an_hdf5_file_cannot_contain_are_counted(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g").create_array("a", data=np.ones(3))
    (tmp_path / "g" / "notes.txt").write_text("notes")
    result = command("copy", tmp_path / "g", tmp_path / "g.h5")
    assert result.returncode == 0
    assert "1 file that belongs to no node is not copied: HDF5 cannot contain it" in result.stderr
    result = command("copy", tmp_path / "g", tmp_path / "g2.h5", "--nodes-only")
    assert (result.returncode, result.stderr) == (0, "")


def test_a_copy_of_selected_members_contains_the_files_below_them(tmp_path: Path) -> None:
    write_spatialdata(tmp_path / "s")
    report = convert(tmp_path / "s", tmp_path / "t", paths=["shapes/cells"])
    assert report.files == ["shapes/cells/shapes.parquet"]
    assert not (tmp_path / "t" / "points").exists()


def test_the_mark_of_an_unfinished_copy_is_not_in_its_consolidated_metadata(tmp_path: Path) -> None:
    write_anndata(tmp_path / "s")
    convert(tmp_path / "s", tmp_path / "t")
    assert stale_consolidation(zarrfs.open_group(tmp_path / "t", mode="r")) == []
    attributes = json.loads((tmp_path / "t" / ".zmetadata").read_text())["metadata"][".zattrs"]
    assert attributes == {"encoding-type": "anndata", "encoding-version": "0.1.0"}
