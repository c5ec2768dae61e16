"""Edits of attributes with undo, comparison of metadata, and settings after an edit. Without a window."""

from __future__ import annotations

from pathlib import Path

import pytest
from zarrfs_viewer.analysis.metadata_comparison import ComparedValue, compare_nodes, compare_values
from zarrfs_viewer.state.attribute_edits import MAX_STEPS, AttributeEdits
from zarrfs_viewer.state.view_state import ChannelSettings, DisplaySettings, with_edited_channels

import zarrfs
from zarrfs.errors import StoreError


def test_edits_are_undone_and_redone_also_after_saving() -> None:
    edits = AttributeEdits({"a": 1})
    assert not edits.change({"a": 1})
    assert edits.change({"a": 2})
    assert edits.change({"a": 3})
    assert edits.is_changed
    edits.set_stored(edits.current)
    assert not edits.is_changed
    edits.undo()
    edits.undo()
    edits.undo()
    assert edits.current == {"a": 1}
    assert edits.is_changed
    assert not edits.can_undo
    edits.redo()
    assert edits.current == {"a": 2}
    assert edits.can_redo
    edits.change({"b": 1})
    assert not edits.can_redo
    assert edits.stored == {"a": 3}


def test_old_steps_are_forgotten() -> None:
    edits = AttributeEdits({})
    for number in range(MAX_STEPS + 5):
        edits.change({"n": number})
    while edits.can_undo:
        edits.undo()
    assert edits.current == {"n": 4}


def test_edited_metadata_replace_only_what_they_changed() -> None:
    before = (
        ChannelSettings(label="a", colormap="gray"),
        ChannelSettings(index=1, label="b", colormap="#FF0000"),
    )
    chosen = (
        ChannelSettings(label="a", colormap="viridis", limits=(1, 2)),
        ChannelSettings(index=1, label="b", colormap="#FF0000", visible=False),
    )
    after = (
        ChannelSettings(label="DAPI", colormap="gray"),
        ChannelSettings(index=1, label="b", colormap="#00FF00"),
    )
    settings = DisplaySettings(displayed=(0, 1), position=(0, 0), channels=chosen)
    assert with_edited_channels(settings, before, after).channels == (
        ChannelSettings(label="DAPI", colormap="viridis", limits=(1, 2)),
        ChannelSettings(index=1, label="b", colormap="#00FF00", visible=False),
    )
    assert with_edited_channels(settings, before, after[:1]).channels == after[:1]


def test_two_nodes_are_compared(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr")
    deep = {"same": [1, 2], "list": [{"k": 1}, {"k": 2}], "left": None}
    a = group.create_array("a", shape=(4, 4), dtype="u1", chunks=(2, 2), attributes=deep)
    other = {"same": [1, 2], "list": [{"k": 1}, {"k": 3}], "right": "text"}
    b = group.create_array("b", shape=(4, 4), dtype="u2", chunks=(2, 2), attributes=other)
    values = compare_nodes(a, b)
    different = {value.name: (value.left, value.right) for value in values if value.is_different}
    assert different.pop("data_type") == ("uint8", "uint16")
    assert different.pop("/list/1/k") == ("2", "3")
    assert different.pop("/left") == ("null", None)
    assert different.pop("/right") == (None, "text")
    assert ComparedValue("/same", "[1, 2]", "[1, 2]") in values
    assert ComparedValue("shape", "[4, 4]", "[4, 4]") in values
    assert not any(value.is_different for value in compare_nodes(a, a))
    assert compare_values({}, {}) == []


def test_attributes_are_replaced_only_if_nobody_changed_them(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr", attributes={"a": 1})
    mine = dict(group.attrs)
    group.attrs.put_if_unchanged(mine, {"b": 2})
    assert dict(zarrfs.open(tmp_path / "g.zarr").attrs) == {"b": 2}
    with pytest.raises(StoreError, match="another writer"):
        group.attrs.put_if_unchanged(mine, {"c": 3})
    assert dict(zarrfs.open(tmp_path / "g.zarr").attrs) == {"b": 2}
