"""The check of ``image-label`` and ``labels`` in all versions, with and without ``multiscales``."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from zarrfs_viewer.images.dataset import describe

import zarrfs
from tests.ngff.test_checks import INVALID, as_version_0_5, image, label, plate, pointer_exists
from zarrfs.errors import ZarrError
from zarrfs.ngff import check_attributes, check_node, parse
from zarrfs.ngff.checks.report import pointer
from zarrfs.text import MAX_VALUE, short_repr

pytest.importorskip("yaozarrs", reason="the model library of the schema tier is not installed")

RED = {"label-value": 1, "rgba": [255, 0, 0, 255]}

INVALID_LABELS: list[tuple[Any, str, str]] = [
    (3, "", "expected an object"),
    ([], "", "expected an object"),
    (None, "", "expected an object"),
    ({"colors": []}, "/colors", "non-empty"),
    ({"colors": None}, "/colors", "non-empty"),
    ({"colors": {}}, "/colors", "non-empty"),
    ({"colors": [3]}, "/colors/0", "expected an object"),
    ({"colors": [RED, {"rgba": [0, 0, 0, 0]}]}, "/colors/1", "'label-value' is missing"),
    ({"colors": [{"label-value": "1"}]}, "/colors/0/label-value", "expected a number"),
    ({"colors": [{"label-value": True}]}, "/colors/0/label-value", "expected a number"),
    ({"colors": [{"label-value": 1, "rgba": [0, 0, 0]}]}, "/colors/0/rgba", "four numbers"),
    ({"colors": [{"label-value": 1, "rgba": [0, 0, 0, 0, 0]}]}, "/colors/0/rgba", "four numbers"),
    ({"colors": [{"label-value": 1, "rgba": None}]}, "/colors/0/rgba", "four numbers"),
    ({"colors": [{"label-value": 1, "rgba": [0, 256, 0, 0]}]}, "/colors/0/rgba/1", "0 to 255"),
    ({"colors": [{"label-value": 1, "rgba": [0, 0, -1, 0]}]}, "/colors/0/rgba/2", "0 to 255"),
    ({"colors": [{"label-value": 1, "rgba": [0, 0, 0, 0.5]}]}, "/colors/0/rgba/3", "0 to 255"),
    ({"colors": [{"label-value": 1, "rgba": [True, 0, 0, 0]}]}, "/colors/0/rgba/0", "0 to 255"),
    ({"colors": [RED, RED]}, "/colors/1", "duplicate of item 0"),
    ({"colors": [RED, {**RED, "x": 1}, {"rgba": RED["rgba"], "label-value": 1}]}, "/colors/2", "item 0"),
    ({"properties": []}, "/properties", "non-empty"),
    ({"properties": [{"a/b": 1}]}, "/properties/0", "'label-value' is missing"),
    ({"properties": [{"label-value": 1.5}]}, "/properties/0/label-value", "expected an integer"),
    ({"properties": [{"label-value": 1}, {"label-value": 1}]}, "/properties/1", "duplicate of item 0"),
    ({"source": "../.."}, "/source", "expected an object"),
    ({"source": {"image": 3}}, "/source/image", "expected a string"),
    ({"version": "0.0"}, "/version", "found '0.0'"),
]


def documents(value: Any) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (version, pointer prefix, attributes) of an ``image-label`` in each version, with and without an image."""
    for version in ("0.1", "0.2", "0.3"):
        multiscale = {"version": version, "datasets": [{"path": "0"}]}
        if version == "0.3":
            multiscale["axes"] = ["y", "x"]
        yield version, "/image-label", {"multiscales": [multiscale], "image-label": value}
    yield "0.4", "/image-label", {**image(), "image-label": value}
    yield "0.4", "/image-label", {"image-label": value}
    as_0_5 = as_version_0_5(image())["ome"]
    yield "0.5", "/ome/image-label", {"ome": {**as_0_5, "image-label": value}}
    yield "0.5", "/ome/image-label", {"ome": {"version": "0.5", "image-label": value}}


@pytest.mark.parametrize(("value", "location", "text"), INVALID_LABELS)
def test_image_labels_that_violate_the_schema_are_invalid(value: Any, location: str, text: str) -> None:
    for version, prefix, attributes in documents(value):
        report = check_attributes(attributes)
        messages = [(m.pointer, m.message) for m in report.messages if m.tier == "schema"]
        if version == "0.4" and location == "/version" and "multiscales" not in attributes:
            # The invalid version is the only one in the document.
            assert not report.valid
            continue
        assert report.version == version
        assert len(messages) == 1, messages
        assert messages[0][0] == prefix + location
        assert text in messages[0][1]
        assert pointer_exists(attributes, messages[0][0])
        assert not report.valid


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"colors": [RED, {"label-value": 2}, {"label-value": 3, "rgba": [0, 0, 0, 0]}]},
        {"properties": [{"label-value": 1, "class": "a"}, {"label-value": -2}]},
        {"source": {"image": "../../"}},
        {"source": {}},
    ],
)
def test_image_labels_that_follow_the_schema_are_valid(value: dict[str, Any]) -> None:
    for version, _, attributes in documents(value):
        report = check_attributes(attributes)
        assert report.valid, report.messages
        assert report.version == version
        missing = [m for m in report.messages if "must have 'multiscales'" in m.message]
        assert bool(missing) == ("multiscales" not in attributes.get("ome", attributes))


