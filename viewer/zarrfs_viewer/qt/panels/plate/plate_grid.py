"""The grid of wells: the size of its cells, the cells that are visible, and the contrast that its thumbnails share."""

from __future__ import annotations

from collections.abc import Iterator

from PyQt6.QtCore import QSize
from PyQt6.QtWidgets import QTableView

from zarrfs.errors import ZarrError
from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.qt.panels.thumbnails import THUMBNAIL_SIZE
from zarrfs_viewer.rendering.thumbnail import Limits, own_limits, shared_limits

__all__ = ["PlateContrast", "first_field", "fit_cells", "visible_cells"]

CELL_MARGIN = 4
MIN_HEADER_SIZE = 12
MAX_CONTRAST_WELLS = 6
"""The contrast limits of all thumbnails are those of this number of wells, spread over the plate."""


class PlateContrast:
    """The contrast limits of the thumbnails of a plate, which are computed once, from some of its wells."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._limits: Limits | None = None

    def limits(self) -> Limits:
        """Return the limits. The first call blocks. Wells that cannot be read are ignored."""
        if self._limits is None:
            self._limits = shared_limits(self._well_limits())
        return self._limits

    @property
    def computed_limits(self) -> Limits:
        """The limits if they have been computed, otherwise none. Does not block."""
        return self._limits or ()

    def _well_limits(self) -> Iterator[Limits]:
        plate = self._dataset.plate
        wells = plate.wells if plate is not None else ()
        count = min(len(wells), MAX_CONTRAST_WELLS)
        for number in range(count):
            well = wells[number * (len(wells) - 1) // max(1, count - 1)]
            try:
                image = self._dataset.open_image(first_field(self._dataset, well.path))
                yield own_limits(image, THUMBNAIL_SIZE)
            except (ZarrError, ValueError):
                continue


def first_field(dataset: Dataset, well: str) -> str:
    """Return the path of the first field of a well. Blocks. Raises ValueError if the well has no field."""
    fields = dataset.fields(well)
    if not fields:
        raise ValueError(f"well {well} has no field of view")
    return fields[0].path


def fit_cells(view: QTableView, minimum: int, maximum: int) -> None:
    """Give all cells one size, so that the whole grid is visible if the size is at least ``minimum``."""
    model, rows, columns = view.model(), view.verticalHeader(), view.horizontalHeader()
    if model is None or rows is None or columns is None or not model.rowCount() or not model.columnCount():
        return
    frame = 2 * view.frameWidth() + 2
    width = view.width() - frame - rows.sizeHint().width()
    height = view.height() - frame - columns.sizeHint().height()
    size = min(max(min(width // model.columnCount(), height // model.rowCount()), minimum), maximum)
    for header in (rows, columns):
        header.setMinimumSectionSize(min(size, MIN_HEADER_SIZE))
        header.setDefaultSectionSize(size)
    view.setIconSize(QSize(size - CELL_MARGIN, size - CELL_MARGIN))


def visible_cells(view: QTableView) -> Iterator[tuple[int, int]]:
    """Yield (row, column) of the cells that are visible."""
    model, viewport = view.model(), view.viewport()
    if model is None or viewport is None:
        return
    last_row, last_column = model.rowCount() - 1, model.columnCount() - 1
    bottom, right = view.rowAt(viewport.height() - 1), view.columnAt(viewport.width() - 1)
    for row in range(max(0, view.rowAt(0)), (last_row if bottom < 0 else bottom) + 1):
        for column in range(max(0, view.columnAt(0)), (last_column if right < 0 else right) + 1):
            yield row, column
