"""Schemas: what a program asks of an array, whatever the format. TensorStore's ``Schema`` and ``ChunkLayout`` as JSON.

Constraints are hard (to be met, or an error that says which was not) or soft (a wish for new arrays). They may come
from several places and are merged; hard ones that contradict each other are an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from zarrfs.engine.creation.chunk_shapes import ChunkConstraint
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.units import units_from_json

__all__ = ["MAX_DIMENSIONS", "Grid", "Schema", "merged", "schema_from_json"]

MAX_DIMENSIONS = 32


@dataclass(frozen=True)
class Grid:
    """What is asked of the chunks that are read, or written, as one."""

    hard: ChunkConstraint = field(default_factory=ChunkConstraint)
    soft: ChunkConstraint = field(default_factory=ChunkConstraint)

    @property
    def wanted(self) -> ChunkConstraint:
        """The hard constraints, and the soft ones where there is no hard one."""
        hard, soft = self.hard, self.soft
        return ChunkConstraint(
            _either(hard.shape, soft.shape),
            _either(hard.aspect_ratio, soft.aspect_ratio),
            soft.elements if hard.elements is None else hard.elements,
        )


def _either(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(first) != len(second):
        return first or second
    return tuple(one or other for one, other in zip(first, second, strict=True))


@dataclass(frozen=True)
class Schema:
    """What is asked of an array; None and empty for nothing.

    Attributes:
        dtype: a data type by its name in Zarr v3.
        shape, labels: of the domain; None within the shape for a length that is not said.
        inner_order: the order of dimensions within chunks, the slowest first.
        read, write: what is asked of chunks and of shards.
        codec: the object with ``driver`` and what belongs to it.
        fill_value: as it is in JSON, or a scalar.
        units: of each dimension, None where none is asked for.
    """

    rank: int | None = None
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    labels: tuple[str, ...] | None = None
    inner_order: tuple[int, ...] | None = None
    soft_inner_order: tuple[int, ...] | None = None
    read: Grid = field(default_factory=Grid)
    write: Grid = field(default_factory=Grid)
    codec: Mapping[str, Any] | None = None
    fill_value: Any = None
    units: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.rank is not None and not 0 <= self.rank <= MAX_DIMENSIONS:
            raise MetadataError(f"rank: expected an integer from 0 to {MAX_DIMENSIONS}, found {self.rank!r}")
        ranks: dict[str, int] = {}
        for name, value in (
            ("domain", self.shape),
            ("labels", self.labels),
            ("inner_order", self.inner_order),
            ("read_chunk", self.read.wanted.shape or self.read.wanted.aspect_ratio or None),
            ("write_chunk", self.write.wanted.shape or self.write.wanted.aspect_ratio or None),
            ("dimension_units", self.units),
        ):
            if value is not None:
                ranks[name] = len(value)
        if self.rank is not None:
            ranks["rank"] = self.rank
        if len(set(ranks.values())) > 1:
            said = ", ".join(f"{name} has {rank}" for name, rank in ranks.items())
            raise MetadataError(f"the numbers of dimensions differ: {said}")


def merged(one: Schema, other: Schema) -> Schema:
    """Return what both ask. Raises MetadataError where their hard constraints contradict each other."""
    values: dict[str, Any] = {}
    for item in fields(Schema):
        first, second = getattr(one, item.name), getattr(other, item.name)
        if isinstance(first, Grid):
            values[item.name] = _merged_grids(first, second, f"{item.name}_chunk")
        elif (
            item.name in ("units", "shape")
            and first is not None
            and second is not None
            and len(first) == len(second)
        ):
            values[item.name] = tuple(_same(a, b, item.name) for a, b in zip(first, second, strict=True))
        elif item.name == "codec":
            # Both may be parts of one; whoever knows the driver puts them together.
            values["codec"] = (
                second if first is None else first if second is None else {**first, "and": second}
            )
        elif item.name == "soft_inner_order":
            values[item.name] = first or second
        else:
            values[item.name] = _same(first, second, item.name)
    return Schema(**values)


def _same(first: Any, second: Any, what: str) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if first != second:
        raise MetadataError(f"{what}: {first!r} is asked for, and {second!r} too")
    return first


def _merged_grids(one: Grid, other: Grid, what: str) -> Grid:
    first, second = one.hard, other.hard
    hard = ChunkConstraint(
        _merged_vectors(first.shape, second.shape, f"{what} shape"),
        _merged_vectors(first.aspect_ratio, second.aspect_ratio, f"{what} aspect_ratio"),
        _same(first.elements, second.elements, f"{what} elements"),
    )
    soft = ChunkConstraint(
        _either(one.soft.shape, other.soft.shape),
        _either(one.soft.aspect_ratio, other.soft.aspect_ratio),
        one.soft.elements if one.soft.elements is not None else other.soft.elements,
    )
    return Grid(hard, soft)


def _merged_vectors(first: tuple[Any, ...], second: tuple[Any, ...], what: str) -> tuple[Any, ...]:
    if not first or not second:
        return first or second
    if len(first) != len(second):
        raise MetadataError(f"{what}: {list(first)} is asked for, and {list(second)} too")
    for dimension, (one, other) in enumerate(zip(first, second, strict=True)):
        if one and other and one != other and -1 not in (one, other):
            raise MetadataError(f"{what} of dimension {dimension}: {one} is asked for, and {other} too")
    # "The whole dimension" gives way to a length.
    return tuple(
        (one or other) if one != -1 else (other or one) for one, other in zip(first, second, strict=True)
    )


# -- JSON ------------------------------------------------------------------------------------------------------

MEMBERS = ("rank", "dtype", "domain", "chunk_layout", "codec", "fill_value", "dimension_units")


def schema_from_json(value: Any, where: str = "schema") -> Schema:
    """Return the schema that JSON says. Raises MetadataError that names the member."""
    members = _object(value, where, MEMBERS)
    dtype = members.get("dtype")
    if dtype is not None and not isinstance(dtype, str):
        raise MetadataError(f"{where}/dtype: expected the name of a data type, found {dtype!r}")
    shape, labels = _domain(members.get("domain"), f"{where}/domain")
    units = members.get("dimension_units")
    codec = members.get("codec")
    if codec is not None and not isinstance(codec, Mapping):
        raise MetadataError(f"{where}/codec: expected an object, found {codec!r}")
    rank = members.get("rank")
    if rank is not None and (isinstance(rank, bool) or not isinstance(rank, int)):
        raise MetadataError(f"{where}/rank: expected an integer, found {rank!r}")
    return Schema(
        rank=rank,
        dtype=dtype,
        shape=shape,
        labels=labels,
        **_layout(members.get("chunk_layout"), f"{where}/chunk_layout"),
        codec=codec,
        fill_value=members.get("fill_value"),
        units=None if units is None else units_from_json(units, f"{where}/dimension_units"),
    )


def _object(value: Any, where: str, names: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise MetadataError(f"{where}: expected an object, found {value!r}")
    for name in value:
        if name not in names:
            raise MetadataError(f"{where}/{name}: there is no such member; there are {', '.join(names)}")
    return value


def _vector(value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise MetadataError(f"{where}: expected a list, found {value!r}")
    if len(value) > MAX_DIMENSIONS:
        raise MetadataError(f"{where}: {len(value)} dimensions, there can be {MAX_DIMENSIONS} at most")
    return tuple(value)


def _integers(value: Any, where: str) -> tuple[int, ...]:
    numbers = _vector(value, where)
    if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        raise MetadataError(f"{where}: expected integers, found {value!r}")
    return numbers


DOMAIN = ("rank", "inclusive_min", "exclusive_max", "inclusive_max", "shape", "labels")


def _domain(value: Any, where: str) -> tuple[tuple[int | None, ...] | None, tuple[str, ...] | None]:
    """Return shape and labels of a domain, which starts at zero here. An infinite bound says nothing."""
    if value is None:
        return None, None
    members = _object(value, where, DOMAIN)
    if any(_bound(entry) for entry in _vector(members.get("inclusive_min", ()), f"{where}/inclusive_min")):
        raise MetadataError(
            f"{where}/inclusive_min: arrays start at 0 in all dimensions, found {members['inclusive_min']!r}"
        )
    shape: tuple[int | None, ...] | None = None
    for name, add in (("shape", 0), ("exclusive_max", 0), ("inclusive_max", 1)):
        if name in members:
            bounds = [_bound(entry) for entry in _vector(members[name], f"{where}/{name}")]
            _integers([bound for bound in bounds if bound is not None], f"{where}/{name}")
            shape = tuple(None if bound is None else bound + add for bound in bounds)
    labels = members.get("labels")
    if labels is not None:
        labels = _vector(labels, f"{where}/labels")
        if not all(isinstance(label, str) for label in labels):
            raise MetadataError(f"{where}/labels: expected strings, found {members['labels']!r}")
    return shape, labels


def _bound(entry: Any) -> Any:
    if isinstance(entry, list | tuple) and len(entry) == 1:
        entry = entry[0]
    return None if isinstance(entry, str) and entry in ("+inf", "-inf") else entry


LAYOUT = (
    *("inner_order", "inner_order_soft_constraint", "grid_origin", "grid_origin_soft_constraint"),
    *("chunk", "write_chunk", "read_chunk", "codec_chunk"),
)
GRID = tuple(
    f"{name}{end}" for name in ("shape", "aspect_ratio", "elements") for end in ("", "_soft_constraint")
)


def _layout(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    members = _object(value, where, LAYOUT)
    origin = _vector(members.get("grid_origin") or (), f"{where}/grid_origin")
    if any(origin):
        raise MetadataError(
            f"{where}/grid_origin: the grid of a Zarr array begins at 0, found {list(origin)}"
        )
    both = _grid(members.get("chunk", {}), f"{where}/chunk")
    orders: dict[str, Any] = {}
    for name, key in (("inner_order", "inner_order"), ("soft_inner_order", "inner_order_soft_constraint")):
        if members.get(key) is not None:
            order = _integers(members[key], f"{where}/{key}")
            if sorted(order) != list(range(len(order))):
                raise MetadataError(f"{where}/{key}: expected each dimension once, found {list(order)}")
            orders[name] = order
    _grid(members.get("codec_chunk", {}), f"{where}/codec_chunk")
    return {
        "read": _merged_grids(
            _grid(members.get("read_chunk", {}), f"{where}/read_chunk"), both, "read_chunk"
        ),
        "write": _merged_grids(
            _grid(members.get("write_chunk", {}), f"{where}/write_chunk"), both, "write_chunk"
        ),
        **orders,
    }


def _grid(value: Any, where: str) -> Grid:
    members = _object(value, where, GRID)
    made = []
    for end in ("", "_soft_constraint"):
        shape = _vector(members.get(f"shape{end}", ()), f"{where}/shape{end}")
        ratios = _vector(members.get(f"aspect_ratio{end}", ()), f"{where}/aspect_ratio{end}")
        try:
            made.append(
                ChunkConstraint(
                    tuple(0 if length is None else length for length in shape),
                    tuple(0.0 if ratio is None else ratio for ratio in ratios),
                    members.get(f"elements{end}"),
                )
            )
        except (MetadataError, TypeError) as error:
            raise MetadataError(f"{where}: {error}") from error
    return Grid(*made)