def test_label_values_must_be_unique_integers() -> None:
    colors = [{"label-value": 1.5}, {"label-value": 2.0}, RED, {"label-value": 1, "rgba": [0, 0, 0, 0]}]
    report = check_attributes(label(colors=colors))
    assert report.valid
    messages = {(m.pointer, m.message) for m in report.messages if m.tier == "semantic"}
    assert ("/image-label/colors/0/label-value", "label values must be integers, found 1.5") in messages
    assert ("/image-label/colors", "label 1 occurs more than once; the last one is used") in messages
    assert len(messages) == 2


@pytest.mark.parametrize("labels", [[], {}, "a", None, [3], ["a", None]])
def test_labels_must_be_a_list_of_paths(labels: Any) -> None:
    for attributes in ({"labels": labels}, {"ome": {"version": "0.5", "labels": labels}}):
        report = check_attributes(attributes)
        assert not report.valid
        assert all(pointer_exists(attributes, message.pointer) for message in report.messages)


@pytest.mark.parametrize("count", [0, -1, 1.5, "1", True, None])
@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_counts_of_old_plates_must_be_positive(version: str, count: Any) -> None:
    document = plate(version=version, field_count=count, acquisitions=[{"id": 0, "maximumfieldcount": count}])
    report = check_attributes(document)
    pointers = [m.pointer for m in report.messages if m.tier == "schema"]
    assert pointers == ["/plate/field_count", "/plate/acquisitions/0/maximumfieldcount"]
    good = plate(version=version, field_count=1, acquisitions=[{"id": 0, "maximumfieldcount": 1.0}])
    assert check_attributes(good).valid


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_ids_of_old_acquisitions_must_not_be_negative(version: str) -> None:
    def pointers(number: Any) -> list[str]:
        report = check_attributes(plate(version=version, acquisitions=[{"id": number}]))
        return [m.pointer for m in report.messages if m.tier == "schema"]

    assert pointers(0) == pointers(7) == []
    assert pointers(-1) == pointers(0.5) == pointers("0") == ["/plate/acquisitions/0/id"]


@pytest.mark.parametrize("version", ["0.1", "0.2", "0.3"])
def test_acquisitions_of_old_wells_must_be_integers(version: str) -> None:
    def valid(number: Any) -> bool:
        images = [{"path": "0", "acquisition": number}]
        return check_attributes({"well": {"version": version, "images": images}}).valid

    assert valid(0)
    assert valid(-3)
    assert not valid(1.5)
    assert not valid("0")


def test_pointers_escape_keys() -> None:
    assert pointer("a/b", "c~d", 0, "~1") == "/a~1b/c~0d/0/~01"
    assert pointer_exists({"a/b": {"c~d": [{"~1": 3}]}}, pointer("a/b", "c~d", 0, "~1"))


def test_values_in_messages_are_bounded() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert len(short_repr(deep)) <= MAX_VALUE
    assert len(short_repr(["x" * 10**6] * 1000)) <= MAX_VALUE
    assert short_repr(10**5000) == "<int>"
    assert short_repr({"a": 1.5, "b": [None, True]}) == "{'a': 1.5, 'b': [None, True]}"


@pytest.mark.parametrize("depth", [100, 500, 900, 5000])
def test_deeply_nested_metadata_is_checked(depth: int) -> None:
    deep: Any = 1
    for _ in range(depth):
        deep = {"a": deep}
    for attributes in (image(metadata=deep), label(colors=[deep]), {"multiscales": deep}, {"labels": deep}):
        parse(attributes)
        report = check_attributes(attributes)
        assert all(len(message.message) < 1000 for message in report.messages)


def test_large_lists_are_checked() -> None:
    count = 30_000
    colors = [{"label-value": n} for n in range(count)]
    names = [{"name": str(n)} for n in range(count)]
    wells = [{"path": f"{n}/{n}", "rowIndex": n, "columnIndex": n} for n in range(count)]
    assert check_attributes(label(colors=colors)).valid
    multiscale = check_attributes(plate(version="0.3", rows=names, columns=names, wells=wells))
    assert multiscale.valid
    assert len(parse({"plate": {"rows": [], "columns": [], "wells": wells}}).plate.rows) == count  # type: ignore[union-attr]
    check_attributes({"labels": [str(n) for n in range(count)]})
    assert len(parse({"labels": ["a"], "multiscales": [3] * count}).problems) <= 200


UNEXPECTED_VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    1e308,
    10**400,
    "",
    "x",
    "../..",
    [],
    [[]],
    [{}],
    {},
    {"type": {}},
]


