"""Parsing of dropped and typed locations."""

from __future__ import annotations

import pytest
from zarrfs_viewer.locations import (
    absolute_location,
    display_name,
    node_location,
    parse_locations,
    within,
)


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ("/data/a.zarr", "/data/a.zarr"),
        ("/data/a.zarr/", "/data/a.zarr"),
        ("/data/a.zarr/zarr.json", "/data/a.zarr"),
        ("/data/a.zarr/0/.zarray", "/data/a.zarr/0"),
        ("/data/a.zarr/.zattrs", "/data/a.zarr"),
        (".zgroup", "."),
        ("/zarr.json", "/"),
        ("/", "/"),
        ("file:///data/a%20b.zarr", "/data/a b.zarr"),
        ("file:/data/a.zarr", "/data/a.zarr"),
        ("file:///data/a.zarr/zarr.json", "/data/a.zarr"),
        ("https://example.org/a.zarr/zarr.json", "https://example.org/a.zarr"),
        ("https://example.org/a.zarr/#view=AAA/zarr.json", "https://example.org/a.zarr#view=AAA/zarr.json"),
        ("s3://bucket/a.zarr/", "s3://bucket/a.zarr"),
        ("C:\\data\\a.zarr", "C:\\data\\a.zarr"),
        ("/data/strange#name.zarr", "/data/strange#name.zarr"),
    ],
)
def test_a_text_is_normalized_to_the_location_of_a_node(text: str, location: str) -> None:
    assert node_location(text) == location


def test_a_list_of_locations_may_contain_quotes_comments_and_duplicates() -> None:
    text = "# a list\r\nfile:///a.zarr\r\n\r\n  '/b c.zarr'  \r\n\"/d.zarr\"\r\n/a.zarr\r\n"
    assert parse_locations(text) == ["/a.zarr", "/b c.zarr", "/d.zarr"]
    assert parse_locations("") == []


def test_the_display_name_is_the_last_component() -> None:
    assert display_name("/data/a.zarr/") == "a.zarr"
    assert display_name("https://example.org/b.zarr?x=1#view=AAA") == "b.zarr"
    assert display_name("/") == "/"


def test_locations_of_repositories_of_icechunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert node_location("icechunk:s3://bucket/repo@main/a/") == "icechunk:s3://bucket/repo@main/a"
    assert absolute_location("icechunk:data/repo@v1") == "icechunk:/data/repo@v1"
    assert absolute_location("icechunk:s3://bucket/repo") == "icechunk:s3://bucket/repo"
    assert display_name("icechunk:/data/repo@v1") == "repo@v1"
    assert within("icechunk:/data/repo", "a/b") == "icechunk:/data/repo/a/b"
    assert within("icechunk:s3://bucket/repo", "a/b") == "icechunk:s3://bucket/repo@main/a/b"
    assert within("icechunk:s3://user@host/repo@v1", "a") == "icechunk:s3://user@host/repo@v1/a"
    assert within("icechunk:s3://bucket/repo", "") == "icechunk:s3://bucket/repo"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ('{"driver": "zarr3", "kvstore": {"driver": "file", "path": "/data/a.zarr/"}}', "a.zarr"),
        ('{"driver": "zarr", "kvstore": "file:///data/b.zarr/"}', "b.zarr"),
        (
            '{"kvstore": {"driver": "zip", "path": "x/", "base": {"driver": "file", "path": "c.zip"}}}',
            "c.zip",
        ),
        ('{"driver": "zarr"}', "TensorStore spec"),
        ("{not JSON", "TensorStore spec"),
        ("file:///data/a.zip|zip:image/|zarr3:", "a.zip"),
    ],
)
def test_the_display_name_of_a_spec_is_that_of_its_store(spec: str, name: str) -> None:
    assert display_name(spec) == name
