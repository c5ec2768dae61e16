"""A copy is complete, or an error names what is missing. Errors that can be detected early are raised before
anything is written.
"""

from __future__ import annotations

import io
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import h5py
import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import WebServer
from tests.engine.test_plugins import run as run_with_plugins
from tests.engine.test_plugins import site
from zarrfs.cli.main import run
from zarrfs.engine.hierarchy.unfinished import unfinished_note
from zarrfs.engine.parallel import limit_threads
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import (
    ChunkDecodeError,
    IncompleteCopyError,
    MetadataError,
    NodeExistsError,
    OptionError,
    StoreError,
    UnsupportedError,
)
from zarrfs.testing import CountingStore, FailingStore
from zarrfs.tools import build_pyramid, convert, copy, copy_all, from_hdf5, migrate, rechunk, to_hdf5

__all__ = ["site"]


class CommandResult(NamedTuple):
    """The result of a command."""

    returncode: int
    stdout: str
    stderr: str


def command(*arguments: str | Path) -> CommandResult:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    argv = ["zarrfs", *map(str, arguments)]
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", argv),
        pytest.raises(SystemExit) as caught,
    ):
        run()
    return CommandResult(int(caught.value.code or 0), out.getvalue(), err.getvalue())


def create_hierarchy(path: Path, zarr_format: int = 3) -> zarrfs.Group:
    group = zarrfs.create_group(path, zarr_format=zarr_format, attributes={"a": 1})
    for name in ("good", "inner/bad", "inner/last"):
        group.create_array(name, data=np.arange(10), chunks=(4,))
    return group


# -- members that cannot be read -------------------------------------------------------------------------------


def truncate(document: Path) -> None:
    document.write_bytes(document.read_bytes()[:20])


def replace_with_directory(document: Path) -> None:
    document.unlink()
    document.mkdir()


def replace_with_fifo(document: Path) -> None:
    document.unlink()
    os.mkfifo(document)


def use_unknown_codec(document: Path) -> None:
    document.write_text(document.read_text().replace('"blosc"', '"unheard-of"'))


def use_wrong_node_type(document: Path) -> None:
    document.write_text(document.read_text().replace('"array"', '"matrix"'))


DAMAGES = [truncate, replace_with_directory, replace_with_fifo, use_unknown_codec, use_wrong_node_type]


@pytest.fixture(params=DAMAGES, ids=lambda damage: damage.__name__)
def damaged_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    create_hierarchy(tmp_path / "s.zarr")
    damage: Callable[[Path], None] = request.param
    damage(tmp_path / "s.zarr" / "inner" / "bad" / "zarr.json")
    return tmp_path / "s.zarr"


def test_copies_fail_if_a_member_is_broken(damaged_path: Path, tmp_path: Path) -> None:
    for options in ({}, {"zarr_format": 2}, {"chunks": 5}, {"dry_run": True}):
        with pytest.raises(IncompleteCopyError, match=r"nothing was written; 1 member .*: inner/bad \("):
            convert(damaged_path, tmp_path / "t.zarr", verify=True, **options)  # type: ignore[arg-type]
    for function in (copy_all, lambda source, dest: copy(source, dest, "x")):
        dest = MemoryStore()
        with pytest.raises(IncompleteCopyError, match="inner/bad"):
            function(zarrfs.open_group(damaged_path), zarrfs.create_group(dest))
        assert list(dest.list_prefix()) == ["zarr.json"]
    with pytest.raises(IncompleteCopyError, match="inner/bad"):
        to_hdf5(damaged_path, tmp_path / "t.h5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.zarr"]


def test_skip_broken_skips_broken_members(damaged_path: Path, tmp_path: Path) -> None:
    report = rechunk(damaged_path, tmp_path / "t.zarr", 5, verify=True, skip_broken=True)
    assert list(report.skipped) == ["inner/bad"]
    assert any(line.startswith("inner/bad: skipped: ") for line in report)
    group = zarrfs.open_group(tmp_path / "t.zarr")
    assert [path for path, _ in group.walk()] == ["good", "inner", "inner/last"]
    assert group["inner/last"][...].tolist() == list(range(10))


