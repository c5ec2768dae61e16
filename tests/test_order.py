"""The order of the test files."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_the_files_that_are_started_first_exist() -> None:
    text = (ROOT / "tests/conftest.py").read_text(encoding="utf-8")
    listed = re.findall(r'"(tests/[a-z0-9_/]+\.py)"', text)
    assert len(listed) > 20
    assert [name for name in listed if not (ROOT / name).is_file()] == []
    assert len(set(listed)) == len(listed)
