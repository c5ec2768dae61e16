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

from zarrfs import errors  # noqa: E402
from zarrfs.cli.main import COMMANDS, main  # noqa: E402
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec  # noqa: E402
from zarrfs.engine.codecs.registry import codec_class, codec_names  # noqa: E402
from zarrfs.engine.create.array_options import ArrayOptions, ConsolidatedOptions  # noqa: E402
from zarrfs.engine.create.array_options import described as options_of  # noqa: E402
from zarrfs.engine.dtypes.registry import families  # noqa: E402
from zarrfs.engine.stores.locations import DATABASES, SUFFIXES  # noqa: E402
from zarrfs.files.views import all_kinds  # noqa: E402

__all__ = [
    "architecture_page",
    "commands_page",
    "errors_page",
    "on_files",
    "on_page_markdown",
    "pages",
    "python_page",
    "tables_page",
]

REMEDIES = {
    "ZarrError": "Read the message: it states what was found, what was expected, and what to do.",
    "LocationError": "Check the URL or path, the storage options and the credentials; install the named package.",
    "LocationNotFoundError": "Check the path; the message names the part of it that exists.",
    "NodeNotFoundError": "List the members with `zarrfs tree`, and use one of these paths.",
    "NodeTypeError": "Use `open`, or the function for the kind of node that the message names.",
    "NodeExistsError": "Choose another name, or state what to do: `overwrite=True`, `mode='w'`, `--if-exists`.",
    "MetadataError": "Correct the key that the message names; `zarrfs check` examines OME-NGFF metadata.",
    "FillValueError": "Use a fill value that the data type can represent.",
    "UnsupportedError": "Install the extra that the message names, or convert the data to a supported feature.",
    "ChunkDecodeError": "Restore the chunk from a copy; `zarrfs verify` lists all corrupt chunks, and "
    "`Access(on_corrupt=)` reads them as the fill value.",
    "MissingChunkError": "Restore the chunk, or open the array without `fill_missing=False`.",
    "ChunkEncodeError": "Use a codec that can encode the values, such as one for this data type.",
    "CompatibilityWarning": "Use `oindex` or `vindex`, or filter the warning: the result is that of NumPy.",
    "DataError": "Convert the values to the data type of the array first.",
    "SelectionError": "Use indices within the shape, and `oindex`, `vindex` or `blocks` for their kinds of indexing.",
    "DataShapeError": "Give data of the shape of the selection.",
    "OptionError": "Use the option or value that the message suggests.",
    "KeyNameError": "Use a name without `..`, and without characters that the store does not allow.",
    "StoreError": "Check the disk, the network and the permissions; try again. For unreliable servers, use `zarrfs "
    "mount --retries`, or a `RetryStore` in Python.",
    "ConflictError": "Read the value again, and repeat the change.",
    "ServerError": "Check that the server is reachable, and try again.",
    "ReadOnlyError": "Open the location with a mode that permits writing.",
    "IncompleteCopyError": "Repair the members that are named, or skip them with `--skip-broken`.",
    "MountError": "Run `zarrfs doctor`; it examines FUSE, the mount point and the permissions.",
}

EXIT_CODES = {
    0: "success",
    1: "an error, which is printed; problems that `check`, `verify`, `consolidate --check`, `du` or `doctor` has "
    "found; `umount` could not unmount all mount points",
    2: "incorrect usage: an unknown option, a missing argument, a value that is not valid",
    3: "members were skipped because of `--skip-broken`",
    130: "interrupted with Ctrl-C; copies, imports, pyramids and verifications can be resumed",
    141: "the program that reads the output, such as `head`, has ended (128 + SIGPIPE)",
}

