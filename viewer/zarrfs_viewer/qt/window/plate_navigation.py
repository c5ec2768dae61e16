"""Plates in the centre of the window: the overview while no well is displayed, and the strip of fields below a well."""

from __future__ import annotations

from PyQt6.QtCore import QObject
from PyQt6.QtWidgets import QBoxLayout, QStackedWidget

from zarrfs_viewer.qt.panels.plate_overview import FieldStrip, PlateOverview
from zarrfs_viewer.qt.panels.plate_panel import PlatePanel
from zarrfs_viewer.qt.session import Session

__all__ = ["PlateNavigation"]

IMAGE_PAGE = 1
"""The page of the stack with the image. The field strip is inserted below the picture."""


class PlateNavigation(QObject):
    """Adds the overview as a page of the window's stack, and switches between the overview and the image."""

    def __init__(self, session: Session, plate: PlatePanel, stack: QStackedWidget) -> None:
        super().__init__(stack)
        self._session = session
        self._plate = plate
        self._stack = stack
        self.overview = PlateOverview(plate)
        self.strip = FieldStrip(session, plate)
        stack.addWidget(self.overview)
        page = stack.widget(IMAGE_PAGE)
        layout = page.layout() if page is not None else None
        if isinstance(layout, QBoxLayout):
            layout.insertWidget(1, self.strip)
        session.dataset_changed.connect(self._show_dataset)
        session.image_changed.connect(self._show_image)
        plate.overview_requested.connect(self.show_overview)
        plate.image_selected.connect(lambda _: self._show_picture())

    @property
    def is_plate(self) -> bool:
        """Whether the open dataset is a plate."""
        return self._session.dataset is not None and self._session.dataset.plate is not None

    def toggle_overview(self) -> None:
        """Show the overview of the plate, or the displayed well again."""
        if not self.is_plate:
            self._session.show_message("The open data set is not a plate.")
        elif self._stack.currentWidget() is not self.overview:
            self.show_overview()
        elif self._session.image is not None:
            self._show_picture()

    def show_overview(self) -> None:
        """Show the overview of the plate."""
        if self.is_plate:
            self._stack.setCurrentWidget(self.overview)
            self.overview.show_plate()

    def step(self, rows: int, columns: int) -> None:
        """Display the next well in a direction."""
        if self.is_plate:
            self._plate.step(rows, columns)
        else:
            self._session.show_message("The open data set is not a plate.")

    def _show_dataset(self) -> None:
        if not self.is_plate:
            self.strip.hide()

    def _show_image(self) -> None:
        if self.is_plate and self._session.image is None:
            self.strip.hide()
            self.show_overview()

    def _show_picture(self) -> None:
        self._stack.setCurrentIndex(IMAGE_PAGE)
