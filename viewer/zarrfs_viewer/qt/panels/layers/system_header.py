"""The header of the picture: the coordinate system in which the images are displayed, with a choice of all."""

from __future__ import annotations

from PyQt6.QtWidgets import QComboBox, QHBoxLayout, QSizePolicy, QWidget

from zarrfs.ngff import CoordinateSystem
from zarrfs_viewer.analysis.readout import short_unit
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import PlainLabel, plain, plain_name, tooltip
from zarrfs_viewer.qt.support.widgets import ignore_wheel_unless_focused

__all__ = ["SystemHeader"]

TOOLTIP = "The coordinate system of positions, measurements, scale bar and pictures"


class SystemHeader(QWidget):
    """Shows and changes the coordinate system. It is hidden for images that have only one.

    Attributes:
        systems: the coordinate systems of the image or scene.
        axes: the axes of the system with their units.
    """

    def __init__(self, session: Session, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.systems = QComboBox()
        self.systems.setAccessibleName("Coordinate system")
        self.systems.setToolTip(tooltip(TOOLTIP))
        self.systems.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self.systems.setMinimumContentsLength(12)
        self.axes = PlainLabel()
        self.axes.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        ignore_wheel_unless_focused(self.systems)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(8, 2, 8, 2)
        layout.addWidget(PlainLabel("Coordinate system"))
        layout.addWidget(self.systems)
        layout.addWidget(self.axes, 1)
        self.hide()
        self.systems.activated.connect(self._choose)
        session.image_changed.connect(self.show_system)
        session.system_refused.connect(self.show_system)

    def show_system(self) -> None:
        """Show the coordinate system of the displayed image."""
        dataset, image = self._session.dataset, self._session.image
        coordinates = None if dataset is None or image is None else dataset.coordinates
        systems = () if coordinates is None else coordinates.systems
        self.setVisible(bool(systems))
        if dataset is None or coordinates is None:
            return
        self.systems.clear()
        for reference in systems:
            place = f" of {reference.path}" if reference.path else ""
            self.systems.addItem(plain_name(f"{reference.name}{place}"), reference)
        shown = dataset.shown_system
        if shown is not None and shown in systems:
            self.systems.setCurrentIndex(systems.index(shown))
            self.axes.setText(plain(_axes_text(coordinates.graph.systems[shown])))

    def _choose(self, number: int) -> None:
        self._session.show_system(self.systems.itemData(number))


def _axes_text(system: CoordinateSystem) -> str:
    """Return the axes of a system with their units."""
    axes = (f"{axis.name} [{short_unit(axis.unit)}]" if axis.unit else axis.name for axis in system.axes)
    return ", ".join(axes)
