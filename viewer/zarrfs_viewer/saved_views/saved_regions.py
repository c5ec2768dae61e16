"""The JSON form of the regions of planes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from zarrfs_viewer.analysis.regions import PlaneRegions, Region
from zarrfs_viewer.analysis.shapes import MIN_POINTS, Shape, ShapeKind
from zarrfs_viewer.saved_views.fields import Fields

__all__ = ["regions_from_json", "regions_to_json"]

KINDS: tuple[ShapeKind, ...] = ("point", "line", "rectangle", "ellipse", "polygon")


def regions_to_json(planes: Sequence[PlaneRegions]) -> list[dict[str, Any]]:
    """Return a JSON document. The coordinates of a shape are one list: row, column, row, column, ..."""
    return [
        {
            "rows": {"name": rows[0], "size": rows[1]},
            "columns": {"name": columns[0], "size": columns[1]},
            "regions": [
                {
                    "name": region.name,
                    "kind": region.shape.kind,
                    "points": list(chain.from_iterable(region.shape.points)),
                }
                for region in regions
            ],
        }
        for (rows, columns), regions in planes
    ]


def regions_from_json(fields: Fields, key: str) -> tuple[PlaneRegions, ...]:
    """Return the regions at a key of a document. Raises MetadataError if they are not valid."""
    return tuple(
        (
            (_axis(plane.inner("rows")), _axis(plane.inner("columns"))),
            tuple(_region(region) for region in plane.items("regions")),
        )
        for plane in fields.items(key)
    )


def _axis(fields: Fields) -> tuple[str, int]:
    return fields.string("name"), fields.integer("size") or 0


def _region(fields: Fields) -> Region:
    kind, numbers = fields.choice("kind", KINDS), fields.numbers("points")
    if len(numbers) % 2 or len(numbers) < 2 * MIN_POINTS[kind]:
        raise fields.error(
            "points", f"expected {MIN_POINTS[kind]} points or more, found {len(numbers)} numbers"
        )
    points = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    return Region(fields.string("name"), Shape(kind, points))
