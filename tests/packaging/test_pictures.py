"""The pictures of the documentation are those that packaging/pictures.py makes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.documentation.pages import PAGES, ROOT

SCRIPT = ROOT / "packaging" / "pictures.py"
CHARTS = {"performance.svg"}
"""The charts, which ``python -m benchmarks.report`` makes."""

MAX_ANIMATION_NBYTES = 3_000_000


def made_files() -> set[str]:
    """Return FILES of the script, which is not imported because it chooses the platform of Qt."""
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"))
    (value,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FILES"
    )
    return set(ast.literal_eval(value))


def test_one_script_makes_all_pictures() -> None:
    shown = {
        Path(name).name
        for page in PAGES
        for name in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    assert shown == made_files() | CHARTS
    stored = {
        path.name
        for path in (ROOT / "docs").rglob("*")
        if path.suffix in (".png", ".webp", ".svg", ".gif", ".jpg", ".mp4")
    }
    assert stored == shown


def test_the_animation_takes_about_a_minute_and_is_small() -> None:
    image = pytest.importorskip("PIL.Image")
    file = ROOT / "docs" / "animation.webp"
    assert file.stat().st_size < MAX_ANIMATION_NBYTES
    seconds = 0.0
    with image.open(file) as animation:
        for number in range(animation.n_frames):
            animation.seek(number)
            animation.load()
            seconds += animation.info["duration"] / 1000
    assert 45 <= seconds <= 75
