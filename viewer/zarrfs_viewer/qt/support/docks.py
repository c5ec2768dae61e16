"""The docks of the window: their widths when the window is resized, and their visibility while nothing is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from PyQt6.QtCore import QByteArray, QEvent, QObject, QSettings, Qt, QTimer
from PyQt6.QtGui import QCursor
from PyQt6.QtWidgets import QApplication, QDockWidget, QMainWindow, QMenu, QWidget

from zarrfs_viewer.qt.support.actions import ActionSpec
from zarrfs_viewer.qt.support.plain_text import plain

__all__ = ["DockLayout", "Shown"]

Shown = Literal["first", "with_data", "as_left"]
"""When a dock is shown: with the first location, when its data are displayed, or if it was visible last time."""

DEFAULT_WIDTH = 320
MIN_WIDTHS = {
    Qt.DockWidgetArea.LeftDockWidgetArea: 160,
    Qt.DockWidgetArea.RightDockWidgetArea: 240,
}
"""The controls of a channel and the titles of the panels need the width at the right."""
MAX_WINDOW_PARTS = {
    Qt.DockWidgetArea.LeftDockWidgetArea: 0.25,
    Qt.DockWidgetArea.RightDockWidgetArea: 0.29,
}
"""A dock at the side becomes at most this part of the window's width when the window shrinks."""

WIDTH_KEYS = {
    Qt.DockWidgetArea.LeftDockWidgetArea: "left_width",
    Qt.DockWidgetArea.RightDockWidgetArea: "right_width",
}
"""The settings of the widths."""

STATE_VERSION = 2
"""Changes when docks or toolbars are added or renamed: older states are not restored."""


