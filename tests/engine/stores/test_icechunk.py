"""Repositories of Icechunk as locations. The contract suite runs over a branch, too (``every_store``)."""

from __future__ import annotations

import pickle
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import icechunk
import numpy as np
import pytest
import tifffile
import zarr
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.icechunk_repositories import DATA, history, make_repository, open_repository
from zarrfs.cli.main import main
from zarrfs.engine.stores.base import ByteRange
from zarrfs.engine.stores.icechunk import addresses, repositories
from zarrfs.engine.stores.icechunk.store import IcechunkStore
from zarrfs.errors import (
    LocationError,
    LocationNotFoundError,
    NodeNotFoundError,
    OptionError,
    StoreError,
    ZarrError,
)
from zarrfs.files.importing import import_files
from zarrfs.tools import build_pyramid, convert

ZEROS = np.zeros_like(DATA)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    make_repository(tmp_path / "repository")
    return tmp_path / "repository"


def snapshots(path: Path) -> list[icechunk.SnapshotInfo]:
    """Return the snapshots of the branch main, the newest first."""
    return list(open_repository(path).ancestry(branch="main"))


# -- reading -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("/a/b", DATA),
        ("@main/a/b", DATA),
        ("@branch.main/a/b", DATA),
        ("@dev/a/b", ZEROS),
        ("@v1/a/b", ZEROS),
        ("@tag.v1/a/b", ZEROS),
        ("@2100-01-01/a/b", DATA),
    ],
)
def test_a_location_names_a_version_and_a_path(repository: Path, suffix: str, expected: np.ndarray) -> None:
    with zarrfs.open_array(f"icechunk:{repository}{suffix}") as array:
        np.testing.assert_array_equal(array[...], expected)
        assert array.path == "a/b"
        assert array.read_only


def test_snapshots_and_times_are_versions(repository: Path) -> None:
    newest, older, _ = snapshots(repository)
    before = (older.written_at + (newest.written_at - older.written_at) / 2).isoformat()
    for suffix in (f"@{older.id}", f"@snapshot.{older.id}", f"@snapshot.2026.{older.id}", f"@{before}"):
        with zarrfs.open_array(f"icechunk:{repository}{suffix}/a/b") as array:
            np.testing.assert_array_equal(array[...], ZEROS)
    with zarrfs.open_array(f"icechunk:{repository}@{newest.id.lower()}/a/b") as array:
        np.testing.assert_array_equal(array[...], DATA)


def test_storage_options_name_the_version(repository: Path) -> None:
    newest, older, _ = snapshots(repository)
    before = (older.written_at + (newest.written_at - older.written_at) / 2).isoformat()
    versions: tuple[dict[str, Any], ...] = (
        {"branch": "dev"},
        {"tag": "v1"},
        {"snapshot": older.id},
        {"as_of": before},
        {"branch": "main", "as_of": before},
    )
    for options in versions:
        with zarrfs.open_array(f"icechunk:{repository}", "a/b", storage_options=options) as array:
            np.testing.assert_array_equal(array[...], ZEROS)


def test_names_and_paths_can_contain_at_signs_and_slashes(tmp_path: Path) -> None:
    path = tmp_path / "x@y" / "repository@home"
    path.parent.mkdir()
    repository = make_repository(path)
    branch = "user/work@night" if int(icechunk.__version__.partition(".")[0]) >= 2 else "user@night"
    repository.create_branch(branch, repository.lookup_branch("main"))
    for suffix in ("", "/a/b", "@main/a/b", f"@{branch}", f"@{branch}/a/b"):
        with zarrfs.open(f"icechunk:{path}{suffix}") as node:
            assert node.path == ("a/b" if "a/b" in suffix else "")
            assert isinstance(node.store, IcechunkStore)
            assert node.store.version_read.branch == (branch if branch in suffix else "main")


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("icechunk:s3://bucket/repo", ("s3://bucket/repo", "", "")),
        ("icechunk:s3://bucket/repo/", ("s3://bucket/repo", "", "")),
        ("icechunk:s3://bucket/repo@main/a/b", ("s3://bucket/repo", "main/a/b", "")),
        ("icechunk:s3://bucket/x@y/repo@v1", ("s3://bucket/x@y/repo", "v1", "")),
        ("icechunk:https://user@host/repo", ("https://user@host/repo", "", "")),
        ("icechunk:/missing/repo@v1/a", ("/missing/repo", "v1/a", "")),
        ("icechunk:file:///missing/a%20b", ("/missing/a b", "", "")),
    ],
)
def test_a_location_is_divided_into_its_parts(location: str, expected: tuple[str, str, str]) -> None:
    assert addresses.split_address(location, has_version=False) == expected


