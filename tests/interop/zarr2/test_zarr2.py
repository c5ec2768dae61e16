"""zarrfs reads what zarr-python 2.18 wrote, writes equal documents, and gives equal results.

``record.py`` has recorded what zarr-python 2 does. That other programs read the v2 arrays of zarrfs is shown with
zarr-python 3 and TensorStore in the directory above.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import zarrfs
from tests.interop.samples import all_pairs, same_bits
from tests.interop.zarr2 import cases
from tests.interop.zarr2.cases import BOX, MASK, NUMBERS, ROWS, Case
from zarrfs.tools import from_hdf5

Recording = tuple[Path, dict[str, Any]]
"""The directory of the recorded files, and the results."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("zarr2")
    with tarfile.open(Path(__file__).with_name("recorded.tar.xz")) as archive:
        archive.extractall(folder, filter="data")
    return folder, json.loads((folder / "results.json").read_text())


def test_the_recording_is_of_the_last_release_and_complete(recorded: Recording) -> None:
    folder, results = recorded
    assert results["versions"]["zarr"] == "2.18.7"
    assert set(results["checksums"]) == {str(case) for case in cases.array_cases()}
    assert len(set(results["checksums"])) == len(cases.array_cases())
    assert all_pairs(cases.array_cases()) == all_pairs(cases.combinations())
    assert {path.name for path in (folder / "stores").iterdir()} > set(cases.STORES) - {"a.dbm"}


# -- arrays --------------------------------------------------------------------------------------------------


def document(path: Path) -> Any:
    return json.loads((path / ".zarray").read_text())


def same(found: Any, expected: Any) -> bool:
    """Return whether two object arrays are equal. Elements may be arrays."""
    if found.shape != expected.shape:
        return False
    return all(
        same_bits(a, b) if isinstance(b, np.ndarray) else type(a) is type(b) and a == b
        for a, b in zip(found.flat, expected.flat, strict=True)
    )


@pytest.mark.parametrize("case", cases.array_cases(), ids=str)
def test_values_checksums_and_documents_are_equal(recorded: Recording, case: Case, tmp_path: Path) -> None:
    folder, results = recorded
    theirs = folder / "arrays" / str(case)
    expected = np.load(folder / "values" / f"{case}.npy") if case.lossy else case.data
    found = zarrfs.open_array(theirs, cache_size=0)
    assert same_bits(found[...], expected)
    assert (found.shape, found.chunks, found.order) == (
        case.data.shape,
        case.options["chunks"],
        case.options["order"],
    )
    assert found.dtype == case.numpy
    assert found.nchunks_initialized == found.nchunks
    assert found.attrs.asdict() == cases.ATTRIBUTES
    assert found.hexdigest() == results["checksums"][str(case)]

    written = zarrfs.create_array(tmp_path / "ours", data=case.data, attributes=cases.ATTRIBUTES, **case.ours)
    assert document(tmp_path / "ours") == document(theirs)
    assert same_bits(written[...], expected)


@pytest.mark.parametrize("case", list(cases.object_cases()), ids=str)
def test_object_arrays_are_equal(recorded: Recording, case: Case, tmp_path: Path) -> None:
    folder, results = recorded
    theirs, result = folder / "arrays" / str(case), results["objects"][str(case)]
    found = zarrfs.open_array(theirs, cache_size=0)
    # JSON and MessagePack contain chunks as nested lists. zarr-python 2 writes them in C order and reads them in the
    # order of the array. For square chunks the intended order is unknown. zarrfs reads the same values.
    readable = cases.objects(result["values"]) if case.mixed_up else case.data
    assert same(found[...], readable)
    assert found.hexdigest() == result["checksum"]

    zarrfs.create_array(tmp_path, **case.ours)
    assert document(tmp_path) == document(theirs)
    written = zarrfs.open_array(tmp_path, mode="r+")
    # The missing element of vlen-bytes is an integer among byte strings in zarr-python 2.
    missing = b"" if "vlen-bytes" in case.name else result["missing"]
    assert same(written[...], cases.objects([missing]))
    written[1:3, 2:5] = case.data[1:3, 2:5]
    assert same(written[1:3, 2:5], case.data[1:3, 2:5])
    written[...] = case.data
    assert same(zarrfs.open_array(tmp_path)[...], case.data)


