"""The values of level 0 around the pointer, as a small table."""

from __future__ import annotations

from PyQt6.QtCore import QTimer
from PyQt6.QtGui import QFont, QFontMetrics, QResizeEvent
from PyQt6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from zarrfs_viewer.analysis.neighbourhood import Neighbourhood, read_neighbourhood
from zarrfs_viewer.analysis.readout import format_value
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_lines

__all__ = ["NeighbourhoodPanel"]

ROWS, COLUMNS = 9, 5
INTERVAL_MILLISECONDS = 50
MIN_SECTION_PIXELS = 12
CELL_MARGIN_PIXELS = 12
"""The horizontal space of a cell that is not available to its text."""
HINT = "Point at the picture: the table shows the values of level 0 around the pointer, at any zoom."


class NeighbourhoodTable(QTableWidget):
    """A table that fills its area with rows and columns of equal size, which are never smaller than their texts. If it
    has scroll bars, the current cell is in the centre as far as possible.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.setHorizontalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        self.setVerticalScrollMode(QTableWidget.ScrollMode.ScrollPerPixel)
        self._text_width = MIN_SECTION_PIXELS
        for header in (self.horizontalHeader(), self.verticalHeader()):
            if header is not None:
                header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
                header.setMinimumSectionSize(MIN_SECTION_PIXELS)

    def fit(self, text_width: int) -> None:
        """Make all columns wide enough for texts of this width in pixels."""
        self._text_width = text_width
        self._fit()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        # QHeaderView.Stretch would change sections by a pixel later, and the current cell could leave the viewport.
        viewport, item = self.viewport(), self.currentItem()
        if viewport is None or item is None:
            return
        _fill(self.horizontalHeader(), viewport.width(), self._text_width)
        _fill(self.verticalHeader(), viewport.height(), MIN_SECTION_PIXELS)
        self.updateGeometries()  # otherwise the scroll bars still have the former range
        self.scrollToItem(item, QTableWidget.ScrollHint.PositionAtCenter)


def _fill(header: QHeaderView | None, length: int, minimum: int) -> None:
    """Divide a length in pixels into sections that differ by at most one pixel and have at least the minimal size."""
    if header is not None:
        size, larger = divmod(max(length, header.count() * minimum), header.count())
        for section in range(header.count()):
            header.resizeSection(section, size + (section < larger))


class NeighbourhoodPanel(QWidget):
    """Reads the values on a worker thread while the panel is visible, at most once per ``INTERVAL_MILLISECONDS``."""

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._point: tuple[float, float] | None = None
        self._is_reading = False
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(INTERVAL_MILLISECONDS)
        self._timer.timeout.connect(self._read)
        self.title = PlainLabel(HINT, wrap=True)
        self.title.setAccessibleName("Values around the pointer")
        self.table = NeighbourhoodTable()
        self.table.setAccessibleName("Values of level 0")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.title)
        layout.addWidget(self.table, 1)
        session.settings_changed.connect(self._update)
        session.image_changed.connect(self._forget)

    def point(self, position: tuple[float, float] | None) -> None:
        """Show the values around a point of the main pane. With None (outside of it) the last values remain."""
        if position is not None:
            self._point = position
            self._update()

    def _forget(self) -> None:
        self._point = None
        self._clear(HINT)

    def _clear(self, reason: str) -> None:
        """Show no values, and why."""
        self.table.setRowCount(0)
        self.table.setColumnCount(0)
        self.title.setText(plain_lines(reason))

    def _update(self) -> None:
        if self.isVisible() and self._point is not None and not self._timer.isActive():
            self._timer.start()

    def _read(self) -> None:
        image, settings, point = self._session.image, self._session.settings, self._point
        if image is None or settings is None or point is None:
            return
        if self._is_reading:
            self._timer.start()  # the store is slow: the newest point is read when the running read has completed
            return
        self._is_reading = True

        def done(found: Neighbourhood | None) -> None:
            self._is_reading = False
            if found is not None and self._session.image is image:
                self.show_values(found)

        def failed(error: Exception) -> None:
            self._is_reading = False
            self._clear(f"The values cannot be read: {error}")

        self._session.worker.submit(
            lambda: read_neighbourhood(image, settings, *point, (ROWS, COLUMNS)),
            done,
            failed,
            "neighbourhood",
        )

    def show_values(self, found: Neighbourhood) -> None:
        """Show values. The pixel at the pointer is bold."""
        rows, columns = found.values.shape[:2]
        name = f"{found.name}, " if found.name else ""
        self.title.setText(
            plain_lines(f"{name}row {found.center[0]:,}, column {found.center[1]:,} of level 0")
        )
        self.table.setRowCount(rows)
        self.table.setColumnCount(columns)
        self.table.setVerticalHeaderLabels([plain(found.first[0] + row) for row in range(rows)])
        self.table.setHorizontalHeaderLabels([plain(found.first[1] + column) for column in range(columns)])
        bold = QFont(self.table.font())
        bold.setBold(True)
        texts = [[format_value(found.value(row, column)) for column in range(columns)] for row in range(rows)]
        for row in range(rows):
            for column in range(columns):
                item = QTableWidgetItem(plain_lines(texts[row][column]))
                self.table.setItem(row, column, item)
                if (found.first[0] + row, found.first[1] + column) == found.center:
                    item.setFont(bold)
                    self.table.setCurrentItem(item)
        width = max(QFontMetrics(bold).horizontalAdvance(text) for line in texts for text in line)
        self.table.fit(width + CELL_MARGIN_PIXELS)