def test_an_at_sign_is_a_part_of_the_path_if_options_name_the_version() -> None:
    address = addresses.split_address("icechunk:s3://bucket/x@y", has_version=True)
    assert address == ("s3://bucket/x@y", "", "")


def test_ranges_and_sizes_are_those_of_the_values(repository: Path) -> None:
    with zarrfs.open(f"icechunk:{repository}") as node:
        store = node.store
        for key in ("zarr.json", "a/b/zarr.json", "a/b/c/0/0", "a/b/c/2/1"):
            value = store.get(key)
            assert value is not None
            value = bytes(value)
            assert store.size(key) == len(value)
            ranges = [ByteRange(0, 4), ByteRange(-3), ByteRange(2), ByteRange(1, 10**6), ByteRange(10**6, 5)]
            for chosen in (ranges[:3], ranges, ranges[3:4], ranges[4:]):
                parts = store.get_ranges(key, chosen)
                assert parts is not None
                bounds = [each.resolve(len(value)) for each in chosen]
                assert list(map(bytes, parts)) == [value[start:stop] for start, stop in bounds]
        for missing in ("x/zarr.json", "a/b/c/9/9", "a/b/c/0/0/0", ".zgroup", "a/b/.zarray", "x/c/0"):
            assert store.get(missing) is None
            assert store.size(missing) is None
            assert store.get_ranges(missing, [ByteRange(0, 1)]) is None
        assert store.list_dir("a") == (["zarr.json"], ["b"])
        assert sorted(store.list_prefix("a/b"))[0] == "a/b/c/0/0"


def test_a_node_that_reads_can_be_pickled_and_keeps_its_snapshot(repository: Path) -> None:
    with zarrfs.open_array(f"icechunk:{repository}@main/a/b") as array:
        pickled = pickle.dumps(array)
    with zarrfs.open_group(f"icechunk:{repository}@main", mode="r+") as group:
        group["a/b"][...] = 9
    with pickle.loads(pickled) as array:
        np.testing.assert_array_equal(array[...], DATA)
    group = zarrfs.open_group(f"icechunk:{repository}@main", mode="r+")
    with group, pytest.raises(StoreError, match="by one process only"):
        pickle.dumps(group)


# -- writing -------------------------------------------------------------------------------------------------------


def test_zarr_python_reads_what_zarrfs_writes(tmp_path: Path) -> None:
    path = tmp_path / "new"
    options = {"message": "first data"}
    with zarrfs.create_group(f"icechunk:{path}@main", storage_options=options) as group:
        group.attrs["a"] = [1, 2]
        group.create_array("x/plain", data=DATA, chunks=(4, 4))
        group.create_array("sharded", data=DATA, chunks=(2, 2), shards=(4, 4))
    assert history(path) == ["first data"]
    root = zarr.open_group(open_repository(path).readonly_session("main").store, mode="r")
    assert root.attrs["a"] == [1, 2]
    for name in ("x/plain", "sharded"):
        np.testing.assert_array_equal(root[name][...], DATA)


def test_a_failure_leaves_the_branch_as_it_was(repository: Path) -> None:
    def write() -> None:
        with zarrfs.open_group(f"icechunk:{repository}@main", mode="r+") as group:
            group["a/b"][...] = 9
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert history(repository) == ["values", "zeros"]
    with zarrfs.open_array(f"icechunk:{repository}@main/a/b") as array:
        np.testing.assert_array_equal(array[...], DATA)


