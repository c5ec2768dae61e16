"""A copy is complete, or an error says what is missing; what can be known beforehand is said before anything is
written.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest

import zarrfs
from tests.engine.stores.servers import WebServer
from tests.engine.test_plugins import run as run_with_plugins
from tests.engine.test_plugins import site
from zarrfs.cli.main import run
from zarrfs.engine.stores.local import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import CountingStore, FailingStore
from zarrfs.errors import (
    IncompleteCopyError,
    MetadataError,
    NodeExistsError,
    StoreError,
    UnsupportedError,
)
from zarrfs.tools import convert, copy, copy_all, migrate, rechunk, to_hdf5

__all__ = ["site"]


class Done(NamedTuple):
    """What a command answered."""

    returncode: int
    stdout: str
    stderr: str


def command(*words: str | Path) -> Done:
    """Run the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    arguments = ["zarrfs", *map(str, words)]
    with (
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(sys, "argv", arguments),
        pytest.raises(SystemExit) as caught,
    ):
        run()
    return Done(int(caught.value.code or 0), out.getvalue(), err.getvalue())


def make(path: Path, zarr_format: int = 3) -> zarrfs.Group:
    group = zarrfs.create_group(path, zarr_format=zarr_format, attributes={"a": 1})
    for name in ("good", "inner/bad", "inner/last"):
        group.create_array(name, data=np.arange(10), chunks=(4,))
    return group


# -- members that cannot be read -------------------------------------------------------------------------------


def cut_off(document: Path) -> None:
    document.write_bytes(document.read_bytes()[:20])


def directory(document: Path) -> None:
    document.unlink()
    document.mkdir()


def fifo(document: Path) -> None:
    document.unlink()
    os.mkfifo(document)


def unknown_codec(document: Path) -> None:
    document.write_text(document.read_text().replace('"blosc"', '"unheard-of"'))


def wrong_type(document: Path) -> None:
    document.write_text(document.read_text().replace('"array"', '"matrix"'))


BREAKING = [cut_off, directory, fifo, unknown_codec, wrong_type]


@pytest.fixture(params=BREAKING, ids=lambda breaking: breaking.__name__)
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    make(tmp_path / "s.zarr")
    breaking: Callable[[Path], None] = request.param
    breaking(tmp_path / "s.zarr" / "inner" / "bad" / "zarr.json")
    return tmp_path / "s.zarr"


def test_a_copy_fails_when_a_member_is_broken(broken: Path, tmp_path: Path) -> None:
    for options in ({}, {"zarr_format": 2}, {"chunks": 5}, {"dry_run": True}):
        with pytest.raises(IncompleteCopyError, match=r"nothing was written; 1 member .*: inner/bad \("):
            convert(broken, tmp_path / "t.zarr", verify=True, **options)  # type: ignore[arg-type]
    for function in (copy_all, lambda source, dest: copy(source, dest, "x")):
        dest = MemoryStore()
        with pytest.raises(IncompleteCopyError, match="inner/bad"):
            function(zarrfs.open_group(broken), zarrfs.create_group(dest))
        assert list(dest.list_prefix()) == ["zarr.json"]
    with pytest.raises(IncompleteCopyError, match="inner/bad"):
        to_hdf5(broken, tmp_path / "t.h5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.zarr"]


def test_broken_members_are_left_out_when_that_is_allowed(broken: Path, tmp_path: Path) -> None:
    report = rechunk(broken, tmp_path / "t.zarr", 5, verify=True, skip_broken=True)
    assert list(report.missing) == ["inner/bad"]
    assert any(line.startswith("inner/bad: left out: ") for line in report)
    group = zarrfs.open_group(tmp_path / "t.zarr")
    assert [path for path, _ in group.walk()] == ["good", "inner", "inner/last"]
    assert group["inner/last"][...].tolist() == list(range(10))


@pytest.mark.parametrize("verb", [("copy",), ("convert", "--format", "2"), ("rechunk", "--chunks", "5")])
def test_the_exit_code_tells_an_incomplete_copy(verb: tuple[str, ...], tmp_path: Path) -> None:
    make(tmp_path / "s.zarr")
    cut_off(tmp_path / "s.zarr" / "inner" / "bad" / "zarr.json")
    words = (verb[0], tmp_path / "s.zarr", tmp_path / "t.zarr", *verb[1:], "--verify")
    done = command(*words)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "inner/bad" in line
    assert "--skip-broken" in line
    assert not (tmp_path / "t.zarr").exists()
    done = command(*words, "--skip-broken")
    assert done.returncode == 3, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("zarrfs: skipped: inner/bad: ")
    done = command(verb[0], tmp_path / "s.zarr" / "good", tmp_path / "u.zarr", *verb[1:], "--skip-broken")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_store_that_fails_for_one_member_is_named(tmp_path: Path) -> None:
    make(tmp_path / "s.zarr")

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


