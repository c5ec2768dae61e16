"""The tools that draw shapes, their measurements, and the regions with their files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PyQt6.QtWidgets import QVBoxLayout

from zarrfs_viewer.analysis.regions import Region
from zarrfs_viewer.analysis.shapes import Shape, contains
from zarrfs_viewer.export.region_files import SUFFIXES, read_regions, write_regions
from zarrfs_viewer.export.replacing import replacing
from zarrfs_viewer.qt.canvas.canvas import Tool
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.labels.labels_panel import Labels
from zarrfs_viewer.qt.panels.measure.measure_panel import MeasurePanel
from zarrfs_viewer.qt.panels.measure.regions_panel import RegionsPanel
from zarrfs_viewer.qt.panels.panel import Panel, PanelContext
from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.file_dialogs import ask_new_file, ask_open_files
from zarrfs_viewer.qt.support.plain_text import MAX_LINE, button_text, plain

__all__ = ["Measurements"]


class Measurements(Panel):
    """The tab with the measurement of the drawn shape and the regions of the main pane.

    The selected region is the shape of the canvas, which can be changed.
    """

    def __init__(self, context: PanelContext) -> None:
        super().__init__(context)
        session, panes = context.session, context.panes
        self._pane = panes.main
        self._canvas = panes.main.canvas
        self._parent = context.window
        self.measure = MeasurePanel(session)
        context.tabs.addTab(self.measure, button_text("Measure"))
        self.panel = RegionsPanel(session)
        layout = self.measure.layout()
        if isinstance(layout, QVBoxLayout):
            layout.addWidget(self.panel, 1)
        panel, canvas = self.panel, self._canvas
        panel.changed.connect(self._draw)
        panel.region_selected.connect(canvas.show_shape)
        panel.add_button.clicked.connect(lambda _: self.add())
        panel.load_button.clicked.connect(lambda _: self.ask_load())
        panel.save_button.clicked.connect(lambda _: self.ask_save())
        panel.table_button.clicked.connect(lambda _: self.ask_save_table())
        canvas.shape_deselected.connect(lambda: panel.select(None))
        canvas.shape_changed.connect(self._measure)
        canvas.shape_changed.connect(self._change)
        canvas.clicked.connect(self._pick)
        session.image_changed.connect(self._show_image)
        session.axes_changed.connect(self._show_plane)
        session.settings_changed.connect(self._measure_again)

    def actions(self) -> Sequence[ActionSpec]:
        menu = "&Measure"
        tools: tuple[tuple[Tool, str, str], ...] = (
            ("move", "&Move image", "M"),
            ("line", "Line &profile", "P"),
            ("rectangle", "&Rectangle", "R"),
            ("ellipse", "&Ellipse", "O"),
            ("polygon", "Pol&ygon", "Y"),
            ("point", "P&oint", "I"),
        )
        return (
            *(
                ActionSpec(
                    tool,
                    menu,
                    title,
                    key,
                    partial(self.set_tool, tool),
                    tool == "move",
                    "tool",
                    number,
                    needs="image",
                )
                for number, (tool, title, key) in enumerate(tools)
            ),
            ActionSpec(
                "delete_shape",
                menu,
                "&Delete shape",
                "Backspace",
                lambda: self._canvas.show_shape(None),
                place=100,
                needs="image",
            ),
            ActionSpec(
                "copy_csv",
                menu,
                "&Copy results as CSV",
                "Ctrl+Shift+C",
                self.measure.copy_csv,
                place=220,
                needs="image",
            ),
            ActionSpec("add_region", menu, "&Add to regions", "D", self.add, place=110, needs="image"),
            ActionSpec(
                "load_regions",
                menu,
                "Load re&gions...",
                "Ctrl+Alt+O",
                self.ask_load,
                place=200,
                needs="image",
            ),
            ActionSpec(
                "save_regions",
                menu,
                "&Save regions...",
                "Ctrl+Alt+S",
                self.ask_save,
                place=210,
                needs="image",
            ),
        )

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of dragging on the image."""
        self._canvas.set_tool(tool)
        if tool != "move":
            self._context.tabs.setCurrentWidget(self.measure)

    def _measure(self, shape: Shape | None, finished: bool) -> None:
        """Measure a shape of the main pane, unless the user still drags it."""
        if finished:
            state = self._pane.pipeline.state
            self.measure.measure(shape, self._pane.settings, 0 if state is None else state.level)

    def _measure_again(self) -> None:
        """Measure the shape and the regions again: the slice or a channel changed."""
        if self._session.settings is not None and self._canvas.shape is not None:
            self._measure(self._canvas.shape, True)
        self.panel.measure()

    def _show_image(self) -> None:
        self.measure.clear()
        self._show_plane()
        context, settings = self._context, self._session.settings
        if settings is not None and context.tabs.currentWidget() is not self.measure:
            only_labels = not settings.channels and settings.labels
            context.tabs.setCurrentWidget(
                context.find(Labels).panel if only_labels else context.find(Channels).panel
            )

    def add(self) -> None:
        """Add the drawn shape to the regions."""
        shape = self._canvas.shape
        if shape is None or self._canvas.is_drawing:
            self._session.show_message(
                "There is no shape to add. Select a measuring tool and draw a shape first."
            )
        elif self.panel.selected is None:
            number = 1 + sum(region.shape.kind == shape.kind for region in self.panel.regions)
            self.panel.add([Region(f"{shape.kind} {number}", shape)], select=True)

    def _show_plane(self) -> None:
        if self._canvas.shape is None:  # removed, because another image or other axes are displayed
            self.panel.select(None)
        self.panel.show_plane(self._session.image, self._session.settings)

    def _draw(self) -> None:
        """Draw all regions except the selected one, which is the shape of the canvas."""
        self._canvas.show_regions(
            tuple(region for number, region in enumerate(self.panel.regions) if number != self.panel.selected)
        )

    def _change(self, shape: Shape | None, finished: bool) -> None:
        """Apply a change of the shape to the selected region."""
        number = self.panel.selected
        if number is None or not finished:
            return
        if shape is None:
            self.panel.remove(number)
        else:
            self.panel.replace_shape(number, shape)

    def _pick(self, row: float, column: float) -> None:
        """Select the region at a click with a measuring tool."""
        if self._canvas.tool == "move" or self._canvas.shape is not None:
            return
        for number, region in enumerate(self.panel.regions):
            if contains(region.shape, (row, column)):
                self._canvas.show_shape(region.shape)
                self.panel.select(number)
                return

    # -- files -------------------------------------------------------------------------------------------------

    def ask_save(self) -> None:
        """Ask for a file and write the regions to it, in the format of its suffix."""
        regions = self.panel.regions
        if not regions:
            self._session.show_message("There are no regions to save.")
            return
        filters = [plain(f"{title} (*{suffix})") for suffix, title in SUFFIXES.items()]
        name, chosen = ask_new_file(
            self._parent, "Save regions", "regions.geojson", plain(";;".join(filters), MAX_LINE)
        )
        if name:
            file = Path(name)
            if not file.suffix and chosen in filters:
                file = file.with_suffix(list(SUFFIXES)[filters.index(chosen)])
            self.save(file)

    def save(self, file: Path) -> None:
        """Write the regions to a file on a worker thread. Errors are shown."""
        regions = self.panel.regions
        count = "1 region" if len(regions) == 1 else f"{len(regions)} regions"
        self._run(file, lambda: write_regions(file, regions), f"{count} saved to {file}")

    def ask_save_table(self) -> None:
        """Ask for a file and write the statistics of all regions to it as CSV."""
        name, _ = ask_new_file(self._parent, "Save statistics", "regions.csv", "CSV (*.csv)")
        if name:
            self.save_table(Path(name))

    def save_table(self, file: Path) -> None:
        """Write the statistics of all regions to a file on a worker thread. Errors are shown."""
        text = self.panel.text

        def write() -> None:
            with replacing(file) as temporary:
                temporary.write_bytes(text.encode("utf-8"))

        self._run(file, write, f"Saved to {file}")

    def _run(self, file: Path, write: Any, message: str) -> None:
        self._session.run_in_worker(write, lambda _: self._session.show_message(message), f"save {file}")

    def ask_load(self) -> None:
        """Ask for files of regions and add their regions."""
        suffixes = " ".join(f"*{suffix}" for suffix in (*SUFFIXES, ".json"))
        names = ask_open_files(self._parent, "Load regions", plain(f"Regions ({suffixes})"))
        for name in names:
            self.load(Path(name))

    def load(self, file: Path) -> None:
        """Add the regions of a file, which is read on a worker thread. Errors are shown."""
        if self._session.image is None:
            self._session.show_message("No image is open. Open an image before its regions.")
            return

        def show(result: tuple[list[Region], list[str]]) -> None:
            regions, skipped = result
            self.panel.add(regions)
            text = f"{len(regions)} regions loaded from {file}"
            if skipped:
                text += f"; {len(skipped)} of kinds that the viewer does not have were ignored: {skipped[0]}"
            self._session.show_message(text, bool(skipped))

        self._session.run_in_worker(lambda: read_regions(file), show, f"load {file}")

    def close(self) -> None:
        """Stop measurements that are running."""
        self._session.worker.cancel("regions")
        self.measure.clear()
