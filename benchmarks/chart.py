"""The bar chart of README.md and docs/performance.md.

``python -m benchmarks.chart RESULTS.json CHART.svg`` draws selected cases. RESULTS.json is the output of
``python -m benchmarks --json``, or docs/performance.json, which contains only the medians.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from benchmarks.summary import mean_milliseconds

__all__ = ["chart", "medians"]

CASES = (
    ("Blosc-LZ4, chunks of 64", "full read"),
    ("Blosc-LZ4, chunks of 64", "plane"),
    ("zstd, chunks of 64", "full read"),
    ("zstd, chunks of 64", "plane"),
    ("gzip, chunks of 64", "full read"),
    ("gzip, chunks of 64", "plane"),
)

COLORS = {
    "zarrfs, no cache": "#0072b2",
    "TensorStore": "#e69f00",
    "zarrs": "#009e73",
    "zarr-python": "#999999",
}
"""Contenders in drawing order; the palette of Okabe and Ito suits color vision deficiencies."""

WIDTH, LABEL_WIDTH, BAR_WIDTH = 760, 210, 440
BAR_HEIGHT, CASE_GAP, TOP = 11, 14, 46

Medians = dict[tuple[str, str], dict[str, float]]


def medians(document: dict[str, Any]) -> Medians:
    """Return (data set, task) -> contender -> milliseconds."""
    results = document["results"]
    if "milliseconds" in results[0]:
        return {(result["data"], result["task"]): result["milliseconds"] for result in results}
    table = mean_milliseconds(results)
    names = {"everything": "full read"}
    return {
        (data, names.get(task, task)): cells for data, tasks in table.items() for task, cells in tasks.items()
    }


def chart(medians_by_case: Medians) -> str:
    """Return an SVG document: one group of bars per case, bar lengths relative to the slowest contender of the case."""
    cases = [case for case in CASES if case in medians_by_case]
    height = TOP + len(cases) * (len(COLORS) * BAR_HEIGHT + CASE_GAP)
    elements = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text x="8" y="16" font-size="13">Time to read, in milliseconds (shorter is better; each group has its own '
        "scale)</text>",
    ]
    x = 8
    for name, color in COLORS.items():
        elements.append(f'<rect x="{x}" y="25" width="10" height="10" fill="{color}"/>')
        elements.append(f'<text x="{x + 14}" y="34">{escape(name)}</text>')
        x += 30 + 7 * len(name)
    y = TOP
    for data, task in cases:
        cells = medians_by_case[data, task]
        longest = max(cells.get(name, 0.0) for name in COLORS)
        middle = y + len(COLORS) * BAR_HEIGHT / 2 + 4
        elements.append(f'<text x="8" y="{middle:.0f}">{escape(f"{data}: {task}")}</text>')
        for name, color in COLORS.items():
            if name in cells:
                length = max(1.0, BAR_WIDTH * cells[name] / longest)
                elements.append(
                    f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT - 2}" fill="{color}"/>'
                )
                elements.append(
                    f'<text x="{LABEL_WIDTH + length + 4:.1f}" y="{y + 9}" font-size="10">{cells[name]:g}</text>'
                )
            y += BAR_HEIGHT
        y += CASE_GAP
    return "\n".join([*elements, "</svg>", ""])


def main(arguments: list[str]) -> None:
    if len(arguments) != 2:
        raise SystemExit("usage: python -m benchmarks.chart RESULTS.json CHART.svg")
    source, target = map(Path, arguments)
    target.write_text(chart(medians(json.loads(source.read_text(encoding="utf-8")))), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
