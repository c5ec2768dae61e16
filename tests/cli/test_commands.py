"""The commands: output, exit codes and error messages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from tests.processes import TIMEOUT
from zarrfs.cli import doctor
from zarrfs.cli.console import readable_bytes, safe
from zarrfs.cli.main import COMMANDS, main
from zarrfs.engine.native.build import LIBRARY_NAME


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the zarrfs command in a new process."""
    command = [sys.executable, "-m", "zarrfs", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        env={**os.environ, **environment},
    )


def parse_strict_json(text: str) -> Any:
    def reject_constant(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=reject_constant)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "data.zarr"
    root = zarrfs.create_group(path, attributes={"title": "größe"})
    root.create_array(
        "image", data=np.zeros((4, 100, 100), "u2") + 5, chunks=(2, 50, 50), dimension_names=["z", None, "x"]
    )
    root.create_array("sharded", data=np.ones((64, 64)), chunks=(8, 8), shards=(32, 32))
    inner = root.create_group("inner")
    inner.create_array("words", data=np.array(["a", "b"], object), dtype="string")
    inner.create_array("scalar", data=np.float32(np.nan), fill_value=np.nan)
    inner.create_array("giant", shape=(10**6, 10**9), dtype="u1", chunks=(1000, 1000))
    (path / "broken").mkdir()
    (path / "broken" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    return path


def test_info_shows_the_metadata_of_an_array(store: Path) -> None:
    completed = run("info", store, "image", "--json")
    assert completed.returncode == 0, completed.stderr
    facts = parse_strict_json(completed.stdout)
    assert facts["shape"] == [4, 100, 100]
    assert facts["chunks"] == [2, 50, 50]
    assert facts["dimension_names"] == ["z", None, "x"]
    assert facts["chunks_total"] == facts["chunks_initialized"] == 8
    assert facts["bytes_stored"] == sum(f.stat().st_size for f in (store / "image").rglob("*") if f.is_file())
    assert facts["ratio"] > 1
    text_output = run("info", store / "image").stdout
    for expected in ("4 x 100 x 100  (z, -, x)", "uint16", "8 of 8 (100.0%)", "blosc", "fill value"):
        assert expected in text_output


def test_info_shows_the_members_and_attributes_of_a_group(store: Path) -> None:
    facts = parse_strict_json(run("info", store, "--json").stdout)
    assert facts["attributes"] == {"title": "größe"}
    kinds = {member["name"]: member["kind"] for member in facts["members"]}
    assert kinds == {"broken": "broken", "image": "array", "inner": "group", "sharded": "array"}
    completed = run("info", store)
    assert "4 x 100 x 100" in completed.stdout
    assert "größe" in completed.stdout
    assert "broken   broken\n" in completed.stdout, "the reason is not a cell of the table"
    assert "broken: " in completed.stdout


@pytest.mark.parametrize(
    ("zarr_format", "title"),
    [(2, "Zarr v2"), (3, "Zarr v3"), ("draft2019", "Zarr v3, draft of 2019"), ("n5", "N5")],
)
def test_info_names_the_format(zarr_format: Any, title: str, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=3, dtype="u1", zarr_format=zarr_format)
    result = CliRunner().invoke(main, ["info", str(tmp_path / "a.zarr")])
    assert re.search(rf"^format +{title}$", result.output, re.MULTILINE)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("<u2", "<u2"),
        ("V3", "|V3"),
        ("bfloat16", "bfloat16"),
        ([("a", "u1"), ("b", "<f4")], [["a", "|u1"], ["b", "<f4"]]),
    ],
)
def test_info_contains_the_data_type_of_numpy(dtype: Any, expected: Any, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=3, dtype=dtype)
    command = ["info", str(tmp_path / "a.zarr")]
    assert json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)["dtype"] == expected
    shown = expected if isinstance(expected, str) else json.dumps(expected)
    assert f"(NumPy {shown})" in CliRunner().invoke(main, command).stdout


def test_info_counts_stored_chunks_only(store: Path) -> None:
    facts = parse_strict_json(run("info", store, "inner/giant", "--json").stdout)
    assert facts["nbytes"] == 10**15
    assert (facts["chunks_total"], facts["chunks_initialized"]) == (10**9, 0)
    assert "chunks_total" not in parse_strict_json(
        run("info", store, "inner/giant", "--json", "--no-count").stdout
    )


