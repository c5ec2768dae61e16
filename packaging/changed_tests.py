"""Prints the tests of the files that have changed, for ``packaging/test.sh --quick``.

A file has changed if it differs from the merge base with the main branch, or is not tracked. The tests of a source file
are the test modules with its name (``tree.py``: ``test_tree.py``) in the directories of ``TESTS``, or all paths of
``TESTS`` if there is no such module; these are a short selection for large packages. The test modules that mention the
file are added if there are few. A changed test module is run itself. A changed file without an entry in ``TESTS`` has
no tests here; the full test suite covers it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MAIN_BRANCHES = ("origin/main", "main", "origin/master", "master")

TESTS = {
    "benchmarks": "tests/test_benchmarks.py tests/test_synthetic.py",
    "docs": "tests/test_docs.py tests/test_readme.py tests/test_site.py",
    "mkdocs.yml": "tests/test_site.py",
    "packaging": "tests/packaging/test_changed_tests.py tests/packaging/test_manuals.py",
    "packaging/build.sh": "tests/packaging",
    "pyproject.toml": "tests/packaging/test_distributions.py",
    "README.md": "tests/test_readme.py",
    "setup.py": "tests/packaging/test_distributions.py",
    "viewer/zarrfs_viewer": "tests/viewer/core",
    "viewer/zarrfs_viewer/qt": "tests/viewer/qt/test_window.py tests/viewer/qt/test_datasets.py",
    "zarrfs": "tests/engine/test_plugins.py tests/engine/test_messages.py",
    "zarrfs/cli": "tests/cli/test_hostile_names.py tests/test_docs.py",
    "zarrfs/api": "tests/engine/test_creation.py tests/engine/test_routines.py",
    "zarrfs/ext": "tests/test_contracts.py tests/test_extension_example.py",
    "zarrfs/files": "tests/files/test_foreign.py tests/files/views/test_contract.py",
    "zarrfs/files/content": "tests/mount/test_blocks.py tests/mount/test_random_reads.py",
    "zarrfs/files/exporting": "tests/files/test_export.py",
    "zarrfs/files/hdf5": "tests/files/test_hdf5.py tests/files/views/test_h5.py",
    "zarrfs/files/importing": "tests/files/test_importing.py",
    "zarrfs/testing": "tests/test_contracts.py tests/engine/stores/test_contract.py",
    "zarrfs/engine": "tests/engine/test_array.py tests/engine/test_group.py tests/engine/test_creation.py",
    "zarrfs/engine/chunks": "tests/engine/test_chunk_grids.py tests/engine/test_chunk_keys.py",
    "zarrfs/engine/codecs": "tests/engine/codecs",
    "zarrfs/engine/create": "tests/engine/test_creation.py tests/engine/test_chunk_shapes.py",
    "zarrfs/engine/dtypes": "tests/engine/test_dtypes.py tests/engine/test_values.py",
    "zarrfs/engine/formats": "tests/engine/formats",
    "zarrfs/engine/indexing": "tests/engine/test_indexing.py tests/engine/test_selection_properties.py",
    "zarrfs/engine/read": "tests/engine/test_read_plan.py tests/engine/test_read_caching.py",
    "zarrfs/engine/write": "tests/engine/test_writing.py tests/engine/test_write_bytes.py",
    "zarrfs/engine/native": "tests/engine/native/test_equivalence.py tests/engine/native/test_writing.py",
    "zarrfs/engine/stores": "tests/engine/stores",
    "zarrfs/mount": "tests/mount/test_tree.py tests/mount/test_operations.py tests/mount/test_views.py",
    "zarrfs/mount/process": "tests/mount/test_operations.py tests/mount/test_mount.py",
    "zarrfs/mount/writing": "tests/mount/writing/test_hierarchy.py tests/mount/writing/test_image_files.py",
    "zarrfs/ngff": "tests/ngff",
    "zarrfs/synthetic.py": "tests/test_synthetic.py",
    "zarrfs/tensorstore": "tests/tensorstore",
    "zarrfs/text.py": "tests/test_text.py",
    "zarrfs/tools": "tests/tools/test_node_copies.py tests/tools/test_migration.py",
    "zarrfs/tools/copying": "tests/tools/test_copying.py",
    "zarrfs/tools/copying/cluster": "tests/tools/test_dask.py",
    "zarrfs/tools/editing": "tests/tools/test_editing.py",
    "zarrfs/tools/output": "tests/tools/test_output.py",
    "zarrfs/tools/pyramids": "tests/tools/test_pyramids.py",
    "zarrfs/tools/verification": "tests/tools/test_verification.py",
    "zarrfs/tools/xarray": "tests/tools/test_xarray.py",
}
"""The test paths of the files in a directory. The entry with the longest matching path applies."""

ALWAYS = "tests/test_architecture.py"
"""The tests that run if any file of the packages has changed."""

MAX_MENTIONS = 4
"""The test modules that mention a source file are run if there are at most this many."""

SLOW = {"tests/cli/test_commands.py", "tests/mount/test_mounting.py", "tests/mount/test_tools.py"}
"""Test modules that are not selected because they mention a source file: each takes most of a minute."""


def changed_files() -> list[str]:
    """Return the paths of the changed files that still exist, relative to the checkout."""
    base = next((commit for branch in MAIN_BRANCHES for commit in _git("merge-base", "HEAD", branch)), "HEAD")
    tracked = _git("diff", "--name-only", "--diff-filter=d", base)
    untracked = _git("ls-files", "--others", "--exclude-standard")
    return sorted({*tracked, *untracked})


def tests_of(paths: Iterable[str]) -> list[str]:
    """Return the test paths of the changed files."""
    selected: set[str] = set()
    for path in paths:
        name = Path(path)
        if name.parts[0] == "tests":
            selected.update(_tests_of_test_file(name))
            continue
        entry = max((key for key in TESTS if f"{path}/".startswith(f"{key}/")), key=len, default=None)
        if entry is None:
            continue
        if name.suffix in (".py", ".c", ".h") and name.parts[0] in ("zarrfs", "viewer"):
            selected.add(ALWAYS)
        defaults = TESTS[entry].split()
        selected.update(_named_tests(name.stem, defaults) or defaults)
        selected.update(_mentioning_tests(name))
    return sorted(
        test for test in selected if not any(str(parent) in selected for parent in Path(test).parents)
    )


def _tests_of_test_file(path: Path) -> list[str]:
    if path.name.startswith("test_") and path.suffix == ".py":
        return [str(path)]
    # A helper module: all test modules of its directory may use it. Helpers of all tests have no tests here.
    return [str(path.parent)] if path.suffix == ".py" and path.parent != Path("tests") else []


def _named_tests(stem: str, paths: Iterable[str]) -> set[str]:
    """Return the test modules that are named like a source file, in the directories of its tests."""
    directories = {path if (ROOT / path).is_dir() else str(Path(path).parent) for path in paths} - {"tests"}
    return {
        str(test.relative_to(ROOT))
        for directory in directories
        for test in (ROOT / directory).rglob(f"test_{stem}.py")
    }


def _mentioning_tests(path: Path) -> set[str]:
    """Return the test modules that mention a module, or its name if that is a compound word; none if there are many."""
    if path.suffix != ".py" or path.parts[0] not in ("zarrfs", "viewer") or path.stem.startswith("__"):
        return set()
    module = ".".join(path.with_suffix("").parts[path.parts[0] == "viewer" :])
    names = [module, path.stem] if "_" in path.stem else [module]
    found = {test for test, mentioned in _mentioned_names().items() if not mentioned.isdisjoint(names)}
    found -= {*SLOW, ALWAYS}
    return found if len(found) <= MAX_MENTIONS else set()


@cache
def _mentioned_names() -> dict[str, set[str]]:
    """Return the words of each test module, by its path. A dotted name mentions also its parts and its parents."""
    mentioned = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        words = set(re.findall(r"[\w.]+", path.read_text(encoding="utf-8")))
        for word in [word for word in words if "." in word]:
            words.update(accumulate(word.split("."), "{}.{}".format), word.split("."))
        mentioned[str(path.relative_to(ROOT))] = words
    return mentioned


def _git(*arguments: str) -> list[str]:
    completed = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return completed.stdout.splitlines() if completed.returncode == 0 else []


if __name__ == "__main__":
    sys.stdout.write("".join(f"{path}\n" for path in tests_of(changed_files())))
