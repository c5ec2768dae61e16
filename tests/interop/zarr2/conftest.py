"""A process with zarr-python 2.18 for the tests of this directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.zarr2.zarr2_environment import Zarr2, Zarr2MissingError, python_with_zarr2


@pytest.fixture(scope="session")
def zarr2_python() -> Path:
    """The interpreter of an environment with zarr-python 2. If it cannot be built, tests are skipped, or fail in CI."""
    if sys.version_info >= (3, 14):
        pytest.skip("numpy and numcodecs of zarr-python 2 have no wheels for Python 3.14 and newer")
    try:
        return python_with_zarr2()
    except Zarr2MissingError as error:
        if os.environ.get("CI"):
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def zarr2(zarr2_python: Path) -> Iterator[Zarr2]:
    process = Zarr2(zarr2_python)
    yield process
    process.close()
