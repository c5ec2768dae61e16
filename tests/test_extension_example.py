"""The example package of docs/extensions.md, installed and used in Python, command line, mount and viewer."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

from tests.documentation.pages import blocks as page_blocks
from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "zarrfs-example"
GUIDE = ROOT / "docs" / "extensions.md"

MIN_SETUPTOOLS = 77


class Site:
    """A directory with the installed package, and a working directory."""

    def __init__(self, packages: Path, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (packages, ROOT, ROOT / "viewer"))),
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "QT_QPA_PLATFORM": "offscreen",
        }

    def run(self, *arguments: str | Path) -> str:
        """Run Python with the package installed, and return what it prints."""
        return self._run([sys.executable, "-W", "error", *map(str, arguments)])

    def shell(self, program: str) -> str:
        """Run a program of the shell with the package installed, and return what it prints."""
        return self._run(["bash", "-euo", "pipefail", "-c", program])

    def _run(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The installed package, and the array that the guide writes."""
    if int(importlib.metadata.version("setuptools").split(".")[0]) < MIN_SETUPTOOLS:
        pytest.skip(f"setuptools>={MIN_SETUPTOOLS} is not installed (the extra test)")
    packages = tmp_path_factory.mktemp("packages")
    source = tmp_path_factory.mktemp("source")
    for path in EXAMPLE.iterdir():
        if path.is_file():
            (source / path.name).write_bytes(path.read_bytes())
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", packages, source],
        check=True,
        timeout=TIMEOUT,
    )
    found = Site(packages, tmp_path_factory.mktemp("work"))
    found.run("-c", blocks()[0])
    return found


def blocks(language: str = "python") -> list[str]:
    return [block.text for block in page_blocks(GUIDE) if block.language == language]


def expected() -> np.ndarray:
    values = np.full((4, 6), 90, "f4")
    values[1:3] = 45
    return values


READ = """
import zarrfs
array = zarrfs.open("shelf://gles//morning", storage_options={"root": "an"})
print(array[...].tolist())
try:
    zarrfs.open("shelf://angles//morning", storage_options={"color": "red"})
except zarrfs.LocationError as error:
    print(error)
"""


REFUSED = """
import zarrfs
for change in (
    lambda: zarrfs.create_array("album/dog", shape=(2,), dtype="u1", zarr_format="example.tiles"),
    lambda: zarrfs.open("album/cat", mode="r+").attrs.put({"a": 1}),
):
    try:
        change()
    except zarrfs.ZarrError as error:
        print(error)
"""


def test_python_reads_with_an_inner_path_and_storage_options(site: Site) -> None:
    values, error = site.run("-c", READ).splitlines()
    assert values == str(expected().tolist())
    assert "unknown storage options ['color'], expected root" in error
    assert (site.directory / "angles" / "morning" / "zarr.json").is_file()


def test_the_command_line_shows_the_data_type_the_codec_and_the_values(site: Site) -> None:
    shown = site.run("-m", "zarrfs", "info", "shelf://angles//morning")
    assert "example.angle" in shown
    assert "example.xor" in shown
    options = ["--storage-option", "root=an"]
    printed = site.run("-m", "zarrfs", "cat", "shelf://gles//morning[1]", "--as", "csv", *options)
    assert [float(text) for text in re.split(r"[,\s]+", printed.strip())] == [45.0] * 6


def test_an_array_is_copied_into_the_store_with_options(site: Site) -> None:
    options = ["--storage-option", "root=co"]
    site.run("-m", "zarrfs", "copy", "angles/morning", "shelf://pies//evening", *options)
    assert (site.directory / "copies" / "evening" / "zarr.json").is_file()


@needs_fuse
def test_the_commands_of_the_guide_show_the_array(site: Site) -> None:
    """Information, the mount with the view, and the viewer."""
    (program,) = blocks("sh")
    printed = site.shell(program)
    assert "example.angle" in printed
    assert f"{zlib.crc32(expected().tobytes()):08x}" in printed
    assert (site.directory / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_directory_of_the_format_is_read_mounted_and_copied(site: Site) -> None:
    assert site.run("-c", blocks()[1]).strip() == "[[1, 2, 3], [4, 5, 6]]"
    shown = site.run("-m", "zarrfs", "tree", "album")
    assert "cat" in shown
    assert "2 x 3 uint8" in shown
    assert "example.tiles" in site.run("-m", "zarrfs", "info", "album/cat")
    site.run("-m", "zarrfs", "copy", "album", "copied.zarr")
    assert site.run("-m", "zarrfs", "cat", "copied.zarr/cat", "--as", "csv").split() == ["1,2,3", "4,5,6"]
    done = site.run("-c", REFUSED)
    assert "the format example.tiles is read-only; copy the array" in done


def test_the_extensions_keep_the_contracts(site: Site) -> None:
    tests = site.directory / "test_example.py"
    tests.write_text(blocks()[2], encoding="utf-8")
    printed = site.run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={site.directory}", tests)
    assert re.search(r"^\d\d passed", printed, re.MULTILINE), printed


def test_the_guide_names_all_entry_point_groups() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "zarrfs").rglob("*.py"))
    groups = set(re.findall(r'^(?:ENTRY_POINTS|MEMBER_NAMES) = "(zarrfs\.[a-z_]+)"', sources, re.MULTILINE))
    assert len(groups) >= 8
    text = GUIDE.read_text(encoding="utf-8")
    assert [group for group in groups if f"`{group}`" not in text] == []
