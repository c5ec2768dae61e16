"""The xarray engine ``zarrfs`` compared with xarray's own Zarr engine, and OME-Zarr images as datasets and trees."""

from __future__ import annotations

import asyncio
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numcodecs
import numpy as np
import pandas
import pytest
import xarray
import zarr

import zarrfs
from tests.engine.stores.servers import web_server
from tests.processes import TIMEOUT
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, MissingChunkError, NodeNotFoundError
from zarrfs.tools.xarray.backend import SharedStore, ZarrfsBackend

RNG = np.random.default_rng(3)


def weather() -> xarray.Dataset:
    """Return a dataset with times, bounds, masked and scaled values, a grid mapping, and two-dimensional
    coordinates.
    """
    temperature = RNG.normal(15, 8, (6, 4, 5)).astype("f4")
    temperature[0, 0] = np.nan
    return xarray.Dataset(
        {
            "temperature": (
                ("time", "y", "x"),
                temperature,
                {"units": "degC", "grid_mapping": "spatial_ref"},
            ),
            "packed": (("y", "x"), RNG.normal(size=(4, 5))),
            "count": (("y", "x"), np.arange(20, dtype="i2").reshape(4, 5)),
            "time_bnds": (("time", "nv"), np.arange(12.0).reshape(6, 2)),
            "spatial_ref": ((), 0, {"crs_wkt": "GEOGCS[...]"}),
        },
        {
            "time": ("time", pandas.date_range("2020-02-27", periods=6), {"bounds": "time_bnds"}),
            "lat": (("y", "x"), RNG.normal(size=(4, 5))),
            "x": np.arange(5) * 10.0,
        },
        {"title": "made up", "numbers": [1, 2, 3], "nested": {"a": {"b": 1}}},
    )


def data_types() -> xarray.Dataset:
    """Return a dataset with every data type that xarray writes."""
    return xarray.Dataset(
        {
            "text": ("n", np.array(["a", "bb", "ccc"], object)),
            "fixed": ("n", np.array(["a", "bb", "ccc"], "U4")),
            "raw": ("n", np.array([b"a", b"bb", b"c"], "S3")),
            "flag": ("n", np.array([True, False, True])),
            "complex": ("n", np.array([1 + 1j, 2, 3])),
            "delta": ("n", pandas.to_timedelta([1, 2, 3], "h").to_numpy()),
            "big": ("n", np.array([1, 2, 3], ">i4")),
            "small": ("n", np.array([1, 2, 255], "u1")),
            "masked": ("n", np.array([1.0, np.nan, 3.0])),
            "half": ("n", np.array([1, 2, 3], "f2")),
        },
        {"label": ("n", np.array(["q", "r", "s"], object)), "number": 7},
    )


def scalars() -> xarray.Dataset:
    return xarray.Dataset(
        {"a": 1, "b": 2.5, "c": "text", "d": True, "t": pandas.Timestamp("2021-05-06")}, attrs={}
    )


def empty() -> xarray.Dataset:
    return xarray.Dataset({"none": (("t", "x"), np.zeros((0, 3)))}, attrs={"only": "attributes"})


ENCODING: dict[str, dict[str, Any]] = {
    "temperature": {"chunks": (2, 4, 3), "_FillValue": -999.0},
    "packed": {
        "scale_factor": 0.01,
        "add_offset": 1.0,
        "dtype": "i2",
        "_FillValue": -32768,
        "chunks": (3, 2),
    },
    "time": {"units": "hours since 2020-01-01", "calendar": "standard", "dtype": "i4"},
    "masked": {"dtype": "i2", "_FillValue": -1},
}
SOURCES: dict[str, Callable[[], xarray.Dataset]] = {
    "weather": weather,
    "kinds": data_types,
    "scalars": scalars,
    "empty": empty,
}


def write_dataset(
    dataset: xarray.Dataset, path: Path, zarr_format: int, consolidated: bool, **options: Any
) -> None:
    encoding = {name: value for name, value in ENCODING.items() if name in dataset.variables}
    with warnings.catch_warnings():
        # zarr-python warns about consolidated metadata and data types that are not in the v3 specification.
        warnings.simplefilter("ignore")
        dataset.to_zarr(
            path, zarr_format=zarr_format, consolidated=consolidated, encoding=encoding, **options
        )


