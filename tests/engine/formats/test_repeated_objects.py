"""Documents in which the same objects occur many times are parsed to the same values as by the json module."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.formats import repeated_objects
from zarrfs.engine.formats.json_document import MAX_DEPTH, parse_json, parse_shared
from zarrfs.engine.formats.repeated_objects import MARKER, MIN_OCCURRENCES, copied, parse_shortened, shorten
from zarrfs.errors import MetadataError

ARRAY = {"zarr_format": 3, "shape": [1, 2.5], "codecs": [{"name": "bytes"}], "attributes": {"a": None}}


def entries(count: int) -> dict[str, Any]:
    return {f"group/array{i}": ARRAY for i in range(count)}


@pytest.fixture(autouse=True)
def short_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_objects, "MIN_DOCUMENT_LENGTH", 0)


@pytest.mark.parametrize("indent", [None, 2])
def test_equal_objects_are_parsed_once(indent: int | None) -> None:
    document = {"metadata": {"group": {"zarr_format": 3}, **entries(50), "other": {**ARRAY, "shape": [7]}}}
    text = json.dumps(document, indent=indent)
    parts = shorten(text)
    assert parts is not None
    assert len(parts) == 2
    assert len(parts[-1]) < len(text) / 2
    value = parse_shared(text.encode(), "here")
    assert value == document
    members = value["metadata"]
    assert members["group/array0"] is members["group/array49"]
    assert members["group/array0"] is not members["other"]
    alone = parse_json(text.encode(), "here")["metadata"]
    assert alone["group/array0"] is not alone["group/array1"]


def test_objects_inside_repeated_objects() -> None:
    inner = {"name": "inner"}
    outer = {"zarr_format": 3, "codecs": [inner, inner], "more": inner}
    members = {f"a{i}": inner for i in range(20)} | {f"b{i}": outer for i in range(20)}
    text = json.dumps({"metadata": members})
    parts = shorten(text)
    assert parts is not None
    assert len(parts) == 3
    assert parse_shared(text.encode(), "here") == {"metadata": members}


def test_no_two_parts_of_a_copy_are_the_same_object() -> None:
    shared = {"list": [1, "a", None, True, 2.5]}
    value = copied({"x": shared, "y": [shared, shared]})
    assert value == {"x": shared, "y": [shared, shared]}
    assert len({id(part) for part in (shared, value["x"], *value["y"])}) == 4
    assert value["x"]["list"] is not value["y"][0]["list"]


names = st.text(st.sampled_from('a,:{}[] m"'), max_size=4)
values = st.recursive(
    st.none() | st.integers(0, 2) | names,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)


@given(
    st.lists(st.dictionaries(names, values, max_size=3), min_size=1, max_size=3),
    st.lists(st.tuples(names, values), max_size=4),
    st.sampled_from([None, 1]),
    st.sampled_from([(",", ":"), (", ", ": ")]),
)
def test_values_are_those_of_the_json_module(
    repeated: list[dict[str, Any]],
    others: list[tuple[str, Any]],
    indent: int | None,
    separators: tuple[str, str],
) -> None:
    members: dict[str, Any] = {}
    for i in range(MIN_OCCURRENCES + 1):
        members |= {f"m{i}.{j}": value for j, value in enumerate(repeated)}
    document = {"attributes": [repeated, dict(others)], "metadata": members | dict(others)}
    text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False)
    parts = shorten(text)
    if parts is not None:
        assert parse_shortened(parts, dict) == document
    assert parse_shared(text.encode(), "here") == document


@given(st.data())
def test_damaged_documents_are_not_valid(data: st.DataObject) -> None:
    """A document with one changed, removed or repeated part is valid exactly if the json module reads it."""
    text = json.dumps({"metadata": entries(MIN_OCCURRENCES + 1)}, separators=(",", ":"))
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(start + 12, len(text))))
    put = data.draw(st.text(st.sampled_from('{}[]",:a1 m'), max_size=3))
    damaged = text[:start] + put + text[end:]
    parts = shorten(damaged)
    try:
        expected = json.loads(damaged)
    except ValueError:
        if parts is not None:
            with pytest.raises(ValueError):  # noqa: PT011 - any
                parse_shortened(parts, dict)
    else:
        if parts is not None:
            assert parse_shortened(parts, dict) == expected


def test_errors_name_the_place_in_the_document() -> None:
    text = json.dumps({"metadata": entries(20)}, indent=1)
    with pytest.raises(MetadataError, match=f"line {text.count(chr(10)) + 1}, column 1"):
        parse_shared((text[:-1] + "]").encode(), "here")
    twice = text.replace('"zarr_format": 3', '"zarr_format": 3, "shape": 1')
    with pytest.raises(MetadataError, match='"shape" occurs twice'):
        parse_shared(twice.encode(), "here")
    member = text.replace("array7", "array8")
    with pytest.raises(MetadataError, match='"group/array8" occurs twice'):
        parse_shared(member.encode(), "here")


def test_the_depth_is_limited_inside_repeated_objects() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    text = json.dumps({"metadata": {f"a{i}": {"deep": deep} for i in range(20)}})
    with pytest.raises(MetadataError, match=f"nested {MAX_DEPTH + 2} levels deep"):
        parse_shared(text.encode(), "here")


def test_a_document_with_the_marker_is_parsed_as_usual() -> None:
    members = entries(20) | {"marked": {MARKER: 0}}
    text = json.dumps({"metadata": members})
    assert shorten(text) is None
    assert parse_shared(text.encode(), "here") == {"metadata": members}
    escaped = text.replace(MARKER, "\\u007a" + MARKER[1:])
    assert shorten(escaped) is None
    assert parse_shared(escaped.encode(), "here") == {"metadata": members}


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_members_of_consolidated_metadata_share_nothing_that_can_be_changed(
    tmp_path: Path, zarr_format: int
) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr", zarr_format=zarr_format)
    for i in range(20):
        group.create_array(f"a{i}", shape=(4,), dtype="u1", attributes={"list": [1]})
    zarrfs.consolidate_metadata(tmp_path / "g.zarr")
    opened = zarrfs.open_group(tmp_path / "g.zarr", mode="r", use_consolidated=True)
    first, second = opened["a1"], opened["a2"]
    first.attrs["list"].append(2)
    assert second.attrs["list"] == [1]
    assert opened["a3"].attrs["list"] == [1]
    metadata = opened.metadata
    if zarr_format == 3:
        listed = metadata["consolidated_metadata"]["metadata"]
        listed["a1"]["attributes"]["list"].append(2)
        assert listed["a2"]["attributes"]["list"] == [1]
    assert str(opened.tree()).count("(4,) uint8") == 20
