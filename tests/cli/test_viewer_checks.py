"""The part of ``zarrfs doctor`` that examines the viewer, and the system packages that it recommends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from zarrfs.cli.viewer_checks import QT_PACKAGES, check_viewer

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"

ADDED_BY_SETUP = {
    # Dependencies of the others, and fonts for pictures of windows.
    *("libxkbcommon0", "libxcb-sync1", "libxcb-xfixes0", "libwayland-client0", "fonts-dejavu-core"),
}


def package_names(text: str) -> set[str]:
    """Return the names in a list of packages. Of alternatives only the last one, which all releases provide."""
    return {entry.split("|")[-1].strip() for entry in re.split(r"[,\n]|(?<![|]) (?![|])", text)} - {""}


def test_all_lists_of_the_libraries_of_qt_are_equal() -> None:
    found = re.search(r"packages_qt=\((.*?)\)", (PACKAGING / "setup.sh").read_text(), re.DOTALL)
    assert found is not None
    assert package_names(found[1].replace('"', "")) - ADDED_BY_SETUP == set(QT_PACKAGES)
    found = re.search(
        r"^Recommends: (.*?)\n(?! )", (PACKAGING / "debian/control").read_text(), re.DOTALL | re.M
    )
    assert found is not None
    assert package_names(found[1]) == set(QT_PACKAGES)


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the platform plugins of Qt, which is empty. There are displays of both kinds."""
    core = pytest.importorskip("PyQt6.QtCore")

    class LibraryInfo:
        LibraryPath = core.QLibraryInfo.LibraryPath

        @staticmethod
        def path(_: object) -> str:
            return str(tmp_path)

    monkeypatch.setattr(core, "QLibraryInfo", LibraryInfo)
    monkeypatch.setenv("DISPLAY", ":1")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    (tmp_path / "platforms").mkdir()
    return tmp_path / "platforms"


def test_a_plugin_that_cannot_be_loaded_is_named_with_the_packages_to_install(plugins: Path) -> None:
    (plugins / "libqxcb.so").touch()
    check = check_viewer()
    assert check.has_problem
    assert "cannot open windows" in check.found
    assert "libqxcb.so" in check.found
    assert all(name in check.advice for name in QT_PACKAGES)


def test_one_plugin_that_can_be_loaded_is_enough(plugins: Path) -> None:
    (plugins / "libqxcb.so").touch()
    loaded = re.search(r"/\S*/libc\.\S*", Path("/proc/self/maps").read_text())
    assert loaded is not None
    (plugins / "libqwayland.so").symlink_to(loaded[0])
    assert not check_viewer().has_problem
