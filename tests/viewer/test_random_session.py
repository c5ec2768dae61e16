"""A short random session. ``python -m tests.viewer.random_session`` runs a long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.viewer.random_session import RandomSession, write_examples

MAX_ACTIONS = 60


@pytest.mark.parametrize("seed", [1, 2])
def test_a_random_session_has_no_faults(seed: int, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    session = RandomSession(write_examples(data), seed, tmp_path, max_stall=None)
    session.run(60, MAX_ACTIONS)
    assert sum(session.counts.values()) >= MAX_ACTIONS
