"""The environment contains zarr-python 2, and a failed build raises an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.zarr2 import zarr2_environment
from tests.interop.zarr2.zarr2_environment import Zarr2, Zarr2Error, Zarr2MissingError, python_with_zarr2


def test_the_environment_is_built_once(zarr2: Zarr2, zarr2_python: Path) -> None:
    assert python_with_zarr2() == zarr2_python
    assert zarr2("versions")["zarr"].startswith("2.18.")


def test_a_failed_build_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zarr2_environment, "FOLDER", tmp_path / "environments")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for _ in range(2):  # an incomplete build does not count as complete
        with pytest.raises(Zarr2MissingError, match="cannot be installed"):
            python_with_zarr2()


def test_an_error_of_zarr_python_2_is_raised(zarr2: Zarr2, tmp_path: Path) -> None:
    with pytest.raises(Zarr2Error, match=r"FSPathExistNotDir|PathNotFoundError|ArrayNotFoundError"):
        zarr2("read", ("DirectoryStore", {"path": str(tmp_path / "nothing")}))
