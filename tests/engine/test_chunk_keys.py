"""Chunk key encodings: the examples of the specification, encoded and decoded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zarrfs.engine.chunks.chunk_key_encodings import (
    ChunkKeyEncoding,
    DefaultKeys,
    V2Keys,
    chunk_key_encoding_from_json,
    chunk_key_encoding_to_json,
)
from zarrfs.errors import MetadataError, UnsupportedError

HERE = "image.zarr/zarr.json: /chunk_key_encoding"
ENCODINGS = [DefaultKeys("/"), DefaultKeys("."), V2Keys("."), V2Keys("/")]


@pytest.mark.parametrize(
    ("encoding", "coords", "key"),
    [
        (DefaultKeys("/"), (1, 23, 45), "c/1/23/45"),
        (DefaultKeys("."), (1, 23, 45), "c.1.23.45"),
        (DefaultKeys("/"), (), "c"),
        (DefaultKeys("."), (), "c"),
        (V2Keys("."), (1, 23, 45), "1.23.45"),
        (V2Keys("/"), (1, 23, 45), "1/23/45"),
        (V2Keys("."), (), "0"),
        (V2Keys("/"), (7,), "7"),
    ],
)
def test_encode(encoding: ChunkKeyEncoding, coords: tuple[int, ...], key: str) -> None:
    assert encoding.encode(coords) == key
    assert encoding.encoder(len(coords))(coords) == key
    assert encoding.decoder(len(coords))(key) == coords


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
@given(st.lists(st.integers(0, 10**18), max_size=5))
def test_decode_is_the_inverse_of_encode(encoding: ChunkKeyEncoding, numbers: list[int]) -> None:
    coords = tuple(numbers)
    key = encoding.encoder(len(coords))(coords)
    assert key == encoding.encode(coords)
    assert encoding.decoder(len(coords))(key) == coords
    if coords:
        assert encoding.decoder(len(coords) + 1)(key) is None


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
@pytest.mark.parametrize(
    "key",
    [
        *(
            "",
            "c/",
            "c/01",
            "c/-1",
            "c/+1",
            "c/1_0",
            "c/ 1",
            "c/1/",
            "c//1",
            "c/x",
            "zarr.json",
            ".zarray",
            "cc",
        ),
        *(
            "01",
            "1.",
            ".1",
            "1..2",
            "1/",
            "/1",
            "1//2",
            "-1",
            "x.y",
            "1.x",
            "c/1.2/3",
            "٣",
            "c/٣",
            "9" * 5000,
        ),
    ],
)
def test_keys_that_are_not_chunk_keys_decode_to_none(encoding: ChunkKeyEncoding, key: str) -> None:
    assert encoding.decode(key) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("default", DefaultKeys("/")),
        ("v2", V2Keys(".")),
        ({"name": "default"}, DefaultKeys("/")),
        ({"name": "v2", "configuration": {}}, V2Keys(".")),
        ({"name": "default", "configuration": {"separator": "."}}, DefaultKeys(".")),
        ({"name": "v2", "configuration": {"separator": "/"}}, V2Keys("/")),
        ({"name": "v2", "must_understand": True}, V2Keys(".")),
    ],
    ids=str,
)
def test_metadata(value: Any, expected: ChunkKeyEncoding) -> None:
    encoding = chunk_key_encoding_from_json(value, HERE)
    assert encoding == expected
    assert chunk_key_encoding_from_json(chunk_key_encoding_to_json(encoding), HERE) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("fractal", '"fractal" is not supported'),
        (None, "found null"),
        (
            {"name": "default", "configuration": {"separator": "-"}},
            '/configuration/separator: expected one of "/", "."',
        ),
        ({"name": "default", "configuration": {"separator": None}}, "/configuration/separator"),
        ({"name": "default", "configuration": {"seperator": "/"}}, "/configuration/seperator: unknown key"),
        ({"name": "default", "must_understand": False}, "must be understood"),
        ({"configuration": {"separator": "/"}}, 'no "name"'),
    ],
    ids=str,
)
def test_invalid_metadata(value: Any, words: str) -> None:
    with pytest.raises(MetadataError) as caught:
        chunk_key_encoding_from_json(value, HERE)
    assert str(caught.value).startswith(HERE)
    assert words in str(caught.value)


def test_unknown_encoding_is_unsupported() -> None:
    with pytest.raises(UnsupportedError):
        chunk_key_encoding_from_json("fractal", HERE)
