"""Partial writes to chunks and shards with corrupt old data: both executors have the same outcome and bytes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.documents import LITTLE
from tests.engine.native.executors import native, python
from tests.engine.native.test_files import COMPRESSORS, chunk_files, variants

VALUES = np.random.default_rng(3).integers(0, 50, (8, 16, 12)).astype("<u2")


def outcome(path: Path, root: Path, selection: Any) -> tuple[str, bytes]:
    """Return the error of a partial write, or nothing, and the bytes that are stored afterwards."""
    try:
        array = zarrfs.open_array(root, mode="r+", cache_size=0)
        array[selection] = 7
        message = ""
    except zarrfs.ZarrError as error:
        message = f"{type(error).__name__}: {error}"
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    return message, path.read_bytes()


@pytest.mark.parametrize("compressor", COMPRESSORS)
@pytest.mark.parametrize("kind", ["chunks", "shards", "index first"])
def test_corrupt_data_have_the_same_outcome(compressor: str, kind: str, tmp_path: Path) -> None:
    rng = random.Random(f"{compressor} {kind}")
    codecs: list[Any] = [LITTLE, *COMPRESSORS[compressor]]
    if kind != "chunks":
        configuration = {
            "chunk_shape": [4, 8, 12],
            "codecs": codecs,
            "index_codecs": [LITTLE] if rng.random() < 0.5 else [LITTLE, {"name": "crc32c"}],
            "index_location": "start" if kind == "index first" else "end",
        }
        codecs = [{"name": "sharding_indexed", "configuration": configuration}]
    zarrfs.create_array(tmp_path, data=VALUES, chunks=VALUES.shape, codecs=codecs)
    (path,) = chunk_files(tmp_path)
    data = path.read_bytes()
    for changed in list(variants(data, rng))[::2]:
        selection = rng.choice((np.s_[3], np.s_[2:7, 5, 1:9:3], np.s_[:4, :8], np.s_[7:, 15:, 11:]))
        path.write_bytes(changed)
        with python():
            expected = outcome(path, tmp_path, selection)
        path.write_bytes(changed)
        with native() as record:
            assert outcome(path, tmp_path, selection) == expected
        # The native library has no encoders of gzip and zlib.
        assert record.writes == (0 if compressor in ("gzip", "numcodecs.zlib") else 1)
