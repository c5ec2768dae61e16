"""What a user meets first: the start page, docks, toolbar, banners, and drops."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QEvent, QMimeData, QObject, QSettings, Qt, QUrl
from PyQt6.QtGui import QColor, QImage
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QAbstractSpinBox, QApplication, QDockWidget, QMenu, QWidget
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.hierarchy.hierarchy import Hierarchy
from zarrfs_viewer.qt.panels.metadata.metadata import Metadata
from zarrfs_viewer.qt.window import opening
from zarrfs_viewer.qt.window.about import about_text
from zarrfs_viewer.qt.window.banner import Banner
from zarrfs_viewer.qt.window.command_palette import CommandPalette
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.qt.window.recent import MAX_RECENT, RecentLocations
from zarrfs_viewer.qt.window.start_page import LOCATION, MAX_SHOWN, StartPage
from zarrfs_viewer.state.view_state import Projection, with_projection

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]


@pytest.fixture
def recent(tmp_path: Path) -> RecentLocations:
    return RecentLocations(QSettings(str(tmp_path / "settings.ini"), QSettings.Format.IniFormat))


def write_array(path: Path, value: int = 7) -> Path:
    zarrfs.create_array(path, data=np.full((24, 32), value, "u1"))
    return path


def docks(window: MainWindow) -> dict[str, int]:
    return {dock.objectName(): dock.width() for dock in window.findChildren(QDockWidget) if dock.isVisible()}


def test_the_start_page_shows_the_last_locations_with_thumbnails(
    qtbot: QtBot, recent: RecentLocations
) -> None:
    for number in range(MAX_RECENT + 3):
        recent.add(f"/data/{number}.zarr")
        picture = QImage(300, 200, QImage.Format.Format_RGB32)
        picture.fill(QColor(200, 10, 10))
        recent.save_thumbnail(f"/data/{number}.zarr", picture)
    assert len(recent.locations()) == MAX_RECENT
    assert not recent.thumbnail("/data/0.zarr").exists()
    page = StartPage(recent)
    qtbot.addWidget(page)
    assert page.list.count() == MAX_SHOWN
    first = page.list.item(0)
    assert first is not None
    assert first.text() == f"{MAX_RECENT + 2}.zarr"
    assert first.icon().pixmap(144, 96).toImage().pixelColor(72, 48).red() > 150
    with qtbot.waitSignal(page.location_selected) as selected:
        page.list.itemClicked.emit(first)
    assert selected.args == [f"/data/{MAX_RECENT + 2}.zarr"]


def test_locations_with_the_same_name_are_distinguished(qtbot: QtBot, recent: RecentLocations) -> None:
    for location in ("/data/b.zarr", "/data/one/a.zarr", "https://example.org/a.zarr", "/a.zarr"):
        recent.add(location)
    page = StartPage(recent)
    qtbot.addWidget(page)
    texts = [item.text() for row in range(4) if (item := page.list.item(row)) is not None]
    assert texts == ["a.zarr in /", "a.zarr in example.org", "a.zarr in one", "b.zarr"]


def test_a_thumbnail_is_saved_and_the_location_opens_from_the_start_page(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    path = write_array(tmp_path / "a.zarr")
    window = open_in_window(path)
    file = window.recent.thumbnail(str(path))
    qtbot.waitUntil(file.exists, timeout=TIMEOUT_MILLISECONDS)
    window.panel(Hierarchy).tree.close_location(window.panel(Hierarchy).tree.model.tops[0])
    assert window.stack.currentWidget() is window.empty
    assert docks(window) == {}
    item = window.empty.list.item(0)
    assert item is not None
    assert item.data(LOCATION) == str(path)
    wait_until_opened(qtbot, window, lambda: window.empty.list.itemClicked.emit(item))
    assert "Hierarchy" in docks(window)


def test_a_window_that_is_closed_at_once_leaves_a_thumbnail(
    open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    path = tmp_path / "a.zarr"
    zarrfs.create_array(path, data=np.arange(64, dtype="u1").reshape(8, 8), chunks=(8, 8))
    window = open_in_window(path)
    file = window.recent.thumbnail(str(path))
    # As if the window were closed before the delay has passed.
    window.thumbnails._timer.stop()
    window.thumbnails._written_location = ""
    file.unlink(missing_ok=True)
    window.close()
    picture = QImage(str(file))
    assert len({picture.pixelColor(x, picture.height() // 2).value() for x in range(picture.width())}) > 1


def test_the_tab_key_follows_the_rows_from_above(open_in_window: OpenInWindow, tmp_path: Path) -> None:
    data = np.zeros((3, 4, 8, 8), "u1")
    zarrfs.create_array(tmp_path / "a.zarr", data=data, dimension_names=["t", "z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    QApplication.processEvents()  # the rows of the channels follow
    widget: QWidget | None = window.canvas
    names = []
    while widget is not None and (widget is not window.canvas or not names):
        is_inner = isinstance(widget.parent(), QAbstractSpinBox)
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible() and not is_inner:
            names.append(widget.accessibleName() or getattr(widget, "text", str)())
        widget = widget.nextInFocusChain()
    slices = [name for name in names if name.startswith(("Image", "Slice", "Play along", "Slab"))]
    row = ["Slice", "Slice", "Play"]
    assert [name.split()[0] for name in slices] == ["Image", *row, *row, "Slab", "Slices"]
    assert names[: len(slices)] == slices
    channel = [name for name in names if "Channel 0" in name or name == "Whole stack"]
    assert channel[0] == "Show Channel 0"
    assert channel[-1] == "Whole stack"


def test_a_location_that_was_forgotten_has_no_thumbnail(
    qtbot: QtBot, open_in_window: OpenInWindow, recent: RecentLocations, tmp_path: Path
) -> None:
    recent.add("/data/a.zarr")
    recent.save_thumbnail("/data/a.zarr", QImage(10, 10, QImage.Format.Format_RGB32))
    recent.remove("/data/a.zarr")
    assert recent.locations() == []
    assert not recent.thumbnail("/data/a.zarr").exists()
    path = write_array(tmp_path / "b.zarr")
    window = open_in_window(path)
    window.thumbnails._save()
    window.recent.remove(str(path))  # while the file is written
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    window.thumbnails._save()
    qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
    window.close()
    assert not window.recent.thumbnail(str(path)).exists()


def test_the_settings_are_read_on_the_thread_of_the_window_only(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: set[int] = set()
    read = RecentLocations.locations

    def recorded(recent: RecentLocations) -> list[str]:
        readers.add(threading.get_ident())
        return read(recent)

    monkeypatch.setattr(RecentLocations, "locations", recorded)
    path = write_array(tmp_path / "a.zarr")
    window = open_in_window(path)
    qtbot.waitUntil(window.recent.thumbnail(str(path)).exists, timeout=TIMEOUT_MILLISECONDS)
    assert readers == {threading.get_ident()}


def test_the_buttons_of_the_start_page_run_actions(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(window.empty.buttons) <= set(window.actions_by_name)
    monkeypatch.setattr(opening, "SAMPLE_SHAPE", (2, 32, 32))
    sample = lambda: window.image is not None and window.image.name == "sample cells"  # noqa: E731
    window.empty.buttons["open_sample"].click()
    qtbot.waitUntil(sample, timeout=TIMEOUT_MILLISECONDS)
    assert [entry.name for entry in Path(window.settings.fileName()).parent.glob("sample*")] == [
        "sample.ome.zarr"
    ]


def test_docks_appear_when_something_is_open_and_keep_their_state(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    assert set(docks(window)) == {"Hierarchy", "Image"}
    image_dock = next(dock for dock in window.findChildren(QDockWidget) if dock.objectName() == "Image")
    image_dock.close()
    window.close()
    again = MainWindow(window.settings)
    qtbot.addWidget(again)
    again.show()
    assert docks(again) == {}
    wait_until_opened(qtbot, again, lambda: again.open_location(str(tmp_path / "a.zarr")))
    assert set(docks(again)) == {"Hierarchy"}
    again.close()


def test_docks_regain_their_width_when_the_window_grows_again(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    chosen = {"Hierarchy": 320, "Image": 320}

    def wait_for_docks(expected: Callable[[dict[str, int]], bool], of: MainWindow = window) -> None:
        qtbot.waitUntil(lambda: expected(docks(of)), timeout=TIMEOUT_MILLISECONDS)

    window.resize(1280, 900)
    wait_for_docks(lambda widths: widths == chosen)
    for width in (900, 700):
        window.resize(width, 700)
        assert window.width() == width
        wait_for_docks(
            lambda widths, width=width: all(150 <= dock <= max(240, width / 3) for dock in widths.values())
        )
        qtbot.waitUntil(lambda: window.canvas.width() >= 200, timeout=TIMEOUT_MILLISECONDS)
    window.resize(100, 100)
    assert window.width() == 700
    window.resize(1280, 900)
    wait_for_docks(lambda widths: widths == chosen)
    window.resize(700, 700)
    wait_for_docks(lambda widths: max(widths.values()) <= 240)
    window.close()
    again = MainWindow(window.settings)
    again.resize(1280, 900)
    again.show()
    wait_until_opened(qtbot, again, lambda: again.open_location(str(tmp_path / "a.zarr")))
    again.resize(1280, 900)
    # The widths of the narrow window have not replaced those of the user.
    wait_for_docks(lambda widths: widths == chosen, again)
    again.close()
    again.deleteLater()


@pytest.mark.parametrize("projection", [None, Projection(0, "max", 4)])
def test_a_narrow_window_has_whole_tabs_and_wide_docks(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path, projection: Projection | None
) -> None:
    zarrfs.create_array(
        tmp_path / "a.zarr", data=np.zeros((8, 24, 32), "u2"), dimension_names=["z", "y", "x"]
    )
    window = open_in_window(tmp_path / "a.zarr")
    assert window.display_settings is not None
    window.session.change(with_projection(window.display_settings, projection))
    window.panels.setCurrentWidget(window.panel(Metadata).panel)
    window.resize(700, 600)
    qtbot.waitUntil(lambda: docks(window) == {"Hierarchy": 175, "Image": 240}, timeout=TIMEOUT_MILLISECONDS)
    for tabs in (window.panels, window.panel(Metadata).panel.tabs):
        bar = tabs.tabBar()
        assert bar is not None
        for number in range(bar.count()):
            text = bar.tabText(number)
            assert bar.tabRect(number).width() >= bar.fontMetrics().horizontalAdvance(text), text


def test_the_toolbar_has_icons_and_shortcuts_and_shows_the_active_tool(
    open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    buttons = [action for action in window.toolbar.actions() if not action.isSeparator()]
    assert len(buttons) >= 12
    for action in buttons:
        assert not action.icon().isNull()
        assert action.shortcut().toString() in action.toolTip()
        image = action.icon().pixmap(20, 20).toImage()
        assert any(image.pixelColor(x, y).alpha() > 100 for x in range(20) for y in range(20)), action.text()
    tools = window.actions_by_name
    assert tools["move"].isChecked()
    tools["rectangle"].trigger()
    assert [name for name in ("move", "line", "rectangle", "ellipse") if tools[name].isChecked()] == [
        "rectangle"
    ]
    before = tools["fit"].icon().pixmap(20, 20).toImage()
    tools["dark"].trigger()
    QApplication.processEvents()
    assert tools["fit"].icon().pixmap(20, 20).toImage() != before, "the icons do not follow the theme"


def test_a_banner_is_one_line_and_disappears_unless_it_is_a_warning(qtbot: QtBot, window: MainWindow) -> None:
    banner: Banner = window.notice
    picture_height = window.stack.height()
    window.session.show_message("Exported. " * 100)
    assert banner.isVisible()
    assert window.stack.height() == picture_height, "the banner moves the picture"
    assert banner.height() < 60
    assert len(banner.line.text()) < 200
    assert not banner.more.isHidden()
    assert banner.line.text().endswith("…")
    assert banner.line.fontMetrics().horizontalAdvance(banner.line.text()) <= banner.line.width()
    QTest.mouseClick(banner.more, Qt.MouseButton.LeftButton)
    assert banner.details.isVisible()
    assert banner.height() > 60
    assert banner.timer.isActive()
    banner.timer.timeout.emit()
    assert not banner.isVisible()
    window.session.show_message("A chunk is corrupt", True)
    assert banner.isVisible()
    assert not banner.timer.isActive()
    assert banner.more.isHidden()
    QTest.mouseClick(banner.dismiss, Qt.MouseButton.LeftButton)
    assert not banner.isVisible()
    assert banner.text() == "A chunk is corrupt"


def test_a_banner_follows_the_size_of_the_picture(window: MainWindow) -> None:
    banner: Banner = window.notice
    window.session.show_message("A chunk is corrupt", True)
    parent = banner.parentWidget()
    assert parent is not None
    for width in (500, 700):
        parent.resize(width, parent.height())  # as the layout of the window does
        assert abs(banner.geometry().center().x() - width // 2) <= 1
        assert parent.rect().contains(banner.geometry())


def test_several_items_are_dropped(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    paths = [write_array(tmp_path / f"{name}.zarr", number) for number, name in enumerate("abc")]
    zarrfs.create_array(tmp_path / "v2.zarr", data=np.zeros((8, 8), "u1"), zarr_format=2)
    data = QMimeData()
    files = [paths[0], paths[1] / "zarr.json", tmp_path / "v2.zarr" / ".zarray"]
    data.setUrls([QUrl.fromLocalFile(str(file)) for file in files])
    window.drop(data)
    qtbot.waitUntil(lambda: len(window.panel(Hierarchy).tree.model.tops) == 3, timeout=TIMEOUT_MILLISECONDS)
    assert [item.name for item in window.panel(Hierarchy).tree.model.tops] == ["a.zarr", "b.zarr", "v2.zarr"]


def test_a_link_of_a_browser_is_dropped(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(window.session, "open_location", opened.append)
    data = QMimeData()
    url = "https://host/data/a%20b.ome.zarr/zarr.json"
    data.setUrls([QUrl(url)])
    data.setText(f"{url}\nA title")
    window.drop(data)
    assert opened == ["https://host/data/a%20b.ome.zarr"]
    viewer = QMimeData()
    viewer.setUrls([QUrl("https://viewer.org/?source=https%3A%2F%2Fhost%2Fb.zarr&x=1")])
    window.drop(viewer)
    assert opened[1:] == ["https://host/b.zarr"]


class WindowRecorder(QObject):
    """Records the widgets that appear as windows of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[str] = []

    def eventFilter(self, watched: QObject | None, event: QEvent | None) -> bool:  # noqa: N802
        is_shown = event is not None and event.type() == QEvent.Type.Show
        if is_shown and isinstance(watched, QWidget) and watched.isWindow():
            self.shown.append(type(watched).__name__)
        return False