def codec_document(codec: Any) -> Any:
    """Return the document of a codec of zarr-python, numcodecs or zarrfs in a common form."""
    if isinstance(codec, numcodecs.abc.Codec):
        return codec.get_config()
    document = dict(codec.to_dict() if hasattr(codec, "to_dict") else codec)
    return {"name": document["name"], "configuration": dict(document.get("configuration") or {})}


def comparable(value: Any) -> Any:
    """Return a value of attributes or encodings in a form in which NaN equals NaN."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return comparable(value.tolist())
    return "NaN" if isinstance(value, float) and np.isnan(value) else value


def encoding_of(variable: xarray.Variable) -> dict[str, Any]:
    opened: dict[str, Any] = {}
    for key, value in variable.encoding.items():
        if key in ("compressors", "filters"):
            opened[key] = [codec_document(codec) for codec in value]
            # With this filter, which the zarr engine returns, xarray writes texts that cannot be read.
            opened[key] = [document for document in opened[key] if document.get("id") != "vlen-utf8"]
        elif key == "serializer":
            opened[key] = codec_document(value)
        elif key == "dtype":
            opened[key] = np.dtype(value) if not isinstance(value, np.dtype) else value
        else:
            opened[key] = comparable(value)
    return opened


def assert_equal_datasets(by_zarrfs: xarray.Dataset, by_zarr: xarray.Dataset) -> None:
    assert dict(by_zarrfs.sizes) == dict(by_zarr.sizes)
    assert set(by_zarrfs.coords) == set(by_zarr.coords)
    assert set(by_zarrfs.variables) == set(by_zarr.variables)
    assert comparable(by_zarrfs.attrs) == comparable(by_zarr.attrs)
    assert set(by_zarrfs.xindexes) == set(by_zarr.xindexes)
    for name in by_zarr.variables:
        actual_variable, expected_variable = by_zarrfs.variables[name], by_zarr.variables[name]
        assert actual_variable.dims == expected_variable.dims, name
        assert actual_variable.dtype == expected_variable.dtype, name
        assert comparable(actual_variable.attrs) == comparable(expected_variable.attrs), name
        assert encoding_of(actual_variable) == encoding_of(expected_variable), name
        assert actual_variable.chunks == expected_variable.chunks, name
    xarray.testing.assert_identical(by_zarrfs.load(), by_zarr.load())


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dask": {"chunks": {}},
    "dask auto": {"chunks": "auto"},
    "decode_cf=False": {"decode_cf": False},
    "mask_and_scale=False": {"mask_and_scale": False},
    "decode_times=False": {"decode_times": False},
    "decode_coords=False": {"decode_coords": False},
    "decode_coords=all": {"decode_coords": "all"},
    "drop_variables": {"drop_variables": ["temperature", "a", "text"]},
    "fill value as mask": {"use_zarr_fill_value_as_mask": True},
    "fill value no mask": {"use_zarr_fill_value_as_mask": False},
}


@pytest.fixture(scope="module")
def dataset_path(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int, bool], Path]:
    """Return a function that returns the path of a dataset, which is written once."""
    root = tmp_path_factory.mktemp("xarray")

    def place(name: str, zarr_format: int, consolidated: bool) -> Path:
        path = root / f"{name}-{zarr_format}-{consolidated}.zarr"
        if not path.exists():
            write_dataset(SOURCES[name](), path, zarr_format, consolidated)
        return path

    return place


CASES = [
    (name, zarr_format, options)
    for name in SOURCES
    for zarr_format in (2, 3)
    for options in OPTIONS
    # Dask refuses to choose chunks of text, with either engine.
    if (name, options) != ("kinds", "dask auto")
]


@pytest.mark.parametrize(("name", "zarr_format", "options"), CASES)
def test_a_dataset_is_the_same_as_with_the_zarr_engine(
    name: str, zarr_format: int, options: str, dataset_path: Callable[[str, int, bool], Path]
) -> None:
    path = dataset_path(name, zarr_format, False)
    keywords = dict(OPTIONS[options])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        by_zarr = open_with_zarr_engine(path, **keywords)
        by_zarrfs = xarray.open_dataset(path, engine="zarrfs", **keywords)
    with by_zarrfs, by_zarr:
        assert_equal_datasets(by_zarrfs, by_zarr)


def open_with_zarr_engine(path: Path, **keywords: Any) -> xarray.Dataset:
    """Open with xarray's engine, which does not pass ``use_zarr_fill_value_as_mask`` on to its store."""
    mask = keywords.pop("use_zarr_fill_value_as_mask", None)
    if mask is None:
        return xarray.open_dataset(path, engine="zarr", consolidated=False, **keywords)
    store = xarray.backends.ZarrStore.open_group(
        str(path), consolidated=False, use_zarr_fill_value_as_mask=mask
    )
    opened = xarray.open_dataset(store, engine="store", **keywords)  # type: ignore[arg-type]
    opened.encoding["source"] = str(path)
    return opened


