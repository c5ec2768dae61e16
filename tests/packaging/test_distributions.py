"""The wheel and the source distribution: complete, and usable outside of the checkout.

They are built without network, with the setuptools of the tests. The wheel is installed in a new environment, which
finds the dependencies in the environment of the tests.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from zarrfs_viewer.desktop import TARGETS

import zarrfs
from tests.mount.mounted import needs_fuse
from tests.processes import output_of
from tests.programs import find_program, require_program

ROOT = Path(__file__).resolve().parents[2]

UNDISTRIBUTED = {".ci", ".editorconfig", ".gitignore", ".pre-commit-config.yaml"}

MIN_SETUPTOOLS = 77


def run(command: Sequence[str | Path], **options: str | Path | None) -> str:
    """Run a program without the Python path of the tests, and return what it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment.update({name: str(value) for name, value in options.items() if name.isupper()})
    return output_of(command, cwd=options.get("cwd"), env=environment)


def tracked_files() -> list[str]:
    done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is not a git checkout")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).exists()]


def require_build_tools() -> None:
    """Skip the test if packages cannot be built here."""
    setuptools = int(importlib.metadata.version("setuptools").split(".")[0])
    if setuptools < MIN_SETUPTOOLS or not importlib.util.find_spec("build"):
        pytest.skip(f"the packages build and setuptools>={MIN_SETUPTOOLS} are not installed (the extra test)")
    tracked_files()  # skips without git
    require_program("cp")  # of packaging/copy_sources.sh


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the wheel and the source distribution of the tracked files."""
    require_build_tools()
    source = tmp_path_factory.mktemp("source")
    run([ROOT / "packaging" / "copy_sources.sh", source])
    output = tmp_path_factory.mktemp("dist")
    for kind in ("--sdist", "--wheel"):
        run([sys.executable, "-m", "build", "--no-isolation", kind, "--outdir", output, source], cwd=output)
    return output


@pytest.fixture(scope="module")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the programs of an environment in which the wheel is installed."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    wheel = next(built.glob("*.whl"))
    pip = [sys.executable, "-m", "pip", "--python", python]
    run([*pip, "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", wheel])
    packages = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]).strip()
    # The files .pth in the other directory are not read, so that the editable installation is not found.
    (Path(packages) / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return directory / "bin"


def test_the_source_distribution_contains_all_tracked_files(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    missing = set(tracked_files()) - names
    assert {name for name in missing if name.split("/")[0] not in UNDISTRIBUTED} == set(), "MANIFEST.in"


def test_the_wheel_contains_packages_resources_and_library_for_all_versions_of_python(built: Path) -> None:
    wheel = next(built.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        text = archive.read(f"zarrfs-{zarrfs.__version__}.dist-info/METADATA").decode()
    expected = {
        name.removeprefix("viewer/") for name in tracked_files() if name.startswith(("viewer/", "zarrfs/"))
    } - {"zarrfs_viewer/resources"}  # a symbolic link
    expected |= {f"zarrfs_viewer/{name}" for name in tracked_files() if name.startswith("resources/")}
    assert expected - names == set(), "package-data in pyproject.toml"
    assert not [name for name in names if name.startswith(("tests", "benchmarks", "packaging"))]
    if "zarrfs/engine/native/libzarrfs_native.so" in names:
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        assert wheel.name == f"zarrfs-{zarrfs.__version__}-py3-none-{platform}.whl"
    for line in ("License-Expression: MIT", "Author: The zarrfs authors", "Keywords: zarr,"):
        assert f"\n{line}" in text


def test_the_installed_package_runs_outside_of_the_checkout(environment: Path, tmp_path: Path) -> None:
    script = "import zarrfs, zarrfs_viewer; print(zarrfs.__file__, zarrfs_viewer.__file__)"
    files = run([environment / "python", "-c", script], cwd=tmp_path).split()
    assert all(Path(name).is_relative_to(environment.parent) for name in files)
    assert "Commands:" in run([environment / "zarrfs", "--help"], cwd=tmp_path)
    assert f"zarrfs, version {zarrfs.__version__}" in run([environment / "zarrfs", "--version"], cwd=tmp_path)
    assert zarrfs.__version__ in run([environment / "zarrfs-viewer", "--version"], cwd=tmp_path)
    zarrfs.create_array(tmp_path / "a.zarr", data=list(range(10)))
    script = "import zarrfs, sys; print(zarrfs.open('a.zarr')[::3].tolist())"
    assert run([environment / "python", "-c", script], cwd=tmp_path) == "[0, 3, 6, 9]\n"


@needs_fuse
def test_the_installed_package_mounts(environment: Path, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", data=np.arange(100, dtype="u1"), chunks=(30,))
    (tmp_path / "files").mkdir()
    run([environment / "zarrfs", "mount", "a.zarr", "files"], cwd=tmp_path, HOME=tmp_path)
    try:
        names = os.listdir(tmp_path / "files")
        raw = next(name for name in names if name.endswith(".raw"))
        assert (tmp_path / "files" / raw).read_bytes() == bytes(range(100))
    finally:
        run([environment / "zarrfs", "umount", "files"], cwd=tmp_path)


def test_the_viewer_installs_and_removes_the_desktop_entry(environment: Path, tmp_path: Path) -> None:
    viewer = environment / "zarrfs-viewer"
    assert str(tmp_path) in run([viewer, "--install-desktop"], XDG_DATA_HOME=tmp_path)
    assert [target for target in TARGETS.values() if not (tmp_path / target).is_file()] == []
    assert "Exec=zarrfs-viewer" in (tmp_path / TARGETS["zarrfs-viewer.desktop"]).read_text()
    run([viewer, "--remove-desktop"], XDG_DATA_HOME=tmp_path)
    assert [target for target in TARGETS.values() if (tmp_path / target).exists()] == []


def test_a_second_build_in_a_directory_contains_nothing_of_the_first(tmp_path: Path) -> None:
    """``pip install .`` builds in the directory ``build`` of the checkout, and leaves it."""
    require_build_tools()
    source = tmp_path / "source"
    source.mkdir()
    run([ROOT / "packaging" / "copy_sources.sh", source])
    deleted = source / "zarrfs" / "deleted_module.py"
    deleted.write_text("")
    build = [sys.executable, "setup.py", "--quiet", "bdist_wheel", "--dist-dir"]
    run([*build, tmp_path / "first"], cwd=source)
    deleted.unlink()
    run([*build, tmp_path / "second"], cwd=source, CC="false")
    names = []
    for output in ("first", "second"):
        wheel = next((tmp_path / output).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            names.append(set(archive.namelist()))
    assert "zarrfs/deleted_module.py" in names[0]
    assert "zarrfs/deleted_module.py" not in names[1]
    assert "zarrfs/engine/native/libzarrfs_native.so" not in names[1]
    assert wheel.name == f"zarrfs-{zarrfs.__version__}-py3-none-any.whl"


def test_the_library_is_built_without_setuptools(tmp_path: Path) -> None:
    find_program("cc") or require_program("gcc")
    for name in ("setup.py", *native_sources()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    printed = run([sys.executable, "-S", "setup.py", "build_native"], cwd=tmp_path)
    assert Path(printed.strip()).is_file()


def native_sources() -> list[str]:
    files = (ROOT / "zarrfs").glob("*/native/*")
    return [
        str(path.relative_to(ROOT))
        for path in files
        if path.suffix in (".c", ".h") or path.name == "build.py"
    ]
