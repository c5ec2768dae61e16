"""The demonstration with the synthetic image and with a given store."""

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
    monkeypatch.setattr(module, "OUTPUT_DIRECTORY", tmp_path / "demo")
    # The tests of the viewer cover the screenshot.
    monkeypatch.setattr(module, "show_picture", lambda store: None)
    return module


def test_the_demo_runs_with_the_synthetic_image(demo: ModuleType, capfd: pytest.CaptureFixture[str]) -> None:
    assert demo.main([]) == 0
    output = capfd.readouterr().out
    assert re.search(r"^\s+60.0 MiB  0.npy$", output, re.MULTILINE)
    assert "All 62,914,560 bytes equal the values that the engine reads" in output
    assert "$ zarrfs umount" in output


@pytest.mark.parametrize("kind", ["group", "array", "scalar"])
def test_the_demo_runs_with_a_given_store(
    kind: str, demo: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    location = tmp_path / "given.zarr"
    data = np.float32(3) if kind == "scalar" else np.linspace(0, 1, 3000).reshape(30, 100)
    if kind == "group":
        zarrfs.create_group(location).create_array("deep/inside", data=data, chunks=(7, 9))
    else:
        zarrfs.create_array(location, data=data)
    assert demo.main([str(location)]) == 0
    assert f"All {data.nbytes:,} bytes equal the values that the engine reads" in capfd.readouterr().out


def test_the_demo_reports_a_missing_store(
    demo: ModuleType, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert demo.main([str(tmp_path / "nothing")]) == 1
    output = capfd.readouterr()
    assert "The demo failed" in output.out
    assert "no such file or directory" in output.err
    assert "Traceback" not in output.out + output.err


@pytest.mark.parametrize("script", ["setup.sh", "demo.sh", "test.sh"])
def test_the_scripts_have_valid_syntax(script: str) -> None:
    subprocess.run(["bash", "-n", str(PACKAGING / script)], check=True)
