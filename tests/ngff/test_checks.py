"""The three tiers of the check on valid and invalid documents. The cases follow the examples of the specification."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from tests.ngff.test_parse import JSON, KEYS, V04
from zarrfs.cli.check import command
from zarrfs.ngff import Report, check_attributes, check_node

pytest.importorskip("yaozarrs", reason="the model library of the schema tier is not installed")


def space(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": "space", "unit": "micrometer", **more}


YX = [space("y"), space("x")]
TIME, CHANNEL = {"name": "t", "type": "time"}, {"name": "c", "type": "channel"}
MISSING = object()


def scale(*numbers: Any) -> dict[str, Any]:
    return {"type": "scale", "scale": list(numbers)}


def translation(*numbers: Any) -> dict[str, Any]:
    return {"type": "translation", "translation": list(numbers)}


def image(axes: Any = None, steps: Any = None, **changes: Any) -> dict[str, Any]:
    axes = YX if axes is None else axes
    steps = [scale(*[1] * len(axes))] if steps is None else steps
    multiscale = {
        "version": "0.4",
        "axes": axes,
        "datasets": [{"path": "0", "coordinateTransformations": steps}],
        **changes,
    }
    return {"multiscales": [{key: value for key, value in multiscale.items() if value is not MISSING}]}


def omero(**changes: Any) -> dict[str, Any]:
    channel = {
        "color": "00FF00",
        "label": "x",
        "active": True,
        "window": {"start": 0, "end": 1, "min": 0, "max": 2},
        **changes,
    }
    channel = {key: value for key, value in channel.items() if value is not MISSING}
    return {**image(), "omero": {"channels": [channel]}}


def plate(**changes: Any) -> dict[str, Any]:
    parts = {
        "rows": [{"name": "1"}],
        "columns": [{"name": "A"}],
        "wells": [{"path": "1/A", "rowIndex": 0, "columnIndex": 0}],
        **changes,
    }
    return {"plate": {key: value for key, value in parts.items() if value is not MISSING}}


def label(**parts: Any) -> dict[str, Any]:
    return {**image(), "image-label": parts}


VALID = {
    "plain": image(),
    "without version": image(version=MISSING),
    "custom axis type": image([{"name": "angle", "type": "custom"}, *YX]),
    "untyped axis": image([{"name": "angle"}, *YX]),
    "unknown unit": image([space("y", unit="micron"), space("x")]),
    "scale too short": image([TIME, *YX], [scale(1, 1)]),
    "axes out of order": image([*YX, CHANNEL]),
    "two time axes": image([TIME, {"name": "u", "type": "time"}, *YX]),
    "translation": image(steps=[scale(1, 1), translation(3, 4)]),
    "whole pyramid transformed": image(coordinateTransformations=[scale(1, 2)]),
    "unknown keys": image(something=5),
    "color that is none": omero(color="green"),
    "channel without label": omero(label=MISSING),
    "window upside down": omero(window={"start": 9, "end": 1, "min": 0, "max": 2}),
    "label colors": label(colors=[{"label-value": 1, "rgba": [0, 0, 0, 0]}]),
    "label properties": label(properties=[{"label-value": 1}]),
    "empty image-label": label(),
    "plate": plate(),
    "plate with acquisitions": plate(acquisitions=[{"id": 0}]),
    "row name of letters and digits": plate(
        rows=[{"name": "A1"}], wells=[{"path": "A1/A", "rowIndex": 0, "columnIndex": 0}]
    ),
    "well": {"well": {"images": [{"path": "0", "acquisition": 1}]}},
    "labels": {"labels": ["cells"]},
    "bioformats2raw": {"bioformats2raw.layout": 3},
}
INVALID = {
    "no multiscales": {"multiscales": []},
    "no axes": image(axes=[]),
    "axes missing": {"multiscales": [{"version": "0.4", "datasets": image()["multiscales"][0]["datasets"]}]},
    "one axis": image([space("y")]),
    "six axes": image([{"name": "a", "type": "b"}, TIME, CHANNEL, space("z"), *YX]),
    "one axis of space": image([TIME, CHANNEL, space("x")]),
    "no axis of space": image([TIME, CHANNEL]),
    "no axis of space, and out of order": image([CHANNEL, TIME]),
    "four axes of space": image([space("w"), space("z"), *YX]),
    "axis without name": image([{"type": "space"}, space("x")]),
    "twice the same axis": image([space("x"), space("x")]),
    "axes as names": image(["y", "x"]),
    "no datasets": image(datasets=[]),
    "datasets missing": image(datasets=MISSING),
    "path missing": image(datasets=[{"coordinateTransformations": [scale(1, 1)]}]),
    "path a number": image(datasets=[{"path": 0, "coordinateTransformations": [scale(1, 1)]}]),
    "transformations missing": image(datasets=[{"path": "0"}]),
    "transformations empty": image(steps=[]),
    "no scale": image(steps=[translation(1, 1)]),
    "two scales": image(steps=[scale(1, 1), scale(1, 1)]),
    "a scale in a translation": image(steps=[{"type": "translation", "scale": [1, 1]}]),
    "numbers as text": image(steps=[scale("1", "1")]),
    "version of another": image(version="0.1.1a"),
    "name a number": image(name=5),
    "twice the same multiscale": {"multiscales": image()["multiscales"] * 2},
    "omero without channels": {**image(), "omero": {}},
    "channel without window": omero(window=MISSING),
    "channel without color": omero(color=MISSING),
    "color a number": omero(color=255),
    "window without start": omero(window={"end": 1, "min": 0, "max": 2}),
    "window of text": omero(window={"start": "0", "end": 1, "min": 0, "max": 2}),
    "no colors in the list": label(colors=[]),
    "no properties in the list": label(properties=[]),
    "color without label": label(colors=[{"rgba": [0, 0, 0, 0]}]),
    "property without label": label(properties=[{"value": "foo"}]),
    "rgba of three": label(colors=[{"label-value": 1, "rgba": [0, 0, 0]}]),
    "rgba above 255": label(colors=[{"label-value": 1, "rgba": [0, 0, 0, 500]}]),
    "twice the same color": label(colors=[{"label-value": 1, "rgba": [0, 0, 0, 0]}] * 2),
    "plate without rows": plate(rows=MISSING),
    "plate with no rows": plate(rows=[]),
    "plate with no columns": plate(columns=[]),
    "plate without wells": plate(wells=MISSING),
    "wells an object": plate(wells={}),
    "twice the same row": plate(rows=[{"name": "1"}] * 2),
    "column without name": plate(columns=[{"concentration": 10}]),
    "column of other characters": plate(columns=[{"name": "A-1"}]),
    "well path of one part": plate(wells=[{"path": "1A", "rowIndex": 0, "columnIndex": 0}]),
    "well path of three parts": plate(wells=[{"path": "p/1/A", "rowIndex": 0, "columnIndex": 0}]),
    "well without rowIndex": plate(wells=[{"path": "1/A", "columnIndex": 0}]),
    "acquisition without id": plate(acquisitions=[{"maximumfieldcount": 1}]),
    "acquisition id of text": plate(acquisitions=[{"id": "0"}]),
    "maximumfieldcount 0": plate(acquisitions=[{"id": 0, "maximumfieldcount": 0}]),
    "starttime of text": plate(acquisitions=[{"id": 0, "starttime": "2022-05-13"}]),
    "field_count 0": plate(field_count=0),
    "plate version": plate(version="foo"),
    "well without images": {"well": {"images": []}},
    "well path of other characters": {"well": {"images": [{"path": "0/0"}]}},
}


def as_version_0_5(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document in the form of version 0.5."""
    parts = json.loads(json.dumps(document))
    for holder in [*parts.get("multiscales", []), *[v for v in parts.values() if isinstance(v, dict)]]:
        if isinstance(holder, dict) and holder.get("version") == "0.4":
            del holder["version"]
    return {"ome": {"version": "0.5", **parts}}


