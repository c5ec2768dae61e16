"""``zarrfs edit``: attributes, OME-NGFF metadata of both versions, the check before writing, and the order of edits."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.ngff.test_coordinate_graphs import image as image_of_0_6
from zarrfs.cli.main import main
from zarrfs.engine.formats.consolidation import V2Consolidation, V3Consolidation
from zarrfs.engine.stores.wrappers.wrapper import ReadOnlyStore
from zarrfs.errors import MetadataError, OptionError, ReadOnlyError, StoreError, UnsupportedError
from zarrfs.ngff import SystemReference, check_node, compose, load_graph, parse
from zarrfs.ngff.editing import with_affine, with_axis_name, with_placed_image
from zarrfs.ngff.transformations import simplified
from zarrfs.storage import MemoryStore
from zarrfs.tools import build_pyramid, consolidate_metadata, edit
from zarrfs.tools.consolidation import stale_consolidation
from zarrfs.tools.editing.image_edits import axis_edit
from zarrfs.tools.editing.pointers import with_value, without_value


def run(*arguments: object) -> str:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(params=["0.4", "0.5"])
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    data = np.zeros((2, 40, 40), "u2")
    source = zarrfs.create_array(MemoryStore(), data=data)
    path = tmp_path / "image.zarr"
    axes = {"axes": "cyx", "scale": [1, 0.5, 0.5], "unit": "micrometer"}
    build_pyramid(source, path, version=request.param, levels=2, **axes)
    return path


def test_channels_axes_and_names_are_changed(image: Path) -> None:
    channels = (
        "--channel-name 0=DAPI --channel-color DAPI=0000ff --contrast DAPI=100,4000.5 --channel-active 1=no"
    )
    axes = (
        "--scale x=0.25 --unit 1=nanometer --orientation x=left-to-right --orientation 1=inferior-to-superior"
    )
    output = run("edit", image, "--image-name", "cells", *channels.split(), *axes.split())
    assert re.search('^[+] *"label": "DAPI",$', output, re.MULTILINE)
    model = parse(zarrfs.open_group(image).attrs)
    assert model.multiscales[0].name == "cells"
    assert [axis.unit for axis in model.multiscales[0].axes] == [None, "nanometer", "micrometer"]
    assert model.multiscales[0].levels[0].scale == (1, 0.5, 0.25)
    assert model.omero is not None
    first, second = model.omero.channels
    assert (first.label, first.active, second.active) == ("DAPI", True, False)
    assert first.window is not None
    assert (first.window.start, first.window.end, first.window.min, first.window.max) == (
        100,
        4000.5,
        0,
        65535,
    )
    assert second.window is not None
    assert second.window.max == 65535
    assert "orientation  y inferior-to-superior, x left-to-right\n" in run("info", image)
    assert "valid" in run("check", image)


def test_an_edit_that_makes_the_metadata_invalid_is_refused(image: Path) -> None:
    group = zarrfs.open_group(image)
    before = group.attrs.asdict()
    pointer = "/ome/multiscales/0/datasets" if "ome" in before else "/multiscales/0/datasets"
    change = [lambda attributes, node: with_value(attributes, pointer, [])]
    with pytest.raises(MetadataError, match="would make the OME-NGFF metadata invalid"):
        edit(image, change)
    assert zarrfs.open_group(image).attrs.asdict() == before
    assert edit(image, change, check=False).written
    assert zarrfs.open_group(image).attrs.asdict() != before


def test_differences_from_the_store_are_reported_but_not_refused(image: Path) -> None:
    pointer = "/ome/multiscales/0" if "ome" in zarrfs.open_group(image).attrs else "/multiscales/0"
    result = CliRunner().invoke(main, ["edit", str(image), "--set", f"{pointer}/datasets/0/path=9"])
    assert result.exit_code == 1 or "semantic" in result.output, result.output


def test_a_dry_run_writes_nothing(image: Path) -> None:
    before = {file: file.read_bytes() for file in image.rglob("*") if file.is_file()}
    output = run("edit", image, "--set", "a=[1, 2]", "--dry-run")
    assert '"a": [' in output
    assert "nothing was written" in output
    assert {file: file.read_bytes() for file in image.rglob("*") if file.is_file()} == before


def test_edits_are_applied_in_the_order_of_the_command_line(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=(2,), attributes={"a": 1})
    run("edit", tmp_path / "a.zarr", "--set", "b=2", "--delete", "b", "--set", "b/c={}", "--delete", "a")
    assert zarrfs.open_array(tmp_path / "a.zarr").attrs.asdict() == {"b/c": {}}
    assert run("edit", tmp_path / "a.zarr", "--set", "b/c={}") == "nothing to change\n"
    run("edit", tmp_path / "a.zarr", "--set", "text=no JSON", "--set", 'quoted="1"', "--set", "number=1e3")
    attributes = zarrfs.open_array(tmp_path / "a.zarr").attrs.asdict()
    assert attributes == {"b/c": {}, "text": "no JSON", "quoted": "1", "number": 1000.0}


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "[1, NaN]", "1e999"])
def test_numbers_that_json_cannot_represent_are_stored_as_text(text: str, tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr", shape=(2,))
    run("edit", tmp_path / "a.zarr", "--set", f"x={text}")
    assert zarrfs.open_array(tmp_path / "a.zarr").attrs.asdict() == {"x": text}


def test_a_dry_run_refuses_what_cannot_be_written(tmp_path: Path) -> None:
    document = {"shape": [2], "chunks": [2], "dtype": "|u1", "order": "C", "fill_value": 0, "zarr_format": 1}
    (tmp_path / "attrs").write_text("{}")
    (tmp_path / "meta").write_text(json.dumps({**document, "compression": None, "compression_opts": None}))
    for dry_run in (True, False):
        with pytest.raises(UnsupportedError, match="v1 arrays are read-only"):
            edit(tmp_path, [lambda attributes, node: {"a": 1}], dry_run=dry_run)
    with pytest.raises(ReadOnlyError, match="can only be read"):
        edit(ReadOnlyStore(zarrfs.create_array({}, shape=2).store), [lambda attributes, node: {"a": 1}])


def test_a_zip_file_is_edited(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zarr.zip", data=np.arange(5))
    run("edit", tmp_path / "a.zarr.zip", "--set", "a=1")
    array = zarrfs.open_array(tmp_path / "a.zarr.zip")
    assert array.attrs["a"] == 1
    assert array[...].tolist() == list(range(5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no edit was given"),
        (["--set", "x"], "expected a name, = and a value"),
        (["--delete", "x"], "there is no such attribute"),
        (["--delete", "/a/x"], "'a' is a int, not an object or a list"),
        (["--channel-name", "7=x"], "no channel '7'; its channels are 0, 1"),
        (["--channel-color", "0=00f"], "six hexadecimal digits"),
        (["--contrast", "0=5"], "expected 2 numbers"),
        (["--contrast", "0=5,1"], "ascending order"),
        (["--channel-active", "0=1"], "expected yes or no"),
        (["--scale", "q=1"], "no axis 'q'; its axes are c, y, x"),
        (["--scale", "x=-1"], "above 0"),
        (["--axis-name", "3=x"], "no axis '3'"),
        (["--orientation", "x=up"], "expected one of the orientations of RFC-4, found 'up'"),
        (["--orientation", "c=left-to-right"], "not of type space"),
    ],
)
def test_wrong_edits_are_refused(image: Path, arguments: list[str], message: str) -> None:
    zarrfs.open_group(image, mode="r+").attrs["a"] = 1
    before = zarrfs.open_group(image).attrs.asdict()
    result = CliRunner().invoke(main, ["edit", str(image), *arguments])
    assert result.exit_code != 0
    assert message in f"{result.output}{result.exception}"
    assert zarrfs.open_group(image).attrs.asdict() == before


def test_an_image_edit_needs_an_image(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g.zarr")
    for option in ("--scale", "--channel-name"):
        result = CliRunner().invoke(main, ["edit", str(tmp_path / "g.zarr"), option, "0=1"])
        assert isinstance(result.exception, MetadataError)


# -- JSON pointers -----------------------------------------------------------------------------------------------

names = st.text(max_size=4)
documents: st.SearchStrategy[Any] = st.dictionaries(
    names,
    st.recursive(
        st.integers() | st.none() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


def pointers(value: Any, prefix: str = "") -> list[str]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = []
    for key, inner in items:
        pointer = f"{prefix}/{str(key).replace('~', '~0').replace('/', '~1')}"
        found += [pointer, *pointers(inner, pointer)]
    return found


@given(documents, st.data())
def test_a_value_that_is_set_is_the_only_change(document: dict[str, Any], data: st.DataObject) -> None:
    existing = pointers(document)
    if not existing:
        return
    pointer = data.draw(st.sampled_from(existing))
    before = json.dumps(document)
    changed = with_value(document, pointer, "new")
    assert json.dumps(document) == before
    assert pointers(without_value(document, pointer)) != existing or pointer not in existing
    removed = json.dumps(without_value(changed, pointer))
    assert removed == json.dumps(without_value(document, pointer))
    assert '"new"' in json.dumps(changed)


def test_values_are_appended_and_objects_created() -> None:
    assert with_value({"a": [1]}, "/a/-", 2) == {"a": [1, 2]}
    assert with_value({}, "/a/b/c", 2) == {"a": {"b": {"c": 2}}}
    assert with_value({}, "/a~1b/m~0n", 2) == {"a/b": {"m~n": 2}}
    for pointer in ("/a/1", "/a/-1", "/a/x", "/b/c", "", "/a/-/c"):
        with pytest.raises(OptionError):
            with_value({"a": [1], "b": None}, pointer, 2)
        with pytest.raises(OptionError):
            without_value({"a": [1], "b": None}, pointer)


# -- dimension names -------------------------------------------------------------------------------------------


def level_names(image: Path) -> dict[str, Any]:
    return {name: array.dimension_names for name, array in zarrfs.open_group(image).arrays()}


def test_renamed_axes_change_the_dimension_names_of_all_levels(image: Path) -> None:
    """OME-NGFF 0.5: the dimension names are the names of the axes. Those of labels stay."""
    group = zarrfs.open_group(image, mode="r+")
    data = np.zeros((4, 4), "u1")
    label = group.create_group("labels").create_array("0", data=data, dimension_names=["y", "x"])
    consolidate_metadata(image)
    before = {file: file.read_bytes() for file in image.rglob("*") if file.is_file()}
    output = run("edit", image, "--axis-name", "y=v", "--dry-run")
    assert re.search(r'^--- stored 1$.*^-    "y",$.^[+]    "v",$', output, re.MULTILINE | re.DOTALL)
    assert {file: file.read_bytes() for file in image.rglob("*") if file.is_file()} == before
    output = run("edit", image, "--axis-name", "y=v")
    assert level_names(image) == dict.fromkeys("01", ("c", "v", "x"))
    assert label.dimension_names == ("y", "x")
    assert "semantic" not in output
    assert "valid" in run("check", image)
    assert stale_consolidation(zarrfs.open_group(image)) == []


@pytest.mark.parametrize("error", [StoreError("no space"), KeyboardInterrupt()])
def test_dimension_names_stay_if_the_axes_cannot_be_written(
    error: BaseException, image: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> NoReturn:
        assert level_names(image)["0"] == ("c", "v", "x")
        raise error

    monkeypatch.setattr("zarrfs.engine.hierarchy.attributes.Attributes.put_if_unchanged", fail)
    before = {file: file.read_bytes() for file in image.rglob("*") if file.is_file()}
    with pytest.raises(type(error)):
        edit(image, [axis_edit(lambda attributes, axis: with_axis_name(attributes, axis, "v"), "y")])
    assert {file: file.read_bytes() for file in image.rglob("*") if file.is_file()} == before


# -- other writers ---------------------------------------------------------------------------------------------


def test_edits_of_other_writers_are_kept(tmp_path: Path) -> None:
    """Also if the attributes contain NaN, which differs from itself."""
    zarrfs.create_group(tmp_path / "g.zarr", zarr_format=2)
    (tmp_path / "g.zarr" / ".zattrs").write_text('{"not a number": NaN}')
    others = iter(range(2))

    def mine(attributes: Mapping[str, Any], node: object) -> dict[str, Any]:
        for number in others:
            zarrfs.open_group(tmp_path / "g.zarr", mode="r+").attrs[f"other {number}"] = number
            break
        return {**attributes, "mine": True}

    edit(tmp_path / "g.zarr", [mine])
    attributes = zarrfs.open_group(tmp_path / "g.zarr").attrs.asdict()
    assert {name: attributes.get(name) for name in ("other 0", "other 1", "mine")} == {
        "other 0": 0,
        "other 1": 1,
        "mine": True,
    }


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_are_locked_while_they_change(
    zarr_format: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise two programs that edit different nodes lose an entry."""
    zarrfs.create_group(tmp_path / "g.zarr", zarr_format=zarr_format).create_group("inner")
    consolidate_metadata(tmp_path / "g.zarr")
    directory = os.open(tmp_path / "g.zarr", os.O_RDONLY)
    refused = []

    def update_checked(*arguments: Any, **options: Any) -> None:
        with pytest.raises(BlockingIOError):
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        refused.append(True)
        update(*arguments, **options)

    consolidation = V2Consolidation if zarr_format == 2 else V3Consolidation
    update = consolidation.update
    monkeypatch.setattr(consolidation, "update", update_checked)
    run("edit", tmp_path / "g.zarr" / "inner", "--set", "a=1")
    assert refused == [True]
    fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(directory)
    assert stale_consolidation(zarrfs.open_group(tmp_path / "g.zarr")) == []