@pytest.mark.parametrize("consolidated", [None, True, False])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_makes_no_difference(
    zarr_format: int, consolidated: bool | None, dataset_path: Callable[[str, int, bool], Path]
) -> None:
    path = dataset_path("weather", zarr_format, True)
    with (
        xarray.open_dataset(path, engine="zarrfs", consolidated=consolidated) as by_zarrfs,
        xarray.open_dataset(path, engine="zarr", consolidated=consolidated) as by_zarr,
    ):
        assert_equal_datasets(by_zarrfs, by_zarr)


def test_required_consolidated_metadata_must_exist(
    dataset_path: Callable[[str, int, bool], Path],
) -> None:
    path = dataset_path("weather", 3, False)
    with pytest.raises(ValueError, match="no consolidated metadata"):
        xarray.open_dataset(path, engine="zarrfs", consolidated=True)


class RecordingRemoteStore(MemoryStore):
    """Records the documents that are read. It acts as a remote store, for which consolidated metadata is used."""

    concurrency = 8
    is_remote = True

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.documents: list[str] = []

    def get(self, key: str) -> Any:
        if key.endswith(".json"):
            self.documents.append(key)
        return super().get(key)


@pytest.mark.parametrize(("consolidated", "expected"), [(None, True), (True, True), (False, False)])
def test_consolidated_metadata_is_used_for_remote_stores_unless_disabled(
    consolidated: bool | None, expected: bool, dataset_path: Callable[[str, int, bool], Path]
) -> None:
    path = dataset_path("weather", 3, True)
    values = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    store = RecordingRemoteStore(values)
    with xarray.open_dataset(store, engine="zarrfs", consolidated=consolidated) as opened:  # type: ignore[arg-type]
        assert len(opened.variables) == 8
    assert ("temperature/zarr.json" not in store.documents) == expected


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_have_the_paths_of_the_zarr_engine(zarr_format: int, tmp_path: Path) -> None:
    small = xarray.Dataset({"v": ("x", np.arange(3))})
    path = tmp_path / "t.zarr"
    for group in ("/", "a", "a/b", "c/d"):
        write_dataset(small, path, zarr_format, False, group=group, mode="a")
    for top in (None, "/", "a", "/a", "a/b"):
        by_zarr = xarray.open_groups(path, engine="zarr", group=top, consolidated=False)
        by_zarrfs = xarray.open_groups(path, engine="zarrfs", group=top)
        assert sorted(by_zarrfs) == sorted(by_zarr)
        for key in by_zarr:
            assert_equal_datasets(by_zarrfs[key], by_zarr[key])
        with (
            xarray.open_datatree(path, engine="zarr", group=top, consolidated=False) as tree_by_zarr,
            xarray.open_datatree(path, engine="zarrfs", group=top) as tree,
        ):
            assert set(tree.groups) == set(tree_by_zarr.groups)
            xarray.testing.assert_identical(tree.load(), tree_by_zarr.load())
    with xarray.open_datatree(path, engine="zarrfs", decode_cf=False, chunks={}) as lazy:
        assert lazy["a/b"]["v"].chunks == ((3,),)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_an_opened_dataset_can_be_written_by_the_zarr_engine(
    zarr_format: int, dataset_path: Callable[[str, int, bool], Path], tmp_path: Path
) -> None:
    options: dict[str, Any] = {"compressors": [numcodecs.Zlib(3)], "filters": [numcodecs.Delta("<i4")]}
    if zarr_format == 3:
        gzip = {"name": "gzip", "configuration": {"level": 3}}
        transpose = {"name": "transpose", "configuration": {"order": [1, 0]}}
        options = {"compressors": [gzip, {"name": "crc32c"}], "filters": [transpose]}
    data = xarray.Dataset({"a": (("y", "x"), np.arange(20, dtype="<i4").reshape(4, 5))})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data.to_zarr(tmp_path / "a", zarr_format=zarr_format, consolidated=False, encoding={"a": options})
        with xarray.open_dataset(tmp_path / "a", engine="zarrfs") as by_zarrfs:
            by_zarrfs.to_zarr(tmp_path / "b", zarr_format=zarr_format, consolidated=False)
    first, second = zarr.open_group(tmp_path / "a")["a"], zarr.open_group(tmp_path / "b")["a"]
    assert [codec_document(c) for c in first.compressors] == [codec_document(c) for c in second.compressors]
    assert [codec_document(c) for c in first.filters] == [codec_document(c) for c in second.filters]
    assert np.array_equal(second[...], np.arange(20).reshape(4, 5))


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_texts_that_are_written_again_can_be_read(zarr_format: int, tmp_path: Path) -> None:
    data = xarray.Dataset({"t": ("x", np.array(["a", "long", ""], object))})
    first, second = tmp_path / "first.zarr", tmp_path / "second.zarr"
    write_dataset(data, first, zarr_format, False)
    with xarray.open_dataset(first, engine="zarrfs") as opened:
        write_dataset(opened, second, zarr_format, False)
    with (
        xarray.open_dataset(second, engine="zarrfs") as by_zarrfs,
        xarray.open_dataset(second, engine="zarr", consolidated=False) as by_zarr,
    ):
        assert by_zarrfs["t"].values.tolist() == ["a", "long", ""]
        assert by_zarr["t"].values.tolist() == ["a", "long", ""]


