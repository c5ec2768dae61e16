"""The Python blocks and terminal sessions in README.md and docs/ are executed in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.mount.mounted import needs_fuse
from tests.processes import TIMEOUT
from zarrfs.mount import is_mounted, unmount

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
GETTING_STARTED = ROOT / "docs" / "getting-started.md"
TUTORIALS = ROOT / "docs" / "tutorials.md"

MAX_README_LINES = 130

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, its text, and its first line."""

    language: str
    text: str
    line: int


def blocks(page: Path = README) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        yield Block(match[1], match[2], text[: match.start()].count("\n") + 2)


def run_python(block: Block, page: Path, namespace: dict[str, Any]) -> None:
    # With these empty lines, the line numbers in a traceback are those of the page.
    exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), namespace)


def run_console(block: Block, page: Path, directory: Path) -> None:
    """Run each line that starts with ``$`` and compare its output with the lines below it; ``...`` matches any text."""
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        output = shell(command, directory)
        pattern = r"[\s\S]*?".join(map(re.escape, strip_lines(expected).split("...")))
        assert re.fullmatch(pattern, strip_lines(output)), (
            f"{page.name}, line {block.line}: $ {command}\n{output}"
        )


def shell(command: str, directory: Path) -> str:
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "COLUMNS": "100", "HOME": str(directory)}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
    return done.stdout


def strip_lines(text: str) -> str:
    """Remove trailing spaces, and empty lines at the beginning and the end."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


@needs_fuse
@pytest.mark.parametrize("page", [README, GETTING_STARTED, TUTORIALS], ids=lambda page: page.name)
def test_examples_print_the_documented_output(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    counts = {"python": 0, "console": 0}
    try:
        for block in blocks(page):
            if block.language == "python":
                run_python(block, page, namespace)
            elif block.language == "console":
                run_console(block, page, tmp_path)
            if block.language in counts:
                counts[block.language] += 1
    finally:
        for name in os.listdir(tmp_path):
            if is_mounted(str(tmp_path / name)):
                unmount(str(tmp_path / name), lazy=True)
    assert all(counts.values()), counts


@pytest.mark.parametrize("name", ["coming-from-zarr-python.md", "tensorstore.md"])
def test_python_examples_of_other_pages_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "page"}
    python_blocks = [block for block in blocks(ROOT / "docs" / name) if block.language == "python"]
    assert python_blocks
    for block in python_blocks:
        run_python(block, ROOT / "docs" / name, namespace)


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize(
    "page",
    [README, ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))],
    ids=lambda page: page.name,
)
def test_relative_links_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert targets or page != README
    assert [target for target in targets if not (page.parent / target).exists()] == []
