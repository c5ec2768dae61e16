"""Consolidated metadata that are out of date: found when looked for, and warned of when made so or met."""

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
from zarrfs.engine.locations import open_store
from zarrfs.tools import consolidate_metadata, copy, stale_consolidation

FORMATS = [2, 3]

MISSING = "is there, but not in the consolidated metadata"
EXTRA = "is in the consolidated metadata, but not there"
DIFFERENT = "is otherwise in the consolidated metadata than it is"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    with web_server(tmp_path) as server:
        yield server


def make_by_zarrfs(path: Path, zarr_format: int) -> None:
    group = zarrfs.create_group(path, zarr_format=zarr_format, attributes={"nan": float("nan")})
    group.create_array("a", data=np.arange(12), chunks=5, fill_value=3)
    group.create_array("nan", data=np.ones(3), fill_value=np.nan, attributes={"x": [1, None]})
    group.create_group("inner").create_array("b", data=np.ones((3, 4), "u2"), chunks=(2, 2))
    consolidate_metadata(path)


def make_by_zarr_python(path: Path, zarr_format: int) -> None:
    group = zarr.create_group(path, zarr_format=zarr_format, attributes={"t": 1})  # type: ignore[arg-type]
    group.create_array("a", data=np.arange(12), chunks=(5,), fill_value=3)
    group.create_array("nan", data=np.ones(3), fill_value=np.nan, attributes={"x": [1, None]})
    group.create_group("inner").create_array("b", data=np.ones((3, 4), "u2"), chunks=(2, 2))
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)  # type: ignore[arg-type]


def make_by_both(path: Path, zarr_format: int) -> None:
    make_by_zarrfs(path, zarr_format)
    zarr.consolidate_metadata(str(path), zarr_format=zarr_format)  # type: ignore[arg-type]


MAKERS = {"zarrfs": make_by_zarrfs, "zarr-python": make_by_zarr_python, "both": make_by_both}

pytestmark = pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")


@pytest.fixture(params=MAKERS)
def maker(request: pytest.FixtureRequest) -> Any:
    return MAKERS[request.param]


