"""The fenced blocks of README.md and docs/, and the comments that control how the tests execute them.

An HTML comment on the line above a block, which readers of the page do not see, can have one of these forms:

``<!-- not run: REASON -->``: the block is not executed.
``<!-- samples: NAME... -->``: data sets of samples.py are written before the block is executed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

__all__ = ["DATA_LANGUAGES", "EXECUTED_LANGUAGES", "PAGES", "ROOT", "Block", "blocks", "name_of"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))

EXECUTED_LANGUAGES = ("python", "sh", "console")
DATA_LANGUAGES = ("text", "toml", "ini", "json", "yaml")
"""The languages of blocks that are not programs. Blocks of all other languages are executed or have a reason."""

FENCE = re.compile(
    r"^(?P<comments>(?:<!-- (?:not run|samples): [^\n]* -->\n)*)"
    r"(?P<indent> *)```(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
COMMENT = re.compile(r"^<!-- (not run|samples): (.*) -->$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block: language, text, first line, why it is not executed, and the data sets that it needs."""

    language: str
    text: str
    line: int
    not_run: str | None
    samples: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        comments = dict(COMMENT.findall(match["comments"]))
        found.append(
            Block(
                match["language"],
                match["text"],
                text[: match.start("text")].count("\n") + 1,
                comments.get("not run"),
                tuple(comments.get("samples", "").split()),
            )
        )
    return found


def name_of(page: Path) -> str:
    """Return the path of a page in the checkout."""
    return page.relative_to(ROOT).as_posix()
