"""Tree and info output, creation routines and modes equal zarr-python 2, and its experimental v3 format is read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import zarrfs
from tests.interop.samples import same_bits
from tests.interop.zarr2.zarr2_environment import Zarr2, Zarr2Error
from zarrfs.tools import from_hdf5

DATA = np.arange(35, dtype="<u2").reshape(7, 5)


def directory(path: Path) -> tuple[str, dict[str, Any]]:
    return "DirectoryStore", {"path": str(path)}


# -- tree and info output ------------------------------------------------------------------------------------


def hierarchy(path: Path) -> zarrfs.Group:
    root = zarrfs.create_group(path, zarr_format=2, attributes={"a": 1})
    root.create_array("numbers", data=DATA, chunks=(3, 2), attributes={"unit": "µm"})
    root.create_array("inner/deep/line", data=np.arange(10.0), chunks=4, fill_value=1.5)
    root.create_array("inner/records", shape=(2, 2, 2), dtype=[("a", "<i4"), ("b", "<f8")])
    root.create_array("inner/scalar", shape=(), dtype="|S5")
    root.create_group("inner/empty")
    return root


def test_trees_are_displayed_equally(zarr2: Zarr2, tmp_path: Path) -> None:
    root = hierarchy(tmp_path)
    text, _, members = zarr2("describe", directory(tmp_path))
    # zarr-python 2 indents the lines by one more column.
    assert root.tree().splitlines() == [line.removeprefix(" ") for line in text.splitlines()]
    assert list(root.array_keys()) == members["array_keys"]
    assert list(root.group_keys()) == members["group_keys"]


@pytest.mark.parametrize("path", ["numbers", "inner/deep/line", "inner/scalar"])
def test_info_contains_equal_items(zarr2: Zarr2, path: str, tmp_path: Path) -> None:
    array = hierarchy(tmp_path)[path]
    assert isinstance(array, zarrfs.Array)
    theirs = zarr2("array_info", directory(tmp_path), path)
    assert theirs["Name"] == array.info["path"] == array.name
    assert theirs["Data type"] == str(array.dtype)
    assert theirs["Shape"] == str(tuple(array.info["shape"]))
    assert theirs["Chunk shape"] == str(tuple(array.info["chunks"]))
    assert theirs["Order"] == array.info["order"]
    assert theirs["No. bytes"].split()[0] == str(array.info["nbytes"])
    assert theirs["No. bytes stored"].split()[0] == str(array.nbytes_stored())
    if array.ndim:
        assert theirs["Chunks initialized"] == f"{array.nchunks_initialized}/{array.nchunks}"


def test_move_delete_and_require_are_equal(zarr2: Zarr2, tmp_path: Path) -> None:
    steps = [
        ("move", ("inner/deep", "moved/deep")),
        ("delete", "numbers"),
        ("require_group", "moved/new"),
        ("attributes", ("inner/records", {"x": None})),
    ]
    ours = hierarchy(tmp_path / "ours")
    hierarchy(tmp_path / "theirs").store.close()
    zarr2("rearrange", directory(tmp_path / "theirs"), steps)
    ours.move("inner/deep", "moved/deep")
    del ours["numbers"]
    ours.require_group("moved/new")
    ours["inner/records"].attrs.update({"x": None})
    assert dict(zarr2("walk", directory(tmp_path / "ours"))).keys() == dict(ours.walk()).keys() | {""}
    found = zarrfs.open_group(tmp_path / "theirs")
    assert found.tree() == ours.tree()
    for path, node in found.walk():
        assert node.attrs.asdict() == ours[path].attrs.asdict()


def test_hdf5_files_are_copied_equally(zarr2: Zarr2, tmp_path: Path) -> None:
    file = tmp_path / "a.h5"
    with h5py.File(file, "w") as source:
        source.create_dataset("inner/numbers", data=DATA, chunks=(3, 2), fillvalue=3).attrs["unit"] = "µm"
        source.create_dataset("line", data=np.arange(9.0), chunks=(4,))
        source["inner"].attrs["count"] = 3
    zarr2("copy_hdf5", str(file), directory(tmp_path / "theirs"))
    from_hdf5(file, tmp_path / "ours", zarr_format=2)
    ours, theirs = zarrfs.open_group(tmp_path / "ours"), zarrfs.open_group(tmp_path / "theirs")
    assert ours.tree() == theirs.tree()
    assert ours["inner"].attrs.asdict() == theirs["inner"].attrs.asdict() == {"count": 3}
    for path in ("inner/numbers", "line"):
        mine, other = ours[path], theirs[path]
        assert isinstance(mine, zarrfs.Array)
        assert isinstance(other, zarrfs.Array)
        assert same_bits(mine[...], other[...])
        assert (mine.chunks, mine.fill_value) == (other.chunks, other.fill_value)
        assert mine.attrs.asdict() == other.attrs.asdict()


# -- creation ------------------------------------------------------------------------------------------------

ROUTINES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "zeros": (((4, 3),), {"dtype": "<i4"}),
    "ones": (((4, 3),), {}),
    "full": (((5,), 7), {"dtype": "<f4", "order": "F"}),
    "array": ((DATA,), {"chunks": (2, 2)}),
    "empty": ((6,), {"dtype": "|b1"}),
}


@pytest.mark.parametrize("name", ROUTINES)
def test_creation_routines_return_equal_arrays(zarr2: Zarr2, name: str, tmp_path: Path) -> None:
    arguments, options = ROUTINES[name]
    values, facts = zarr2("routine", name, directory(tmp_path), *arguments, **options)
    array = getattr(zarrfs, name)(*arguments, zarr_format=2, **options)
    assert (array.shape, array.order) == (facts["shape"], facts["order"])
    if name == "empty":
        assert array.dtype == values.dtype
        return  # the values are undefined
    assert same_bits(array[...], values)
    if "chunks" in options:
        assert array.chunks == facts["chunks"]
    if name != "array":
        assert array.fill_value == facts["fill_value"]
        assert array.nchunks_initialized == facts["nchunks_initialized"] == 0


@pytest.mark.parametrize(
    ("name", "arguments"), [("zeros_like", ()), ("ones_like", ()), ("full_like", (9,)), ("empty_like", ())]
)
def test_like_routines_return_equal_arrays(
    zarr2: Zarr2, name: str, arguments: tuple[Any, ...], tmp_path: Path
) -> None:
    source = zarrfs.create_array(
        tmp_path / "a", data=DATA, chunks=(2, 3), order="F", fill_value=4, zarr_format=2
    )
    if arguments:
        values, facts = zarr2(
            "like", name, directory(tmp_path / "b"), directory(tmp_path / "a"), fill_value=9
        )
    else:
        values, facts = zarr2("like", name, directory(tmp_path / "b"), directory(tmp_path / "a"))
    array = getattr(zarrfs, name)(source, *arguments)
    # empty_like of zarr-python 2 sets no fill value; ours copies that of the given array.
    for fact in ("shape", "chunks", "order", "fill_value")[: 3 if name == "empty_like" else 4]:
        assert getattr(array, fact) == facts[fact], fact
    if name != "empty_like":
        assert same_bits(array[...], values)


STATES = ("nothing", "an array", "a group")


def prepare(path: Path, state: str) -> None:
    if state == "an array":
        zarrfs.create_array(path, data=[1, 2, 3], zarr_format=2)
    elif state == "a group":
        zarrfs.create_group(path, zarr_format=2).create_group("inner")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("mode", ["r", "r+", "a", "w", "w-"])
@pytest.mark.parametrize("function", ["open_array", "open_group", "open"])
def test_modes(zarr2: Zarr2, function: str, mode: str, state: str, tmp_path: Path) -> None:
    """Each mode opens the same node or raises an error in both, for each existing node."""
    creation: dict[str, Any] = {"shape": 2, "dtype": "<i8"} if function != "open_group" else {}
    if function == "open" and mode in ("r", "r+", "a"):
        creation = {}  # With a shape, zarr-python 2 opens only arrays; zarrfs uses it only to create one.
    prepare(tmp_path / "theirs", state)
    prepare(tmp_path / "ours", state)
    try:
        theirs = zarr2("open_mode", directory(tmp_path / "theirs"), function, mode, **creation)
    except Zarr2Error:
        theirs = "error"
    if mode in ("r", "r+"):
        creation = {}  # zarrfs refuses options for creation in these modes
    else:
        creation["zarr_format"] = 2
    try:
        node = getattr(zarrfs, function)(tmp_path / "ours", mode=mode, **creation)
    except zarrfs.ZarrError:
        ours: Any = "error"
    else:
        if isinstance(node, zarrfs.Array):
            ours = "array", node.shape, node[...].tolist(), node.read_only
        else:
            ours = "group", sorted(node), None, node.read_only
    assert ours == theirs


# -- experimental v3 format ----------------------------------------------------------------------------------


def test_experimental_v3_hierarchies_are_read_and_modified(zarr2: Zarr2, tmp_path: Path) -> None:
    """With ZARR_V3_EXPERIMENTAL_API it writes a later draft than that of 2019, which is not Zarr v3 either:
    documents end with .json, chunks lie below data/root. We read it, and what we add to it is in its way.
    """
    store = "DirectoryStoreV3", {"path": str(tmp_path)}
    words = {"a": {"b": [1]}, "c": "é"}
    for path, order, compressor in (
        ("plain", "C", None),
        ("group/zlib", "F", {"id": "zlib", "level": 1}),
        ("group/blosc", "C", {"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 1, "blocksize": 0}),
    ):
        options = {"shape": DATA.shape, "dtype": DATA.dtype, "chunks": (3, 2), "order": order}
        zarr2(
            "create", store, path, DATA, words, compressor=compressor, zarr_version=3, fill_value=3, **options
        )
    assert json.loads((tmp_path / "zarr.json").read_text())["metadata_key_suffix"] == ".json"
    root = zarrfs.open_group(tmp_path, mode="r+")
    assert root.zarr_format == "draft2019"
    assert [path for path, _ in root.walk()] == ["group", "group/blosc", "group/zlib", "plain"]
    for path in ("plain", "group/zlib", "group/blosc"):
        array = root[path]
        assert isinstance(array, zarrfs.Array)
        assert same_bits(array[...], DATA)
        assert array.attrs.asdict() == words
        assert array.fill_value == 3
        array[1:3, 4] = 77
        array.attrs["more"] = 1
        values, facts = zarr2("read", store, path, zarr_version=3)
        assert same_bits(values, array[...])
        assert facts["attrs"] == {**words, "more": 1}
    root.create_array("group/ours", data=DATA, chunks=(2, 2), compressors={"id": "gzip", "level": 1})
    assert same_bits(zarr2("read", store, "group/ours", zarr_version=3)[0], DATA)


def test_the_draft_of_2019_differs_from_the_experimental_v3_format(zarr2: Zarr2, tmp_path: Path) -> None:
    """New arrays in the format draft2019 follow the draft of 2019 exactly. zarr-python 2 does not find them."""
    zarrfs.create_group(tmp_path, zarr_format="draft2019").create_array("a", data=DATA)
    with pytest.raises(Zarr2Error):
        zarr2("read", ("DirectoryStoreV3", {"path": str(tmp_path)}), "a", zarr_version=3)
