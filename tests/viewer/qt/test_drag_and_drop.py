"""Drag and drop between the viewer and another program with the XDND protocol, on an X server of its own.

Every step waits for what the programs print. A drop that the target did not accept ends with a leave event; the drag is
then repeated.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from threading import Condition, Thread
from time import monotonic
from typing import Any

import numpy as np
import pytest

import zarrfs
from benchmarks.x_screen import Screen, ScreenError
from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT, running
from tests.programs import find_program, needs_program

pytestmark = [needs_fuse, needs_program("Xvfb")]

MOVE_SECONDS = 0.05
"""The pointer is moved again after this time until a program reacts."""
MIN_MOVES = 2
"""A source sends the next position only after the answer to the last one: after the second one it knows the answer."""

OTHER = """
import sys
import numpy as np
from PyQt6.QtCore import QMimeData, QTimer, QUrl
from PyQt6.QtGui import QDrag
from PyQt6.QtWidgets import QApplication, QWidget

def report(*words):
    print(*words, flush=True)

class Window(QWidget):
    def showEvent(self, event):
        self.place()
    def moveEvent(self, event):
        self.place()
    def place(self):
        point = self.mapToGlobal(self.rect().center())
        report("place", point.x(), point.y())
    def mousePressEvent(self, event):
        report("pressed")
    def mouseMoveEvent(self, event):
        drag, data = QDrag(self), QMimeData()
        data.setUrls([QUrl.fromLocalFile(sys.argv[1])])
        drag.setMimeData(data)
        report("dragging")
        drag.exec()
    def dragEnterEvent(self, event):
        event.acceptProposedAction()
    def dragMoveEvent(self, event):
        event.acceptProposedAction()
        report("moved")
    def dragLeaveEvent(self, event):
        report("left")
    def dropEvent(self, event):
        event.acceptProposedAction()
        self.file = event.mimeData().urls()[0].toLocalFile()
        report("dropped")
        self.read()
    def read(self):
        try:
            report("sum", int(np.load(self.file).sum()))
        except FileNotFoundError:  # the mount is not ready
            QTimer.singleShot(50, self.read)

application = QApplication(sys.argv)
window = Window()
window.setAcceptDrops(True)
window.setGeometry(10, 30, 180, 180)
window.show()
application.exec()
"""

VIEWER = """
import sys
from pathlib import Path
from PyQt6.QtCore import QEvent, QObject, QTimer
from zarrfs_viewer import main
from zarrfs_viewer import mounts
from zarrfs_viewer.mounts import Mounts
from zarrfs_viewer.qt.panels.hierarchy import tree_model
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.window import application
from zarrfs_viewer.qt.window import main_window

def report(*words):
    print(*words, flush=True)

def call_before(owner, name, word):
    original = getattr(owner, name)
    def call(self, *arguments):
        result = original(self, *arguments)
        report(word)
        return result
    setattr(owner, name, call)

mounts.Mounts = lambda: Mounts(Path(sys.argv[2]))
call_before(tree_model.HierarchyModel, "mimeData", "dragging")
call_before(main_window.MainWindow, "dropEvent", "dropped")
def move(window, event):
    event.acceptProposedAction()
    report("moved")

main_window.MainWindow.dragMoveEvent = move
main_window.MainWindow.dragLeaveEvent = lambda window, event: report("left")
original = application._show_window

class Places(QObject):
    def __init__(self, window):
        super().__init__(window)
        self.window, self.view = window, window.panel(Hierarchy).tree.view
        self.view.viewport().installEventFilter(self)
        window.installEventFilter(self)
        window.frame_shown.connect(lambda frame: frame.finished and QTimer.singleShot(0, self.show))
    def show(self):
        panel, canvas = self.window.panel(Hierarchy).tree, self.window.canvas
        index = panel.model.index(0, 0)
        if index.isValid() and self.window.image is not None:
            row = self.view.viewport().mapToGlobal(self.view.visualRect(index).center())
            center = canvas.mapToGlobal(canvas.rect().center())
            report("place", row.x(), row.y(), center.x(), center.y())
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.MouseButtonPress:
            report("pressed")
        elif event.type() in (QEvent.Type.Move, QEvent.Type.Resize):
            QTimer.singleShot(0, self.show)
        return False

def show_window(*arguments):
    window = original(*arguments)
    window.setGeometry(230, 30, 900, 600)
    window.call_when_complete(lambda: Places(window))
    opened = lambda: window.session.opened.connect(lambda location, *_: report("opened", location))
    window.call_when_complete(opened)
    return window