def test_info_shows_whether_the_stored_size_is_smaller_or_larger(tmp_path: Path) -> None:
    small, large = tmp_path / "small.zarr", tmp_path / "large.zarr"
    zarrfs.create_array(small, data=np.zeros(100_000, "u1"), chunks=100_000)
    noise = np.random.default_rng(0).integers(0, 255, 100, "u1")
    zarrfs.create_array(large, data=noise, chunks=1)
    for path, direction in ((small, "smaller"), (large, "larger")):
        (line,) = [line for line in run("info", path).stdout.splitlines() if line.startswith("stored")]
        ratio = re.search(r", ([0-9.]+) times (\w+)$", line)
        assert ratio is not None, line
        assert (float(ratio[1]) > 1, ratio[2]) == (True, direction)


def test_the_error_for_an_hdf5_file_shows_the_command_that_converts_it(tmp_path: Path) -> None:
    path = tmp_path / "a b.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(3))
    completed = run("info", path)
    assert completed.returncode == 1
    assert (
        f"is an HDF5 file; copy it to a Zarr hierarchy first: zarrfs copy '{path}' NEW.zarr"
        in completed.stderr
    )


@pytest.mark.parametrize("name", ["inner/words", "inner/scalar", "sharded"])
def test_info_prints_strict_json_for_all_kinds_of_arrays(name: str, store: Path) -> None:
    assert parse_strict_json(run("info", store, name, "--json").stdout)["kind"] == "array"


@pytest.mark.parametrize(
    "dtype", ["<M8[ns]", "<m8[s]", "|S3", "<U2", "|V4", "<c8", [("x", "<f4"), ("y", "<i2", (2,))]], ids=str
)
def test_info_supports_all_data_types(dtype: Any, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=3, dtype=np.dtype(dtype), zarr_format=2)
    facts = parse_strict_json(run("info", tmp_path / "a.zarr", "--json").stdout)
    assert facts["shape"] == [3]
    assert run("info", tmp_path / "a.zarr").returncode == 0


def test_tree_shows_groups_arrays_and_broken_members(store: Path) -> None:
    lines = run("tree", store).stdout.splitlines()
    assert lines[0] == store.as_uri()
    assert any(line.startswith("├── broken  broken: ") for line in lines)
    assert "├── image  4 x 100 x 100 uint16, chunks 2 x 50 x 50" in lines
    assert "│   └── words  2 string, chunks 2" in lines
    assert "└── sharded  64 x 64 float64, chunks 8 x 8, shards 32 x 32" in lines
    assert len(run("tree", store, "--depth", "1").stdout.splitlines()) == 5
    nested = parse_strict_json(run("tree", store, "--json").stdout)
    assert nested["members"]["inner"]["members"]["scalar"]["shape"] == []
    assert nested["members"]["broken"]["kind"] == "broken"