@pytest.mark.parametrize(
    "command_words", [("copy",), ("convert", "--format", "2"), ("rechunk", "--chunks", "5")]
)
def test_the_exit_code_reports_an_incomplete_copy(command_words: tuple[str, ...], tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s.zarr")
    truncate(tmp_path / "s.zarr" / "inner" / "bad" / "zarr.json")
    arguments = (command_words[0], tmp_path / "s.zarr", tmp_path / "t.zarr", *command_words[1:], "--verify")
    result = command(*arguments)
    assert (result.returncode, result.stdout) == (1, "")
    (line,) = result.stderr.splitlines()
    assert "inner/bad" in line
    assert "--skip-broken" in line
    assert not (tmp_path / "t.zarr").exists()
    result = command(*arguments, "--skip-broken")
    assert result.returncode == 3, result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("zarrfs: skipped: inner/bad: ")
    result = command(
        command_words[0],
        tmp_path / "s.zarr" / "good",
        tmp_path / "u.zarr",
        *command_words[1:],
        "--skip-broken",
    )
    assert (result.returncode, result.stderr) == (0, "")


def test_a_member_that_the_store_cannot_read_is_named(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s.zarr")

    def failure(operation: str, key: str) -> Exception | None:
        return StoreError("permission denied") if key == "inner/bad/zarr.json" else None

    source = FailingStore(LocalStore(tmp_path / "s.zarr"), failure)
    with pytest.raises(IncompleteCopyError, match=r"inner/bad \(permission denied\)"):
        convert(source, tmp_path / "t.zarr")

    def listing(operation: str, key: str) -> Exception | None:
        return StoreError("permission denied") if operation == "list_dir" and key == "inner" else None

    source = FailingStore(LocalStore(tmp_path / "s.zarr"), listing)
    with pytest.raises(IncompleteCopyError, match=r"inner \(permission denied\)"):
        convert(source, tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr").exists()


def test_migrate_names_unreadable_nodes_and_changes_nothing(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s.zarr", 2)
    truncate(tmp_path / "s.zarr" / "inner" / "bad" / ".zarray")
    with pytest.raises(UnsupportedError, match="nothing was changed: inner/bad cannot be read"):
        migrate(tmp_path / "s.zarr", remove_old=True)
    assert not list(tmp_path.rglob("zarr.json"))


def test_nodes_that_the_format_cannot_represent_are_named(tmp_path: Path) -> None:
    group = create_hierarchy(tmp_path / "s.zarr")
    group.create_array("flags", data=np.array([True]))
    group.create_array("words", data=np.array(["a"], object), dtype="string")
    with pytest.raises(UnsupportedError, match=r"nothing was written: flags: N5 has no .*; words: N5 has no"):
        convert(tmp_path / "s.zarr", tmp_path / "t.n5", zarr_format="n5")
    assert not (tmp_path / "t.n5").exists()
    report = convert(tmp_path / "s.zarr", tmp_path / "t.n5", zarr_format="n5", skip_broken=True)
    assert sorted(report.skipped) == ["flags", "words"]
    result = command("convert", tmp_path / "s.zarr" / "flags", tmp_path / "u.n5", "--format", "n5")
    assert result.returncode == 1
    assert "N5 has no data type for bool" in result.stderr
    assert "--skip-broken" not in result.stderr


# -- sparse arrays ---------------------------------------------------------------------------------------------

HUGE = (10**9, 10**9)


@pytest.mark.parametrize(
    "options", [{}, {"chunks": (2, 2)}, {"zarr_format": 2}, {"compressors": "gzip"}], ids=str
)
def test_missing_chunks_are_not_copied(options: dict[str, Any], tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "s.zarr", shape=HUGE, dtype="u1", chunks=(1, 1), fill_value=3)
    array[10**8, 7] = 9
    target = CountingStore(MemoryStore())
    convert(tmp_path / "s.zarr", target, verify=True, **options)
    entry = zarrfs.open_array(target)
    assert (entry[10**8, 7], entry[5, 5], entry.shape) == (9, 3, HUGE)
    assert target.calls["set"] <= 4


def test_too_many_missing_chunks_to_write_are_an_error(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s.zarr", shape=HUGE, dtype="u1", chunks=(1, 1), fill_value=3)
    with pytest.raises(UnsupportedError, match="choose larger chunks"):
        convert(tmp_path / "s.zarr", tmp_path / "t.n5", zarr_format="n5")


# -- checks before anything is written -------------------------------------------------------------------------

DESTINATIONS = [
    "t.zarr",
    "t.zarr.zip",
    "sqlite://{}/t.sqldb",
    "lmdb://{}/t.lmdb",
    "dbm://{}/t.dbm",
    "new/deep/t.zip",
]


@pytest.fixture(params=DESTINATIONS)
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    target_directory = tmp_path / "place"
    target_directory.mkdir()
    text: str = request.param
    return text.format(target_directory) if "://" in text else str(target_directory / text)


def snapshot(path: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(entry): (entry.stat().st_mtime_ns, entry.read_bytes())
        for entry in path.rglob("*")
        if entry.is_file()
    } | {str(entry): (0, b"") for entry in path.rglob("*") if entry.is_dir()}


def test_a_dry_run_creates_nothing(destination: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s.zarr")
    report = convert(tmp_path / "s.zarr", destination, dry_run=True)
    assert "good: chunks copied unchanged" in report
    assert snapshot(tmp_path / "place") == {}


def test_a_dry_run_does_not_change_an_existing_destination(destination: str, tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s.zarr")
    if destination.endswith("new/deep/t.zip"):
        os.makedirs(os.path.dirname(destination))
    convert(tmp_path / "s.zarr" / "inner", destination)
    before = snapshot(tmp_path / "place")
    report = convert(tmp_path / "s.zarr", destination, if_exists="replace", dry_run=True)
    assert "good: chunks copied unchanged" in report
    with pytest.raises(NodeExistsError):
        convert(tmp_path / "s.zarr", destination, dry_run=True)
    after = snapshot(tmp_path / "place")
    # LMDB registers readers in its lock file.
    assert {key: value for key, value in after.items() if "lock" not in key} == {
        key: value for key, value in before.items() if "lock" not in key
    }


INVALID_OPTIONS = [
    ({"chunks": (5, 5)}, "chunks"),
    ({"chunks": 0}, "chunks"),
    ({"chunks": 4, "shards": 7}, "shards"),
    ({"shards": 0}, "shards"),
    ({"compressors": {"name": "nonsense", "configuration": {}}}, "nonsense"),
    ({"compressors": {"name": "gzip", "configuration": {"level": 99}}}, "level"),
    ({"zarr_format": 2, "shards": 8}, "shards"),
]


@pytest.mark.parametrize(("options", "message"), INVALID_OPTIONS, ids=str)
def test_invalid_options_are_rejected_before_anything_is_written(
    options: dict[str, Any], message: str, destination: str, tmp_path: Path
) -> None:
    create_hierarchy(tmp_path / "s.zarr")
    with pytest.raises(MetadataError, match=message):
        convert(tmp_path / "s.zarr", destination, **options)
    assert snapshot(tmp_path / "place") == {}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--shards 7", 1),
        ("--compressor nonsense", 2),
        ("--compressor gzip:99", 2),
        ("--chunks 0", 2),
        ("--chunks 3,3", 1),
    ],
)
def test_a_command_succeeds_after_a_rejected_option(options: str, code: int, tmp_path: Path) -> None:
    """The code is 2 for values that no source could have, and 1 for those that do not fit the source."""
    create_hierarchy(tmp_path / "s.zarr")
    result = command("convert", tmp_path / "s.zarr", tmp_path / "t.zarr", *options.split())
    assert (result.returncode, "Traceback" in result.stderr) == (code, False), result.stderr
    assert not (tmp_path / "t.zarr").exists()
    assert command("convert", tmp_path / "s.zarr", tmp_path / "t.zarr").returncode == 0


def test_errors_name_options_of_the_interface_in_use(tmp_path: Path) -> None:
    create_hierarchy(tmp_path / "s.zarr")
    create_hierarchy(tmp_path / "t.zarr")
    result = command("copy", tmp_path / "s.zarr", tmp_path / "t.zarr")
    assert "--if-exists replace" in result.stderr
    assert "if_exists=" not in result.stderr
    with pytest.raises(NodeExistsError, match="if_exists='replace'"):
        convert(tmp_path / "s.zarr", tmp_path / "t.zarr")


# -- properties that are lost ----------------------------------------------------------------------------------


def test_shards_are_kept_if_they_are_multiples_of_the_new_chunks(tmp_path: Path) -> None:
    data = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(16, 16), shards=(32, 32))
    for chunks in (8, (4, 32), "auto"):
        rechunk(tmp_path / "s", tmp_path / f"t{chunks}", chunks, verify=True)
        assert zarrfs.open_array(tmp_path / f"t{chunks}").shards == (32, 32)
    with pytest.raises(MetadataError, match=r"do not fit chunks 10: .*shards=False"):
        rechunk(tmp_path / "s", tmp_path / "u", 10)
    assert not (tmp_path / "u").exists()
    result = command("rechunk", tmp_path / "s", tmp_path / "u", "--chunks", "10")
    assert "--shards none" in result.stderr
    assert (
        command("rechunk", tmp_path / "s", tmp_path / "u", "--chunks", "10", "--shards", "none").returncode
        == 0
    )
    entry = zarrfs.open_array(tmp_path / "u")
    assert (entry.chunks, entry.shards) == ((10, 10), None)


def test_dropped_shards_are_reported(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(64), chunks=(4,), shards=(16,))
    for zarr_format in (2, "n5", "draft2019"):
        (line,) = convert(tmp_path / "s", tmp_path / f"t{zarr_format}", zarr_format=zarr_format)
        assert f"shards (16,) are dropped: format {zarr_format} does not support sharding" in line


@pytest.mark.parametrize("target_format", [2, 3])
def test_all_codecs_are_kept_when_chunks_change(target_format: int, tmp_path: Path) -> None:
    all_options: dict[int, dict[str, Any]] = {
        2: {
            "filters": [{"id": "delta", "dtype": "<i4"}],
            "compressors": {"id": "zlib", "level": 7},
            "order": "F",
        },
        3: {
            "filters": [{"name": "numcodecs.delta", "configuration": {"dtype": "<i4"}}],
            "compressors": [{"name": "gzip", "configuration": {"level": 7}}, {"name": "crc32c"}],
            "order": "F",
            "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "."}},
        },
    }
    options = all_options[target_format]
    data = np.arange(30 * 30, dtype="<i4").reshape(30, 30)
    source = zarrfs.create_array(
        tmp_path / "s", data=data, chunks=(10, 10), zarr_format=target_format, **options
    )
    (line,) = rechunk(tmp_path / "s", tmp_path / "t", (7, 7), verify=True)
    assert line == "/: re-encoded"
    entry = zarrfs.open_array(tmp_path / "t")
    assert entry.spec.codecs == source.spec.codecs
    assert entry.order == "F"
    assert entry.spec.chunk_key_encoding == source.spec.chunk_key_encoding
    (line,) = convert(tmp_path / "s", tmp_path / "u", compressors="zstd", verify=True)
    assert line == "/: re-encoded"
    assert "Delta" in str(zarrfs.open_array(tmp_path / "u").spec.codecs)


def test_dropped_codecs_are_reported(tmp_path: Path) -> None:
    zarrfs.create_array(
        tmp_path / "s",
        data=np.arange(100.0),
        filters=[{"name": "bitround", "configuration": {"keepbits": 20}}],
        compressors=["zstd", "crc32c"],
    )
    (line,) = convert(tmp_path / "s", tmp_path / "t", zarr_format="n5", verify=True)
    assert "codecs are dropped: bitround, crc32c (codecs of the copy: zstd)" in line


def test_a_rectilinear_chunk_grid_is_kept_or_its_loss_reported(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(10), chunks=((3, 4, 3),))
    (line,) = convert(tmp_path / "s", tmp_path / "t", compressors="zstd", verify=True)
    assert zarrfs.open_array(tmp_path / "t").chunks == ((3, 4, 3),)
    assert line == "/: re-encoded"
    (line,) = convert(tmp_path / "s", tmp_path / "u", zarr_format=2, verify=True)
    assert "the rectilinear chunk grid is replaced with chunks (3,)" in line


PLUGIN = """
import sys
import h5py
import numpy as np
import zarrfs
from zarrfs.tools import build_pyramid, convert, rechunk

source, target = sys.argv[1], sys.argv[2]
data = np.arange(8, dtype="f4")
array = zarrfs.create_array(
    source, data=data, chunks=4,
    dtype={"name": "example.degrees", "configuration": {}},
    codecs=["example.negate", {"name": "bytes", "configuration": {"endian": "little"}},
            {"name": "example.xor", "configuration": {"mask": 85}}],
)
for zarr_format in (2, "n5", "draft2019"):
    try:
        convert(source, target, zarr_format=zarr_format, verify=True)
    except zarrfs.UnsupportedError as error:
        print(zarr_format, error)
(line,) = convert(source, target, zarr_format=2, verify=True, allow_loss=True)
print(line)
assert np.array_equal(zarrfs.open_array(target)[...], data)
rechunk(source, target + "3", 2, verify=True)
found = zarrfs.open_array(target + "3")
print(found.spec.data_type.name, [codec.name for codec in found.spec.codecs])
"""


def test_a_plugin_data_type_is_rejected_unless_loss_is_allowed(site: Path, tmp_path: Path) -> None:
    lines = run_with_plugins(site, PLUGIN, tmp_path / "s", tmp_path / "t").splitlines()
    assert "no data type for example.degrees" in lines[0]
    assert "no data type for example.degrees" in lines[1]
    assert "no data type for example.degrees" in lines[2]
    assert "data type example.degrees is converted to float32" in lines[3]
    assert "codecs are dropped: example.negate, example.xor (codecs of the copy: blosc)" in lines[3]
    assert lines[4] == "example.degrees ['example.negate', 'bytes', 'example.xor']"


def test_verify_detects_a_different_data_type(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(10, dtype="i4"))
    zarrfs.create_array(tmp_path / "t", data=np.arange(10, dtype="i8"))
    with pytest.raises(StoreError, match="found data type int64, expected int32"):
        convert(tmp_path / "s", tmp_path / "t", if_exists="skip", verify=True)


# -- stores that cannot list -----------------------------------------------------------------------------------


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    (tmp_path / "www").mkdir()
    server = WebServer(tmp_path / "www")
    yield server
    server.close()


def make_ome(path: Path, zarr_format: int) -> None:
    def with_version(attributes: dict[str, Any], version: str = "0.4") -> dict[str, Any]:
        if zarr_format == 3:
            return {"ome": {"version": "0.5", **attributes}}
        return attributes

    axes = [{"name": name, "type": "space"} for name in "yx"]
    scale = [{"type": "scale", "scale": [1.0, 1.0]}]
    datasets = [{"path": "0", "coordinateTransformations": scale}]
    image = with_version({"multiscales": [{"axes": axes, "datasets": datasets, "name": "i"}]})
    root = zarrfs.create_group(
        path, zarr_format=zarr_format, attributes=with_version({"bioformats2raw.layout": 3})
    )
    root.create_group("OME", attributes=with_version({"series": ["0"]}))
    root.create_group("0", attributes=image)
    root.create_array("0/0", data=np.arange(30).reshape(5, 6), chunks=(2, 3))
    root.create_group("0/labels", attributes=with_version({"labels": ["cells"]}))
    root.create_group("0/labels/cells", attributes=image)
    root.create_array("0/labels/cells/0", data=np.ones((5, 6), "u1"), chunks=(5, 6))


OME_NODES = ["0", "0/0", "0/labels", "0/labels/cells", "0/labels/cells/0", "OME"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_ome_metadata_provides_member_names_on_a_web_server(
    zarr_format: int, web: WebServer, tmp_path: Path
) -> None:
    make_ome(tmp_path / "www" / "i.zarr", zarr_format)
    group = zarrfs.open_group(f"{web.url}/i.zarr")
    assert list(group) == list(group.keys()) == group.names() == ["0", "OME"]
    assert len(group) == 2
    assert sorted(path for path, _ in group.walk()) == OME_NODES
    assert "(5, 6) int64" in group.tree()
    for target_format in (2, 3):
        convert(
            f"{web.url}/i.zarr", tmp_path / f"t{target_format}.zarr", zarr_format=target_format, verify=True
        )
        copied_group = zarrfs.open_group(tmp_path / f"t{target_format}.zarr")
        assert sorted(path for path, _ in copied_group.walk()) == OME_NODES
        assert copied_group["0/0"][...].tolist() == np.arange(30).reshape(5, 6).tolist()
    for arguments in (("copy",), ("convert", "--format", "3"), ("rechunk", "--chunks", "2,3")):
        target = tmp_path / f"{arguments[0]}.zarr"
        result = command(arguments[0], f"{web.url}/i.zarr", target, *arguments[1:])
        assert result.returncode == 0, result.stderr
        assert sorted(path for path, _ in zarrfs.open_group(target).walk()) == OME_NODES


def test_a_group_with_unknown_members_is_not_treated_as_empty(web: WebServer, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "www" / "g.zarr").create_array("a", data=np.arange(3))
    with pytest.raises(StoreError, match="cannot be listed"):
        list(zarrfs.open_group(f"{web.url}/g.zarr"))
    with pytest.raises(IncompleteCopyError, match=r"consolidate\), or name the members: paths="):
        convert(f"{web.url}/g.zarr", tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr").exists()


def test_the_named_members_of_a_group_are_copied(web: WebServer, tmp_path: Path) -> None:
    source = zarrfs.create_group(tmp_path / "www" / "g.zarr", attributes={"title": "t"})
    for name in ("a", "b/c", "b/d", "e/f/h"):
        source.create_array(name, data=np.arange(3))
    result = command("copy", f"{web.url}/g.zarr", tmp_path / "t.zarr", "--paths", "b/c,a")
    assert result.returncode == 0, result.stderr
    target = zarrfs.open_group(tmp_path / "t.zarr")
    assert sorted(path for path, _ in target.walk()) == ["a", "b", "b/c"]
    assert target.attrs == {"title": "t"}
    result = command("copy", f"{web.url}/g.zarr", tmp_path / "u.zarr", "--paths", "b")
    assert "the members of b are unknown" in result.stderr
    assert "consolidate), or name the members: --paths" in result.stderr
    convert(tmp_path / "www" / "g.zarr", tmp_path / "v.zarr", paths=["b", "b/c", "/e/f/"])
    found = [path for path, _ in zarrfs.open_group(tmp_path / "v.zarr").walk()]
    assert sorted(found) == ["b", "b/c", "b/d", "e", "e/f", "e/f/h"]
    with pytest.raises(IncompleteCopyError, match="b/x"):
        convert(tmp_path / "www" / "g.zarr", tmp_path / "w.zarr", paths=["b/x"])
    for place, paths in (("g.zarr/a", ["0"]), ("g.zarr", [""])):
        with pytest.raises(OptionError, match="expected paths of members of a group"):
            convert(tmp_path / "www" / place, tmp_path / "w.zarr", paths=paths)


@pytest.mark.parametrize("members", [("a",), ("a", "b")])
def test_a_target_that_is_deleted_meanwhile_is_an_error(members: tuple[str, ...], tmp_path: Path) -> None:
    source = zarrfs.create_group(tmp_path / "s.zarr")
    for name in members:
        source.create_array(name, data=np.arange(64), chunks=8)

    def delete(name: str, done: int, total: int) -> None:
        if (tmp_path / "t.zarr" / "a").exists() and "/a" in name and 0 < done < total:
            (tmp_path / "t.zarr" / "a" / "zarr.json").unlink(missing_ok=True)

    with pytest.raises(StoreError, match="'a' was deleted by another program while it was copied"):
        convert(tmp_path / "s.zarr", tmp_path / "t.zarr", chunks=4, progress=delete)


# -- unfinished destinations -----------------------------------------------------------------------------------


class KilledError(BaseException):
    """Stands for the end of the process: no write follows it."""


class _KilledStore(FailingStore):
    def _before(self, operation: str, key: str) -> None:
        try:
            super()._before(operation, key)
        except StoreError as error:
            raise KilledError from error


def killed_store(store: Any, after: int) -> FailingStore:
    """Return a store that accepts some changes, and then none: the process that changes it was killed."""
    remaining = iter(range(after))

    def failure(method: str, key: str) -> Exception | None:
        changes = method in ("set", "delete", "delete_prefix", "move_prefix", "set_range")
        return StoreError("killed") if changes and next(remaining, None) is None else None

    return _KilledStore(store, failure)


def _copy_array(source: Path, target: Any, **options: Any) -> None:
    convert(source / "a", target, **options)


def _copy_group(source: Path, target: Any, **options: Any) -> None:
    convert(source, target, **options)


def _build_image(source: Path, target: Any, **options: Any) -> None:
    build_pyramid(source / "a", target, max_length=8, name="image", **options)


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (_copy_array, {"zarr_format": 2}),
        (_copy_array, {"chunks": (8, 4)}),
        (_copy_group, {}),
        (_copy_group, {"zarr_format": 2}),
        (_copy_group, {"zarr_format": "n5"}),
        (_build_image, {}),
    ],
)
def test_what_a_killed_command_has_written_is_marked_as_unfinished(
    write: Callable[..., None], options: dict[str, Any], tmp_path: Path
) -> None:
    """Killed before each of its changes: there is no node, or a marked one, until nothing is missing."""
    group = zarrfs.create_group(tmp_path / "s", attributes={"title": "t"})
    values = np.arange(1, 257, dtype="u2").reshape(16, 16)
    for name in ("a", "b/c"):
        group.create_array(name, data=values, chunks=(4, 16))
    complete = MemoryStore()
    write(tmp_path / "s", complete, **options)
    expected = {key: bytes(complete.get(key) or b"") for key in complete.list_prefix()}
    marked = 0
    for after in range(200):
        store = MemoryStore()
        try:
            with limit_threads(1):
                write(tmp_path / "s", killed_store(store, after), **options)
        except KilledError:
            pass
        else:
            break
        found = {key: bytes(store.get(key) or b"") for key in store.list_prefix()}
        try:
            node = zarrfs.open(store)
        except zarrfs.NodeNotFoundError:
            assert not any(key.startswith(("c/", "0.0")) for key in found)
            continue
        marked += unfinished_note(node) is not None
        if unfinished_note(node) is None:
            # Only an empty document of attributes may remain.
            assert {key: value for key, value in found.items() if expected.get(key) != value} in (
                {},
                {".zattrs": b"{}"},
            )
        write(tmp_path / "s", store, if_exists="resume", **options)
        resumed = {key: bytes(store.get(key) or b"") for key in store.list_prefix()}
        assert resumed == expected
    assert marked >= 3
    assert not any(b"unfinished" in value for value in expected.values())


def test_a_killed_copy_of_an_hdf5_file_is_unfinished(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "s.h5", "w") as file:
        file.attrs["title"] = "t"
        file["g/a"] = np.arange(1, 9)
        file["reference"] = file.ref  # Zarr has no such data type
    for zarr_format in (2, 3):
        for after in itertools.count(2):
            store = MemoryStore()
            try:
                from_hdf5(
                    tmp_path / "s.h5", killed_store(store, after), skip_broken=True, zarr_format=zarr_format
                )
            except KilledError:
                assert unfinished_note(zarrfs.open(store)) is not None
            else:
                assert zarrfs.open(store).attrs.asdict() == {"title": "t"}
                break
        assert after > 3


@pytest.mark.parametrize("target", ["t.zarr", "t.zip", "t.n5"])
def test_a_failed_copy_is_unfinished_for_each_command(target: str, tmp_path: Path) -> None:
    source = zarrfs.create_group(tmp_path / "s.zarr")
    values = np.arange(1, 65, dtype="u2").reshape(8, 8)
    source.create_array("a", data=values, chunks=(4, 4))
    source.create_array("b", data=values, chunks=(4, 4), compressors="gzip")
    chunk = tmp_path / "s.zarr/b/c/1/1"
    content = chunk.read_bytes()
    chunk.write_bytes(b"damaged")
    options = ["--chunks", "8,8"]
    result = command("convert", tmp_path / "s.zarr", tmp_path / target, *options)
    assert result.returncode == 1
    shown = command("info", tmp_path / target)
    assert "unfinished: the command that writes it has not completed" in shown.stdout
    assert "--if-exists resume" in shown.stdout
    if target != "t.zip":  # a path in an archive is opened as the archive
        below = command("info", tmp_path / target / "a")
        assert f"unfinished: it belongs to {tmp_path / target}" in below.stdout
    assert "unfinished" in command("ls", tmp_path / target).stderr
    assert "unfinished" in command("tree", tmp_path / target).stdout.splitlines()[0]
    verified = command("verify", tmp_path / target)
    assert verified.returncode == 1
    assert "unfinished: /: unfinished" in verified.stdout
    listed = command("ls", tmp_path)
    assert listed.returncode != 0  # the directory is no hierarchy
    with pytest.raises(NodeExistsError, match="is unfinished, so that its arrays cannot be skipped"):
        convert(tmp_path / "s.zarr", tmp_path / target, chunks=(8, 8), if_exists="skip")
    chunk.write_bytes(content)
    assert (
        command(
            "convert", tmp_path / "s.zarr", tmp_path / target, *options, "--if-exists", "resume"
        ).returncode
        == 0
    )
    assert command("verify", tmp_path / target, tmp_path / "s.zarr").returncode == 0
    assert "unfinished" not in command("info", tmp_path / target).stdout


def test_an_unfinished_member_is_named_and_its_copy_is_unfinished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    for name in ("a", "g/b"):
        group.create_array(name, data=np.arange(4), attributes={"zarrfs_unfinished": {"command": "copy"}})
    group["g"].attrs["zarrfs_unfinished"] = {}
    for name in ("ls", "info"):
        assert command(name, tmp_path / "s.zarr").stdout.count("(unfinished)") == 2
    assert command("tree", tmp_path / "s.zarr").stdout.count("  unfinished\n") == 3
    assert command("verify", tmp_path / "s.zarr").stdout.count("unfinished: ") == 3
    with caplog.at_level("WARNING", "zarrfs"):
        convert(tmp_path / "s.zarr/a", tmp_path / "t.zarr")
    assert "the source, is unfinished" in caplog.text
    assert "unfinished" in command("info", tmp_path / "t.zarr").stdout


def test_the_note_of_a_node_on_a_server_reads_one_document_above_it() -> None:
    group = zarrfs.create_group(MemoryStore(), attributes={"zarrfs_unfinished": {"command": "copy"}})
    group.create_array("a/b/c/d", shape=1, dtype="u1")
    store = CountingStore(group.store)
    store.concurrency = 8
    store.is_remote = True
    node = zarrfs.open(store, "a/b/c/d")
    store.reset()
    assert "it belongs to memory://" in (unfinished_note(node) or "")
    assert {key.rpartition("/")[0] for key in store.keys} == {""}


def test_a_replaced_array_stays_complete_if_the_copy_is_killed(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s.zarr", data=np.arange(1, 9), chunks=(2,))
    zarrfs.create_array(tmp_path / "t.zarr", data=np.arange(5))
    store = LocalStore(str(tmp_path / "t.zarr"))
    with pytest.raises(KilledError):
        convert(tmp_path / "s.zarr", killed_store(store, 3), if_exists="replace")
    array = zarrfs.open_array(tmp_path / "t.zarr")
    assert array.shape == (5,)
    assert unfinished_note(array) is None


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_whose_arrays_were_not_replaced_stays_complete(zarr_format: Any, tmp_path: Path) -> None:
    """A failure after the first array leaves a mixture, which is unfinished."""
    source = zarrfs.create_group(tmp_path / "s.zarr")
    for name in ("a", "b"):
        source.create_array(name, data=np.arange(1, 9), chunks=(2,))
    for damaged in ("a", "b"):
        target = MemoryStore()
        convert(tmp_path / "s.zarr", target, zarr_format=zarr_format, chunks=(4,))
        before = {key: bytes(target.get(key) or b"") for key in target.list_prefix()}
        chunk = tmp_path / "s.zarr" / damaged / "c/0"
        content = chunk.read_bytes()
        chunk.write_bytes(b"damaged")
        with pytest.raises(ChunkDecodeError):
            convert(tmp_path / "s.zarr", target, zarr_format=zarr_format, chunks=(8,), if_exists="replace")
        chunk.write_bytes(content)
        after = {key: bytes(target.get(key) or b"") for key in target.list_prefix()}
        if damaged == "a":
            assert after == before
        else:
            assert unfinished_note(zarrfs.open(target)) is not None
            assert zarrfs.open_array(target, "a").chunks == (8,)
            with pytest.raises(StoreError):
                convert(tmp_path / "s.zarr", _refusing(target), zarr_format=zarr_format, if_exists="replace")
            assert unfinished_note(zarrfs.open(target)) is not None


def _refusing(store: MemoryStore) -> FailingStore:
    """Return a store that does not store chunks."""
    return FailingStore(
        store,
        lambda method, key: StoreError("full") if method == "set" and key[-1].isdigit() else None,
    )
