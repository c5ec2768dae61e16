"""The window: hierarchy at the left, the picture in the middle, channels and numbers at the right.

It puts the panels together and holds nothing itself: what is open and wanted is the session's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QSettings, QSize, Qt, QTimer, pyqtSignal
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QShowEvent
from PyQt6.QtWidgets import (
    QApplication,
    QDockWidget,
    QFileDialog,
    QInputDialog,
    QLabel,
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
from zarrfs_viewer.export.picture import write_png
from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.canvas.canvas import Canvas, Tool
from zarrfs_viewer.qt.canvas.panes import Pane, Panes
from zarrfs_viewer.qt.panels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.panels.dimensions_panel import DimensionsPanel
from zarrfs_viewer.qt.panels.export_dialog import ExportDialog, Exporter
from zarrfs_viewer.qt.panels.gallery import Gallery
from zarrfs_viewer.qt.panels.labels_panel import LabelsPanel, label_names
from zarrfs_viewer.qt.panels.log_panel import LogPanel, LogRelay
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
    plain_lines,
    tooltip,
    window_title,
)
from zarrfs_viewer.qt.support.plots import with_plots
from zarrfs_viewer.qt.support.theme import apply_theme
from zarrfs_viewer.qt.window.actions import Palette, add_actions, key_help
from zarrfs_viewer.qt.window.commands import command_specs
from zarrfs_viewer.qt.window.opening import Opening
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

EMPTY = """<div style="text-align:center; color:#9aa0ab">
<p style="font-size:22px">Drop a Zarr image here</p>
<p>a folder, a zip file, a <code>zarr.json</code>, a URL or a path as text</p>
<p>or press <b>Ctrl+O</b> for a folder, <b>Ctrl+Shift+O</b> for a zip file, <b>Ctrl+L</b> to type a location</p>
<p>OME-Zarr with its channels, pyramids, labels and plates, and any other Zarr or N5 array</p>
<p><b>Ctrl+Shift+P</b> finds every action, <b>?</b> shows the keys</p></div>"""

DOCK_WIDTH = 320
HISTOGRAM_DELAY = 150
"""The histogram is counted when the slice has stood still for so many milliseconds."""
WARNING, NOTE = "background: #7a3b1d; color: white;", "background: #2d4a7a; color: white;"


class MainWindow(QMainWindow):
    """The viewer.

    Signals:
        framed: another frame is on the screen.
        failed: something could not be opened; with the words for the user.
        wants_window: the user wants another window.
    """

    framed = pyqtSignal(object)
    failed = pyqtSignal(str)
    wants_window = pyqtSignal()

    def __init__(self, settings: QSettings | None = None) -> None:
        super().__init__()
        self.setWindowTitle("zarrfs viewer")
        self.resize(1280, 900)
        self.setAcceptDrops(True)
        self.settings = settings if settings is not None else QSettings("zarrfs", "viewer")
        self.session = Session(self)
        self.mounts = Mounts()
        self.opening = Opening(self.session, self.settings, self)
        self.exporter = Exporter(self.session, self)
        self._histogram_of: object = None
        self._histogram_timer = QTimer(self)
        self._histogram_timer.setSingleShot(True)
        self._histogram_timer.setInterval(HISTOGRAM_DELAY)
        self._make_picture()
        self._make_left()
        self._make_right()
        self._make_bottom()
        self.views = SavedViewsMenu(
            self.session, self.panes, Path(self.settings.fileName()).with_name("views.json"), self
        )
        self._connect()
        dark = self.settings.value("dark", True, bool)
        self.actions_by_name = add_actions(self, command_specs(self, dark))
        self.set_dark(dark)
        self._warm_up()
        self._restore()

    # -- making ------------------------------------------------------------------------------------------------

    def _make_picture(self) -> None:
        self.panes = Panes(self.session)
        self.dimensions = DimensionsPanel()
        self.dimensions.can_go_on = self._has_drawn
        self.notice = PlainLabel(wrap=True)
        self.notice.setMargin(8)
        self.notice.setAccessibleName("Message")
        self.notice.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.notice.hide()
        self.empty = QLabel(EMPTY)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.empty.setAccessibleName("Nothing is open yet")
        picture = QWidget()
        column = QVBoxLayout(picture)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.panes, 1)
        column.addWidget(self.dimensions)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(picture)
        middle = QWidget()
        rows = QVBoxLayout(middle)
        rows.setContentsMargins(0, 0, 0, 0)
        rows.setSpacing(0)
        rows.addWidget(self.notice)
        rows.addWidget(self.stack, 1)
        self.setCentralWidget(middle)

    def _make_left(self) -> None:
        self.tree_panel = TreePanel(self.session, self.mounts)
        self.gallery = Gallery(self.session.worker)
        self.plate = PlatePanel(self.session)
        area = Qt.DockWidgetArea.LeftDockWidgetArea
        self._dock("Hierarchy", self.tree_panel, area)
        self.gallery_dock = self._dock("Images", self.gallery, area)
        self.plate_dock = self._dock("Plate", self.plate, area)
        for dock in (self.gallery_dock, self.plate_dock):
            dock.hide()

    def _make_right(self) -> None:
        self.channels = ChannelsPanel()
        self.labels = LabelsPanel()
        self.measure = MeasurePanel(self.session)
        self.metadata = MetadataPanel(self.session)
        self.panels = QTabWidget()
        bar = self.panels.tabBar()
        if bar is not None:
            bar.setUsesScrollButtons(False)
        for widget, title in (
            (self.channels, "Channels"),
            (self.labels, "Labels"),
            (self.measure, "Measure"),
            (self.metadata, "Metadata"),
        ):
            self.panels.addTab(widget, button_text(title))
        self._dock("Image", self.panels, Qt.DockWidgetArea.RightDockWidgetArea)

    def _make_bottom(self) -> None:
        self.log = LogPanel()
        self.relay = LogRelay("zarrfs")
        self.log_dock = self._dock("Messages", self.log, Qt.DockWidgetArea.BottomDockWidgetArea)
        self.log_dock.hide()
        self.position = PlainLabel()
        allow_narrow(self.position)
        self.memory = PlainLabel()
        self.memory.setToolTip("Tiles kept for drawing, of the memory they may take")
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

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> QDockWidget:
        dock = QDockWidget(plain(title), self)
        dock.setObjectName(title)
        dock.setWidget(widget)
        self.addDockWidget(area, dock)
        self.resizeDocks([dock], [DOCK_WIDTH], Qt.Orientation.Horizontal)
        return dock

    def _connect(self) -> None:
        session = self.session
        session.said.connect(self._show_message)
        session.failed.connect(self._show_failure)
        session.node_changed.connect(self.metadata.show_node)
        session.dataset_changed.connect(self._show_dataset)
        session.image_changed.connect(self._show_image)
        session.axes_changed.connect(lambda: self.dimensions.show_image(session.image, session.intent))
        session.intent_changed.connect(self._show_intent)
        session.worker.busy.connect(lambda count: self.busy.setVisible(count > 0))
        self.panes.framed.connect(self._show_frame)
        self.panes.pointed.connect(self._show_readout)
        self.panes.stepped.connect(self.dimensions.step)
        self.canvas.shape_changed.connect(self._measure)
        self.dimensions.moved.connect(self._move)
        self.dimensions.projected.connect(self._project)
        self.channels.changed.connect(lambda number, changes: session.change_channel(number, **changes))
        self.channels.auto.connect(self._auto_contrast)
        self.channels.wants_histogram.connect(self._load_histogram)
        self._histogram_timer.timeout.connect(self.channels.ask_again)
        self.labels.changed.connect(lambda number, changes: session.change_labels(number, **changes))
        self.tree_panel.node_broken.connect(self.metadata.show_text)
        self.tree_panel.looked.connect(lambda: self.panels.setCurrentWidget(self.metadata))
        self.gallery.chosen.connect(session.open_image)
        self.plate.chosen.connect(session.open_image)
        self.relay.came.connect(self.log.add)
        self.log.counted.connect(self._count_warnings)
        self.warnings.clicked.connect(lambda: self.actions_by_name["messages"].setChecked(True))
        self.log_dock.visibilityChanged.connect(
            lambda seen: self.actions_by_name["messages"].setChecked(seen) if not self.isHidden() else None
        )

    def _warm_up(self) -> None:
        """Make once what every image needs: first widgets of a kind cost PyQt several times the later ones, and that
        time is better spent before the window is there than while a picture is awaited.
        """
        self.channels.show_channels((ChannelSettings(),), "u", False)
        self.channels.show_channels((), "u", False)
        self.dimensions.warm_up()

    def _restore(self) -> None:
        for name, restore in (("geometry", self.restoreGeometry), ("windows", self.restoreState)):
            state = self.settings.value(name)
            if state is not None:
                restore(state)
        for dock in (self.gallery_dock, self.plate_dock, self.log_dock):
            dock.hide()

    # -- what others ask ---------------------------------------------------------------------------------------

    @property
    def canvas(self) -> Canvas:
        """The main pane's picture."""
        return self.panes.main.canvas

    @property
    def image(self) -> Image | None:
        """The image in front."""
        return self.session.image

    @property
    def intent(self) -> ViewIntent | None:
        """What of it the user wants to see."""
        return self.session.intent

    @property
    def dataset(self) -> Dataset | None:
        """What was opened last."""
        return self.session.dataset

    def open_location(self, location: str | Store, path: str = "") -> None:
        """Open a location; the answer comes when a worker has it."""
        self.session.open_location(location, path)

    # -- showing -----------------------------------------------------------------------------------------------

    def _show_message(self, text: str, warning: bool) -> None:
        """Show a message above the picture until the next one; none for an empty text."""
        self.notice.setText(plain_lines(text))
        self.notice.setStyleSheet(WARNING if warning else NOTE)
        self.notice.setVisible(bool(text))
        self.log.add(text, warning)

    def _show_failure(self, why: str) -> None:
        if self.session.image is None:
            self.stack.setCurrentIndex(0 if self.session.dataset is None else 1)
            self.panels.setCurrentWidget(self.metadata)
        if self.session.dataset is None:
            self.metadata.show_text(why)
        self.failed.emit(why)

    def _show_dataset(self) -> None:
        dataset = self.session.dataset
        if dataset is None:
            return
        self.stack.setCurrentIndex(1)
        self.setWindowTitle(window_title(dataset.name or dataset.location))
        several = len(dataset.images) > 1
        if several:
            self.gallery.show_dataset(dataset)
        if dataset.plate is not None:
            self.plate.show_dataset(dataset)
        for dock, wanted in ((self.gallery_dock, several), (self.plate_dock, dataset.plate is not None)):
            if wanted and dock.isHidden():
                dock.show()
                self.resizeDocks([dock], [self.height() // 2], Qt.Orientation.Vertical)
            dock.setVisible(wanted)

    def _show_image(self) -> None:
        session = self.session
        image, intent = session.image, session.intent
        self.measure.clear()
        self._histogram_of = None
        self._histogram_timer.stop()
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
        if not self.plate.table.hasFocus():  # arrow keys move on to the next well
            self.canvas.setFocus()

    def _show_intent(self) -> None:
        intent = self.session.intent
        if intent is not None:
            self.channels.show_settings(intent.channels)
            self.labels.show_settings(intent.labels)
            self.dimensions.show_intent(intent)
            self._measure_again()

    def _show_frame(self, frame: Frame) -> None:
        use = self.session.streamer.memory
        self._follow_slice(frame)
        self.memory.setText(plain(f"{format_bytes(use.nbytes)} of {format_bytes(use.budget)}"))
        self.framed.emit(frame)

    def _show_readout(self, found: Readout | None) -> None:
        self.position.setText("" if found is None else plain(found.text()))

    def _count_warnings(self, count: int) -> None:
        self.warnings.setText(button_text(f"⚠ {count}"))
        self.warnings.setToolTip(tooltip(f"{count} warnings: click to read them"))
        self.warnings.setAccessibleName(plain(f"{count} warnings"))
        self.warnings.setVisible(count > 0)

    def _has_drawn(self) -> bool:
        """Whether the slice that is wanted has been seen: playing waits for it."""
        frame, intent = self.canvas.frame, self.session.intent
        if frame is None or intent is None:
            return False
        return frame.settled and frame.state.intent.position == intent.position

    # -- what the user does to the picture ---------------------------------------------------------------------

    def _move(self, axis: int, value: float) -> None:
        if self.session.intent is not None:
            self.session.change(with_position(self.session.intent, axis, value))

    def _project(self, projection: Any) -> None:
        if self.session.intent is not None:
            self.session.change(with_projection(self.session.intent, projection))

    def turn(self) -> None:
        """Display the next pair of axes: XY, XZ, YZ and so on."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            return
        axes = image.slider_axes
        pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]
        if len(pairs) > 1:
            now = pairs.index(intent.displayed) if intent.displayed in pairs else 0
            self.session.change(with_displayed(intent, *pairs[(now - 1) % len(pairs)]))

    def show_linked(self, on: bool) -> None:
        """Show three linked panes, or one."""
        if not self.panes.set_linked(on):
            self.session.say("Linked panes need an image with a third axis.")
            self.actions_by_name["linked"].setChecked(False)

    def ask_level(self) -> None:
        """Ask for a pyramid level to stay on."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            return
        names = ["chosen by the zoom"] + [
            plain(f"{number}: {' x '.join(map(str, level.shape))}")
            for number, level in enumerate(image.levels)
        ]
        lock = intent.level_lock
        text, given = QInputDialog.getItem(
            self, "Pyramid level", "Level:", names, 0 if lock is None else lock + 1, False
        )
        if given:
            number = names.index(text) - 1
            self.session.change(with_level_lock(intent, None if number < 0 else number))

    def retry(self) -> None:
        """Read again what could not be read."""
        self.session.say("")
        self.session.streamer.retry()
        self.panes.refresh()

    def show_labels(self, on: bool) -> None:
        """Show all label images, or none."""
        intent = self.session.intent
        for number in range(len(intent.labels) if intent is not None else 0):
            self.session.change_labels(number, visible=on)

    # -- channels ----------------------------------------------------------------------------------------------

    def set_auto_each(self, on: bool) -> None:
        """Choose the contrast of each well, field or series anew, or keep that of the one before."""
        self.session.auto_each = on

    def auto_contrast(self) -> None:
        """Choose the limits of every channel anew."""
        intent = self.session.intent
        for number in range(len(intent.channels) if intent is not None else 0):
            self._auto_contrast(number)

    def _auto_contrast(self, number: int) -> None:
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            return
        self.session.ask_of_image(
            lambda: auto_limits(channel_values(image, intent.channels[number], intent)),
            lambda limits: self.session.change_channel(number, limits=limits),
            f"contrast {number}",
        )

    def _load_histogram(self, number: int, volume: bool) -> None:
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None or image.rgb_axis is not None:
            return
        self.session.worker.forget("histogram")
        self.session.worker.submit(
            with_plots(lambda: histogram(channel_values(image, intent.channels[number], intent, volume))),
            lambda found: (
                self.channels.show_histogram(number, found) if self.session.image is image else None
            ),
            # The picture reports what cannot be read.
            lambda _: self.channels.show_histogram(number, None),
            "histogram",
        )

    def _follow_slice(self, frame: Frame) -> None:
        """Show the histogram of another slice, once it stands still."""
        intent = frame.state.intent
        shown = frame.state.image.uid, intent.displayed, intent.position, intent.projection
        if frame.settled and shown != self._histogram_of:
            first, self._histogram_of = self._histogram_of is None, shown
            if not first and not self.channels.volume.isChecked():
                self._histogram_timer.start()

    # -- measuring ---------------------------------------------------------------------------------------------

    def set_tool(self, tool: Tool) -> None:
        """Choose what dragging on the picture does."""
        self.canvas.set_tool(tool)
        if tool != "move":
            self.panels.setCurrentWidget(self.measure)

    def _measure(self, shape: Shape | None, let_go: bool) -> None:
        if let_go:
            pane: Pane = self.panes.main
            state = pane.pipeline.state
            self.measure.measure(shape, pane.intent, 0 if state is None else state.level)

    def _measure_again(self) -> None:
        """Another slice or channel has other numbers."""
        if self.canvas.shape is not None:
            self._measure(self.canvas.shape, True)

    # -- files -------------------------------------------------------------------------------------------------

    def ask_export(self) -> None:
        """Ask what to write to a file."""
        image, intent = self.session.image, self.session.intent
        if image is None or intent is None:
            self.session.say("There is no picture to export.")
            return
        state = self.panes.main.pipeline.state
        level = state.level if state is not None and state.image is image else 0
        dialog = ExportDialog(image, intent, self.canvas.viewport, level, self.canvas.shape, self)
        self.exporter.ask(dialog, intent)

    def ask_screenshot(self) -> None:
        """Ask for a file and write the picture, as it is drawn, to it."""
        file, _ = QFileDialog.getSaveFileName(self, "Save the picture", "picture.png", "PNG (*.png)")
        if file and not self.panes.grab().save(file, "PNG"):
            self.session.say(f"{file} could not be written", True)

    def write_picture(self, file: Path) -> None:
        """Write the frame that is drawn to a PNG file. Raises StoreError."""
        if self.canvas.frame is not None:
            write_png(file, self.canvas.frame.pixels)

    # -- the window --------------------------------------------------------------------------------------------

    def focus_picture(self) -> None:
        """Give the keys to the picture, so that none is typed into a field."""
        (self.canvas if self.stack.currentIndex() else self.empty).setFocus()

    def showEvent(self, event: QShowEvent | None) -> None:
        super().showEvent(event)
        self.focus_picture()

    def find_node(self) -> None:
        """Begin to type what to find in the hierarchy."""
        self.tree_panel.search.setFocus()
        self.tree_panel.search.selectAll()

    def show_log(self, on: bool) -> None:
        """Show what was said, or hide it."""
        self.log_dock.setVisible(on)

    def set_dark(self, on: bool) -> None:
        """Colour the program dark, or light."""
        self.settings.setValue("dark", on)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, on)

    def show_palette(self) -> None:
        """Show all actions to choose from."""
        Palette(self.actions_by_name, self).exec()

    def show_keys(self) -> None:
        """Show what the keys do."""
        box = QMessageBox(self)
        box.setWindowTitle("Keys")
        box.setText(key_help(self.actions_by_name))
        box.exec()

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        # What is dragged out of the window itself is meant for others.
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
            self.opening.drop(data)
            event.acceptProposedAction()

    def sizeHint(self) -> QSize:
        return QSize(1280, 900)

    def closeEvent(self, event: QCloseEvent | None) -> None:
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.setValue("windows", self.saveState())
        self.hide()
        self._histogram_timer.stop()
        self.dimensions.stop()
        self.exporter.close()
        self.panes.close_panes()
        self.session.close()
        self.relay.close()
        self.mounts.close()
        super().closeEvent(event)
