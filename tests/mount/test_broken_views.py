"""Views of other packages that fail. A failure affects only the files of that view.

The package is a distribution: a module and its ``dist-info`` directory, in a directory on the path of a new
interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse

MODULE = """
from zarrfs.files.content.content import VirtualFileContent, BytesSegment
from zarrfs.files.view import View


class Good(View):
    suffix = ".good"
    listed = True

    def unsupported_reason(self, presented):
        return None

    def content(self, presented):
        return VirtualFileContent([BytesSegment(b"good")])


class FailsToStart(Good):
    suffix = ".start"

    def __init__(self):
        raise RuntimeError("no start")


class NoSuffix(Good):
    suffix = None


class SlashSuffix(Good):
    suffix = "/../x"


class TakenSuffix(Good):
    suffix = ".npy"


class Abstract(View):
    suffix = ".abstract"


class OldSignature(Good):
    suffix = ".old"

    def content(self, array, name):
        return VirtualFileContent([BytesSegment(b"old")])


class FailsToRefuse(Good):
    suffix = ".refuse"

    def unsupported_reason(self, presented):
        raise RuntimeError("no unsupported_reason\\n\\x1b[31m")


class FailsToCreateContent(Good):
    suffix = ".content"

    def content(self, presented):
        raise RuntimeError("no content")


class ReturnsNothing(Good):
    suffix = ".nothing"

    def content(self, presented):
        return None


class FailingSegment:
    nbytes = 10

    def read_into(self, offset, out):
        raise RuntimeError("no reading")


class FailsToRead(Good):
    suffix = ".read"

    def content(self, presented):
        return VirtualFileContent([FailingSegment()])
"""

ENTRY_POINTS = [
    *("Good", "FailsToStart", "NoSuffix", "SlashSuffix", "TakenSuffix", "Abstract", "FailsToRefuse"),
    *("FailsToCreateContent", "ReturnsNothing", "FailsToRead", "OldSignature"),
]

LOOKUP_SCRIPT = """
import json, sys
import zarrfs
from zarrfs.mount.tree.tree import Tree
tree = Tree(zarrfs.open(sys.argv[1]))
outcomes = {"": sorted(entry.name for entry in tree.list_entries(tree.lookup("/")))}
for name in sys.argv[2:]:
    try:
        file = tree.lookup("/" + name)
        outcomes[name] = None if file is None else file.content.read(0, file.content.size).decode("latin-1")
    except Exception as error:
        outcomes[name] = f"{type(error).__name__}: {error}"
print(json.dumps(outcomes))
"""


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packages")
    (path / "broken_views.py").write_text(MODULE)
    (path / "exits_on_import.py").write_text("raise SystemExit(3)")
    information = path / "broken_views-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-views\nVersion: 1.0\n")
    lines = [f"{name} = broken_views:{name}" for name in ENTRY_POINTS]
    lines += ["exits = exits_on_import:View", "missing = broken_views:Missing"]
    (information / "entry_points.txt").write_text("[zarrfs.views]\n" + "\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views") / "data.zarr"
    zarrfs.create_group(path).create_array("a", data=np.arange(3, dtype="u1"))
    return path


def test_a_failing_view_affects_only_its_own_files(packages: Path, store: Path) -> None:
    command = [sys.executable, "-c", LOOKUP_SCRIPT, str(store)]
    command += ["a.raw", "a.json", "a.good", "a.refuse", "a.content", "a.nothing", "a.read", "a.start"]
    completed = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(packages)}, check=False
    )
    assert completed.returncode == 0, completed.stderr
    outcomes: dict[str, Any] = json.loads(completed.stdout)
    listed = ["a.content", "a.good", "a.json", "a.nothing", "a.npy", "a.raw", "a.read"]
    assert outcomes[""] == [".group.json", *listed]
    assert outcomes["a.raw"] == "\0\1\2"
    assert outcomes["a.good"] == "good"
    assert outcomes["a.refuse"] is outcomes["a.start"] is None
    assert "the view FailsToCreateContent failed: RuntimeError: no content" in outcomes["a.content"]
    assert "returned None, expected a VirtualFileContent" in outcomes["a.nothing"]
    assert outcomes["a.read"] == "RuntimeError: no reading"
    reasons = json.loads(outcomes["a.json"])["not_available"]
    assert "RuntimeError: no unsupported_reason\\n\\x1b[31m" in reasons["a.refuse"]
    for name in (
        "FailsToStart",
        "NoSuffix",
        "SlashSuffix",
        "TakenSuffix",
        "Abstract",
        "OldSignature",
        "exits",
        "Missing",
    ):
        assert name in completed.stderr
    assert "Traceback" not in completed.stderr


@needs_fuse
def test_a_mount_serves_the_files_of_other_views(
    packages: Path, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(packages))
    with mounted(store, tmp_path / "mnt") as mnt:
        assert {"a.npy", "a.raw", "a.good"} <= set(os.listdir(mnt))
        assert np.load(mnt / "a.npy").tolist() == [0, 1, 2]
        assert (mnt / "a.good").read_bytes() == b"good"
        for name in ("a.content", "a.nothing", "a.read"):
            for _ in range(2):
                with pytest.raises(OSError, match="Input/output error"):
                    (mnt / name).read_bytes()
    log = (tmp_path / "mnt.log").read_text()
    assert log.count("no reading") <= 3, "the error is logged once, with its traceback"
    assert "\x1b" not in log
