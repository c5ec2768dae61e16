"""The start of the viewer: the window is visible before most of its parts exist."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QMimeData, QObject, QSettings, Qt, QUrl
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.main import make_parser
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.window import application
from zarrfs_viewer.qt.window.application import open_window
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.state.view_state import DisplaySettings, Viewport

import zarrfs
from tests.processes import TIMEOUT
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_opened


@pytest.fixture
def incomplete(qtbot: QtBot, settings: QSettings) -> Iterator[MainWindow]:
    """A visible window of which only the frame exists."""
    window = MainWindow(settings, in_steps=True)
    window.show()
    QApplication.processEvents()
    yield window
    window.close()
    window.deleteLater()
    QApplication.processEvents()


def wait_until_complete(qtbot: QtBot, window: MainWindow) -> None:
    with qtbot.waitSignal(window.completed, timeout=TIMEOUT_MILLISECONDS):
        window.complete_in_steps()


def test_the_start_page_is_visible_first_and_does_not_move(qtbot: QtBot, incomplete: MainWindow) -> None:
    assert not incomplete.is_complete
    assert not hasattr(incomplete, "session")
    assert incomplete.focusWidget() is incomplete.empty
    before = incomplete.empty.buttons["open_folder"].mapTo(incomplete, incomplete.empty.rect().topLeft())
    wait_until_complete(qtbot, incomplete)
    QApplication.processEvents()
    after = incomplete.empty.buttons["open_folder"].mapTo(incomplete, incomplete.empty.rect().topLeft())
    assert abs(after.y() - before.y()) <= 4
    assert after.x() == before.x()
    assert incomplete.focusWidget() is incomplete.empty
    assert incomplete.toolbar.actions()


def test_the_parts_are_created_in_several_steps(incomplete: MainWindow) -> None:
    for _ in range(10):
        incomplete._continue()
    assert not incomplete.is_complete
    incomplete.complete()
    assert incomplete.is_complete


def test_what_the_user_does_before_the_window_is_complete_is_done_afterwards(
    qtbot: QtBot, incomplete: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        zarrfs.create_array(tmp_path / f"{name}.zarr", data=np.zeros((8, 8), "u1"))
    asked: list[str] = []
    monkeypatch.setattr(
        "zarrfs_viewer.qt.window.opening.LocationOpener.ask_folder", lambda opener: asked.append("folder")
    )
    QTest.mouseClick(incomplete.empty.buttons["open_folder"], Qt.MouseButton.LeftButton)
    incomplete.open_location(str(tmp_path / "a.zarr"))
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(tmp_path / "b.zarr")), QUrl.fromLocalFile(str(tmp_path / "c.zarr"))])
    incomplete.drop(data)
    incomplete.resize(900, 600)
    assert asked == []
    wait_until_complete(qtbot, incomplete)
    assert asked == ["folder"]
    qtbot.waitUntil(
        lambda: len(incomplete.panel(Hierarchy).tree.model.tops) == 3, timeout=TIMEOUT_MILLISECONDS
    )
    assert [item.name for item in incomplete.panel(Hierarchy).tree.model.tops] == [
        "a.zarr",
        "b.zarr",
        "c.zarr",
    ]


def test_the_size_of_the_command_line_is_that_of_the_window(qtbot: QtBot, settings: QSettings) -> None:
    options = make_parser().parse_args(["--size", "760x560"])
    window = application._show_window(settings, options.size)
    assert (window.width(), window.height()) == (760, 560)
    with qtbot.waitSignal(window.destroyed, timeout=TIMEOUT_MILLISECONDS):
        window.close()


def test_an_incomplete_window_can_be_closed(qtbot: QtBot, settings: QSettings) -> None:
    for steps in range(0, 12, 3):
        window = open_window(settings)
        for _ in range(steps):
            window._continue()
        with qtbot.waitSignal(window.destroyed, timeout=TIMEOUT_MILLISECONDS):
            window.close()


def test_a_new_window_is_not_larger_than_the_screen(qtbot: QtBot, settings: QSettings) -> None:
    window = open_window(settings)
    screen = window.screen()
    assert screen is not None
    available = screen.availableSize()
    assert window.width() <= max(available.width(), window.minimumWidth())
    assert window.height() <= max(available.height(), window.minimumHeight())
    with qtbot.waitSignal(window.destroyed, timeout=TIMEOUT_MILLISECONDS):
        window.close()


def run_viewer(program: str, tmp_path: Path) -> str:
    """Return the output of a program in a new process that has created the window ``window``, only with its frame."""
    start = f"""
import sys
before = set(sys.modules)
from PyQt6.QtCore import QSettings
from zarrfs_viewer.main import _exit_process
from zarrfs_viewer.qt.window.application import make_application
from zarrfs_viewer.qt.window.main_window import MainWindow

application = make_application()
window = MainWindow(QSettings({str(tmp_path / "settings.ini")!r}, QSettings.Format.IniFormat), in_steps=True)
"""
    end = "_exit_process(0)  # as the viewer does: Qt can crash while the interpreter ends\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program + end],
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT,
    )
    return done.stdout


def test_completing_and_closing_a_window_imports_no_further_modules(tmp_path: Path) -> None:
    """The modules of the parts are imported on a thread; the GUI thread would stall during their import."""
    program = """
for name in window.part_modules:
    __import__(name)
before = set(sys.modules)
window.complete()
print(sorted(name for name in set(sys.modules) - before if name.startswith("zarrfs")))
window.close()
print(sorted(name for name in set(sys.modules) - before if name.startswith("zarrfs")))
"""
    assert run_viewer(program, tmp_path) == "[]\n[]\n"


class _Shown(QObject):
    """Records the widgets that are shown as windows of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        is_shown = event is not None and event.type() == QEvent.Type.Show
        if is_shown and isinstance(watched, QWidget) and watched.isWindow():
            self.names.append(type(watched).__name__)
        return False


def test_no_control_is_a_window_for_a_moment(
    qtbot: QtBot, qapp: QApplication, incomplete: MainWindow, cells: Path
) -> None:
    shown = _Shown()
    qapp.installEventFilter(shown)
    wait_until_complete(qtbot, incomplete)
    wait_until_opened(qtbot, incomplete, lambda: incomplete.open_location(str(cells)))
    qtbot.waitUntil(lambda: bool(incomplete.panel(Channels).panel.rows), timeout=TIMEOUT_MILLISECONDS)
    qapp.removeEventFilter(shown)
    assert shown.names == []


def test_tiles_are_requested_when_the_canvas_has_its_size(
    qtbot: QtBot, window: MainWindow, cells: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[tuple[int, int]] = []
    pipeline = window.panes.main.pipeline
    show = pipeline.show

    def record(
        image: Image, settings: DisplaySettings, viewport: Viewport, overlays: Sequence[Image] = ()
    ) -> None:
        sizes.append((viewport.width, viewport.height))
        show(image, settings, viewport, overlays)

    monkeypatch.setattr(pipeline, "show", record)
    wait_until_opened(qtbot, window, lambda: window.open_location(str(cells)))
    assert set(sizes) == {(window.canvas.width(), window.canvas.height())}


def test_an_empty_window_imports_no_libraries_that_only_some_users_need(tmp_path: Path) -> None:
    """They occupy megabytes. The list contains what has been imported by mistake before."""
    program = """
from zarrfs_viewer.images.opening import import_engine

window.complete()
import_engine()
names = "PyQt6.QtSvg pyqtgraph decimal shutil socket subprocess tempfile xml zipfile"
print([name for name in names.split() if name in set(sys.modules) - before])
window.close()
"""
    assert run_viewer(program, tmp_path) == "[]\n"
