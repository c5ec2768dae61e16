"""Consolidated metadata that is out of date: reports of ``stale_consolidation``, and warnings on changes and reads."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.servers import WebServer, web_server
from zarrfs import synthetic
from zarrfs.cli.main import main
from zarrfs.engine.stores.locations import open_store
from zarrfs.tools import consolidate_metadata, copy, stale_consolidation

FORMATS = [2, 3]

MISSING = "exists but is missing from the consolidated metadata"
EXTRA = "is in the consolidated metadata but not in the store"
DIFFERENT = "differs from its consolidated metadata"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    with web_server(tmp_path) as server:
        yield server


def create_with_zarrfs(path: Path, zarr_format: int) -> None:
    group = zarrfs.create_group(path, zarr_format=zarr_format, attributes={"nan": float("nan")})
    group.create_array("a", data=np.arange(12), chunks=5, fill_value=3)
    group.create_array("nan", data=np.ones(3), fill_value=np.nan, attributes={"x": [1, None]})
    group.create_group("inner").create_array("b", data=np.ones((3, 4), "u2"), chunks=(2, 2))
    consolidate_metadata(path)


def create_with_zarr_python(path: Path, zarr_format: int) -> None:
    group = zarr.create_group(path, zarr_format=zarr_format, attributes={"t": 1})  # type: ignore[arg-type]
    group.create_array("a", data=np.arange(12), chunks=(5,), fill_value=3)
    group.create_array("nan", data=np.ones(3), fill_value=np.nan, attributes={"x": [1, None]})
    group.create_group("inner").create_array("b", data=np.ones((3, 4), "u2"), chunks=(2, 2))
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)  # type: ignore[arg-type]


def create_with_both(path: Path, zarr_format: int) -> None:
    create_with_zarrfs(path, zarr_format)
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)  # type: ignore[arg-type]


CREATORS = {"zarrfs": create_with_zarrfs, "zarr-python": create_with_zarr_python, "both": create_with_both}

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")


@pytest.fixture(params=CREATORS)
def create(request: pytest.FixtureRequest) -> Any:
    return CREATORS[request.param]


def change_hierarchy(path: Path) -> None:
    """Change the hierarchy below the group, so that no warning is logged."""
    zarrfs.open_array(path / "a", mode="r+").append(np.arange(3))
    zarrfs.create_array(path / "new", data=np.zeros(2), zarr_format=zarrfs.open_group(path).zarr_format)
    for file in sorted((path / "inner" / "b").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (path / "inner" / "b").rmdir()


def nodes_with_problem(problems: list[str], problem_text: str) -> set[str]:
    """Return the nodes that have the problem. In v2 a node has several documents."""
    document_names = {problem.split(" ")[0] for problem in problems if problem_text in problem}
    return {name.rpartition("/")[0] if "/." in name else name for name in document_names}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_differences_are_reported(create: Any, zarr_format: int, tmp_path: Path) -> None:
    create(tmp_path / "g", zarr_format)
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []
    change_hierarchy(tmp_path / "g")
    problems = stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    assert nodes_with_problem(problems, MISSING) == {"new"}
    assert nodes_with_problem(problems, EXTRA) == {"inner/b"}
    assert nodes_with_problem(problems, DIFFERENT) == {"a"}
    consolidate_metadata(tmp_path / "g")
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_differences_are_reported_on_a_web_server(create: Any, zarr_format: int, server: WebServer) -> None:
    """A web server cannot list, so nodes that are missing from the consolidated metadata are not found."""
    create(server.folder / "g", zarr_format)
    assert stale_consolidation(zarrfs.open_group(f"{server.url}/g")) == []
    change_hierarchy(server.folder / "g")
    problems = stale_consolidation(zarrfs.open_group(f"{server.url}/g"))
    assert nodes_with_problem(problems, MISSING) == set()
    assert nodes_with_problem(problems, EXTRA) == {"inner/b"}
    assert nodes_with_problem(problems, DIFFERENT) == {"a"}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_subgroup_with_consolidated_metadata_is_checked(zarr_format: int, tmp_path: Path) -> None:
    create_with_zarrfs(tmp_path / "g", zarr_format)
    consolidate_metadata(tmp_path / "g" / "inner")
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []
    zarrfs.open_array(tmp_path / "g" / "inner" / "b", mode="r+").attrs["x"] = 1
    problems = stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    assert len(problems) == 2
    assert [problem.endswith("(consolidated metadata of inner)") for problem in problems] == [False, True]


def test_invalid_consolidated_metadata_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create_with_zarrfs(tmp_path / "g", 2)
    (tmp_path / "g" / ".zmetadata").write_text('{"metadata": []}')
    (problem,) = stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    assert "invalid" in problem
    assert "/metadata" in problem


def test_a_group_without_consolidated_metadata_is_not_stale(tmp_path: Path) -> None:
    for zarr_format in (2, 3, "n5", "draft2019"):
        zarrfs.create_group(tmp_path / str(zarr_format), zarr_format=zarr_format).create_group("x")
        assert stale_consolidation(zarrfs.open_group(tmp_path / str(zarr_format))) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_the_check_command_reports_stale_metadata(zarr_format: int, tmp_path: Path) -> None:
    version = "0.4" if zarr_format == 2 else "0.5"
    synthetic.write_image(tmp_path / "g", synthetic.make_picture((4, 32, 32)), levels=1, version=version)
    consolidate_metadata(tmp_path / "g")
    result = CliRunner().invoke(main, ["check", str(tmp_path / "g")])
    assert result.exit_code == 0, result.output
    assert "out of date" not in result.output
    zarrfs.create_array(tmp_path / "g" / "new", data=np.zeros(2), zarr_format=zarr_format)
    result = CliRunner().invoke(main, ["check", str(tmp_path / "g")])
    assert result.exit_code == 1
    assert "consolidated metadata is out of date (zarrfs consolidate writes it again)" in result.output
    assert MISSING in result.output
    result = CliRunner().invoke(main, ["check", str(tmp_path / "g"), "--json"])
    assert result.exit_code == 1
    assert len(json.loads(result.output)["stale"]) == 1
    assert CliRunner().invoke(main, ["consolidate", str(tmp_path / "g")]).exit_code == 0
    assert CliRunner().invoke(main, ["check", str(tmp_path / "g")]).exit_code == 0


CHANGES = {
    "create an array": lambda group: group.create_array("inner/c", data=np.ones(3)),
    "create a group": lambda group: group["inner"].create_group("c"),
    "replace": lambda group: group.create_array("a", data=np.ones(3), overwrite=True),
    "delete": lambda group: group.__delitem__("inner/b"),
    "move": lambda group: group.move("a", "inner/c"),
    "resize": lambda group: group["inner/b"].resize(4, 4),
    "append": lambda group: group["a"].append(np.arange(2)),
    "attributes": lambda group: group["inner/b"].attrs.update(x=1),
    "attributes of a group": lambda group: group["inner"].attrs.update(x=1),
    "copy": lambda group: copy(group["a"], group, "copied"),
}


@pytest.mark.parametrize("zarr_format", FORMATS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_makes_the_metadata_stale_warns_once(
    change: str, zarr_format: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_with_zarrfs(tmp_path / "g", zarr_format)
    group = zarrfs.open_group(tmp_path / "g", mode="r+")
    CHANGES[change](group)
    assert len(caplog.records) == 1
    messages = caplog.records[0].getMessage()
    assert "the consolidated metadata of '/' are out of date" in messages
    assert "zarrfs consolidate writes them again" in messages
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    group.create_group("again")
    assert len(caplog.records) == 1
    consolidate_metadata(tmp_path / "g")
    group.create_group("and again")
    assert len(caplog.records) == 2


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_changes_of_chunks_and_of_other_nodes_do_not_make_the_metadata_stale(
    zarr_format: int, tmp_path: Path
) -> None:
    create_with_zarrfs(tmp_path / "g", zarr_format)
    array = zarrfs.open_array(tmp_path / "g", "a", mode="r+")
    array[...] = 7
    zarrfs.open_group(tmp_path, mode="a", zarr_format=zarr_format).create_group("other")
    if zarr_format == 3:
        # The consolidated metadata of a group does not contain its own attributes.
        zarrfs.open_group(tmp_path / "g", mode="r+").attrs["x"] = 1
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_reader_warns_of_stale_metadata(
    create: Any, zarr_format: int, server: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    create(server.folder / "g", zarr_format)
    change_hierarchy(server.folder / "g")
    group = zarrfs.open_group(f"{server.url}/g")
    for _ in range(2):
        array = group["a"]
        assert array.shape == (12,)  # from the consolidated metadata
        array.refresh()
        assert array.shape == (15,)
        assert group["new"].shape == (2,)
        group["nan"].refresh()
        group["inner"].refresh()
    messages = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(messages) == 2
    assert "'a' " in messages[0]
    assert "'new' is missing from the consolidated metadata; zarrfs consolidate" in messages[1]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_consolidated_metadata_is_not_used_for_local_stores(zarr_format: int, tmp_path: Path) -> None:
    create_with_zarrfs(tmp_path / "g", zarr_format)
    change_hierarchy(tmp_path / "g")
    store, _ = open_store(tmp_path / "g")
    assert zarrfs.open_group(store)["a"].shape == (15,)
    assert sorted(zarrfs.open_group(store)) == ["a", "inner", "nan", "new"]