# -- consolidated metadata -------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Consolidated metadata is currently not part")
@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("path", ["", "inner", "inner/array"])
def test_consolidated_metadata_contain_the_edit(
    zarr_format: int, path: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """zarr-python reads attributes from the consolidated metadata if there are any."""
    import zarr

    group = zarrfs.create_group(tmp_path / "g.zarr", zarr_format=zarr_format)
    inner = group.create_group("inner", attributes={"old": 1})
    inner.create_array("array", data=np.arange(3))
    group.create_group("stale")
    zarr.consolidate_metadata(tmp_path / "g.zarr")
    group["stale"].attrs["later"] = True  # an entry that is out of date for another reason stays so
    caplog.clear()
    output = run("edit", tmp_path / "g.zarr" / path, "--set", "mark=[1]", "--set", "a=b", "--delete", "a")
    node = zarr.open_consolidated(tmp_path / "g.zarr")
    assert (node[path] if path else node).attrs["mark"] == [1]
    assert "later" not in node["stale"].attrs
    assert node["inner/array"].shape == (3,)
    stale = stale_consolidation(zarrfs.open_group(tmp_path / "g.zarr"))
    assert [line.split()[0] for line in stale] == ["stale/.zattrs" if zarr_format == 2 else "stale"]
    assert (f"consolidated metadata of file://{tmp_path}/g.zarr were updated" in output) == bool(
        path or zarr_format == 2
    )
    assert not caplog.records


def test_the_last_attribute_is_deleted_from_consolidated_metadata_too(tmp_path: Path) -> None:
    for zarr_format in (2, 3):
        path = tmp_path / f"{zarr_format}.zarr"
        zarrfs.create_group(path, zarr_format=zarr_format).create_group("inner", attributes={"old": 1})
        consolidate_metadata(path)
        run("edit", path / "inner", "--delete", "old")
        assert stale_consolidation(zarrfs.open_group(path)) == []


def test_invalid_consolidated_metadata_stay_as_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    zarrfs.create_group(tmp_path / "g.zarr", zarr_format=2)
    (tmp_path / "g.zarr" / ".zmetadata").write_text("{")
    output = run("edit", tmp_path / "g.zarr", "--set", "a=1")
    assert "were updated" not in output
    assert zarrfs.open_group(tmp_path / "g.zarr").attrs["a"] == 1
    assert "are not updated" in caplog.text


def scene_of_two(tmp_path: Path) -> Path:
    """Write a group with two images of OME-Zarr 0.6, and no metadata of its own."""
    root = zarrfs.create_group(tmp_path / "scene.zarr")
    for name in ("a", "b"):
        root.create_group(name, attributes={"ome": image_of_0_6()}).create_array(
            "s0", data=np.zeros((4, 5), "u1"), dimension_names=("y", "x")
        )
    return tmp_path / "scene.zarr"


def test_images_are_placed_in_a_scene(tmp_path: Path) -> None:
    scene = scene_of_two(tmp_path)
    places = ["--place", "a=1,0,0;0,1,0", "--place", "b=0,-1,5;1,0,348"]
    result = CliRunner().invoke(main, ["edit", str(scene), *places])
    assert result.exit_code == 0, result.output
    assert check_node(zarrfs.open_group(scene)).valid
    graph = load_graph(zarrfs.open_group(scene))
    assert graph.shown == SystemReference("", "world")
    found = compose(graph, SystemReference("b/s0"), SystemReference("a", "physical"))
    assert found.matrix == ((0, -3, -15), (2, 0, 358))
    again = CliRunner().invoke(main, ["edit", str(scene), "--place", "b=1,0,0;0,1,7"])
    assert again.exit_code == 0, again.output
    edges = zarrfs.open_group(scene).attrs["ome"]["scene"]["coordinateTransformations"]
    assert [edge["type"] for edge in edges] == ["identity", "translation"]
    for place, message in (
        ("c=1,0,0;0,1,7", "c"),
        ("b=1,0;0,1", "the rows of its matrix have 2 numbers"),
        ("b=1,0,0;0,1", "rows of finite numbers"),
        ("b/s0=1,0,0;0,1,0", "is not an image of OME-NGFF 0.6rc0"),
    ):
        refused = CliRunner().invoke(main, ["edit", str(scene), "--place", place])
        assert refused.exit_code == 1
        assert message in str(refused.exception)
    assert zarrfs.open_group(scene).attrs["ome"]["scene"]["coordinateTransformations"] == edges


def test_an_affine_transformation_is_added_to_an_image(tmp_path: Path) -> None:
    scene = scene_of_two(tmp_path)
    result = CliRunner().invoke(main, ["edit", str(scene / "a"), "--affine", "stage=1,0.5,3;0,1,4"])
    assert result.exit_code == 0, result.output
    graph = load_graph(zarrfs.open_group(scene, "a"))
    found = compose(graph, SystemReference("", "physical"), SystemReference("", "stage"))
    assert found.matrix == ((1, 0.5, 3), (0, 1, 4))
    refused = CliRunner().invoke(main, ["edit", str(scene / "a"), "--affine", "physical=1,0,0;0,1,0"])
    assert (refused.exit_code, "name another one" in str(refused.exception)) == (1, True)


def test_coordinate_systems_need_0_6() -> None:
    with pytest.raises(MetadataError, match=r"since OME-NGFF 0\.6rc0"):
        with_affine({"multiscales": [{"datasets": []}]}, "w", ((1.0, 0.0),))
    with pytest.raises(MetadataError, match=r"since OME-NGFF 0\.6rc0"):
        with_placed_image({"ome": {"version": "0.5", "multiscales": []}}, "a", "s", [], ((1.0, 0.0),))


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (((1, 0, 0), (0, 1, 0)), "identity"),
        (((1, 0, 5), (0, 1, 0)), "translation"),
        (((2, 0, 0), (0, 1, 0)), "scale"),
        (((2, 0, 1), (0, 1, 0)), "sequence"),
        (((-2, 0, 1), (0, 1, 0)), "affine"),
        (((0, 1, 0), (1, 0, 0)), "affine"),
        (((1, 0, 0),), "affine"),
    ],
)
def test_matrices_are_stored_as_the_simplest_transformation(rows: Any, kind: str) -> None:
    transformation = simplified(rows)
    assert transformation.kind == kind
    np.testing.assert_array_equal(transformation.matrix(2), rows)
