"""Every command of ``zarrfs``, and every option of each, is in docs/command-line.md, under a heading of its own."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from zarrfs.cli.main import main

PAGE = Path(__file__).resolve().parent.parent / "docs" / "command-line.md"

CONTEXT = click.Context(main)
COMMANDS = main.list_commands(CONTEXT)


def sections() -> dict[str, str]:
    """The text below each heading ``## zarrfs NAME``."""
    parts = re.split(r"^## zarrfs ?(\S*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command: click.Command) -> list[str]:
    return [
        name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts
    ]


def test_every_command_has_its_section() -> None:
    assert sorted(sections()) == sorted(["", *COMMANDS])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    text = sections()[name]
    assert [option for option in options(command) if f"`{option}" not in text] == []
    mentioned = set(re.findall(r"`(--?[a-z][a-z-]*)", text))
    assert mentioned <= {*options(command), "-h", "--help"}, "an option that is not there is explained"


def test_the_options_before_the_command() -> None:
    assert [option for option in options(main) if f"`{option}" not in sections()[""]] == []
