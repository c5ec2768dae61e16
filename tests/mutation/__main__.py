"""Change the code in one place, run the relevant tests, and report whether one fails.

    python -m tests.mutation                                     # 40 mutants of all packages
    python -m tests.mutation --packages stores mount --sample 100 --seed 7
    python -m tests.mutation --key 0a1b2c3d4e                    # one mutant
    python -m tests.mutation --packages ngff --list              # the sample, without running it

It is not part of ``packaging/test.sh``: a mutant that survives takes as long as all relevant tests.

A mutant is one change of one expression or statement (see ``mutants.py``). The sample is random, and equal for the same
seed and sources. The tests run with ``-x`` in a copy of the checkout, including uncommitted changes, so that the
checkout is never modified. The tests that name the mutated module run first, then the tests of its package. A mutant
counts as detected if the tests take five times as long as without it. The memory of the tests is limited. The tests
have
no network access: pip has no index, and HTTP uses a proxy that does not exist.

A mutant is one of
  detected     a test failed, or the time limit was exceeded;
  survived     all relevant tests passed: a test is missing, or the mutant is equivalent;
  equivalent   listed in ``equivalent.txt`` with a reason, after a review: no test can detect it. It is not run.

The report ends with a table of these numbers for each package, with the share of detected mutants among those that are
not equivalent. ``--report FILE`` writes all results as JSON. The exit code is 1 if a mutant survived, and 2 if the
tests fail without a mutant.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.mutation.mutants import Mutant, mutants_of
from tests.processes import end
from zarrfs.mount import mounts

CHECKOUT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")

SOURCES = {
    "engine": "zarrfs/engine",
    "stores": "zarrfs/engine/stores",
    "mount": "zarrfs/mount",
    "ngff": "zarrfs/ngff",
    "viewer": "viewer/zarrfs_viewer",
    "tools": "zarrfs/tools",
    "cli": "zarrfs/cli",
}
"""Each file belongs to the last package that contains it. The Qt widgets of the viewer belong to no package."""

DEFAULT_PACKAGES = ("engine", "stores", "mount", "ngff", "viewer")

TESTS = {
    "zarrfs/engine": "tests/engine tests/tensorstore tests/faults tests/tools/test_copying.py",
    "zarrfs/engine/codecs": "tests/engine/codecs tests/conformance tests/engine tests/faults",
    "zarrfs/engine/formats": "tests/engine/formats tests/conformance tests/engine tests/faults",
    "zarrfs/engine/stores": "tests/engine/stores tests/engine tests/tools",
    "zarrfs/mount": "tests/mount tests/faults/test_mount.py tests/cli",
    "zarrfs/ngff": "tests/ngff tests/viewer/core tests/cli",
    "viewer/zarrfs_viewer": "tests/viewer/core tests/viewer/qt",
    "zarrfs/tools": "tests/tools tests/cli",
    "zarrfs/cli": "tests/cli tests/tools tests/mount tests/ngff",
}
"""The tests of the files below a folder. The longest matching folder applies."""

EXCLUDED_TESTS = ("tests/interop/zarr2",)
"""These tests need an environment that is installed from the network."""

MIN_TIMEOUT_SECONDS = 60.0
TIMEOUT_FACTOR = 5.0
MAX_MEMORY = 8 << 30
"""Bytes of private memory of a test process. Memory-mapped files, for example of LMDB, do not count."""

PYTEST_PASSED, PYTEST_FAILED, PYTEST_NONE = 0, 1, 5


class Runner:
    """Runs tests in a copy of the checkout."""

    def __init__(self, scratch: Path) -> None:
        self.copy = scratch / "checkout"
        self._temporary = scratch / "tmp"
        self._seconds: dict[tuple[str, ...], float] = {}
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=CHECKOUT,
            capture_output=True,
            check=True,
        )
        for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
            if (CHECKOUT / name).is_file():
                (self.copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(CHECKOUT / name, self.copy / name)
        data = os.environ.get("ZARRFS_DATA") or CHECKOUT.parent / "shared" / "data"
        self._environment = {
            **os.environ,
            "CI": "1",  # Hypothesis generates the same examples in each run
            "PYTHONPATH": os.pathsep.join([str(self.copy), str(self.copy / "viewer")]),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TMPDIR": str(self._temporary),
            "ZARRFS_DATA": str(data),
            "PIP_NO_INDEX": "1",
            **{f"{kind}_proxy": "http://127.0.0.1:9" for kind in ("http", "https", "ftp")},
            "no_proxy": "127.0.0.1,localhost",
        }
        imported = self._run(
            [
                sys.executable,
                "-c",
                "import zarrfs, zarrfs_viewer; print(zarrfs.__file__, zarrfs_viewer.__file__)",
            ]
        )
        assert imported is not None
        if imported[1].count(str(self.copy)) != 2:
            raise SystemExit(f"the tests do not import the copy {self.copy}, but {imported[1].strip()}")

    def baseline(self, tests: Sequence[str]) -> float:
        """Return the duration of the tests without a mutant in seconds. Exits with code 2 if they fail."""
        key = tuple(tests)
        if key not in self._seconds:
            start = time.monotonic()
            result = self._pytest(tests, None)
            if result is None or result[0] not in (PYTEST_PASSED, PYTEST_NONE):
                print(result[1] if result else "", file=sys.stderr)
                print(f"the tests fail without a mutant: {' '.join(tests)}", file=sys.stderr)
                raise SystemExit(2)
            self._seconds[key] = time.monotonic() - start
        return self._seconds[key]

    def find_detecting_test(self, mutant: Mutant) -> str | None:
        """Return the test that detects a mutant, or ``time limit``; None if the mutant survives."""
        file = self.copy / mutant.path
        source = file.read_bytes()
        for tests in self._stages(mutant.path):
            seconds = max(MIN_TIMEOUT_SECONDS, TIMEOUT_FACTOR * self.baseline(tests))
            file.write_bytes(mutant.apply(source))
            try:
                result = self._pytest(tests, seconds)
            finally:
                file.write_bytes(source)
            if result is None:
                return "time limit"
            if result[0] not in (PYTEST_PASSED, PYTEST_NONE):
                return _first_failure(result[1])
        return None

    def _stages(self, path: str) -> Iterator[list[str]]:
        """Yield the relevant tests of a file: first the tests named after it or importing it, then its package's."""
        stem = Path(path).stem
        module = path.removesuffix(".py").replace("/", ".")
        direct_tests = set()
        for file in (self.copy / "tests").rglob("test_*.py"):
            name = str(file.relative_to(self.copy))
            if not name.startswith((*EXCLUDED_TESTS, "tests/mutation")):
                words = file.stem.removeprefix("test_").split("_")
                if stem in words or file.stem == f"test_{stem}" or f"{module} " in file.read_text():
                    direct_tests.add(name)
        if direct_tests:
            yield sorted(direct_tests)
        folder = max((folder for folder in TESTS if path.startswith(f"{folder}/")), key=len)
        yield [*TESTS[folder].split(), *(f"--ignore={name}" for name in EXCLUDED_TESTS)]

    def _pytest(self, tests: Sequence[str], seconds: float | None) -> tuple[int, str] | None:
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--no-header"]
        return self._run([sys.executable, "-m", "pytest", *options, *tests], seconds)

    def _run(self, command: Sequence[str], seconds: float | None = None) -> tuple[int, str] | None:
        """Return the exit code and the output, or None after ``seconds``. Ends all processes and mounts of the
        tests.
        """
        self._temporary.mkdir()
        process = subprocess.Popen(
            command,
            cwd=self.copy,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            preexec_fn=_limit_memory,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            end(process)
            self._clear()
        return process.returncode, output

    def _clear(self) -> None:
        """Unmount and delete everything in the temporary directory."""
        for mountpoint, *_ in mounts():
            if mountpoint.startswith(f"{self._temporary}/"):
                subprocess.run(["fusermount3", "-u", "-z", mountpoint], check=False, capture_output=True)
        shutil.rmtree(self._temporary, ignore_errors=True)


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY, MAX_MEMORY))


