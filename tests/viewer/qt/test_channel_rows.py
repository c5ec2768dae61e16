"""The rows of the channels panel: details of the selected channel, the range slider, and the filter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PyQt6.QtCore import QLocale, QPoint, Qt
from PyQt6.QtGui import QColor
from PyQt6.QtTest import QTest
from PyQt6.QtWidgets import QColorDialog, QFileDialog
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.channels.channels import Channels
from zarrfs_viewer.qt.panels.channels.colormap_dialog import ColormapDialog
from zarrfs_viewer.qt.panels.channels.range_slider import RangeSlider
from zarrfs_viewer.qt.panels.settings_history import SettingsHistory
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.saved_views.views import from_link, to_link
from zarrfs_viewer.state.colormaps import lookup

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact, wait_until_opened

OpenInWindow = Callable[[object], MainWindow]
CHANNELS = 6


@pytest.fixture
def window(qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path) -> MainWindow:
    values = np.random.default_rng(0).integers(0, 1000, (CHANNELS, 3, 32, 32), "u2")
    zarrfs.create_array(
        tmp_path / "a.zarr", data=values, chunks=(1, 1, 32, 32), dimension_names=["c", "z", "y", "x"]
    )
    opened = open_in_window(tmp_path / "a.zarr")
    limits = lambda: opened.display_settings is not None and opened.display_settings.channels[0].limits  # noqa: E731
    qtbot.waitUntil(lambda: bool(limits()), timeout=TIMEOUT_MILLISECONDS)
    return opened


def test_three_channels_are_visible_and_one_has_details(window: MainWindow) -> None:
    rows = window.panel(Channels).panel.rows
    assert [row.visible.isChecked() for row in rows] == [True] * 3 + [False] * 3
    assert [row.details.isHidden() for row in rows] == [False] + [True] * 5
    QTest.mouseClick(rows[4], Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert [row.details.isHidden() for row in rows] == [True] * 4 + [False, True]
    assert window.panel(Channels).panel.current == 4


def test_an_active_mode_of_a_channel_is_highlighted(window: MainWindow) -> None:
    button = window.panel(Channels).panel.rows[0].solo

    def color() -> QColor:
        """The colour of the button beside its text."""
        return button.grab().toImage().pixelColor(4, button.height() // 2)

    assert color().saturation() < 60
    button.click()
    assert color().saturation() > 100
    button.click()
    assert color().saturation() < 60


def test_a_long_name_below_the_histogram_is_elided_and_has_a_tooltip(window: MainWindow) -> None:
    panel = window.panel(Channels).panel
    before = panel.sizeHint(), panel._title.width()
    name = "Alexa Fluor 488 excitation of the nuclei"
    panel.rows[1].name = name
    panel.select_channel(1)
    assert (panel._title.text(), panel.sizeHint().width(), panel._title.width()) == (
        name,
        before[0].width(),
        before[1],
    )
    assert name in panel._title.toolTip()


def test_all_none_and_the_filter(qtbot: QtBot, window: MainWindow) -> None:
    panel = window.panel(Channels).panel

    def visible() -> list[bool]:
        assert window.display_settings is not None
        return [channel.visible for channel in window.display_settings.channels]

    assert not panel.tools.isHidden()
    panel.filter.setText("channel 5")
    assert [row.isHidden() for row in panel.rows] == [True] * 5 + [False]
    wait_until_exact(qtbot, window, panel.show_all.click)
    assert visible() == [True, True, True, False, False, True]
    panel.filter.clear()
    wait_until_exact(qtbot, window, panel.show_all.click)
    assert visible() == [True] * CHANNELS
    wait_until_exact(qtbot, window, panel.show_none.click)
    assert visible() == [False] * CHANNELS
    window.panel(SettingsHistory).undo()
    assert visible() == [True] * CHANNELS, "all channels are one step"


def test_few_channels_have_no_filter(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "b.zarr", data=np.zeros((8, 8), "u1"))
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "b.zarr")))
    assert window.panel(Channels).panel.tools.isHidden()


def test_the_slider_of_a_row_moves_one_limit(window: MainWindow) -> None:
    row = window.panel(Channels).panel.rows[0]
    assert window.display_settings is not None
    low, high = window.display_settings.channels[0].limits or (0.0, 0.0)
    slider = row.slider
    x = round(slider.position_of(high))
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(x, 5))
    QTest.mouseMove(slider, QPoint(x // 2, 5))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(x // 2, 5))
    changed = window.display_settings.channels[0].limits
    assert changed is not None
    assert changed[0] == low
    assert low < changed[1] < high
    assert changed[1] == round(changed[1])
    assert row.high.value() == changed[1]


def test_a_color_is_chosen_from_the_swatch(window: MainWindow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QColorDialog, "getColor", lambda *_: QColor("#12ab34"))
    window.panel(Channels).panel.rows[1].color.click()
    assert window.display_settings is not None
    assert window.display_settings.channels[1].colormap == "#12ab34"
    monkeypatch.setattr(QColorDialog, "getColor", lambda *_: QColor())
    window.panel(Channels).panel.rows[1].color.click()
    assert window.display_settings.channels[1].colormap == "#12ab34"


@pytest.mark.parametrize("limits", [(0.0, 0.0), (-1e300, 1e300), (1e-30, 2e-30), (5.0, 5.0)])
def test_positions_and_values_of_a_slider_agree(qtbot: QtBot, limits: tuple[float, float]) -> None:
    slider = RangeSlider(is_integer=False)
    qtbot.addWidget(slider)
    slider.resize(208, 18)
    slider.show_limits(limits, None, "viridis", True)
    slider.grab()
    for part in (0.0, 0.3, 1.0):
        value = slider.value_at(4 + part * 200)
        assert np.isfinite(value)
        if limits[0] < limits[1]:
            assert slider.position_of(value) == pytest.approx(4 + part * 200)


@pytest.mark.parametrize(
    ("limits", "limits_range", "expected"),
    [
        ((100.0, 900.0), (0.0, 65535.0), (0.0, 1300.0)),
        ((100.0, 900.0), (0.0, 1000.0), (0.0, 1000.0)),
        ((100.0, 900.0), None, (-300.0, 1300.0)),
    ],
)
def test_the_range_of_a_slider_separates_its_handles(
    qtbot: QtBot,
    limits: tuple[float, float],
    limits_range: tuple[float, float] | None,
    expected: tuple[float, float],
) -> None:
    slider = RangeSlider(is_integer=True)
    qtbot.addWidget(slider)
    slider.resize(208, 18)
    slider.show_limits(limits, limits_range, "gray", False)
    assert (slider.value_at(0), slider.value_at(208)) == expected
    slider.show_limits((50.0, 5000.0), limits_range, "gray", False)
    assert slider.value_at(208) == 5000.0


def test_handles_do_not_pass_each_other(qtbot: QtBot) -> None:
    slider = RangeSlider(is_integer=True)
    qtbot.addWidget(slider)
    slider.resize(208, 18)
    slider.show_limits((40.0, 60.0), (0.0, 100.0), "gray", False)
    assert slider.value_at(208) == 100.0
    moves: list[tuple[int, float]] = []
    slider.moved.connect(lambda number, value: moves.append((number, value)))
    QTest.mousePress(slider, Qt.MouseButton.LeftButton, pos=QPoint(round(slider.position_of(40)), 9))
    QTest.mouseMove(slider, QPoint(200, 9))
    QTest.mouseRelease(slider, Qt.MouseButton.LeftButton, pos=QPoint(200, 9))
    assert moves[-1] == (0, 60.0)
    slider.show_limits(None, None, "gray", False)
    QTest.mouseClick(slider, Qt.MouseButton.LeftButton, pos=QPoint(20, 9))
    assert len(moves) == 1


def test_lookup_tables_and_more_color_maps_are_used_and_remembered(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "Two colors.lut").write_text("0 0 0\n255 128 0\n")
    (tmp_path / "bad.lut").write_text("nothing\n")
    row = window.panel(Channels).panel.rows[0]
    before = row.colormap.currentText()
    entries = [row.colormap.itemText(number) for number in range(row.colormap.count())]
    chosen = iter([tmp_path / "bad.lut", tmp_path / "Two colors.lut"])
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *a: (str(next(chosen)), ""))
    row.colormap.activated.emit(entries.index("Import LUT file..."))
    qtbot.waitUntil(lambda: "bad.lut" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert row.colormap.currentText() == before
    row.colormap.activated.emit(entries.index("Import LUT file..."))
    qtbot.waitUntil(lambda: row.colormap.currentText() == "Two colors", timeout=TIMEOUT_MILLISECONDS)
    assert window.display_settings is not None
    imported = window.display_settings.channels[0].colormap
    assert lookup(imported)[255].tolist() == [255, 128, 0]

    def choose(dialog: ColormapDialog) -> bool:
        dialog.search.setText("imagej:FIRE")
        return True

    monkeypatch.setattr(ColormapDialog, "exec", choose)
    entries = [row.colormap.itemText(number) for number in range(row.colormap.count())]
    row.colormap.activated.emit(entries.index("More colour maps..."))
    assert window.display_settings.channels[0].colormap == "cmap:imagej:fire"
    assert row.colormap.currentText() == "imagej:fire"
    assert window.panel(Channels).colormaps.names() == ("cmap:imagej:fire", imported)
    # A saved view contains the colours of the imported table.
    window.session.change_channel(0, colormap=imported)
    view = window.session.view("v", window.canvas.viewport)
    assert view is not None
    assert from_link(to_link(view))[1] == view
    other = MainWindow(window.settings)
    qtbot.addWidget(other)
    other.panel(Channels).panel.show_channels(window.display_settings.channels, "u", False)
    listed = other.panel(Channels).panel.rows[0].colormap
    texts = [listed.itemText(number) for number in range(listed.count())]
    assert {"imagej:fire", "Two colors"} <= set(texts)
    other.close()


def test_the_mark_toggles_a_channel_where_it_is_and_its_name_selects_it(
    qtbot: QtBot, window: MainWindow
) -> None:
    rows = window.panel(Channels).panel.rows
    indicator = QPoint(8, rows[1].visible.height() // 2)
    QTest.mouseClick(rows[1].visible, Qt.MouseButton.LeftButton, pos=indicator)
    assert not rows[1].visible.isChecked()
    assert window.panel(Channels).panel.current == 0, (
        "the rows move, and a second click is beside the indicator"
    )
    QTest.mouseClick(rows[1].visible, Qt.MouseButton.LeftButton, pos=indicator)
    assert rows[1].visible.isChecked()
    name = QPoint(rows[1].visible.width() - 5, indicator.y())
    QTest.mouseClick(rows[1].visible, Qt.MouseButton.LeftButton, pos=name)
    assert window.panel(Channels).panel.current == 1
    assert rows[1].visible.isChecked()


@pytest.mark.parametrize("locale", ["de_DE", "en_US"])
@pytest.mark.parametrize("typed", ["1.5", "1,5"])
@pytest.mark.parametrize("name", ["low", "gamma"])
def test_numbers_are_typed_with_a_point_or_a_comma(
    qtbot: QtBot, window: MainWindow, tmp_path: Path, locale: str, typed: str, name: str
) -> None:
    zarrfs.create_array(tmp_path / "f.zarr", data=np.linspace(0, 9, 64, dtype="f4").reshape(8, 8))
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "f.zarr")))
    box = getattr(window.panel(Channels).panel.rows[0], name)
    box.setLocale(QLocale(locale))
    box.setFocus()
    box.selectAll()
    qtbot.keyClicks(box, typed)
    assert QLocale(locale).decimalPoint() in box.text()
    qtbot.keyClick(box, Qt.Key.Key_Return)
    assert window.display_settings is not None
    channel = window.display_settings.channels[0]
    assert channel.limits is not None
    assert {"low": channel.limits[0], "gamma": channel.gamma}[name] == 1.5
    assert QLocale(locale).decimalPoint() in box.text()