def test_links_out_of_the_store_and_missing_chunks_have_options(tmp_path: Path) -> None:
    array = zarrfs.create_array(
        tmp_path / "g.zarr", "a", data=np.arange(4), chunks=(2,), dimension_names=["x"]
    )
    chunk = tmp_path / "g.zarr" / "a" / "c" / "1"
    chunk.rename(tmp_path / "outside")
    array.store.close()
    with xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs") as opened:
        assert opened["a"].values.tolist() == [0, 1, 0, 0]
    strict = zarrfs.Access(fill_missing=False)
    with (
        xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs", access=strict) as opened,
        pytest.raises(MissingChunkError),
    ):
        opened["a"].load()
    chunk.symlink_to(tmp_path / "outside")
    with (
        xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs") as opened,
        pytest.raises(zarrfs.ZarrError, match="allow_external"),
    ):
        opened["a"].load()
    with xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs", allow_external=True) as opened:
        assert opened["a"].values.tolist() == [0, 1, 2, 3]


def test_shards_are_in_the_encoding(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", zarr_format=3)
    root.create_array(
        "a", data=np.arange(64).reshape(8, 8), chunks=(2, 4), shards=(4, 8), dimension_names=["y", "x"]
    )
    with (
        xarray.open_dataset(tmp_path / "s.zarr", engine="zarrfs") as by_zarrfs,
        xarray.open_dataset(tmp_path / "s.zarr", engine="zarr", consolidated=False) as by_zarr,
    ):
        assert by_zarrfs["a"].encoding["shards"] == (4, 8)
        assert_equal_datasets(by_zarrfs, by_zarr)


def test_chunks_of_different_lengths_are_preferred_by_dask(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "r.zarr")
    group.create_array("a", data=np.arange(12), chunks=((2, 4, 6),), dimension_names=["x"])
    with xarray.open_dataset(tmp_path / "r.zarr", engine="zarrfs", chunks={}) as by_zarrfs:
        assert by_zarrfs["a"].chunks == ((2, 4, 6),)


def test_nczarr_arrays_have_their_dimension_names(tmp_path: Path) -> None:
    group = zarrfs.create_group(
        tmp_path / "n.zarr", zarr_format=2, attributes={"_nczarr_group": {}, "title": "t"}
    )
    names = {"dimension_references": ["/time", "/place/x"], "storage": "chunked"}
    group.create_array("a", data=np.eye(3), attributes={"_nczarr_array": names, "units": "m"})
    with xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs") as by_zarrfs:
        assert by_zarrfs["a"].dims == ("time", "x")
        assert by_zarrfs["a"].attrs == {"units": "m"}
        assert by_zarrfs.attrs == {"title": "t"}


def test_an_array_without_dimension_names_in_a_group_is_an_error(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "n.zarr").create_array("a", data=np.eye(3))
    with pytest.raises(MetadataError, match=r"/a has no dimension names.*dimension_names.*group='a'"):
        xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs")


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_coordinates_on_a_server_are_requested_at_the_same_time(
    zarr_format: Literal[2, 3], tmp_path: Path
) -> None:
    count = 6
    names = [f"d{n}" for n in range(count)]
    coordinates: dict[str, Any] = {name: (name, RNG.normal(size=n + 2)) for n, name in enumerate(names)}
    coordinates[names[0]] = (names[0], pandas.date_range("2020-02-27", periods=2))
    dataset = xarray.Dataset({"values": (names, RNG.normal(size=tuple(range(2, count + 2))))}, coordinates)
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=zarr_format, consolidated=False)
    zarrfs.consolidate_metadata(tmp_path / "a.zarr")
    chunks = {f"/a.zarr/{name}/{'c/0' if zarr_format == 3 else '0'}" for name in names}
    met = threading.Barrier(count)

    def wait_for_the_others(path: str) -> None:
        if path in chunks:
            met.wait(TIMEOUT)  # Requests one after another never pass.

    with web_server(tmp_path) as web:
        web.before_response = wait_for_the_others
        with xarray.open_dataset(f"{web.url}/a.zarr", engine="zarrfs") as opened:
            assert {path: web.requests[path] for path in chunks} == dict.fromkeys(chunks, 1)
            xarray.testing.assert_identical(opened.load(), dataset)
            assert {path: web.requests[path] for path in chunks} == dict.fromkeys(chunks, 1)


