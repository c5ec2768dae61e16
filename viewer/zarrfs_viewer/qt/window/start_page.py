"""The start page: buttons to open data, and the recent locations with thumbnails."""

from __future__ import annotations

from PyQt6.QtCore import QSize, Qt, pyqtSignal
from PyQt6.QtGui import QColor, QIcon, QImage, QPainter, QPixmap
from PyQt6.QtWidgets import (
    QApplication,
    QGridLayout,
    QHBoxLayout,
    QListView,
    QListWidget,
    QListWidgetItem,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from zarrfs_viewer.locations import display_name
from zarrfs_viewer.qt.support.plain_text import PlainLabel, button_text, plain, plain_name, tooltip
from zarrfs_viewer.qt.window.recent import THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH, RecentLocations

__all__ = ["StartPage"]

MAX_SHOWN = 8
LOCATION = Qt.ItemDataRole.UserRole
MAX_WIDTH = 720
BUTTON_HEIGHT = 34
BUTTONS = (
    ("open_folder", "Open folder...", "A Zarr or N5 directory (Ctrl+O)"),
    ("open_zip", "Open file...", "A zip file, or a zarr.json, .zarray or .zattrs file (Ctrl+Shift+O)"),
    ("open_location", "Open URL...", "A URL, a path or a link to a view (Ctrl+L)"),
    ("open_sample", "Sample data set", "Generates a small image with cells, and opens it"),
)


class StartPage(QWidget):
    """The page that is displayed while nothing is open.

    Signals:
        action_requested: (name) the action of a button.
        location_selected: (location) the user selected a recent location.
    """

    action_requested = pyqtSignal(str)
    location_selected = pyqtSignal(str)

    def __init__(self, recent: RecentLocations, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._recent = recent
        self.setAccessibleName("No image is open")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        title = PlainLabel("Open a Zarr image")
        font = title.font()
        font.setPointSizeF(font.pointSizeF() * 1.7)
        title.setFont(font)
        hint = PlainLabel(
            "Drop folders, zip files, metadata files or links anywhere on this window. OME-Zarr images are opened with "
            "channels, pyramids, labels and plates; any other Zarr or N5 array is opened as an image.",
            wrap=True,
        )
        self.buttons: dict[str, QPushButton] = {}
        grid = QGridLayout()
        for number, (name, text, tip) in enumerate(BUTTONS):
            button = QPushButton(button_text(text))
            button.setToolTip(tooltip(tip))
            button.setMinimumHeight(BUTTON_HEIGHT)
            button.clicked.connect(lambda _=False, name=name: self.action_requested.emit(name))
            self.buttons[name] = button
            grid.addWidget(button, *divmod(number, 2))
        self.title = PlainLabel("Recent")
        self.list = QListWidget()
        self.list.setAccessibleName("Recent locations")
        self.list.setViewMode(QListView.ViewMode.IconMode)
        self.list.setResizeMode(QListView.ResizeMode.Adjust)
        self.list.setMovement(QListView.Movement.Static)
        self.list.setIconSize(QSize(THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT))
        self.list.setGridSize(QSize(THUMBNAIL_WIDTH + 24, THUMBNAIL_HEIGHT + 40))
        self.list.setWordWrap(True)
        self.list.setFrameShape(QListWidget.Shape.NoFrame)
        self.list.setStyleSheet("QListWidget { background: transparent; color: palette(window-text); }")
        self.list.itemClicked.connect(self._select)
        # A double click also activates the item, after the click has selected it.
        self.list.itemActivated.connect(
            lambda item: (
                self._select(item) if QApplication.mouseButtons() == Qt.MouseButton.NoButton else None
            )
        )
        keys = PlainLabel(
            "Ctrl+Shift+P opens the command palette, ? shows the keyboard shortcuts.", wrap=True
        )
        column = QVBoxLayout()
        column.addStretch(1)
        column.addWidget(title)
        column.addWidget(hint)
        column.addSpacing(8)
        column.addLayout(grid)
        column.addSpacing(16)
        column.addWidget(self.title)
        column.addWidget(self.list, 20)
        column.addWidget(keys)
        column.addStretch(1)
        inner = QWidget()
        inner.setLayout(column)
        inner.setMaximumWidth(MAX_WIDTH)
        layout = QHBoxLayout(self)
        layout.addStretch(1)
        layout.addWidget(inner, 100)
        layout.addStretch(1)
        self.refresh()

    def refresh(self) -> None:
        """Read the recent locations and their thumbnails again."""
        self.list.clear()
        locations = self._recent.locations()[:MAX_SHOWN]
        names = [display_name(location) for location in locations]
        for location, name in zip(locations, names, strict=True):
            item = QListWidgetItem(
                plain_name(name if names.count(name) == 1 else f"{name} in {_folder(location)}")
            )
            item.setIcon(self._icon(location))
            item.setToolTip(tooltip(location))
            item.setData(LOCATION, location)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, plain(location))
            self.list.addItem(item)
        for widget in (self.title, self.list):
            widget.setVisible(bool(locations))

    def _icon(self, location: str) -> QIcon:
        """Return the thumbnail of a location on a dark rectangle, or only the rectangle if there is no thumbnail."""
        pixmap = QPixmap(THUMBNAIL_WIDTH, THUMBNAIL_HEIGHT)
        pixmap.fill(QColor(18, 18, 22))
        file = self._recent.thumbnail(location)
        picture = QImage(str(file)) if file.is_file() else QImage()
        if not picture.isNull():
            painter = QPainter(pixmap)
            x, y = (THUMBNAIL_WIDTH - picture.width()) // 2, (THUMBNAIL_HEIGHT - picture.height()) // 2
            painter.drawImage(x, y, picture)
            painter.end()
        return QIcon(pixmap)

    def _select(self, item: QListWidgetItem) -> None:
        self.location_selected.emit(item.data(LOCATION))


def _folder(location: str) -> str:
    """Return the name of the folder or host of a location, to distinguish locations with the same name."""
    folder = location.partition("#")[0].rstrip("/").rpartition("/")[0]
    return display_name(folder) or "/"
