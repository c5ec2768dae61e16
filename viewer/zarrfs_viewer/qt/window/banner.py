"""The banner: a message over the picture, on one line, with the whole text on request and a button that helps."""

from __future__ import annotations

from PyQt6.QtCore import QEvent, QObject, Qt, QTimer
from PyQt6.QtGui import QAction, QResizeEvent
from PyQt6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from zarrfs_viewer.qt.support.plain_text import PlainLabel, button_text, plain, plain_lines, tooltip
from zarrfs_viewer.qt.support.widgets import tool_button

__all__ = ["Banner"]

VISIBLE_MILLISECONDS = 6000
"""A message that is not a warning disappears after this time."""
MAX_WIDTH = 760
MARGIN = 10
MAX_KEPT = 20
"""The maximum number of lines of the messages that are kept until the user closes them."""
MOVING_EVENTS = (QEvent.Type.Resize, QEvent.Type.Show, QEvent.Type.Hide)
"""Events of the parent, or of the banner above, that change the place of a banner."""
STYLES = {True: "#8a3f1d", False: "#2d4a7a"}
"""The background colour of warnings and of other messages."""


class Banner(QFrame):
    """A message over its parent widget. Warnings remain until they are closed or replaced.

    ``above`` is another banner, below which this one is placed while both are visible.
    """

    def __init__(self, parent: QWidget, above: Banner | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName("Message" if above is None else "Completed work")
        self._above = above
        self._text = ""
        self._is_warning = False
        self.line = PlainLabel()
        self.line.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.details = PlainLabel(wrap=True)
        self.details.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.more = QPushButton(button_text("Details"))
        self.more.setCheckable(True)
        self.more.setFlat(True)
        self.more.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.more.toggled.connect(lambda _: self._arrange())
        self._action: QAction | None = None
        self.act = QPushButton()
        self.act.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.act.clicked.connect(lambda _: self._trigger())
        self.dismiss = tool_button("✕", "Close the message")
        self.dismiss.setAutoRaise(True)
        self.dismiss.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.dismiss.clicked.connect(self.hide)
        row = QHBoxLayout()
        row.addWidget(self.line, 1)
        row.addWidget(self.act)
        row.addWidget(self.more)
        row.addWidget(self.dismiss)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(12, 4, 6, 4)
        layout.setSpacing(2)
        layout.addLayout(row)
        layout.addWidget(self.details)
        self.timer = QTimer(self)
        self.timer.setSingleShot(True)
        self.timer.setInterval(VISIBLE_MILLISECONDS)
        self.timer.timeout.connect(self.hide)
        parent.installEventFilter(self)
        if above is not None:
            above.installEventFilter(self)
        self.hide()

    def text(self) -> str:
        """Return the whole message, also after it has disappeared."""
        return self._text

    def add_message(self, text: str, is_warning: bool) -> None:
        """Show a message above those that the user has not closed yet. None of them disappears by itself."""
        former = self._text.splitlines()[: MAX_KEPT - 1] if not self.isHidden() else []
        self.show_message("\n".join((text, *former)), is_warning or bool(former and self._is_warning))
        self.timer.stop()

    def show_message(self, text: str, is_warning: bool, action: QAction | None = None) -> None:
        """Show a message, and a button for an action. An empty text hides the banner."""
        self._action = action
        self.act.setVisible(action is not None)
        if action is not None:
            self.act.setText(button_text(action.text().replace("&", "")))
            self.act.setToolTip(tooltip(action.shortcut().toString()))
        self._text, self._is_warning = plain_lines(text), is_warning
        self.timer.stop()
        self.more.setChecked(False)
        self.details.setText(plain_lines(text))
        if not text:
            self.hide()
            return
        style = (
            f"Banner {{ background: {STYLES[is_warning]}; border-radius: 6px; }}"
            "QLabel, QPushButton, QToolButton { color: white; background: transparent; }"
            "QPushButton { padding: 2px 8px; } QPushButton:!flat { border: 1px solid white; border-radius: 4px; }"
        )
        if style != self.styleSheet():  # setting it takes a millisecond also if it is the same
            self.setStyleSheet(style)
        self.show()
        self.raise_()
        self._arrange()
        if not is_warning:
            self.timer.start()

    def _trigger(self) -> None:
        if self._action is not None:
            self._action.trigger()

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:
        if event is not None and event.type() in MOVING_EVENTS and self.isVisible():
            self._arrange()
        return False

    def resizeEvent(self, event: QResizeEvent | None) -> None:
        super().resizeEvent(event)
        self._elide()

    def _arrange(self) -> None:
        """Place the banner at the top of its parent."""
        parent = self.parentWidget()
        if parent is None:
            return
        self.details.setVisible(self.more.isChecked())
        self.line.setVisible(True)
        above = self._above
        top = MARGIN + (above.geometry().bottom() if above is not None and not above.isHidden() else 0)
        width = max(1, min(MAX_WIDTH, parent.width() - 2 * MARGIN))
        layout = self.layout()
        height = layout.totalHeightForWidth(width) if layout is not None and layout.hasHeightForWidth() else 0
        height = max(height, self.sizeHint().height()) if not self.more.isChecked() else height
        self.setGeometry(
            (parent.width() - width) // 2, top, width, max(1, min(height, parent.height() - top - MARGIN))
        )
        self._elide()

    def _elide(self) -> None:
        """Show the part of the message that fits on one line, and the button for the rest."""
        line = plain(self._text.replace("\n", " "))
        available = self.line.width()
        metrics = self.line.fontMetrics()
        shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, max(available, 1))
        self.line.setText(plain(shown))
        is_cut = shown != line or "\n" in self._text
        self.more.setVisible(is_cut or self.more.isChecked())
        layout = self.layout()
        if layout is not None:
            layout.activate()
        if self.line.width() != available:  # the button has taken a part of the line
            self.line.setText(
                plain(metrics.elidedText(line, Qt.TextElideMode.ElideRight, max(self.line.width(), 1)))
            )
