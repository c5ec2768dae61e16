"""The demonstration works, on its own picture and on a store that is given."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import needs_fuse

pytestmark = needs_fuse

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", PACKAGING / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "SCRATCH", tmp_path / "demo")
    # What is drawn is the business of the viewer's own tests.
    monkeypatch.setattr(module, "show_picture", lambda store: None)
    return module


def test_its_own_picture(demo: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.main([]) == 0
    said = capfd.readouterr().out
    assert re.search(r"^\s+60.0 MiB  0.npy$", said, re.MULTILINE)
    assert "All 62,914,560 bytes equal what the engine reads" in said
    assert "$ zarrfs umount" in said


@pytest.mark.parametrize("what", ["group", "array", "scalar"])
def test_a_store_of_yours(
    what: str, demo: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    location = tmp_path / "yours.zarr"
    data = np.float32(3) if what == "scalar" else np.linspace(0, 1, 3000).reshape(30, 100)
    if what == "group":
        zarrfs.create_group(location).create_array("deep/inside", data=data, chunks=(7, 9))
    else:
        zarrfs.create_array(location, data=data)
    assert demo.main([str(location)]) == 0
    assert f"All {data.nbytes:,} bytes equal what the engine reads" in capfd.readouterr().out


def test_no_store(demo: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.main([str(tmp_path / "nothing")]) == 1
    said = capfd.readouterr()
    assert "The demo cannot go on" in said.out
    assert "no such file or directory" in said.err
    assert "Traceback" not in said.out + said.err


@pytest.mark.parametrize("script", ["setup.sh", "demo.sh", "test.sh"])
def test_the_scripts_are_bash(script: str) -> None:
    subprocess.run(["bash", "-n", str(PACKAGING / script)], check=True)
