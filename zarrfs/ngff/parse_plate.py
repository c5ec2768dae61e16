"""Parsing the ``plate`` and ``well`` objects. Missing parts are tolerated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from zarrfs.ngff.model import Plate, PlateWell, Well, WellImage
from zarrfs.ngff.reader import Reader
from zarrfs.text import short_repr

__all__ = ["parse_plate", "parse_well"]


def parse_plate(plate: Reader) -> Plate:
    """Return the model of a ``plate`` object. Row and column names that occur only in well paths are added."""
    rows = _Names(row.string("name") or "" for row in plate.mappings("rows"))
    columns = _Names(column.string("name") or "" for column in plate.mappings("columns"))
    wells = tuple(_wells(plate, rows, columns))
    acquisitions = {}
    for item in plate.mappings("acquisitions"):
        number = item.integer("id")
        if number is not None:
            acquisitions[number] = item.string("name") or f"acquisition {number}"
    return Plate(
        plate.string("name"),
        tuple(rows.names),
        tuple(columns.names),
        wells,
        acquisitions,
        plate.integer("field_count"),
    )


class _Names:
    """Names with their positions. If a name is repeated, its first position is used."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = list(names)
        self._positions: dict[str, int] = {}
        for position, name in enumerate(self.names):
            self._positions.setdefault(name, position)

    def position(self, name: str) -> int:
        """Return the position of a name. A new name is appended."""
        if name not in self._positions:
            self._positions[name] = len(self.names)
            self.names.append(name)
        return self._positions[name]


def _wells(plate: Reader, rows: _Names, columns: _Names) -> Iterator[PlateWell]:
    for well in plate.mappings("wells"):
        path = well.string("path")
        if path is None:
            well.note("path", "no path: the well is ignored")
            continue
        row_name, _, column_name = path.strip("/").partition("/")
        row = _grid_index(well, "rowIndex", row_name, rows)
        column = _grid_index(well, "columnIndex", column_name, columns)
        yield PlateWell(path, row, column)


def _grid_index(well: Reader, key: str, name: str, names: _Names) -> int:
    index = well.integer(key)
    if index is not None and 0 <= index < len(names.names):
        return index
    if index is not None:
        well.note(
            key,
            f"expected 0 to {len(names.names) - 1}, found {index}: the name {short_repr(name)} of the path is used",
        )
    # 0.1 has no indices, and some writers omit rows and columns as well.
    return names.position(name)


def parse_well(well: Reader) -> Well:
    """Return the model of a ``well`` object."""
    images = []
    for item in well.mappings("images"):
        path = item.string("path")
        if path is None:
            item.note("path", "no path: the field is ignored")
        else:
            images.append(WellImage(path, item.integer("acquisition")))
    return Well(tuple(images))
