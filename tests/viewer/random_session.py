"""A random session of a user: clicks, keys, drags, wheel, docks, opening and closing on all data sets.

``python -m tests.viewer.random_session [--seconds 300] [--seed 1] [LOCATION ...]`` opens a window on the platform of
``QT_QPA_PLATFORM`` (a virtual screen or the offscreen platform) and acts at random for the time. It ends with an error,
and prints the seed and the last actions, if

- an exception is raised, or Qt or Python reports a warning,
- the thread of the user interface uses more than ``MAX_STALL_SECONDS`` of processor time in one pass of the event loop,
- threads, descriptors or memory are left when the windows are closed.

Processor time is measured instead of elapsed time, so that other processes do not matter.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.position.position import Position

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import numpy as np
from PyQt6 import sip
from PyQt6.QtCore import QPoint, QPointF, QSettings, Qt, QTimer, QtMsgType, qInstallMessageHandler
from PyQt6.QtGui import QWheelEvent
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QDialog,
    QFileDialog,
    QLineEdit,
    QMenu,
    QMessageBox,
    QTabBar,
    QWidget,
)
from zarrfs_viewer.process_memory import release_free_memory
from zarrfs_viewer.qt.support.garbage import GuiThreadCollector
from zarrfs_viewer.qt.window.application import make_application
from zarrfs_viewer.qt.window.main_window import MainWindow

import zarrfs
from zarrfs.engine.cache import default_cache
from zarrfs.synthetic import make_picture, write_image

__all__ = ["RandomSession", "SessionFault", "write_examples"]

MAX_STALL_SECONDS = 0.1
OFFSCREEN_WARNING = "This plugin does not support"
MAX_LEFT_THREADS = 0
MAX_LEFT_DESCRIPTORS = 2
MAX_GROWTH_NBYTES = 160 << 20
"""The growth of the memory from the end of the first half of a session to its end, without cached chunks."""
ENGINE_THREADS = "zarrfs-worker"
LAST_ACTIONS = 15
SETTLE_SECONDS = 60.0
FORBIDDEN = {"mount", "file_manager", "quit", "new_window", "open_folder", "open_zip", "paste"}
"""Actions that start other programs, open native dialogs or end the session."""
KEYS = (
    *(
        Qt.Key.Key_Left,
        Qt.Key.Key_Right,
        Qt.Key.Key_Up,
        Qt.Key.Key_Down,
        Qt.Key.Key_PageUp,
        Qt.Key.Key_PageDown,
    ),
    *(Qt.Key.Key_Period, Qt.Key.Key_Comma, Qt.Key.Key_BracketLeft, Qt.Key.Key_BracketRight),
    *(
        Qt.Key.Key_F,
        Qt.Key.Key_1,
        Qt.Key.Key_Plus,
        Qt.Key.Key_Minus,
        Qt.Key.Key_X,
        Qt.Key.Key_3,
        Qt.Key.Key_S,
    ),
    *(
        Qt.Key.Key_A,
        Qt.Key.Key_G,
        Qt.Key.Key_B,
        Qt.Key.Key_T,
        Qt.Key.Key_K,
        Qt.Key.Key_Return,
        Qt.Key.Key_Escape,
    ),
    *(Qt.Key.Key_Tab, Qt.Key.Key_Home, Qt.Key.Key_End, Qt.Key.Key_5, Qt.Key.Key_Space, Qt.Key.Key_Delete),
)


class SessionFault(AssertionError):
    """The session has found a fault."""


def write_examples(directory: Path) -> list[str]:
    """Write small data sets of all kinds, and return their locations: images, arrays, corrupt and hostile data."""
    write_image(str(directory / "cells.ome.zarr"), make_picture((6, 96, 96)), name="cells")
    rng = np.random.default_rng(0)
    group = zarrfs.create_group(directory / "arrays.zarr")
    for name, data in {
        "line": rng.normal(size=50),
        "number": np.array(3.5),
        "complex": rng.normal(size=(4, 32, 32)) + 1j,
        "boolean": rng.random((40, 40)) > 0.5,
        "tiny": rng.random((3, 20, 20)) * 1e-7,
        "strings": np.array(["one", "two", "three"]),
        "table": np.zeros(20, [("x", "f4"), ("y", "i2")]),
        "labels": rng.integers(0, 9, (5, 30, 30), dtype="u2"),
        "empty": np.zeros((0, 5), "u1"),
        "five": rng.integers(0, 255, (2, 3, 4, 24, 24), dtype="u1"),
        "nan": np.full((16, 16), np.nan, "f4"),
    }.items():
        zarrfs.create_array(directory / "arrays.zarr", name, data=data)
    group.attrs["note"] = {"key": list(range(20))}
    zarrfs.create_array(
        directory / "corrupt.zarr", data=rng.integers(0, 999, (4, 64, 64), dtype="u2"), chunks=(1, 32, 32)
    )
    chunk = next(path for path in sorted((directory / "corrupt.zarr" / "c").rglob("*")) if path.is_file())
    chunk.write_bytes(b"corrupt")
    # Too large to be read as a whole. Nothing is stored: every value is the fill value.
    zarrfs.create_array(directory / "large.zarr", shape=(100_000, 100_000), chunks=(256, 256), dtype="u1")
    zarrfs.create_array(directory / "long.zarr", shape=(340_000_000,), chunks=(1_000_000,), dtype="f8")
    (directory / "not-zarr").mkdir()
    (directory / "not-zarr" / "zarr.json").write_text("{", encoding="utf-8")
    return [str(path) for path in sorted(directory.iterdir())] + [str(directory / "absent.zarr")]


def _descriptor_names() -> list[str]:
    """Return the names of the open files, except those that Qt opens once: caches of icons and of file types."""
    names = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # the descriptor of the listing itself
            names.append(os.readlink(f"/proc/self/fd/{name}"))
    return [name for name in names if not name.startswith("/usr/share/")]


def _held_nbytes() -> int:
    """Return the resident memory without the decoded chunks that the process caches after its windows are closed."""
    release_free_memory()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") - default_cache().nbytes


def _is_usable(widget: QWidget) -> bool:
    """Return whether a widget can receive events: QTest ends the process otherwise."""
    return not sip.isdeleted(widget) and widget.isVisible() and widget.isEnabled()


class RandomSession:
    """Acts on windows of the viewer at random. ``run`` raises SessionFault with the last actions."""

    def __init__(self, locations: Sequence[str], seed: int, scratch: Path, max_stall: float | None) -> None:
        self._rng = random.Random(seed)
        self._seed = seed
        self._locations = list(locations)
        self._scratch = scratch
        self._max_stall = max_stall
        self._application = make_application()
        self._faults: list[str] = []
        self._recent: deque[str] = deque(maxlen=LAST_ACTIONS)
        self._window: MainWindow | None = None
        self.counts: dict[str, int] = {}
        self.longest_stall = 0.0
        self.growth = 0
        self._beat = 0.0
        self._closer = QTimer()
        self._closer.setInterval(20)
        self._closer.timeout.connect(self._close_dialogs)
        self._pulse = QTimer()
        self._pulse.setInterval(0)
        self._pulse.timeout.connect(self._measure_stall)

    # -- faults ------------------------------------------------------------------------------------------------

    def _report_exception(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        import traceback

        self._faults.append("".join(traceback.format_exception(kind, error, trace)))

    def _report_message(self, kind: QtMsgType, context: object, text: str | None) -> None:
        if kind != QtMsgType.QtDebugMsg and not (text or "").startswith(OFFSCREEN_WARNING):
            self._faults.append(f"Qt: {text}")

    def _measure_stall(self) -> None:
        now = time.thread_time()
        stall, self._beat = now - self._beat, now
        if stall > self.longest_stall:
            self.longest_stall = stall
        if self._max_stall is not None and stall > self._max_stall:
            self._faults.append(f"the user interface used {stall * 1e3:.0f} ms without handling events")

    def _check(self) -> None:
        if self._window is not None and self._window.is_complete:
            memory = self._window.session.streamer.memory
            if memory.nbytes > memory.budget:
                self._faults.append(f"the tiles have {memory.nbytes >> 20} MiB of {memory.budget >> 20} MiB")
        if self._faults:
            raise SessionFault(
                f"seed {self._seed}: {self._faults[0]}\nlast actions:\n  " + "\n  ".join(self._recent)
            )

    # -- the session -------------------------------------------------------------------------------------------

    def run(self, seconds: float, max_actions: int | None = None) -> None:
        """Act for some seconds, or until a number of actions; then close the window and look for leaks."""
        previous_hook = sys.excepthook
        previous_handler = qInstallMessageHandler(self._report_message)
        sys.excepthook = self._report_exception
        self._closer.start()
        self._pulse.start()
        threads = self._threads()
        collector = GuiThreadCollector(self._application)  # as in the application
        try:
            # The first window creates what the process keeps.
            self._new_window()
            collector.freeze()
            self._act(min(2.0, seconds / 10), None if max_actions is None else 3)
            self._close_window()
            descriptors = len(_descriptor_names())
            self._new_window()
            self._act(seconds / 2, None if max_actions is None else max_actions // 2)
            self._close_window()
            memory = _held_nbytes()
            self._new_window()
            self._act(seconds / 2, None if max_actions is None else max_actions // 2)
            self._close_window()
            self._check_leaks(threads, descriptors, memory)
        finally:
            collector.stop()
            self._closer.stop()
            self._pulse.stop()
            if self._window is not None:
                self._window.close()
            sys.excepthook = previous_hook
            qInstallMessageHandler(previous_handler)

    def _new_window(self) -> None:
        settings = QSettings(str(self._scratch / "settings.ini"), QSettings.Format.IniFormat)
        in_steps = self._rng.random() < 0.5
        self._window = MainWindow(settings, in_steps)
        self._window.show()
        if not self.counts:
            self._beat = time.thread_time()  # the first window is a part of the start of the process
        if in_steps:
            self._complete_in_steps(self._window)
        self._beat = time.thread_time()

    def _complete_in_steps(self, window: MainWindow) -> None:
        """Complete a window as the application does. Locations are opened before, and sometimes it is closed before."""
        self._recent.append("complete the window in steps")
        window.complete_in_steps()
        window.open_location(str(self._rng.choice(self._locations)))
        if self._rng.random() < 0.3:
            self._settle(self._rng.random() * 0.1)
            self._close_window()
            self._new_window()
            return
        end = time.monotonic() + SETTLE_SECONDS
        while not window.is_complete and time.monotonic() < end:
            self._settle(0.01)
        if not window.is_complete:
            self._faults.append("the parts of the window were not created")

    def _close_window(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            self._recent.append("close the window")
            window.close()
            window.deleteLater()
            self._settle(0.05)
        self._beat = time.thread_time()
        self._check()

    def _act(self, seconds: float, max_actions: int | None) -> None:
        actions = self._actions()
        weights = [weight for _, weight in actions]
        end = time.monotonic() + seconds
        count = 0
        self._open()
        while (time.monotonic() < end) if max_actions is None else (count < max_actions):
            action = self._rng.choices(actions, weights)[0][0]
            self.counts[action.__name__] = self.counts.get(action.__name__, 0) + 1
            action()
            count += 1
            self._settle(self._rng.choice((0.0, 0.0, 0.01, 0.05, 0.2)))
            self._check()

    def _settle(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while True:
            self._application.processEvents()
            self._application.sendPostedEvents(None, 52)  # QEvent.DeferredDelete
            if time.monotonic() >= end:
                return
            time.sleep(0.001)

    def _threads(self) -> set[threading.Thread]:
        """Return the threads, except those of the engine, which has one pool for the process."""
        return {thread for thread in threading.enumerate() if not thread.name.startswith(ENGINE_THREADS)}

    def _check_leaks(self, threads: set[threading.Thread], descriptors: int, memory: int) -> None:
        end = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < end and (
            self._threads() - threads or len(_descriptor_names()) > descriptors + MAX_LEFT_DESCRIPTORS
        ):
            self._settle(0.02)
            gc.collect()  # several collections are needed: the first one deletes widgets that refer to others
        gc.collect()
        left = [thread.name for thread in self._threads() - threads]
        if len(left) > MAX_LEFT_THREADS:
            self._faults.append(f"threads are left: {sorted(left)}")
        names = _descriptor_names()
        if len(names) > descriptors + MAX_LEFT_DESCRIPTORS:
            self._faults.append(f"{descriptors} descriptors became {len(names)}: {sorted(names)}")
        held = _held_nbytes()
        if held > memory + MAX_GROWTH_NBYTES:
            self._faults.append(
                f"{memory >> 20} MiB became {held >> 20} MiB, in addition to the cached chunks"
            )
        self.growth = held - memory
        self._check()

    def _close_dialogs(self) -> None:
        """Answer modal dialogs and menus at random: they block the action that opened them."""
        popup = QApplication.activePopupWidget()
        if isinstance(popup, QMenu):
            popup.close()
        dialog = QApplication.activeModalWidget()
        if isinstance(dialog, QMessageBox) or not isinstance(dialog, QDialog):
            if dialog is not None:
                dialog.close()
            return
        self._recent.append(f"answer the dialog {dialog.windowTitle()!r}")
        # The dialogs of files that Qt creates do not permit to call ``accept``.
        if isinstance(dialog, QFileDialog) or self._rng.random() < 0.7:
            dialog.reject()
        else:
            dialog.accept()

    # -- actions -----------------------------------------------------------------------------------------------

    def _actions(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._open, 1),
            (self._close_location, 0.4),
            (self._press_key, 12),
            (self._drag_on_canvas, 5),
            (self._click_on_canvas, 3),
            (self._turn_wheel, 5),
            (self._click_widget, 8),
            (self._trigger_action, 4),
            (self._select_in_tree, 4),
            (self._move_slider, 4),
            (self._resize, 1),
            (self._type, 1),
            (self._close_and_open_window, 0.15),
        ]

    @property
    def window(self) -> MainWindow:
        """The current window."""
        assert self._window is not None
        return self._window

    def _open(self) -> None:
        location = self._rng.choice(self._locations)
        self._recent.append(f"open {location}")
        self.window.open_location(location)

    def _close_location(self) -> None:
        tops = self.window.panel(Hierarchy).tree.model.tops
        if tops:
            item = self._rng.choice(tops)
            self._recent.append("close a location")
            self.window.panel(Hierarchy).tree.close_location(item)

    def _press_key(self) -> None:
        key = self._rng.choice(KEYS)
        self._recent.append(f"key {key.name}")
        target = QApplication.focusWidget() or self.window.canvas
        for _ in range(self._rng.choice((1, 1, 1, 6))):
            if _is_usable(target):
                QTest.keyClick(target, key)

    def _point(self, widget: QWidget) -> QPoint:
        return QPoint(
            self._rng.randrange(max(1, widget.width())), self._rng.randrange(max(1, widget.height()))
        )

    def _canvas(self) -> QWidget:
        return self._rng.choice(self.window.panes.all).canvas

    def _drag_on_canvas(self) -> None:
        canvas, start, end = self._canvas(), QPoint(), QPoint()
        start, end = self._point(canvas), self._point(canvas)
        self._recent.append(f"drag from {start.x()}, {start.y()} to {end.x()}, {end.y()}")
        QTest.mousePress(canvas, Qt.MouseButton.LeftButton, pos=start)
        for part in (0.3, 0.6, 1.0):
            QTest.mouseMove(
                canvas, start + QPoint(*(round(part * v) for v in ((end - start).x(), (end - start).y())))
            )
            self._settle(0)
            if not _is_usable(canvas):
                return
        QTest.mouseRelease(canvas, Qt.MouseButton.LeftButton, pos=end)

    def _click_on_canvas(self) -> None:
        canvas = self._canvas()
        point = self._point(canvas)
        self._recent.append(f"click at {point.x()}, {point.y()}")
        click = QTest.mouseDClick if self._rng.random() < 0.3 else QTest.mouseClick
        click(canvas, Qt.MouseButton.LeftButton, pos=point)

    def _turn_wheel(self) -> None:
        canvas = self._canvas()
        point = QPointF(self._point(canvas))
        control = Qt.KeyboardModifier.ControlModifier
        modifier = self._rng.choice((control, Qt.KeyboardModifier.NoModifier))
        delta = QPoint(0, self._rng.choice((-240, -120, 120, 240)))
        self._recent.append(f"wheel {delta.y()} {modifier.name}")
        event = QWheelEvent(
            point,
            QPointF(canvas.mapToGlobal(point.toPoint())),
            QPoint(),
            delta,
            Qt.MouseButton.NoButton,
            modifier,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        )
        QApplication.sendEvent(canvas, event)

    def _click_widget(self) -> None:
        kinds = (QAbstractButton, QComboBox, QTabBar)
        widgets = [
            widget
            for kind in kinds
            for widget in self.window.findChildren(kind)
            if widget.isVisible() and widget.isEnabled() and widget.window() is self.window
        ]
        widgets = [
            widget for widget in widgets if "xport" not in widget.toolTip() and "ount" not in widget.toolTip()
        ]
        if widgets:
            widget = self._rng.choice(widgets)
            name = widget.accessibleName() or widget.toolTip() or type(widget).__name__
            self._recent.append(f"click {name!r}")
            if isinstance(widget, QAbstractButton) and self._opens_files(widget):
                return
            QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=self._point(widget))

    def _opens_files(self, button: QAbstractButton) -> bool:
        text = f"{button.text()} {button.toolTip()}".casefold()
        return any(
            word in text for word in ("open", "save", "export", "import", "file", "folder", "browse", "csv")
        )

    def _trigger_action(self) -> None:
        names = [name for name in self.window.actions_by_name if name not in FORBIDDEN]
        safe = [
            name
            for name in names
            if not any(
                word in self.window.actions_by_name[name].text().replace("&", "").casefold()
                for word in ("export", "screenshot", "save", "load", "import", "movie", "folder", "file")
            )
        ]
        name = self._rng.choice(safe)
        self._recent.append(f"action {name}")
        self.window.actions_by_name[name].trigger()

    def _select_in_tree(self) -> None:
        view = self.window.panel(Hierarchy).tree.view
        model = view.model()
        if model is None or not model.rowCount():
            return
        index = model.index(self._rng.randrange(model.rowCount()), 0)
        for _ in range(3):
            count = model.rowCount(index)
            if count and self._rng.random() < 0.6:
                view.expand(index)
                index = model.index(self._rng.randrange(count), 0, index)
        self._recent.append(f"select {index.data()!r} in the tree")
        area = view.visualRect(index)
        viewport = view.viewport()
        if viewport is None or not area.isValid():
            return
        click = QTest.mouseDClick if self._rng.random() < 0.5 else QTest.mouseClick
        click(viewport, Qt.MouseButton.LeftButton, pos=area.center())

    def _move_slider(self) -> None:
        image, dimensions = self.window.image, self.window.panel(Position).dimensions
        if image is None or not dimensions.axes:
            return
        axis = self._rng.choice(dimensions.axes)
        for _ in range(self._rng.choice((1, 5))):
            dimensions.set_position(axis, self._rng.randrange(image.shape[axis]))
        self._recent.append(f"move the slider of axis {axis}")

    def _resize(self) -> None:
        width, height = self._rng.choice(((700, 480), (900, 600), (1280, 900), (1600, 1000)))
        self._recent.append(f"resize to {width} x {height}")
        self.window.resize(width, height)

    def _type(self) -> None:
        fields = [
            field for field in self.window.findChildren(QLineEdit) if field.isVisible() and field.isEnabled()
        ]
        if fields:
            field = self._rng.choice(fields)
            text = self._rng.choice(("1", "12", "-3", "1e-5", "a", "", "99999999"))
            self._recent.append(f"type {text!r}")
            field.setFocus()
            field.selectAll()
            for character in text:
                if _is_usable(field):  # a filter may hide it
                    QTest.keyClicks(field, character)  # type: ignore[call-arg]
            if _is_usable(field):
                QTest.keyClick(field, self._rng.choice((Qt.Key.Key_Return, Qt.Key.Key_Escape)))

    def _close_and_open_window(self) -> None:
        self._close_window()
        self._new_window()
        self._open()


def main() -> None:
    """Run a session and print what was done."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument(
        "--max-stall", type=float, default=MAX_STALL_SECONDS, help="seconds of processor time"
    )
    parser.add_argument("locations", nargs="*", metavar="LOCATION", help="further data sets")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "data"
        directory.mkdir()
        session = RandomSession(
            [*write_examples(directory), *options.locations], options.seed, Path(scratch), options.max_stall
        )
        try:
            session.run(options.seconds)
        except SessionFault as fault:
            sys.exit(str(fault))
        finally:
            counts = ", ".join(f"{name.strip('_')} {count}" for name, count in sorted(session.counts.items()))
            sys.stdout.write(
                f"seed {options.seed}: {counts}; longest stall {session.longest_stall * 1e3:.0f} ms, "
                f"growth {session.growth / 2**20:.0f} MiB\n"
            )


if __name__ == "__main__":
    main()
