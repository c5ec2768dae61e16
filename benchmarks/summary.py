"""A summary of the results that ``python -m benchmarks --json FILE`` or ``python -m benchmarks.writing`` has written.

``python -m benchmarks.summary FILE [TEXT]`` prints a Markdown table of the data sets whose name contains TEXT. It
contains the milliseconds per task. For planes they are the mean of the three axes.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any


def mean_milliseconds(results: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
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


def markdown(document: dict[str, Any], name_part: str = "") -> str:
    """Return the table. The fastest contender of each row is bold."""
    table = mean_milliseconds([result for result in document["results"] if name_part in result["data"]])
    names = list(document["results"][0]["seconds"])
    lines = [f"| ms | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
    for data, kinds in table.items():
        for kind, cells in kinds.items():
            fastest = min(cells.values())
            texts = (
                f"**{_format_milliseconds(cells[name])}**"
                if cells[name] == fastest
                else _format_milliseconds(cells[name])
                for name in names
            )
            lines.append(f"| {data}: {kind} | {' | '.join(texts)} |")
    return "\n".join(lines)


def _format_milliseconds(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 99.5 else f"{milliseconds:.2g}"


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")), *sys.argv[2:3]))
