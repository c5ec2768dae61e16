"""A short form of the long runs of ``endurance.py``, and the benchmark of the mount with little data."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.mount import Sizes, run
from tests.mount.endurance import make_store, random_reads, resources, server_of, soak
from tests.mount.mounted import BINDINGS, is_library_missing, mounted, needs_fuse

pytestmark = needs_fuse

CACHE_NBYTES = 4 << 20
POOL_NBYTES = 64 << 20
MARGIN_NBYTES = 64 << 20


@pytest.mark.parametrize("binding", BINDINGS)
def test_readers_get_the_right_bytes_and_the_server_does_not_grow(binding: str, tmp_path: Path) -> None:
    if is_library_missing(binding):
        pytest.skip(f"the library of {binding} is not installed")
    files = make_store(tmp_path / "store", (40, 100, 128))
    options = ("--cache-size", str(CACHE_NBYTES))
    with mounted(tmp_path / "store", tmp_path / "mnt", *options, binding=binding) as mountpoint:
        assert random_reads(mountpoint, files, 600) == []
        pid = server_of(mountpoint)
        before = resources(pid)
        result = soak(mountpoint, files, readers=8, passes=4, interval=0.2)
        assert result.wrong == []
        assert result.read_nbytes == 8 * 4 * len(files["blosc.raw"])
        after = resources(pid)
    assert (
        max(sample.nbytes for sample in result.samples)
        <= before.nbytes + CACHE_NBYTES + POOL_NBYTES + MARGIN_NBYTES
    )
    # Requests that are not finished have a chunk open.
    assert after.descriptors <= before.descriptors + 4
    assert max(sample.threads for sample in result.samples) <= 64 + 16


@pytest.mark.parametrize(
    ("task", "count", "words"),
    [
        ("zstd", 2, "cached"),
        ("pread", 2, "4 KiB"),
        ("plane", 2, "mmap_mode"),
        ("readers", 2, "2 readers"),
        ("ls -", 2, "ls -l of 30 arrays"),
        ("arrays", 4, "du -s of 30 arrays"),
    ],
)
def test_the_benchmark_of_the_mount_runs(task: str, count: int, words: str, tmp_path: Path) -> None:
    lines: list[str] = []
    sizes = Sizes(side=64, arrays=(30,), preads=4, readers=(2,))
    results = run(sizes, tmp_path, task, lines.append)["results"]
    assert len(results) == count
    assert any(words in result["task"] for result in results)
    assert all(result["value"] > 0 for result in results)
    assert all(re.fullmatch(r"\|.*\|", line) for line in lines[1:])


def test_the_benchmark_of_the_mount_names_its_tasks(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no task contains 'nothing'; the tasks are: ready, "):
        run(Sizes(arrays=(30,)), tmp_path, "nothing", str)
