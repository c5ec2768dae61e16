"""Undo and redo of settings."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from zarrfs_viewer.state.history import MAX_STEPS, History
from zarrfs_viewer.state.view_state import (
    ChannelSettings,
    DisplaySettings,
    with_channel,
    with_level_lock,
    with_position,
)

START = DisplaySettings((1, 2), (0.0, 0.0, 0.0), (ChannelSettings(), ChannelSettings(index=1)))


def new_history() -> History:
    history = History()
    history.clear(START)
    return history


def test_steps_are_undone_and_redone_in_order() -> None:
    history = new_history()
    first = with_channel(START, 0, gamma=2.0)
    second = with_level_lock(first, 1)
    history.record(first, 0.0)
    history.record(second, 0.1)
    assert history.undo() == first
    assert history.undo() == START
    assert history.undo() is None
    assert history.redo() == first
    history.record(with_channel(first, 1, visible=False), 5.0)
    assert history.redo() is None
    assert history.undo() == first


def test_regions_are_undone_with_the_settings() -> None:
    history = new_history()
    zoomed = with_level_lock(START, 1)
    history.record(START, 0.0, ("a",))
    history.record(START, 0.1, ("a", "b"))
    history.record(zoomed, 0.2, ("a", "b"))
    assert (history.undo(), history.others) == (START, ("a", "b"))
    assert (history.undo(), history.others) == (START, ("a",))
    assert (history.undo(), history.others) == (START, ())
    assert history.undo() is None
    assert (history.redo(), history.others) == (START, ("a",))
    history.record(START, 0.3, ("a", "c"))
    assert history.redo() is None
    assert (history.undo(), history.others) == (START, ("a",))


def test_a_drag_is_one_step_and_later_changes_of_the_same_setting_are_another() -> None:
    history = new_history()
    settings = START
    for number in range(10):
        settings = with_channel(START, 0, gamma=1.0 + number)
        history.record(settings, 0.1 * number)
    later = with_channel(START, 0, gamma=20.0)
    history.record(later, 10.0)
    assert history.undo() == settings
    assert history.undo() == START


def test_slices_are_one_step_however_long_the_user_looks_at_them() -> None:
    history = new_history()
    for z in range(1, 6):
        history.record(with_position(START, 0, z), 100.0 * z)
    assert history.undo() == START


def test_limits_of_auto_contrast_are_no_step() -> None:
    history = new_history()
    automatic = with_channel(START, 0, limits=(1.0, 9.0))
    history.record(automatic, 0.0)
    assert not history.can_undo
    changed = with_channel(automatic, 0, limits=(2.0, 9.0))
    history.record(changed, 1.0)
    assert history.undo() == automatic


def test_the_number_of_steps_is_bounded() -> None:
    history = new_history()
    for number in range(MAX_STEPS + 50):
        history.record(with_level_lock(START, number), 10.0 * number)
    count = 0
    while history.undo() is not None:
        count += 1
    assert count == MAX_STEPS


@given(st.lists(st.tuples(st.sampled_from(["gamma", "level", "undo", "redo"]), st.integers(1, 4))))
def test_undo_and_redo_are_inverse(steps: list[tuple[str, int]]) -> None:
    history, current, time = new_history(), START, 0.0
    for kind, value in steps:
        time += 10.0
        if kind == "gamma":
            current = with_channel(current, 0, gamma=float(value))
            history.record(current, time)
        elif kind == "level":
            current = with_level_lock(current, value)
            history.record(current, time)
        else:
            before = current
            moved = history.undo() if kind == "undo" else history.redo()
            if moved is None:
                continue
            current = moved
            history.record(current, time)  # the session reports the change
            assert (history.redo() if kind == "undo" else history.undo()) == before
            back = history.undo() if kind == "undo" else history.redo()
            assert back == current