application._show_window = show_window
main.run([sys.argv[1]])
"""


class Program:
    """A running program and the lines that it has printed, which a thread reads."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self._lines: list[str] = []
        self._changed = Condition()
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(line.strip())
                self._changed.notify_all()
        with self._changed:
            self._lines.append("end of the output")
            self._changed.notify_all()

    def count(self, *words: str) -> int:
        """Return the number of lines that begin with one of the words."""
        return sum(line.split(" ")[0] in words for line in self._lines)

    def wait(self, *words: str, more_than: int = 0, act: Callable[[], object] = lambda: None) -> list[str]:
        """Wait until more than a number of lines begin with one of the words, and return the words of the last one.

        ``act`` is called repeatedly until then.
        """
        deadline = monotonic() + TIMEOUT
        with self._changed:
            while self.count(*words) <= more_than:
                assert "end of the output" not in self._lines, self._lines
                assert monotonic() < deadline, (words, self._lines)
                act()
                self._changed.wait(MOVE_SECONDS)
            return next(line for line in reversed(self._lines) if line.split(" ")[0] in words).split(" ")

    def places(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the last first and last point that the program printed."""
        x, *middle, y = map(int, self.wait("place")[1:])
        return ((x, middle[0]), (middle[1], y)) if middle else ((x, y), (x, y))


class Pointer:
    """The mouse pointer of a screen."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def _shake(self, place: Callable[[], tuple[int, int]]) -> Callable[[], None]:
        """Return a function that moves the pointer around a place."""
        numbers = count()

        def move() -> None:
            x, y = place()
            self._screen.move_pointer(x + 6 * (next(numbers) % 2), y + 5)

        return move

    def drag(self, source: Program, target: Program, start: int, end: int) -> None:
        """Drag from a place of a program to a place of another one until it is dropped there."""
        while True:
            before = target.count("dropped", "left")
            self._begin(source, start)
            moves = target.count("moved")
            move = self._shake(lambda: target.places()[end])
            target.wait("moved", more_than=moves + MIN_MOVES - 1, act=move)
            self._screen.press_button(1, False)
            if target.wait("dropped", "left", more_than=before) == ["dropped"]:
                return

    def _begin(self, source: Program, start: int) -> None:
        """Press the button at a place of a program, and move the pointer until the program has begun a drag."""
        presses, drags = source.count("pressed"), source.count("dragging")
        x, y = source.places()[start]
        self._screen.move_pointer(x, y)
        self._screen.press_button(1, True)
        source.wait("pressed", more_than=presses)
        source.wait("dragging", more_than=drags, act=self._shake(lambda: (x + 20, y + 10)))


@pytest.fixture
def screen() -> Iterator[tuple[Screen, str]]:
    """An X server of the test and its display, with a window manager if there is one."""
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1200x700x24", "-nolisten", "tcp"]
    with ExitStack() as stack:
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        stack.enter_context(running(command, pass_fds=(write_end,), **quiet))
        os.close(write_end)
        with os.fdopen(read_end) as pipe:
            display = f":{pipe.readline().strip()}"
        try:
            connection = stack.enter_context(Screen(display))
        except ScreenError as error:
            pytest.skip(str(error))
        if find_program("openbox") is not None:
            stack.enter_context(running(["openbox"], env=os.environ | {"DISPLAY": display}, **quiet))
        yield connection, display


def test_arrays_are_dragged_out_and_folders_are_dropped_in(
    screen: tuple[Screen, str], tmp_path: Path
) -> None:
    values = np.arange(48, dtype="u2").reshape(6, 8)
    zarrfs.create_array(tmp_path / "a.zarr", data=values)
    zarrfs.create_array(tmp_path / "b.zarr", data=values)
    settings = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "QT_QPA_PLATFORM": "xcb", "DISPLAY": screen[1]}
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "text": True, "env": os.environ | settings}
    other_command = [sys.executable, "-c", OTHER, str(tmp_path / "b.zarr")]
    viewer_command = [sys.executable, "-c", VIEWER, str(tmp_path / "a.zarr"), str(tmp_path / "mounts")]
    pointer = Pointer(screen[0])
    with running(other_command, **options) as other, running(viewer_command, **options) as process:
        program, viewer = Program(other), Program(process)
        pointer.drag(viewer, program, 0, 0)
        assert program.wait("sum") == ["sum", str(values.sum())]
        pointer.drag(program, viewer, 0, 1)
        assert viewer.wait("opened", more_than=1) == ["opened", str(tmp_path / "b.zarr")]
        process.terminate()
        assert process.wait(TIMEOUT) == 0
