"""Checks of JSON metadata, whose errors state the place, what was found and what was expected.

``where`` is the place in a document, for messages.
"""

from __future__ import annotations

from zarrfs.engine.json_checks import (
    check_keys,
    expect_boolean,
    expect_integer,
    expect_list,
    expect_number,
    expect_object,
    expect_shape,
    expect_string,
    unexpected_value,
)
from zarrfs.errors import MetadataError, UnsupportedError

__all__ = [
    "MetadataError",
    "UnsupportedError",
    "check_keys",
    "expect_boolean",
    "expect_integer",
    "expect_list",
    "expect_number",
    "expect_object",
    "expect_shape",
    "expect_string",
    "unexpected_value",
]
