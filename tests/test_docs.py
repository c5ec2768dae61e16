"""docs/command-line.md describes each command, its help (which is the reference of the site) each option,
docs/installation.md each extra, and the documents have one spelling.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest
import zarrfs_viewer.main

from zarrfs.cli.extras import DEVELOPMENT
from zarrfs.cli.main import main

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "command-line.md"

CONTEXT = click.Context(main)
COMMANDS = main.list_commands(CONTEXT)


def sections() -> dict[str, str]:
    """Return the text below each heading of the second level."""
    parts = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def commands() -> dict[str, click.Command]:
    """Return all commands, and the group of them as "zarrfs"."""
    found = {name: main.get_command(CONTEXT, name) for name in COMMANDS}
    return {"zarrfs": main, **{name: command for name, command in found.items() if command is not None}}


def viewer_options(capsys: pytest.CaptureFixture[str]) -> set[str]:
    with pytest.raises(SystemExit):
        zarrfs_viewer.main.run(["--help"])
    return set(re.findall(r"--[a-z-]+", capsys.readouterr().out))


def test_every_section_has_an_example() -> None:
    """tests/documentation executes them."""
    assert [name for name, text in sections().items() if not re.search("^```(console|sh)$", text, re.M)] == []


def test_every_command_has_a_section() -> None:
    expected = ["zarrfs", *(f"zarrfs {name}" for name in COMMANDS), "zarrfs-viewer"]
    assert list(sections()) == expected


def test_every_option_is_described_by_the_help() -> None:
    """The reference of the site and the man pages consist of the help."""
    assert set(commands()) == {"zarrfs", *COMMANDS}
    assert [
        f"{name} {option.opts[0]}"
        for name, command in commands().items()
        for option in options(command)
        if not option.help or option.hidden
    ] == []


def test_the_page_names_options_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    known = {name for command in commands().values() for option in options(command) for name in option.opts}
    known |= viewer_options(capsys) | {"--help"}
    named = re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE.read_text(encoding="utf-8"))
    assert len(set(named)) > 30
    assert {name for name in named if name not in known} == set()


def test_the_options_of_the_viewer_are_documented(capsys: pytest.CaptureFixture[str]) -> None:
    """Its help is not part of the reference of the site."""
    rows = re.findall(r"^\| (`.*?) \|", sections()["zarrfs-viewer"], flags=re.MULTILINE)
    assert set(re.findall(r"`(--[a-z-]+)", "".join(rows))) == viewer_options(capsys)


def test_every_extra_is_described() -> None:
    text = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
    described = re.findall(r"^\| `([a-z0-9]+)` \|", text, re.MULTILINE)
    with open(ROOT / "pyproject.toml", "rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    assert len(described) == len(set(described))
    assert set(described) == extras - set(DEVELOPMENT)
    assert set(DEVELOPMENT) <= extras


def test_the_licence_of_every_package_is_stated() -> None:
    """In the row of its extra, which names no other packages."""
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    required = {requirement_name(line) for line in project["dependencies"]}
    expected = {
        extra: {requirement_name(line) for line in lines}
        for extra, lines in project["optional-dependencies"].items()
        if extra not in DEVELOPMENT
    }
    text = (ROOT / "packaging" / "licences.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", text.partition("\n## Optional")[2], re.MULTILINE
    )
    rows = [
        (re.findall(r"`([a-z0-9]+)`", extras), names.split(", ")) for extras, names in rows if "`" in extras
    ]
    for extra, packages in expected.items():
        listed = {name for extras, names in rows if extra in extras for name in names}
        assert packages <= listed, extra
    named = {name for _, names in rows for name in names}
    assert named == set().union(*expected.values())
    table = text.partition("\n## Required")[2].partition("\n## Optional")[0]
    cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)[1:]
    assert {name for cell in cells for name in cell.split(", ")} == required


def requirement_name(requirement: str) -> str:
    """Return the name of the package of a requirement such as ``numpy>=1.26``."""
    name = re.match(r"[\w.-]+", requirement)
    assert name is not None
    return name[0]


def wrong_entries(rows: list[list[str]]) -> list[str]:
    """Return the paths in cells of CONTRIBUTING.md that do not exist, and the names that are not in the file that
    follows them in the cell.
    """
    wrong = []
    for cell in (cell for row in rows for cell in row):
        words = re.findall(r"`([\w./]+)`", cell)
        paths = [word for word in words if "/" in word]
        wrong += [path for path in paths if not (ROOT / path).exists()]
        files = [ROOT / path for path in paths if path.endswith(".py") and (ROOT / path).is_file()]
        names = [word for word in words if re.fullmatch(r"_?[A-Z]\w+", word)]
        wrong += [
            name for name in names if files and not re.search(rf"\b{name}\b", files[0].read_text("utf-8"))
        ]
    return wrong


def test_the_table_of_what_is_added_where_is_true() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("\n## Where to add things\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 10
    assert wrong_entries(rows) == []
    assert wrong_entries(
        [["`BUILT_IN` in `zarrfs/files/views.py`", "`Absent` in `zarrfs/files/views.py`", "`no/file.py`"]]
    ) == [
        "Absent",
        "no/file.py",
    ]


def test_the_modules_of_the_mechanisms_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("\n## Mechanisms\n")[2].partition("\n## ")[0]
    modules = re.findall(r"`([\w/]+(?:\.py|/))`", section)
    assert len(modules) > 20
    folders = (ROOT / "zarrfs", ROOT / "viewer" / "zarrfs_viewer")
    assert [name for name in modules if not any((folder / name).exists() for folder in folders)] == []


OTHER_SPELLINGS = (
    r"colors?|centers?|centered|neighbors?|behaviors?|\w+(?:alis|ognis|hronis)(?:e[sd]?|ing|ation)"
)
"""Words of the documents are spelled colour, centre, neighbour and behaviour, but recognize and synchronize."""


def words_with_another_spelling(text: str) -> list[str]:
    """Return such words of a document, without code, options and headings in links."""
    text = re.sub(r"^```.*?^```$|`[^`]*`|\([^ )]*\)", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(rf"(?<![-\w])(?:{OTHER_SPELLINGS})(?![-\w])", text, flags=re.IGNORECASE)


def test_documents_have_one_spelling() -> None:
    pages = {
        path.name: path.read_text(encoding="utf-8")
        for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("packaging/*.md")]
    }
    found = {name: words_with_another_spelling(page) for name, page in pages.items()}
    assert {name: words for name, words in found.items() if words} == {}
    assert words_with_another_spelling(
        "A Color, a\ncenter; `color` and --channel-color; recognised\n```\ncolors\n```\n"
    ) == [
        "Color",
        "center",
        "recognised",
    ]
