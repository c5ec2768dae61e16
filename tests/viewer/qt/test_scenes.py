"""Scenes in a window: each image is drawn where NumPy puts it, in the coordinate system that is chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PyQt6.QtCore import Qt
from PyQt6.QtGui import QImage
from pytestqt.qtbot import QtBot
from zarrfs_viewer.images.dataset import describe, initial_settings
from zarrfs_viewer.images.opening import open_first_image
from zarrfs_viewer.qt.canvas.image_layers import ImageLayers
from zarrfs_viewer.qt.panels.gallery import Series
from zarrfs_viewer.qt.panels.layers.layers_panel import LayersPanel
from zarrfs_viewer.qt.panels.layers.layers_view import LayersView
from zarrfs_viewer.qt.panels.layers.system_header import SystemHeader
from zarrfs_viewer.qt.panels.pictures.pictures import PictureActions
from zarrfs_viewer.qt.panels.position.position import Position
from zarrfs_viewer.qt.window.last_session import restore_window, window_state
from zarrfs_viewer.qt.window.main_window import MainWindow
from zarrfs_viewer.saved_views.views import View, from_json, to_json
from zarrfs_viewer.state.view_state import Viewport

import zarrfs
from tests.viewer.qt.waiting import TIMEOUT_MILLISECONDS, is_exact, wait_until_exact, wait_until_opened
from tests.viewer.scenes import affine_rows, value_at, write_scene
from tests.viewer.screenshots import take_screenshot
from zarrfs.ngff import SystemReference

OpenInWindow = Callable[[object], MainWindow]

BLOCK = 8


def rotation(degrees: float) -> npt.NDArray[np.float64]:
    angle = np.deg2rad(degrees)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def blocks(shape: tuple[int, ...], seed: int) -> npt.NDArray[np.uint8]:
    """Random values that are constant within blocks, so that interpolation does not change those in the middle."""
    small = np.random.default_rng(seed).integers(20, 250, [-(-length // BLOCK) for length in shape])
    for axis in range(len(shape)):
        small = np.repeat(small, BLOCK, axis)
    return small[tuple(slice(length) for length in shape)].astype("u1")


def layers_of(window: MainWindow) -> ImageLayers:
    return window.panel(LayersView).layers


def panel_of(window: MainWindow) -> LayersPanel:
    return window.panel(LayersView).panel


def header_of(window: MainWindow) -> SystemHeader:
    return window.panel(LayersView).header


def wait_until_complete(qtbot: QtBot, window: MainWindow, count: int | None = None) -> None:
    """Wait until all visible layers, or a number of them, are open and displayed."""
    layers = layers_of(window)

    def is_complete() -> bool:
        opened = [layer for layer in layers.layers if layer.image is not None]
        return (
            len(opened) == (len(layers.layers) if count is None else count)
            and layers.is_complete
            and window.session.worker.is_idle
            and is_exact(window)
        )

    qtbot.waitUntil(is_complete, timeout=TIMEOUT_MILLISECONDS)


def place(window: MainWindow, y: float, x: float) -> tuple[int, int]:
    """The pixel of the canvas at a point of the coordinate system that is displayed."""
    image, settings = window.image, window.display_settings
    assert image is not None
    assert settings is not None
    position = {"y": y, "x": x}
    row, column = (image.from_physical(axis, position[image.axes[axis].name]) for axis in settings.displayed)
    left, top = window.canvas.viewport.to_device(row, column)
    return int(left), int(top)


def drawn(window: MainWindow, y: float, x: float) -> int:
    """The red value on the screen at a point of the coordinate system that is displayed."""
    return window.canvas.grab().toImage().pixelColor(*place(window, y, x)).red()


def open_scene(
    qtbot: QtBot, open_in_window: OpenInWindow, path: Path, images: dict[str, Any], **options: Any
) -> MainWindow:
    write_scene(path, images, **options)
    window = open_in_window(path)
    window.session.change_channel(0, limits=(0.0, 255.0))
    wait_until_complete(qtbot, window)
    return window


def check_points(window: MainWindow, images: dict[str, Any], points: npt.NDArray[np.float64]) -> int:
    """Compare the screen at points with the topmost image there. Returns the number of points within an image."""
    compared = 0
    picture = window.canvas.grab().toImage()
    for point in points:
        left, top = place(window, *point)
        overview = window.panes.overview
        if not picture.rect().contains(left, top) or (
            overview.isVisible() and overview.geometry().contains(left, top)
        ):
            continue
        found = None
        for data, size, step in images.values():
            rows = np.array(step["affine"], float)
            around = [
                value_at(data, size, rows[:, :2], rows[:, 2], point + np.array(offset))
                for offset in ((0, 0), (0.7, 0.7), (0.7, -0.7), (-0.7, 0.7), (-0.7, -0.7))
            ]
            if around[0] is not None:
                found = around[0] if len(set(around)) == 1 else "edge"
            elif set(around) != {None}:
                found = "edge"
        if found is None:
            found = 18  # the background
        if found != "edge":
            assert abs(picture.pixelColor(left, top).red() - int(found)) <= 4, point
            compared += found != 18
    return compared


def stitch() -> dict[str, Any]:
    """Four tiles of 40 x 48 pixels of half a micrometre, three of which are rotated."""
    images: dict[str, Any] = {}
    for number, (top, left, angle) in enumerate(((0, 0, 0), (0, 26, 12), (24, 0, -20), (24, 26, 90))):
        matrix = rotation(angle)
        center = np.array([top + 10, left + 12])
        offset = center - matrix @ [9.75, 11.75]
        images[f"tile_{number}"] = (
            blocks((40, 48), number),
            (0.5, 0.5),
            affine_rows(matrix, offset.tolist()),
        )
    return images


def test_a_scene_is_one_picture_with_each_tile_at_its_place(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    images = stitch()
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images)
    assert [layer.name for layer in layers_of(window).layers] == ["tile_1", "tile_2", "tile_3"]
    points = np.random.default_rng(0).uniform((-4, -4), (50, 54), (120, 2))
    assert check_points(window, images, points) > 25
    # The whole scene is in the window.
    top, _, bottom, right = window.canvas.viewport.rect
    image = window.image
    assert image is not None
    assert image.to_physical(0, top) < 0
    assert image.to_physical(0, bottom) > 44
    assert image.to_physical(1, right) > 46
    # Also at other positions and zooms, from other levels.
    window.canvas.zoom(4)
    wait_until_complete(qtbot, window)
    corner = window.canvas.viewport.rect
    low = [image.to_physical(axis, corner[axis]) for axis in (0, 1)]
    high = [image.to_physical(axis, corner[axis + 2]) for axis in (0, 1)]
    assert check_points(window, images, np.random.default_rng(1).uniform(low, high, (40, 2))) > 5
    assert not window.panel(Series).dock.isVisible()


def test_tiles_are_opened_when_they_become_visible(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    images = {
        f"t{number}": (
            blocks((16, 16), number),
            (1, 1),
            {"type": "translation", "translation": [0, 16 * number]},
        )
        for number in range(12)
    }
    write_scene(tmp_path / "a.zarr", images)
    session = window.session
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "a.zarr")))
    view = session.view("left", Viewport(400, 300, (8.0, 20.0), 12.0))
    assert view is not None
    session.close_location(str(tmp_path / "a.zarr"))
    assert not layers_of(window).layers
    wait_until_opened(qtbot, window, lambda: session.open_view(view))
    layers = layers_of(window)
    qtbot.waitUntil(lambda: all(layer.extent for layer in layers.layers), timeout=TIMEOUT_MILLISECONDS)
    right = window.canvas.viewport.rect[3]
    visible = sum(16 * number - 0.5 < right for number in range(1, 12))
    assert visible < 9
    wait_until_complete(qtbot, window, visible)
    assert all(layer.image is None for layer in layers.layers[visible:])
    window.canvas.fit()
    wait_until_complete(qtbot, window)


def test_images_that_cannot_be_placed_have_a_message_and_others_are_displayed(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    data = blocks((16, 16), 0)
    steps: dict[str, Any] = {
        "lost": {"type": "identity"},
        "first": {"type": "identity"},
        "nan": {"type": "affine", "affine": [[1, 0, float("nan")], [0, 1, 0]]},
        "wrong": {"type": "affine", "affine": [[1, 0, 0, 5], [0, 1, 0, 5]]},
        "good": {"type": "translation", "translation": [0, 16]},
        "twice": {"type": "translation", "translation": [40, 0]},
    }
    images = {name: (data, (1, 1), step) for name, step in steps.items()}
    write_scene(tmp_path / "a.zarr", images)
    group = zarrfs.open_group(tmp_path / "a.zarr", mode="r+")
    del group["lost"]
    ome = dict(group.attrs["ome"])
    edges = list(ome["scene"]["coordinateTransformations"])
    edges.append({**edges[-1], "translation": [50, 0]})  # contradicts the one before
    group.attrs["ome"] = {**ome, "scene": {**ome["scene"], "coordinateTransformations": edges}}
    window = open_in_window(tmp_path / "a.zarr")
    assert window.image is not None
    assert window.image.path == "first"
    wait_until_complete(qtbot, window, 1)
    problems = {layer.name: layer.problem for layer in layers_of(window).layers}
    assert "lost" in problems["lost"]
    assert "nan" in problems["nan"]
    assert "4 numbers" in problems["wrong"]
    assert "contradict" in problems["twice"]
    assert not problems["good"]
    listed = panel_of(window).list
    texts = [listed.item(row).text() for row in range(listed.count())]  # type: ignore[union-attr]
    assert [text.startswith("\N{WARNING SIGN}") for text in texts] == [True, False, True, True, True, False]
    listed.setCurrentRow(0)
    assert "contradict" in panel_of(window).problem.text()


def test_the_coordinate_system_can_be_chosen(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    images = stitch()
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images)
    header = header_of(window)
    assert header.isVisible()
    assert [header.systems.itemText(row) for row in range(3)] == [
        "world",
        "physical of tile_0",
        "physical of tile_1",
    ]
    assert header.axes.text() == "y [µm], x [µm]"
    wait_until_exact(qtbot, window, lambda: window.session.change_channel(0, limits=(0.0, 240.0)))
    with qtbot.waitSignal(window.session.image_changed, timeout=TIMEOUT_MILLISECONDS):
        header.systems.activated.emit(2)
    wait_until_complete(qtbot, window)
    assert header.systems.currentText() == "physical of tile_1"
    settings = window.display_settings
    assert settings is not None
    assert settings.channels[0].limits == (0.0, 240.0)
    # All images are where the transformation from the world to the second tile puts them.
    rows = np.array(images["tile_1"][2]["affine"])
    inverse = np.linalg.inv(rows[:, :2])
    moved = {}
    for name, (data, size, step) in images.items():
        own = np.array(step["affine"])
        moved[name] = (
            (data * (255 / 240)).clip(0, 255),
            size,
            affine_rows(inverse @ own[:, :2], (inverse @ (own[:, 2] - rows[:, 2])).tolist()),
        )
    points = np.random.default_rng(2).uniform((-10, -30), (40, 30), (80, 2))
    assert check_points(window, moved, points) > 10
    view = window.session.view("", window.canvas.viewport)
    assert view is not None
    assert view.system == SystemReference("tile_1", "physical")
    assert from_json(to_json(view)) == view


def test_the_system_and_changed_layers_of_a_scene_are_restored(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", stitch())
    with qtbot.waitSignal(window.session.image_changed, timeout=TIMEOUT_MILLISECONDS):
        window.session.show_system(SystemReference("tile_2", "physical"))
    wait_until_complete(qtbot, window)
    layers = layers_of(window)
    layers.arrange(layers.layers[1], "additive", 0.25)
    layers.show(layers.layers[2], False)
    state = window_state(window)
    assert len(state.layers) == 2
    session = window.session
    session.close_location(str(tmp_path / "a.zarr"))
    restore_window(window, state)
    qtbot.waitUntil(
        lambda: len(layers.layers) == 3 and not layers.layers[2].visible, timeout=TIMEOUT_MILLISECONDS
    )
    assert (layers.layers[1].arrangement, layers.layers[1].opacity) == ("additive", 0.25)
    assert session.dataset is not None
    assert session.dataset.shown_system == SystemReference("tile_2", "physical")
    qtbot.waitUntil(lambda: window_state(window).layers == state.layers, timeout=TIMEOUT_MILLISECONDS)


def test_layers_are_ordered_hidden_and_removed_in_the_panel(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    images = {
        name: (np.full((16, 16), value, "u1"), (1, 1), {"type": "identity"})
        for name, value in (("a", 50), ("b", 100), ("c", 200))
    }
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images)
    panel, layers = panel_of(window), layers_of(window)

    def shows(value: int) -> bool:
        return abs(drawn(window, 8, 8) - value) <= 2

    assert shows(200)
    panel.list.setCurrentRow(0)
    panel.down.click()
    assert [layer.name for layer in layers.layers] == ["c", "b"]
    assert panel.list.currentRow() == 1
    assert shows(100)
    checked = panel.list.item(0)
    assert checked is not None
    checked.setCheckState(Qt.CheckState.Unchecked)
    qtbot.waitUntil(lambda: shows(200), timeout=TIMEOUT_MILLISECONDS)
    panel.arrangement.setCurrentIndex(panel.arrangement.findData("additive"))
    panel.arrangement.activated.emit(panel.arrangement.currentIndex())
    qtbot.waitUntil(lambda: shows(250), timeout=TIMEOUT_MILLISECONDS)
    first = panel.list.item(2)
    assert first is not None
    first.setCheckState(Qt.CheckState.Unchecked)
    qtbot.waitUntil(lambda: shows(200 + 18), timeout=TIMEOUT_MILLISECONDS)
    first.setCheckState(Qt.CheckState.Checked)
    panel.remove.click()
    assert [layer.name for layer in layers.layers] == ["b"]
    assert shows(50)
    with qtbot.waitSignal(window.session.image_changed, timeout=TIMEOUT_MILLISECONDS):
        panel.list.itemActivated.emit(panel.list.item(0))
    assert window.image is not None
    assert window.image.path == "b"
    assert [layer.name for layer in layers.layers] == ["a", "c"]


def test_images_of_a_scene_have_the_channels_of_the_first_until_they_are_changed(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    images = {
        name: (np.full((16, 16), 100, "u1"), (1, 1), {"type": "translation", "translation": [0, left]})
        for name, left in (("a", 0), ("b", 20), ("c", 40))
    }
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images)
    layers = layers_of(window)
    layers.select(layers.layers[0])
    layers.change_channel(0, limits=(0.0, 100.0))
    window.session.change_channel(0, limits=(0.0, 200.0))
    qtbot.waitUntil(
        lambda: (
            [round(drawn(window, 8, x), -1) for x in (8, 28, 48)] == [130, 260, 130]
            or ([drawn(window, 8, x) for x in (8, 28, 48)] == [128, 255, 128])
        ),
        timeout=TIMEOUT_MILLISECONDS,
    )


def test_the_status_bar_states_the_values_and_indices_of_all_layers(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    images = stitch()
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images)
    image = window.image
    assert image is not None
    data, size, step = images["tile_3"]
    rows = np.array(step["affine"])
    element = (13, 31)
    y, x = rows[:, :2] @ (np.array(element) * size) + rows[:, 2]
    row, column = image.from_physical(0, y), image.from_physical(1, x)
    texts: list[str] = []
    window.panes.pointed.connect(lambda values: texts.append("" if values is None else values.text()))
    window.canvas.pointed.emit((row, column))
    assert f"y {y:.2f} µm" in texts[-1]
    assert f"x {x:.2f} µm" in texts[-1]
    assert f"tile_3: pixel (13, 31) of level 0, {data[element]}" in texts[-1]
    assert "tile_1" not in texts[-1]
    # In the box of a rotated tile, but outside of it.
    window.canvas.pointed.emit((image.from_physical(0, 23.0), image.from_physical(1, -3.0)))
    assert "tile_2" not in texts[-1]


def test_pictures_contain_the_layers(qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path) -> None:
    images = stitch()
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images)
    image = window.image
    assert image is not None
    viewport = Viewport(300, 300, (40.0, 40.0), 2.5)
    draw = window.panel(PictureActions)._drawing(viewport, False)
    assert draw is not None
    picture, error = draw(None)
    assert not error
    compared = 0
    for name, (data, size, step) in images.items():
        rows = np.array(step["affine"])
        for element in ((20, 20), (12, 36), (28, 12)):
            y, x = rows[:, :2] @ (np.array(element) * size) + rows[:, 2]
            left, top = viewport.to_device(image.from_physical(0, y), image.from_physical(1, x))
            if name == "tile_3":  # nothing is over it
                assert abs(picture.pixelColor(int(left), int(top)).blue() - data[element]) <= 4
                compared += 1
    assert compared == 3


def test_planes_of_an_oblique_volume_follow_the_slice(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    about_x = np.eye(3)
    about_x[:2, :2] = rotation(30)
    moving = blocks((24, 40, 40), 5)
    offset = (-6.0, 4.0, 30.0)
    images = {
        "fixed": (np.full((24, 40, 40), 60, "u1"), (1, 1, 1), {"type": "identity"}),
        "moving": (moving, (1, 1, 1), affine_rows(about_x, offset)),
    }
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", images, names="zyx")
    for z in (4, 8):
        window.panel(Position).set_position(0, z)
        wait_until_complete(qtbot, window)
        compared, picture = 0, window.canvas.grab().toImage()
        for y in range(2, 40, 2):
            for x in range(34, 66, 4):
                around = {
                    value_at(moving, (1, 1, 1), about_x, offset, (z + dz, y + dy, x + dx))
                    for dz in (-0.7, 0.7)
                    for dy in (-0.9, 0.9)
                    for dx in (-0.9, 0.9)
                }
                if len(around) == 1:
                    (value,) = around
                    found = picture.pixelColor(*place(window, y, x)).red()
                    background = 60 if x < 39 and y < 39 else 18
                    assert abs(found - (background if value is None else int(value))) <= 4, (z, y, x)
                    compared += value is not None
        assert compared > 5


def test_an_image_of_one_slice_is_displayed_at_its_position_only(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    images = {
        "stack": (np.full((8, 16, 16), 50, "u1"), (1, 1, 1), {"type": "identity"}),
        "slice": (
            np.full((1, 16, 16), 200, "u1"),
            (1, 1, 1),
            {"type": "translation", "translation": [5, 0, 0]},
        ),
    }
    write_scene(tmp_path / "a.zarr", images, names="zyx")
    window = open_in_window(tmp_path / "a.zarr")
    window.session.change_channel(0, limits=(0.0, 255.0))
    for z, value in ((5, 200), (4, 50), (5, 200)):
        window.panel(Position).set_position(0, z)
        qtbot.waitUntil(
            lambda value=value: abs(drawn(window, 8, 8) - value) <= 2, timeout=TIMEOUT_MILLISECONDS
        )


def test_a_layer_of_another_location_keeps_its_place_in_a_scene_view(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    window = open_scene(qtbot, open_in_window, tmp_path / "a.zarr", stitch())
    other = zarrfs.create_group(tmp_path / "b.zarr")
    other.create_array("plane", data=np.full((8, 8), 7, "u1"), chunks=(8, 8), dimension_names=["y", "x"])
    layers = layers_of(window)
    layers.open(other["plane"], str(tmp_path / "b.zarr"), "plane")
    wait_until_complete(qtbot, window)
    assert [layer.name for layer in layers.layers][-1] == "plane"
    wait_until_opened(qtbot, window, lambda: window.open_location(str(tmp_path / "b.zarr"), "plane"))
    assert [layer.name for layer in layers.layers] == ["plane"]


def test_a_screenshot_waits_for_the_images_of_a_scene(tmp_path: Path) -> None:
    data = np.tile(np.array([[0, 255]], "u1"), (40, 20))
    images = {
        name: (data, (1, 1), {"type": "translation", "translation": [0, left]})
        for name, left in (("a", 0), ("b", 50), ("c", 100))
    }
    write_scene(tmp_path / "a.zarr", images)
    file = tmp_path / "a.png"
    done = take_screenshot(tmp_path / "a.zarr", file, size=None)
    assert (done.returncode, done.stderr) == (0, "")
    picture = QImage(str(file))
    middle = range(picture.width() // 4, 3 * picture.width() // 4)
    found = [picture.pixelColor(x, picture.height() // 2).blue() == 255 for x in middle]
    runs = sum(now and not before for before, now in zip([False, *found], found, strict=False))
    assert runs == 60


def test_a_saved_view_without_a_system_is_displayed_in_the_first_one(tmp_path: Path) -> None:
    write_scene(tmp_path / "a.zarr", stitch())
    dataset = describe(zarrfs.open(tmp_path / "a.zarr"), str(tmp_path / "a.zarr"))
    image = dataset.open_image("tile_0")
    document = to_json(View("a", dataset.location, "tile_0", initial_settings(image)))
    assert "system" not in document
    view = from_json(document)
    assert view.system is None
    opened, _, _, _ = open_first_image(dataset, view.image, False, SystemReference("", "gone"))
    assert opened.shown_system == SystemReference("", "world")


def test_an_image_of_a_scene_that_is_opened_alone_has_its_own_system(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    write_scene(tmp_path / "a.zarr", stitch())
    window = open_in_window(tmp_path / "a.zarr" / "tile_1")
    assert not header_of(window).isVisible()
    assert not layers_of(window).layers


def test_the_systems_of_a_single_image_can_be_chosen(
    qtbot: QtBot, open_in_window: OpenInWindow, tmp_path: Path
) -> None:
    write_scene(tmp_path / "a.zarr", {"image": (blocks((40, 48), 0), (0.5, 0.5), None)})
    group = zarrfs.open_group(tmp_path / "a.zarr", mode="r+")["image"]
    ome = dict(group.attrs["ome"])
    (item,) = ome["multiscales"]
    stage = {**item["coordinateSystems"][0], "name": "stage"}
    edge = {
        "type": "sequence",
        "input": {"name": "physical"},
        "output": {"name": "stage"},
        "transformations": [
            {"type": "scale", "scale": [2, 2]},
            {"type": "translation", "translation": [100, 200]},
        ],
    }
    item = {
        **item,
        "coordinateSystems": [*item["coordinateSystems"], stage],
        "coordinateTransformations": [edge],
    }
    group.attrs["ome"] = {**ome, "multiscales": [item]}
    window = open_in_window(tmp_path / "a.zarr" / "image")
    header = header_of(window)
    assert header.isVisible()
    assert header.systems.currentText() == "physical"
    image = window.image
    assert image is not None
    assert image.to_physical(0, 4) == 2
    session = window.session
    session.change_channel(0, limits=(3.0, 77.0))
    with qtbot.waitSignal(session.image_changed, timeout=TIMEOUT_MILLISECONDS):
        session.show_system(SystemReference("", "stage"))
    image = window.image
    assert image is not None
    assert (image.to_physical(0, 4), image.to_physical(1, 4)) == (104, 204)
    assert session.settings is not None
    assert session.settings.channels[0].limits == (3.0, 77.0)
    session.show_system(SystemReference("", "gone"))
    qtbot.waitUntil(lambda: "gone" in window.notice.text(), timeout=TIMEOUT_MILLISECONDS)
    assert header.systems.currentText() == "stage"
