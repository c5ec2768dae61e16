"""Small plates and image series, written by the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import zarrfs
from zarrfs.synthetic import make_picture, write_image

ROWS, COLUMNS, FIELDS = "AB", "123", 2


def write_plate(path: Path) -> Path:
    """Write a plate with two rows and three columns without well B/3, and two fields of two acquisitions per well."""
    wells = [(r, c) for r in range(len(ROWS)) for c in range(len(COLUMNS)) if (r, c) != (1, 2)]
    document: dict[str, Any] = {
        "version": "0.5",
        "plate": {
            "name": "screen",
            "rows": [{"name": name} for name in ROWS],
            "columns": [{"name": name} for name in COLUMNS],
            "field_count": FIELDS,
            "acquisitions": [{"id": 0, "name": "first day"}, {"id": 7, "name": "second day"}],
            "wells": [{"path": f"{ROWS[r]}/{COLUMNS[c]}", "rowIndex": r, "columnIndex": c} for r, c in wells],
        },
    }
    zarrfs.create_group(path, attributes={"ome": document})
    for number, (r, c) in enumerate(wells):
        well = path / ROWS[r] / COLUMNS[c]
        if c == 0:
            zarrfs.create_group(path / ROWS[r])
        images = [{"path": str(field), "acquisition": (0, 7)[field]} for field in range(FIELDS)]
        zarrfs.create_group(well, attributes={"ome": {"version": "0.5", "well": {"images": images}}})
        for field in range(FIELDS):
            picture = make_picture((1, 48, 64), seed=10 * number + field)
            write_image(well / str(field), picture, levels=1, name=f"{ROWS[r]}{COLUMNS[c]} field {field}")
    return path


def write_series(path: Path, count: int = 3) -> Path:
    """Write a bioformats2raw conversion with several series."""
    zarrfs.create_group(path, attributes={"ome": {"version": "0.5", "bioformats2raw.layout": 3}})
    zarrfs.create_group(
        path / "OME", attributes={"ome": {"version": "0.5", "series": [str(n) for n in range(count)]}}
    )
    for number in range(count):
        write_image(
            path / str(number),
            make_picture((1, 40, 40 + 10 * number), seed=number),
            levels=1,
            name=f"s{number}",
        )
    return path