def reported_tiers(report: Report) -> set[str]:
    return {message.tier for message in report.messages}


def pointer_exists(attributes: Any, location: str) -> bool:
    """Return whether a JSON pointer refers to an existing value."""
    for part in location.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        try:
            attributes = attributes[int(part)] if isinstance(attributes, list) else attributes[part]
        except (KeyError, IndexError, ValueError, TypeError):
            return False
    return True


@pytest.mark.parametrize("name", VALID)
@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_valid_documents(name: str, version: str) -> None:
    report = check_attributes(VALID[name] if version == "0.4" else as_version_0_5(VALID[name]))
    assert report.valid, report.messages
    assert report.version == version
    assert "schema" not in reported_tiers(report)


INVALID_CASES = [(name, version) for name in INVALID for version in ("0.4", "0.5")]


@pytest.mark.parametrize(
    ("name", "version"), [b for b in INVALID_CASES if "version" not in b[0] or b[1] == "0.4"]
)
def test_invalid_documents_and_their_pointers(name: str, version: str) -> None:
    attributes = INVALID[name] if version == "0.4" else as_version_0_5(INVALID[name])
    report = check_attributes(attributes)
    assert not report.valid
    assert "schema" in reported_tiers(report)
    for message in report.messages:
        assert pointer_exists(attributes, message.pointer), message