VARIABLES = {
    "ZARRFS_NATIVE": "`0` disables the native library",
    "ZARRFS_FUSE_BINDING": "the FUSE binding: `mfusepy` or `fusepy`",
    "ZARRFS_MAX_DOCUMENT": "the maximum size of metadata documents, in bytes; by default 67108864 (64 MiB)",
    "ZARRFS_VARIABLE_CHUNK_LIMIT": "the maximum size of decoded chunks of variable-length elements, in bytes; by "
    "default 32 MiB and 64 times the encoded size",
    "ZARRFS_PASSWORD": "the password of a URL, if no password file is given (only `zarrfs mount`)",
    "NO_COLOR": "if it is not empty, the output has no colours; the same if `TERM` is `dumb`",
    "FUSE_LIBRARY_NAME": "the name of the FUSE library for mfusepy, by default `fuse3` if it is installed",
    "ICECHUNK_LOG": "the filter of the log of icechunk, which writes to standard error (default: errors only)",
    "XDG_STATE_HOME": "the directory of the log, the records of mounts and the locks of writable mounts (in "
    "`zarrfs/`); by default `~/.local/state`",
    "XDG_DATA_HOME": "the directory for `zarrfs-viewer --install-desktop`; by default `~/.local/share`",
    "XDG_RUNTIME_DIR": "the directory of the mounts that the viewer creates; by default that of temporary files",
    "TMPDIR": "the directory of temporary files",
    "DISPLAY`, `WAYLAND_DISPLAY`, `QT_QPA_PLATFORM": "the display of the viewer, as for all Qt programs",
    "OPENBLAS_NUM_THREADS": "the threads of NumPy's linear algebra; by default the commands use one",
    "CC": "the C compiler with which an installation from the source builds the native library",
}
"""The environment variables that zarrfs reads. Those of the libraries for servers are in ``remote-data.md``."""

LOW_SEARCH_RANK = "---\nsearch:\n  boost: 0.01\n---\n\n"
"""The head of a page whose many docstrings would precede the guides in the results of the search."""

OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)\)")
"""A link from a page in ``docs`` to a file outside of it."""

OPENING = "Open"

CREATION = "Create arrays and groups"

COMMAND = re.compile(r"^## zarrfs ([a-z]+)$", re.MULTILINE)
"""The heading of a command in ``docs/command-line.md``."""

PACKAGE_SECTIONS: dict[str, tuple[str, ...]] = {
    OPENING: ("open", "open_array", "open_group", "open_consolidated", "ReadWriteOptions"),
    "Arrays": ("Array",),
    "Groups": ("Group", "tree"),
    CREATION: (
        *("create_array", "create_group", "group", "array", "zeros", "ones", "full", "empty", "create"),
        *("from_array", "zeros_like", "ones_like", "full_like", "empty_like", "open_like", "ChunkConstraint"),
    ),
    "Save and load": ("save", "save_array", "save_group", "load"),
    "Copy and consolidate": ("copy", "copy_all", "copy_store", "consolidate_metadata"),
    "Locks": ("ProcessSynchronizer", "ThreadSynchronizer"),
}
"""Heading -> names of the package ``zarrfs``. The exceptions and modules are on other pages."""

OPTION_CLASSES = ("ReadWriteOptions", "ChunkConstraint")
"""Classes whose attributes users set. The engine uses their methods."""

PYTHON_MODULES = (
    "zarrfs.tools",
    "zarrfs.files.importing",
    "zarrfs.files.exporting",
    "zarrfs.mount",
    "zarrfs.dask",
    "zarrfs.tensorstore",
    "zarrfs.codecs",
    "zarrfs.storage",
    "zarrfs.ngff",
    "zarrfs.synthetic",
    "zarrfs.testing",
    "zarrfs.errors",
)

