"""The window: hierarchy at the left, the picture in the middle, channels and metadata at the right.

It holds the user's intent and hands it on; what follows from it is decided and drawn in the core, on other threads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PyQt6.QtCore import QModelIndex, QSettings, QSize, QSortFilterProxyModel, Qt, pyqtSignal
from PyQt6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QGuiApplication
from PyQt6.QtWidgets import (
    QApplication,
    QComboBox,
    QDockWidget,
    QFileDialog,
    QInputDialog,
    QLabel,
    QMainWindow,
    QMenu,
    QMessageBox,
    QProgressBar,
    QStackedWidget,
    QTabWidget,
    QTreeView,
    QVBoxLayout,
    QWidget,
)

import zarrfs
from viewer.chunk_overlay import chunk_grid
from viewer.contrast import auto_limits, channel_values, histogram
from viewer.dataset import Dataset, describe, initial_intent
from viewer.image import Image
from viewer.locations import display_name, locations_in
from viewer.picture import write_png
from viewer.pipeline import ViewPipeline
from viewer.qt.actions import ActionSpec, Palette, add_actions, key_help
from viewer.qt.canvas import KEY_ZOOM, Canvas
from viewer.qt.channels_panel import ChannelsPanel
from viewer.qt.dimensions_panel import DimensionsPanel
from viewer.qt.hierarchy import HierarchyModel, Item
from viewer.qt.metadata_panel import MetadataPanel
from viewer.qt.theme import apply_theme
from viewer.qt.widgets import search_box
from viewer.qt.worker import Worker
from viewer.readout import readout
from viewer.rendering import Frame
from viewer.state import ViewIntent, with_channel, with_displayed, with_labels, with_level_lock, with_position
from viewer.streaming import TileError, TileStreamer
from zarrfs.engine.stores.base import Store

__all__ = ["MainWindow"]

EMPTY = """<div style="text-align:center; color:#9aa0ab">
<p style="font-size:22px; color:#d6dae2">Drop a Zarr image here</p>
<p>a folder, a zip file, a <code>zarr.json</code>, a URL or a path as text</p>
<p>or press <b>Ctrl+O</b> for a folder, <b>Ctrl+Shift+O</b> for a zip file, <b>Ctrl+L</b> to type a location</p>
<p>OME-Zarr with its channels, pyramids and labels, and any other Zarr or N5 array</p></div>"""

MOST_RECENT = 12


class MainWindow(QMainWindow):
    """The viewer.

    Attributes:
        image: the image in front, or None.
        intent: what of it the user wants to see.
        dataset: what the image was opened from.

    Signals:
        framed: another frame is on the screen.
        failed: something could not be opened; with the words for the user.
    """

    framed = pyqtSignal(object)
    failed = pyqtSignal(str)
    _frame_came = pyqtSignal(object)
    _tile_failed = pyqtSignal(object)
    _pane_failed = pyqtSignal(object)

    def __init__(self, settings: QSettings | None = None) -> None:
        super().__init__()
        self.setWindowTitle("zarrfs viewer")
        self.resize(1280, 900)
        self.setAcceptDrops(True)
        self.settings = settings if settings is not None else QSettings("zarrfs", "viewer")
        self.worker = Worker()
        self.streamer = TileStreamer()
        self.pipeline = ViewPipeline(
            self.streamer,
            on_frame=self._frame_came.emit,
            on_error=self._tile_failed.emit,
            on_failure=self._pane_failed.emit,
        )
        self._frame_came.connect(self._show_frame)
        self._tile_failed.connect(self._show_tile_error)
        self._pane_failed.connect(lambda error: self.say(f"The picture could not be drawn: {error}", True))
        self.image: Image | None = None
        self.intent: ViewIntent | None = None
        self.dataset: Dataset | None = None
        self.overlays: tuple[Image, ...] = ()
        self._show_chunks = False
        self._make_widgets()
        self._make_actions()
        self._restore()

    # -- making ------------------------------------------------------------------------------------------------

    def _make_widgets(self) -> None:
        self.canvas = Canvas()
        self.dimensions = DimensionsPanel()
        self.chooser = QComboBox()
        self.chooser.setAccessibleName("Image of the dataset")
        self.chooser.activated.connect(lambda _: self._open_image(self.chooser.currentData()))
        self.empty = QLabel(EMPTY)
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.empty.setAccessibleName("Nothing is open yet")
        pane = QWidget()
        column = QVBoxLayout(pane)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for widget in (self.chooser, self.canvas, self.dimensions):
            column.addWidget(widget)
        column.setStretch(1, 1)
        self.stack = QStackedWidget()
        self.stack.addWidget(self.empty)
        self.stack.addWidget(pane)
        self.setCentralWidget(self.stack)
        self.chooser.hide()

        self.hierarchy = HierarchyModel(self.worker, self)
        self.filtered = QSortFilterProxyModel(self)
        self.filtered.setSourceModel(self.hierarchy)
        self.filtered.setRecursiveFilteringEnabled(True)
        self.filtered.setFilterCaseSensitivity(Qt.CaseSensitivity.CaseInsensitive)
        self.tree = QTreeView()
        self.tree.setAccessibleName("Hierarchy")
        self.tree.setModel(self.filtered)
        self.tree.setUniformRowHeights(True)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._tree_menu)
        self.tree.setColumnWidth(0, 170)
        selection = self.tree.selectionModel()
        if selection is not None:
            selection.currentChanged.connect(self._node_chosen)
        search = search_box("Find in the hierarchy")
        search.textChanged.connect(self.filtered.setFilterFixedString)
        left = QWidget()
        rows = QVBoxLayout(left)
        rows.setContentsMargins(4, 4, 4, 4)
        rows.addWidget(search)
        rows.addWidget(self.tree)
        self._dock("Hierarchy", left, Qt.DockWidgetArea.LeftDockWidgetArea)

        self.channels = ChannelsPanel()
        self.metadata = MetadataPanel()
        self.panels = QTabWidget()
        self.panels.addTab(self.channels, "Channels")
        self.panels.addTab(self.metadata, "Metadata")
        self._dock("Image", self.panels, Qt.DockWidgetArea.RightDockWidgetArea)

        self.position = QLabel()
        self.memory = QLabel()
        self.busy = QProgressBar()
        self.busy.setMaximum(0)
        self.busy.setTextVisible(False)
        self.busy.setFixedWidth(80)
        self.busy.hide()
        bar = self.statusBar()
        if bar is not None:
            bar.addWidget(self.position, 1)
            bar.addPermanentWidget(self.busy)
            bar.addPermanentWidget(self.memory)
        self.notice = QLabel()
        self.notice.setWordWrap(True)
        self.notice.setMargin(8)
        self.notice.setAccessibleName("Message")
        self.notice.hide()
        column.insertWidget(0, self.notice)

        self.canvas.viewport_changed.connect(self.refresh)
        self.canvas.pointed.connect(self._point)
        self.canvas.stepped.connect(self.dimensions.step)
        self.dimensions.moved.connect(self._move)
        self.channels.changed.connect(self._change_channel)
        self.channels.auto.connect(self._auto_contrast)
        self.channels.wants_histogram.connect(self._load_histogram)
        self.hierarchy.failed.connect(lambda text: self.say(text, True))
        self.worker.busy.connect(lambda count: self.busy.setVisible(count > 0))

    def _dock(self, title: str, widget: QWidget, area: Qt.DockWidgetArea) -> None:
        dock = QDockWidget(title, self)
        dock.setObjectName(title)
        dock.setWidget(widget)
        self.addDockWidget(area, dock)
        self.resizeDocks([dock], [290], Qt.Orientation.Horizontal)

    def _make_actions(self) -> None:
        dark = self.settings.value("dark", True, bool)
        self.actions_by_name = add_actions(
            self,
            [
                ActionSpec("open_folder", "&File", "Open &folder ...", "Ctrl+O", self.ask_folder),
                ActionSpec("open_zip", "&File", "Open &zip file ...", "Ctrl+Shift+O", self.ask_zip),
                ActionSpec("open_location", "&File", "Open &location ...", "Ctrl+L", self.ask_location),
                ActionSpec("open_recent", "&File", "Open &recent ...", "Ctrl+R", self.ask_recent),
                ActionSpec("paste", "&File", "Open what is on the &clipboard", "Ctrl+V", self.paste),
                ActionSpec("screenshot", "&File", "Save the &picture ...", "Ctrl+S", self.ask_screenshot),
                ActionSpec("quit", "&File", "&Quit", "Ctrl+Q", self.close),
                ActionSpec("fit", "&View", "Show &all", "F", self.canvas.fit),
                ActionSpec("one_to_one", "&View", "&One to one", "1", self.canvas.one_to_one),
                ActionSpec("zoom_in", "&View", "Zoom &in", "+", lambda: self.canvas.zoom(KEY_ZOOM)),
                ActionSpec("zoom_out", "&View", "Zoom o&ut", "-", lambda: self.canvas.zoom(1 / KEY_ZOOM)),
                ActionSpec("turn", "&View", "Show the next pair of a&xes", "X", self.turn),
                ActionSpec("level", "&View", "Pyramid &level ...", "L", self.ask_level),
                ActionSpec("scale_bar", "&View", "&Scale bar", "B", self._show_scale_bar, True),
                ActionSpec("chunks", "&View", "&Chunk grid", "G", self._show_chunk_grid, False),
                ActionSpec("labels", "&View", "La&bels", "T", self._show_labels, True),
                ActionSpec("dark", "&View", "&Dark colours", "Ctrl+D", self._set_dark, dark),
                ActionSpec("next_slice", "&Image", "&Next slice", ".", lambda: self.dimensions.step(1)),
                ActionSpec(
                    "previous_slice", "&Image", "&Previous slice", ",", lambda: self.dimensions.step(-1)
                ),
                ActionSpec("auto_all", "&Image", "&Auto-contrast of all channels", "A", self.auto_contrast),
                ActionSpec("retry", "&Image", "&Read again what failed", "F5", self.retry),
                ActionSpec("palette", "&Help", "Find an &action ...", "Ctrl+Shift+P", self.show_palette),
                ActionSpec("keys", "&Help", "&Keys", "?", self.show_keys),
            ],
        )
        self._set_dark(dark)

    def _restore(self) -> None:
        for name, restore in (("geometry", self.restoreGeometry), ("windows", self.restoreState)):
            state = self.settings.value(name)
            if state is not None:
                restore(state)

    # -- opening -----------------------------------------------------------------------------------------------

    def open_location(self, location: str | Store, path: str = "") -> None:
        """Open a location; the answer comes when a worker has it."""
        name = location.url if isinstance(location, Store) else location
        self.say("")
        self.worker.forget("image")
        self.worker.submit(
            lambda: _open(location, name, path),
            lambda found: self._opened(name, *found),
            lambda error: self._not_opened(name, error),
            "open",
        )

    def _opened(
        self, location: str, node: Any, dataset: Dataset, image: Image | None, labels: Any, why: str
    ) -> None:
        self._remember(location)
        index = self.filtered.mapFromSource(self.hierarchy.add(display_name(location), node, location))
        self.tree.expand(index)
        self._show_dataset(dataset)
        self.metadata.show_node(node)
        if image is not None:
            self._show_image(image, labels)
        else:
            self._show_no_image(why)

    def _not_opened(self, location: str, error: Exception) -> None:
        self.say(str(error), True)
        self.metadata.show_text(f"{location}\n\n{error}")
        self.failed.emit(str(error))

    def _show_dataset(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.chooser.clear()
        for entry in dataset.images:
            self.chooser.addItem(entry.name or entry.path or "image", entry.path)
        self.chooser.setVisible(len(dataset.images) > 1)
        self.setWindowTitle(f"{dataset.name or dataset.location} - zarrfs viewer")

    def _open_image(self, path: str) -> None:
        dataset = self.dataset
        if dataset is None:
            return
        self.worker.forget("image")
        self.worker.submit(
            lambda: _with_labels(dataset, path),
            lambda found: self._show_image(*found),
            lambda error: self._show_no_image(str(error)),
            "image",
        )

    def _show_no_image(self, why: str) -> None:
        self.image = self.intent = None
        self.pipeline.clear()
        self.canvas.show_image(None, (0, 1))
        self.dimensions.show_image(None, (0, 1), ())
        self.channels.show_channels((), True)
        self.stack.setCurrentIndex(1)
        self.panels.setCurrentWidget(self.metadata)
        self.say(why, True)
        self.failed.emit(why)

    def _show_image(self, image: Image, overlays: tuple[Image, ...] = ()) -> None:
        self.worker.forget("contrast")
        old, self.image, self.overlays = self.image, image, overlays
        self.intent = initial_intent(image, len(overlays))
        if old is not None:
            self.streamer.forget(old)
        self.stack.setCurrentIndex(1)
        self.say("  ".join(image.notes))
        self._show_axes()
        self.channels.show_channels(self.intent.channels, image.dtype.kind in "iub")
        self.panels.setCurrentWidget(self.channels if self.intent.channels else self.metadata)
        self.canvas.setFocus()

    def _show_axes(self) -> None:
        if self.image is None or self.intent is None:
            return
        self.dimensions.show_image(self.image, self.intent.displayed, self.intent.position)
        self.canvas.show_image(self.image, self.intent.displayed)
        self.refresh()

    # -- showing -----------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Hand the newest wish to the pipeline."""
        if self.image is not None and self.intent is not None:
            self.pipeline.show(self.image, self.intent, self.canvas.viewport, self.overlays)
            self._draw_chunk_grid()

    def _show_frame(self, frame: Frame) -> None:
        if self.intent is None or self.image is None or frame.state.image is not self.image:
            return
        self.canvas.show_frame(frame)
        known = {(channel.index, channel.field): channel.limits for channel in frame.channels}
        for number, channel in enumerate(self.intent.channels):
            limits = known.get((channel.index, channel.field))
            if channel.limits is None and limits is not None and frame.exact:
                # What was chosen for a first look stays, and shows in the panel.
                self.intent = with_channel(self.intent, number, limits=limits)
        self.channels.show_settings(self.intent.channels)
        use = self.streamer.memory
        self.memory.setText(f"{use.nbytes >> 20} of {use.budget >> 20} MiB")
        self.framed.emit(frame)

    def _show_tile_error(self, error: TileError) -> None:
        self.say(error.message, True)

    def say(self, text: str, warning: bool = False) -> None:
        """Show a message above the picture until the next one; none for an empty text."""
        self.notice.setText(text)
        self.notice.setStyleSheet(
            "background: #7a3b1d; color: white;" if warning else "background: #2d4a7a; color: white;"
        )
        self.notice.setVisible(bool(text))
        if text and self.stack.currentIndex() == 0:
            self.stack.setCurrentIndex(1)

    def _point(self, place: tuple[float, float] | None) -> None:
        state = self.pipeline.state
        found = None if place is None or state is None else readout(state, self.streamer, *place)
        self.position.setText("" if found is None else found.text())

    def _move(self, axis: int, value: float) -> None:
        if self.intent is not None:
            self.intent = with_position(self.intent, axis, value)
            self.refresh()

    def turn(self) -> None:
        """Display the next pair of axes: XY, XZ, YZ and so on."""
        if self.image is None or self.intent is None:
            return
        axes = self.image.slider_axes
        pairs = [(a, b) for i, a in enumerate(axes) for b in axes[i + 1 :]]
        if len(pairs) > 1:
            now = pairs.index(self.intent.displayed) if self.intent.displayed in pairs else 0
            self.intent = with_displayed(self.intent, *pairs[(now - 1) % len(pairs)])
            self._show_axes()

    # -- channels ----------------------------------------------------------------------------------------------

    def _change_channel(self, number: int, changes: dict[str, Any]) -> None:
        if self.intent is not None:
            self.intent = with_channel(self.intent, number, **changes)
            self.channels.show_settings(self.intent.channels)
            self.refresh()

    def auto_contrast(self) -> None:
        """Choose the limits of every channel anew."""
        for number in range(len(self.intent.channels) if self.intent is not None else 0):
            self._auto_contrast(number)

    def _auto_contrast(self, number: int) -> None:
        image, intent = self.image, self.intent
        if image is None or intent is None:
            return
        self.worker.submit(
            lambda: auto_limits(channel_values(image, intent.channels[number], intent)),
            lambda limits: self._change_channel(number, {"limits": limits}),
            lambda error: self.say(str(error), True),
            "contrast",
        )

    def _load_histogram(self, number: int) -> None:
        image, intent = self.image, self.intent
        if image is None or intent is None or image.rgb_axis is not None:
            return
        self.worker.submit(
            lambda: histogram(channel_values(image, intent.channels[number], intent)),
            lambda found: self.channels.show_histogram(number, found),
            lambda error: self.say(str(error), True),
            "contrast",
        )

    # -- the tree ----------------------------------------------------------------------------------------------

    def _item(self, index: QModelIndex) -> Item:
        return self.hierarchy.item(self.filtered.mapToSource(index))

    def _node_chosen(self, index: QModelIndex) -> None:
        item = self._item(index)
        node = item.node
        if node is None:
            self.metadata.show_text(item.error)
            return
        self.metadata.show_node(node)
        self.worker.forget("image")
        self.worker.submit(
            lambda: _describe(node, item),
            lambda found: self._chosen(*found),
            lambda error: self.say(str(error), True),
            "image",
        )

    def _chosen(self, dataset: Dataset, image: Image | None, labels: tuple[Image, ...], why: str) -> None:
        if image is not None:
            self.say("")
            self._show_dataset(dataset)
            self._show_image(image, labels)
        else:
            self.say(why)

    def _tree_menu(self, point: Any) -> None:
        index = self.tree.indexAt(point)
        viewport = self.tree.viewport()
        clipboard = QGuiApplication.clipboard()
        if not index.isValid() or viewport is None or clipboard is None:
            return
        item = self._item(index)
        where = f"{item.location.rstrip('/')}/{item.path}".rstrip("/")
        store = item.node.store.url if item.node is not None else Path(item.location).absolute().as_uri()
        menu = QMenu(self)
        for title, text in (
            ("Copy path", where),
            ("Copy URL", f"{store}/{item.path}".rstrip("/")),
            ("Copy Python", f"import zarrfs\nnode = zarrfs.open({item.location!r}, {item.path!r})"),
        ):
            action = menu.addAction(title)
            if action is not None:
                action.triggered.connect(lambda _=False, text=text: clipboard.setText(text))
        menu.exec(viewport.mapToGlobal(point))

    # -- actions -----------------------------------------------------------------------------------------------

    def ask_folder(self) -> None:
        """Ask for a folder and open it."""
        folder = QFileDialog.getExistingDirectory(self, "Open a Zarr folder")
        if folder:
            self.open_location(folder)

    def ask_zip(self) -> None:
        """Ask for a zip file, or a metadata document, and open it."""
        file, _ = QFileDialog.getOpenFileName(
            self, "Open a zip file", "", "Zarr (*.zip zarr.json .zarray .zgroup .zattrs)"
        )
        if file:
            self.open_location(locations_in(file)[0])

    def ask_location(self) -> None:
        """Ask for a path or URL and open it."""
        text, given = QInputDialog.getText(self, "Open a location", "Path or URL:")
        if given:
            self.open_all(text)

    def ask_recent(self) -> None:
        """Ask for one of the locations that were opened lately."""
        recent = self.recent()
        if not recent:
            self.say("Nothing was opened before.")
            return
        text, given = QInputDialog.getItem(self, "Open recent", "Location:", recent, 0, False)
        if given:
            self.open_location(text)

    def paste(self) -> None:
        """Open the locations on the clipboard."""
        clipboard = QGuiApplication.clipboard()
        self.open_all(clipboard.text() if clipboard is not None else "")

    def open_all(self, text: str) -> None:
        """Open every location in a text."""
        for location in locations_in(text):
            self.open_location(location)

    def ask_screenshot(self) -> None:
        """Ask for a file and write the picture, as it is drawn, to it."""
        file, _ = QFileDialog.getSaveFileName(self, "Save the picture", "picture.png", "PNG (*.png)")
        if file and not self.canvas.grab().save(file, "PNG"):
            self.say(f"{file} could not be written", True)

    def ask_level(self) -> None:
        """Ask for a pyramid level to stay on."""
        if self.image is None or self.intent is None:
            return
        names = ["chosen by the zoom"] + [
            f"{number}: {' x '.join(map(str, level.shape))}" for number, level in enumerate(self.image.levels)
        ]
        lock = self.intent.level_lock
        text, given = QInputDialog.getItem(
            self, "Pyramid level", "Level:", names, 0 if lock is None else lock + 1, False
        )
        if given:
            number = names.index(text) - 1
            self.intent = with_level_lock(self.intent, None if number < 0 else number)
            self.refresh()

    def retry(self) -> None:
        """Read again what could not be read."""
        self.say("")
        self.streamer.retry()
        self.refresh()

    def _show_scale_bar(self, on: bool) -> None:
        self.canvas.show_scale_bar = on
        self.canvas.update()

    def _show_chunk_grid(self, on: bool) -> None:
        self._show_chunks = on
        self._draw_chunk_grid()

    def _draw_chunk_grid(self) -> None:
        state = self.pipeline.state
        if self._show_chunks and self.image is not None and self.intent is not None:
            level = state.level if state is not None and state.image is self.image else 0
            self.canvas.show_grid(chunk_grid(self.image, self.intent, self.canvas.viewport, level))
        else:
            self.canvas.show_grid(None)

    def _show_labels(self, on: bool) -> None:
        if self.intent is not None:
            for number in range(len(self.intent.labels)):
                self.intent = with_labels(self.intent, number, visible=on)
            self.refresh()

    def _set_dark(self, on: bool) -> None:
        self.settings.setValue("dark", on)
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_theme(application, on)
        self.channels.plot.setBackground("#1b1d22" if on else "#ffffff")

    def show_palette(self) -> None:
        """Show all actions to choose from."""
        Palette(self.actions_by_name, self).exec()

    def show_keys(self) -> None:
        """Show what the keys do."""
        box = QMessageBox(self)
        box.setWindowTitle("Keys")
        box.setText(key_help(self.actions_by_name))
        box.exec()

    # -- life --------------------------------------------------------------------------------------------------

    def recent(self) -> list[str]:
        """Return the locations that were opened lately, the newest first."""
        value = self.settings.value("recent", [])
        return [value] if isinstance(value, str) else list(value or [])

    def _remember(self, location: str) -> None:
        others = [other for other in self.recent() if other != location]
        self.settings.setValue("recent", [location, *others][:MOST_RECENT])

    def dragEnterEvent(self, event: QDragEnterEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        if event is not None and data is not None and (data.hasUrls() or data.hasText()):
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent | None) -> None:
        data = event.mimeData() if event is not None else None
        if event is None or data is None:
            return
        urls = [url.toLocalFile() or url.toString() for url in data.urls()]
        self.open_all("\n".join(urls) if urls else data.text())
        event.acceptProposedAction()

    def sizeHint(self) -> QSize:
        return QSize(1280, 900)

    def write_picture(self, file: Path) -> None:
        """Write the frame that is drawn to a PNG file. Raises OSError."""
        if self.canvas.frame is not None:
            write_png(file, self.canvas.frame.pixels)

    def closeEvent(self, event: QCloseEvent | None) -> None:
        self.settings.setValue("geometry", self.saveGeometry())
        self.settings.setValue("windows", self.saveState())
        self.dimensions.stop()
        self.pipeline.close()
        self.streamer.close()
        self.worker.close()
        super().closeEvent(event)


# -- on a worker -----------------------------------------------------------------------------------------------


def _open(
    location: str | Store, name: str, path: str
) -> tuple[Any, Dataset, Image | None, tuple[Image, ...], str]:
    """Open a location and its first image; where there is none, say why."""
    node = zarrfs.open(location, path)
    dataset = describe(node, name, path)
    return node, *_first_image(dataset)


def _describe(node: Any, item: Item) -> tuple[Dataset, Image | None, tuple[Image, ...], str]:
    return _first_image(describe(node, item.location, item.path))


def _first_image(dataset: Dataset) -> tuple[Dataset, Image | None, tuple[Image, ...], str]:
    try:
        image, labels = _with_labels(dataset, None)
    except zarrfs.ZarrError as error:
        return dataset, None, (), " ".join(dataset.problems) or str(error)
    return dataset, image, labels, ""


def _with_labels(dataset: Dataset, path: str | None) -> tuple[Image, tuple[Image, ...]]:
    image = dataset.open_image(path)
    return image, dataset.open_labels(image)
