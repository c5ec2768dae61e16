"""All examples of README.md and docs/ are executed in order. Those that are not state the reason above the block."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.pages import DATA_LANGUAGES, EXECUTED_LANGUAGES, PAGES, Block, blocks, name_of
from tests.documentation.servers import SharedServers
from tests.documentation.sessions import session
from tests.mount.mounted import needs_fuse

EXTENSIONS = "docs/extensions.md"
"""tests/test_extension_example.py executes its blocks, in an environment with the example package."""

NOT_RUN: dict[str, dict[str, int]] = {
    "README.md": {"sets up a clone": 1},
    "docs/command-line.md": {"opens a window": 1},
    "docs/mount-at-boot.md": {"needs systemd": 2, "needs root": 1},
    "docs/mounting.md": {"needs root": 1, "needs systemd": 1},
    "docs/performance.md": {"takes minutes on a quiet machine": 1},
}
"""Page -> the reasons why blocks are not executed -> their number."""


@pytest.fixture(scope="module")
def servers() -> Iterator[SharedServers]:
    shared = SharedServers()
    yield shared
    shared.close()


def executed(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.not_run is None and block.language in EXECUTED_LANGUAGES]


@needs_fuse
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.emulators] if "s3://bucket" in page.read_text("utf-8") else [])
        for page in PAGES
        if executed(page) and name_of(page) != EXTENSIONS
    ],
    ids=name_of,
)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: SharedServers
) -> None:
    monkeypatch.chdir(tmp_path)
    with session(tmp_path, servers) as opened:
        for block in executed(page):
            opened.run(block, name_of(page))


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
