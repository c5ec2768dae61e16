"""JSON documents: accepted documents, refused documents, and error messages."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.engine.formats.json_document import (
    MAX_DEPTH,
    dump_json,
    parse_json,
    read_object,
    write_object,
)
from zarrfs.engine.stores.base import Buffer, ByteRange
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError

HERE = "image.zarr/zarr.json"


def test_accepted_deviations_from_json() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}', HERE) == {"a": 1}
    values = parse_json(b"[NaN, Infinity, -Infinity]", HERE)
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]
    assert parse_json(memoryview(b"[1]"), HERE) == [1]


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "found an empty one"),
        (b" \n ", "found an empty one"),
        (b'{"a": 1,}', "line 1, column "),
        (b'{\n "a": [1,\n 2,]}', "line 3, column "),
        (b'{"a": 1} {}', "line 1, column 10"),
        (b'{"a": 1', "line 1, column 8"),
        (b"{'a': 1}", "line 1, column 2"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', ': the key "c" occurs twice in one object'),
        (b"9" * 10_000, "the document cannot be read"),
        (b"[" * 100_000, "nested 100000 levels deep"),
        (b"[" * 100_000 + b"]" * 100_000, "nested 100000 levels deep"),
        (b'{"a":' * 201 + b"1" + b"}" * 201, "nested 201 levels deep"),
        (bytes(100), "not JSON"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_invalid_documents(document: bytes, words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        parse_json(document, HERE)
    assert str(caught.value).startswith(HERE)
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("item", "depth"), [('"[{"', 2), (r'"\"[{"', 2), (r'"[{\\"', 2), ('[["]"]]', 4), (r'["]\"]"]', 3)]
)
def test_depth_is_counted_outside_strings_only(item: str, depth: int) -> None:
    text = f'{{"a": [{", ".join([item] * 300)}]}}'.encode()
    inner = MAX_DEPTH - 1 - depth
    nested = b"[" * inner + text + b"]" * inner
    assert parse_json(b"[" + nested + b"]", "here")
    with pytest.raises(MetadataError, match=f"nested {MAX_DEPTH + 1} levels deep"):
        parse_json(b"[[" + nested + b"]]", "here")


def test_brackets_in_strings_do_not_count_as_depth() -> None:
    document = {"text": "[" * 1000 + '"\\' + "{" * 1000, "list": [[]] * 300}
    assert parse_json(json.dumps(document).encode(), HERE) == document
    assert parse_json(b"[" * 200 + b"]" * 200, HERE) is not None


@pytest.mark.parametrize("is_remote", [False, True])
def test_the_size_is_checked_before_the_value_is_read(is_remote: bool, tmp_path: Path) -> None:
    class Huge(MemoryStore):
        """A store with one value that reports a huge size and must not be fetched completely."""

        def size(self, key: str) -> int | None:
            return 10**12

        def get(self, key: str) -> bytes | None:
            raise AssertionError("the value was fetched completely")

        def get_ranges(self, key: str, ranges: Any) -> list[Buffer] | None:
            assert ranges == [ByteRange(0, 1001)]
            return [bytes(1001)]

    store = Huge()
    store.is_remote = is_remote
    with pytest.raises(MetadataError, match="too large: expected at most 1,000 bytes"):
        read_object(store, "zarr.json", 1000)


@pytest.mark.parametrize("is_remote", [False, True])
def test_read_object(is_remote: bool, tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.is_remote = is_remote
    assert read_object(store, "zarr.json") is None
    store.set("zarr.json", b'{"a": 1}')
    assert read_object(store, "zarr.json") == {"a": 1}
    store.set("zarr.json", b"[]")
    with pytest.raises(MetadataError, match=r"zarr\.json: expected a JSON object, found \[\]"):
        read_object(store, "zarr.json")


def test_numpy_values_are_written_and_other_objects_are_refused() -> None:
    store = MemoryStore()
    values = {"n": np.int16(3), "x": np.float32(0.5), "list": np.arange(3), "µ": "ü", "nan": math.nan}
    written = write_object(store, "a/.zattrs", values)
    assert written["list"] == [0, 1, 2]
    assert (written["n"], written["x"], written["µ"]) == (3, 0.5, "ü")
    assert str(read_object(store, "a/.zattrs")) == str(written)
    for bad in ({"a": object()}, {"a": b"bytes"}, {(1, 2): 3}):
        with pytest.raises(MetadataError, match="cannot be written as JSON"):
            dump_json(bad, HERE)
    recursive: list[Any] = []
    recursive.append(recursive)
    with pytest.raises(MetadataError, match="cannot be written as JSON"):
        dump_json(recursive, HERE)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_json_or_a_metadata_error(data: bytes) -> None:
    try:
        value = parse_json(data, HERE)
    except MetadataError:
        return
    json.dumps(value)