def test_leaving_the_block_of_a_node_commits_while_others_are_open(repository: Path) -> None:
    with zarrfs.open_group(f"icechunk:{repository}@main", mode="r+") as group:
        array = group["a/b"]
        array[0, 0] = 77
        assert array[0, 0] == 77
    assert len(history(repository)) == 3
    array[0, 1] = 78
    array.close()
    assert len(history(repository)) == 4
    with zarrfs.open_array(f"icechunk:{repository}@main/a/b") as array:
        assert array[0, :2].tolist() == [77, 78]


def test_a_commit_returns_the_snapshot(repository: Path) -> None:
    with zarrfs.open_group(f"icechunk:{repository}@main", mode="r+") as group:
        store = group.store
        assert isinstance(store, IcechunkStore)
        assert store.commit() is None
        group["a/b"][...] = 5
        assert store.has_changes
        assert store.commit("five") == snapshots(repository)[0].id == store.snapshot
        assert not store.has_changes
        group.attrs["x"] = 1
    assert history(repository)[1:] == ["five", "values", "zeros"]


def test_a_commit_of_another_writer_is_a_conflict(repository: Path) -> None:
    group = zarrfs.open_group(f"icechunk:{repository}@main", mode="r+")
    group.attrs["x"] = 1
    with zarrfs.open_group(f"icechunk:{repository}@main", mode="r+") as other:
        other.attrs["x"] = 2
    with pytest.raises(StoreError, match=r"another writer has added a snapshot.*nothing was committed"):
        group.close()
    assert group.store._closed
    with zarrfs.open_group(f"icechunk:{repository}@main") as group:
        assert group.attrs["x"] == 2


