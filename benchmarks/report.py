"""The tables of docs/measurements.md and the chart, from the results of ``python -m benchmarks --json``.

``python -m benchmarks.report docs/performance.json`` replaces the tables in ``docs/measurements.md``, between
comments like ``<!-- reads -->`` and ``<!-- end of reads -->``, and draws ``performance.svg``.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.chart import chart
from benchmarks.contenders import LIMIT

__all__ = ["machine_text", "peer_ratio", "replace_tables", "tables"]

LIKE_FOR_LIKE = "zarrfs, no cache"

Result = dict[str, Any]


def median(result: Result, name: str, quantity: str = "median") -> float:
    """Return the median time of a contender in milliseconds, or with "cpu" that of its processor time."""
    return float(result["contenders"][name][quantity])


def peer_ratio(result: Result, name: str, quantity: str = "median") -> float:
    """Return the time of the fastest other implementation divided by that of a contender. Above 1 it is faster."""
    peers = [n for n in result["contenders"] if not n.startswith("zarrfs") and n != LIMIT]
    return min(median(result, peer, quantity) for peer in peers) / median(result, name, quantity)


def tables(document: dict[str, Any]) -> dict[str, str]:
    """Return the Markdown of each table for which there are results."""
    result = {"machine": machine_text(document)}
    if "reads" in document:
        result["ratios"] = _ratio_table(document["reads"])
        if all("cpu" in own for read in document["reads"] for own in read["contenders"].values()):
            result["processor time"] = _ratio_table(document["reads"], "cpu")
        result["reads"] = _read_table(document["reads"])
        result["memory"] = _memory_table(document["reads"])
    if "writes" in document:
        result["writes"] = _write_table(document["writes"])
    if "counts" in document:
        result["counts"] = _count_table(document["counts"])
    return result


def machine_text(document: dict[str, Any]) -> str:
    """Return a sentence about the machine, the versions, and other load."""
    machine = document["machine"]
    packages = ", ".join(
        f"{name} {number}" for name, number in machine["versions"].items() if name != "zarrfs"
    )
    load = ", ".join(f"{value:.1f}" for value in document["load"])
    return (
        f"Measured on {machine['cores']} cores of {machine['processor']} with Python {machine['python']}, {packages}. "
        f"The load of the machine before and after the run was {load}."
    )


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 99.5 else f"{value:.2g}"


def _ratio_table(results: list[Result], quantity: str = "median") -> str:
    """One row per data set, one column per kind of read: the ratio to the fastest peer, and to the limit."""
    tasks = ["full read", *(f"plane along {axis}" for axis in "zyx")]
    by_data: dict[str, dict[str, Result]] = {}
    for result in results:
        by_data.setdefault(result["data"], {})[result["task"]] = result
    rows = []
    for data, by_task in by_data.items():
        cells = []
        for task in tasks:
            if task not in by_task:
                cells.append("")
                continue
            result = by_task[task]
            cell = f"{peer_ratio(result, LIKE_FOR_LIKE, quantity):.1f}"
            if LIMIT in result["contenders"]:
                own, limit = (median(result, name, quantity) for name in (LIKE_FOR_LIKE, LIMIT))
                cell += f" ({own / limit:.1f})"
            cells.append(cell)
        rows.append([data, *cells])
    return _table(["", *tasks], rows)


def _read_table(results: list[Result]) -> str:
    names = list(results[0]["contenders"])
    rows = []
    for result in results:
        fastest = min(median(result, name) for name in result["contenders"] if name != LIMIT)
        cells = []
        for name in names:
            summary = result["contenders"].get(name)
            if summary is None:
                cells.append("")
                continue
            text = _milliseconds(summary["median"])
            cells.append(f"**{text}**" if summary["median"] == fastest else text)
        own = result["contenders"][LIKE_FOR_LIKE]
        spread = f"{_milliseconds(own['low'])} to {_milliseconds(own['high'])}"
        rows.append([f"{result['data']}: {result['task']}", *cells, spread])
    return _table(["ms", *names, "quartiles, no cache"], rows)


def _memory_table(results: list[Result]) -> str:
    full = [result for result in results if result["task"] == "full read"]
    names = [name for name in full[0]["contenders"] if name != LIMIT]
    rows = [
        [result["data"], *(f"{result['contenders'][name]['peak']:.0f}" for name in names)] for result in full
    ]
    return _table(["MiB", *names], rows)


def _write_table(results: list[Result]) -> str:
    names = list(results[0]["contenders"])
    rows = []
    for result in results:
        fastest = min(median(result, name) for name in names)
        texts = {name: _milliseconds(median(result, name)) for name in names}
        cells = [f"**{text}**" if median(result, name) == fastest else text for name, text in texts.items()]
        rows.append([f"{result['data']}: {result['task']}", *cells, f"{peer_ratio(result, 'zarrfs'):.1f}"])
    return _table(["ms", *names, "fastest peer / zarrfs"], rows)


def _count_table(results: list[dict[str, Any]]) -> str:
    columns = [
        column for column in ("system calls", "decoded chunks", "instructions") if column in results[0]
    ]
    rows = [[result["read"], *(f"{result[column]:,.0f}" for column in columns)] for result in results]
    return _table(["one read", *columns], rows)


def replace_tables(page: str, markdown: dict[str, str]) -> str:
    """Return ``page`` with each table between its two comments. ``markdown`` is the text of each table by name.

    Raises SystemExit if the comments of a table are missing.
    """
    for name, text in markdown.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(page):
            raise SystemExit(
                f"the page has no comments {begin} and {end}: insert them where the table {name!r} belongs"
            )
        before, after = pattern.split(page, maxsplit=1)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


def main(arguments: list[str]) -> None:
    if len(arguments) != 1:
        raise SystemExit("usage: python -m benchmarks.report docs/performance.json")
    source = Path(arguments[0])
    document = json.loads(source.read_text(encoding="utf-8"))
    page = source.with_name("measurements.md")
    page.write_text(replace_tables(page.read_text(encoding="utf-8"), tables(document)), encoding="utf-8")
    if "reads" in document:
        source.with_suffix(".svg").write_text(chart(document["reads"]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