def test_tree_uses_consolidated_metadata_on_request(tmp_path: Path) -> None:
    root = zarrfs.create_group(tmp_path)
    root.create_array("a", shape=3)
    assert "no consolidated metadata" in run("tree", tmp_path, "--consolidated").stderr
    zarrfs.consolidate_metadata(root)
    zarrfs.create_array(tmp_path / "b", shape=4)
    assert "b" in run("tree", tmp_path).stdout
    assert run("tree", tmp_path, "--consolidated").stdout.splitlines()[1:] == ["└── a  3 float64, chunks 3"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_arrays_that_differ_in_attributes_only_are_listed_without_being_opened(
    zarr_format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = zarrfs.create_group(tmp_path / "c.zarr", zarr_format=zarr_format)
    for number in range(12):
        array = root.create_array(f"g{number % 2}/a{number:02}", shape=(4, 6), chunks=(2, 3), dtype="u2")
        array.attrs["number"] = number
    root.create_array("g0/b", shape=(), dtype="u2")
    zarrfs.consolidate_metadata(root)
    document = tmp_path / "c.zarr" / ("zarr.json" if zarr_format == 3 else ".zmetadata")
    broken = json.loads(document.read_text())
    entries = (broken["consolidated_metadata"] if zarr_format == 3 else broken)["metadata"]
    entries["g1/a05" if zarr_format == 3 else "g1/a05/.zarray"]["shape"] = [4.0, 6]
    document.write_text(json.dumps(broken))

    opened = []
    construct = zarrfs.Array.__init__
    monkeypatch.setattr(
        zarrfs.Array,
        "__init__",
        lambda self, store, path, *rest: (opened.append(path), construct(self, store, path, *rest))[1],
    )

    def invoke(*arguments: str) -> str:
        result = CliRunner().invoke(main, [*arguments, str(tmp_path / "c.zarr")])
        assert result.exit_code == 0, result.output
        return result.output

    plain = invoke("tree").splitlines()
    assert len(opened) == 13
    opened.clear()
    listed = invoke("tree", "--consolidated").splitlines()
    assert opened == ["g0/a00", "g0/b"]
    assert [line for line in listed if line not in plain] == [line for line in listed if "broken" in line]
    (error,) = (line for line in listed if "broken" in line)
    assert "a05  broken: " in error
    assert "expected an integer from 0 to 2^63-1, found 4.0" in error

    expected, found = (
        parse_strict_json(invoke("tree", "--json", *option)) for option in ([], ["--consolidated"])
    )
    assert found["members"]["g1"]["members"].pop("a05")["kind"] == "broken"
    assert expected["members"]["g1"]["members"].pop("a05")["path"] == "/g1/a05"
    assert found == expected


def test_doctor_reports_all_requirements(tmp_path: Path) -> None:
    completed = run("doctor", "--json")
    result = parse_strict_json(completed.stdout)
    assert (completed.returncode == 0) == result["usable"]
    findings = {finding["name"]: finding for finding in result["findings"]}
    assert {"/dev/fuse", "libfuse", "Python binding", "native reader and writer"} <= set(findings)
    optional = ("native reader and writer", "viewer", "extras")
    assert not any(findings[name]["needed"] for name in optional)
    assert "PyQt6" in findings["viewer"]["found"]
    assert {"http", "viewer"} <= set(findings["extras"]["found"].split(", "))
    assert run("doctor").stdout.splitlines()[-1].startswith("Mounting ")


def test_every_command_has_a_help_text_with_an_example() -> None:
    overview = run("--help")
    assert overview.returncode == 0
    for name in [name for name in COMMANDS if find_spec(f"zarrfs.cli.{name}")]:
        assert f"\n  {name} " in overview.stdout
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0, result.output
        assert len(result.output) > 200
        assert "Example" in result.output, name


def test_help_does_not_import_the_dependencies_of_the_commands() -> None:
    code = """
import sys
sys.argv = ["zarrfs", "--help"]
from zarrfs.cli.main import run
try:
    run()
finally:
    print(sorted({"rich", "numcodecs", "mfusepy"} & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.stdout.splitlines()[-1] == "[]"


def test_info_summarizes_an_image_of_ome_zarr(tmp_path: Path) -> None:
    axes = [
        {"name": "c", "type": "channel"},
        *({"name": n, "type": "space", "unit": "micrometer"} for n in "yx"),
    ]
    scales = [[1, 0.5, 0.25], [1, 1, 0.5]]
    image = {
        "version": "0.4",
        "name": "cells",
        "axes": axes,
        "datasets": [
            {"path": str(n), "coordinateTransformations": [{"type": "scale", "scale": scale}]}
            for n, scale in enumerate(scales)
        ],
        "coordinateTransformations": [{"type": "translation", "translation": [0, 7, 0]}],
    }
    window = {"start": 1, "end": 9, "min": 0, "max": 255}
    channels = [{"label": "DAPI", "color": "00FF00", "window": window}, {}]
    attributes = {"multiscales": [image], "omero": {"channels": channels}, "author": "x"}
    group = zarrfs.create_group(tmp_path / "a.zarr", attributes=attributes, zarr_format=2)
    for n, length in enumerate((8, 4)):
        group.create_array(str(n), shape=(2, length, length), dtype="u1", chunks=(1, 4, 4))
    text = run("info", tmp_path / "a.zarr").stdout
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert rows[2:6] == [
        "image cells (OME-Zarr 0.4)",
        "axes c, y (micrometer), x (micrometer)",
        "translation 0 x 7 x 0",
        "channels DAPI (00FF00), 1",
    ]
    assert rows[8:10] == [
        "0 array 2 x 8 x 8 uint8 1 x 4 x 4 1 x 0.5 x 0.25",
        "1 array 2 x 4 x 4 uint8 1 x 4 x 4 1 x 1 x 0.5",
    ]
    assert '"author": "x"' in text
    assert "multiscales" not in text
    facts = parse_strict_json(run("info", tmp_path / "a.zarr", "--json").stdout)
    assert facts["attributes"] == attributes
    (found,) = facts["images"]
    assert [axis["name"] for axis in found["axes"]] == ["c", "y", "x"]
    assert [level["scale"] for level in found["levels"]] == scales
    assert found["levels"][0]["translation"] == [0, 7, 0]
    assert found["channels"][0] == {"label": "DAPI", "color": "00FF00", "window": [1, 9]}


@pytest.mark.parametrize("verb", ["info", "tree", "ls"])
def test_showing_metadata_does_not_import_the_libraries_of_codecs(verb: str, tmp_path: Path) -> None:
    root = zarrfs.create_group(tmp_path)
    for name in ("blosc", "zstd", "gzip"):
        root.create_array(name, shape=3, compressors=name, shards=6 if name == "zstd" else None, chunks=3)
    location = tmp_path / "blosc" if verb == "info" else tmp_path
    code = f"""
import sys
sys.argv = ["zarrfs", {verb!r}, {str(location)!r}]
from zarrfs.cli.main import run
try:
    run()
finally:
    print(sorted({{"numcodecs", "zstandard", "multiprocessing"}} & set(sys.modules)))
"""
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "blosc" in completed.stdout
    assert completed.stdout.splitlines()[-1] == "[]"


def test_versions_are_printed() -> None:
    first, *others = run("--version").stdout.splitlines()
    assert first.endswith(zarrfs.__version__)
    found = dict(line.split(": ", 1) for line in others)
    assert set(found) == {"Python", "FUSE binding", "native reader and writer", "codec libraries"}
    assert "numcodecs " in found["codec libraries"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("info", "{tmp}/missing.zarr"), "no such file or directory"),
        (("info", "{tmp}/file"), "neither a zip file nor a database"),
        (("info", "{tmp}"), "no Zarr array or group here"),
        (("info", "{store}/broken"), "zarr.json"),
        (("info", "{store}", "nothing/there"), "no Zarr array or group here"),
        (("info", "{store}", "../etc"), "is not a node name"),
        (("info", "gopher://host/x"), "gopher"),
        (("tree", "{tmp}/missing.zarr"), "no such file or directory"),
        (("info", ""), "the location is empty"),
    ],
)
def test_an_error_is_printed_in_one_line(
    arguments: tuple[str, ...], message: str, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("hello")
    completed = run(*(argument.format(tmp=tmp_path, store=store) for argument in arguments))
    assert completed.returncode == 1
    assert not completed.stdout
    (line,) = completed.stderr.splitlines()
    assert line.startswith("zarrfs: ")
    assert message in line


def test_incorrect_usage_exits_with_2() -> None:
    for arguments in (
        ("info",),
        ("nonsense",),
        ("info", "a", "b", "c"),
        ("mount", "a", "b", "--cache-size", "much"),
    ):
        completed = run(*arguments)
        assert completed.returncode == 2
        assert "Usage: zarrfs" in completed.stderr
        assert "Traceback" not in completed.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("arguments", ["--help", "info {} --json", "cat {}/image --as raw"])
def test_commands_end_quietly_when_the_reader_of_their_output_has_ended(
    store: Path, arguments: str, unbuffered: str
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        completed = subprocess.run(
            [sys.executable, "-m", "zarrfs", *arguments.format(store).split()],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    finally:
        os.close(writer)
    assert (completed.returncode, completed.stderr) == (141, "")


def test_control_characters_are_escaped_and_sizes_are_formatted() -> None:
    assert safe("a\x1b[31mb\udcff\n") == "a\\x1b[31mb\\udcff\\n"
    assert readable_bytes(0) == "0 B"
    assert readable_bytes(1536) == "1.5 KiB"
    assert readable_bytes(10**18) == "888.2 PiB"


def test_clean_removes_old_temporary_files(store: Path, tmp_path: Path) -> None:
    temporary_file = tmp_path / "data.zarr" / ".zarrfs-writing-x"
    temporary_file.parent.mkdir()
    temporary_file.write_bytes(b"half")
    completed = run("clean", temporary_file.parent)
    assert (completed.returncode, completed.stdout) == (0, "0 temporary files removed\n"), completed.stderr
    os.utime(temporary_file, (0, 0))
    completed = run("clean", temporary_file.parent, "--dry-run")
    assert completed.stdout == f"{temporary_file}\n1 temporary file found\n", completed.stderr
    assert temporary_file.exists()
    completed = run("clean", temporary_file.parent)
    assert completed.stdout == f"{temporary_file}\n1 temporary file removed\n", completed.stderr
    assert not temporary_file.exists()


LIMITED_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
from zarrfs.cli.main import run
run(sys.argv[1:])
"""


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("command", [["cat", "--as", "raw"], ["info", "--json"]], ids=lambda words: words[0])
def test_output_that_is_written_in_part_is_an_error(
    command: list[str], unbuffered: str, tmp_path: Path
) -> None:
    """A write to a full disk, or here to a file of limited size, writes the beginning."""
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(900, dtype="u2"), attributes={"text": "x" * 1500})
    with open(tmp_path / "output", "wb") as output:
        completed = subprocess.run(
            [sys.executable, "-c", LIMITED_FILES, command[0], str(tmp_path / "a.zarr"), *command[1:]],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=TIMEOUT,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert (tmp_path / "output").stat().st_size == 1000
    assert completed.returncode == 1
    assert "standard output cannot be written: File too large" in completed.stderr
    assert len(completed.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", ["cat {} --as raw", "tree {}", "--version"])
def test_closed_standard_output_is_an_error(arguments: str, tmp_path: Path) -> None:
    """As with "zarrfs tree image.zarr >&-" in a shell."""
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(9))
    command = [sys.executable, "-m", "zarrfs", *arguments.format(tmp_path / "a.zarr").split()]
    completed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command], stderr=subprocess.PIPE, text=True, check=False
    )
    assert completed.returncode == 1
    assert completed.stderr == "zarrfs: standard output cannot be written: Bad file descriptor\n"


