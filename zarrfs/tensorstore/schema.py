"""Schemas: constraints on an array that do not depend on the format. JSON of TensorStore's ``Schema`` and
``ChunkLayout``.

A hard constraint must be met. A soft constraint is a preference for new arrays. Constraints of several sources are
merged. Conflicting hard constraints are an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from zarrfs.engine.create.chunk_shapes import ChunkConstraint
from zarrfs.engine.json_checks import check_keys, expect_integer, expect_object, expect_string
from zarrfs.errors import MetadataError
from zarrfs.tensorstore.units import units_from_json
from zarrfs.text import short_repr

__all__ = ["MAX_DIMENSIONS", "GridConstraints", "Schema", "merge_schemas", "schema_from_json"]

MAX_DIMENSIONS = 32


@dataclass(frozen=True)
class GridConstraints:
    """The constraints on the read chunks or write chunks."""

    hard: ChunkConstraint = field(default_factory=ChunkConstraint)
    soft: ChunkConstraint = field(default_factory=ChunkConstraint)

    @property
    def preferred(self) -> ChunkConstraint:
        """The hard constraints, and soft constraints where no hard one is set."""
        hard, soft = self.hard, self.soft
        return ChunkConstraint(
            _first_set(hard.shape, soft.shape),
            _first_set(hard.aspect_ratio, soft.aspect_ratio),
            soft.elements if hard.elements is None else hard.elements,
        )


def _first_set(first: tuple[Any, ...], second: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(first) != len(second):
        return first or second
    return tuple(one or other for one, other in zip(first, second, strict=True))


@dataclass(frozen=True)
class Schema:
    """Constraints on an array. None and empty values mean no constraint.

    Attributes:
        dtype: the name of a Zarr v3 data type.
        shape, labels: the shape and dimension labels of the domain. A length of None is unconstrained.
        inner_order: the order of dimensions within chunks, slowest-varying first.
        read, write: the constraints on read chunks (chunks) and write chunks (shards).
        codec: the codec object with ``driver`` and driver-specific members.
        fill_value: the fill value as JSON or a scalar.
        units: the unit of each dimension; None is unconstrained.
    """

    rank: int | None = None
    dtype: str | None = None
    shape: tuple[int | None, ...] | None = None
    labels: tuple[str, ...] | None = None
    inner_order: tuple[int, ...] | None = None
    soft_inner_order: tuple[int, ...] | None = None
    read: GridConstraints = field(default_factory=GridConstraints)
    write: GridConstraints = field(default_factory=GridConstraints)
    codec: Mapping[str, Any] | None = None
    fill_value: Any = None
    units: tuple[str | None, ...] | None = None

    def __post_init__(self) -> None:
        if self.rank is not None and not 0 <= self.rank <= MAX_DIMENSIONS:
            raise MetadataError(
                f"rank: expected an integer from 0 to {MAX_DIMENSIONS}, found {short_repr(self.rank)}"
            )
        ranks: dict[str, int] = {}
        for name, value in (
            ("domain", self.shape),
            ("labels", self.labels),
            ("inner_order", self.inner_order),
            ("read_chunk", self.read.preferred.shape or self.read.preferred.aspect_ratio or None),
            ("write_chunk", self.write.preferred.shape or self.write.preferred.aspect_ratio or None),
            ("dimension_units", self.units),
        ):
            if value is not None:
                ranks[name] = len(value)
        if self.rank is not None:
            ranks["rank"] = self.rank
        if len(set(ranks.values())) > 1:
            descriptions = ", ".join(f"{name} has {rank}" for name, rank in ranks.items())
            raise MetadataError(f"the ranks of the constraints differ: {descriptions}")


def merge_schemas(one: Schema, other: Schema) -> Schema:
    """Return the constraints of both schemas. Raises MetadataError if hard constraints conflict."""
    values: dict[str, Any] = {}
    for item in fields(Schema):
        first, second = getattr(one, item.name), getattr(other, item.name)
        if isinstance(first, GridConstraints):
            values[item.name] = _merge_grids(first, second, f"{item.name}_chunk")
        elif (
            item.name in ("units", "shape")
            and first is not None
            and second is not None
            and len(first) == len(second)
        ):
            values[item.name] = tuple(
                _merge_values(a, b, item.name) for a, b in zip(first, second, strict=True)
            )
        elif item.name == "codec":
            # Both may be partial. Merging them depends on the driver and is done by ArrayConstraints.chain.
            values["codec"] = (
                second if first is None else first if second is None else {**first, "and": second}
            )
        elif item.name == "soft_inner_order":
            values[item.name] = first or second
        else:
            values[item.name] = _merge_values(first, second, item.name)
    return Schema(**values)


def _merge_values(first: Any, second: Any, property_name: str) -> Any:
    if first is None or second is None:
        return second if first is None else first
    if first != second:
        raise MetadataError(
            f"{property_name}: conflicting values {short_repr(first)} and {short_repr(second)}"
        )
    return first


def _merge_grids(one: GridConstraints, other: GridConstraints, property_name: str) -> GridConstraints:
    first, second = one.hard, other.hard
    hard = ChunkConstraint(
        _merge_vectors(first.shape, second.shape, f"{property_name} shape"),
        _merge_vectors(first.aspect_ratio, second.aspect_ratio, f"{property_name} aspect_ratio"),
        _merge_values(first.elements, second.elements, f"{property_name} elements"),
    )
    soft = ChunkConstraint(
        _first_set(one.soft.shape, other.soft.shape),
        _first_set(one.soft.aspect_ratio, other.soft.aspect_ratio),
        one.soft.elements if one.soft.elements is not None else other.soft.elements,
    )
    return GridConstraints(hard, soft)


def _merge_vectors(first: tuple[Any, ...], second: tuple[Any, ...], property_name: str) -> tuple[Any, ...]:
    if not first or not second:
        return first or second
    if len(first) != len(second):
        raise MetadataError(f"{property_name}: conflicting values {list(first)} and {list(second)}")
    for dimension, (one, other) in enumerate(zip(first, second, strict=True)):
        if one and other and one != other and -1 not in (one, other):
            raise MetadataError(
                f"{property_name} of dimension {dimension}: conflicting values {one} and {other}"
            )
    # -1 (the whole dimension) is overridden by a length.
    return tuple(
        (one or other) if one != -1 else (other or one) for one, other in zip(first, second, strict=True)
    )


# -- JSON ------------------------------------------------------------------------------------------------------

SCHEMA_MEMBERS = ("rank", "dtype", "domain", "chunk_layout", "codec", "fill_value", "dimension_units")


def schema_from_json(value: Any, where: str = "schema") -> Schema:
    """Return the schema of a JSON value. Raises MetadataError, which names the invalid member."""
    members = _object(value, where, SCHEMA_MEMBERS)
    dtype = members.get("dtype")
    if dtype is not None:
        expect_string(dtype, f"{where}/dtype")
    shape, labels = _domain_from_json(members.get("domain"), f"{where}/domain")
    units = members.get("dimension_units")
    codec = members.get("codec")
    if codec is not None:
        expect_object(codec, f"{where}/codec")
    rank = members.get("rank")
    if rank is not None:
        expect_integer(rank, f"{where}/rank")
    return Schema(
        rank=rank,
        dtype=dtype,
        shape=shape,
        labels=labels,
        **_layout_from_json(members.get("chunk_layout"), f"{where}/chunk_layout"),
        codec=codec,
        fill_value=members.get("fill_value"),
        units=None if units is None else units_from_json(units, f"{where}/dimension_units"),
    )


def _object(value: Any, where: str, names: Sequence[str]) -> Mapping[str, Any]:
    item = expect_object(value, where)
    check_keys(item, where, names)
    return item


def _vector(value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise MetadataError(f"{where}: expected a list, found {short_repr(value)}")
    if len(value) > MAX_DIMENSIONS:
        raise MetadataError(f"{where}: expected at most {MAX_DIMENSIONS} dimensions, found {len(value)}")
    return tuple(value)


def _integers(value: Any, where: str) -> tuple[int, ...]:
    numbers = _vector(value, where)
    if any(isinstance(number, bool) or not isinstance(number, int) for number in numbers):
        raise MetadataError(f"{where}: expected integers, found {short_repr(value)}")
    return numbers


DOMAIN_MEMBERS = ("rank", "inclusive_min", "exclusive_max", "inclusive_max", "shape", "labels")


def _domain_from_json(value: Any, where: str) -> tuple[tuple[int | None, ...] | None, tuple[str, ...] | None]:
    """Return shape and labels of a domain. Its origin must be zero. Infinite bounds are unconstrained (None)."""
    if value is None:
        return None, None
    members = _object(value, where, DOMAIN_MEMBERS)
    if any(_bound(entry) for entry in _vector(members.get("inclusive_min", ()), f"{where}/inclusive_min")):
        raise MetadataError(
            f"{where}/inclusive_min: expected 0 for all dimensions, found {short_repr(members['inclusive_min'])}"
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
            raise MetadataError(f"{where}/labels: expected strings, found {short_repr(members['labels'])}")
    return shape, labels


def _bound(entry: Any) -> Any:
    if isinstance(entry, list | tuple) and len(entry) == 1:
        entry = entry[0]
    return None if isinstance(entry, str) and entry in ("+inf", "-inf") else entry


LAYOUT_MEMBERS = (
    *("inner_order", "inner_order_soft_constraint", "grid_origin", "grid_origin_soft_constraint"),
    *("chunk", "write_chunk", "read_chunk", "codec_chunk"),
)
GRID_MEMBERS = tuple(
    f"{name}{suffix}" for name in ("shape", "aspect_ratio", "elements") for suffix in ("", "_soft_constraint")
)


def _layout_from_json(value: Any, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    members = _object(value, where, LAYOUT_MEMBERS)
    origin = _vector(members.get("grid_origin") or (), f"{where}/grid_origin")
    if any(origin):
        raise MetadataError(f"{where}/grid_origin: expected 0 for all dimensions, found {list(origin)}")
    both = _grid_from_json(members.get("chunk", {}), f"{where}/chunk")
    orders: dict[str, Any] = {}
    for name, key in (("inner_order", "inner_order"), ("soft_inner_order", "inner_order_soft_constraint")):
        if members.get(key) is not None:
            order = _integers(members[key], f"{where}/{key}")
            if sorted(order) != list(range(len(order))):
                raise MetadataError(f"{where}/{key}: expected each dimension once, found {list(order)}")
            orders[name] = order
    _grid_from_json(members.get("codec_chunk", {}), f"{where}/codec_chunk")
    return {
        "read": _merge_grids(
            _grid_from_json(members.get("read_chunk", {}), f"{where}/read_chunk"), both, "read_chunk"
        ),
        "write": _merge_grids(
            _grid_from_json(members.get("write_chunk", {}), f"{where}/write_chunk"), both, "write_chunk"
        ),
        **orders,
    }


def _grid_from_json(value: Any, where: str) -> GridConstraints:
    members = _object(value, where, GRID_MEMBERS)
    constraints = []
    for suffix in ("", "_soft_constraint"):
        shape = _vector(members.get(f"shape{suffix}", ()), f"{where}/shape{suffix}")
        ratios = _vector(members.get(f"aspect_ratio{suffix}", ()), f"{where}/aspect_ratio{suffix}")
        try:
            constraints.append(
                ChunkConstraint(
                    tuple(0 if length is None else length for length in shape),
                    tuple(0.0 if ratio is None else ratio for ratio in ratios),
                    members.get(f"elements{suffix}"),
                )
            )
        except (MetadataError, TypeError) as error:
            raise MetadataError(f"{where}: {error}") from error
    return GridConstraints(*constraints)
