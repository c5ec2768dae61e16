"""Pixels as images of Qt, and as PNG files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QBuffer, QIODevice
from PyQt6.QtGui import QImage

from zarrfs.errors import StoreError
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.rendering.compose import Pixels

__all__ = ["to_image", "write_png"]


def to_image(pixels: Pixels) -> QImage:
    """Return a view of opaque pixels of the shape (height, width). The caller keeps the array alive."""
    height, width = pixels.shape
    data: Any = pixels.data
    return QImage(data, width, height, width * 4, QImage.Format.Format_RGB32)


def write_png(file: Path, pixels: Pixels) -> None:
    """Write C-contiguous pixels as an 8-bit RGB PNG, replacing the file atomically. Raises StoreError.

    Blocks. Can be called from any thread.
    """
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    if not to_image(pixels).save(buffer, "PNG"):
        raise StoreError(f"{file} cannot be written: {pixels.shape} pixels do not fit into memory")
    with replacing(file) as temporary:
        temporary.write_bytes(buffer.data().data())
