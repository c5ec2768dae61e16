"""The panels in docks beside the image: hierarchy, series, plate, image settings, measurements, metadata, messages."""

from __future__ import annotations

from collections.abc import Iterator

from PyQt6.QtCore import QSettings, Qt, QTimer
from PyQt6.QtWidgets import QMainWindow

from zarrfs_viewer.images.dataset import Dataset
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.panels.channels_panel import ChannelsPanel
from zarrfs_viewer.qt.panels.gallery import Gallery
from zarrfs_viewer.qt.panels.labels_panel import LabelsPanel
from zarrfs_viewer.qt.panels.log_panel import LogHandler, LogPanel
from zarrfs_viewer.qt.panels.measure_panel import MeasurePanel
from zarrfs_viewer.qt.panels.metadata_panel import MetadataPanel
from zarrfs_viewer.qt.panels.plate_panel import PlatePanel
from zarrfs_viewer.qt.panels.tree_panel import TreePanel
from zarrfs_viewer.qt.session import Session
from zarrfs_viewer.qt.support.plain_text import button_text
from zarrfs_viewer.qt.support.tabs import NarrowTabWidget
from zarrfs_viewer.qt.window.docks import DockLayout
from zarrfs_viewer.state.view_state import ChannelSettings

__all__ = ["SidePanels"]

LABELS_HINT = "This image consists of labels and has no channels. The tab Labels contains its settings."


class SidePanels:
    """Creates the panels and their docks. The attributes exist after ``create``.

    Attributes:
        docks: the docks and their widths.
        tabs: channels, labels, measurements and metadata.
        log_handler: adds the warnings of the engine to the messages.
        gallery_dock, plate_dock, log_dock: docks that are visible only if they have a content.
    """

    def __init__(self, window: QMainWindow, session: Session, mounts: Mounts, settings: QSettings) -> None:
        self._window = window
        self._session = session
        self._mounts = mounts
        self.docks = DockLayout(window, settings)

    def create(self) -> Iterator[None]:
        """Create the panels and the docks. Each ``yield`` ends a step of some milliseconds."""
        session = self._session
        self.tree_panel = TreePanel(session, self._mounts)
        yield
        self.gallery = Gallery(session.worker)
        self.plate = PlatePanel(session)
        yield
        self.channels = ChannelsPanel()
        # The rows of the channels are created by a later event, so that the picture is requested before.
        self._channels_timer = QTimer(self._window)
        self._channels_timer.setSingleShot(True)
        self._channels_timer.setInterval(0)
        self._channels_timer.timeout.connect(self._show_channels)
        yield
        # The first row of a channel takes PyQt several times as long as the later ones.
        self.channels.show_channels((ChannelSettings(),), "u", False)
        self.channels.show_channels((), "u", False)
        yield
        self.labels = LabelsPanel(session)
        self.measure = MeasurePanel(session)
        yield
        self.metadata = MetadataPanel(session)
        self.log = LogPanel()
        yield
        self.tabs = NarrowTabWidget()
        for widget, title in (
            (self.channels, "Channels"),
            (self.labels, "Labels"),
            (self.measure, "Measure"),
            (self.metadata, "Metadata"),
        ):
            self.tabs.addTab(widget, button_text(title))
        left = Qt.DockWidgetArea.LeftDockWidgetArea
        self.docks.add("Hierarchy", self.tree_panel, left)
        self.gallery_dock = self.docks.add("Images", self.gallery, left)
        self.plate_dock = self.docks.add("Plate", self.plate, left)
        self.docks.add("Image", self.tabs, Qt.DockWidgetArea.RightDockWidgetArea)
        self.log_dock = self.docks.add("Messages", self.log, Qt.DockWidgetArea.BottomDockWidgetArea)
        self._connect()
        yield

    def _connect(self) -> None:
        """Connect the panels with the session and with each other."""
        session = self._session
        session.node_changed.connect(self.metadata.show_node)
        self.channels.changed.connect(lambda number, changes: session.change_channel(number, **changes))
        self.channels.visibility_changed.connect(session.change_visibility)
        self.labels.changed.connect(lambda number, changes: session.change_labels(number, **changes))
        self.tree_panel.unreadable_node_selected.connect(self.metadata.show_text)
        self.tree_panel.clicked.connect(lambda: self.tabs.setCurrentWidget(self.metadata))
        self.tree_panel.closed.connect(session.close_location)
        self.gallery.image_selected.connect(session.open_image)
        self.plate.image_selected.connect(session.open_image)
        self.log_handler = LogHandler("zarrfs")
        self.log_handler.received.connect(self.log.add)

    def close(self) -> None:
        """End the display of log records."""
        self.log_handler.close()

    def show_docks(self) -> None:
        """Show the docks when the first location is opened. Docks for other kinds of data appear with the data."""
        if not self.docks.are_shown:
            self.docks.show("Hierarchy", "Image")
            for dock in (self.gallery_dock, self.plate_dock, self.log_dock):
                dock.hide()

    def show_dataset(self, dataset: Dataset) -> None:
        """Show the docks of a dataset: its series and its plate."""
        self.show_docks()
        has_series = len(dataset.images) > 1
        if has_series:
            self.gallery.show_dataset(dataset)
        if dataset.plate is not None:
            self.plate.show_dataset(dataset)
        for dock, visible in ((self.gallery_dock, has_series), (self.plate_dock, dataset.plate is not None)):
            if visible and dock.isHidden():
                dock.show()
                self._window.resizeDocks([dock], [self._window.height() // 2], Qt.Orientation.Vertical)
            dock.setVisible(visible)
        self.docks.arrange()

    def _show_channels(self) -> None:
        image, intent = self._session.image, self._session.intent
        if image is None or intent is None:
            self.channels.show_channels((), "u", False)
            self.channels.show_hint("")
        else:
            self.channels.show_hint("" if intent.channels else LABELS_HINT)
            self.channels.show_channels(
                intent.channels, image.dtype.kind, image.rgb_axis is not None, image.value_unit
            )
            self.channels.show_settings(intent.channels)

    def show_channel_settings(self, channels: tuple[ChannelSettings, ...]) -> None:
        """Show settings of channels that were changed elsewhere."""
        if not self._channels_timer.isActive():
            self.channels.show_settings(channels)

    def show_label_images(self) -> None:
        """Show the settings of the label images of the session."""
        intent = self._session.intent
        if intent is not None:
            names = tuple(image.name or "labels" for image in self._session.label_images)
            self.labels.show_labels(names, intent.labels)

    def show_image(self) -> None:
        """Show the settings of the image of the session, or none."""
        image, intent = self._session.image, self._session.intent
        self.measure.clear()
        self._channels_timer.start()
        if image is None or intent is None:
            self.labels.show_labels((), ())
            return
        self.show_label_images()
        if self.tabs.currentWidget() is not self.measure:
            only_labels = not intent.channels and intent.labels
            self.tabs.setCurrentWidget(self.labels if only_labels else self.channels)