@pytest.mark.parametrize("order", "CF")
def test_pickle_is_refused_unless_requested(recorded: Recording, order: str) -> None:
    place, path = recorded[0] / "arrays" / "pickled", f"inner/{order}"
    with pytest.raises(zarrfs.UnsupportedError, match="allow_pickle"):
        zarrfs.open_array(place, path)
    with pytest.raises(zarrfs.UnsupportedError, match="allow_pickle"):
        zarrfs.open_group(place)[path]
    assert same(zarrfs.open_array(place, path, allow_pickle=True)[...], cases.PICKLED)
    for group in ("", "inner"):
        nodes = dict(zarrfs.open_group(place, group, allow_pickle=True).walk())
        found = nodes[path.removeprefix(f"{group}/")]
        assert isinstance(found, zarrfs.Array)
        assert same(found[...], cases.PICKLED)
    codec = {"id": "pickle", "protocol": 4}
    with pytest.raises(zarrfs.UnsupportedError, match="allow_pickle"):
        zarrfs.create_array({}, shape=2, dtype=object, filters=[codec], zarr_format=2)


def same_elements(found: Any, expected: Any) -> bool:
    """As ``same_bits``, except for the sign of NaN in complex numbers.

    zarr-python 2 computes them by a multiplication with 1j. The sign of its NaN depends on how Python was compiled.
    """
    if np.asarray(expected).dtype.kind != "c":
        return same_bits(found, expected)
    parts = [
        np.asarray(values).reshape(-1).view(f"f{np.asarray(values).itemsize // 2}")
        for values in (found, expected)
    ]
    return np.array_equal(*parts, equal_nan=True)


def without_times(values: Any) -> Any:
    """Return an array with NaT in place of each time."""
    if values.dtype.kind in "mM":
        values[...] = "NaT"
    for name in values.dtype.names or ():
        without_times(values[name])
    return values


@pytest.mark.parametrize("name", cases.fill_cases())
def test_fill_values_are_equal(recorded: Recording, name: str, tmp_path: Path) -> None:
    folder, results = recorded
    dtype, fill = cases.fill_cases()[name]
    theirs = shutil.copytree(folder / "arrays" / name, tmp_path / "theirs")
    found = zarrfs.open_array(theirs, mode="r+")
    assert found.hexdigest() == results["fills"][name]
    if fill is None:
        assert found.fill_value is None
        # Elements that were never written are undefined in zarr-python 2. zarrfs returns zeros, and NaT for times.
        assert same_bits(found[...], without_times(np.zeros(4, dtype)))
        found.resize(3)
        assert document(theirs)["fill_value"] is None
        return
    expected = np.load(folder / "values" / f"{name}.npy")
    assert same_elements(found[...], expected)
    assert same_elements(np.asarray(found.fill_value, dtype), np.asarray(expected[0], dtype))
    ours = tmp_path / "ours"
    written = zarrfs.create_array(ours, zarr_format=2, compressors=None, **cases.fill_options(dtype, fill))
    # Compared as text, because NaN != NaN and -0.0 == 0.0.
    assert json.dumps(document(ours), sort_keys=True) == json.dumps(document(theirs), sort_keys=True)
    assert same_elements(written[...], expected)


# -- stores --------------------------------------------------------------------------------------------------


def check_hierarchy(root: zarrfs.Group, store: str) -> None:
    found = {"": root, **dict(root.walk())}
    expected = cases.nodes(store)
    assert sorted(found) == sorted(expected)
    for path, options in expected.items():
        node = found[path]
        assert node.attrs.asdict() == options["attributes"], path
        if isinstance(node, zarrfs.Array):
            assert same_bits(node[...], options["data"]), path
        else:
            assert "data" not in options


SCHEMES = {"a.dbm": ["dbm://"], "a.sqldb": ["", "sqlite://"], "a.lmdb": ["", "lmdb://"]}
PLACES = [f"{scheme}{name}" for name in cases.STORES for scheme in SCHEMES.get(name, [""])]


