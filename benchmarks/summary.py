"""The short table of the README, out of what ``python -m benchmarks --json FILE``, or ``benchmarks.writing``, wrote.

``python -m benchmarks.summary FILE [TEXT]`` prints Markdown: for each data set (with TEXT in its name) the milliseconds
to read or write everything, and those of a plane (the mean of the three axes).
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def rows(results: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return data set -> kind of task -> contender -> milliseconds."""
    table: dict[str, dict[str, dict[str, list[float]]]] = {}
    for result in results:
        kind = result["task"].partition(" along")[0]
        cells = table.setdefault(result["data"], {}).setdefault(kind, defaultdict(list))
        for name, timing in result["seconds"].items():
            cells[name].append(1000 * statistics.median(timing["seconds"]))
    return {
        data: {
            kind: {name: statistics.mean(ms) for name, ms in cells.items()} for kind, cells in kinds.items()
        }
        for data, kinds in table.items()
    }


def markdown(document: dict[str, Any], text: str = "") -> str:
    """Return the table, the fastest of each row in bold."""
    table = rows([result for result in document["results"] if text in result["data"]])
    names = list(document["results"][0]["seconds"])
    lines = [f"| ms | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for data, kinds in table.items():
        for kind, cells in kinds.items():
            best = min(cells.values())
            shown = (
                f"**{_number(cells[name])}**" if cells[name] == best else _number(cells[name])
                for name in names
            )
            lines.append(f"| {data}: {kind} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _number(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 100 else f"{milliseconds:.2g}"


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), *sys.argv[2:3]))