def _first_failure(output: str) -> str:
    for line in output.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0].partition(" ")[2]
    return "the tests did not start, or crashed"


def package_of(path: str) -> str | None:
    """Return the package of a file, or None."""
    innermost = None
    for package, folder in SOURCES.items():
        if path.startswith(f"{folder}/") and "/qt/" not in path:
            innermost = package
    return innermost


def all_mutants(packages: Sequence[str]) -> list[Mutant]:
    """Return the mutants of the packages."""
    folders = {SOURCES[package].partition("/")[0] for package in packages}
    files = sorted(file for folder in folders for file in (CHECKOUT / folder).rglob("*.py"))
    paths = [str(file.relative_to(CHECKOUT)) for file in files]
    return [
        mutant
        for path in paths
        if package_of(path) in packages
        for mutant in mutants_of(path, (CHECKOUT / path).read_bytes())
    ]


def equivalents() -> dict[str, str]:
    """Return the key and the reason of each mutant that is known to be equivalent."""
    reasons = {}
    for line in EQUIVALENT.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            key, _, reason = line.split(maxsplit=2)
            reasons[key] = reason
    return reasons


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a temporary directory that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="zarrfs-mutation-") as name:
        yield Path(name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program; return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--packages", nargs="+", choices=SOURCES, default=DEFAULT_PACKAGES, metavar="PACKAGE")
    parser.add_argument("--sample", type=int, default=40, help="how many mutants (40)")
    parser.add_argument("--seed", type=int, default=1, help="of the random sample (1)")
    parser.add_argument("--key", nargs="+", default=(), help="these mutants instead of a sample")
    parser.add_argument("--list", action="store_true", help="print the sample and do nothing")
    parser.add_argument("--report", type=Path, help="write the results to this file as JSON")
    options = parser.parse_args(arguments)

    mutants = all_mutants(SOURCES if options.key else options.packages)
    if options.key:
        sample = [mutant for mutant in mutants if mutant.key in options.key]
        missing = set(options.key) - {mutant.key for mutant in sample}
        if missing:
            parser.error(f"no such mutant: {', '.join(sorted(missing))}")
    else:
        sample = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    print(f"{len(sample)} of {len(mutants)} mutants, seed {options.seed}", flush=True)
    if options.list:
        print(*sample, sep="\n")
        return 0
    # SystemExit ends the running tests.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    known = {} if options.key else equivalents()
    results = []
    with scratch_directory() as scratch:
        runner = Runner(scratch)
        for mutant in sample:
            if mutant.key in known:
                outcome, reason = "equivalent", known[mutant.key]
            else:
                detecting_test = runner.find_detecting_test(mutant)
                outcome, reason = ("survived", "") if detecting_test is None else ("detected", detecting_test)
            print(f"{outcome:10}  {mutant}" + (f"\n            {reason}" if reason else ""), flush=True)
            results.append((mutant, outcome, reason))
    _print_summary(results)
    if options.report is not None:
        documents = [
            {**vars(mutant), "outcome": outcome, "reason": reason} for mutant, outcome, reason in results
        ]
        options.report.write_text(json.dumps(documents, indent=1))
    return int(any(outcome == "survived" for _, outcome, _ in results))


def _print_summary(results: Sequence[tuple[Mutant, str, str]]) -> None:
    counts: dict[str, Counter[str]] = {}
    for mutant, outcome, _ in results:
        for name in (package_of(mutant.path) or "", "all"):
            counts.setdefault(name, Counter())[outcome] += 1
    columns = ("detected", "survived", "equivalent")
    print("\npackage  sample  detected  survived  equivalent  share")
    for name, count in sorted(counts.items(), key=lambda item: (item[0] == "all", item[0])):
        total = count["detected"] + count["survived"]
        share = f"{count['detected'] / total:.0%}" if total else "-"
        numbers = "  ".join(f"{count[column]:{len(column)}}" for column in columns)
        print(f"{name:7}  {count.total():6}  {numbers}  {share:>5}")


if __name__ == "__main__":
    sys.exit(main())
