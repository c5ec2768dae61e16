"""The main window: hierarchy at the left, image in the center, channels, measurements and metadata at the right.

The window connects the panels. The state is in the session.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from PyQt6.QtCore import QSettings, QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QImage, QResizeEvent, QShowEvent
from PyQt6.QtWidgets import (
    QApplication,
    QFileDialog,
    QInputDialog,
    QMainWindow,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from zarrfs.engine.stores.base import Store
from zarrfs_viewer.analysis.readout import Readout, format_bytes
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.canvas.canvas import Canvas, Tool
from zarrfs_viewer.qt.canvas.panes import Pane, Panes
from zarrfs_viewer.qt.panels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.panels.dimensions_panel import DimensionsPanel
from zarrfs_viewer.qt.panels.export_dialog import ExportDialog, Exporter
from zarrfs_viewer.qt.panels.gallery import Gallery
from zarrfs_viewer.qt.panels.goto_dialog import GoToDialog
from zarrfs_viewer.qt.panels.labels_panel import LabelsPanel, label_names
from zarrfs_viewer.qt.panels.log_panel import LogHandler, LogPanel
from zarrfs_viewer.qt.panels.measure_panel import MeasurePanel
from zarrfs_viewer.qt.panels.metadata_panel import MetadataPanel
from zarrfs_viewer.qt.panels.plate_panel import PlatePanel
from zarrfs_viewer.qt.panels.saved_views import SavedViewsMenu
from zarrfs_viewer.qt.panels.tree_panel import TreePanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import (
    PlainLabel,
    allow_narrow,
    button_text,
    plain,
    tooltip,
    window_title,
)
from zarrfs_viewer.qt.support.plots import with_pyqtgraph
from zarrfs_viewer.qt.support.theme import apply_theme
from zarrfs_viewer.qt.window.actions import CommandPalette, add_actions, key_help
from zarrfs_viewer.qt.window.banner import Banner
from zarrfs_viewer.qt.window.commands import command_specs
from zarrfs_viewer.qt.window.docks import DockLayout
from zarrfs_viewer.qt.window.opening import LocationOpener
from zarrfs_viewer.qt.window.preferences import Preferences, PreferencesDialog
from zarrfs_viewer.qt.window.recent import RecentLocations
from zarrfs_viewer.qt.window.start_page import StartPage
from zarrfs_viewer.qt.window.toolbar import ToolBar
from zarrfs_viewer.rendering.contrast import auto_limits, channel_values, histogram
from zarrfs_viewer.rendering.renderer import Frame
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    ViewIntent,
    with_displayed,
    with_level_lock,
    with_position,
    with_projection,
)

__all__ = ["MainWindow"]

MIN_WIDTH, MIN_HEIGHT = 700, 480
THUMBNAIL_DELAY_MILLISECONDS = 300
"""The thumbnail of a location is saved when its picture has been complete for this long."""
HISTOGRAM_DELAY_MILLISECONDS = 150
"""The histogram is computed when the slice has not changed for this long."""


class MainWindow(QMainWindow):
    """A window of the viewer.

    Signals:
        frame_shown: (frame) the main pane displays another frame.
        failed: (text) a location could not be opened, with the reason.
        new_window_requested: the user requested another window.
        location_window_requested: (location) the user requested another window with a location.
    """

    frame_shown = pyqtSignal(object)
    failed = pyqtSignal(str)
    new_window_requested = pyqtSignal()
    location_window_requested = pyqtSignal(str)

    def __init__(self, settings: QSettings | None = None) -> None:
        super().__init__()
        self.setWindowTitle("zarrfs viewer")
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.resize(1280, 900)
        self.setAcceptDrops(True)
        self.settings = settings if settings is not None else QSettings("zarrfs", "viewer")
        self.session = Session(self)
        self.mounts = Mounts()
        self.recent = RecentLocations(self.settings)
        self.opener = LocationOpener(self.session, self.settings, self.recent, self)
        self.docks = DockLayout(self, self.settings)
        self.exporter = Exporter(self.session, self)
        self._histogram_source: object = None
        self._histogram_timer = QTimer(self)
        self._histogram_timer.setSingleShot(True)
        self._histogram_timer.setInterval(HISTOGRAM_DELAY_MILLISECONDS)
        self._thumbnail_of = ""
        self._thumbnail_timer = QTimer(self)
        self._thumbnail_timer.setSingleShot(True)
        self._thumbnail_timer.setInterval(THUMBNAIL_DELAY_MILLISECONDS)
        self._thumbnail_timer.timeout.connect(self._save_thumbnail)
        self._create_center()
        self._create_left_docks()
        self._create_right_dock()
        self._create_bottom()
        self.views = SavedViewsMenu(
            self.session, self.panes, Path(self.settings.fileName()).with_name("views.json"), self
        )
        self._connect()
        preferences = Preferences.load(self.settings)
        self.actions_by_name = add_actions(self, command_specs(self, preferences.dark))
        self.toolbar = ToolBar(self.actions_by_name, self)
        self.addToolBar(self.toolbar)
        self.empty.action_requested.connect(lambda name: self.actions_by_name[name].trigger())
        self.empty.location_selected.connect(self.open_location)
        self.apply_preferences(preferences)
        self._create_first_widgets()
        self._restore()

    # -- construction ------------------------------------------------------------------------------------------

    def _create_center(self) -> None:
        self.panes = Panes(self.session)
        self.dimensions = DimensionsPanel()
        self.dimensions.is_ready_for_next = self._is_slice_drawn
        self.empty = StartPage(self.recent)
        image_view = QWidget()
        image_layout = QVBoxLayout(image_view)
        image_layout.setContentsMargins(0, 0, 0, 0)
        image_layout.setSpacing(0)
        image_layout.addWidget(self.panes, 1)
        image_layout.addWidget(self.dimensions)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(image_view)
        center = QWidget()
        layout = QVBoxLayout(center)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(self.stack, 1)
        self.setCentralWidget(center)
        self.notice = Banner(center)

    def _create_left_docks(self) -> None:
        self.tree_panel = TreePanel(self.session, self.mounts)
        self.gallery = Gallery(self.session.worker)
        self.plate = PlatePanel(self.session)
        area = Qt.DockWidgetArea.LeftDockWidgetArea
        self.docks.add("Hierarchy", self.tree_panel, area)
        self.gallery_dock = self.docks.add("Images", self.gallery, area)
        self.plate_dock = self.docks.add("Plate", self.plate, area)

    def _create_right_dock(self) -> None:
        self.channels = ChannelsPanel()
        self.labels = LabelsPanel()
        self.measure = MeasurePanel(self.session)
        self.metadata = MetadataPanel(self.session)
        self.panels = QTabWidget()
        bar = self.panels.tabBar()
        if bar is not None:
            bar.setUsesScrollButtons(False)
            bar.setElideMode(Qt.TextElideMode.ElideRight)  # lets the panel become narrower than its tabs
        for widget, title in (
            (self.channels, "Channels"),
            (self.labels, "Labels"),
            (self.measure, "Measure"),
            (self.metadata, "Metadata"),
        ):
            self.panels.addTab(widget, button_text(title))
        self.docks.add("Image", self.panels, Qt.DockWidgetArea.RightDockWidgetArea)

    def _create_bottom(self) -> None:
        self.log = LogPanel()
        self.log_handler = LogHandler("zarrfs")
        self.log_dock = self.docks.add("Messages", self.log, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.position = PlainLabel()
        allow_narrow(self.position)
        self.memory = PlainLabel()
        self.memory.setToolTip("Memory used by cached tiles, and its limit")
        self.busy = QProgressBar()
        self.busy.setMaximum(0)
        self.busy.setTextVisible(False)
        self.busy.setFixedWidth(80)
        self.busy.hide()
        self.warnings = QPushButton()
        self.warnings.setFlat(True)
        self.warnings.hide()
        bar = self.statusBar()
        if bar is not None:
            bar.addWidget(self.position, 1)
            for widget in (self.busy, self.warnings, self.memory):
                bar.addPermanentWidget(widget)

    def _connect(self) -> None:
        session = self.session
        session.message_changed.connect(self._show_message)
        session.failed.connect(self._show_failure)
        session.node_changed.connect(self.metadata.show_node)
        session.dataset_changed.connect(self._show_dataset)
        session.image_changed.connect(self._show_image)
        session.axes_changed.connect(lambda: self.dimensions.show_image(session.image, session.intent))
        session.intent_changed.connect(self._show_intent)
        session.worker.busy.connect(lambda count: self.busy.setVisible(count > 0))
        self.panes.frame_shown.connect(self._show_frame)
        self.panes.pointed.connect(self._show_readout)
        self.panes.stepped.connect(self.dimensions.step)
        self.canvas.shape_changed.connect(self._measure)
        self.dimensions.moved.connect(self._set_position)
        self.dimensions.projected.connect(self._set_projection)
        self.channels.changed.connect(lambda number, changes: session.change_channel(number, **changes))
        self.channels.auto.connect(self._auto_contrast)
        self.channels.histogram_requested.connect(self._load_histogram)
        self._histogram_timer.timeout.connect(self.channels.request_histogram)
        self.labels.changed.connect(lambda number, changes: session.change_labels(number, **changes))
        self.tree_panel.unreadable_node_selected.connect(self.metadata.show_text)
        self.tree_panel.clicked.connect(lambda: self.panels.setCurrentWidget(self.metadata))
        self.tree_panel.closed.connect(session.close_location)
        self.tree_panel.window_requested.connect(self.location_window_requested)
        self.gallery.image_selected.connect(session.open_image)
        self.plate.image_selected.connect(session.open_image)
        self.log_handler.received.connect(self.log.add)
        self.log.warning_count_changed.connect(self._count_warnings)
        self.warnings.clicked.connect(lambda: self.actions_by_name["messages"].setChecked(True))
        self.log_dock.visibilityChanged.connect(
            lambda visible: (
                self.actions_by_name["messages"].setChecked(visible) if not self.isHidden() else None
            )
        )

    def _create_first_widgets(self) -> None:
        """Create and delete one widget of each kind that every image needs.

        The first widget of a kind takes PyQt several times as long as the later ones. This time is spent before the
        window is visible instead of when the first image opens.
        """
        self.channels.show_channels((ChannelSettings(),), "u", False)
        self.channels.show_channels((), "u", False)
        self.dimensions.create_first_row()

    def _restore(self) -> None:
        geometry = self.settings.value("geometry")
        if geometry is not None:
            self.restoreGeometry(geometry)

    def _show_docks(self) -> None:
        """Show the docks when the first location is opened. Docks for other kinds of data appear with the data."""
        if not self.docks.are_shown:
            self.docks.show("Hierarchy", "Image")
            for dock in (self.gallery_dock, self.plate_dock, self.log_dock):
                dock.hide()

    # -- public interface --------------------------------------------------------------------------------------

    @property
    def canvas(self) -> Canvas:
        """The canvas of the main pane."""
        return self.panes.main.canvas

    @property
    def image(self) -> Image | None:
        """The displayed image, or None."""
        return self.session.image

    @property
    def intent(self) -> ViewIntent | None:
        """The display settings of the image, or None."""
        return self.session.intent

    @property
    def dataset(self) -> Dataset | None:
        """The dataset that was opened last, or None."""
        return self.session.dataset

    def open_location(self, location: str | Store, path: str = "") -> None:
        """Open a location on a worker thread. Returns at once."""
        self.session.open_location(location, path)

    # -- display -----------------------------------------------------------------------------------------------

    def _show_message(self, text: str, is_warning: bool) -> None:
        """Show a message over the image. An empty text hides it."""
        self.notice.show_message(text, is_warning)
        self.log.add(text, is_warning)

    def _show_failure(self, reason: str) -> None:
        if self.session.image is None:
            self.stack.setCurrentIndex(0 if self.session.dataset is None else 1)
            self.panels.setCurrentWidget(self.metadata)
        if self.session.dataset is None:
            self.metadata.show_text(reason)
        self.failed.emit(reason)

    def _show_dataset(self) -> None:
        dataset = self.session.dataset
        if dataset is None:
            self._show_start_page()
            return
        self._show_docks()
        self.stack.setCurrentIndex(1)
        self.setWindowTitle(window_title(dataset.name or dataset.location))
        has_series = len(dataset.images) > 1
        if has_series:
            self.gallery.show_dataset(dataset)
        if dataset.plate is not None:
            self.plate.show_dataset(dataset)
        for dock, visible in (
            (self.gallery_dock, has_series),
            (self.plate_dock, dataset.plate is not None),
        ):
            if visible and dock.isHidden():
                dock.show()
                self.resizeDocks([dock], [self.height() // 2], Qt.Orientation.Vertical)
            dock.setVisible(visible)
        self.docks.arrange()

    def _show_start_page(self) -> None:
        """Show the start page after the displayed location was closed. The docks remain while others are open."""
        self.setWindowTitle("zarrfs viewer")
        self.empty.refresh()
        self.stack.setCurrentIndex(0)
        if not self.tree_panel.model.tops:
            self.docks.hide()

    def _save_thumbnail(self) -> None:
        """Save the picture of the open location for the start page."""
        dataset, frame = self.session.dataset, self.canvas.frame
        if dataset is None or frame is None or frame.state.image is not self.session.image:
            return
        self._thumbnail_of = dataset.location
        height, width = frame.pixels.shape
        data: Any = frame.pixels.data
        picture = QImage(data, width, height, width * 4, QImage.Format.Format_ARGB32_Premultiplied).copy()
        self.session.worker.submit(
            lambda: self.recent.save_thumbnail(dataset.location, picture), lambda _: None, lambda _: None
        )

    def _show_image(self) -> None:
        session = self.session
        image, intent = session.image, session.intent
        self.measure.clear()
        self._histogram_source = None
        self._histogram_timer.stop()
        if session.dataset is not None:
            self.stack.setCurrentIndex(1)
        if image is None or intent is None:
            self.channels.show_channels((), "u", False)
            self.labels.show_labels((), ())
            return
        self.channels.show_channels(intent.channels, image.dtype.kind, image.rgb_axis is not None)
        self.labels.show_labels(label_names(image, session.overlays), intent.labels)
        if self.panels.currentWidget() is not self.measure:
            only_labels = not intent.channels and intent.labels
            self.panels.setCurrentWidget(self.labels if only_labels else self.channels)
        if not self.plate.table.hasFocus():  # the arrow keys select the next well
            self.canvas.setFocus()

    def _show_intent(self) -> None:
        intent = self.session.intent
        if intent is not None:
            self.channels.show_settings(intent.channels)
            self.labels.show_settings(intent.labels)
            self.dimensions.show_intent(intent)
            self._measure_again()

    def _show_frame(self, frame: Frame) -> None:
        usage = self.session.streamer.memory
        self._schedule_histogram(frame)
        self.dimensions.show_level(frame.state.level)
        dataset = self.session.dataset
        if frame.exact and dataset is not None and dataset.location != self._thumbnail_of:
            self._thumbnail_timer.start()
        self.memory.setText(plain(f"{format_bytes(usage.nbytes)} of {format_bytes(usage.budget)}"))
        self.frame_shown.emit(frame)

    def _show_readout(self, values: Readout | None) -> None:
        self.position.setText("" if values is None else plain(values.text()))

    def _count_warnings(self, count: int) -> None:
        self.warnings.setText(button_text(f"⚠ {count}"))
        text = f"{count} warning" if count == 1 else f"{count} warnings"
        self.warnings.setToolTip(tooltip(f"{text}: click to show the messages"))
        self.warnings.setAccessibleName(plain(text))
        self.warnings.setVisible(count > 0)

    def _is_slice_drawn(self) -> bool:
        """Return whether the current slice is displayed. Playback waits for it."""
        frame, intent = self.canvas.frame, self.session.intent
        if frame is None or intent is None:
            return False
        return frame.settled and frame.state.intent.position == intent.position

    # -- user actions on the image -----------------------------------------------------------------------------

    def _set_position(self, axis: int, value: float) -> None:
        if self.session.intent is not None:
            self.session.change(with_position(self.session.intent, axis, value))

    def _set_projection(self, projection: Any) -> None:
        if self.session.intent is not None:
            self.session.change(with_projection(self.session.intent, projection))

    def show_next_axes(self) -> None:
        """Display the next pair of axes: XY, XZ, YZ."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            return
        axes = image.slider_axes
        pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]
        if len(pairs) > 1:
            current = pairs.index(intent.displayed) if intent.displayed in pairs else 0
            self.session.change(with_displayed(intent, *pairs[(current - 1) % len(pairs)]))

    def show_linked(self, on: bool) -> None:
        """Show three linked panes, or one."""
        if not self.panes.set_linked(on):
            self.session.show_message("Linked panes need an image with a third axis.")
            self.actions_by_name["linked"].setChecked(False)

    def ask_level(self) -> None:
        """Ask for the pyramid level to display."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            return
        names = ["Automatic"] + [
            plain(f"{number}: {' x '.join(map(str, level.shape))}")
            for number, level in enumerate(image.levels)
        ]
        lock = intent.level_lock
        text, accepted = QInputDialog.getItem(
            self, "Pyramid level", "Level:", names, 0 if lock is None else lock + 1, False
        )
        if accepted:
            number = names.index(text) - 1
            self.session.change(with_level_lock(intent, None if number < 0 else number))

    def ask_position(self) -> None:
        """Ask for a coordinate, and show it: its slice, with the position in the middle of the canvas."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            self.session.show_message("No image is open.")
            return
        dialog = GoToDialog(image, intent, self.canvas.viewport.center, self)
        if dialog.exec():
            self.go_to(dialog.position())

    def go_to(self, position: tuple[float, ...]) -> None:
        """Show a position, given in data coordinates, in the middle of the canvas."""
        intent = self.session.intent
        if intent is None:
            return
        center = position[intent.displayed[0]], position[intent.displayed[1]]
        for axis, value in enumerate(position):
            intent = with_position(intent, axis, value)
        self.session.change(intent)
        self.canvas.set_viewport(replace(self.canvas.viewport, center=center))

    def retry(self) -> None:
        """Read the tiles again that could not be read."""
        self.session.show_message("")
        self.session.streamer.retry()
        self.panes.refresh()

    def show_labels(self, on: bool) -> None:
        """Show or hide all label images."""
        intent = self.session.intent
        for number in range(len(intent.labels) if intent is not None else 0):
            self.session.change_labels(number, visible=on)

    # -- channels ----------------------------------------------------------------------------------------------

    def set_auto_contrast_per_image(self, on: bool) -> None:
        """Choose new contrast limits for each well, field or series, or keep those of the previous image."""
        self.session.auto_contrast_per_image = on

    def auto_contrast(self) -> None:
        """Choose new contrast limits for every channel."""
        intent = self.session.intent
        for number in range(len(intent.channels) if intent is not None else 0):
            self._auto_contrast(number)

    def _auto_contrast(self, number: int) -> None:
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            return
        self.session.run_for_image(
            lambda: auto_limits(channel_values(image, intent.channels[number], intent)),
            lambda limits: self.session.change_channel(number, limits=limits),
            f"contrast {number}",
        )

    def _load_histogram(self, number: int, volume: bool) -> None:
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None or image.rgb_axis is not None:
            return
        self.session.worker.cancel("histogram")
        self.session.worker.submit(
            with_pyqtgraph(lambda: histogram(channel_values(image, intent.channels[number], intent, volume))),
            lambda result: (
                self.channels.show_histogram(number, result) if self.session.image is image else None
            ),
            # Read errors are reported by the panes.
            lambda _: self.channels.show_histogram(number, None),
            "histogram",
        )

    def _schedule_histogram(self, frame: Frame) -> None:
        """Start the timer for a new histogram if another slice is displayed."""
        intent = frame.state.intent
        source = frame.state.image.uid, intent.displayed, intent.position, intent.projection
        if frame.settled and source != self._histogram_source:
            is_first, self._histogram_source = self._histogram_source is None, source
            if not is_first and not self.channels.volume.isChecked():
                self._histogram_timer.start()

    # -- measuring ---------------------------------------------------------------------------------------------

    def set_tool(self, tool: Tool) -> None:
        """Set the effect of dragging on the image."""
        self.canvas.set_tool(tool)
        if tool != "move":
            self.panels.setCurrentWidget(self.measure)

    def _measure(self, shape: Shape | None, finished: bool) -> None:
        if finished:
            pane: Pane = self.panes.main
            state = pane.pipeline.state
            self.measure.measure(shape, pane.intent, 0 if state is None else state.level)

    def _measure_again(self) -> None:
        """Measure the shape again: the slice or a channel changed."""
        if self.canvas.shape is not None:
            self._measure(self.canvas.shape, True)

    # -- files -------------------------------------------------------------------------------------------------

    def ask_export(self) -> None:
        """Ask for the part and format to export, and export it."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            self.session.show_message("No image is open.")
            return
        state = self.panes.main.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        dialog = ExportDialog(image, intent, self.canvas.viewport, level, self.canvas.shape, self)
        self.exporter.ask(dialog, intent)

    def ask_screenshot(self) -> None:
        """Ask for a file and write the panes to it as they are drawn."""
        file, _ = QFileDialog.getSaveFileName(self, "Save screenshot", "screenshot.png", "PNG (*.png)")
        if file and not self.panes.grab().save(file, "PNG"):
            self.session.show_message(f"{file} cannot be written", True)

    # -- the window --------------------------------------------------------------------------------------------

    def focus_canvas(self) -> None:
        """Give the keyboard focus to the canvas."""
        (self.canvas if self.stack.currentIndex() else self.empty).setFocus()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.focus_canvas()

    def find_node(self) -> None:
        """Move the keyboard focus to the search field of the hierarchy."""
        self.tree_panel.search.setFocus()
        self.tree_panel.search.selectAll()

    def show_log(self, on: bool) -> None:
        """Show or hide the messages."""
        self.log_dock.setVisible(on)

    def set_dark(self, on: bool) -> None:
        """Use the dark or the light theme."""
        self.apply_preferences(replace(Preferences.load(self.settings), dark=on))

    def ask_preferences(self) -> None:
        """Ask for the preferences, and apply them."""
        dialog = PreferencesDialog(Preferences.load(self.settings), self)
        if dialog.exec():
            self.apply_preferences(dialog.preferences())

    def apply_preferences(self, preferences: Preferences) -> None:
        """Apply preferences to this window, and store them for other windows."""
        preferences.save(self.settings)
        self.panes.set_wheel_steps(preferences.wheel == "step")
        self.session.streamer.set_budget(preferences.cache_mib << 20)
        action = self.actions_by_name["dark"]
        action.blockSignals(True)
        action.setChecked(preferences.dark)
        action.blockSignals(False)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, preferences.dark)
            self.toolbar.show_theme(application.palette())

    def show_palette(self) -> None:
        """Open the command palette."""
        CommandPalette(self.actions_by_name, self).exec()

    def show_keys(self) -> None:
        """Show the keyboard shortcuts."""
        box = QMessageBox(self)
        box.setWindowTitle("Keyboard shortcuts")
        box.setText(key_help(self.actions_by_name))
        box.exec()

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        # Items that are dragged out of this window are meant for other programs.
        if (
            event is not None
            and data is not None
            and event.source() is None
            and (data.hasUrls() or data.hasText())
        ):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        if event is not None and data is not None:
            self.opener.drop(data)
            event.acceptProposedAction()

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self.docks.arrange()

    def sizeHint(self) -> QSize:
        return QSize(1280, 900)

    def closeEvent(self, event: QCloseEvent | None) -> None:
        self.settings.setValue("geometry", self.saveGeometry())
        self.docks.save()
        self.hide()
        self._histogram_timer.stop()
        self._thumbnail_timer.stop()
        self.dimensions.stop()
        self.exporter.close()
        self.panes.close_panes()
        self.session.close()
        self.log_handler.close()
        self.mounts.close()
        super().closeEvent(event)
