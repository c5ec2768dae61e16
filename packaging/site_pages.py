"""The generated pages of the documentation site. mkdocs calls ``on_files`` (mkdocs.yml, hooks).

The tables are made from the registries, and the help of the commands from click, so that they are those of the program.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "viewer")]

import click  # noqa: E402

from zarrfs.cli.main import VERBS, main  # noqa: E402
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec  # noqa: E402
from zarrfs.engine.codecs.registry import codec_class, known_names  # noqa: E402
from zarrfs.engine.locations import DATABASES, SUFFIXES  # noqa: E402
from zarrfs.mount.views.base import DirectoryView, View  # noqa: E402
from zarrfs.mount.views.registry import DIRECTORY_VIEWS, all_views  # noqa: E402

__all__ = ["commands_page", "on_files", "on_page_markdown", "pages", "tables_page"]

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./((?!reference/|stores)[^)#]+)\)")
"""A link from a page in ``docs`` to a file outside of it."""

PYTHON_MODULES = (
    "zarrfs",
    "zarrfs.codecs",
    "zarrfs.storage",
    "zarrfs.tools",
    "zarrfs.tensorstore",
    "zarrfs.testing",
    "zarrfs.errors",
)

EXTENSION_MODULES = tuple(
    f"zarrfs.ext.{name}"
    for name in ("codecs", "data_types", "chunks", "formats", "stores", "views", "metadata")
)


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the files of the site."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace links to files of the checkout that are not part of the site: README.md by the home page."""
    markdown = markdown.replace("](../README.md)", "](index.md)")
    return OUTSIDE.sub(r"\1 (`\2` of the source code)", markdown)


def pages() -> dict[str, str]:
    """Return the generated pages: path in the site -> text."""
    return {
        "reference/commands.md": commands_page(),
        "reference/tables.md": tables_page(),
        "reference/python.md": _modules("Python", PYTHON_MODULES),
        "reference/extensions.md": _modules("The extension interface", EXTENSION_MODULES),
    }


def commands_page() -> str:
    """Return the help of all commands."""
    context = click.Context(main, info_name="zarrfs", max_content_width=100, terminal_width=100)
    parts = ["# Help of the commands", _text_block(main.get_help(context))]
    for name in VERBS:
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, terminal_width=100)
        parts += [f"## zarrfs {name}", _text_block(command.get_help(inner))]
    return "\n\n".join(parts) + "\n"


def tables_page() -> str:
    """Return the tables of views, codecs, stores and extras."""
    views: list[View | DirectoryView] = [*all_views(), *DIRECTORY_VIEWS]
    sections = [
        "# Files, codecs, stores and extras",
        "This page is generated from the registries of the program.",
        "## Files in a mount",
        _table(
            ("suffix", "listed", "description"),
            [
                (f"`{view.suffix}`", "yes" if view.listed else "by name", _summary(type(view)))
                for view in views
            ],
        ),
        "## Codecs",
        _table(("name in Zarr v3 metadata", "kind", "description"), _codecs()),
        "## Databases and archives",
        _table(
            ("suffix of a new file", "store"), [(f"`{suffix}`", store) for suffix, store in SUFFIXES.items()]
        ),
        _table(
            ("scheme of the URL", "store"),
            [(f"`{name}://`", store) for name, (_, store) in DATABASES.items()],
        ),
        "Other schemes are those of fsspec, and of packages that are installed. See [stores](../stores.md).",
        "## Extras",
        "`pip install 'zarrfs[NAME]'` installs the packages of an extra.",
        _table(("extra", "packages"), _extras()),
    ]
    return "\n\n".join(sections) + "\n"


def _codecs() -> Iterator[tuple[str, str, str]]:
    for name in known_names():
        codec = codec_class(name)
        if codec is None:
            continue
        kind = "bytes -> bytes"
        if issubclass(codec, ArrayArrayCodec):
            kind = "array -> array"
        elif issubclass(codec, ArrayBytesCodec):
            kind = "array -> bytes"
        yield f"`{name}`", kind, _summary(codec)


def _extras() -> Iterator[tuple[str, str]]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for name, requirements in extras.items():
        if name not in ("test", "docs"):
            yield f"`{name}`", ", ".join(f"`{requirement}`" for requirement in requirements)


def _modules(title: str, names: Sequence[str]) -> str:
    return "\n\n".join([f"# {title}", *(f"::: {name}" for name in names)]) + "\n"


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(header), _row(["---"] * len(header)), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _text_block(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


def _summary(kind: type) -> str:
    """Return the first sentence of a class's own docstring."""
    lines = (kind.__doc__ or "").strip().split("\n\n")[0].split()
    return " ".join(lines).partition(". ")[0].rstrip(".").replace("``", "`")
