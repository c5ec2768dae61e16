"""Removal of credentials from text."""

from __future__ import annotations

import logging

import pytest

from zarrfs import credentials
from zarrfs.credentials import hide_credentials, is_secret_name, register_secrets, register_url
from zarrfs.errors import StoreError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.process.process_arguments import without_credentials


@pytest.fixture(autouse=True)
def _no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(credentials, "_secrets", set())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:secret@host/a.zarr", "https://host/a.zarr"),
        ("https://token@host:80/a?sig=x&y=z", "https://host:80/a"),
        ("failed: url='https://host/a.zarr?sig=x' (403)", "failed: url='https://host/a.zarr' (403)"),
        ("file:///a?b::https://host/c?sig=x", "file:///a?b::https://host/c"),
        ("zip://in/it::https://u:p@host/a.zip?sig=x", "zip://in/it::https://host/a.zip"),
        ("simplecache::s3://key:secret@bucket/a", "simplecache::s3://bucket/a"),
        ("redis://:secret@host:6379/0", "redis://host:6379/0"),
        ("mongodb://u:p@h1,h2/db?authSource=admin", "mongodb://h1,h2/db"),
        ("https://u:p@ss@host/x and ftp://a:b@c/d", "https://host/x and ftp://c/d"),
        ("file:///data/what?.zarr", "file:///data/what?.zarr"),
        ("/data/a@b?.zarr", "/data/a@b?.zarr"),
        ("user@host is an address", "user@host is an address"),
        ("https://host/a@2x.zarr", "https://host/a@2x.zarr"),
    ],
)
def test_user_information_and_queries_of_urls_are_removed(text: str, expected: str) -> None:
    assert hide_credentials(text) == expected
    assert hide_credentials(expected) == expected


def test_registered_secrets_are_removed_everywhere() -> None:
    register_secrets(
        {
            "secret": "s3cret/",
            "endpoint": "visible",
            "headers": {"X": "in header", "Y": ["listed"]},
            "anon": True,
            "key": b"bytes",
        }
    )
    register_url("https://user:p%40ss@host/a")
    text = "s3cret/ s3cret%2F visible in header listed bytes p@ss p%40ss"
    assert hide_credentials(text) == "*** *** visible *** *** *** *** ***"


def test_names_of_secret_options() -> None:
    for name in (
        "password",
        "secret",
        "token",
        "key",
        "account_key",
        "sas_token",
        "headers",
        "connection_string",
    ):
        assert is_secret_name(name), name
    for name in ("anon", "endpoint_url", "block_size", "durable", "allow_external"):
        assert not is_secret_name(name), name


def test_errors_and_log_records_contain_no_credentials(caplog: pytest.LogCaptureFixture) -> None:
    error = StoreError("https://u:secret@host/a?sig=x cannot be read")
    assert str(error) == "https://host/a cannot be read"
    assert describe_error(ValueError("https://u:secret@host/a")) == "ValueError: https://host/a"
    with caplog.at_level(logging.WARNING, "zarrfs"):
        logger.warning("%s failed", "https://u:secret@host/a?sig=x")
    assert caplog.messages == ["https://host/a failed"]


def test_arguments_are_overwritten_in_place() -> None:
    arguments = [
        b"python",
        b"zarrfs",
        b"mount",
        b"--storage-option",
        b"secret=abcdef",
        b"--storage-option=token=xyz",
        b"--storage-option",
        b"anon=false",
        b"https://u:p@host/a.zarr?sig=1",
        b"/mnt",
        b"",
    ]
    original = b"\0".join(arguments)
    hidden = without_credentials(original)
    assert len(hidden) == len(original)
    assert hidden.rstrip(b"\0").split(b"\0") == [
        b"python",
        b"zarrfs",
        b"mount",
        b"--storage-option",
        b"secret=*",
        b"--storage-option=token=*",
        b"--storage-option",
        b"anon=false",
        b"https://host/a.zarr",
        b"/mnt",
    ]
    harmless = b"python\0zarrfs\0info\0/data/a.zarr\0"
    assert without_credentials(harmless) == harmless


def test_json_in_the_command_line_is_hidden_completely() -> None:
    value = rb'{"aws_secret_access_key": "\u0073ecret"}'

    hidden = without_credentials(
        b"zarrfs\0--storage-option\0client_kwargs="
        + value
        + b"\0--storage-option=client_kwargs="
        + value
        + b"\0"
    )

    assert hidden.rstrip(b"\0").split(b"\0") == [
        b"zarrfs",
        b"--storage-option",
        b"client_kwargs=*",
        b"--storage-option=client_kwargs=*",
    ]
