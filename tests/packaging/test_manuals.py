"""The man pages and completion scripts are made from the commands, and shells can read them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import click
import pytest

from tests.processes import TIMEOUT
from tests.programs import needs_program, require_program
from zarrfs.cli.main import COMMANDS, main

PACKAGING = Path(__file__).resolve().parents[2] / "packaging"


@pytest.fixture(scope="module")
def manuals() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manuals", PACKAGING / "manuals.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(command: list[str | Path], **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_there_is_a_man_page_for_each_command_with_all_options(manuals: ModuleType) -> None:
    pages = dict(manuals.man_pages())
    assert set(pages) == {
        "zarrfs.1",
        "zarrfs-viewer.1",
        "mount.zarrfs.8",
        *(f"zarrfs-{name}.1" for name in COMMANDS),
    }
    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        text = pages[f"zarrfs-{name}.1"].replace("\\-", "-")
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) else ():
                assert re.search(rf"(^\\fB|, ){re.escape(option)}\b", text, re.MULTILINE), (name, option)


@needs_program("groff")
def test_groff_formats_the_pages_without_warnings(manuals: ModuleType, tmp_path: Path) -> None:
    manuals.write(tmp_path)
    pages = sorted((tmp_path / "man").rglob("*.[18]"))
    formatted = run(["groff", "-man", "-Tutf8", "-ww", "-P-cbou", *pages])
    assert "zarrfs mount image.zarr /mnt/image" in formatted
    assert "--cache-size" in formatted


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shells_accept_the_completion_scripts(manuals: ModuleType, shell: str, tmp_path: Path) -> None:
    require_program(shell)
    for found, program, text in manuals.completions():
        if found == shell:
            script = tmp_path / program
            script.write_text(text, encoding="utf-8")
            run([shell, "-n", script])


COMPLETE = """
source "$1"
COMP_WORDS=({words})
COMP_CWORD={position}
_zarrfs_completion zarrfs
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["zarrfs", "con"], ["consolidate", "convert"]),
        (["zarrfs", "completion", ""], ["bash", "fish", "zsh"]),
        (["zarrfs", "ls", "--js"], ["--json"]),
        (["zarrfs", "cat", "x", "--as", "r"], ["raw"]),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_options_and_values(
    words: list[str], expected: list[str], manuals: ModuleType, tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "zarrfs"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m zarrfs "$@"\n')
    program.chmod(0o755)
    script = next(text for shell, name, text in manuals.completions() if (shell, name) == ("bash", "zarrfs"))
    (tmp_path / "script").write_text(script, encoding="utf-8")
    text = COMPLETE.format(words=" ".join(f"'{word}'" for word in words), position=len(words) - 1)
    root = PACKAGING.parent
    path = f"{program.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    printed = run(
        ["bash", "-c", text, "bash", tmp_path / "script"],
        PATH=path,
        PYTHONPATH=f"{root}{os.pathsep}{root / 'viewer'}",
    )
    assert sorted(printed.split()) == expected


def test_the_command_writes_the_same_script_as_the_package(manuals: ModuleType) -> None:
    root = PACKAGING.parent
    scripts = {shell: text for shell, name, text in manuals.completions() if name == "zarrfs"}
    printed = run([sys.executable, "-m", "zarrfs", "completion", "fish"], PYTHONPATH=str(root))
    assert printed.strip() == scripts["fish"].strip()
