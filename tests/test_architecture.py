"""The rules of the house: which room may use which, what the package exports, what importing it costs."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import zarrfs

ROOT = Path(__file__).resolve().parent.parent

EXPORTS = [
    "Access",
    "Array",
    "ChunkConstraint",
    "ChunkDecodeError",
    "ChunkEncodeError",
    "DataError",
    "DataShapeError",
    "FillValueError",
    "Group",
    "KeyNameError",
    "LocationError",
    "LocationNotFoundError",
    "MetadataError",
    "MissingChunkError",
    "MountError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeError",
    "OptionError",
    "ProcessSynchronizer",
    "ReadOnlyError",
    "SelectionError",
    "StoreError",
    "ThreadSynchronizer",
    "UnsupportedError",
    "ZarrError",
    "__version__",
    "array",
    "codecs",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "storage",
    "tree",
    "zeros",
    "zeros_like",
]

FLOORS = {
    "errors": 0,
    "logs": 0,
    "plugins": 0,
    "text": 0,
    "engine": 1,
    "ngff": 2,
    "tools": 2,
    "tensorstore": 2,
    "mount": 3,
    "cli": 4,
    "viewer": 5,
}
"""From the ground up. A room uses those on its own floor and below."""

GROUND = ["errors", "logs", "plugins", "text"]
ENGINE_FLOORS = {
    "stores": ["engine.stores", *GROUND],
    "codecs": [
        *("engine.codecs", "engine.stores.base", "engine.cache", "engine.parallel"),
        *("engine.dtypes", "engine.json_checks", "engine.model", *GROUND),
    ],
}
"""The rooms at the bottom of the engine, and all that each of them may use."""

HEAVY = [
    "numcodecs",
    "click",
    "rich",
    "fsspec",
    "h5py",
    "mfusepy",
    "fuse",
    "PyQt6",
    "pyqtgraph",
    "dask",
    "distributed",
    "xarray",
]
HEAVY += ["ml_dtypes", "asyncio", "importlib.metadata", "zarr", "tensorstore"]

FUSE_BINDINGS = {"mfusepy", "fuse"}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours by its dotted name without the leading ``zarrfs.``."""
    for package in ("zarrfs", "viewer"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__").removeprefix("zarrfs."), path


MODULES = dict(modules())


def imports(path: Path) -> Iterator[str]:
    """Every name that a module imports, wherever in it: ``package.module`` and ``package.module.name``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path: Path) -> Iterator[str]:
    """Those of ours, without the leading ``zarrfs.``; the package itself stands for the engine behind it."""
    for name in imports(path):
        first, _, rest = name.partition(".")
        if first == "viewer":
            yield name
        elif first == "zarrfs" and rest.partition(".")[0] not in ("_version", "synthetic", "__version__"):
            inside = rest.partition(".")[0] in FLOORS
            yield rest if inside else "engine"


def floor(module: str) -> int | None:
    room = module.partition(".")[0]
    return FLOORS.get(room)


def is_in(module: str, rooms: list[str]) -> bool:
    return any(module == room or module.startswith(f"{room}.") for room in rooms)


@pytest.mark.parametrize("module", [name for name in MODULES if floor(name) is not None])
def test_imports_go_downward_only(module: str) -> None:
    here = floor(module)
    assert here is not None
    upward = [name for name in own_imports(MODULES[module]) if (floor(name) or 0) > here]
    assert upward == []


@pytest.mark.parametrize("room", ENGINE_FLOORS)
def test_the_bottom_of_the_engine_stands_alone(room: str) -> None:
    allowed = ENGINE_FLOORS[room]
    for module, path in MODULES.items():
        if is_in(module, [f"engine.{room}"]):
            assert [name for name in own_imports(path) if not is_in(name, allowed)] == [], module


def test_one_room_knows_the_fuse_binding() -> None:
    users = {
        module for module, path in MODULES.items() if FUSE_BINDINGS & {n.split(".")[0] for n in imports(path)}
    }
    assert len(users) <= 1
    assert all(is_in(module, ["mount"]) for module in users)


def test_one_room_knows_qt() -> None:
    for module, path in MODULES.items():
        if {name.partition(".")[0] for name in imports(path)} & {"PyQt6", "pyqtgraph"}:
            assert is_in(module, ["zarrfs_viewer.qt"]), module


def test_exports_are_pinned() -> None:
    assert sorted(zarrfs.__all__) == EXPORTS
    assert all(hasattr(zarrfs, name) for name in zarrfs.__all__)


def test_importing_is_light() -> None:
    program = "import sys, numpy; before = set(sys.modules); import zarrfs; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert [name for name in loaded if is_in(name, HEAVY)] == []
    assert len(loaded) < 120, sorted(loaded)