def test_a_coordinate_on_a_server_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    dataset = xarray.Dataset({}, {"x": np.arange(3.0), "y": np.arange(4.0)})
    dataset.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    zarrfs.consolidate_metadata(tmp_path / "a.zarr")
    (tmp_path / "a.zarr/y/c/0").write_bytes(b"damaged")
    with web_server(tmp_path) as web, pytest.raises(zarrfs.ChunkDecodeError, match="/y: chunk"):
        xarray.open_dataset(f"{web.url}/a.zarr", engine="zarrfs")


def test_a_single_array_is_a_dataset(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "cells.zarr", data=np.eye(3, 4))
    with xarray.open_dataset(tmp_path / "cells.zarr", engine="zarrfs") as opened:
        assert list(opened.variables) == ["cells"]
        assert opened["cells"].dims == ("dim_0", "dim_1")
        assert np.array_equal(opened["cells"], np.eye(3, 4))
    zarrfs.create_group(tmp_path / "g.zarr").create_array("a", data=np.eye(2), dimension_names=["y", "x"])
    for options in ({"group": "a"}, {"group": "/a"}):
        with xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs", **options) as opened:  # type: ignore[arg-type]
            assert opened["a"].dims == ("y", "x")
    with xarray.open_dataset(tmp_path / "g.zarr" / "a", engine="zarrfs") as opened:
        assert opened["a"].dims == ("y", "x")
    with pytest.raises(NodeNotFoundError, match="is an array"):
        xarray.open_dataset(tmp_path / "cells.zarr", engine="zarrfs", group="x")
    with xarray.open_datatree(tmp_path / "cells.zarr", engine="zarrfs") as tree:
        assert tree.groups == ("/",)