class DockLayout(QObject):
    """Creates the docks of a window.

    When the window becomes narrower, the docks at its sides shrink; when it becomes wider again, they regain the width
    that the user chose. The docks are hidden until something is opened.
    """

    def __init__(self, window: QMainWindow, settings: QSettings) -> None:
        super().__init__(window)
        self._window = window
        self._settings = settings
        self._docks: dict[str, QDockWidget] = {}
        self._shown: dict[str, Shown] = {}
        self._widths = {
            Qt.DockWidgetArea.LeftDockWidgetArea: DEFAULT_WIDTH,
            Qt.DockWidgetArea.RightDockWidgetArea: DEFAULT_WIDTH,
        }
        self._window_width = 0
        # The layout of the window may follow its resize event: the widths are set once more after it.
        self._again = QTimer(self)
        self._again.setSingleShot(True)
        self._again.setInterval(0)
        self._again.timeout.connect(self._set_widths)
        self._is_arranging = False
        self._restored: QByteArray | None = None
        self._initial = QByteArray()
        """The state of the docks and of the toolbar before that of the last window is restored."""
        self._has_data: dict[str, bool] = {}
        """Whether a dock that is shown with data has some, by the title of the dock."""
        self.are_shown = False

    def actions(self) -> Sequence[ActionSpec]:
        """Return the actions that show docks which the user closed."""
        return (
            ActionSpec(
                "panels",
                "&View",
                "Sho&w panels",
                "Ctrl+Alt+P",
                self.choose,
                place=400,
                needs="data",
                synonyms="docks",
                fill=self.fill_menu,
            ),
            ActionSpec(
                "reset_layout",
                "&View",
                "Reset la&yout",
                "Ctrl+Alt+R",
                self.reset,
                place=401,
                needs="data",
                synonyms="default docks",
            ),
        )

    def fill_menu(self, menu: QMenu) -> None:
        """Add a check box for each dock to a menu. Those without data cannot be checked."""
        for title, dock in self._docks.items():
            action = dock.toggleViewAction()
            if action is not None:
                action.setEnabled(self._has_data.get(title, True))
                menu.addAction(action)

    def choose(self) -> None:
        """Show the menu of the docks at the pointer."""
        menu = QMenu(self._window)
        self.fill_menu(menu)
        menu.exec(QCursor.pos())
        menu.deleteLater()

    def reset(self) -> None:
        """Show the docks and the toolbar where they are in a new installation, with their initial widths."""
        if not self.are_shown:
            return
        self._window.restoreState(self._initial, STATE_VERSION)
        for title, dock in self._docks.items():
            if self._shown[title] == "with_data":
                dock.setVisible(self._has_data.get(title, False))
        self._widths = dict.fromkeys(self._widths, DEFAULT_WIDTH)
        self.arrange()

    def add(self, title: str, widget: QWidget, area: Qt.DockWidgetArea, shown: Shown) -> QDockWidget:
        """Add a dock. Its title is also the name of its state in the settings."""
        dock = QDockWidget(plain(title))
        dock.setObjectName(title)
        dock.setWidget(widget)
        self._window.addDockWidget(area, dock)
        self._docks[title] = dock
        self._shown[title] = shown
        if area in self._widths:
            dock.installEventFilter(self)
        dock.hide()
        return dock

    def show(self) -> None:
        """Show the docks for the first time, with the state of the window that was closed last, or a restored one.

        Later calls change nothing.
        """
        if self.are_shown:
            return
        self.are_shown = True
        for title, dock in self._docks.items():
            dock.setVisible(self._shown[title] == "first")
        self._initial = self._window.saveState(STATE_VERSION)
        state = self._restored or self._settings.value("docks")
        if state is not None:
            self._window.restoreState(state, STATE_VERSION)
        for area in self._widths:
            # The widths in the state are those of the window's last size, not those that the user chose.
            self._widths[area] = max(
                MIN_WIDTHS[area], self._settings.value(WIDTH_KEYS[area], self._widths[area], int)
            )
        for title, dock in self._docks.items():
            if self._shown[title] == "with_data":
                dock.hide()
        self.arrange()

    def show_with_data(self, dock: QDockWidget, has_data: bool) -> None:
        """Show a dock that has data, or hide it. It gets half of the height when it appears."""
        self.show()
        self._has_data[dock.objectName()] = has_data
        if has_data and dock.isHidden():
            dock.show()
            self._window.resizeDocks([dock], [self._window.height() // 2], Qt.Orientation.Vertical)
        dock.setVisible(has_data)
        self.arrange()

    def state(self) -> str:
        """Return the state of the docks as hexadecimal text, or an empty text if they are not shown."""
        return self._window.saveState(STATE_VERSION).toHex().data().decode() if self.are_shown else ""

    def restore(self, state: str) -> None:
        """Use a text of ``state`` when the docks are shown. An empty text has no effect."""
        self._restored = QByteArray.fromHex(state.encode()) if state else None

    def hide(self) -> None:
        """Hide all docks, after the last location was closed."""
        self.save()
        self._restored = None
        self.are_shown = False
        for dock in self._docks.values():
            dock.hide()

    def save(self) -> None:
        """Write the state of the docks to the settings, if they are shown."""
        if self.are_shown:
            self._settings.setValue("docks", self._window.saveState(STATE_VERSION))
            for area, width in self._widths.items():
                self._settings.setValue(WIDTH_KEYS[area], width)

    def arrange(self) -> None:
        """Set the widths for the width of the window. Call it when the window has been resized."""
        self._set_widths()
        self._again.start()

    def _set_widths(self) -> None:
        self._window_width = self._window.width()
        if not self.are_shown:
            return
        self._is_arranging = True
        for area, width in self._widths.items():
            limit = max(MIN_WIDTHS[area], round(self._window_width * MAX_WINDOW_PARTS[area]))
            docks = self._side(area)
            if docks:
                self._window.resizeDocks(docks[:1], [min(width, limit)], Qt.Orientation.Horizontal)
        self._is_arranging = False

    def _side(self, area: Qt.DockWidgetArea) -> list[QDockWidget]:
        return [
            dock
            for dock in self._docks.values()
            if not dock.isHidden() and not dock.isFloating() and self._window.dockWidgetArea(dock) == area
        ]

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        """Remember the width that the user gave to a dock: the width of the window did not change."""
        if (
            event is not None
            and event.type() == QEvent.Type.Resize
            and isinstance(watched, QDockWidget)
            and self.are_shown
            and not self._is_arranging
            and not watched.isFloating()
            and self._window.width() == self._window_width
        ):
            area = self._window.dockWidgetArea(watched)
            if area in self._widths and watched.width() >= MIN_WIDTHS[area] and self._is_dragged():
                self._widths[area] = watched.width()
        return False

    def _is_dragged(self) -> bool:
        """Return whether the user drags a border: the docks are also resized when other docks appear."""
        return bool(QApplication.mouseButtons() & Qt.MouseButton.LeftButton)
