"""Plates in the centre of the window: the overview while no well is displayed, and the strip of fields below a well."""

from __future__ import annotations

from collections.abc import Sequence

from PyQt6.QtCore import Qt
from PyQt6.QtWidgets import QBoxLayout

from zarrfs_viewer.qt.panels.panel import IMAGE_PAGE, Panel, PanelContext
from zarrfs_viewer.qt.panels.plate.plate_overview import FieldStrip, PlateOverview
from zarrfs_viewer.qt.panels.plate.plate_panel import PlatePanel
from zarrfs_viewer.qt.support.actions import ActionSpec

__all__ = ["Plates"]


class Plates(Panel):
    """The dock with the wells of a plate, the overview as a page of the window's stack, and the strip of fields."""

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session = context.session
        self.plate = plate = PlatePanel(session)
        self.dock = context.docks.add("Plate", plate, Qt.DockWidgetArea.LeftDockWidgetArea, "with_data")
        self._stack = stack = context.stack
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
        plate.image_selected.connect(session.open_image)
        plate.image_selected.connect(lambda _: self._show_picture())

    def actions(self) -> Sequence[ActionSpec]:
        return (
            ActionSpec(
                "plate", "&View", "&Plate overview", "W", self.toggle_overview, place=310, needs="plate"
            ),
            ActionSpec(
                "well_left",
                "&Image",
                "Well to the le&ft",
                "Alt+Left",
                lambda: self.step(0, -1),
                place=300,
                needs="plate",
            ),
            ActionSpec(
                "well_right",
                "&Image",
                "Well to the rig&ht",
                "Alt+Right",
                lambda: self.step(0, 1),
                place=310,
                needs="plate",
            ),
            ActionSpec(
                "well_up",
                "&Image",
                "Well ab&ove",
                "Alt+Up",
                lambda: self.step(-1, 0),
                place=320,
                needs="plate",
            ),
            ActionSpec(
                "well_down",
                "&Image",
                "Well belo&w",
                "Alt+Down",
                lambda: self.step(1, 0),
                place=330,
                needs="plate",
            ),
        )

    @property
    def keeps_focus(self) -> bool:
        return self.plate.table.hasFocus()  # the arrow keys select the next well

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
            self.plate.step(rows, columns)
        else:
            self._session.show_message("The open data set is not a plate.")

    def _show_dataset(self) -> None:
        dataset = self._session.dataset
        if not self.is_plate:
            self.strip.hide()
        elif dataset is not None:
            self.plate.show_dataset(dataset)
        if dataset is not None:
            self._context.docks.show_with_data(self.dock, self.is_plate)

    def _show_image(self) -> None:
        if self.is_plate and self._session.image is None:
            self.strip.hide()
            self.show_overview()

    def _show_picture(self) -> None:
        self._stack.setCurrentIndex(IMAGE_PAGE)
