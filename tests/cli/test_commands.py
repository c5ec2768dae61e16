"""The commands as a user sees them: what they print, what they answer, and that errors are one clear line."""

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

import zarrfs
from tests.processes import TIMEOUT
from zarrfs.cli.console import readable_bytes, safe
from zarrfs.cli.main import VERBS


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own."""
    command = [sys.executable, "-m", "zarrfs", *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
        env={**os.environ, **environment},
    )


def strict(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    return json.loads(text, parse_constant=refuse)


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


def test_info_of_an_array(store: Path) -> None:
    done = run("info", store, "image", "--json")
    assert done.returncode == 0, done.stderr
    facts = strict(done.stdout)
    assert facts["shape"] == [4, 100, 100]
    assert facts["chunks"] == [2, 50, 50]
    assert facts["dimension_names"] == ["z", None, "x"]
    assert facts["chunks_total"] == facts["chunks_initialized"] == 8
    assert facts["bytes_stored"] == sum(f.stat().st_size for f in (store / "image").rglob("*") if f.is_file())
    assert facts["ratio"] > 1
    for_people = run("info", store / "image").stdout
    for words in ("4 x 100 x 100  (z, -, x)", "uint16", "8 of 8 (100.0%)", "blosc", "fill value"):
        assert words in for_people


def test_info_of_a_group(store: Path) -> None:
    facts = strict(run("info", store, "--json").stdout)
    assert facts["attributes"] == {"title": "größe"}
    kinds = {member["name"]: member["kind"] for member in facts["members"]}
    assert kinds == {"broken": "broken", "image": "array", "inner": "group", "sharded": "array"}
    for_people = run("info", store).stdout
    assert "4 x 100 x 100" in for_people
    assert "größe" in for_people


def test_info_counts_only_what_is_there(store: Path) -> None:
    facts = strict(run("info", store, "inner/giant", "--json").stdout)
    assert facts["nbytes"] == 10**15
    assert (facts["chunks_total"], facts["chunks_initialized"]) == (10**9, 0)
    assert "chunks_total" not in strict(run("info", store, "inner/giant", "--json", "--no-count").stdout)


def test_info_says_which_way_the_ratio_goes(tmp_path: Path) -> None:
    small, large = tmp_path / "small.zarr", tmp_path / "large.zarr"
    zarrfs.create_array(small, data=np.zeros(100_000, "u1"), chunks=100_000)
    noise = np.random.default_rng(0).integers(0, 255, 100, "u1")
    zarrfs.create_array(large, data=noise, chunks=1)
    for path, direction in ((small, "smaller"), (large, "larger")):
        (line,) = [line for line in run("info", path).stdout.splitlines() if line.startswith("stored")]
        ratio = re.search(r", ([0-9.]+) times (\w+)$", line)
        assert ratio is not None, line
        assert (float(ratio[1]) > 1, ratio[2]) == (True, direction)


def test_an_hdf5_file_is_named_with_what_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a b.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=np.arange(3))
    done = run("info", path)
    assert done.returncode == 1
    assert f"is an HDF5 file; copy it to a Zarr hierarchy first: zarrfs copy '{path}' NEW.zarr" in done.stderr


@pytest.mark.parametrize("name", ["inner/words", "inner/scalar", "sharded"])
def test_info_is_strict_json_for_every_kind(name: str, store: Path) -> None:
    assert strict(run("info", store, name, "--json").stdout)["kind"] == "array"


@pytest.mark.parametrize(
    "dtype", ["<M8[ns]", "<m8[s]", "|S3", "<U2", "|V4", "<c8", [("x", "<f4"), ("y", "<i2", (2,))]], ids=str
)
def test_info_of_odd_data_types(dtype: Any, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=3, dtype=np.dtype(dtype), zarr_format=2)
    facts = strict(run("info", tmp_path / "a.zarr", "--json").stdout)
    assert facts["shape"] == [3]
    assert run("info", tmp_path / "a.zarr").returncode == 0


def test_tree(store: Path) -> None:
    lines = run("tree", store).stdout.splitlines()
    assert lines[0] == store.as_uri()
    assert any(line.startswith("├── broken  broken: ") for line in lines)
    assert "├── image  4 x 100 x 100 uint16, chunks 2 x 50 x 50" in lines
    assert "│   └── words  2 string, chunks 2" in lines
    assert "└── sharded  64 x 64 float64, chunks 8 x 8, shards 32 x 32" in lines
    assert len(run("tree", store, "--depth", "1").stdout.splitlines()) == 5
    nested = strict(run("tree", store, "--json").stdout)
    assert nested["members"]["inner"]["members"]["scalar"]["shape"] == []
    assert nested["members"]["broken"]["kind"] == "broken"


def test_doctor_says_what_is_missing(tmp_path: Path) -> None:
    done = run("doctor", "--json")
    answer = strict(done.stdout)
    assert (done.returncode == 0) == answer["usable"]
    names = {finding["name"]: finding for finding in answer["findings"]}
    assert {"/dev/fuse", "libfuse", "Python binding"} <= set(names)
    assert run("doctor").stdout.splitlines()[-1].startswith("Mounting ")


def test_every_verb_has_help_that_teaches() -> None:
    overview = run("--help")
    assert overview.returncode == 0
    for verb in [verb for verb in VERBS if find_spec(f"zarrfs.cli.{verb}")]:
        assert f"\n  {verb} " in overview.stdout
        done = run(verb, "--help")
        assert done.returncode == 0, done.stderr
        assert len(done.stdout) > 200
        if verb != "doctor":
            assert "Example" in done.stdout, verb


def test_help_is_light() -> None:
    code = """
