"""All examples of README.md and docs/ are executed in order. Those that are not state the reason above the block.
``test_command_examples.py`` executes those of the pages with the most commands.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.documentation.pages import DATA_LANGUAGES, EXECUTED_LANGUAGES, PAGES, blocks, name_of
from tests.documentation.running import COMMAND_PAGES, page_parameters, run_examples
from tests.documentation.servers import SharedServers
from tests.mount.mounted import needs_fuse

NOT_RUN: dict[str, dict[str, int]] = {
    "docs/installation.md": {"installs packages": 1},
    "README.md": {"sets up a clone": 1},
    "docs/command-line.md": {"opens a window": 1},
    "docs/mount-at-boot.md": {"needs systemd": 2, "needs root": 1},
    "docs/mounting.md": {"needs root": 1, "needs systemd": 1},
    "docs/tutorials.md": {"opens a window": 1, "needs R": 1},
    "docs/processes.md": {"needs PyTorch": 1},
    "docs/measurements.md": {"takes minutes on a quiet machine": 1},
}
"""Page -> the reasons why blocks are not executed -> their number."""


@needs_fuse
@page_parameters(of_commands=False)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: SharedServers
) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(page, tmp_path, servers)


def test_every_block_is_executed_or_states_why_not() -> None:
    found = {
        name_of(page): dict(Counter(block.not_run for block in blocks(page) if block.not_run is not None))
        for page in PAGES
    }
    assert {name: reasons for name, reasons in found.items() if reasons} == NOT_RUN


def test_every_block_has_a_known_language() -> None:
    known = {*EXECUTED_LANGUAGES, *DATA_LANGUAGES}
    unknown = [
        f"{name_of(page)}, line {block.line}: {block.language or 'no language'}"
        for page in PAGES
        for block in blocks(page)
        if block.language not in known and block.not_run is None
    ]
    assert unknown == []


def test_no_block_is_missed() -> None:
    """Every line that begins a block belongs to a block that was found."""
    for page in PAGES:
        fences = sum(
            line.lstrip().startswith("```") for line in page.read_text(encoding="utf-8").splitlines()
        )
        assert fences == 2 * len(blocks(page)), name_of(page)


def test_the_pages_with_the_most_commands_exist() -> None:
    assert set(COMMAND_PAGES) <= {name_of(page) for page in PAGES}
