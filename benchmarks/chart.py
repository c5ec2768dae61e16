"""The bar chart of README.md and docs/performance.md. ``python -m benchmarks.report`` draws it."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

from benchmarks.contenders import LIMIT

__all__ = ["chart"]

CASES = (
    ("Blosc-LZ4, chunks of 64", "full read"),
    ("Blosc-LZ4, chunks of 64", "plane along z"),
    ("Blosc-LZ4, chunks of 64", "plane along x"),
    ("zstd, chunks of 64", "full read"),
    ("zstd, chunks of 64", "plane along z"),
    ("gzip, chunks of 64", "full read"),
    ("Blosc-LZ4, chunks of 64 in shards of 256", "full read"),
    ("Blosc-LZ4, chunks of 64 in shards of 256", "plane along z"),
    ("Blosc-LZ4, chunks of 10", "full read"),
)

COLORS = {
    "zarrfs, no cache": "#0072b2",
    "TensorStore": "#e69f00",
    "zarrs": "#009e73",
    "zarr-python": "#999999",
}
"""Contenders in drawing order; the palette of Okabe and Ito suits colour vision deficiencies."""

WIDTH, LABEL_WIDTH, BAR_WIDTH = 800, 330, 400
BAR_HEIGHT, CASE_GAP, TOP = 11, 14, 46


def chart(results: list[dict[str, Any]]) -> str:
    """Return an SVG document: one group of bars per case, bar lengths relative to the slowest contender of the case. A
    vertical line is the limit.
    """
    found = {(result["data"], result["task"]): result["contenders"] for result in results}
    cases = [case for case in CASES if case in found]
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
    elements.append(f'<path d="M{x + 5} 24v12" stroke="#d55e00" stroke-width="2"/>')
    elements.append(f'<text x="{x + 14}" y="34">decoding in memory and one copy</text>')
    y = TOP
    for data, task in cases:
        cells = {name: summary["median"] for name, summary in found[data, task].items()}
        scale = BAR_WIDTH / max(cells.get(name, 0.0) for name in COLORS)
        middle = y + len(COLORS) * BAR_HEIGHT / 2 + 4
        elements.append(f'<text x="8" y="{middle:.0f}">{escape(f"{data}: {task}")}</text>')
        first = y
        for name, color in COLORS.items():
            if name in cells:
                length = max(1.0, scale * cells[name])
                elements.append(
                    f'<rect x="{LABEL_WIDTH}" y="{y}" width="{length:.1f}" height="{BAR_HEIGHT - 2}" fill="{color}"/>'
                )
                text = f"{cells[name]:.0f}" if cells[name] >= 99.5 else f"{cells[name]:.3g}"
                elements.append(
                    f'<text x="{LABEL_WIDTH + length + 4:.1f}" y="{y + 9}" font-size="10">{text}</text>'
                )
            y += BAR_HEIGHT
        if LIMIT in cells:
            mark = LABEL_WIDTH + scale * cells[LIMIT]
            elements.append(
                f'<path d="M{mark:.1f} {first - 2}V{y}" stroke="#d55e00" stroke-width="2" fill="none"/>'
            )
        y += CASE_GAP
    return "\n".join([*elements, "</svg>", ""])
