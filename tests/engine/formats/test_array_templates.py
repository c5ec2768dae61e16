"""Documents that differ in their attributes only are interpreted once, with the same results as without templates."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from zarrfs.engine.codecs import registry
from zarrfs.engine.formats import v3
from zarrfs.engine.formats.json_document import parse_object
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, ZarrError

LIMIT = 1 << 20


def document(**changes: Any) -> dict[str, Any]:
    store = MemoryStore()
    zarrfs.create_array(store, data=np.arange(6, dtype="u2").reshape(2, 3), chunks=(1, 3))
    parsed: dict[str, Any] = json.loads(bytes(store.get("zarr.json") or b""))
    return {**parsed, **changes}


def outcome(data: Any, parse: Any) -> Any:
    """Return the specification with the members of its document in their order, or the error."""
    try:
        spec = parse(data)
        return spec, json.dumps(spec.document)
    except ZarrError as error:
        return type(error), str(error)


def direct(data: bytes) -> Any:
    return v3.parse_node(parse_object(data, "here", LIMIT), "here")


def with_templates(data: bytes) -> Any:
    return v3._parse_document(data, "here", LIMIT)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(
    attributes=st.lists(
        st.dictionaries(st.text(max_size=8), JSON_VALUES, max_size=3), min_size=2, max_size=4
    ),
    position=st.integers(0, 9),
    indent=st.sampled_from([None, 2]),
    ascii_only=st.booleans(),
)
def test_the_results_are_those_without_templates(
    attributes: list[dict[str, Any]], position: int, indent: int | None, ascii_only: bool
) -> None:
    plain = {key: value for key, value in document().items() if key != "attributes"}
    for each in attributes:
        items = [*plain.items()]
        items.insert(position, ("attributes", each))
        data = json.dumps(dict(items), indent=indent, ensure_ascii=ascii_only).encode(
            "utf-8", "surrogatepass"
        )
        assert outcome(data, with_templates) == outcome(data, direct)


TEXT = json.dumps(document(attributes={"a": 1})).encode()


@pytest.mark.parametrize(
    "data",
    [
        TEXT.replace(b'{"a": 1}', b'{"a": 1, "a": 2}'),
        TEXT.replace(b'{"a": 1}', b"[]"),
        TEXT.replace(b'{"a": 1}', b'{"a": 1'),
        TEXT.replace(b'{"a": 1}', b'{"a": ' + b"[" * 300 + b"]" * 300 + b"}"),
        TEXT.replace(b'{"a": 1}', b'{"a": 1} x'),
        TEXT.replace(b'{"a": 1}', b'{"a": NaN}'),
        TEXT.replace(b'{"a": 1}', b'{"a": \xff}'),
        TEXT.replace(b'{"a": 1}', b""),
        TEXT.replace(b'"shape"', b'"attributes": {}, "shape"'),
        TEXT.replace(b'"shape"', b'"\\u0061ttributes": {}, "shape"'),
        TEXT.replace(b"[2, 3]", b"[2, 3, 4]"),
        TEXT.replace(b'"uint16"', b'"uint15"'),
        b"\xef\xbb\xbf" + TEXT,
        TEXT + b" ",
    ],
)
def test_unusual_documents_have_the_results_without_templates(data: bytes) -> None:
    for each in (TEXT, data, data, TEXT):
        found, expected = outcome(each, with_templates), outcome(each, direct)
        assert repr(found) == repr(expected)


def listed(each: dict[str, Any]) -> Any:
    return v3._parse_known(each, "here")


def test_a_document_without_attributes_is_interpreted_once() -> None:
    plain = {key: value for key, value in document().items() if key != "attributes"}
    data = json.dumps(plain).encode()
    first, second = with_templates(data), with_templates(data)
    assert first == second == direct(data)
    assert first.codecs is second.codecs
    assert (first.attributes, first.document) == ({}, plain)
    assert first.attributes is not second.attributes


def test_documents_of_consolidated_metadata_are_interpreted_once() -> None:
    documents = [document(attributes={"a": [1]}), document(attributes={}), document()]
    del documents[2]["attributes"]
    found = [listed(each) for each in documents * 2]
    assert found == [v3.parse_node(each, "here") for each in documents * 2]
    assert all(spec.codecs is found[0].codecs for spec in (found[1], found[3], found[4]))
    assert found[5].codecs is found[2].codecs
    assert [spec.attributes for spec in found[:3]] == [{"a": [1]}, {}, {}]


@pytest.mark.parametrize(
    "changes",
    [
        {"shape": [2, 4]},
        {"shape": [2.0, 3]},
        {"shape": [True, 3]},
        {"fill_value": False},
        {"fill_value": 0.0},
        {"fill_value": "0"},
        {"attributes": []},
        {"attributes": {"dimension_units": ["m", "s"]}},
        {"unknown": {"must_understand": False}},
        {"unknown": 1},
    ],
)
def test_unusual_documents_of_consolidated_metadata_have_the_results_without_templates(changes: Any) -> None:
    def interpreted(each: dict[str, Any]) -> Any:
        return v3.parse_node(each, "here")

    for each in (document(), document(**changes), document(**changes), document()):
        assert repr(outcome(each, listed)) == repr(outcome(each, interpreted))


def test_a_nested_key_named_attributes_is_not_the_member_of_the_document() -> None:
    chunks = {"name": "regular", "configuration": {"chunk_shape": [1, 3]}, "attributes": {"a": 1}}
    other = {key: value for key, value in document(chunk_grid=chunks).items() if key != "attributes"}
    for value in ({"a": 1}, {"a": 2}):
        data = json.dumps({**other, "chunk_grid": {**chunks, "attributes": value}}).encode()
        assert outcome(data, with_templates) == outcome(data, direct)


def test_arrays_of_one_template_share_their_parts_and_no_attributes() -> None:
    first = with_templates(json.dumps(document(attributes={"a": [1]})).encode())
    second = with_templates(json.dumps(document(attributes={"a": [2]})).encode())
    assert isinstance(first, ArraySpec)
    assert isinstance(second, ArraySpec)
    assert first.codecs is second.codecs
    assert (first.attributes, second.attributes) == ({"a": [1]}, {"a": [2]})
    assert second.document["attributes"] == {"a": [2]}


def test_metadata_of_an_array_can_be_changed_without_an_effect_on_others() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    for name in "ab":
        root.create_array(name, data=np.zeros(1), attributes={"name": name})
    opened = zarrfs.open_group(store)
    first, second = opened["a"], opened["b"]
    first.metadata["codecs"].clear()
    assert second.metadata["codecs"]
    assert first.metadata["codecs"]


def test_a_registered_codec_is_used_for_known_documents() -> None:
    data = json.dumps(document(attributes={"b": 1})).encode()
    with_templates(data)
    original = registry.codec_class("bytes")
    assert original is not None

    class Refused(original):  # type: ignore[misc, valid-type]
        @classmethod
        def from_configuration(cls, configuration: Any) -> Any:
            raise MetadataError("refused")

    registry.register_codec("bytes", Refused)
    try:
        with pytest.raises(MetadataError, match="refused"):
            with_templates(data)
    finally:
        registry.register_codec("bytes", original)
    assert isinstance(with_templates(data), ArraySpec)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_arrays_have_their_own_attributes_and_names(zarr_format: int) -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format=zarr_format)
    for number, dimensions in enumerate([["y", "x"], None, ["x", "y"], ["one"], "yx"]):
        array = root.create_array(f"a{number}", shape=(4, 6), chunks=(2, 3), dtype="u2")
        array.attrs.update({"number": number, "_ARRAY_DIMENSIONS": dimensions})
    zarrfs.consolidate_metadata(root)
    plain = zarrfs.open_group(store, use_consolidated=False)
    listed = zarrfs.open_group(store, use_consolidated=True)
    for name in plain:
        assert listed[name].spec == plain[name].spec
    templates = {name: id(listed.array_templates()(name)) for name in plain}
    if zarr_format == 2:
        # The names of the dimensions belong to the template.
        assert len({templates[name] for name in ("a0", "a1", "a2")}) == 3
    else:
        assert len(set(templates.values())) == 1
    assert listed.array_templates()("a0") is not None
    assert listed.array_templates()("missing") is None
    assert plain.array_templates()("a0") is None
    listed["a0"].metadata["shape"].append(1)
    assert listed["a1"].metadata["shape"] == [4, 6]


def test_a_v2_array_without_a_separator_has_no_template() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store, zarr_format=2)
    for name, changes in {"a": {"dimension_separator": None}, "b": {"attributes": {"c": 1}}}.items():
        root.create_array(name, shape=(4, 6), chunks=(2, 3), dtype="u2")
        key = f"{name}/.zarray"
        store.set(key, json.dumps(json.loads(bytes(store.get(key) or b"")) | changes).encode())
    zarrfs.consolidate_metadata(root)
    listed = zarrfs.open_group(store, use_consolidated=True)
    for name in "ab":
        assert listed[name].spec == zarrfs.open_group(store, use_consolidated=False)[name].spec
        assert (listed.array_templates()(name) is None) == (name == "a")
    assert listed["b"].metadata["attributes"] == {"c": 1}
