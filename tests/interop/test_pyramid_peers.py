"""The levels of ``zarrfs pyramid`` equal those of ngff-zarr and ome-zarr-py where the method is the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.pyramids import CONTENDERS, Contender, differences, level_arrays, run_contender, write_source
from zarrfs.tools import build_pyramid

LEVELS = 3
SHAPE = (48, 80, 64)
PEERS = [item for item in CONTENDERS if item.module != "zarrfs" and item.name != "ome-zarr, NEAREST"]
"""The nearest element of ome-zarr is another one of the window."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("peers") / "source.zarr"
    write_source(path, SHAPE)
    return path


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_levels_are_those_of_the_peer(peer: Contender, source: Path, tmp_path: Path) -> None:
    options = {"factors": [2, 2, 2], "levels": LEVELS, "compressors": None}
    build_pyramid(source, tmp_path / "ours", axes="zyx", method=peer.method, **options)
    run_contender(peer, source, tmp_path / "theirs", LEVELS)
    if peer.module == "ngff_zarr":
        assert differences(tmp_path / "ours", tmp_path / "theirs") == "equal"
    else:
        # ome-zarr rounds means down at each level.
        ours_levels, their_levels = (level_arrays(tmp_path / name) for name in ("ours", "theirs"))
        assert [level.shape for level in ours_levels] == [level.shape for level in their_levels]
        for index, (a, b) in enumerate(zip(ours_levels, their_levels, strict=True)):
            assert np.abs(a.astype("i8") - b.astype("i8")).max() <= index
