"""The wells of a plate as a grid of thumbnails, with selectors for the acquisition and the field of view.

The grid is displayed in the dock, and large by ``plate_overview``. Both views have the same items.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from PyQt6.QtCore import Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QColor, QIcon, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QTableView,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.images.dataset import Dataset, Field
from zarrfs_viewer.qt.panels.plate.plate_grid import PlateContrast, first_field, fit_cells, visible_cells
from zarrfs_viewer.qt.panels.thumbnails import ThumbnailLoader, placeholder, to_icon
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused
from zarrfs_viewer.rendering.compose import Pixels
from zarrfs_viewer.rendering.thumbnail import ThumbnailValues
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["PlatePanel"]

WELL = Qt.ItemDataRole.UserRole
ALL = -1
MIN_CELL_SIZE, MAX_CELL_SIZE = 16, 72
COLORS_DELAY_MILLISECONDS = 40
"""The thumbnails are drawn with other settings of the channels at most once in this time."""


class PlatePanel(QWidget):
    """The wells of a plate. Metadata and thumbnails are read only for visible wells.

    Attributes:
        channels: the settings with which all thumbnails are drawn; empty until the first one is loaded.

    Signals:
        channels_loaded: the channels of another plate are known, or none.
        image_selected: (path of an image within the plate).
        fields_changed: the fields of another well or acquisition are listed.
        overview_requested: the user wants to see the large overview.
    """

    channels_loaded = pyqtSignal()
    image_selected = pyqtSignal(str)
    fields_changed = pyqtSignal()
    overview_requested = pyqtSignal()

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._dataset: Dataset | None = None
        self._contrast: PlateContrast | None = None
        self.channels: tuple[ChannelSettings, ...] = ()
        self._values: dict[object, ThumbnailValues] = {}
        session.find_channels = self._channels_of
        self._well = ""
        self._fields: tuple[Field, ...] = ()
        self.thumbnails = ThumbnailLoader(
            session.worker, self._show, self._show_error, self, self._show_values
        )
        self._colors_timer = QTimer(self)
        self._colors_timer.setSingleShot(True)
        self._colors_timer.setInterval(COLORS_DELAY_MILLISECONDS)
        self._colors_timer.timeout.connect(self._draw_again)
        self.table = QTableWidget()
        self._views: list[QTableView] = [self.table]
        self.table.setAccessibleName("Wells")
        self.table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.currentItemChanged.connect(lambda item, _: self._select_well(item))
        self.acquisition = QComboBox()
        self.acquisition.setAccessibleName("Acquisition")
        self.field = QComboBox()
        self.field.setAccessibleName("Field of view")
        ignore_wheel_unless_focused(self.acquisition, self.field)
        self.title = PlainLabel()
        row = QHBoxLayout()
        self.overview = QPushButton("Overview")
        for widget in (self.title, self.acquisition, self.field, self.overview):
            row.addWidget(widget)
        self.overview.clicked.connect(lambda _: self.overview_requested.emit())
        row.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.addWidget(self.table, 1)
        layout.addLayout(row)
        self.acquisition.activated.connect(self._fill_fields)
        self.field.activated.connect(lambda _: self._emit_selected())
        self._request_timer = QTimer(self)
        self._request_timer.setSingleShot(True)
        self._request_timer.setInterval(0)
        self._request_timer.timeout.connect(self._request_visible)
        for bar in (self.table.verticalScrollBar(), self.table.horizontalScrollBar()):
            if bar is not None:
                bar.valueChanged.connect(lambda _: self._request_timer.start())

    def show_dataset(self, dataset: Dataset) -> None:
        """Show the wells of a plate."""
        plate = dataset.plate
        if plate is None or dataset is self._dataset:
            return
        self._dataset = dataset
        self._values.clear()
        self.channels = ()
        self.channels_loaded.emit()
        self.thumbnails.clear()
        self.table.blockSignals(True)
        self.table.clear()
        self.table.setRowCount(len(plate.rows))
        self.table.setColumnCount(len(plate.columns))
        self.table.setVerticalHeaderLabels([plain_name(name) for name in plate.rows])
        self.table.setHorizontalHeaderLabels([plain_name(name) for name in plate.columns])
        contrast = self._contrast = PlateContrast(dataset)
        self.thumbnails.find_limits = contrast.limits
        for well in plate.wells:
            item = QTableWidgetItem(placeholder(), "")
            item.setData(WELL, well.path)
            item.setToolTip(tooltip(well.path))
            self.table.setItem(well.row, well.column, item)
        self.table.setCurrentItem(None)
        self.table.blockSignals(False)
        self.acquisition.clear()
        self.acquisition.addItem("All acquisitions", ALL)
        for number, name in plate.acquisitions.items():
            self.acquisition.addItem(plain_name(name or f"Acquisition {number}"), number)
        self.acquisition.setVisible(len(plate.acquisitions) > 1)
        self.field.clear()
        self.field.hide()
        self.title.setText(plain_name(f"{len(plate.wells)} wells"))
        fit_cells(self.table, MIN_CELL_SIZE, MAX_CELL_SIZE)
        self._request_timer.start()

    def _channels_of(self, dataset: Dataset | None) -> tuple[ChannelSettings, ...]:
        """Return the channels of the overview if it displays this dataset, for the first well that is opened."""
        return self.channels if dataset is self._dataset else ()

    @property
    def initial_channels(self) -> tuple[ChannelSettings, ...]:
        """The settings that the metadata of the first loaded well and the shared contrast prescribe."""
        first = next(iter(self._values.values()), None)
        if first is None or self._contrast is None:
            return ()
        limits = self._contrast.computed_limits
        if len(limits) != len(first.channels):
            return first.channels
        return tuple(
            replace(channel, limits=shared or channel.limits)
            for channel, shared in zip(first.channels, limits, strict=True)
        )

    @property
    def dtype_kind(self) -> str:
        """The kind of the NumPy data type of the values."""
        first = next(iter(self._values.values()), None)
        return first.planes[0].dtype.kind if first is not None and first.planes else "u"

    def set_channels(self, channels: tuple[ChannelSettings, ...]) -> None:
        """Draw all thumbnails with these settings. The values are not read again."""
        if channels != self.channels:
            self.channels = channels
            self._colors_timer.start()

    def _draw_again(self) -> None:
        values, channels = dict(self._values), self.channels
        self._session.worker.cancel("plate colours")
        self._session.worker.submit(
            lambda: [(place, each.pixels(channels)) for place, each in values.items()],
            self._show_all,
            self._session.show_error,
            "plate colours",
        )

    def _show_all(self, pictures: Sequence[tuple[object, Pixels]]) -> None:
        for place, pixels in pictures:
            self._show(place, to_icon(pixels))

    def _show_values(self, place: object, values: ThumbnailValues) -> None:
        self._values[place] = values
        if not self.channels and values.channels:
            self.channels = self.initial_channels
            self.channels_loaded.emit()
        self._show(place, to_icon(values.pixels(self.channels)))

    def add_view(self, view: QTableView) -> None:
        """Show the wells also in another view, and load the thumbnails that are visible there."""
        view.setModel(self.table.model())
        self._views.append(view)

    def request_thumbnails(self) -> None:
        """Load the thumbnails that have become visible."""
        self._request_timer.start()

    def open_well(self, row: int, column: int) -> None:
        """Display the first field of a well, or the field with the same number as the displayed one."""
        item = self.table.item(row, column)
        if item is None:
            return
        if item is self.table.currentItem():
            self._select_well(item)
        else:
            self.table.setCurrentItem(item)

    def step(self, rows: int, columns: int) -> None:
        """Display the next existing well in a direction."""
        row, column = self.table.currentRow(), self.table.currentColumn()
        if row < 0 or column < 0:
            row, column = 0, -1 if columns > 0 else 0
        while True:
            row, column = row + rows, column + columns
            if not (0 <= row < self.table.rowCount() and 0 <= column < self.table.columnCount()):
                return
            if self.table.item(row, column) is not None:
                self.open_well(row, column)
                return

    @property
    def dataset(self) -> Dataset | None:
        """The plate, or None."""
        return self._dataset

    def listed_fields(self) -> list[str]:
        """Return the paths of the listed fields of view."""
        return [self.field.itemData(number) for number in range(self.field.count())]

    def select_field(self, number: int) -> None:
        """Display a listed field of view."""
        self.field.setCurrentIndex(number)
        self._emit_selected()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        fit_cells(self.table, MIN_CELL_SIZE, MAX_CELL_SIZE)
        self._request_timer.start()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._request_timer.start()

    def _request_visible(self) -> None:
        dataset = self._dataset
        for view in self._views:
            if dataset is None or not view.isVisible():
                continue
            for row, column in visible_cells(view):
                item = self.table.item(row, column)
                if item is not None:
                    self.thumbnails.request(
                        (row, column), dataset, partial(first_field, dataset, item.data(WELL))
                    )

    def _show(self, place: object, icon: QIcon) -> None:
        item = self._item_at(place)
        if item is not None:
            item.setIcon(icon)

    def _show_error(self, place: object, reason: str) -> None:
        item = self._item_at(place)
        if item is not None:
            item.setToolTip(tooltip(reason))
            item.setBackground(QColor(120, 50, 30))

    def _item_at(self, place: object) -> QTableWidgetItem | None:
        return self.table.item(*place) if isinstance(place, tuple) else None

    # -- selection ---------------------------------------------------------------------------------------------

    def _select_well(self, item: QTableWidgetItem | None) -> None:
        dataset = self._dataset
        if item is None or dataset is None:
            return
        self._well = item.data(WELL)
        well = self._well
        self._session.run_in_worker(lambda: dataset.fields(well), self._show_fields, "fields")

    def _show_fields(self, fields: tuple[Field, ...]) -> None:
        self._fields = fields
        self._fill_fields()

    def _fill_fields(self) -> None:
        """List the fields of the selected acquisition, and keep the index of the selected field."""
        acquisition = self.acquisition.currentData()
        previous_index = max(0, self.field.currentIndex())
        self.field.clear()
        for entry in self._fields:
            if acquisition in (None, ALL) or entry.acquisition in (None, acquisition):
                self.field.addItem(plain_name(f"Field {entry.path.rpartition('/')[2]}"), entry.path)
        self.field.setVisible(self.field.count() > 0)
        self.title.setText(plain_name(self._well))
        if self.field.count():
            self.field.setCurrentIndex(min(previous_index, self.field.count() - 1))
            self.fields_changed.emit()
            self._emit_selected()
        else:
            self.fields_changed.emit()
            self._session.show_message(f"Well {self._well} has no field of view in this acquisition.")

    def _emit_selected(self) -> None:
        path = self.field.currentData()
        if path is not None:
            self.image_selected.emit(path)