CONTRACT_MODULES = ("zarrfs.storage", "zarrfs.testing")
"""Modules whose classes implement one base class. Its members are described there, and not again in each class."""

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


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Replace links to files of the checkout that are not part of the site: README.md by the home page.

    Each command of the page of the command line gets a link to its help, which only the site has.
    """
    if page.file.generated_by is not None:  # Its links are those of the site.
        return markdown
    markdown = markdown.replace("](../README.md)", "](index.md)").replace(
        "](../ARCHITECTURE.md)", "](architecture.md)"
    )
    if page.file.src_uri == "command-line.md":
        markdown = COMMAND.sub(r"\g<0>\n\n[All options](reference/commands.md#zarrfs-\1)", markdown)
    return OUTSIDE.sub(r"\1 (`\2` of the source code)", markdown)


def pages() -> dict[str, str]:
    """Return the generated pages: path in the site -> text."""
    return {
        "architecture.md": architecture_page(),
        "reference/commands.md": commands_page(),
        "reference/tables.md": tables_page(),
        "reference/errors.md": errors_page(),
        "reference/python.md": python_page(),
        "reference/modules.md": _modules("Python modules", PYTHON_MODULES),
        "reference/extensions.md": _modules("The extension interface", EXTENSION_MODULES),
    }


def architecture_page() -> str:
    """Return ARCHITECTURE.md, whose links to ``docs`` become links to the pages of the site."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    text = re.sub(r"\[[^\]]+\]\((?!docs/|https?:|#)([^)#]+)\)", r"`\1` of the source code", text)
    return text.replace("](docs/", "](")


def commands_page() -> str:
    """Return the help of all commands."""
    context = click.Context(main, info_name="zarrfs", max_content_width=100, terminal_width=100)
    parts = ["# Help of the commands", _text_block(main.get_help(context))]
    for name in COMMANDS:
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, parent=context, info_name=name, terminal_width=100)
        parts += [f"## zarrfs {name}", _text_block(command.get_help(inner))]
    return "\n\n".join(parts) + "\n"


def python_page() -> str:
    """Return the reference of the package ``zarrfs``: opening and arrays first."""
    parts = [
        LOW_SEARCH_RANK + "# The package zarrfs",
        "`import zarrfs` provides these functions and classes, with the names and semantics of zarr-python; "
        "[Coming from zarr-python](../coming-from-zarr-python.md) lists the differences. The [modules](modules.md) "
        "have stores, codecs, tools, mounts and Dask. All exceptions are in the table of [error "
        "classes](errors.md#error-classes).",
    ]
    for heading, names in PACKAGE_SECTIONS.items():
        parts.append(f"## {heading}")
        if heading == OPENING:
            parts += [
                "### Options of locations",
                _table(("option", "meaning"), _options(ConsolidatedOptions)),
            ]
        if heading == CREATION:
            parts += ["### Options of new arrays", _table(("option", "meaning"), _options(ArrayOptions))]
        for name in names:
            options = "\n      members: false" if name in OPTION_CLASSES else ""
            parts.append(f"::: zarrfs.{name}\n    options:\n      heading_level: 3{options}")
    return "\n\n".join(parts) + "\n"


def tables_page() -> str:
    """Return the tables of views, codecs, stores and extras."""
    classes = {"zip": "ZipStore", **{name: store for name, (_, store) in DATABASES.items()}}
    sections = [
        "# Files, codecs, stores and extras",
        "What this version supports. The tables are generated from the program.",
        "## Files in a mount",
        "`ls` shows the files that are listed; the others can be opened by name. [Files of a mount](../mount-files.md) "
        "states which program reads which file.",
        _table(
            ("suffix", "listed", "description"),
            [
                (f"`{view.suffix}`", "yes" if view.listed else "by name", _summary(type(view)))
                for view in all_kinds()
            ],
        ),
        "## Codecs",
        "In format 2, the codecs of numcodecs have the name without `numcodecs.`, such as `lz4`.",
        _table(("name in Zarr v3 metadata", "kind", "description"), _codecs()),
        "## Data types",
        _table(("names in Zarr v3 metadata", "description"), _data_types()),
        "## Databases and archives",
        _table(
            ("suffix of a new file", "store"),
            [(f"`{suffix}`", f"`{classes[store]}`") for suffix, store in SUFFIXES.items()],
        ),
        _table(
            ("scheme of the URL", "store"),
            [(f"`{name}://`", f"`{store}`") for name, (_, store) in DATABASES.items()],
        ),
        "Other schemes are those of fsspec, and of packages that are installed. See [stores](../stores.md).",
        "## Extras",
        "`pip install '.[NAME]'` in a clone installs the packages of an extra. "
        "[Installation](../installation.md#extras) lists what each is for.",
        _table(("extra", "packages"), _extras()),
    ]
    return "\n\n".join(sections) + "\n"


def errors_page() -> str:
    """Return the error classes with remedies, the exit codes, and the environment variables."""
    classes = [
        error
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.ZarrError | Warning)
    ]
    rows = []
    for error in classes:
        builtin = [base for base in error.__mro__ if base.__module__ == "builtins"]
        bases = [
            base for base in builtin if not any(issubclass(other, base) for other in builtin if other != base)
        ]
        shown = ", ".join(f"`{base.__name__}`" for base in bases if base is not Exception)
        rows.append((f"`{error.__name__}`", shown, _summary(error), REMEDIES[error.__name__]))
    sections = [
        "# Errors and settings",
        "The exceptions of zarrfs, the exit codes of the commands, and the environment variables that are read. The "
        "library and the commands have no configuration file. The viewer stores its preferences in "
        "`~/.config/zarrfs/viewer.conf`.",
        "## Error classes",
        "Every error that a program or user can cause is a `zarrfs.ZarrError`. The classes are also subclasses of the "
        "built-in exceptions that zarr-python raises for the same fault, so that `except KeyError` works with both.",
        _table(("class", "also a", "meaning", "what to do"), rows),
        "## Exit codes",
        _table(("code", "meaning"), [(f"`{code}`", text) for code, text in EXIT_CODES.items()]),
        "## Environment variables",
        _table(("variable", "meaning"), [(f"`{name}`", text) for name, text in VARIABLES.items()]),
        "[The help of the commands](commands.md) lists their options and those of mounts, [the package "
        "zarrfs](python.md#zarrfs.open) those of `open`, and [caches](../concurrent-access.md#caches) the sizes of "
        "caches.",
    ]
    return "\n\n".join(sections) + "\n"


