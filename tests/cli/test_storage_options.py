"""Storage options of the commands: KEY=VALUE with JSON values."""

from __future__ import annotations

from typing import Any

import click
import pytest

from zarrfs.cli.values import parse_storage_options


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("12", 12),
        ("text", "text"),
        ("a=b", "a=b"),
        ('{"region_name": "eu-central-1"}', {"region_name": "eu-central-1"}),
        (
            '{"headers": {"X-Token": "t"}, "n": [1, 2.5, null]}',
            {"headers": {"X-Token": "t"}, "n": [1, 2.5, None]},
        ),
        ('["a", "b"]', ["a", "b"]),
    ],
)
def test_values_are_converted(text: str, value: Any) -> None:
    result = parse_storage_options([f"key={text}"])

    assert result == {"key": value}
    assert result is not None
    assert type(result["key"]) is type(value)


@pytest.mark.parametrize("text", ['{"password": "secret"', "[1,", "{'password': 'secret'}", "[" * 100_000])
def test_invalid_json_is_refused_without_the_value(text: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        parse_storage_options([f"client_kwargs={text}"])

    assert "'client_kwargs' is not valid JSON" in caught.value.message
    assert "secret" not in caught.value.message
    assert len(caught.value.message) < 300


def test_a_pair_needs_an_equals_sign() -> None:
    with pytest.raises(click.BadParameter, match="expected KEY=VALUE"):
        parse_storage_options(["anon"])
