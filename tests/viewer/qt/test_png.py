"""Tests of PNG files of pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtGui import QImage
from zarrfs_viewer.qt.support.png import write_png

from zarrfs.errors import StoreError


@pytest.mark.parametrize("shape", [(7, 5), (1, 1), (300, 2)])
def test_a_png_file_has_the_colors_of_the_pixels(shape: tuple[int, int], tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 1 << 24, shape, np.uint32)
    write_png(tmp_path / "a.png", values | np.uint32(0xFF000000))
    found = QImage(str(tmp_path / "a.png"))
    assert (found.height(), found.width()) == shape
    assert not found.hasAlphaChannel()
    colors = [[found.pixel(column, row) & 0xFFFFFF for column in range(shape[1])] for row in range(shape[0])]
    np.testing.assert_array_equal(colors, values)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.png"]


def test_a_png_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written: No such file"):
        write_png(tmp_path / "missing" / "a.png", np.zeros((2, 2), np.uint32))
    assert list(tmp_path.iterdir()) == []
