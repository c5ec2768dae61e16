"""The list of named regions of the displayed plane, with their statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PyQt6.QtCore import QSignalBlocker, Qt, pyqtSignal
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QGridLayout,
    QHeaderView,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.analysis.readout import format_value, short_unit
from zarrfs_viewer.analysis.regions import (
    PlaneKey,
    PlaneRegions,
    Region,
    RegionStatistics,
    measure_region,
    regions_csv,
    unique_name,
)
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, button_text, plain, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import copy_to_clipboard
from zarrfs_viewer.state.view_state import DisplaySettings

__all__ = ["RegionsPanel"]

COLUMNS = ("Region", "Channel", "Size", "Mean", "Std", "Min", "Max", "Median")
STATISTICS = ("mean", "std", "minimum", "maximum", "median")
UNITED = ("mean", "std", "min", "max", "median")
"""The columns in the unit of the values."""
MIN_TABLE_HEIGHT = 120


class RegionsPanel(QWidget):
    """The regions of the displayed plane.

    The regions of a plane are those that were drawn on planes with the same axes and size: they remain when another
    slice, field or well is displayed. The regions of other planes appear again with these.

    Attributes:
        selected: the number of the selected region, or None.
        text: the statistics of all regions and channels as CSV; empty while there are none.

    Signals:
        changed: regions were added, removed, renamed or changed, or another one is selected.
        region_selected: (shape) the user selected a region.
    """

    changed = pyqtSignal()
    region_selected = pyqtSignal(object)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._by_plane: dict[PlaneKey, list[Region]] = {}
        self._plane: PlaneKey | None = None
        self._measured: object = None
        self._statistics: list[RegionStatistics] = []
        self.selected: int | None = None
        self.text = ""
        self.title = PlainLabel()
        self.table = QTableWidget(0, len(COLUMNS))
        self.table.setAccessibleName("Statistics of the regions")
        self.table.setHorizontalHeaderLabels(COLUMNS)
        self.table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.table.setMinimumHeight(MIN_TABLE_HEIGHT)
        header = self.table.horizontalHeader()
        if header is not None:
            header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        rows = self.table.verticalHeader()
        if rows is not None:
            rows.hide()
        self.table.itemSelectionChanged.connect(self._select_row)
        self.table.itemChanged.connect(self._rename)
        self.add_button = _button("Add", "Add the drawn shape to the regions (D)")
        self.remove_button = _button("Remove", "Remove the selected region")
        self.load_button = _button(
            "Load...", "Load regions from a file of ImageJ, QuPath, napari or the viewer"
        )
        self.save_button = _button("Save...", "Save the regions as GeoJSON, ImageJ ROI or CSV")
        self.copy_button = _button("Copy table", "Copy the statistics of all regions as CSV")
        self.table_button = _button("Save table...", "Save the statistics of all regions as CSV")
        self.remove_button.clicked.connect(lambda: self.remove(self.selected))
        self.copy_button.clicked.connect(lambda: copy_to_clipboard(self.text))
        buttons = QGridLayout()
        for number, button in enumerate(
            (
                *(self.add_button, self.remove_button, self.load_button, self.save_button),
                *(self.copy_button, self.table_button),
            )
        ):
            buttons.addWidget(button, number // 2, number % 2)  # three columns would widen the panel
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.title)
        layout.addWidget(self.table, 1)
        layout.addLayout(buttons)
        self._show()

    # -- the list ----------------------------------------------------------------------------------------------

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions of the displayed plane."""
        return tuple(self._by_plane.get(self._plane, ())) if self._plane is not None else ()

    @property
    def by_plane(self) -> tuple[PlaneRegions, ...]:
        """The regions of all planes that have some."""
        return tuple((plane, tuple(regions)) for plane, regions in self._by_plane.items() if regions)

    def restore(self, by_plane: Sequence[PlaneRegions]) -> None:
        """Replace the regions of all planes. None is selected."""
        if tuple(by_plane) == self.by_plane:
            return
        self._by_plane = {plane: list(regions) for plane, regions in by_plane}
        if self.selected is not None:
            self.selected = None
            self.region_selected.emit(None)
        self._update()

    def show_plane(self, image: Image | None, settings: DisplaySettings | None) -> None:
        """Show the regions of the displayed plane of an image."""
        plane: PlaneKey | None = None
        if image is not None and settings is not None:
            row, column = settings.displayed
            plane = (
                (image.axes[row].name, image.shape[row]),
                (image.axes[column].name, image.shape[column]),
            )
        if plane != self._plane:
            self._plane = plane
            self.select(None)
        self._measured = None
        self._update()

    def add(self, regions: Sequence[Region], select: bool = False) -> None:
        """Add regions. Their names are made unique. The last one is selected on request."""
        if self._plane is None:
            return
        listed = self._by_plane.setdefault(self._plane, [])
        for region in regions:
            listed.append(Region(unique_name(region.name, [other.name for other in listed]), region.shape))
        if select:
            self.selected = len(listed) - 1
        self._update()

    def replace_shape(self, number: int, shape: Shape) -> None:
        """Change the shape of a region."""
        listed = self._by_plane.get(self._plane, []) if self._plane is not None else []
        if number < len(listed) and listed[number].shape != shape:
            listed[number] = replace(listed[number], shape=shape)
            self._update()

    def remove(self, number: int | None) -> None:
        """Remove a region."""
        listed = self._by_plane.get(self._plane, []) if self._plane is not None else []
        if number is not None and number < len(listed):
            del listed[number]
            self.selected = None
            self.region_selected.emit(None)
            self._update()

    def select(self, number: int | None) -> None:
        """Select a region, or none."""
        if number != self.selected:
            self.selected = number
            self._show()
            self.changed.emit()

    def _select_row(self) -> None:
        rows = {index.row() for index in self.table.selectedIndexes()}
        if len(rows) != 1:
            return
        item = self.table.item(rows.pop(), 0)
        number = None if item is None else item.data(Qt.ItemDataRole.UserRole)
        if number is not None and number != self.selected:
            self.selected = number
            self.remove_button.setEnabled(True)
            self.region_selected.emit(self.regions[number].shape)
            self.changed.emit()

    def _rename(self, item: QTableWidgetItem) -> None:
        if item.column() != 0 or self._plane is None:
            return
        number, name = item.data(Qt.ItemDataRole.UserRole), item.text().strip()
        listed = self._by_plane.get(self._plane, [])
        others = [region.name for other, region in enumerate(listed) if other != number]
        # A long name is displayed elided.
        if number < len(listed) and name and plain_name(listed[number].name) != name:
            listed[number] = replace(listed[number], name=unique_name(name, others))
        self._measured = None
        self._update()

    def _update(self) -> None:
        self.measure()
        self._show()
        self.changed.emit()

    # -- statistics --------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Measure all regions on the displayed slice, unless they have been measured. Returns at once."""
        image, settings, regions = self._session.image, self._session.settings, self.regions
        if image is None or settings is None or not regions:
            self._session.worker.cancel("regions")
            self._measured, self._statistics, self.text = None, [], ""
            return
        # Contrast and colours do not change the values.
        channels = tuple((one.index, one.label, one.component, one.field) for one in settings.channels)
        measured = (image.uid, settings.displayed, settings.position, settings.projection, channels, regions)
        if measured == self._measured:
            return
        self._measured = measured
        level = settings.level_lock or len(image.levels) - 1
        position = [
            (image.axes[axis].name, settings.position[axis])
            for axis in image.slider_axes
            if axis not in settings.displayed
        ]

        def show(statistics: list[RegionStatistics]) -> None:
            self._statistics = statistics
            self.text = regions_csv(statistics, position)
            self._show()

        self._session.worker.cancel("regions")
        self._session.worker.submit(
            lambda: [entry for region in regions for entry in measure_region(image, settings, region, level)],
            show,
            self._session.show_error,
            "regions",
            low_priority=True,
        )

    def _show(self) -> None:
        """Show the regions and their statistics."""
        regions = self.regions
        with QSignalBlocker(self.table):
            self._fill()
        image = self._session.image
        unit = image.value_unit if image is not None else None
        self.table.setHorizontalHeaderLabels(
            [plain_name(f"{name} [{unit}]" if unit and name.lower() in UNITED else name) for name in COLUMNS]
        )
        count = len(regions)
        incomplete = len({entry.region for entry in self._statistics if entry.unreadable})
        text = f"{count} region{'' if count == 1 else 's'}"
        if incomplete:
            text += f"; the values of {incomplete} are incomplete: chunks cannot be read"
        self.title.setText(plain(text))
        self.remove_button.setEnabled(self.selected is not None)
        self.save_button.setEnabled(bool(regions))
        for button in (self.copy_button, self.table_button):
            button.setEnabled(bool(self.text))

    def _fill(self) -> None:
        """Fill the rows of the table: one per region and channel, or one per region until it has been measured."""
        regions = self.regions
        entries: list[tuple[int, RegionStatistics | None]] = []
        for number, region in enumerate(regions):
            own = [entry for entry in self._statistics if entry.region == region.name]
            entries += [(number, entry) for entry in own] or [(number, None)]
        self.table.setRowCount(len(entries))
        current = None
        for row, (number, entry) in enumerate(entries):
            texts = [plain_name(regions[number].name), *(_texts(entry) if entry is not None else ())]
            for column in range(len(COLUMNS)):
                item = QTableWidgetItem(plain(texts[column] if column < len(texts) else ""))
                item.setData(Qt.ItemDataRole.UserRole, number)
                if entry is not None and entry.unreadable:
                    item.setToolTip(tooltip(_incomplete_text(entry)))
                if column:
                    item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                self.table.setItem(row, column, item)
            if number == self.selected and current is None:
                current = row
        if current is None:
            self.table.clearSelection()
            self.table.setCurrentCell(-1, -1)
        else:
            self.table.selectRow(current)


def _texts(entry: RegionStatistics) -> list[str]:
    unit = short_unit(entry.unit) if entry.unit else "px"
    value, suffix = (entry.length, "") if entry.length is not None else (entry.area, "\N{SUPERSCRIPT TWO}")
    size = f"{format_value(value)} {unit}{suffix}"
    values = [plain(format_value(getattr(entry, name))) for name in STATISTICS]
    return [plain_name(entry.channel), plain(size), *values]


def _incomplete_text(entry: RegionStatistics) -> str:
    total = entry.count + entry.nans + entry.unreadable
    return f"{entry.unreadable:,} of {total:,} pixels are missing: their chunks cannot be read"


def _button(text: str, tip: str) -> QPushButton:
    button = QPushButton(button_text(text))
    button.setToolTip(tooltip(tip))
    button.setAccessibleName(plain(tip))
    return button
