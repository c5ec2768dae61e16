"""The values of an array that is not a picture: a number, a curve, and a table."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
from PyQt6.QtCore import QAbstractTableModel, QModelIndex, QRect, Qt
from PyQt6.QtGui import QPainter
from PyQt6.QtWidgets import (
    QDoubleSpinBox,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QSplitter,
    QStyle,
    QStyleOptionHeader,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.analysis.value_pages import ValuePage, curve, page_csv, page_rows, read_page
from zarrfs_viewer.images.reading import SourceArray
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.number_box import NumberBox
from zarrfs_viewer.qt.support.plain_text import PlainLabel, html_text, plain, plain_lines, plain_name, tooltip
from zarrfs_viewer.qt.support.plots import LazyPlot, with_pyqtgraph
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard, return_focus_on_enter

__all__ = ["ValuesView"]

MAX_NUMBER = 2000
"""The maximum number of characters of the value of an array of rank 0."""
MEASURED_ROWS = 40
"""The widths of columns follow from the texts of this number of rows."""
MAX_COLUMN_WIDTH = 320
MAX_MEASURED_CELLS = 1200
"""Measuring a cell takes 20 us: the columns of larger pages have one width, which follows from this number of cells."""
CELL_MARGIN = 14
"""Pixels beside the text of a cell."""
BOX_WIDTH = 84
TEXT_ROLES = frozenset(int(role) for role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole))
"""Qt asks for seven roles of each cell that it paints."""
MAX_LEADING = 8
"""The maximum number of axes with a number box. The index of each further axis is 0."""


class PageHeader(QHeaderView):
    """A header whose sections do not display whether their rows or columns are selected.

    To find that out, ``QHeaderView`` asks the model for each cell of each visible row: 40 ms for 500 columns.
    """

    def __init__(self, orientation: Qt.Orientation, parent: QWidget) -> None:
        super().__init__(orientation, parent)
        self.setSectionsClickable(True)
        self.setDefaultAlignment(Qt.AlignmentFlag.AlignCenter)

    def paintSection(self, painter: QPainter | None, rect: QRect, section: int) -> None:
        model, style = self.model(), self.style()
        if painter is None or model is None or style is None or not rect.isValid():
            return
        option = QStyleOptionHeader()
        self.initStyleOption(option)
        option.rect = rect
        option.section = section
        option.textAlignment = self.defaultAlignment()
        option.text = plain(model.headerData(section, self.orientation()))
        style.drawControl(QStyle.ControlElement.CE_Header, option, painter, self)


class PageModel(QAbstractTableModel):
    """One page of values. Qt asks for the number of rows and columns several times for each cell that it paints."""

    def __init__(self) -> None:
        super().__init__()
        self.page: ValuePage | None = None
        self._row_count = self._column_count = 0

    def show_page(self, page: ValuePage | None) -> None:
        """Display another page."""
        self.beginResetModel()
        self.page = page
        self._row_count, self._column_count = (0, 0) if page is None else (page.row_count, len(page.columns))
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | None = None) -> int:
        return self._row_count if parent is None or not parent.isValid() else 0

    def columnCount(self, parent: QModelIndex | None = None) -> int:
        return self._column_count if parent is None or not parent.isValid() else 0

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if role not in TEXT_ROLES or self.page is None:
            return None
        text = self.page.text(index.row(), index.column())
        if role == Qt.ItemDataRole.ToolTipRole:
            return tooltip(text)
        return plain(text)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if self.page is None or role != Qt.ItemDataRole.DisplayRole:
            return None
        if orientation == Qt.Orientation.Horizontal:
            return plain_name(self.page.columns[section])
        return plain(self.page.first + section)


class ValuesView(QWidget):
    """The values of one array, in pages that are read by a worker thread.

    An array of rank 0 is a number or text, one of rank 1 a curve (if it is numeric) and a table. Of an array of a
    higher rank, the last two axes are the rows and columns of the table.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._array: SourceArray | None = None
        self._name = ""
        self.title = PlainLabel(wrap=True)
        self.title.setAccessibleName("Array")
        self.number = PlainLabel(wrap=True)
        self.number.setAccessibleName("Value")
        self.number.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.number.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        font = self.number.font()
        font.setPointSizeF(2.2 * font.pointSizeF())
        self.number.setFont(font)
        self.plot = LazyPlot("Values of the array")
        self._is_plot_prepared = False
        self.model = PageModel()
        self.table = QTableView()
        self.table.setAccessibleName("Table of values")
        self.table.setModel(self.model)
        self.setFocusProxy(self.table)
        columns = PageHeader(Qt.Orientation.Horizontal, self.table)
        columns.setResizeContentsPrecision(MEASURED_ROWS)
        columns.setMaximumSectionSize(MAX_COLUMN_WIDTH)
        self.table.setHorizontalHeader(columns)
        rows = PageHeader(Qt.Orientation.Vertical, self.table)
        rows.setDefaultSectionSize(self.table.fontMetrics().height() + 6)
        self.table.setVerticalHeader(rows)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.addWidget(self.plot)
        self.splitter.addWidget(self.table)
        self.splitter.setChildrenCollapsible(False)
        self.first = _number_box("First row")
        self.first.valueChanged.connect(lambda _: self._read())
        self._first_title = PlainLabel("From row")
        self.leading = [_number_box(f"Index along axis {axis}") for axis in range(MAX_LEADING)]
        self._leading_title = PlainLabel("Index")
        self.copy = QPushButton("Copy CSV")
        self.copy.clicked.connect(self.copy_csv)
        row = QHBoxLayout()
        for widget in (self._leading_title, *self.leading, self._first_title, self.first):
            row.addWidget(widget)
        for box in self.leading:
            box.valueChanged.connect(lambda _: self._read())
        row.addStretch(1)
        row.addWidget(self.copy)
        layout = QVBoxLayout(self)
        layout.addWidget(self.title)
        layout.addWidget(self.number, 1)
        layout.addWidget(self.splitter, 1)
        layout.addLayout(row)
        self._hide_boxes()  # also before the first array: hidden boxes do not widen the window

    @property
    def array(self) -> SourceArray | None:
        """The displayed array."""
        return self._array

    def show_array(self, array: SourceArray | None, name: str) -> None:
        """Display the values of another array; None displays nothing."""
        self._array, self._name = array, name
        self._session.worker.cancel("values")
        self.model.show_page(None)
        if array is None:
            return
        shape = array.shape
        leading = shape[:-2][:MAX_LEADING]
        rows = 1 if not shape else shape[0] if len(shape) == 1 else shape[-2]
        boxes = [*zip(self.leading, leading, strict=False), (self.first, rows)]
        self._hide_boxes()
        for box, length in boxes:
            box.blockSignals(True)
            box.setRange(0, max(0, length - 1))
            box.setValue(0)
            box.blockSignals(False)
            box.setVisible(box is not self.first or rows > page_rows(array))
        self._leading_title.setVisible(bool(leading))
        self._first_title.setVisible(self.first.isVisibleTo(self))
        self.first.setSingleStep(page_rows(array))
        self.number.setVisible(not shape)
        self.splitter.setVisible(bool(shape))
        self.copy.setVisible(bool(shape))
        self.plot.hide()
        self.number.setText("")
        self.title.setText(plain_lines(f"{name}: {_description(array)}"))
        self._read()

    def _hide_boxes(self) -> None:
        for widget in (*self.leading, self._leading_title, self._first_title, self.first):
            widget.hide()

    def _read(self) -> None:
        array = self._array
        if array is None:
            return
        count = max(0, len(array.shape) - 2)
        leading = (*(int(box.value()) for box in self.leading[:count]), *(0,) * (count - MAX_LEADING))
        first = int(self.first.value())

        def read() -> tuple[ValuePage, npt.NDArray[np.float64] | None]:
            page = read_page(array, leading, first)
            return page, curve(array, page)

        self._session.worker.cancel("values")
        self._session.worker.submit(
            with_pyqtgraph(read) if len(array.shape) == 1 else read,
            lambda result: self._show(array, *result),
            lambda error: self.title.setText(plain_lines(f"{self._name} cannot be read: {error}")),
            "values",
        )

    def _show(self, array: SourceArray, page: ValuePage, values: npt.NDArray[np.float64] | None) -> None:
        self.plot.cancel()
        text = f"{self._name}: {_description(array)}"
        if page.row_count < page.total:
            text += f", rows {page.first:,} to {page.first + page.row_count - 1:,}"
        if page.is_cut:
            text += f", the first {len(page.columns)} columns"
        self.title.setText(plain_lines(text))
        if not array.shape:
            self.number.setText(plain_lines(page.text(0, 0), MAX_NUMBER))
            return
        self.model.show_page(page)
        self._fit_columns(page)
        self.plot.setVisible(values is not None and values.size > 1)
        if values is not None and values.size > 1:
            self.plot.call_when_created(lambda: self._draw(array, page.first, values))

    def _fit_columns(self, page: ValuePage) -> None:
        """Set the widths of the columns."""
        columns, cells = len(page.columns), page.row_count * len(page.columns)
        header = self.table.horizontalHeader()
        if columns * MEASURED_ROWS <= MAX_MEASURED_CELLS or header is None:
            self.table.resizeColumnsToContents()
            return
        step = -(-cells // MAX_MEASURED_CELLS)
        texts = [page.text(*divmod(cell, columns)) for cell in range(0, cells, step)]
        longest = max((*texts, page.columns[-1]), key=len)[:MAX_COLUMN_WIDTH]
        width = self.table.fontMetrics().horizontalAdvance(plain(longest)) + CELL_MARGIN
        header.setDefaultSectionSize(min(width, MAX_COLUMN_WIDTH))

    def _draw(self, array: SourceArray, first: int, values: npt.NDArray[np.float64]) -> None:
        plot = self.plot.plot()
        if not self._is_plot_prepared:
            self._is_plot_prepared = True
            plot.showGrid(x=True, y=True, alpha=0.2)
            plot.setDownsampling(auto=True, mode="peak")
            plot.setClipToView(True)
        names = getattr(array, "dimension_names", None)
        plot.setLabel("bottom", html_text(names[0] if names and names[0] else "index"))
        plot.clear()
        pen = import_module("pyqtgraph").mkPen((90, 140, 255), width=1.2)
        plot.plot(np.arange(first, first + values.size, dtype=np.float64), values, pen=pen, connect="finite")
        # Not ``autoRange``: it measures only what the former range shows, because curves are clipped to the view.
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        plot.setRange(xRange=(first, first + values.size - 1), yRange=(low, high))
        self.splitter.setSizes([600, 400])

    def copy_csv(self) -> None:
        """Copy the selected rows as CSV, or the page if no rows are selected. A worker thread composes the text."""
        page, model = self.model.page, self.table.selectionModel()
        if page is None or model is None:
            return
        selection = model.selection()
        ranges = [selection[number] for number in range(selection.count())]
        rows = sorted({row for part in ranges for row in range(part.top(), part.bottom() + 1)})
        self._session.run_in_worker(
            lambda: page_csv(page, rows if len(rows) > 1 else None), copy_to_clipboard, "values as CSV"
        )


def _description(array: SourceArray) -> str:
    """Return the shape and the data type of an array as text."""
    lengths = " x ".join(f"{length:,}" for length in array.shape) + (
        " values" if len(array.shape) == 1 else ""
    )
    spec = getattr(array, "spec", None)
    kind = spec.data_type.name if spec is not None and array.dtype.names is None else None
    kind = kind or ("fields " + ", ".join(array.dtype.names) if array.dtype.names else str(array.dtype))
    return f"{lengths or 'one value'}, {kind}"


def _number_box(name: str) -> QDoubleSpinBox:
    """Return a box for an index, which may be larger than 32 bits."""
    box = NumberBox()
    box.setDecimals(0)
    box.setAccessibleName(plain(name))
    box.setKeyboardTracking(False)
    box.setFixedWidth(BOX_WIDTH)
    return_focus_on_enter(box)
    return box
