"""Prints the tests of the files that have changed, for ``packaging/test.sh --quick``.

A file has changed if it differs from the merge base with the main branch, or is not tracked. The tests of a source file
are the test modules with its name (``tree.py``: ``test_tree.py``) in the paths of ``TESTS``, or all of these paths if
there is no such module. A changed test module is run itself. A changed file without an entry in ``TESTS`` has no tests
here; the full test suite covers it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

MAIN_BRANCHES = ("origin/main", "main", "origin/master", "master")

TESTS = {
    "benchmarks": "tests/test_synthetic.py",
    "docs": "tests/test_docs.py tests/test_readme.py tests/test_site.py tests/documentation",
    "mkdocs.yml": "tests/test_site.py",
    "packaging": "tests/packaging",
    "README.md": "tests/test_readme.py tests/documentation",
    "viewer/zarrfs_viewer": "tests/viewer/core",
    "viewer/zarrfs_viewer/qt": "tests/viewer/qt",
    "zarrfs": "tests/engine/test_plugins.py tests/engine/test_messages.py",
    "zarrfs/cli": "tests/cli tests/test_docs.py",
    "zarrfs/ext": "tests/test_contracts.py tests/test_extension_example.py",
    "zarrfs/testing": "tests/test_contracts.py tests/engine/stores/test_contract.py",
    "zarrfs/engine": "tests/engine/test_array.py tests/engine/test_group.py tests/engine/test_creation.py",
    "zarrfs/engine/chunking": "tests/engine/test_chunk_grids.py tests/engine/test_chunk_keys.py",
    "zarrfs/engine/codecs": "tests/engine/codecs",
    "zarrfs/engine/creation": "tests/engine/test_creation.py tests/engine/test_chunk_shapes.py",
    "zarrfs/engine/dtypes": "tests/engine/test_dtypes.py tests/engine/test_values.py",
    "zarrfs/engine/formats": "tests/engine/formats",
    "zarrfs/engine/indexing": "tests/engine/test_indexing.py tests/engine/test_selection_properties.py",
    "zarrfs/engine/io": "tests/engine/test_read_plan.py tests/engine/test_writing.py tests/engine/test_reuse.py",
    "zarrfs/engine/stores": "tests/engine/stores",
    "zarrfs/mount": "tests/mount",
    "zarrfs/ngff": "tests/ngff",
    "zarrfs/synthetic.py": "tests/test_synthetic.py",
    "zarrfs/tensorstore": "tests/tensorstore",
    "zarrfs/text.py": "tests/test_text.py",
    "zarrfs/tools": "tests/tools",
}
"""The test paths of the files in a directory. The entry with the longest matching path applies."""

ALWAYS = "tests/test_architecture.py"
"""The tests that run if any file of the packages has changed."""


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
        if name.suffix == ".py":
            selected.add(ALWAYS)
        selected.update(_test_modules(name.stem, TESTS[entry].split()))
    return sorted(selected)


def _tests_of_test_file(path: Path) -> list[str]:
    if path.name.startswith("test_") and path.suffix == ".py":
        return [str(path)]
    # A helper module: all test modules of its directory may use it. Helpers of all tests have no tests here.
    return [str(path.parent)] if path.suffix == ".py" and path.parent != Path("tests") else []


def _test_modules(stem: str, paths: list[str]) -> list[str]:
    directories = [path for path in paths if (ROOT / path).is_dir()]
    named = [f"{directory}/test_{stem}.py" for directory in directories]
    return [path for path in named if (ROOT / path).exists()] or paths


def _git(*arguments: str) -> list[str]:
    completed = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return completed.stdout.splitlines() if completed.returncode == 0 else []


if __name__ == "__main__":
    sys.stdout.write("".join(f"{path}\n" for path in tests_of(changed_files())))
