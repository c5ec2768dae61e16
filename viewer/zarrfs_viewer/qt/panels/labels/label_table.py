"""The table of the labels of a label image: select a label, show only it, or move the picture to it."""

from __future__ import annotations

from PyQt6.QtCore import QModelIndex, QSortFilterProxyModel, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QShowEvent
from PyQt6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QComboBox,
    QHBoxLayout,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.analysis.label_table import LabelRow, LabelTable, label_position, label_table, table_csv
from zarrfs_viewer.analysis.readout import Readout
from zarrfs_viewer.display.overlay import level_map, match_axes, translate_settings
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.qt.panels.labels.label_table_model import LabelTableModel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_name
from zarrfs_viewer.qt.support.widgets import (
    ConfirmingTableView,
    copy_to_clipboard,
    ignore_wheel_unless_focused,
    search_box,
)

__all__ = ["LabelTablePanel"]

COUNT_DELAY_MILLISECONDS = 300
"""The labels are counted when the position has not changed for this long."""


class LabelTablePanel(QWidget):
    """The labels of one label image, counted on a worker thread while the panel is visible.

    Signals:
        position_selected: (position) the user wants to see a position, in data coordinates of the displayed image.
    """

    position_selected = pyqtSignal(tuple)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._source: tuple[object, ...] | None = None
        self._is_selecting = False
        self.model = LabelTableModel()
        self.filtered = QSortFilterProxyModel(self)
        self.filtered.setSourceModel(self.model)
        self.filtered.setFilterKeyColumn(-1)
        self.filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.view = ConfirmingTableView()
        self.view.setAccessibleName("Labels")
        self.view.setModel(self.filtered)
        self.view.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.view.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        header = self.view.verticalHeader()
        if header is not None:
            header.hide()
            header.setDefaultSectionSize(22)
        columns = self.view.horizontalHeader()
        if columns is not None:
            columns.setSectionsClickable(True)
            columns.setSortIndicatorShown(True)
            columns.setSortIndicator(0, Qt.SortOrder.AscendingOrder)
            columns.sortIndicatorChanged.connect(self.model.sort)
        self.images = QComboBox()
        self.images.setAccessibleName("Label image of the table")
        ignore_wheel_unless_focused(self.images)
        self.search = search_box("Find label or property")
        self.single = QCheckBox("Only the selected label")
        self.go_to = QPushButton("Go to")
        self.copy = QPushButton("Copy CSV")
        self.title = PlainLabel("", wrap=True)
        row = QHBoxLayout()
        row.addWidget(self.go_to)
        row.addWidget(self.copy)
        row.addStretch(1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.images)
        layout.addWidget(self.search)
        layout.addWidget(self.view)
        layout.addWidget(self.single)
        layout.addLayout(row)
        layout.addWidget(self.title)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(COUNT_DELAY_MILLISECONDS)
        self._timer.timeout.connect(self._count)
        self._connect()

    def _connect(self) -> None:
        self.search.textChanged.connect(self.filtered.setFilterFixedString)
        self.images.activated.connect(lambda _: self._timer.start(0))
        selection = self.view.selectionModel()
        if selection is not None:
            selection.currentRowChanged.connect(lambda index, _: self._select_row(index))
        self.view.doubleClicked.connect(lambda _: self.show_selected())
        self.view.confirmed.connect(self.show_selected)
        self.go_to.clicked.connect(lambda _: self.show_selected())
        self.copy.clicked.connect(lambda _: self.copy_csv())
        self.single.toggled.connect(lambda _: self._apply(self.selected()))
        self._session.image_changed.connect(self._show_images)
        self._session.overlays_changed.connect(self._show_images)
        self._session.settings_changed.connect(self._schedule)
        self._session.settings_changed.connect(self._follow_settings)

    # -- the label image and its table -------------------------------------------------------------------------

    @property
    def number(self) -> int:
        """The number of the label image of the table, in ``DisplaySettings.labels``."""
        return max(0, self.images.currentIndex())

    @property
    def labels(self) -> Image | None:
        """The label image of the table, or None."""
        images = self._session.label_images
        return images[self.number] if self.number < len(images) else None

    def selected(self) -> int | None:
        """Return the label of the selected row, or None."""
        row = self._selected_row()
        return None if row is None else row.value

    def _selected_row(self) -> LabelRow | None:
        index = self.view.currentIndex()
        return self.model.row(self.filtered.mapToSource(index).row()) if index.isValid() else None

    def _show_images(self) -> None:
        """List the label images, and count the labels of the one that was added last."""
        images = self._session.label_images
        self.images.clear()
        for image in images:
            self.images.addItem(plain_name(image.name or "labels"))
        self.images.setCurrentIndex(len(images) - 1)
        self.images.setVisible(len(images) > 1)
        self._source = None
        self.model.show_table(None, None)
        self.title.setText("")
        self.single.setChecked(False)
        self._schedule()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self._schedule()

    def _schedule(self) -> None:
        if self.labels is not None and self.isVisible():
            self._timer.start(COUNT_DELAY_MILLISECONDS)

    def _count(self) -> None:
        """Count the labels on a worker thread, if the table is of another image or position."""
        labels, image, settings = self.labels, self._session.image, self._session.settings
        if labels is None or image is None or settings is None or not self.isVisible():
            return
        translated = translate_settings(settings, image, labels)
        if translated is None:
            return
        source = self._source_of(labels, translated.position, translated.displayed)
        if source is not None and source == self._source:
            return
        position, displayed = translated.position, translated.displayed
        self.title.setText("Counting the labels...")
        self._session.run_for_image(
            lambda: label_table(labels, position, displayed),
            lambda table: self._show_table(labels, table, position, displayed),
            "label table",
        )

    def _source_of(
        self, labels: Image, position: tuple[float, ...], displayed: tuple[int, int]
    ) -> tuple[object, ...] | None:
        """Return the key of the table: the image and the position along the axes that are not counted."""
        table = self.model.table
        if table is None:
            return None
        indices = (labels.level_index(table.level, axis, value) for axis, value in enumerate(position))
        fixed = tuple(index for axis, index in enumerate(indices) if axis not in table.axes)
        return labels.uid, fixed, displayed if table.scope == "slice" else None

    def _show_table(
        self, labels: Image, table: LabelTable, position: tuple[float, ...], displayed: tuple[int, int]
    ) -> None:
        if labels is not self.labels:
            return
        selected = self.selected()
        self._is_selecting = True
        self.model.show_table(table, labels.image_label)
        self.view.resizeColumnsToContents()
        self._is_selecting = False
        self._source = self._source_of(labels, position, displayed)
        count = f"{len(table.rows)} label{'s' if len(table.rows) != 1 else ''}"
        self.title.setText(
            plain(
                f"{'The first ' if table.is_truncated else ''}{count} in "
                f"{'the volume' if table.scope == 'volume' and len(table.axes) > 2 else 'the slice'}, "
                f"counted in level {table.level}"
            )
        )
        if selected is not None:
            self.select(selected)

    # -- selection ---------------------------------------------------------------------------------------------

    def pick(self, values: Readout | None) -> None:
        """Select the label at a clicked point. A click outside of all labels clears the selection."""
        labels = values.labels if values is not None else ()
        if self.labels is None or not labels:
            return
        name = self.labels.name
        found = next((label.value for label in labels if label.name == name and label.value), None)
        self.select(found)

    def select(self, value: int | None) -> None:
        """Select a label in the table and highlight it in the picture; None clears the selection."""
        self._show_row(value)
        self._apply(value)

    def _show_row(self, value: int | None) -> None:
        """Select the row of a label."""
        index = (
            self.filtered.mapFromSource(self.model.index_of(value)) if value is not None else QModelIndex()
        )
        self._is_selecting = True
        self.view.setCurrentIndex(index)
        if index.isValid():
            self.view.scrollTo(index)
        self._is_selecting = False

    def _select_row(self, index: QModelIndex) -> None:
        row = self.model.row(self.filtered.mapToSource(index).row()) if index.isValid() else None
        if not self._is_selecting and row is not None:
            self._apply(row.value)

    def _follow_settings(self) -> None:
        """Select the label that is highlighted, which undo and redo change too."""
        settings = self._session.settings
        if settings is None or self.number >= len(settings.labels) or not self.isVisible():
            return
        labels = settings.labels[self.number]
        if labels.selected in (None, labels.highlighted):
            self.single.blockSignals(True)
            self.single.setChecked(labels.selected is not None)
            self.single.blockSignals(False)
        if labels.highlighted != self.selected():
            self._show_row(labels.highlighted)

    def _apply(self, value: int | None) -> None:
        single = value if self.single.isChecked() else None
        self._session.change_labels(self.number, highlighted=value, selected=single)

    def show_selected(self) -> None:
        """Move the picture to the selected label."""
        row, table, labels = self._selected_row(), self.model.table, self.labels
        if row is None or table is None or labels is None:
            self._session.show_message("Select a label in the table first.")
            return
        self._session.run_for_image(
            lambda: label_position(labels, table, row),
            lambda position: self._emit_position(labels, position),
            "label position",
        )

    def _emit_position(self, labels: Image, position: tuple[float, ...]) -> None:
        """Emit the position in data coordinates of the displayed image."""
        image, settings = self._session.image, self._session.settings
        if image is None or settings is None:
            return
        result = list(settings.position)
        for axis, front in enumerate(match_axes(image, labels)):
            if front is not None and front != image.channel_axis:
                factor, offset = level_map(image, labels, 0, front, axis)
                result[front] = (position[axis] - offset) / factor
        self.position_selected.emit(tuple(result))

    def copy_csv(self) -> None:
        """Copy the table to the clipboard as CSV."""
        table, labels = self.model.table, self.labels
        if table is not None and labels is not None:
            copy_to_clipboard(table_csv(labels, table))
            self._session.show_message("Copied the table of labels as CSV.")
