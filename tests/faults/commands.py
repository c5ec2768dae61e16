"""Run every command that reads a store on every invalid document, and print the problems.

Run as ``python -m tests.faults.commands DIRECTORY``. The output is a JSON list of (command, case, reason). One process
runs all commands, because a process for each would take an hour.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.faults import documents, files
from tests.faults.hostile import Case, v2, v3

COMMANDS: dict[str, list[str]] = {
    "info": ["info", "{store}"],
    "info --json": ["info", "{store}", "--json"],
    "info of the parent group": ["info", "{parent}"],
    "tree": ["tree", "{parent}"],
    "tree --json": ["tree", "{parent}", "--json"],
    "check": ["check", "{store}"],
    "check --json": ["check", "{store}", "--json"],
    "copy": ["copy", "{store}", "{new}"],
    "convert": ["convert", "{store}", "{new}", "--format", "2"],
    "rechunk": ["rechunk", "{store}", "{new}", "--chunks", "2"],
    "migrate": ["migrate", "{store}", "--dry-run"],
    "consolidate": ["consolidate", "{parent}", "--check"],
    "clean": ["clean", "{store}", "--dry-run"],
}

HOSTILE = "\x1b]0;title\x07\x9b31m\nzarrfs: forged\u202e"
"""Terminal control sequences, and a forged line of output."""


def cases() -> Iterator[Case]:
    yield from documents.cases()
    for name, make in (("v3", v3), ("v2", v2)):
        valid = json.loads(make()["zarr.json" if name == "v3" else ".zarray"])
        for key in valid:
            values: list[Any] = [
                HOSTILE,
                {HOSTILE: HOSTILE},
                [HOSTILE] * 3,
                {},
                [],
                None,
                -1,
                1e308,
                [[]],
                [{}],
            ]
            for number, value in enumerate(values):
                yield Case(f"{name} {key} {number}", partial(make, **{key: value}))
    for number, attributes in enumerate(_attributes()):
        yield Case(f"attributes {number}", partial(v3, attributes=attributes))
    yield Case("v2 filter id", partial(v2, filters=[{"id": []}]))
    yield Case("v2 filter id NUL", partial(v2, filters=[{"id": "\0"}]))
    yield Case("v2 compressor id", partial(v2, compressor={"id": {}}))


def _attributes() -> Iterator[Any]:
    yield {HOSTILE: HOSTILE}
    for version in ("0.1", "0.3", "0.4", "0.5", HOSTILE):
        for step in ({}, {"type": {}}, {"type": []}, {"type": HOSTILE, HOSTILE: [1]}):
            axes: Any = [HOSTILE, {"name": {}}, {"name": HOSTILE, "type": {}, "unit": []}]
            multiscales = {
                "version": version,
                "axes": axes,
                "datasets": [{"path": HOSTILE, "coordinateTransformations": [step]}],
                "coordinateTransformations": [step],
            }
            yield {"multiscales": [multiscales], "omero": {"channels": [{"label": HOSTILE, "color": {}}]}}
            yield {
                "ome": {"version": version, "multiscales": [multiscales], "plate": {"wells": [{"path": []}]}}
            }


def run_command(arguments: list[str]) -> str | None:
    """Run a command. Returns the problem with its exit code or output, or None."""
    from zarrfs.cli.main import run

    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["zarrfs", *arguments]
    status: object = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            run()
        except SystemExit as system_exit:
            status = system_exit.code
        except BaseException as error:
            return f"raised {type(error).__name__}: {error}"
    output, errors = out.getvalue(), err.getvalue()
    if status not in (0, 1, 2, 3, None):
        return f"exited with {status!r}"
    if "Traceback" in errors or "unexpected error" in errors:
        return errors
    for line in (output + errors).split("\n"):
        if not line.isprintable():
            return f"prints {line!r}"
        if line.startswith("zarrfs: forged"):
            return "prints a forged line"
    if any(len(line) > 2000 for line in errors.split("\n")):
        return "prints a very long line"
    return None


def main(directory: str) -> None:
    problems: list[tuple[str, str, str]] = []
    for number, case in enumerate(cases()):
        parent = Path(directory) / str(number)
        files.write(parent, files.GROUP)
        files.write(parent / "store", case.make())
        for name, command in COMMANDS.items():
            new = Path(directory) / f"{number} {name}"
            arguments = [
                argument.format(store=parent / "store", parent=parent, new=new) for argument in command
            ]
            reason = run_command(arguments)
            if reason is not None:
                problems.append((name, case.name, reason[:1000]))
    json.dump(problems, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
