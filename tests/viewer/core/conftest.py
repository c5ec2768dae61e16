"""Fixtures for images without windows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from zarrfs_viewer.streaming.streamer import TileStreamer


@pytest.fixture
def streamer() -> Iterator[TileStreamer]:
    """A streamer whose threads end after the test."""
    streamer = TileStreamer()
    yield streamer
    assert streamer.close()
