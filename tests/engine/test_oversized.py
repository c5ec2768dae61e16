"""Stored values that are larger than any encoded chunk are refused without being read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from zarrfs.engine.stores.base import ByteRange, ValueTooLargeError
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.prefix import PrefixStore
from zarrfs.engine.stores.wrappers.retrying import RetryStore
from zarrfs.engine.stores.zip.store import ZipStore
from zarrfs.errors import ChunkDecodeError

LAYOUTS: dict[str, dict[str, Any]] = {
    "plain": {"compressors": None},
    "gzip": {"compressors": {"name": "gzip", "configuration": {"level": 1}}},
    "blosc": {},
    "zstd": {"compressors": {"name": "zstd", "configuration": {"level": 1, "checksum": False}}},
    "shards": {"chunks": (64, 64), "shards": (512, 512)},
    "v2": {"zarr_format": 2},
    "n5": {"zarr_format": "n5"},
}

READER = """
import json, resource, sys
import numpy as np, zarrfs
array = zarrfs.open_array(sys.argv[1], mode="r+")
array[512:, 512:]  # what is loaded on first use
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
messages = []
def part():
    array[3, 5] = 1
for work in (lambda: array[:512, :512], lambda: array[...], lambda: array[3:9, 5], part):
    try:
        work()
        messages.append("")
    except zarrfs.ChunkDecodeError as error:
        messages.append(str(error))
print(json.dumps([messages, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))
"""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_chunk_file_of_ten_gibibytes_is_refused_without_being_read(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    options: dict[str, Any] = {"chunks": (512, 512), **LAYOUTS[layout]}
    data = np.random.default_rng(0).integers(0, 1 << 32, (1024, 1024), "u4")
    zarrfs.create_array(path, data=data, **options)
    first = next(path / name for name in ("c/0/0", "0.0", "0/0") if (path / name).is_file())
    os.truncate(first, 10 << 30)
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=True
    )
    messages, kibibytes = json.loads(done.stdout)
    whole, everything, _, change = messages
    expected = "is broken: " if layout == "shards" else "the stored value has 10737418240 bytes"
    for text in (whole, everything):
        assert expected in text.replace(",", "")
    assert "is broken: " in change
    assert kibibytes < 48 << 10
    # The other chunks can still be read.
    assert (zarrfs.open_array(path)[512:] == data[512:]).all()


def test_the_size_limit_allows_all_valid_encodings() -> None:
    # A cast to a dtype of eight times the size.
    wide = zarrfs.create_array(
        {},
        data=np.ones(9 << 20, "u1"),
        chunks=(9 << 20,),
        codecs=[
            {"name": "cast_value", "configuration": {"data_type": "float64"}},
            {"name": "bytes", "configuration": {"endian": "little"}},
        ],
    )
    assert wide.nbytes_stored() >= 8 * wide.nbytes
    assert (wide[...] == 1).all()


def test_variable_length_elements_have_no_size_limit() -> None:
    text = "x" * (70 << 20)
    array = zarrfs.create_array({}, data=np.array([text], object), dtype="string", compressors=None)
    assert array[0] == text


def test_an_oversized_inner_chunk_in_the_index_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    zarrfs.create_array(
        path, data=np.ones((64, 64), "u4"), chunks=(32, 32), shards=(64, 64), compressors=None
    )
    shard = path / "c/0/0"
    values = shard.read_bytes()
    index = np.frombuffer(values[-68:-4], "<u8").reshape(4, 2).copy()
    index[0] = 0, 8 << 30
    store = LocalStore(path)
    document = json.loads((path / "zarr.json").read_bytes())
    document["codecs"][0]["configuration"]["index_codecs"] = [
        {"name": "bytes", "configuration": {"endian": "little"}}
    ]
    store.set("zarr.json", json.dumps(document).encode())
    with open(shard, "r+b") as file:
        file.truncate(9 << 30)
        file.seek((9 << 30) - 64)
        file.write(index.tobytes())
    with pytest.raises(ChunkDecodeError, match="the index gives 8,589,934,592 bytes, expected at most"):
        zarrfs.open_array(path, cache_size=0)[:5, :5]
    assert (zarrfs.open_array(path)[32:, 32:] == 1).all()


@pytest.mark.parametrize("kind", ["local", "zip", "memory", "prefixed", "retrying"])
def test_stores_refuse_values_above_the_given_size(kind: str, tmp_path: Path) -> None:
    inner = MemoryStore()
    store = {
        "local": lambda: LocalStore(tmp_path / "s"),
        "zip": lambda: ZipStore(tmp_path / "s.zip", "w"),
        "memory": lambda: inner,
        "prefixed": lambda: PrefixStore(inner, "p"),
        "retrying": lambda: RetryStore(inner),
    }[kind]()
    store.set("a", b"12345")
    for limit in (None, 5, 6):
        assert bytes(store.get_within("a", limit) or b"") == b"12345"
    with pytest.raises(ValueTooLargeError, match="the stored value has 5 bytes"):
        store.get_within("a", 4)
    assert store.get_within("b", 4) is None
    assert store.get_ranges("a", [ByteRange(0, 2)]) == [b"12"]
    store.close()