def test_a_different_zarr_format_is_an_error(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g.zarr", zarr_format=2)
    with pytest.raises(MetadataError, match="has Zarr format 2, expected zarr_format=3"):
        xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs", zarr_format=3)


def test_a_store_that_is_passed_in_stays_open(tmp_path: Path) -> None:
    path = tmp_path / "z.zarr.zip"
    with zarrfs.open_group(path, mode="w").store as store:
        zarrfs.create_array(store, "a", data=np.arange(3), dimension_names=["x"])
        zarrfs.create_array(store, "b/c", data=np.arange(3), dimension_names=["x"])
    tree = xarray.open_datatree(path, engine="zarrfs")
    assert tree["b/c"].sum() == 3
    tree.close()
    groups = xarray.open_groups(path, engine="zarrfs")
    groups["/"].close()
    assert groups["/b"]["c"].sum() == 3
    groups["/b"].close()
    group_of_caller = zarrfs.open_group(path)
    with xarray.open_dataset(group_of_caller.store, engine="zarrfs") as opened:  # type: ignore[arg-type]
        assert opened["a"].sum() == 3
    assert np.array_equal(group_of_caller["a"][...], np.arange(3))
    group_of_caller.store.close()


def test_guess_can_open_checks_the_suffix() -> None:
    backend = ZarrfsBackend()
    assert backend.guess_can_open("a/b.zarr/")
    assert backend.guess_can_open(Path("b.zarr.zip"))
    assert not backend.guess_can_open("b.nc")
    assert not backend.guess_can_open(3)


# -- OME-Zarr ----------------------------------------------------------------------------------------------------


def write_pyramid(path: Path, version: str = "0.5", **parts: Any) -> Path:
    """Write two levels of a two-channel image with scale and translation, and a label image."""
    axes = [
        {"name": "c", "type": "channel"},
        {"name": "z", "type": "space", "unit": "micrometer"},
        {"name": "y", "type": "space", "unit": "micrometer"},
        {"name": "x", "type": "space"},
    ]

    def dataset(name: str, factor: float, offset: float) -> dict[str, Any]:
        scale = {"type": "scale", "scale": [1, 2.0, 0.5 * factor, 0.5 * factor]}
        steps = [scale, {"type": "translation", "translation": [0, 100, offset, offset]}]
        return {"path": name, "coordinateTransformations": steps}

    multiscales = {"name": "cells", "axes": axes, "datasets": [dataset("0", 1, 0), dataset("1", 2, 0.25)]}
    omero = {"channels": [{"label": "DNA", "color": "FF0000"}, {"label": "actin", "color": "00FF00"}]}
    document: dict[str, Any] = {"multiscales": [multiscales], "omero": omero, **parts}
    is_old = version < "0.5"
    attributes = document if is_old else {"ome": {"version": version, **document}}
    zarr_format = 2 if is_old else 3
    group = zarrfs.create_group(path, zarr_format=zarr_format, attributes=attributes)
    data = np.arange(2 * 3 * 8 * 8, dtype="u2").reshape(2, 3, 8, 8)
    group.create_array("0", data=data, chunks=(1, 1, 4, 4))
    group.create_array("1", data=data[..., ::2, ::2], chunks=(1, 1, 4, 4))
    labels = {
        "multiscales": [{**multiscales, "axes": axes[1:], "datasets": [{"path": "0"}]}],
        "image-label": {},
    }
    labels["image-label"] = {"version": version}
    members: dict[str, Any] = {"labels": ["nuclei"]}
    group.create_group("labels", attributes=members if is_old else {"ome": {"version": version, **members}})
    group.create_group(
        "labels/nuclei", attributes=labels if is_old else {"ome": {"version": version, **labels}}
    )
    group.create_array("labels/nuclei/0", data=np.ones((3, 8, 8), "u1"))
    return path


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_an_image_opens_as_its_finest_level_with_physical_coordinates(version: str, tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "i.zarr", version)
    with xarray.open_dataset(path, engine="zarrfs") as opened:
        image = opened["image"]
        assert image.dims == ("c", "z", "y", "x")
        assert image.dtype == np.dtype("u2"), "the fill value 0 is not treated as missing"
        assert image.sel(c="actin", z=102.0, y=0.5, x=1.0).item() == 64 * 3 + 64 + 8 + 2
        assert opened["z"].attrs == {"units": "micrometer"}
        assert opened["x"].attrs == {}
        assert list(opened["x"].values) == [0.5 * n for n in range(8)]
    for location, group in ((path, "1"), (path / "1", None)):
        with xarray.open_dataset(location, engine="zarrfs", group=group) as opened:
            assert opened["image"].shape == (2, 3, 4, 4)
            assert list(opened["y"].values) == [0.25, 1.25, 2.25, 3.25]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_an_image_opens_as_datatree(version: str, tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "i.zarr", version)
    with xarray.open_datatree(path, engine="zarrfs", chunks={}) as tree:
        assert set(tree.groups) == {"/", "/0", "/1", "/labels", "/labels/nuclei", "/labels/nuclei/0"}
        assert tree["0"]["image"].chunks is not None
        assert tree["1"]["image"].shape == (2, 3, 4, 4)
        assert tree["labels/nuclei/0"]["labels"].dims == ("z", "y", "x")
        assert "multiscales" in (tree.attrs if version == "0.4" else tree.attrs["ome"])
        assert np.array_equal(tree["0"]["image"].values, np.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8))