import sys
sys.argv = ["zarrfs", "--help"]
from zarrfs.cli.main import run
try:
    run()
finally:
    print(sorted({"rich", "numcodecs", "mfusepy"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version() -> None:
    assert run("--version").stdout.strip().endswith(zarrfs.__version__)


@pytest.mark.parametrize(
    ("arguments", "said"),
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
def test_an_error_is_one_clear_line(
    arguments: tuple[str, ...], said: str, store: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("hello")
    done = run(*(argument.format(tmp=tmp_path, store=store) for argument in arguments))
    assert done.returncode == 1
    assert not done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith("zarrfs: ")
    assert said in line


def test_wrong_use_is_told_from_errors() -> None:
    for arguments in (
        ("info",),
        ("nonsense",),
        ("info", "a", "b", "c"),
        ("mount", "a", "b", "--cache-size", "much"),
    ):
        done = run(*arguments)
        assert done.returncode == 2
        assert "Usage: zarrfs" in done.stderr
        assert "Traceback" not in done.stderr


def test_a_reader_that_has_seen_enough_is_no_error(store: Path) -> None:
    command = f"set -o pipefail; {sys.executable} -m zarrfs info {store} --json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_text_for_terminals_is_safe() -> None:
    assert safe("a\x1b[31mb\udcff\n") == "a\\x1b[31mb\\udcff\\n"
    assert readable_bytes(0) == "0 B"
    assert readable_bytes(1536) == "1.5 KiB"
    assert readable_bytes(10**18) == "888.2 PiB"


def test_clean(store: Path, tmp_path: Path) -> None:
    left = tmp_path / "data.zarr" / ".zarrfs-writing-x"
    left.parent.mkdir()
    left.write_bytes(b"half")
    done = run("clean", left.parent)
    assert (done.returncode, done.stdout) == (0, "0 files removed\n"), done.stderr
    os.utime(left, (0, 0))
    done = run("clean", left.parent, "--dry-run")
    assert done.stdout == f"{left}\n1 file left behind\n", done.stderr
    assert left.exists()
    done = run("clean", left.parent)
    assert done.stdout == f"{left}\n1 file removed\n", done.stderr
    assert not left.exists()