def mutations(document: Any) -> Iterator[Any]:
    """Yield the document with each value replaced by unexpected values or deleted."""

    def pointers(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        yield path
        members = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        for key, member in members:
            yield from pointers(member, (*path, key))

    for path in pointers(document, ()):
        if not path:
            continue
        for unexpected in (*UNEXPECTED_VALUES, ...):
            changed = copy.deepcopy(document)
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            if unexpected is ...:
                del holder[path[-1]]
            else:
                holder[path[-1]] = copy.deepcopy(unexpected)
            yield changed


FULL: dict[str, dict[str, Any]] = {
    "image": {
        **image(),
        "omero": {
            "channels": [
                {"color": "00FF00", "label": "a", "window": {"start": 0, "end": 1, "min": 0, "max": 1}}
            ],
            "rdefs": {"defaultT": 0, "defaultZ": 0, "model": "color"},
        },
    },
    "label": label(colors=[RED], properties=[{"label-value": 1, "a": "b"}], source={"image": "../.."}),
    "plate": plate(acquisitions=[{"id": 0, "name": "a", "maximumfieldcount": 1}], field_count=1, name="p"),
    "well": {"well": {"version": "0.4", "images": [{"path": "0", "acquisition": 0}]}},
    "labels": {"labels": ["a"]},
    "series": {"bioformats2raw.layout": 3, "series": ["0", "1"]},
    "0.3": {"multiscales": [{"version": "0.3", "axes": ["y", "x"], "datasets": [{"path": "0"}]}]},
    "0.6": {
        "multiscales": [
            {
                "coordinateSystems": [
                    {"name": name, "axes": [{"name": "y"}, {"name": "x", "discrete": True, "longName": "X"}]}
                    for name in ("s", "w")
                ],
                "datasets": [
                    {
                        "path": "0",
                        "coordinateTransformations": [
                            {
                                "type": "sequence",
                                "input": {"path": "0"},
                                "output": {"name": "s"},
                                "transformations": [
                                    {"type": "scale", "scale": [1, 1]},
                                    {"type": "translation", "translation": [1, 1]},
                                ],
                            }
                        ],
                    }
                ],
                "coordinateTransformations": [
                    {"input": {"name": "s"}, "output": {"name": "w", "path": None}, **step}
                    for step in (
                        {"type": "affine", "affine": [[1, 2, 3], [4, 5, 6]]},
                        {"type": "affine", "path": "0"},
                        {"type": "projectAxis", "droppedInputs": [0], "createdOutputs": [0]},
                        {"type": "displacements", "path": "a", "interpolation": "linear"},
                        {
                            "type": "bijection",
                            "forward": {"type": "identity"},
                            "inverse": {"type": "identity"},
                        },
                        {
                            "type": "byDimension",
                            "transformations": [
                                {
                                    "transformation": {"type": "identity"},
                                    "inputAxes": [0, 1],
                                    "outputAxes": [1, 0],
                                }
                            ],
                        },
                    )
                ],
            }
        ]
    },
    "scene": {
        "scene": {
            "coordinateSystems": [{"name": "w", "axes": [{"name": "y"}, {"name": "x"}]}],
            "coordinateTransformations": [
                {
                    "type": "translation",
                    "input": {"path": "a", "name": "s"},
                    "output": {"name": "w"},
                    "translation": [1, 2],
                }
            ],
        }
    },
}


class Node:
    """A group with attributes and one array, without a store, because thousands of them are created."""

    zarr_format = 2

    def __init__(self, attributes: dict[str, Any], array: zarrfs.Array) -> None:
        self.attrs = attributes
        self._array = array

    def __getitem__(self, path: str) -> Any:
        if path.strip("/") in ("0", "a", "A/1"):
            return self._array
        raise KeyError(path)

    def known_names(self, listing: Any = None) -> list[str]:
        return ["0"]

    def members(self) -> Iterator[tuple[str, Any]]:
        yield "0", self._array


@pytest.mark.parametrize("name", FULL)
@pytest.mark.parametrize("as_0_5", [False, True])
def test_unexpected_values_raise_no_other_error_than_zarr_errors(name: str, as_0_5: bool) -> None:
    array = zarrfs.array([[1, 2], [3, 4]], chunks=(2, 2))
    document = as_version_0_5(FULL[name]) if as_0_5 else FULL[name]
    for attributes in mutations(document):
        parse(attributes)
        check_attributes(attributes)
        node: Any = Node(attributes, array)
        check_node(node)
        dataset = describe(node)
        with suppress(ZarrError):
            opened = dataset.open_image()
            dataset.open_labels(opened)


def test_transformations_of_an_invalid_type_are_reported() -> None:
    for kind in ({}, [], None, 3):
        attributes = image(steps=[{"type": kind, "scale": [1, 1]}])
        report = check_attributes(attributes)
        assert not report.valid
        assert all(pointer_exists(attributes, message.pointer) for message in report.messages)
    assert "no scale" in INVALID
