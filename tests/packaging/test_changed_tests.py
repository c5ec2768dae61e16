"""The selection of the tests that ``packaging/test.sh --quick`` runs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def changed_tests() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changed_tests", ROOT / "packaging" / "changed_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_paths_of_the_mapping_exist(changed_tests: ModuleType) -> None:
    for path, tests in changed_tests.TESTS.items():
        assert (ROOT / path).exists(), path
        for test in tests.split():
            assert (ROOT / test).exists(), test


def test_every_package_has_tests(changed_tests: ModuleType) -> None:
    for root in ("zarrfs", "viewer/zarrfs_viewer", "benchmarks"):
        for path in (ROOT / root).rglob("*.py"):
            selected = changed_tests.tests_of([str(path.relative_to(ROOT))])
            assert set(selected) - {changed_tests.ALWAYS}, path


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("zarrfs/mount/tree/tree.py", ["tests/mount/test_tree.py", "tests/test_architecture.py"]),
        (
            "zarrfs/mount/process/new.py",
            ["tests/mount/test_mount.py", "tests/mount/test_operations.py", "tests/test_architecture.py"],
        ),
        ("zarrfs/engine/codecs/sharding/index.py", ["tests/engine/codecs", "tests/test_architecture.py"]),
        (
            "zarrfs/engine/read/cached_stream.py",
            [
                "tests/engine/test_read_caching.py",
                "tests/engine/test_read_plan.py",
                "tests/mount/test_random_reads.py",
                "tests/packaging/test_changed_tests.py",
                "tests/test_architecture.py",
            ],
        ),
        (
            "zarrfs/engine/native/chunks.c",
            [
                "tests/engine/native/test_equivalence.py",
                "tests/engine/native/test_writing.py",
                "tests/test_architecture.py",
            ],
        ),
        ("tests/mount/test_views.py", ["tests/mount/test_views.py"]),
        ("tests/mount/mounted.py", ["tests/mount"]),
        ("packaging/build.sh", ["tests/packaging"]),
        ("CHANGELOG.md", []),
    ],
)
def test_a_changed_file_selects_its_tests(
    changed: str, expected: list[str], changed_tests: ModuleType
) -> None:
    assert changed_tests.tests_of([changed]) == expected