def test_changes_that_are_not_committed_are_logged(
    repository: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group = zarrfs.open_group(f"icechunk:{repository}@main", mode="r+")
    group.attrs["x"] = 1
    del group
    assert "its changes are not committed, and are lost" in caplog.text
    assert len(history(repository)) == 2


def test_tools_add_one_snapshot(tmp_path: Path) -> None:
    source, path = tmp_path / "source.zarr", tmp_path / "repository"
    with zarrfs.create_group(source) as group:
        group.create_array("a/b", data=DATA, chunks=(2, 4))
        group.create_array("c", data=DATA)
    images = tmp_path / "images.ome.tif"
    with tifffile.TiffWriter(images, ome=True) as writer:
        writer.write(np.zeros((20, 30), "u2"), metadata={"axes": "YX"})
        writer.write(np.ones((20, 30), "u2"), metadata={"axes": "YX"})
    location = f"icechunk:{path}@main"
    convert(source, location, verify=True, storage_options={"message": "copy"})
    build_pyramid(
        f"{location}/a/b", f"{location}/image", axes=["y", "x"], storage_options={"message": "pyramid"}
    )
    import_files([images], f"{location}/series", storage_options={"message": "series"})
    convert(source / "c", f"{location}/again", chunks=(3, 3), storage_options={"message": "rechunk"})
    assert history(path) == ["rechunk", "series", "pyramid", "copy"]
    with zarrfs.open_group(location) as group:
        np.testing.assert_array_equal(group["image/0"][...], DATA)
        np.testing.assert_array_equal(group["again"][...], DATA)
        np.testing.assert_array_equal(group["series/1/0"][...], np.ones((20, 30)))


def test_a_copy_that_fails_leaves_the_branch_as_it_was(tmp_path: Path, repository: Path) -> None:
    with zarrfs.create_group(tmp_path / "source.zarr") as group:
        group.create_array("x", data=DATA, chunks=(6, 8), compressors=[])
        group.create_array("y", data=DATA, chunks=(6, 8), compressors="gzip")
    (tmp_path / "source.zarr/y/c/0/0").write_bytes(b"damaged")
    with pytest.raises(ZarrError):
        convert(tmp_path / "source.zarr", f"icechunk:{repository}@main/new", chunks=(3, 4))
    assert history(repository) == ["values", "zeros"]
    with zarrfs.open_group(f"icechunk:{repository}@main") as group:
        assert list(group) == ["a"]


def test_the_command_line_takes_a_message(tmp_path: Path, repository: Path) -> None:
    target = f"icechunk:{tmp_path / 'new'}"
    result = CliRunner().invoke(
        main, ["copy", f"icechunk:{repository}@v1", target, "--message", "from the tag"]
    )
    assert result.exit_code == 0, result.output
    assert history(tmp_path / "new") == ["from the tag"]
    result = CliRunner().invoke(main, ["tree", f"{target}@main"])
    assert "b  6 x 8 uint16" in result.output
    result = CliRunner().invoke(
        main, ["copy", f"icechunk:{repository}", str(tmp_path / "copy.zarr"), "--message", "m"]
    )
    assert result.exit_code == 1
    assert "does not accept the storage option 'message'" in str(result.exception)


# -- virtual chunks ------------------------------------------------------------------------------------------------


@pytest.fixture
def virtual(tmp_path: Path) -> Path:
    """A repository with an array whose chunks are in another file."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/rows.bin").write_bytes(DATA.tobytes())
    prefix = f"file://{tmp_path}/data/"
    config = icechunk.RepositoryConfig.default()
    config.set_virtual_chunk_container(
        icechunk.VirtualChunkContainer(prefix, icechunk.local_filesystem_store(str(tmp_path / "data")))
    )
    path = tmp_path / "repository"
    storage = icechunk.local_filesystem_storage(str(path))
    repository = icechunk.Repository.create(storage, config)
    repository.save_config()
    session = repository.writable_session("main")
    zarr.create_array(
        session.store, name="x", shape=DATA.shape, chunks=(1, 8), dtype=DATA.dtype, compressors=None
    )
    for row in range(len(DATA)):
        session.store.set_virtual_ref(f"x/c/{row}/0", f"{prefix}rows.bin", offset=16 * row, length=16)
    session.commit("references")
    return path


def test_virtual_chunks_are_read_with_permission_only(virtual: Path) -> None:
    location, prefix = f"icechunk:{virtual}", f"file://{virtual.parent}/data/"
    with zarrfs.open_array(location, "x") as array, pytest.raises(StoreError, match="allow_external=True"):
        array[...]
    allowed: tuple[dict[str, Any], ...] = ({"allow_external": True}, {"virtual": {prefix: {}}})
    for options in allowed:
        with zarrfs.open_array(location, "x", storage_options=options) as array:
            np.testing.assert_array_equal(array[...], DATA)
            with pickle.loads(pickle.dumps(array)) as copy:
                np.testing.assert_array_equal(copy[...], DATA)
    result = CliRunner().invoke(main, ["verify", location, "--allow-external"])
    assert result.exit_code == 0, result.output


def test_options_of_virtual_chunks_are_checked(virtual: Path) -> None:
    for given, message in (
        ({"file:///other/": {}}, "no container of virtual chunks 'file:///other/'; it has 'file:///"),
        ("all", "must be a mapping of prefixes"),
    ):
        with pytest.raises(OptionError, match=message):
            zarrfs.open(f"icechunk:{virtual}", storage_options={"virtual": given})


@pytest.mark.parametrize(
    ("prefix", "options"),
    [
        ("s3://bucket/", {"anon": True}),
        ("s3://bucket/", {"key": "a", "secret": "b"}),
        ("s3://bucket/", None),
        ("gs://bucket/", None),
        ("az://container/", {"account_key": "a"}),
        ("https://host/", None),
    ],
)
def test_credentials_of_virtual_chunks_have_the_names_of_fsspec(
    repository: Path, prefix: str, options: dict[str, Any] | None
) -> None:
    opened = repositories.Repository(str(repository), {})
    assert opened._credentials(prefix, options) is not None or prefix.startswith("https")
    if not prefix.startswith("https"):
        with pytest.raises(OptionError, match="does not accept the storage option 'colour'"):
            opened._credentials(prefix, {"colour": "red"})
    with pytest.raises(LocationError, match=r"virtual chunks at ftp://host/ are not supported"):
        opened._credentials("ftp://host/", None)


# -- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "mode", "kind", "message"),
    [
        ("x", "r", LocationNotFoundError, "there is no repository of Icechunk here"),
        ("x@main", "r+", LocationNotFoundError, "there is no repository of Icechunk here"),
        ("x@v1", "a", LocationNotFoundError, "there is no repository of Icechunk here"),
        ("@none", "r", LocationError, "no branch, tag or snapshot 'none'.*'dev' or 'main'.*'v1'"),
        ("@none", "a", LocationError, "no branch, tag or snapshot 'none'"),
        ("@" + "0" * 20, "r", LocationError, "opening the snapshot 0{20} failed: .*not found"),
        ("@1999-01-01", "r", LocationError, "opening the branch 'main' at 1999-01-01.*failed"),
        ("@v1", "r+", LocationError, "the tag 'v1' cannot be changed; open a branch"),
        ("@2100-01-01", "a", LocationError, "the branch 'main' at 2100-01-01.*cannot be changed"),
        ("@main/none", "r", NodeNotFoundError, "main/none: no Zarr array or group here"),
    ],
)
def test_wrong_locations_are_errors(
    repository: Path, suffix: str, mode: Any, kind: type[ZarrError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        zarrfs.open(f"icechunk:{repository}{suffix}", mode=mode)
    assert not Path(f"{repository}x").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tag": "none"}, "there is no tag 'none'; expected the tag 'v1'"),
        ({"branch": "none"}, "there is no branch 'none'; expected the branch 'dev' or 'main'"),
        ({"tag": "v1", "branch": "main"}, "exclude each other"),
        ({"tag": "v1", "as_of": "2026-01-01"}, "exclude each other"),
        ({"as_of": "yesterday"}, "must be a time"),
        ({"branch": 1}, "must be a text"),
        ({"colour": "red"}, "does not accept the storage option 'colour'; it accepts 'branch', 'tag'"),
    ],
)
def test_wrong_options_are_errors(repository: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, LocationError), match=message):
        zarrfs.open(f"icechunk:{repository}", storage_options=options)


def test_locations_without_a_repository_or_with_an_unknown_protocol_are_errors() -> None:
    for location in ("icechunk:", "icechunk:@main"):
        with pytest.raises(LocationError, match="expected the path or URL of a repository"):
            zarrfs.open(location)
    with pytest.raises(LocationError, match="repositories at ftp:// URLs are not supported"):
        zarrfs.open("icechunk:ftp://host/repository")
    with pytest.raises(OptionError, match="'account_name' is missing"):
        zarrfs.open("icechunk:az://container/repository")


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
@pytest.mark.parametrize("inner", ["", "/a/b"])
def test_a_repository_that_is_opened_as_a_directory_is_an_error(
    repository: Path, mode: Any, inner: str
) -> None:
    with pytest.raises(LocationError, match="a repository of Icechunk; open it as icechunk:/"):
        zarrfs.open(f"{repository}{inner}", mode=mode)


def test_the_package_is_an_optional_dependency(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "icechunk", None)
    monkeypatch.setattr(repositories, "load_library", uncached_load)
    with pytest.raises(LocationError, match="'icechunk', which is not installed: pip install "):
        zarrfs.open(f"icechunk:{repository}")


def uncached_load(name: str, extra: str, dependent: str) -> Any:
    from zarrfs import libraries

    libraries._complete.discard(name)
    return libraries.load_library(name, extra, dependent)


def test_a_directory_with_such_a_name_takes_precedence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    zarrfs.create_array(tmp_path / "icechunk:x", data=DATA).close()
    with zarrfs.open_array("icechunk:x") as array:
        np.testing.assert_array_equal(array[...], DATA)


@pytest.mark.parametrize("text", ["2026-11-26", "2026-11-26T08:00:00", "2026-11-26T08:00:00Z"])
def test_times_without_a_zone_are_in_utc(text: str) -> None:
    time = repositories.parse_time(text)
    assert isinstance(time, datetime)
    assert time.utcoffset() is not None
    assert not time.utcoffset()
