"""Selections return equal values in zarrfs and zarr-python 2, or fail in both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.lib.recfunctions import repack_fields

import zarrfs
from tests.interop.samples import same_bits
from tests.interop.zarr2.zarr2_environment import Zarr2

Request = tuple[str, Any, Any]
"""The kind of a selection, the selection, and the fields or None."""

CUBE = np.arange(7 * 5 * 6, dtype="<i4").reshape(7, 5, 6)
LINE = np.arange(23, dtype="<f8")
RECORDS = np.zeros((6, 4), [("a", "<i4"), ("b", ">f8"), ("c", "|S3")])
RECORDS["a"] = np.arange(24).reshape(6, 4)
RECORDS["b"] = np.arange(24).reshape(6, 4) / 3
RECORDS["c"] = [[f"{i}{j}".encode() for j in range(4)] for i in range(6)]
SCALAR = np.array(42, "<u2")

MASK = CUBE % 5 == 0
ROWS = np.array([True, False, True, True, False, False, True])

BASIC: list[Any] = [
    (),
    ...,
    slice(None),
    0,
    -1,
    6,
    7,
    -8,
    (0, 0, 0),
    (-1, -1, -1),
    (1, ..., 2),
    (..., -2),
    (slice(1, 6), slice(None), slice(2, 4)),
    (slice(None, None, 2), 3),
    (slice(1, 6, 3), slice(4, 1), slice(0, 100)),
    (slice(-3, None), slice(None, -2), slice(-100, 100)),
    (slice(3, 3), 1, 2),
    (slice(5, 2), ...),
    (slice(0, 7, 10), slice(0, 5, 4), 5),
    (..., slice(None), slice(1, 3)),
    (np.int64(2), np.uint8(1), slice(np.int32(1), np.int16(4))),
    (0, 0, 0, 0),
    (..., ...),
    (0, 0, ..., 0, 0),
    slice(None, None, 0),
    1.5,
    "a",
    (slice(1.5, 3), 0, 0),
]

ORTHOGONAL: list[Any] = [
    ([0, 2, 6], slice(None), 3),
    ([6, 0, 2], [4, 1], [5, 0, 0]),
    ([2, 2, 1], slice(1, 4), [0, 5]),
    (ROWS, slice(None), [1, 2]),
    (ROWS, [True, False, False, True, False], slice(0, 6, 2)),
    ([-1, -7], -1, slice(None)),
    (slice(None), [3], ...),
    (np.array([1, 3]), np.array([0, 4]), 2),
    (np.zeros(7, bool), 0, 0),
    ([7], 0, 0),
    ([-8], 0, 0),
    ([[0, 1], [1, 2]], 0, 0),
    (np.ones(6, bool), 0, 0),
    ([0.5], 0, 0),
    (0, 1, 2),
    ROWS,
    [1, 4],
]

COORDINATES: list[Any] = [
    ([0, 1, 6], [4, 0, 2], [5, 5, 0]),
    ([6, 0, 6], [1, 1, 1], [2, 0, 2]),
    ([-1, -7], [-5, 4], [-6, -1]),
    ([[0, 1], [2, 3]], [[1, 1], [0, 0]], [[0, 1], [2, 3]]),
    ([0, 1], 2, [3, 4]),
    ([[0], [1]], [1, 2, 3], 0),
    ([0, 1], [0, 1]),
    ([0, 7], [0, 0], [0, 0]),
    ([0, 1], [0, 1, 2], [0, 0]),
    ([0.5], [0], [0]),
    (slice(None), [0], [0]),
]

MASKS: list[Any] = [MASK, ~MASK, MASK & False, MASK[:6], MASK[0], CUBE]

BLOCKS: list[Any] = [
    0,
    (0, 1),
    (1, 0, 2),
    (-1, -1, -1),
    (slice(None), 1),
    (slice(0, 2), slice(1, 3), 0),
    slice(1, 2),
    (..., 0),
    9,
    -9,
    [0, 1],
    slice(0, 2, 2),
    (0, 0, 0, 0),
]

MORE: list[tuple[str, Any, Any]] = [
    ("basic", slice(None, None, -1), CUBE[::-1]),
    ("basic", (slice(5, 1, -2), 0), CUBE[5:1:-2, 0]),
    ("basic", (0, slice(None, None, -1), slice(3, 1, -1)), CUBE[0, ::-1, 3:1:-1]),
    ("orthogonal", (slice(None, None, -1), 0, [1]), CUBE[::-1, 0, 1:2]),
    ("orthogonal", ([], slice(None), 0), CUBE[:0, :, 0]),
    ("coordinate", ([], [], []), CUBE[0, 0, :0]),
    ("block", (slice(5, 9), 0, 0), CUBE[:0, :2, :4]),
    ("brackets", MASK, CUBE[MASK]),
    ("brackets", ROWS, CUBE[ROWS]),
]
"""Selections that zarr-python 2 refuses and zarrfs supports like NumPy: (kind, selection, values)."""

BRACKETS: list[Any] = [*BASIC, ([0, 1, 6], [4, 0, 2], [5, 5, 0]), ([0, 3], slice(None), 1), [2, 0]]


def asked_of_cube() -> list[Request]:
    table = {
        "basic": BASIC,
        "orthogonal": ORTHOGONAL,
        "coordinate": COORDINATES,
        "mask": MASKS,
        "block": BLOCKS,
    }
    requests = [(kind, selection, None) for kind, selections in table.items() for selection in selections]
    requests += [("brackets", selection, None) for selection in BRACKETS]
    requests += [("oindex", selection, None) for selection in ORTHOGONAL]
    requests += [("vindex", selection, None) for selection in [*COORDINATES, *MASKS]]
    requests += [("blocks", selection, None) for selection in BLOCKS]
    return requests


def asked_of_line() -> list[Request]:
    requests: list[Request] = [
        (kind, [1, 20, 3], None) for kind in ("brackets", "orthogonal", "coordinate", "vindex")
    ]
    requests += [(kind, LINE > 9, None) for kind in ("orthogonal", "mask", "vindex")]
    requests += [
        ("basic", selection, None) for selection in (slice(3, 20, 7), slice(22, None), 22, 23, (5,), (5, 5))
    ]
    requests += [("blocks", selection, None) for selection in (0, 4, 5, slice(1, 3), -1)]
    requests += [("vindex", ([[0, 1], [5, 22]],), None), ("orthogonal", ([22, 0, 22],), None)]
    return requests


def asked_of_records() -> list[Request]:
    requests: list[Request] = [
        ("brackets", selection, None) for selection in ("a", ("b", slice(1, 3)), (0, "c"), ("a", "c"))
    ]
    requests += [
        ("brackets", ("a", "c", slice(2, 5), 1), None),
        ("brackets", "nothing", None),
        ("brackets", 3, None),
    ]
    requests += [("brackets", (1, 2), None), ("brackets", (1, 2, "a"), None)]
    requests += [
        ("basic", (slice(1, 4), 2), fields) for fields in ("a", ["b", "c"], ["c", "a"], "x", ["a", "x"])
    ]
    requests += [("orthogonal", ([0, 5], slice(None)), fields) for fields in ("a", ["b", "c"])]
    requests += [("coordinate", ([0, 5], [3, 1]), fields) for fields in ("b", ["a", "c"])]
    requests += [("mask", RECORDS["a"] % 3 == 0, fields) for fields in ("c", ["a", "b"])]
    requests += [("block", (1, 0), fields) for fields in (None, "a", ["b", "c"])]
    return requests


def asked_of_scalar() -> list[Request]:
    requests: list[Request] = [
        (kind, selection, None) for kind in ("brackets", "basic") for selection in ((), ..., 0, (0,))
    ]
    return [*requests, ("brackets", slice(None), None)]


TABLES: dict[str, tuple[Any, Any, list[Request]]] = {
    "cube": (CUBE, (3, 2, 4), asked_of_cube()),
    "line": (LINE, (5,), asked_of_line()),
    "records": (RECORDS, (4, 3), asked_of_records()),
    "scalar": (SCALAR, (), asked_of_scalar()),
}


def ours(array: zarrfs.Array, kind: str, selection: Any, fields: Any) -> tuple[str, Any]:
    try:
        if kind == "brackets":
            return "values", array[selection]
        if kind in ("oindex", "vindex", "blocks"):
            return "values", getattr(array, kind)[selection]
        return "values", getattr(array, f"get_{kind}_selection")(selection, fields=fields)
    except zarrfs.SelectionError as error:
        return "error", str(error)


def assigned(array: zarrfs.Array, kind: str, selection: Any, fields: Any, value: Any) -> tuple[str, Any]:
    try:
        if kind == "brackets":
            array[selection] = value
        elif kind in ("oindex", "vindex", "blocks"):
            getattr(array, kind)[selection] = value
        else:
            getattr(array, f"set_{kind}_selection")(selection, value, fields=fields)
    except zarrfs.ZarrError as error:
        return "error", str(error)
    return "values", array[...]


def packed(value: Any) -> Any:
    """Several fields are a view of whole records in NumPy and zarrfs; zarr-python 2 packs them."""
    return repack_fields(value) if np.asarray(value).dtype.names else value


def differences(requests: list[Request], theirs: list[Any], ours: list[Any]) -> list[str]:
    found = []
    for request, (their_kind, their_value), (our_kind, our_value) in zip(requests, theirs, ours, strict=True):
        if their_kind == our_kind == "error":
            continue
        if their_kind != our_kind or not same_bits(packed(our_value), their_value):
            found.append(f"{request}: theirs {their_kind} {their_value!r}, ours {our_kind} {our_value!r}")
    return found


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("order", "CF")
def test_selections_return_equal_values(zarr2: Zarr2, table: str, order: str, tmp_path: Path) -> None:
    data, chunks, requests = TABLES[table]
    array = zarrfs.create_array(tmp_path, data=data, chunks=chunks, order=order, zarr_format=2)
    theirs = zarr2("select", ("DirectoryStore", {"path": str(tmp_path)}), "", requests)
    assert differences(requests, theirs, [ours(array, *request) for request in requests]) == []


@pytest.mark.parametrize("table", TABLES)
def test_assignments_have_equal_effects(zarr2: Zarr2, table: str, tmp_path: Path) -> None:
    data, chunks, requests = TABLES[table]
    value: Any = 7
    if table == "records":
        value = RECORDS[3, 3]
        requests = [request for request in requests if request[2] is None]
    place = "DirectoryStore", {"path": str(tmp_path / "theirs")}
    zarrfs.create_array(tmp_path / "theirs", data=data, chunks=chunks, zarr_format=2)
    theirs = zarr2("assign", place, "", requests, value)
    found = []
    array = zarrfs.create_array(tmp_path / "ours", data=data, chunks=chunks, zarr_format=2)
    for request in requests:
        found.append(assigned(array, *request, value))
        array[...] = data
    assert differences(requests, theirs, found) == []


def test_selections_that_zarr_python_2_refuses_follow_numpy(zarr2: Zarr2, tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path, data=CUBE, chunks=(3, 2, 4), zarr_format=2)
    requests: list[Request] = [(kind, selection, None) for kind, selection, _ in MORE]
    theirs = zarr2("select", ("DirectoryStore", {"path": str(tmp_path)}), "", requests)
    for (kind, selection, expected), (their_kind, _) in zip(MORE, theirs, strict=True):
        assert their_kind == "error"
        assert same_bits(ours(array, kind, selection, None)[1], expected)


def test_a_single_point_selection_returns_a_scalar(zarr2: Zarr2, tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path, data=CUBE, chunks=(3, 2, 4), zarr_format=2)
    requests: list[Request] = [("vindex", (2, 3, 4), None), ("coordinate", (-1, 0, 5), None)]
    theirs = zarr2("select", ("DirectoryStore", {"path": str(tmp_path)}), "", requests)
    for request, (_, value) in zip(requests, theirs, strict=True):
        assert same_bits(value, np.asarray(ours(array, *request)[1])[None])


def test_views_and_iteration_are_equal(zarr2: Zarr2, tmp_path: Path) -> None:
    array = zarrfs.create_array(tmp_path, data=CUBE, chunks=(3, 2, 4), zarr_format=2)
    cast, items, some = zarr2("views", ("DirectoryStore", {"path": str(tmp_path)}), "", "<f4")
    assert same_bits(array.astype("<f4")[...], cast)
    for found, expected in ((list(array), items), (list(array.islice(2, 4)), some)):
        assert len(found) == len(expected)
        assert all(same_bits(a, b) for a, b in zip(found, expected, strict=True))
