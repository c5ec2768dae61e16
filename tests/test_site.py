"""The documentation site is built without warnings, and its generated pages are complete."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import zarrfs
from tests.processes import TIMEOUT
from tests.programs import needs_program
from zarrfs.cli.main import COMMANDS
from zarrfs.engine.codecs.registry import codec_names
from zarrfs.engine.create.array_spec import array_spec
from zarrfs.files.views import all_views

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def site_pages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "packaging" / "site_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = list(sys.path)
    spec.loader.exec_module(module)
    sys.path[:] = path
    return module


def test_the_site_is_built_without_warnings(tmp_path: Path) -> None:
    """Links to pages, headings and files that do not exist are warnings, and with --strict errors."""
    if not all(map(importlib.util.find_spec, ("mkdocs", "material", "mkdocstrings"))):
        pytest.skip("mkdocs-material and mkdocstrings are not installed (the extra docs)")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    html = (tmp_path / "site" / "reference" / "python" / "index.html").read_text(encoding="utf-8")
    expected = ["zarrfs.open", "zarrfs.Array", "zarrfs.Array.resize", "zarrfs.create_array"]
    positions = [html.find(f'id="{name}"') for name in expected]
    assert min(positions) > 0
    assert positions == sorted(positions), "opening and arrays are first"
    html = (tmp_path / "site" / "reference" / "modules" / "index.html").read_text(encoding="utf-8")
    for name in ("storage.Store", "tools.verify", "dask.to_zarr", "errors.MissingChunkError"):
        assert f'id="zarrfs.{name}"' in html, name
    html = (tmp_path / "site" / "reference" / "errors" / "index.html").read_text(encoding="utf-8")
    assert 'href="../commands/"' in html
    html = (tmp_path / "site" / "command-line" / "index.html").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f'href="../reference/commands/#zarrfs-{name}"' not in html] == []


def test_the_pages_contain_all_commands_views_and_codecs(site_pages: ModuleType) -> None:
    pages = site_pages.pages()
    for name in COMMANDS:
        assert f"## zarrfs {name}\n" in pages["reference/commands.md"]
    tables = pages["reference/tables.md"]
    for view in all_views():
        assert f"| `{view.suffix}` |" in tables
    assert [name for name in codec_names() if f"| `{name}` |" not in tables] == []
    assert "| `ngff` |" in tables
    assert re.findall(r"^.*\| (?:array|bytes)&nbsp;->.*-> .*$", tables, re.MULTILINE) == [], (
        "the kind is in the table twice"
    )
    architecture = pages["architecture.md"]
    assert "](security.md)" in architecture
    assert "`CONTRIBUTING.md` of the source code" in architecture


def test_the_reference_contains_all_public_names(site_pages: ModuleType) -> None:
    """Those of the package, and the modules that users import. The exceptions are in the page of errors."""
    listed = [name for names in site_pages.PACKAGE_SECTIONS.values() for name in names]
    public = set(zarrfs.__all__) - {"__version__", *vars(zarrfs.errors)}
    # Another name of a class is in the description of the class.
    public = {
        name
        for name in public
        if getattr(getattr(zarrfs, name), "__name__", name) in (name, f"zarrfs.{name}")
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == {name for name in public if not isinstance(getattr(zarrfs, name), ModuleType)}
    pages = site_pages.pages()
    options = set(
        re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", site_pages.python_page(), re.M)))
    )
    assert options >= {*inspect.signature(array_spec).parameters, "data", "overwrite", "access"}
    for name in set(zarrfs.__all__) & set(vars(zarrfs.errors)):
        assert f"| `{name}` |" in pages["reference/errors.md"]


def test_the_settings_are_the_variables_of_the_code(site_pages: ModuleType) -> None:
    files = [file for folder in ("zarrfs", "viewer") for file in (ROOT / folder).rglob("*.py")]
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    read = set(re.findall(r'environ(?:\.\w+)?[\[(]"(\w+)"', code))
    read |= set(re.findall(r'^\w*VARIABLE = "(\w+)"', code, re.MULTILINE))
    assert {"ZARRFS_NATIVE", "XDG_STATE_HOME"} <= read
    # Those of the providers of clouds are on the page about servers.
    page = site_pages.pages()["reference/errors.md"] + (ROOT / "docs" / "remote-data.md").read_text("utf-8")
    assert {name for name in read if f"`{name}`" not in page} == set()


@needs_program("node")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("--max-document", "+max document"),
        ("mount --allow-other", "mount +allow other"),
        ("--if-exists", "if-exists"),
        ("--other-machines", "other-machines"),
        ("mount -bucket fill-value", "mount -bucket fill-value"),
    ],
)
def test_the_search_finds_options(query: str, expected: str) -> None:
    """lunr, the library of the search, takes a minus before a word for its exclusion."""
    worker = "class Worker { postMessage(message) { console.log(message.data) } }\n"
    script = (ROOT / "docs" / "search.js").read_text(encoding="utf-8").replace('"use strict"\n', "")
    call = f"\nnew Worker().postMessage({{ type: 2, data: {json.dumps(query)} }})"
    done = subprocess.run(
        ["node", "-e", worker + script + call], capture_output=True, text=True, check=True, timeout=TIMEOUT
    )
    assert done.stdout.strip() == expected
    assert "extra_javascript: [search.js]" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = set(re.findall(r"([\w-]+\.md)", navigation))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - listed == set()