def _options(*kinds: type) -> Iterator[tuple[str, str]]:
    """Yield the options of typed dictionaries, with their meaning, their default and their other names."""
    described = {name: option for kind in kinds for name, option in options_of(kind).items()}
    for name, option in described.items():
        if option.help:
            aliases = [f"`{other}`" for other, entry in described.items() if entry.alias_of == name]
            notes = [] if option.default is None else [f"Default: `{option.default!r}`."]
            notes += [f"Also {', '.join(aliases)}."] if aliases else []
            yield f"`{name}`", " ".join([f"{option.help}.".replace("``", "`"), *notes])


def _data_types() -> Iterator[tuple[str, str]]:
    names: dict[str, list[str]] = {}
    for name, family in families().items():
        names.setdefault(_summary(type(family)), []).append(f"`{name}`")
    for summary, members in names.items():
        yield ", ".join(members), summary


def _codecs() -> Iterator[tuple[str, str, str]]:
    for name in codec_names():
        codec = codec_class(name)
        if codec is None:
            continue
        kind = "bytes -> bytes"
        if issubclass(codec, ArrayArrayCodec):
            kind = "array -> array"
        elif issubclass(codec, ArrayBytesCodec):
            kind = "array -> bytes"
        yield f"`{name}`", kind.replace(" ", "&nbsp;"), _summary(codec).removeprefix(f"{kind}: ")


def _extras() -> Iterator[tuple[str, str]]:
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for name, requirements in extras.items():
        if name not in ("test", "docs", "emulators"):
            yield f"`{name}`", ", ".join(f"`{requirement}`" for requirement in requirements)


def _modules(title: str, names: Sequence[str]) -> str:
    parts = [LOW_SEARCH_RANK + f"# {title}"]
    for name in names:
        inherited = "\n    options:\n      inherited_members: false" if name in CONTRACT_MODULES else ""
        parts.append(f"::: {name}{inherited}")
    return "\n\n".join(parts) + "\n"


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