@pytest.mark.parametrize("place", PLACES)
def test_hierarchies_are_read_and_changed(
    recorded: Recording, place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The contract suite of stores has the databases on servers, whose keys have the form of zarr-python 2."""
    scheme, _, name = place.rpartition("//")
    location = f"{scheme}//{tmp_path / name}" if scheme else str(tmp_path / name)
    for path in (recorded[0] / "stores").glob(f"{name}*"):  # a DBM database has several files
        copy = shutil.copytree if path.is_dir() else shutil.copy
        copy(path, tmp_path / path.name)
    root = zarrfs.open_group(location)
    check_hierarchy(root, name)
    assert (root.spec.consolidated is not None) == (name in cases.CONSOLIDATED)
    root.store.close()
    if name == "fsspec with slashes.zarr":
        return  # it ignores the separator in the documents
    root = zarrfs.open_group(location, mode="r+", use_consolidated=False)
    root.create_array("inner/more", data=cases.CUBE, chunks=(2, 2, 2), attributes={"by": "us"})
    changed = NUMBERS.copy()
    if not name.endswith(".zip"):
        root["numbers"][1, 1:3] = changed[1, 1:3] = -1
    root.store.close()
    assert ("out of date" in caplog.text) == (name in cases.CONSOLIDATED)
    root = zarrfs.open_group(location, use_consolidated=False)
    assert same_bits(root["inner/more"][...], cases.CUBE)
    assert same_bits(root["numbers"][...], changed)
    root.store.close()


def test_n5_compressors_are_read(recorded: Recording) -> None:
    root = zarrfs.open_group(recorded[0] / "stores" / "compressors.n5")
    assert set(root) == set(cases.n5_arrays())
    for name, (data, _) in cases.n5_arrays().items():
        assert same_bits(root[name][...], data), name


def test_nested_chunks_without_a_declared_separator_are_read(
    recorded: Recording, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """zarr-python before 2.8 wrote no separator into the document, although the chunks are in nested directories."""
    place = shutil.copytree(recorded[0] / "stores" / "nested.zarr" / "numbers", tmp_path / "numbers")
    found = document(place)
    assert found.pop("dimension_separator") == "/"
    (place / ".zarray").write_text(json.dumps(found))
    assert same_bits(zarrfs.open_array(place)[...], NUMBERS)
    assert "nested directories" in caplog.text


def test_experimental_v3_hierarchies_are_read_and_modified(recorded: Recording, tmp_path: Path) -> None:
    """With ZARR_V3_EXPERIMENTAL_API it writes a later draft than that of 2019, which is not Zarr v3 either:
    documents end with .json, chunks lie below data/root. We read it, and what we add to it is in its way.
    """
    place = shutil.copytree(recorded[0] / "stores" / "experimental.zarr", tmp_path / "a.zarr")
    assert json.loads((place / "zarr.json").read_text())["metadata_key_suffix"] == ".json"
    root = zarrfs.open_group(place, mode="r+")
    assert root.zarr_format == "draft2019"
    assert [path for path, _ in root.walk()] == ["group", "group/blosc", "group/zlib", "plain"]
    for path in cases.EXPERIMENTAL:
        array = root[path]
        assert isinstance(array, zarrfs.Array)
        assert same_bits(array[...], NUMBERS)
        assert array.attrs.asdict() == cases.ATTRIBUTES
        assert array.fill_value == 3
        array[1:3, 4] = 77
        array.attrs["more"] = 1
        again = zarrfs.open_array(place, path)
        assert (again[1, 4], again[3, 4], again.attrs["more"]) == (77, NUMBERS[3, 4], 1)
    root.create_array("group/ours", data=NUMBERS, chunks=(2, 2), compressors={"id": "gzip", "level": 1})
    assert (place / "meta/root/group/ours.array.json").exists()
    assert (place / "data/root/group/ours/c0.0").exists()


def test_hdf5_files_are_copied_equally(recorded: Recording, tmp_path: Path) -> None:
    cases.write_hdf5(h5py, tmp_path / "a.h5")
    from_hdf5(tmp_path / "a.h5", tmp_path / "ours", zarr_format=2)
    ours = zarrfs.open_group(tmp_path / "ours")
    theirs = zarrfs.open_group(recorded[0] / "stores" / "copied from hdf5.zarr")
    assert ours.tree() == theirs.tree()
    assert ours["inner"].attrs.asdict() == theirs["inner"].attrs.asdict() == {"count": 3}
    for path in ("inner/numbers", "line"):
        mine, other = ours[path], theirs[path]
        assert isinstance(mine, zarrfs.Array)
        assert isinstance(other, zarrfs.Array)
        assert same_bits(mine[...], other[...])
        assert (mine.chunks, mine.fill_value) == (other.chunks, other.fill_value)
        assert mine.attrs.asdict() == other.attrs.asdict()


# -- functions -----------------------------------------------------------------------------------------------


def test_trees_are_drawn_equally(recorded: Recording) -> None:
    folder, results = recorded
    # zarr-python 2 indents the lines by one more column.
    expected = [line.removeprefix(" ") for line in results["tree"].splitlines()]
    assert zarrfs.open_group(folder / "stores" / cases.COPIED).tree().splitlines() == expected


@pytest.mark.parametrize("function", ["open_array", "open_group", "open"])
def test_modes(recorded: Recording, function: str, tmp_path: Path) -> None:
    """Each mode opens the same node or raises an error in both, for each existing node."""
    for number, (name, mode, state) in enumerate(cases.openings()):
        if name != function:
            continue
        place = tmp_path / str(number)
        if state == "an array":
            zarrfs.create_array(place, data=[1, 2, 3], zarr_format=2)
        elif state == "a group":
            zarrfs.create_group(place, zarr_format=2).create_group("inner")
        # zarrfs refuses options for creation in the modes that create nothing.
        options = {} if mode in ("r", "r+") else {"zarr_format": 2, **cases.creation(function, mode)}
        try:
            node = getattr(zarrfs, function)(place, mode=mode, **options)
        except zarrfs.ZarrError:
            found = None
        else:
            is_array = isinstance(node, zarrfs.Array)
            found = [node[...].tolist() if is_array else sorted(node), node.read_only]
        assert found == recorded[1]["modes"][f"{function} {mode} {state}"], (mode, state)


@pytest.mark.parametrize(("number", "call"), list(enumerate(cases.copies())), ids=str)
def test_copies_are_equal(
    recorded: Recording, number: int, call: tuple[str, dict[str, Any], str | None], tmp_path: Path
) -> None:
    """Counts, log lines, documents and chunks are equal."""
    name, options, again = call
    source = recorded[0] / "stores" / cases.COPIED
    results, files = recorded[1]["copies"][number]
    for mode, result in zip(cases.modes_of(again), results, strict=True):
        lines: list[str] = []
        given = {**options, "if_exists": mode, "log": lines.append}
        if result is None:
            with pytest.raises(zarrfs.NodeExistsError):
                copy(name, source, tmp_path / "ours", given)
            continue
        assert list(copy(name, source, tmp_path / "ours", given)) == result[0]
        if name != "copy_store":
            assert lines[:-1] == result[1][:-1]
    assert cases.files(tmp_path / "ours") == files


def copy(name: str, source: Path, dest: Path, options: dict[str, Any]) -> Any:
    if name == "copy_store":
        return zarrfs.copy_store(source, dest, **options)
    root = zarrfs.open_group(source)
    inner = options.pop("source_path", "")
    node: Any = root[inner] if inner else root
    return getattr(zarrfs, name)(node, zarrfs.group(dest, zarr_format=2), **options)


# -- selections ----------------------------------------------------------------------------------------------


def select(array: zarrfs.Array, kind: str, selection: Any, fields: Any) -> Any:
    if kind in ("brackets", *cases.INDEXERS):
        return (array if kind == "brackets" else getattr(array, kind))[selection]
    return getattr(array, f"get_{kind}_selection")(selection, fields=fields)


def assign(array: zarrfs.Array, kind: str, selection: Any, fields: Any, value: Any) -> Any:
    if kind in ("brackets", *cases.INDEXERS):
        (array if kind == "brackets" else getattr(array, kind))[selection] = value
    else:
        getattr(array, f"set_{kind}_selection")(selection, value, fields=fields)
    return array[...]


def attempt(function: Any, *arguments: Any) -> str | None:
    try:
        return cases.describe(function(*arguments))
    except zarrfs.ZarrError:
        return None


@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("table", cases.TABLES)
def test_selections_have_equal_results(recorded: Recording, table: str, order: str) -> None:
    data, chunks, requests = cases.TABLES[table]
    results = recorded[1]["selections"][table]
    array = zarrfs.create_array({}, data=data, chunks=chunks, order=order, zarr_format=2)
    for request, expected in zip(requests, results["get"], strict=True):
        assert attempt(select, array, *request) == expected, request
    for request, expected in zip(requests, results["set"], strict=True):
        assert attempt(assign, array, *request, cases.ASSIGNED[table]) == expected, request
        array[...] = data


MORE: list[tuple[str, Any, Any]] = [
    ("basic", slice(None, None, -1), BOX[::-1]),
    ("basic", (slice(5, 1, -2), 0), BOX[5:1:-2, 0]),
    ("basic", (0, slice(None, None, -1), slice(3, 1, -1)), BOX[0, ::-1, 3:1:-1]),
    ("orthogonal", (slice(None, None, -1), 0, [1]), BOX[::-1, 0, 1:2]),
    ("orthogonal", ([], slice(None), 0), BOX[:0, :, 0]),
    ("coordinate", ([], [], []), BOX[0, 0, :0]),
    ("block", (slice(5, 9), 0, 0), BOX[:0, :2, :4]),
    ("brackets", MASK, BOX[MASK]),
    ("brackets", ROWS, BOX[ROWS]),
]
"""Selections that zarr-python 2 refuses and zarrfs supports like NumPy: (kind, selection, values)."""


@pytest.mark.parametrize(("kind", "selection", "expected"), MORE, ids=str)
def test_selections_that_zarr_python_2_refuses_follow_numpy(kind: str, selection: Any, expected: Any) -> None:
    array = zarrfs.create_array({}, data=BOX, chunks=(3, 2, 4), zarr_format=2)
    assert same_bits(select(array, kind, selection, None), expected)
