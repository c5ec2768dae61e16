"""The files with the settings of images and with the windows of the last session."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from zarrfs_viewer.analysis.regions import Region
from zarrfs_viewer.analysis.shapes import Shape
from zarrfs_viewer.saved_views import image_settings
from zarrfs_viewer.saved_views.image_settings import ImageSettings
from zarrfs_viewer.saved_views.views import View
from zarrfs_viewer.saved_views.window_state import (
    AddedLabels,
    LayerView,
    WindowState,
    load_windows,
    save_windows,
)
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings, LabelsSettings, Viewport

INTENT = DisplaySettings((1, 2), (3.0, 4.0, 5.0), (ChannelSettings(limits=(1, 2), colormap="viridis"),))
VIEW = View("", "/data/a.zarr", "img", INTENT, Viewport(640, 480, (1.0, 2.0), 3.0))
LAYERS = (LayerView(VIEW, "difference", 0.25), LayerView(VIEW, "additive", 1.0, visible=False))
LABELS = (AddedLabels("/data/a.zarr", "cells", LabelsSettings(1, False, 0.25, 2, 7, 8)),)
ADDED = LAYERS, True, LABELS


def test_settings_of_two_windows_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "images.json"
    first, second = ImageSettings(file), ImageSettings(file)
    first.load()
    second.load()
    other = replace(VIEW, image="other")
    first.put(VIEW)
    second.put(other)
    first.save()
    second.save()
    third = ImageSettings(file)
    third.load()
    assert third.get("/data/a.zarr", "img") == VIEW
    assert third.get("/data/a.zarr/img", "") == VIEW
    assert third.get("/data/a.zarr", "other") == other
    assert third.get("/data/a.zarr", "none") is None
    assert third.get("file:///data/a.zarr", "img") == VIEW
    assert [entry.name for entry in tmp_path.iterdir()] == ["images.json"]


def test_only_the_last_images_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_settings, "MAX_IMAGES", 3)
    settings = ImageSettings(tmp_path / "images.json")
    for name in ("a", "b", "c", "a", "d"):
        settings.put(replace(VIEW, image=name))
        settings.save()
    kept = ImageSettings(tmp_path / "images.json")
    kept.load()
    assert {name for name in "abcd" if kept.get("/data/a.zarr", name)} == {"a", "c", "d"}


@pytest.mark.parametrize(
    "text", ["", "[", "[]", '{"images": 7}', '{"images": [7, {"format": 9}]}', "[" * 100_000]
)
def test_a_damaged_file_is_ignored_and_replaced(tmp_path: Path, text: str) -> None:
    file = tmp_path / "images.json"
    file.write_text(text)
    settings = ImageSettings(file)
    settings.load()
    assert settings.get("/data/a.zarr", "img") is None
    assert load_windows(file) == ()
    settings.put(VIEW)
    settings.save()
    assert json.loads(file.read_text())["images"]


def test_a_pipe_instead_of_a_file_does_not_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "images.json")
    settings = ImageSettings(tmp_path / "images.json")
    settings.load()
    assert load_windows(tmp_path / "images.json") == ()


REGIONS = (
    (
        (("y", 40), ("x", 60)),
        (
            Region("cell", Shape("polygon", ((1.0, 2.0), (3.5, 4.0), (5.0, 1.0)))),
            Region("spot", Shape("point", ((7.0, 8.0),))),
        ),
    ),
)


@pytest.mark.parametrize("points", [[1.0, 2.0], [1.0, 2.0, 3.0], "no", [None]])
def test_damaged_regions_of_a_window_are_ignored_with_it(tmp_path: Path, points: object) -> None:
    file = tmp_path / "session.json"
    save_windows(file, [WindowState(locations=("/data/a.zarr",), regions=REGIONS)])
    document = json.loads(file.read_text())
    document["windows"][0]["regions"][0]["regions"][0]["points"] = points
    file.write_text(json.dumps(document))
    assert load_windows(file) == ()


def test_windows_are_saved_and_loaded(tmp_path: Path) -> None:
    windows = (
        WindowState(
            "00ff",
            ("/data/a.zarr", "s3://b/c.zarr"),
            "sub",
            VIEW,
            2,
            True,
            REGIONS,
            "01",
            LAYERS,
            True,
            LABELS,
        ),
        WindowState(locations=("/data/b.zarr",)),
    )
    file = tmp_path / "folder" / "session.json"
    save_windows(file, windows)
    assert load_windows(file) == windows
    document = json.loads(file.read_text())
    document["windows"][0]["layers"][0]["opacity"] = 7
    file.write_text(json.dumps(document))
    limited = replace(LAYERS[0], opacity=1.0), LAYERS[1]
    assert load_windows(file) == (replace(windows[0], layers=limited), windows[1])
    document["windows"][0]["layers"][0]["arrangement"] = "above"
    file.write_text(json.dumps(document))
    assert load_windows(file) == windows[1:]
    document["windows"][0]["layers"] = {}
    file.write_text(json.dumps(document))
    assert load_windows(file) == windows[1:]
    document["windows"][0]["layers"] = []
    document["windows"][0]["locations"] = [7]
    file.write_text(json.dumps(document))
    assert load_windows(file) == windows[1:]


def test_the_second_image_of_an_older_version_is_a_layer(tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    save_windows(file, [WindowState(locations=("/data/a.zarr",), layers=LAYERS[:1])])
    document = json.loads(file.read_text())
    (layer,) = document["windows"][0].pop("layers")
    document["windows"][0]["second"] = {key: layer[key] for key in ("view", "arrangement", "opacity")}
    file.write_text(json.dumps(document))
    assert load_windows(file)[0].layers == LAYERS[:1]
