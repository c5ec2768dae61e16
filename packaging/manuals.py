"""Writes the man pages and the completion scripts of the commands.

    python packaging/manuals.py DIRECTORY

They are made from the objects that print ``--help``: the click commands of ``zarrfs`` and the argparse parser of
``zarrfs-viewer``. Below DIRECTORY the files have the paths that they have below ``/usr/share``.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from zarrfs_viewer.main import make_parser

from zarrfs._version import __version__
from zarrfs.cli.completion import SHELLS, completion_script
from zarrfs.cli.main import COMMANDS, main
from zarrfs.cli.mount_helper import USAGE

__all__ = ["completions", "man_pages", "write"]

Option = tuple[str, str]
"""An option with its metavariable, and its description."""

COMPLETION_PATHS = {
    "bash": "bash-completion/completions/{}",
    "zsh": "zsh/vendor-completions/_{}",
    "fish": "fish/vendor_completions.d/{}.fish",
}

HELPER = """
mount(8) runs this program for file systems of the type fuse.zarrfs, for example for an entry of fstab(5). SOURCE is a
LOCATION of zarrfs-mount(1). OPTIONs are the long options of zarrfs-mount(1) with underscores (cache_size=2G), and the
options of libfuse.

\b
Examples:
  mount -t fuse.zarrfs /data/image.zarr /mnt/image
  /data/image.zarr /mnt/image fuse.zarrfs allow_other,noauto 0 0     (in /etc/fstab)

Exit codes are those of mount(8): 0 success, 1 incorrect usage, 32 the mount failed.
"""


def man_pages() -> Iterator[tuple[str, str]]:
    """Yield the name (``zarrfs-info.1``) and the text of each man page."""
    context = click.Context(main, info_name="zarrfs")
    members = [f"zarrfs-{name}" for name in main.list_commands(context)]
    commands = [(f"zarrfs {name}", COMMANDS[name]) for name in main.list_commands(context)]
    yield (
        "zarrfs.1",
        _page(
            "zarrfs",
            1,
            "work with Zarr hierarchies",
            [f"zarrfs {' '.join(main.collect_usage_pieces(context))}"],
            main.help or "",
            {"COMMANDS": commands, "OPTIONS": _click_options(main, context)},
            ["zarrfs-viewer", *members],
        ),
    )
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name)
        yield (
            f"zarrfs-{name}.1",
            _page(
                f"zarrfs-{name}",
                1,
                COMMANDS[name][0].lower() + COMMANDS[name][1:].rstrip("."),
                [f"zarrfs {name} {' '.join(command.collect_usage_pieces(inner))}"],
                command.help or "",
                {"OPTIONS": _click_options(command, inner)},
                ["zarrfs"],
            ),
        )
    parser = make_parser()
    yield (
        "zarrfs-viewer.1",
        _page(
            "zarrfs-viewer",
            1,
            "view Zarr and OME-Zarr images",
            [parser.format_usage().removeprefix("usage: ").strip()],
            parser.description or "",
            {"OPTIONS": _parser_options(parser)},
            ["zarrfs"],
        ),
    )
    synopsis = USAGE.removeprefix("usage: ")
    helper = _page(
        "mount.zarrfs", 8, "mount helper of zarrfs", [synopsis], HELPER, {}, ["zarrfs-mount", "zarrfs"]
    )
    yield "mount.zarrfs.8", helper


def completions() -> Iterator[tuple[str, str, str]]:
    """Yield the shell, the program and the completion script."""
    parser = make_parser()
    for shell in SHELLS:
        yield shell, "zarrfs", completion_script(main, shell)
        yield shell, "zarrfs-viewer", _viewer_completion(parser, shell)


def write(directory: Path) -> None:
    """Write all files below ``directory``, which corresponds to ``/usr/share``."""
    for name, text in man_pages():
        _write(directory / f"man/man{name[-1]}" / name, text)
    for shell, program, text in completions():
        _write(directory / COMPLETION_PATHS[shell].format(program), text)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")


def _click_options(command: click.Command, context: click.Context) -> list[Option]:
    records = (parameter.get_help_record(context) for parameter in command.get_params(context))
    return [record for record in records if record is not None and record[1]]


def _parser_options(parser: argparse.ArgumentParser) -> list[Option]:
    options = []
    for action in parser._actions:
        names = ", ".join(action.option_strings) or str(action.metavar)
        takes_value = action.option_strings and action.nargs != 0
        options.append((f"{names} {action.metavar}" if takes_value else names, action.help or ""))
    return options


def _page(
    name: str,
    section: int,
    summary: str,
    synopses: Sequence[str],
    description: str,
    lists: dict[str, list[Option]],
    see_also: Sequence[str],
) -> str:
    """Return a page in the macros of man(7)."""
    lines = [
        f'.TH "{_escape(name.upper())}" "{section}" "" "zarrfs {__version__}" "User Commands"',
        ".SH NAME",
        f"{_escape(name)} \\- {_escape(summary)}",
        ".SH SYNOPSIS",
        *(f".B {_escape(synopsis)}" for synopsis in synopses),
        ".SH DESCRIPTION",
        *_paragraphs(description),
    ]
    for heading, items in lists.items():
        lines.append(f".SH {heading}")
        for term, text in items:
            lines += [".TP", f"\\fB{_escape(term)}\\fR", _escape(" ".join(text.split()))]
    pages = [f"\\fB{_escape(other)}\\fR({8 if other.startswith('mount.') else 1})" for other in see_also]
    return "\n".join([*lines, ".SH SEE ALSO", ", ".join(pages)])


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the lines of a help text. Paragraphs that begin with ``\\b`` keep their lines, as in ``--help``."""
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(text).strip()):
        lines = paragraph.splitlines()
        if lines[0].strip() == "\b":
            yield from (".PP", ".nf", *map(_escape, lines[1:]), ".fi")
        else:
            yield from (".PP", _escape(" ".join(line.strip() for line in lines)))


def _escape(text: str) -> str:
    """Return text without meaning for troff: escape characters, hyphens of options, and control lines."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{escaped}" if escaped.startswith(".") else escaped


def _viewer_completion(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the completion script of the viewer. Its arguments other than options are paths."""
    program = parser.prog
    actions = [action for action in parser._actions if action.option_strings]
    if shell == "bash":
        words = " ".join(name for action in actions for name in action.option_strings)
        return f'complete -o bashdefault -o default -W "{words}" {program}'
    if shell == "zsh":
        lines = [f"#compdef {program}", "_arguments \\"]
        for action in actions:
            value = "" if action.nargs == 0 else f":{action.metavar}:_files"
            text = re.sub(r"[\[\]':]", " ", action.help or "")
            lines += [f"    '{name}[{text}]{value}' \\" for name in action.option_strings]
        return "\n".join([*lines, "    '*:location:_files'"])
    lines = []
    for action in actions:
        names = " ".join(
            f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in action.option_strings
        )
        text = (action.help or "").replace("'", "")
        lines.append(f"complete -c {program} {names}{'' if action.nargs == 0 else ' -r'} -d '{text}'")
    return "\n".join(lines)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: packaging/manuals.py DIRECTORY")
    write(Path(sys.argv[1]))