def test_migrating_names_what_cannot_be_read_and_changes_nothing(tmp_path: Path) -> None:
    make(tmp_path / "s.zarr", 2)
    cut_off(tmp_path / "s.zarr" / "inner" / "bad" / ".zarray")
    with pytest.raises(UnsupportedError, match="nothing was changed: inner/bad cannot be read"):
        migrate(tmp_path / "s.zarr", remove_old=True)
    assert not list(tmp_path.rglob("zarr.json"))


def test_what_the_destination_cannot_hold_is_named(tmp_path: Path) -> None:
    group = make(tmp_path / "s.zarr")
    group.create_array("flags", data=np.array([True]))
    group.create_array("words", data=np.array(["a"], object), dtype="string")
    with pytest.raises(UnsupportedError, match=r"nothing was: flags: N5 has no .*; words: N5 has no"):
        convert(tmp_path / "s.zarr", tmp_path / "t.n5", zarr_format="n5")
    assert not (tmp_path / "t.n5").exists()
    report = convert(tmp_path / "s.zarr", tmp_path / "t.n5", zarr_format="n5", skip_broken=True)
    assert sorted(report.missing) == ["flags", "words"]
    done = command("convert", tmp_path / "s.zarr" / "flags", tmp_path / "u.n5", "--format", "n5")
    assert done.returncode == 1
    assert "N5 has no data type for bool" in done.stderr
    assert "--skip-broken" not in done.stderr


# -- arrays that are mostly absent -----------------------------------------------------------------------------

HUGE = (10**9, 10**9)


@pytest.mark.parametrize(
    "options", [{}, {"chunks": (2, 2)}, {"zarr_format": 2}, {"compressors": "gzip"}], ids=str
)
def test_absent_chunks_cost_nothing(options: dict[str, Any], tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path / "s.zarr", shape=HUGE, dtype="u1", chunks=(1, 1), fill_value=3)
    array[10**8, 7] = 9
    target = CountingStore(MemoryStore())
    convert(tmp_path / "s.zarr", target, verify=True, **options)
    found = zarrfs.open_array(target)
    assert (found[10**8, 7], found[5, 5], found.shape) == (9, 3, HUGE)
    assert target.calls["set"] <= 4