def test_version_0_5_requires_the_version_member() -> None:
    document = as_version_0_5(image())
    del document["ome"]["version"]
    report = check_attributes(document)
    assert not report.valid
    assert report.messages[0].pointer == "/ome"


STEPS = "/multiscales/0/datasets/0/coordinateTransformations"
PATH_OUTSIDE_GROUP = image(datasets=[{"path": "../0", "coordinateTransformations": [scale(1, 1)]}])
COARSE_FIRST = image(
    datasets=[
        {"path": "0", "coordinateTransformations": [scale(2, 2)]},
        {"path": "1", "coordinateTransformations": [scale(1, 1)]},
    ]
)
LABEL_TWICE = label(
    colors=[{"label-value": 1, "rgba": [0, 0, 0, 0]}, {"label-value": 1, "rgba": [1, 0, 0, 0]}]
)


def well(path: str, row: int) -> dict[str, Any]:
    return plate(
        rows=[{"name": "1"}, {"name": "2"}], wells=[{"path": path, "rowIndex": row, "columnIndex": 0}]
    )


@pytest.mark.parametrize(
    ("attributes", "location", "text"),
    [
        (VALID["scale too short"], f"{STEPS}/0/scale", "expected 3"),
        (VALID["axes out of order"], "/multiscales/0/axes", "ordered by type"),
        (VALID["two time axes"], "/multiscales/0/axes", "at most one axis of type 'time'"),
        (VALID["color that is none"], "/omero/channels/0/color", "6 hexadecimal digits"),
        (VALID["window upside down"], "/omero/channels/0/window", "start 9 is greater than end 1"),
        (image(steps=[translation(1, 1), scale(1, 1)]), STEPS, "after the scale"),
        (image(steps=[scale(-1, 1)]), f"{STEPS}/0/scale", "must be positive"),
        (image(steps=[scale(1, 1), translation(1, 1), translation(1, 1)]), STEPS, "one translation, found 2"),
        (image([space("x"), space("x", unit="meter")]), "/multiscales/0/axes", "must be unique"),
        (PATH_OUTSIDE_GROUP, "/multiscales/0/datasets/0/path", "points outside"),
        (COARSE_FIRST, "/multiscales/0/datasets", "from fine to coarse"),
        (LABEL_TWICE, "/image-label/colors", "label 1 occurs more than once"),
        (well("1/A", 7), "/plate/wells/0/rowIndex", "there are 2 rows"),
        (well("1/A", 1), "/plate/wells/0/rowIndex", "the path has '1'"),
        (well("9/A", 0), "/plate/wells/0/path", "'9' is not one of the rows"),
        (plate(acquisitions=[{"id": 1}, {"id": 1}]), "/plate/acquisitions", "id 1 occurs more than once"),
        ({"labels": ["a", "a"]}, "/labels/1", "occurs more than once"),
    ],
)
def test_semantic_messages_do_not_make_a_document_invalid(
    attributes: dict[str, Any], location: str, text: str
) -> None:
    report = check_attributes(attributes)
    assert report.valid, report.messages
    messages = [(m.pointer, m.message) for m in report.messages if m.tier == "semantic"]
    assert any(pointer == location and text in message for pointer, message in messages), messages


