"""The test that executes the examples of pages. Several test files use it, so that they run in several processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.pages import EXECUTED_LANGUAGES, PAGES, Block, blocks, name_of
from tests.documentation.servers import SharedServers
from tests.documentation.sessions import session

__all__ = ["COMMAND_PAGES", "EXTENSIONS", "executed", "page_parameters", "run_examples"]

EXTENSIONS = "docs/extensions.md"
"""tests/test_extension_example.py executes its blocks, in an environment with the example package."""

COMMAND_PAGES = ("docs/command-line.md", "docs/remote-data.md")
"""The pages with the most commands. They take as long as all others."""


def executed(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.not_run is None and block.language in EXECUTED_LANGUAGES]


def page_parameters(*, of_commands: bool) -> pytest.MarkDecorator:
    """Return the parameter ``page`` of a test: the pages with examples that are in COMMAND_PAGES, or all others."""
    return pytest.mark.parametrize(
        "page",
        [
            pytest.param(
                page, marks=[pytest.mark.emulators] if "s3://bucket" in page.read_text("utf-8") else []
            )
            for page in PAGES
            if executed(page)
            and name_of(page) != EXTENSIONS
            and (name_of(page) in COMMAND_PAGES) == of_commands
        ],
        ids=name_of,
    )


def run_examples(page: Path, directory: Path, servers: SharedServers) -> None:
    """Execute the examples of a page in order, in an empty directory that is the working directory."""
    with session(directory, servers) as opened:
        for block in executed(page):
            opened.run(block, name_of(page))
