"""Text from a store is escaped in exceptions, log records and tracebacks."""

from __future__ import annotations

import io
import logging

import pytest

import zarrfs
from zarrfs import errors
from zarrfs.errors import StoreError, ZarrError, describe_error
from zarrfs.logs import SafeRecords, logger
from zarrfs.text import MAX_MESSAGE, safe_text, short_repr

HOSTILE = "\x1b]0;title\x07\x9b31m\r\n2026-01-01 ERROR forged\u202e\udcff"


def test_safe_text_returns_one_line_of_printable_characters() -> None:
    assert safe_text("größe 日本語\t'x'") == "größe 日本語\t'x'"
    assert safe_text("a\x1b[31mb\udcff\n\x85\u2028") == "a\\x1b[31mb\\udcff\\n\\x85\\u2028"
    assert safe_text(HOSTILE).isprintable()
    assert safe_text(safe_text(HOSTILE)) == safe_text(HOSTILE)


@pytest.mark.parametrize("text", ["x" * 10_000, "\x1b" * 10_000, "\udcff" * 500, HOSTILE * 100])
def test_safe_text_truncates_the_middle_of_long_text(text: str) -> None:
    short = safe_text(f"begin {text} end", 200)
    assert len(short) <= 200
    assert short.isprintable()
    assert short.startswith("begin ")
    assert short.endswith(" end")
    assert "characters" in short


def test_short_repr_never_raises() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert short_repr(Bad()) == "<Bad>"
    assert short_repr(10**10_000) == "<int>"
    assert len(short_repr("x" * 10**6)) <= 120
    assert short_repr(None) == "None"


@pytest.mark.parametrize(
    "exception_class",
    [
        exception_class
        for exception_class in vars(errors).values()
        if isinstance(exception_class, type) and issubclass(exception_class, ZarrError)
    ],
)
def test_the_message_of_every_exception_is_escaped(exception_class: type[ZarrError]) -> None:
    error = exception_class(HOSTILE + "x" * 10**6)
    assert str(error).isprintable()
    assert len(str(error)) <= MAX_MESSAGE


def test_the_description_of_other_exceptions_contains_their_class() -> None:
    assert describe_error(ValueError("a\nb")) == "ValueError: a\\nb"
    assert describe_error(KeyError()) == "KeyError"
    assert describe_error(StoreError("deleted", 5)) == "deleted"
    assert describe_error(OSError(5, "broken")) == "[Errno 5] broken"


def test_log_records_are_escaped_for_all_handlers() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    other = logging.Logger("other")
    other.addFilter(SafeRecords())
    other.addHandler(handler)
    other.warning("%s and %r", HOSTILE, HOSTILE)
    other.warning("x" * 10**6)
    try:
        raise ValueError(HOSTILE + "y" * 10**6)
    except ValueError:
        other.exception("failed on %s", HOSTILE)
    text = stream.getvalue()
    lines = text.splitlines()
    assert all(line.isprintable() and len(line) < 2000 for line in lines)
    assert [line for line in lines if not line.startswith(("WARNING ", "ERROR ", "    "))] == []
    assert sum(line.startswith("ERROR ") for line in lines) == 1
    assert any(isinstance(log_filter, SafeRecords) for log_filter in logger.filters)


def test_messages_with_a_hostile_name_are_escaped(caplog: pytest.LogCaptureFixture) -> None:
    store = {"zarr.json": b'{"zarr_format": 3, "node_type": "group"}', f"{HOSTILE}/zarr.json": b"{"}
    group = zarrfs.open_group(store)
    with pytest.raises(zarrfs.MetadataError) as error_info:
        group[HOSTILE]
    assert str(error_info.value).isprintable()
    assert list(group) == []
    assert caplog.records
    assert all(record.getMessage().isprintable() for record in caplog.records)
    assert group.tree().count("\n") == 0
