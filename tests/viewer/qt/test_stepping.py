"""Steps through slices: keys for z and t, steps of the displayed level, playback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pytestqt.qtbot import QtBot
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.state.view_state import with_level_lock

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, wait_until_exact

OpenInWindow = Callable[[object], MainWindow]

DEPTH = 14


@pytest.fixture
def pyramid(tmp_path: Path) -> Path:
    """A stack (t, z, y, x) with three levels, each half as deep, whose slices all differ."""
    path = tmp_path / "deep.ome.zarr"
    levels = []
    for number in range(3):
        step = 2**number
        scale = [1.0, float(step), float(step), float(step)]
        translation = [0.0, *[(step - 1) / 2] * 3]
        levels.append(
            {
                "path": str(number),
                "coordinateTransformations": [
                    {"type": "scale", "scale": scale},
                    {"type": "translation", "translation": translation},
                ],
            }
        )
    axes = [{"name": "t", "type": "time"}, *({"name": name, "type": "space"} for name in "zyx")]
    document = {"version": "0.5", "multiscales": [{"axes": axes, "datasets": levels}]}
    zarrfs.create_group(path, attributes={"ome": document})
    for number in range(3):
        step = 2**number
        depth = -(-DEPTH // step)
        planes = 10 * step * np.arange(depth, dtype="u1")[None, :, None, None]
        data = (
            np.arange(3, dtype="u1")[:, None, None, None] + planes + np.zeros((64 // step, 64 // step), "u1")
        )
        zarrfs.create_array(path, str(number), data=data, chunks=(1, 1, 32, 32))
    return path


def shown_value(window: MainWindow) -> int:
    frame, image = window.canvas.frame, window.image
    assert frame is not None
    assert image is not None
    state = frame.state
    index = [image.level_index(state.level, axis, state.settings.position[axis]) for axis in range(4)]
    return int(image.levels[state.level].array[index[0], index[1], 0, 0])


@pytest.mark.parametrize("level", [0, 1, 2])
def test_each_step_changes_the_picture_and_reaches_every_slice_of_the_level(
    qtbot: QtBot, open_in_window: OpenInWindow, pyramid: Path, level: int
) -> None:
    window = open_in_window(pyramid)
    assert window.display_settings is not None
    wait_until_exact(
        qtbot, window, lambda: window.session.change(with_level_lock(window.display_settings, level))
    )
    wait_until_exact(qtbot, window, lambda: window.panel(Position).dimensions.set_position(1, 0))
    assert window.image is not None
    depth = window.image.levels[level].shape[1]
    seen = [shown_value(window)]
    for _ in range(depth - 1):
        wait_until_exact(qtbot, window, window.actions_by_name["next_slice"].trigger)
        seen.append(shown_value(window))
    assert len(set(seen)) == depth
    assert seen == sorted(seen)
    window.panel(Position).dimensions.step(1)
    assert shown_value(window) == seen[-1]
    for _ in range(depth - 1):
        wait_until_exact(qtbot, window, window.actions_by_name["previous_slice"].trigger)
    assert shown_value(window) == seen[0]
    label = window.panel(Position).dimensions._labels[1].text()
    assert (f"step {2**level}" in label) == (level > 0)


def test_brackets_step_through_time(qtbot: QtBot, open_in_window: OpenInWindow, pyramid: Path) -> None:
    window = open_in_window(pyramid)
    assert window.display_settings is not None
    z = window.display_settings.position[1]
    wait_until_exact(qtbot, window, window.actions_by_name["next_time"].trigger)
    wait_until_exact(qtbot, window, window.actions_by_name["next_time"].trigger)
    assert window.display_settings.position[:2] == (2.0, z)
    wait_until_exact(qtbot, window, window.actions_by_name["previous_time"].trigger)
    assert window.display_settings.position[:2] == (1.0, z)
    assert window.actions_by_name["next_time"].shortcut().toString() == "]"
    assert window.actions_by_name["previous_time"].shortcut().toString() == "["


@pytest.mark.parametrize(
    ("repeat", "expected"),
    [("loop", [0, 1, 2, 0, 1]), ("bounce", [0, 1, 2, 1, 0]), ("once", [0, 1, 2, 2, 2])],
)
def test_playback_at_the_end(
    open_in_window: OpenInWindow, pyramid: Path, repeat: str, expected: list[int]
) -> None:
    window = open_in_window(pyramid)
    panel = window.panel(Position).dimensions
    panel.is_ready_for_next = lambda: True
    panel.repeat.setCurrentIndex(panel.repeat.findData(repeat))
    panel._buttons[0].setChecked(True)
    panel._timer.setInterval(10**6)  # only the test emits the timer's signal
    positions = [panel._sliders[0].value()]
    for _ in range(4):
        panel._timer.timeout.emit()
        positions.append(panel._sliders[0].value())
    assert positions == expected
    assert panel._buttons[0].isChecked() == (repeat != "once")


def test_the_speed_of_playback_is_the_interval(open_in_window: OpenInWindow, pyramid: Path) -> None:
    panel = open_in_window(pyramid).panel(Position).dimensions
    panel.rate.setValue(25)
    assert panel._timer.interval() == 40


def test_stored_planes_of_a_sparse_stack_are_found_and_empty_ones_are_named(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    array = zarrfs.create_array(
        tmp_path / "sparse.zarr",
        shape=(1000, 64, 64),
        chunks=(1, 32, 32),
        dtype="u2",
        dimension_names=["z", "y", "x"],
    )
    for z in (7, 520, 900):
        array[z, 20:40, 20:40] = 1000 + np.arange(400).reshape(20, 20)
    window = open_in_window(tmp_path / "sparse.zarr")
    actions, layers = window.actions_by_name, window.canvas.layers

    def limits() -> tuple[float, float] | None:
        assert window.display_settings is not None
        return window.display_settings.channels[0].limits

    def wait_until_at(z: int, name: str) -> None:
        actions[name].trigger()
        qtbot.waitUntil(
            lambda: window.display_settings is not None and window.display_settings.position[0] == z,
            timeout=TIMEOUT_MILLISECONDS,
        )

    assert window.display_settings is not None
    assert window.display_settings.position[0] == 520
    qtbot.waitUntil(lambda: limits() is not None, timeout=TIMEOUT_MILLISECONDS)
    wait_until_at(900, "next_stored")
    actions["next_stored"].trigger()
    qtbot.waitUntil(
        lambda: "No plane is stored after z 900" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS
    )
    for z in (520, 7):
        wait_until_at(z, "previous_stored")
        assert layers.note == ""
    wait_until_exact(qtbot, window, lambda: window.panel(Position).set_position(0, 8))
    qtbot.waitUntil(lambda: "no data stored here" in layers.note, timeout=TIMEOUT_MILLISECONDS)
    wait_until_exact(qtbot, window, lambda: window.panel(Position).set_position(0, 7))
    assert layers.note == ""


def test_an_empty_slice_does_not_set_the_contrast_of_the_others(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = np.zeros((3, 64, 64), "u2")
    data[2] = 500 + np.arange(64)
    zarrfs.create_array(tmp_path / "a.zarr", data=data, chunks=(3, 64, 64), dimension_names=["z", "y", "x"])
    window = open_in_window(tmp_path / "a.zarr")
    assert window.display_settings is not None
    assert window.display_settings.position[0] == 1
    assert window.display_settings.channels[0].limits is None
    wait_until_exact(qtbot, window, lambda: window.panel(Position).set_position(0, 2))
    qtbot.waitUntil(
        lambda: (
            window.display_settings is not None and window.display_settings.channels[0].limits == (500, 563)
        ),
        timeout=TIMEOUT_MILLISECONDS,
    )