@pytest.mark.parametrize(
    ("axes", "dims"),
    [
        (None, ("c", "z", "y", "x")),
        (["c", "z", "y"], ("dim_0", "dim_1", "dim_2", "dim_3")),
        (["c", "c", "y", "x"], ("dim_0", "dim_1", "dim_2", "dim_3")),
        (["a", "b", "image", "d"], ("a", "b", "image", "d")),
        ([{"name": "c", "type": {}}, "z", "y", "x"], ("c", "z", "y", "x")),
    ],
)
def test_invalid_axes_are_replaced(axes: Any, dims: tuple[str, ...], tmp_path: Path) -> None:
    multiscales: dict[str, Any] = {"version": "0.3", "datasets": [{"path": "0"}, {"path": "gone"}]}
    if axes is not None:
        multiscales["axes"] = axes
    path = write_pyramid(tmp_path / "i.zarr", "0.4", multiscales=[multiscales])
    with xarray.open_dataset(path, engine="zarrfs", group="0") as opened:
        assert opened["image"].dims == dims


def test_a_very_long_axis_has_no_coordinates(tmp_path: Path) -> None:
    steps = [{"type": "scale", "scale": [1, 1]}]
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    multiscales = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": steps}]}
    group = zarrfs.create_group(
        tmp_path / "i.zarr", attributes={"ome": {"version": "0.5", "multiscales": [multiscales]}}
    )
    group.create_array("0", shape=(1 << 50, 4), chunks=(4, 4), dtype="u1")
    with xarray.open_dataset(tmp_path / "i.zarr", engine="zarrfs") as opened:
        assert opened["image"].shape == (1 << 50, 4)
        assert set(opened.coords) == {"x"}


# -- members that cannot be read ---------------------------------------------------------------------------------