def test_closed_standard_error_discards_messages(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "zarrfs", "info", str(tmp_path / "missing.zarr")]
    completed = subprocess.run(
        ["sh", "-c", 'exec "$@" 2>&-', "sh", *command], stdout=subprocess.PIPE, text=True, check=False
    )
    assert (completed.returncode, completed.stdout) == (1, "")


@pytest.mark.parametrize(
    ("environment", "has_colours"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
    ids=str,
)
def test_colours_of_a_terminal_can_be_disabled(
    environment: dict[str, str], has_colours: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    zarrfs.create_group(tmp_path / "g.zarr", attributes={"a": 1})
    result = CliRunner().invoke(main, ["info", str(tmp_path / "g.zarr")], color=True, env=environment)
    assert result.exit_code == 0
    assert ("\x1b[" in result.output) == has_colours


@pytest.mark.parametrize(
    ("has_library", "setting", "expected"),
    [
        (False, None, "install a C compiler (apt install gcc), then install zarrfs again"),
        (True, None, "slower; install zarrfs again: pip install --force-reinstall"),
        (True, "0", "remove the environment variable ZARRFS_NATIVE"),
    ],
)
def test_doctor_advises_what_the_state_of_the_native_library_needs(
    has_library: bool, setting: str | None, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_library:
        (tmp_path / LIBRARY_NAME).touch()
    monkeypatch.setattr(doctor, "DIRECTORY", tmp_path)
    monkeypatch.delenv("ZARRFS_NATIVE", raising=False)
    if setting is not None:
        monkeypatch.setenv("ZARRFS_NATIVE", setting)
    results = {result.name: result for result in doctor.run_checks()}
    assert expected in results["native reader and writer"].advice


def test_check_of_a_container_checks_the_images_in_it(tmp_path: Path) -> None:
    def check(*options: str) -> tuple[int, str]:
        result = CliRunner().invoke(main, ["check", str(tmp_path / "a.zarr"), *options])
        return result.exit_code, result.output

    group = zarrfs.create_group(tmp_path / "a.zarr", attributes={"encoding-type": "anndata"})
    group.create_array("X", data=np.zeros((2, 3)))
    assert check() == (
        0,
        "none of 2 arrays and groups has OME-NGFF metadata: there is nothing to check\n",
    )
    assert check("--path", "X")[0] == 0
    level = {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1]}]}
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    image = group.create_group("images/cells")
    image.create_array("0", data=np.zeros((4, 4)))
    image.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": [level]}]}
    code, text = check()
    assert code == 0
    assert text.startswith("images/cells: OME-NGFF 0.5: valid, ")
    assert text.endswith("1 of 4 arrays and groups have OME-NGFF metadata\n")
    image.attrs["ome"] = {"version": "0.5", "multiscales": [{"axes": axes}]}
    code, text = check("--json")
    assert code == 1
    found = json.loads(text)
    assert (found["valid"], found["version"], list(found["members"])) == (False, None, ["images/cells"])
    (tmp_path / "a.zarr" / "X" / "zarr.json").write_text("{")
    code, text = check()
    assert code == 1
    assert "X: unreadable: NOT valid" in text