def spoil(path: Path) -> None:
    """Change the hierarchy with what does not see the group above, and so says nothing."""
    zarrfs.open_array(path / "a", mode="r+").append(np.arange(3))
    zarrfs.create_array(path / "new", data=np.zeros(2), zarr_format=zarrfs.open_group(path).zarr_format)
    for file in sorted((path / "inner" / "b").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    (path / "inner" / "b").rmdir()


def names(problems: list[str], what: str) -> set[str]:
    """The nodes of which something is said; v2 has several documents of a node."""
    found = {problem.split(" ")[0] for problem in problems if what in problem}
    return {name.rpartition("/")[0] if "/." in name else name for name in found}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_what_is_out_of_date_is_found(maker: Any, zarr_format: int, tmp_path: Path) -> None:
    maker(tmp_path / "g", zarr_format)
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []
    spoil(tmp_path / "g")
    problems = stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    assert names(problems, MISSING) == {"new"}
    assert names(problems, EXTRA) == {"inner/b"}
    assert names(problems, DIFFERENT) == {"a"}
    consolidate_metadata(tmp_path / "g")
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_over_a_web_server(maker: Any, zarr_format: int, web: WebServer) -> None:
    """It does not list: what is missing is not to be found."""
    maker(web.folder / "g", zarr_format)
    assert stale_consolidation(zarrfs.open_group(f"{web.url}/g")) == []
    spoil(web.folder / "g")
    problems = stale_consolidation(zarrfs.open_group(f"{web.url}/g"))
    assert names(problems, MISSING) == set()
    assert names(problems, EXTRA) == {"inner/b"}
    assert names(problems, DIFFERENT) == {"a"}


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_group_below_with_its_own(zarr_format: int, tmp_path: Path) -> None:
    make_by_zarrfs(tmp_path / "g", zarr_format)
    consolidate_metadata(tmp_path / "g" / "inner")
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []
    zarrfs.open_array(tmp_path / "g" / "inner" / "b", mode="r+").attrs["x"] = 1
    problems = stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    assert len(problems) == 2
    assert [problem.endswith(", of inner") for problem in problems] == [False, True]


def test_broken_ones_are_found(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    make_by_zarrfs(tmp_path / "g", 2)
    (tmp_path / "g" / ".zmetadata").write_text('{"metadata": []}')
    (problem,) = stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    assert "broken" in problem
    assert "/metadata" in problem


def test_what_has_none_is_not_stale(tmp_path: Path) -> None:
    for zarr_format in (2, 3, "n5", "draft2019"):
        zarrfs.create_group(tmp_path / str(zarr_format), zarr_format=zarr_format).create_group("x")
        assert stale_consolidation(zarrfs.open_group(tmp_path / str(zarr_format))) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_the_command(zarr_format: int, tmp_path: Path) -> None:
    version = "0.4" if zarr_format == 2 else "0.5"
    synthetic.write_image(tmp_path / "g", synthetic.make_picture((4, 32, 32)), levels=1, version=version)
    consolidate_metadata(tmp_path / "g")
    done = CliRunner().invoke(main, ["check", str(tmp_path / "g")])
    assert done.exit_code == 0, done.output
    assert "out of date" not in done.output
    zarrfs.create_array(tmp_path / "g" / "new", data=np.zeros(2), zarr_format=zarr_format)
    done = CliRunner().invoke(main, ["check", str(tmp_path / "g")])
    assert done.exit_code == 1
    assert "consolidated metadata is out of date (zarrfs consolidate writes it again)" in done.output
    assert MISSING in done.output
    done = CliRunner().invoke(main, ["check", str(tmp_path / "g"), "--json"])
    assert done.exit_code == 1
    assert len(json.loads(done.output)["stale"]) == 1
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
def test_a_change_that_makes_it_stale_warns_once(
    change: str, zarr_format: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    make_by_zarrfs(tmp_path / "g", zarr_format)
    group = zarrfs.open_group(tmp_path / "g", mode="r+")
    CHANGES[change](group)
    assert len(caplog.records) == 1
    said = caplog.records[0].getMessage()
    assert "the consolidated metadata of '/' are out of date" in said
    assert "zarrfs consolidate writes them anew" in said
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g"))
    group.create_group("again")
    assert len(caplog.records) == 1
    consolidate_metadata(tmp_path / "g")
    group.create_group("and again")
    assert len(caplog.records) == 2


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_data_and_what_is_not_consolidated_make_nothing_stale(zarr_format: int, tmp_path: Path) -> None:
    make_by_zarrfs(tmp_path / "g", zarr_format)
    array = zarrfs.open_array(tmp_path / "g", "a", mode="r+")
    array[...] = 7
    zarrfs.open_group(tmp_path, mode="a", zarr_format=zarr_format).create_group("other")
    if zarr_format == 3:
        # The group's own attributes are beside its consolidated metadata, not in them.
        zarrfs.open_group(tmp_path / "g", mode="r+").attrs["x"] = 1
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g")) == []


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_reader_is_told_of_what_it_meets(
    maker: Any, zarr_format: int, web: WebServer, caplog: pytest.LogCaptureFixture
) -> None:
    maker(web.folder / "g", zarr_format)
    spoil(web.folder / "g")
    group = zarrfs.open_group(f"{web.url}/g")
    for _ in range(2):
        array = group["a"]
        assert array.shape == (12,)  # as the consolidated metadata have it
        array.refresh()
        assert array.shape == (15,)
        assert group["new"].shape == (2,)
        group["nan"].refresh()
        group["inner"].refresh()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(said) == 2
    assert "'a' is otherwise in the consolidated metadata than it is; zarrfs consolidate" in said[0]
    assert "'new' is missing from the consolidated metadata; zarrfs consolidate" in said[1]


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_where_asking_costs_little_consolidated_metadata_are_not_asked(
    zarr_format: int, tmp_path: Path
) -> None:
    make_by_zarrfs(tmp_path / "g", zarr_format)
    spoil(tmp_path / "g")
    store, _ = open_store(tmp_path / "g")
    assert zarrfs.open_group(store)["a"].shape == (15,)
    assert sorted(zarrfs.open_group(store)) == ["a", "inner", "nan", "new"]
