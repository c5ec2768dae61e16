"""README.md is short, and the links of the documents lead to files that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation.pages import PAGES, ROOT, name_of

README = ROOT / "README.md"

MAX_README_LINES = 130


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= MAX_README_LINES


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md", *PAGES], ids=name_of)
def test_relative_links_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert targets or page != README
    assert [target for target in targets if not (page.parent / target).exists()] == []