def test_no_other_window_appears_while_an_image_is_opened(
    qtbot: QtBot, settings: QSettings, cells: Path, tmp_path: Path
) -> None:
    zarrfs.create_array(tmp_path / "complex.zarr", data=np.ones((8, 8), "c8"))
    zarrfs.create_array(tmp_path / "scalar.zarr", data=np.float32(3))
    recorder = WindowRecorder()
    application = QApplication.instance()
    assert application is not None
    application.installEventFilter(recorder)
    window = MainWindow(settings)
    try:
        window.show()
        for location in (cells, tmp_path / "complex.zarr", cells / "labels" / "nuclei"):
            wait_until_opened(qtbot, window, lambda location=location: window.open_location(str(location)))
        window.actions_by_name["linked"].trigger()
        with qtbot.waitSignal(window.session.image_changed, timeout=TIMEOUT_MILLISECONDS):
            window.open_location(str(tmp_path / "scalar.zarr"))
        qtbot.waitUntil(lambda: window.session.worker.is_idle, timeout=TIMEOUT_MILLISECONDS)
        assert recorder.shown == ["MainWindow"]
    finally:
        application.removeEventFilter(recorder)
        window.close()
        window.deleteLater()
        QApplication.processEvents()


def test_every_entry_of_a_menu_has_its_own_mnemonic(window: MainWindow) -> None:
    bar = window.menuBar()
    assert bar is not None
    for entry in bar.actions():
        menu = entry.menu()
        assert menu is not None
        titles = [action.text().casefold() for action in menu.actions() if action.text()]
        mnemonics = [title[title.find("&") + 1] if "&" in title else "" for title in titles]
        assert len(set(mnemonics) - {""}) == len(titles), titles