def test_too_many_absent_chunks_to_write_out_are_an_error(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s.zarr", shape=HUGE, dtype="u1", chunks=(1, 1), fill_value=3)
    with pytest.raises(UnsupportedError, match="choose larger chunks"):
        convert(tmp_path / "s.zarr", tmp_path / "t.n5", zarr_format="n5")


# -- nothing is written before all is checked ------------------------------------------------------------------

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
    place = tmp_path / "place"
    place.mkdir()
    text: str = request.param
    return text.format(place) if "://" in text else str(place / text)


def everything(path: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(found): (found.stat().st_mtime_ns, found.read_bytes())
        for found in path.rglob("*")
        if found.is_file()
    } | {str(found): (0, b"") for found in path.rglob("*") if found.is_dir()}


def test_a_dry_run_creates_nothing(destination: str, tmp_path: Path) -> None:
    make(tmp_path / "s.zarr")
    report = convert(tmp_path / "s.zarr", destination, dry_run=True)
    assert "good: chunks copied as they are" in report
    assert everything(tmp_path / "place") == {}


def test_a_dry_run_changes_nothing_that_is_there(destination: str, tmp_path: Path) -> None:
    make(tmp_path / "s.zarr")
    if destination.endswith("new/deep/t.zip"):
        os.makedirs(os.path.dirname(destination))
    convert(tmp_path / "s.zarr" / "inner", destination)
    before = everything(tmp_path / "place")
    report = convert(tmp_path / "s.zarr", destination, if_exists="replace", dry_run=True)
    assert "good: chunks copied as they are" in report
    with pytest.raises(NodeExistsError):
        convert(tmp_path / "s.zarr", destination, dry_run=True)
    after = everything(tmp_path / "place")
    # LMDB notes its readers in a file of locks.
    assert {key: value for key, value in after.items() if "lock" not in key} == {
        key: value for key, value in before.items() if "lock" not in key
    }


WRONG = [
    ({"chunks": (5, 5)}, "chunks"),
    ({"chunks": 0}, "chunks"),
    ({"chunks": 4, "shards": 7}, "shards"),
    ({"shards": 0}, "shards"),
    ({"compressors": {"name": "nonsense", "configuration": {}}}, "nonsense"),
    ({"compressors": {"name": "gzip", "configuration": {"level": 99}}}, "level"),
    ({"zarr_format": 2, "shards": 8}, "shards"),
]


@pytest.mark.parametrize(("options", "said"), WRONG, ids=str)
def test_wrong_options_are_found_before_anything_is_written(
    options: dict[str, Any], said: str, destination: str, tmp_path: Path
) -> None:
    make(tmp_path / "s.zarr")
    with pytest.raises(MetadataError, match=said):
        convert(tmp_path / "s.zarr", destination, **options)
    assert everything(tmp_path / "place") == {}


@pytest.mark.parametrize(
    "options",
    [
        ("--shards", "7"),
        ("--compressor", "nonsense"),
        ("--compressor", "gzip:99"),
        ("--chunks", "0"),
        ("--chunks", "3,3"),
    ],
    ids=" ".join,
)
def test_a_corrected_command_works(options: tuple[str, ...], tmp_path: Path) -> None:
    make(tmp_path / "s.zarr")
    done = command("convert", tmp_path / "s.zarr", tmp_path / "t.zarr", *options)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert not (tmp_path / "t.zarr").exists()
    assert command("convert", tmp_path / "s.zarr", tmp_path / "t.zarr").returncode == 0


def test_advice_names_options_of_the_command(tmp_path: Path) -> None:
    make(tmp_path / "s.zarr")
    make(tmp_path / "t.zarr")
    done = command("copy", tmp_path / "s.zarr", tmp_path / "t.zarr")
    assert "--if-exists replace" in done.stderr
    assert "if_exists=" not in done.stderr
    with pytest.raises(NodeExistsError, match="if_exists='replace'"):
        convert(tmp_path / "s.zarr", tmp_path / "t.zarr")


# -- what is not kept ------------------------------------------------------------------------------------------


def test_shards_are_kept_with_other_chunks_that_fit(tmp_path: Path) -> None:
    data = np.arange(64 * 64, dtype="u2").reshape(64, 64)
    zarrfs.create_array(tmp_path / "s", data=data, chunks=(16, 16), shards=(32, 32))
    for chunks in (8, (4, 32), "auto"):
        rechunk(tmp_path / "s", tmp_path / f"t{chunks}", chunks, verify=True)
        assert zarrfs.open_array(tmp_path / f"t{chunks}").shards == (32, 32)
    with pytest.raises(MetadataError, match=r"cannot be kept with chunks 10: .*shards=False"):
        rechunk(tmp_path / "s", tmp_path / "u", 10)
    assert not (tmp_path / "u").exists()
    done = command("rechunk", tmp_path / "s", tmp_path / "u", "--chunks", "10")
    assert "--shards none" in done.stderr
    assert (
        command("rechunk", tmp_path / "s", tmp_path / "u", "--chunks", "10", "--shards", "none").returncode
        == 0
    )
    found = zarrfs.open_array(tmp_path / "u")
    assert (found.chunks, found.shards) == ((10, 10), None)


def test_shards_that_a_format_does_not_have_are_reported(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(64), chunks=(4,), shards=(16,))
    for zarr_format in (2, "n5", "draft2019"):
        (line,) = convert(tmp_path / "s", tmp_path / f"t{zarr_format}", zarr_format=zarr_format)
        assert f"shards (16,) are dropped: format {zarr_format} has none" in line


@pytest.mark.parametrize("number", [2, 3])
def test_all_codecs_are_kept_with_other_chunks(number: int, tmp_path: Path) -> None:
    options: dict[str, Any] = {
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
    }[number]
    data = np.arange(30 * 30, dtype="<i4").reshape(30, 30)
    source = zarrfs.create_array(tmp_path / "s", data=data, chunks=(10, 10), zarr_format=number, **options)
    (line,) = rechunk(tmp_path / "s", tmp_path / "t", (7, 7), verify=True)
    assert line == "/: decoded and encoded anew"
    found = zarrfs.open_array(tmp_path / "t")
    assert found.spec.codecs == source.spec.codecs
    assert found.order == "F"
    assert found.spec.chunk_key_encoding == source.spec.chunk_key_encoding
    (line,) = convert(tmp_path / "s", tmp_path / "u", compressors="zstd", verify=True)
    assert line == "/: decoded and encoded anew"
    assert "Delta" in str(zarrfs.open_array(tmp_path / "u").spec.codecs)


def test_codecs_that_a_format_does_not_have_are_reported(tmp_path: Path) -> None:
    zarrfs.create_array(
        tmp_path / "s",
        data=np.arange(100.0),
        filters=[{"name": "bitround", "configuration": {"keepbits": 20}}],
        compressors=["zstd", "crc32c"],
    )
    (line,) = convert(tmp_path / "s", tmp_path / "t", zarr_format="n5", verify=True)
    assert "codecs are not kept: bitround, crc32c (now: zstd)" in line


def test_chunks_of_several_shapes_are_kept_or_reported(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(10), chunks=((3, 4, 3),))
    (line,) = convert(tmp_path / "s", tmp_path / "t", compressors="zstd", verify=True)
    assert zarrfs.open_array(tmp_path / "t").chunks == ((3, 4, 3),)
    assert line == "/: decoded and encoded anew"
    (line,) = convert(tmp_path / "s", tmp_path / "u", zarr_format=2, verify=True)
    assert "chunks of several shapes become (3,)" in line


PLUGIN = """
import sys
import numpy as np
import zarrfs
from zarrfs.tools import convert, rechunk

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


def test_a_data_type_of_another_package_is_refused_or_its_loss_allowed(site: Path, tmp_path: Path) -> None:
    lines = run_with_plugins(site, PLUGIN, tmp_path / "s", tmp_path / "t").splitlines()
    assert "no data type for example.degrees" in lines[0]
    assert "no data type for example.degrees" in lines[1]
    assert "no data type for example.degrees" in lines[2]
    assert "data type example.degrees becomes float32" in lines[3]
    assert "codecs are not kept: example.negate, example.xor (now: blosc)" in lines[3]
    assert lines[4] == "example.degrees ['example.negate', 'bytes', 'example.xor']"


def test_comparing_finds_another_data_type(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s", data=np.arange(10, dtype="i4"))
    zarrfs.create_array(tmp_path / "t", data=np.arange(10, dtype="i8"))
    with pytest.raises(StoreError, match="data type int64, not int32"):
        convert(tmp_path / "s", tmp_path / "t", if_exists="skip", verify=True)


# -- stores that cannot list -----------------------------------------------------------------------------------


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    (tmp_path / "www").mkdir()
    server = WebServer(tmp_path / "www")
    yield server
    server.close()


def make_ome(path: Path, zarr_format: int) -> None:
    def described(attributes: dict[str, Any], version: str = "0.4") -> dict[str, Any]:
        if zarr_format == 3:
            return {"ome": {"version": "0.5", **attributes}}
        return attributes

    axes = [{"name": name, "type": "space"} for name in "yx"]
    scale = [{"type": "scale", "scale": [1.0, 1.0]}]
    datasets = [{"path": "0", "coordinateTransformations": scale}]
    image = described({"multiscales": [{"axes": axes, "datasets": datasets, "name": "i"}]})
    root = zarrfs.create_group(
        path, zarr_format=zarr_format, attributes=described({"bioformats2raw.layout": 3})
    )
    root.create_group("OME", attributes=described({"series": ["0"]}))
    root.create_group("0", attributes=image)
    root.create_array("0/0", data=np.arange(30).reshape(5, 6), chunks=(2, 3))
    root.create_group("0/labels", attributes=described({"labels": ["cells"]}))
    root.create_group("0/labels/cells", attributes=image)
    root.create_array("0/labels/cells/0", data=np.ones((5, 6), "u1"), chunks=(5, 6))


OME_NODES = ["0", "0/0", "0/labels", "0/labels/cells", "0/labels/cells/0", "OME"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_that_metadata_name_are_members_on_a_web_server(
    zarr_format: int, web: WebServer, tmp_path: Path
) -> None:
    make_ome(tmp_path / "www" / "i.zarr", zarr_format)
    group = zarrfs.open_group(f"{web.url}/i.zarr")
    assert list(group) == list(group.keys()) == group.names() == ["0", "OME"]
    assert len(group) == 2
    assert sorted(path for path, _ in group.walk()) == OME_NODES
    assert "(5, 6) int64" in group.tree()
    for number in (2, 3):
        convert(f"{web.url}/i.zarr", tmp_path / f"t{number}.zarr", zarr_format=number, verify=True)
        copied = zarrfs.open_group(tmp_path / f"t{number}.zarr")
        assert sorted(path for path, _ in copied.walk()) == OME_NODES
        assert copied["0/0"][...].tolist() == np.arange(30).reshape(5, 6).tolist()
    for words in (("copy",), ("convert", "--format", "3"), ("rechunk", "--chunks", "2,3")):
        target = tmp_path / f"{words[0]}.zarr"
        done = command(words[0], f"{web.url}/i.zarr", target, *words[1:])
        assert done.returncode == 0, done.stderr
        assert sorted(path for path, _ in zarrfs.open_group(target).walk()) == OME_NODES


def test_a_group_whose_members_nothing_tells_is_no_empty_group(web: WebServer, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "www" / "g.zarr").create_array("a", data=np.arange(3))
    with pytest.raises(StoreError, match="cannot be listed"):
        list(zarrfs.open_group(f"{web.url}/g.zarr"))
    with pytest.raises(IncompleteCopyError, match="cannot be listed"):
        convert(f"{web.url}/g.zarr", tmp_path / "t.zarr")
    assert not (tmp_path / "t.zarr").exists()
