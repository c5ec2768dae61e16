"""The settings of the label images that are drawn over the image."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from PyQt6.QtCore import QSignalBlocker, Qt, pyqtSignal
from PyQt6.QtWidgets import QCheckBox, QFormLayout, QGroupBox, QSlider, QSpinBox, QVBoxLayout, QWidget

from zarrfs_viewer.qt.panels.labels.label_table import LabelTablePanel
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.plain_text import PlainLabel, button_text, plain, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused, return_focus_on_enter
from zarrfs_viewer.state.view_state import LabelsSettings

__all__ = ["Labels", "LabelsPanel"]

NO_LABEL = 0
MAX_LABEL = (1 << 31) - 1


class LabelsRow(QGroupBox):
    """The controls of one label image.

    Signals:
        changed: (settings) a dictionary of the settings that the user changed.
    """

    changed = pyqtSignal(dict)

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(button_text(name), parent)
        self.setToolTip(tooltip(name))
        name = plain_name(name)
        self._settings: LabelsSettings | None = None
        self.visible = QCheckBox("Visible")
        self.visible.setAccessibleName(plain(f"Show {name}"))
        self.opacity = QSlider(Qt.Orientation.Horizontal)
        self.opacity.setRange(0, 100)
        self.opacity.setAccessibleName(plain(f"Opacity of {name}"))
        self.contour = QSpinBox()
        self.contour.setRange(0, 20)
        self.contour.setSpecialValueText("Filled")
        self.contour.setSuffix(" px")
        self.contour.setAccessibleName(plain(f"Contour width of {name}"))
        self.selected = QSpinBox()
        self.selected.setRange(NO_LABEL, MAX_LABEL)
        self.selected.setSpecialValueText("All labels")
        self.selected.setKeyboardTracking(False)
        self.selected.setAccessibleName(plain(f"Selected label of {name}"))
        ignore_wheel_unless_focused(self.opacity, self.contour, self.selected)
        return_focus_on_enter(self.contour, self.selected)
        form = QFormLayout(self)
        form.addRow(self.visible)
        form.addRow("Opacity", self.opacity)
        form.addRow("Contour", self.contour)
        form.addRow("Label", self.selected)
        self.visible.toggled.connect(lambda on: self._emit_changed(visible=on))
        self.opacity.valueChanged.connect(lambda value: self._emit_changed(opacity=value / 100))
        self.contour.valueChanged.connect(lambda value: self._emit_changed(contour=value))
        self.selected.valueChanged.connect(lambda value: self._emit_changed(selected=value or None))

    def show_settings(self, settings: LabelsSettings) -> None:
        """Display these settings without emitting signals."""
        if settings is self._settings:  # another slice: the row is not drawn again
            return
        self._settings = settings
        with QSignalBlocker(self):
            self.visible.setChecked(settings.visible)
            self.opacity.setValue(round(settings.opacity * 100))
            self.contour.setValue(settings.contour)
            self.selected.setValue(min(max(settings.selected or NO_LABEL, NO_LABEL), MAX_LABEL))

    def _emit_changed(self, **changes: Any) -> None:
        self.changed.emit(changes)


class LabelsPanel(QWidget):
    """The settings of all label images, and the table of the labels of one of them.

    Signals:
        changed: (number of the label image, dictionary of changed settings).
    """

    changed = pyqtSignal(int, dict)

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = LabelTablePanel(session)
        self.rows: list[LabelsRow] = []
        self._none = PlainLabel("This image has no labels.")
        self._none.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._column = QVBoxLayout(self)
        self._column.addWidget(self._none)
        self._column.addWidget(self.table, 1)

    def show_labels(self, names: tuple[str, ...], settings: tuple[LabelsSettings, ...]) -> None:
        """Create the controls of these label images."""
        for row in self.rows:
            row.setParent(None)
            row.deleteLater()
        self.rows = []
        for number, name in enumerate(names[: len(settings)]):
            row = LabelsRow(name)
            row.changed.connect(partial(self.changed.emit, number))
            self._column.insertWidget(number, row)
            self.rows.append(row)
        self._none.setVisible(not self.rows)
        self.table.setVisible(bool(self.rows))
        self.show_settings(settings)

    def show_settings(self, settings: tuple[LabelsSettings, ...]) -> None:
        """Display settings that were changed elsewhere, without emitting signals."""
        for row, entry in zip(self.rows, settings, strict=False):
            row.show_settings(entry)


class Labels(Panel):
    """The tab with the settings of the label images."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session = context.session
        self.panel = LabelsPanel(session)
        context.tabs.addTab(self.panel, button_text("Labels"))
        self.panel.changed.connect(lambda number, changes: session.change_labels(number, **changes))
        self.panel.table.position_selected.connect(context.find(Position).go_to)
        context.panes.clicked.connect(self.panel.table.pick)
        session.image_changed.connect(self._show_images)
        session.overlays_changed.connect(self._show_images)
        session.labels_changed.connect(self._show_settings)

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec(
                "labels",
                "&View",
                "La&bels",
                "T",
                self.show_all,
                True,
                place=230,
                synonyms="segmentation mask",
            ),
        )

    def show_all(self, on: bool) -> None:
        """Show or hide all label images."""
        settings = self._session.settings
        for number in range(len(settings.labels) if settings is not None else 0):
            self._session.change_labels(number, visible=on)

    def _show_images(self) -> None:
        """Show the settings of the label images of the session."""
        settings = self._session.settings
        if settings is None:
            self.panel.show_labels((), ())
            return
        names = tuple(image.name or "labels" for image in self._session.label_images)
        self.panel.show_labels(names, settings.labels)

    def _show_settings(self) -> None:
        settings = self._session.settings
        if settings is not None:
            self.panel.show_settings(settings.labels)