DAMAGES: dict[str, Callable[[str], str]] = {
    "truncated document": lambda text: text[: len(text) // 2],
    "unknown codec": lambda text: text.replace('"bytes"', '"nonsense"'),
    "invalid fill value": lambda text: text.replace('"fill_value": 0.0', '"fill_value": "zero"'),
}


def write_damaged(path: Path, damage: str, member: str) -> Path:
    """Write a group with two arrays and a subgroup with one, and damage the document of a member."""
    group = zarrfs.create_group(path)
    for name in ("a", "b", "sub/c"):
        group.create_array(name, data=np.arange(3.0), fill_value=0, dimension_names=["x"])
    document = path / member / "zarr.json"
    text = document.read_text()
    document.write_text(DAMAGES[damage](text))
    assert document.read_text() != text
    return path


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_variable_that_cannot_be_read_is_an_error(damage: str, tmp_path: Path) -> None:
    path = write_damaged(tmp_path / "d.zarr", damage, "b")
    functions: tuple[Callable[..., Any], ...] = (
        xarray.open_dataset,
        xarray.open_groups,
        xarray.open_datatree,
    )
    for open_location in functions:
        with pytest.raises(
            MetadataError, match=r"'b' cannot be opened, and drop_variables='b' leaves it out"
        ):
            open_location(path, engine="zarrfs")
    with xarray.open_dataset(path, engine="zarrfs", drop_variables=["b"]) as opened:
        assert list(opened.variables) == ["a"]
    with xarray.open_datatree(path, engine="zarrfs", drop_variables="b") as tree:
        assert list(tree["/"].variables) == ["a"]
        assert list(tree["sub"].variables) == ["c"]


def test_an_unreadable_member_of_a_subgroup_is_an_error_of_the_tree_only(tmp_path: Path) -> None:
    path = write_damaged(tmp_path / "d.zarr", "truncated document", "sub/c")
    with xarray.open_dataset(path, engine="zarrfs") as opened:
        assert list(opened.variables) == ["a", "b"]
    with pytest.raises(MetadataError, match=r"'c' cannot be opened"):
        xarray.open_datatree(path, engine="zarrfs")
    with xarray.open_datatree(path, engine="zarrfs", drop_variables=["c", "sub"]) as tree:
        assert set(tree.groups) == {"/", "/sub"}, "groups are not dropped"


def test_a_dropped_variable_is_not_read(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "g.zarr")
    for name in ("a", "b"):
        group.create_array(name, data=np.arange(3), dimension_names=["x"])
    files = (file for file in (tmp_path / "g.zarr").rglob("*") if file.is_file())
    store = RecordingRemoteStore(
        {str(file.relative_to(tmp_path / "g.zarr")): file.read_bytes() for file in files}
    )
    with xarray.open_dataset(store, engine="zarrfs", drop_variables=("a",)) as opened:  # type: ignore[arg-type]
        assert list(opened.variables) == ["b"]
    assert "b/zarr.json" in store.documents
    assert "a/zarr.json" not in store.documents


@pytest.mark.parametrize("damage", ["missing", *DAMAGES])
def test_a_coarser_level_does_not_replace_one_that_cannot_be_read(damage: str, tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "i.zarr")
    document = path / "0" / "zarr.json"
    if damage == "missing":
        document.unlink()
    else:
        damaged = DAMAGES[damage](document.read_text().replace('"fill_value": 0', '"fill_value": 0.0'))
        document.write_text(damaged)
    for open_location in (xarray.open_dataset, xarray.open_datatree):
        with pytest.raises(zarrfs.ZarrError, match=r"'0' cannot be opened"):
            open_location(path, engine="zarrfs")
    with xarray.open_dataset(path, engine="zarrfs", drop_variables="0") as opened:
        assert opened["image"].shape == (2, 3, 4, 4)


# -- copies by pickle, asynchronous reads, unnamed variables -----------------------------------------------------


@pytest.mark.parametrize("suffix", [".zarr", ".zarr.zip"])
def test_datasets_and_trees_can_be_pickled(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"p{suffix}"
    with zarrfs.open_group(path, mode="w").store as store:
        zarrfs.create_array(store, "a", data=np.arange(3), dimension_names=["x"])
        zarrfs.create_array(store, "b/c", data=np.arange(3), dimension_names=["x"])
    with xarray.open_dataset(path, engine="zarrfs") as opened:
        first = pickle.loads(pickle.dumps(opened))
    with first:
        assert first["a"].values.tolist() == [0, 1, 2]
    with xarray.open_datatree(path, engine="zarrfs") as tree:
        second = pickle.loads(pickle.dumps(tree))
    with second:
        assert second["b/c"].values.tolist() == [0, 1, 2]


class CountingStore(MemoryStore):
    """Counts the calls of ``close`` of all stores of the class."""

    closed = 0

    def close(self) -> None:
        type(self).closed += 1

    def __reduce__(self) -> Any:
        return CountingStore, ()


def test_the_copy_of_a_closed_user_does_not_close_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CountingStore, "closed", 0)
    shared = SharedStore(CountingStore({}), owned=True)
    first, second = shared.use(), shared.use()
    first()
    copied_first, copied_second = pickle.loads(pickle.dumps((first, second)))
    copied_first()
    assert CountingStore.closed == 0
    copied_second()
    copied_second()
    assert CountingStore.closed == 1
    second()
    assert CountingStore.closed == 2


def test_variables_are_read_asynchronously(dataset_path: Callable[[str, int, bool], Path]) -> None:
    with (
        xarray.open_dataset(dataset_path("weather", 3, False), engine="zarrfs") as opened,
        xarray.open_dataset(dataset_path("weather", 3, False), engine="zarrfs") as expected,
    ):
        loaded = asyncio.run(opened.isel(time=[3, 1], y=slice(1, 3)).load_async())
        xarray.testing.assert_identical(loaded, expected.isel(time=[3, 1], y=slice(1, 3)).load())


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_the_variable_without_a_name_is_kept(
    zarr_format: int, consolidated: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = xarray.Dataset({None: ("x", np.arange(3)), "a": ("x", np.arange(3))})
    write_dataset(data, tmp_path / "n.zarr", zarr_format, consolidated)
    for keywords in ({}, {"consolidated": consolidated or None}):
        with xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs", **keywords) as opened:  # type: ignore[arg-type]
            xarray.testing.assert_identical(opened.load(), data)
    with xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs", drop_variables=[None]) as opened:  # type: ignore[list-item]
        assert list(opened.variables) == ["a"]
    assert all("is not a valid node name" in record.getMessage() for record in caplog.records)
    caplog.clear()


def test_dimensions_without_a_name_among_named_ones_differ_between_arrays(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path)
    for name, length in (("a", 2), ("b", 4)):
        group.create_array(name, data=np.zeros((length, 3)), dimension_names=[None, "x"])
    with xarray.open_dataset(tmp_path, engine="zarrfs") as dataset:
        assert dict(dataset.sizes) == {"a_dim_0": 2, "b_dim_0": 4, "x": 3}
    with xarray.open_dataset(tmp_path / "a", engine="zarrfs") as dataset:
        assert dict(dataset.sizes) == {"dim_0": 2, "x": 3}