def test_strict_messages_name_missing_recommended_members() -> None:
    def strict(attributes: dict[str, Any]) -> list[tuple[str, str]]:
        return [(m.pointer, m.message) for m in check_attributes(attributes).messages if m.tier == "strict"]

    complete = image(name="a", type="b", metadata={})
    assert strict(complete) == []
    assert [message for _, message in strict(image(version=MISSING))] == [
        f"recommended member '{key}' is missing" for key in ("version", "metadata", "type", "name")
    ]
    assert ("/multiscales/0/axes/0/unit", "'micron' is not a UDUNITS-2 unit such as 'micrometer'") in strict(
        VALID["unknown unit"]
    )
    assert strict({"well": {"images": [{"path": "0"}]}}) == [
        ("/well", "recommended member 'version' is missing")
    ]
    assert strict(as_version_0_5(plate())) == [("/ome/plate", "recommended member 'name' is missing")]
    assert ("/image-label", "recommended member 'colors' is missing") in strict(label())


OLD = {"multiscales": [{"version": "0.1", "datasets": [{"path": "0"}]}]}
OLD_AXES = {"multiscales": [{"version": "0.3", "axes": ["z", "y", "x"], "datasets": [{"path": "0"}]}]}


@pytest.mark.parametrize(
    ("attributes", "version", "valid"),
    [
        (OLD, "0.1", True),
        ({"multiscales": [{"version": "0.1", "datasets": []}]}, "0.1", False),
        ({"multiscales": [{"version": "0.2"}]}, "0.2", False),
        ({"multiscales": [{"version": "0.2", "datasets": [{"path": 3}]}]}, "0.2", False),
        (OLD_AXES, "0.3", True),
        ({"multiscales": [{**OLD_AXES["multiscales"][0], "axes": ["z", "w"]}]}, "0.3", False),
        ({"multiscales": [{"version": "0.3", "datasets": [{"path": "0"}]}]}, "0.3", False),
        ({**OLD, "omero": {"channels": [{"color": "FF0000"}]}}, "0.1", False),
        ({**OLD, "omero": omero()["omero"]}, "0.1", True),
        ({"plate": {**plate()["plate"], "version": "0.2"}}, "0.2", True),
        ({"plate": {"rows": [], "version": "0.2"}}, "0.2", False),
        ({"well": {"version": "0.2", "images": [{"path": "0"}]}}, "0.2", True),
        ({"well": {"version": "0.2", "images": []}}, "0.2", False),
        ({"multiscales": [{"datasets": [{"path": "0"}]}]}, "0.2", True),
    ],
)
def test_old_versions_are_checked_by_their_own_rules(attributes: Any, version: str, valid: bool) -> None:
    report = check_attributes(attributes)
    assert (report.version, report.valid) == (version, valid), report.messages


def test_drafts_and_missing_metadata_are_invalid_with_a_reason() -> None:
    draft = check_attributes({"ome": {"version": "0.6.dev1", "multiscales": []}})
    assert (draft.valid, draft.version) == (False, "0.6rc0")
    assert draft.messages[0].message == "expected version '0.6rc0', found '0.6.dev1'"
    later = check_attributes({"ome": {"version": "0.7", "multiscales": []}})
    assert (later.valid, later.version) == (False, "0.7")
    assert "later than OME-NGFF 0.6rc0" in later.messages[0].message
    nothing = check_attributes({"hello": 1})
    assert (nothing.valid, nothing.version) == (False, None)
    assert "no OME-NGFF metadata" in nothing.messages[0].message


@settings(max_examples=40)
@given(st.dictionaries(KEYS, JSON, max_size=6))
def test_arbitrary_documents_do_not_raise(attributes: dict[str, Any]) -> None:
    report = check_attributes(attributes)
    assert report.valid == ("schema" not in reported_tiers(report))


REPLACEMENTS: list[Any] = [{}, [], None, "\ud800", -1, True, 10**30, [{}]]


