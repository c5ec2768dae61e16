"""The description of the bundle of the viewer. test_built_packages.py tests a bundle."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

NAME = re.compile(r"[A-Za-z0-9._-]+")


def normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def constants(path: Path) -> dict[str, Any]:
    """Return the lists that a Python file assigns to names in capital letters."""
    found = {}
    for statement in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.List):
            (target,) = statement.targets
            assert isinstance(target, ast.Name)
            found[target.id] = ast.literal_eval(statement.value)
    return found


def test_the_bundle_contains_the_requirements_of_its_extras() -> None:
    """PyInstaller finds only what is imported by statements, and zarrfs imports most of its requirements by name."""
    spec = constants(ROOT / "packaging" / "bundle" / "zarrfs-viewer.spec")
    bundled = {name.partition(".")[0] for name in (*spec["PACKAGES"], *spec["MODULES"])}
    text = (ROOT / "packaging" / "build.sh").read_text(encoding="utf-8")
    extras = [
        name for part in re.findall(r"^bundle_extras\+?=,?(.*)$", text, re.M) for name in part.split(",")
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in extras)]
    required = {normalized(found[0]) for lines in lists for line in lines if (found := NAME.match(line))}
    modules: dict[str, set[str]] = {}
    for module, owners in packages_distributions().items():
        for owner in owners:
            modules.setdefault(normalized(owner), set()).add(module)
    assert {name for name in required if not bundled & modules.get(name, {name})} == set()