def titles_of(menu: QMenu) -> list[str]:
    return [action.text().replace("&", "") for action in menu.actions() if not action.isSeparator()]


def opened_menu(menu: QMenu | None) -> QMenu:
    assert menu is not None
    menu.aboutToShow.emit()
    return menu


def test_actions_are_disabled_while_nothing_is_open_that_they_need(
    open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    actions = window.actions_by_name
    assert actions["rectangle"].isEnabled()
    assert actions["reload"].isEnabled()
    assert not actions["well_left"].isEnabled()
    assert window.dataset is not None
    window.session.close_location(window.dataset.location)
    assert not any(actions[name].isEnabled() for name in ("rectangle", "fit", "reload", "panels"))
    assert all(actions[name].isEnabled() for name in ("open_folder", "palette", "dark", "about"))


def test_menus_have_sections(open_in_window: OpenInWindow, tmp_path: Path) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    bar = window.menuBar()
    assert bar is not None
    file_menu = bar.actions()[0].menu()
    assert file_menu is not None
    kinds = [action.isSeparator() for action in file_menu.actions()]
    assert kinds.count(True) == 5
    assert not any(first and second for first, second in pairwise(kinds))


def test_a_closed_panel_is_shown_again_and_the_layout_is_reset(
    open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    found = {dock.objectName(): dock for dock in window.findChildren(QDockWidget)}
    found["Hierarchy"].close()
    menu = opened_menu(window.actions_by_name["panels"].menu())
    entries = {action.text(): action for action in menu.actions()}
    assert not entries["Hierarchy"].isChecked()
    assert not entries["Plate"].isEnabled()
    assert entries["Messages"].isEnabled()
    entries["Hierarchy"].trigger()
    assert found["Hierarchy"].isVisible()
    found["Image"].close()
    found["Hierarchy"].setFloating(True)
    window.toolbar.hide()
    window.actions_by_name["reset_layout"].trigger()
    assert found["Image"].isVisible()
    assert not found["Hierarchy"].isFloating()
    assert window.toolbar.isVisible()
    assert not found["Messages"].isVisible()


def test_the_menu_of_recent_locations_opens_them(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    first = write_array(tmp_path / "a & b.zarr")
    window = open_in_window(write_array(tmp_path / "c.zarr"))
    menu = opened_menu(window.actions_by_name["open_recent"].menu())
    assert len(titles_of(menu)) == 1
    window.recent.add(str(first))
    menu = opened_menu(menu)
    assert titles_of(menu)[0].endswith("a  b.zarr")  # a doubled & is displayed as one
    wait_until_opened(qtbot, window, menu.actions()[0].trigger)
    assert window.dataset is not None
    assert window.dataset.name == "a & b.zarr"
    for location in window.recent.locations():
        window.recent.remove(location)
    assert titles_of(opened_menu(menu)) == ["No recent locations"]


@pytest.mark.parametrize(
    ("text", "title"),
    [("gamma", "Channels"), ("brightness", "contrast"), ("MIP", "slab"), ("panels", "panels")],
)
def test_the_palette_finds_actions_by_synonyms(
    text: str, title: str, qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_in_window(write_array(tmp_path / "a.zarr"))
    palette = CommandPalette(window.actions_by_name, window)
    qtbot.addWidget(palette)
    palette.search.setText(text)
    found = [item.text() for row in range(palette.matches.count()) if (item := palette.matches.item(row))]
    assert any(title in each for each in found)
    palette.search.setText("no such action")
    (only,) = [item for row in range(palette.matches.count()) if (item := palette.matches.item(row))]
    assert only.text() == "No matches"
    palette.search.returnPressed.emit()  # nothing runs


def test_about_names_the_versions_that_a_report_needs() -> None:
    text = about_text()
    assert zarrfs.__version__ in text
    assert "Qt 6." in text