def mutations(value: Any, replace: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the document with each value in it, one at a time, replaced by each of REPLACEMENTS."""
    items: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:

        def replace_item(new: Any, key: Any = key) -> Any:
            changed = copy.copy(value)
            changed[key] = new
            return replace(changed)

        for replacement in REPLACEMENTS:
            yield replace_item(replacement)
        yield from mutations(item, replace_item)


@pytest.mark.parametrize("name", VALID)
def test_values_of_wrong_types_do_not_raise(name: str) -> None:
    for attributes in mutations(VALID[name], lambda document: document):
        check_attributes(attributes)


@pytest.mark.parametrize("old", [OLD, OLD_AXES], ids=["0.1", "0.3"])
def test_values_of_wrong_types_in_old_versions_do_not_raise(old: dict[str, Any]) -> None:
    for attributes in mutations(old, lambda document: document):
        check_attributes(attributes)


def test_messages_are_safe_to_display_and_short() -> None:
    report = check_attributes(image(steps=[{"type": "\x1b[31m" + "x" * 100_000}, scale(1, 1)]))
    assert report.messages
    for message in report.messages:
        assert message.message.isprintable()
        assert len(message.message) < 2000


def create_store(attributes: dict[str, Any], **arrays: dict[str, Any]) -> dict[str, bytes]:
    store: dict[str, bytes] = {}
    zarrfs.create_group(store, zarr_format=2, attributes=attributes)
    for name, options in arrays.items():
        options.setdefault("dimension_separator", "/")
        zarrfs.create_array(store, name.lstrip("_"), zarr_format=2, **options)
    return store


def semantic_messages(store: dict[str, bytes]) -> Iterator[tuple[str, str]]:
    report = check_node(zarrfs.open(store))
    return ((m.pointer, m.message) for m in report.messages if m.tier == "semantic")


def two_levels() -> dict[str, Any]:
    return image(
        datasets=[
            {"path": "0", "coordinateTransformations": [scale(1, 1)]},
            {"path": "1", "coordinateTransformations": [scale(2, 2)]},
        ]
    )


def test_a_consistent_store_has_no_semantic_findings() -> None:
    store = create_store(
        two_levels(), _0={"shape": (8, 8), "dtype": "uint8"}, _1={"shape": (4, 4), "dtype": "uint8"}
    )
    assert list(semantic_messages(store)) == []


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({"shape": (8, 8), "dtype": "u1"}, None, "array '1' does not exist"),
        ({"shape": (8, 8), "dtype": "u1"}, {"shape": (4, 4), "dtype": "u2"}, "must have the same data type"),
        (
            {"shape": (8, 8), "dtype": "u1"},
            {"shape": (4, 4, 4), "dtype": "u1"},
            "3 dimensions, but there are 2 axes",
        ),
        ({"shape": (4, 4), "dtype": "u1"}, {"shape": (8, 8), "dtype": "u1"}, "must not increase in size"),
    ],
)
def test_an_inconsistent_store_is_reported(
    first: dict[str, Any], second: dict[str, Any] | None, text: str
) -> None:
    store = create_store(two_levels(), _0=first, **({"_1": second} if second else {}))
    messages = list(semantic_messages(store))
    assert any(
        text in message and pointer == "/multiscales/0/datasets/1/path" for pointer, message in messages
    ), messages


def test_label_data_types_and_channel_counts_are_checked() -> None:
    store = create_store(label(colors=[{"label-value": 1}]), _0={"shape": (8, 8), "dtype": "f4"})
    assert any("must have an integer data type" in message for _, message in semantic_messages(store))
    store = create_store(
        {**image([CHANNEL, *YX]), "omero": omero()["omero"]}, _0={"shape": (3, 8, 8), "dtype": "u1"}
    )
    assert any(
        "1 channels are described, but the array has 3" in message for _, message in semantic_messages(store)
    )


def test_referenced_members_must_exist() -> None:
    assert any(
        "well '1/A' does not exist" in message for _, message in semantic_messages(create_store(plate()))
    )
    assert any(
        "image '0' does not exist" in m
        for _, m in semantic_messages(create_store({"well": {"images": [{"path": "0"}]}}))
    )
    assert any(
        "label image 'x' does not exist" in message
        for _, message in semantic_messages(create_store({"labels": ["x"]}))
    )


def test_the_zarr_format_must_match_the_version() -> None:
    store: dict[str, bytes] = {}
    zarrfs.create_group(store, attributes=image())
    assert any("Zarr format 2, found format 3" in message for _, message in semantic_messages(store))


def test_the_exit_code_of_the_command_depends_on_errors(tmp_path: Any) -> None:
    zarrfs.create_group(str(tmp_path / "good"), zarr_format=2, attributes=V04)
    zarrfs.create_group(str(tmp_path / "bad"), zarr_format=2, attributes=INVALID["no scale"])
    runner = CliRunner()
    good = runner.invoke(command, [str(tmp_path / "good"), "--json"])
    assert good.exit_code == 0
    report = json.loads(good.output)
    assert (report["valid"], report["version"]) == (True, "0.4")
    assert {"tier", "severity", "pointer", "message"} == set(report["messages"][0])
    bad = runner.invoke(command, [str(tmp_path / "bad")])
    assert bad.exit_code == 1
    assert "NOT valid" in bad.output
    assert "/multiscales/0/datasets/0/coordinateTransformations: expected exactly one scale" in bad.output


@pytest.mark.parametrize(
    ("step", "place", "message"),
    [
        ({"type": "scale"}, "", "'scale' is missing"),
        ({"type": "translation"}, "", "'translation' is missing"),
        ({"type": "rotation"}, "", "expected a scale or a translation, found {'type': 'rotation'}"),
        ("x", "", "expected a scale or a translation, found 'x'"),
        ({"type": "scale", "scale": ["x", 1]}, "/scale/0", "Input should be a valid number"),
    ],
)
def test_an_invalid_transformation_has_one_message(step: Any, place: str, message: str) -> None:
    # A second transformation of the type scale would have another message.
    steps = [step] if isinstance(step, str) or step["type"] == "scale" else [scale(1, 1), step]
    report = check_attributes(image(steps=steps))
    found = [(each.pointer, each.message) for each in report.messages if each.tier == "schema"]
    assert found == [
        (f"/multiscales/0/datasets/0/coordinateTransformations/{len(steps) - 1}{place}", message)
    ]


@pytest.mark.parametrize(("start", "valid"), [(4, True), (5, True), (6, False)])
def test_the_start_of_a_window_is_not_greater_than_its_end(start: int, valid: bool) -> None:
    channel = {"color": "ff0000", "window": {"min": 0, "start": start, "end": 5, "max": 9}}
    report = check_attributes({**image(), "omero": {"channels": [channel]}})
    assert any("greater than end" in each.message for each in report.messages) is not valid


def pyramid_messages(version: str, shapes: Any, *steps: Any, outer: Any = ()) -> list[Any]:
    """Return the errors of an image with levels of these shapes and transformations."""
    datasets = [
        {"path": str(number), "coordinateTransformations": list(each)} for number, each in enumerate(steps)
    ]
    changes = {"coordinateTransformations": list(outer)} if outer else {}
    document = image(datasets=datasets, **changes)
    store: dict[str, bytes] = {}
    attributes = document if version == "0.4" else as_version_0_5(document)
    root = zarrfs.create_group(store, zarr_format=2 if version == "0.4" else 3, attributes=attributes)
    for number, shape in enumerate(shapes):
        root.create_array(str(number), shape=shape, dtype="uint8")
    report = check_node(zarrfs.open(store))
    assert report.valid == (not any(message.is_error for message in report.messages))
    return [message for message in report.messages if message.is_error]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_levels_that_do_not_cover_the_same_region_are_errors(version: str) -> None:
    same = pyramid_messages(version, [(64, 64), (32, 64)], [scale(1, 1)], [scale(1, 1)])
    (message,) = same
    assert message.pointer.endswith("/multiscales/0/datasets/1")
    assert (
        "along axis 'y' 32 pixels of 1 cover 32, but 64 pixels of 1 of the level before cover 64"
        in message.message
    )
    shifted = [scale(2, 2), translation(0, 40)]
    (message,) = pyramid_messages(version, [(64, 64), (32, 32)], [scale(1, 1)], shifted)
    assert "along axis 'x' the first pixel is at 40" in message.message
    outer = [scale(3, 5)]
    assert pyramid_messages(version, [(64, 64), (32, 32)], [scale(1, 1)], [scale(2, 2)], outer=outer) == []


@pytest.mark.parametrize("size", [1, 2, 3, 61, 63, 64, 1023])
@pytest.mark.parametrize("factor", [2, 3, 4])
@pytest.mark.parametrize("rounded_up", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_levels_of_rounded_sizes_overlap(size: int, factor: int, rounded_up: bool, centred: bool) -> None:
    """With the positions of the specification, and with those of writers that state none."""
    sizes, steps = [size], [1]
    while sizes[-1] > 1 and len(sizes) < 6:
        length = sizes[-1] + (factor - 1 if rounded_up else 0)
        sizes.append(max(1, length // factor))
        steps.append(steps[-1] * factor)
    levels = [[scale(s, s), *([translation(*[(s - 1) / 2] * 2)] if centred else [])] for s in steps]
    assert pyramid_messages("0.5", [(n, n) for n in sizes], *levels) == []
