"""The environment is what it is meant to be, and where it cannot be built that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.zarr2 import zarr2_environment
from tests.interop.zarr2.zarr2_environment import Zarr2, Zarr2Error, Zarr2MissingError, python_with_zarr2


def test_it_is_built_once(zarr2: Zarr2, zarr2_python: Path) -> None:
    assert python_with_zarr2() == zarr2_python
    assert zarr2("versions")["zarr"].startswith("2.18.")


def test_without_a_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zarr2_environment, "FOLDER", tmp_path / "environments")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for _ in range(2):  # what was begun is not taken for complete
        with pytest.raises(Zarr2MissingError, match="cannot be installed"):
            python_with_zarr2()


def test_errors_come_through(zarr2: Zarr2, tmp_path: Path) -> None:
    with pytest.raises(Zarr2Error, match=r"FSPathExistNotDir|PathNotFoundError|ArrayNotFoundError"):
        zarr2("read", ("DirectoryStore", {"path": str(tmp_path / "nothing")}))
