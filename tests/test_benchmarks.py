"""The tables and the chart of docs/measurements.md and docs/performance.md, made from results of the benchmarks."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import zarrfs
from benchmarks import commands, remote
from benchmarks.chart import CASES, chart
from benchmarks.contenders import CONTENDERS, LIMIT, selections
from benchmarks.limit import LimitReader
from benchmarks.plan import data_sets, reads
from benchmarks.report import peer_ratio, replace_tables, tables
from zarrfs.engine.native.library import native_library

PAGE = Path(__file__).resolve().parent.parent / "docs" / "measurements.md"


def summary(median: float) -> dict[str, float]:
    return {"median": median, "low": median, "high": median, "cpu": 2 * median, "rounds": 3, "peak": 1.5}


def results() -> dict[str, Any]:
    """Return results in which each contender takes 10 ms longer than the previous one."""

    def timings() -> dict[str, dict[str, float]]:
        return {name: summary(10.0 * (i + 1)) for i, name in enumerate(CONTENDERS)}

    return {
        "machine": {"cores": 2, "processor": "CPU", "python": "3.11", "versions": {"zarr": "3"}},
        "load": [0.0, 0.5],
        "reads": [
            {"data": data_set.name, "task": read.name, "contenders": timings()}
            for data_set in data_sets()
            for read in reads(data_set)
        ],
        "writes": [{"data": "none", "task": "everything", "contenders": timings()}],
        "counts": [{"read": "one voxel", "decoded chunks": 1, "system calls": 8}],
    }


def test_the_page_has_a_place_for_each_table() -> None:
    found = tables(results())
    page = replace_tables(PAGE.read_text(encoding="utf-8"), found)
    assert all(text in page for text in found.values())
    assert replace_tables(page, found) == page
    assert set(re.findall(r"<!-- end of (.*) -->", page)) == set(found)


def test_a_missing_place_is_named() -> None:
    with pytest.raises(SystemExit, match="'reads'"):
        replace_tables("", {"reads": "table"})


def test_ratios_compare_with_the_fastest_peer_and_not_with_the_limit() -> None:
    contenders = {
        "zarrfs": summary(4),
        "zarrfs, no cache": summary(2),
        "TensorStore": summary(6),
        LIMIT: summary(1),
    }
    contenders["TensorStore"]["cpu"] = 5.0
    assert peer_ratio({"contenders": contenders}, "zarrfs, no cache") == 3.0
    assert peer_ratio({"contenders": contenders}, "zarrfs, no cache", "cpu") == 1.25


def test_results_without_processor_times_have_no_table_of_them() -> None:
    old = results()
    del old["reads"][0]["contenders"]["TensorStore"]["cpu"]
    assert set(tables(results())) - set(tables(old)) == {"processor time"}


def test_the_chart_shows_cases_of_the_benchmark() -> None:
    measured = {(result["data"], result["task"]) for result in results()["reads"]}
    assert set(CASES) <= measured
    text = "".join(ElementTree.fromstring(chart(results()["reads"])).itertext())
    assert all(f"{data}: {task}" in text for data, task in CASES)


@pytest.mark.parametrize("shards", [None, (20, 20, 20)])
def test_the_limit_decodes_the_chunks_of_a_selection(shards: Any, tmp_path: Path) -> None:
    if native_library() is None:
        pytest.skip("the native library is not built")
    values = np.arange(40**3, dtype=np.uint16).reshape(40, 40, 40)
    zarrfs.create_array(tmp_path / "a", data=values, chunks=(10, 10, 10), shards=shards, compressors="zstd")
    reader = LimitReader(str(tmp_path / "a"))
    for kind, axis in (("full read", None), ("plane", 1)):
        for selection in selections(kind, axis, 40, number=1):
            reader.load(selection)
            assert reader.read(selection).shape == values[selection].shape
    # The whole volume, in the order of the chunks.
    whole = reader.read((slice(None),) * 3)
    assert np.array_equal(np.sort(whole, axis=None), np.sort(values, axis=None))


def test_remote_reads_are_compared_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PAGE.parent.parent)  # The processes of the contenders import the package of benchmarks.
    results = remote.measure(latency=0.001, rounds=1)
    requests = {(r["task"], r["contender"]): r["requests"] for r in results}
    assert set(requests) == {(task, name) for task in remote.TASKS for name in remote.CONTENDERS}
    assert requests["open", "zarrfs"] == 1
    assert requests["all 64 chunks", "zarrfs"] == 64
    assert (
        requests["plane of a shard of 64 chunks", "zarrfs"] == 2
    )  # The index, and the adjacent inner chunks.
    assert requests["one voxel of a shard", "zarrfs"] == 2
    assert remote.table(results, 0.001).count("\n") == 1 + len(remote.TASKS)


def test_the_commands_of_the_benchmark_succeed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "GROUPS", 2)
    assert commands.make_hierarchy(tmp_path / "a") == 1 + 2 * (1 + commands.ARRAYS_PER_GROUP)
    commands.make_hierarchy(tmp_path / "b")
    commands.consolidate(tmp_path / "b")
    for command in commands.commands(tmp_path / "a", tmp_path / "b").values():
        assert commands.run(command) > 0
    with pytest.raises(SystemExit, match="exit code 2"):
        commands.run([sys.executable, "-m", "zarrfs", "no-such-command"])
