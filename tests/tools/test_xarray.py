"""The xarray engine ``zarrfs`` compared with xarray's own Zarr engine, and OME-Zarr images as datasets and trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pandas
import pytest
import xarray
import zarr

import zarrfs
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import MetadataError, NodeNotFoundError
from zarrfs.tools.xarray.backend import ZarrfsBackend

RNG = np.random.default_rng(3)


def weather() -> xarray.Dataset:
    """Times, bounds, a mask, a scale, a scalar for the projection, and coordinates of two dimensions."""
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


def kinds() -> xarray.Dataset:
    """Every kind of value that xarray writes."""
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
    "kinds": kinds,
    "scalars": scalars,
    "empty": empty,
}


def write(dataset: xarray.Dataset, path: Path, zarr_format: int, consolidated: bool, **options: Any) -> None:
    encoding = {name: value for name, value in ENCODING.items() if name in dataset.variables}
    with warnings.catch_warnings():
        # zarr-python warns of consolidated metadata and of types that are not in the specification of version 3.
        warnings.simplefilter("ignore")
        dataset.to_zarr(
            path, zarr_format=zarr_format, consolidated=consolidated, encoding=encoding, **options
        )


def codec_document(codec: Any) -> Any:
    """A codec of zarr-python, of numcodecs, or a document of ours, in one form."""
    if isinstance(codec, numcodecs.abc.Codec):
        return codec.get_config()
    document = dict(codec.to_dict() if hasattr(codec, "to_dict") else codec)
    return {"name": document["name"], "configuration": dict(document.get("configuration") or {})}


def comparable(value: Any) -> Any:
    """A value of attributes or encodings in a form that ``==`` compares, also for NaN."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [comparable(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return comparable(value.tolist())
    return "NaN" if isinstance(value, float) and np.isnan(value) else value


def encoding_of(variable: xarray.Variable) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in variable.encoding.items():
        if key in ("compressors", "filters"):
            found[key] = [codec_document(codec) for codec in value]
        elif key == "serializer":
            found[key] = codec_document(value)
        elif key == "dtype":
            found[key] = np.dtype(value) if not isinstance(value, np.dtype) else value
        else:
            found[key] = comparable(value)
    return found


def assert_same(ours: xarray.Dataset, theirs: xarray.Dataset) -> None:
    assert dict(ours.sizes) == dict(theirs.sizes)
    assert set(ours.coords) == set(theirs.coords)
    assert set(ours.variables) == set(theirs.variables)
    assert comparable(ours.attrs) == comparable(theirs.attrs)
    assert set(ours.xindexes) == set(theirs.xindexes)
    for name in theirs.variables:
        left, right = ours.variables[name], theirs.variables[name]
        assert left.dims == right.dims, name
        assert left.dtype == right.dtype, name
        assert comparable(left.attrs) == comparable(right.attrs), name
        assert encoding_of(left) == encoding_of(right), name
        assert left.chunks == right.chunks, name
    xarray.testing.assert_identical(ours.load(), theirs.load())


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
def places(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, int, bool], Path]:
    """Each dataset, written once."""
    root = tmp_path_factory.mktemp("xarray")

    def place(name: str, zarr_format: int, consolidated: bool) -> Path:
        path = root / f"{name}-{zarr_format}-{consolidated}.zarr"
        if not path.exists():
            write(SOURCES[name](), path, zarr_format, consolidated)
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
    name: str, zarr_format: int, options: str, places: Callable[[str, int, bool], Path]
) -> None:
    path = places(name, zarr_format, False)
    keywords = dict(OPTIONS[options])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs = open_theirs(path, **keywords)
        ours = xarray.open_dataset(path, engine="zarrfs", **keywords)
    with ours, theirs:
        assert_same(ours, theirs)


def open_theirs(path: Path, **keywords: Any) -> xarray.Dataset:
    """xarray's engine; it does not pass ``use_zarr_fill_value_as_mask`` on to its store by itself."""
    mask = keywords.pop("use_zarr_fill_value_as_mask", None)
    if mask is None:
        return xarray.open_dataset(path, engine="zarr", consolidated=False, **keywords)
    store = xarray.backends.ZarrStore.open_group(
        str(path), consolidated=False, use_zarr_fill_value_as_mask=mask
    )
    found = xarray.open_dataset(store, engine="store", **keywords)  # type: ignore[arg-type]
    found.encoding["source"] = str(path)
    return found


@pytest.mark.parametrize("asked", [None, True, False])
@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_make_no_difference(
    zarr_format: int, asked: bool | None, places: Callable[[str, int, bool], Path]
) -> None:
    path = places("weather", zarr_format, True)
    with (
        xarray.open_dataset(path, engine="zarrfs", consolidated=asked) as ours,
        xarray.open_dataset(path, engine="zarr", consolidated=asked) as theirs,
    ):
        assert_same(ours, theirs)


def test_consolidated_metadata_that_are_demanded_must_exist(
    places: Callable[[str, int, bool], Path],
) -> None:
    path = places("weather", 3, False)
    with pytest.raises(ValueError, match="no consolidated metadata"):
        xarray.open_dataset(path, engine="zarrfs", consolidated=True)


class CountingStore(MemoryStore):
    """Counts what is read, and passes for a remote store, where consolidated metadata are used."""

    concurrency = 8

    def __init__(self, values: dict[str, bytes]) -> None:
        super().__init__(values)
        self.documents: list[str] = []

    def get(self, key: str) -> Any:
        if key.endswith(".json"):
            self.documents.append(key)
        return super().get(key)


@pytest.mark.parametrize(("asked", "used"), [(None, True), (True, True), (False, False)])
def test_consolidated_metadata_are_used_for_remote_stores_unless_refused(
    asked: bool | None, used: bool, places: Callable[[str, int, bool], Path]
) -> None:
    path = places("weather", 3, True)
    values = {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    store = CountingStore(values)
    with xarray.open_dataset(store, engine="zarrfs", consolidated=asked) as found:  # type: ignore[arg-type]
        assert len(found.variables) == 8
    assert ("temperature/zarr.json" not in store.documents) == used


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_groups_have_the_paths_of_the_zarr_engine(zarr_format: int, tmp_path: Path) -> None:
    small = xarray.Dataset({"v": ("x", np.arange(3))})
    path = tmp_path / "t.zarr"
    for group in ("/", "a", "a/b", "c/d"):
        write(small, path, zarr_format, False, group=group, mode="a")
    for group in (None, "/", "a", "/a", "a/b"):
        theirs = xarray.open_groups(path, engine="zarr", group=group, consolidated=False)
        ours = xarray.open_groups(path, engine="zarrfs", group=group)
        assert sorted(ours) == sorted(theirs)
        for key in theirs:
            assert_same(ours[key], theirs[key])
        with (
            xarray.open_datatree(path, engine="zarr", group=group, consolidated=False) as their_tree,
            xarray.open_datatree(path, engine="zarrfs", group=group) as tree,
        ):
            assert set(tree.groups) == set(their_tree.groups)
            xarray.testing.assert_identical(tree.load(), their_tree.load())
    with xarray.open_datatree(path, engine="zarrfs", decode_cf=False, chunks={}) as lazy:
        assert lazy["a/b"]["v"].chunks == ((3,),)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_what_was_opened_can_be_written_by_the_zarr_engine(
    zarr_format: int, places: Callable[[str, int, bool], Path], tmp_path: Path
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
        with xarray.open_dataset(tmp_path / "a", engine="zarrfs") as ours:
            ours.to_zarr(tmp_path / "b", zarr_format=zarr_format, consolidated=False)
    first, second = zarr.open_group(tmp_path / "a")["a"], zarr.open_group(tmp_path / "b")["a"]
    assert [codec_document(c) for c in first.compressors] == [codec_document(c) for c in second.compressors]
    assert [codec_document(c) for c in first.filters] == [codec_document(c) for c in second.filters]
    assert np.array_equal(second[...], np.arange(20).reshape(4, 5))


def test_shards_are_in_the_encoding(tmp_path: Path) -> None:
    root = zarr.open_group(tmp_path / "s.zarr", mode="w", zarr_format=3)
    root.create_array(
        "a", data=np.arange(64).reshape(8, 8), chunks=(2, 4), shards=(4, 8), dimension_names=["y", "x"]
    )
    with (
        xarray.open_dataset(tmp_path / "s.zarr", engine="zarrfs") as ours,
        xarray.open_dataset(tmp_path / "s.zarr", engine="zarr", consolidated=False) as theirs,
    ):
        assert ours["a"].encoding["shards"] == (4, 8)
        assert_same(ours, theirs)


def test_chunks_of_different_lengths_are_preferred_by_dask(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "r.zarr")
    group.create_array("a", data=np.arange(12), chunks=((2, 4, 6),), dimension_names=["x"])
    with xarray.open_dataset(tmp_path / "r.zarr", engine="zarrfs", chunks={}) as ours:
        assert ours["a"].chunks == ((2, 4, 6),)


def test_arrays_of_netcdf_have_their_dimensions(tmp_path: Path) -> None:
    group = zarrfs.create_group(
        tmp_path / "n.zarr", zarr_format=2, attributes={"_nczarr_group": {}, "title": "t"}
    )
    names = {"dimension_references": ["/time", "/place/x"], "storage": "chunked"}
    group.create_array("a", data=np.eye(3), attributes={"_nczarr_array": names, "units": "m"})
    with xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs") as ours:
        assert ours["a"].dims == ("time", "x")
        assert ours["a"].attrs == {"units": "m"}
        assert ours.attrs == {"title": "t"}


def test_an_array_in_a_group_without_names_of_dimensions_is_an_error(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "n.zarr").create_array("a", data=np.eye(3))
    with pytest.raises(MetadataError, match=r"/a has no names .*dimension_names.*group='a'"):
        xarray.open_dataset(tmp_path / "n.zarr", engine="zarrfs")


def test_a_single_array_is_a_dataset(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "cells.zarr", data=np.eye(3, 4))
    with xarray.open_dataset(tmp_path / "cells.zarr", engine="zarrfs") as found:
        assert list(found.variables) == ["cells"]
        assert found["cells"].dims == ("dim_0", "dim_1")
        assert np.array_equal(found["cells"], np.eye(3, 4))
    zarrfs.create_group(tmp_path / "g.zarr").create_array("a", data=np.eye(2), dimension_names=["y", "x"])
    for options in ({"group": "a"}, {"group": "/a"}):
        with xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs", **options) as found:  # type: ignore[arg-type]
            assert found["a"].dims == ("y", "x")
    with xarray.open_dataset(tmp_path / "g.zarr" / "a", engine="zarrfs") as found:
        assert found["a"].dims == ("y", "x")
    with pytest.raises(NodeNotFoundError, match="is an array"):
        xarray.open_dataset(tmp_path / "cells.zarr", engine="zarrfs", group="x")
    with xarray.open_datatree(tmp_path / "cells.zarr", engine="zarrfs") as tree:
        assert tree.groups == ("/",)


def test_another_version_than_the_demanded_one_is_an_error(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g.zarr", zarr_format=2)
    with pytest.raises(MetadataError, match="has Zarr format 2, zarr_format=3 was demanded"):
        xarray.open_dataset(tmp_path / "g.zarr", engine="zarrfs", zarr_format=3)


def test_a_store_of_the_caller_stays_open_and_others_are_closed(tmp_path: Path) -> None:
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
    mine = zarrfs.open_group(path)
    with xarray.open_dataset(mine.store, engine="zarrfs") as found:  # type: ignore[arg-type]
        assert found["a"].sum() == 3
    assert np.array_equal(mine["a"][...], np.arange(3))
    mine.store.close()


def test_it_guesses_what_it_can_open() -> None:
    backend = ZarrfsBackend()
    assert backend.guess_can_open("a/b.zarr/")
    assert backend.guess_can_open(Path("b.zarr.zip"))
    assert not backend.guess_can_open("b.nc")
    assert not backend.guess_can_open(3)


# -- OME-Zarr ----------------------------------------------------------------------------------------------------


def write_pyramid(path: Path, version: str = "0.5", **parts: Any) -> Path:
    """Two levels of a two-channel stack with scale and translation, and a label image."""
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
    old = version < "0.5"
    attributes = document if old else {"ome": {"version": version, **document}}
    zarr_format = 2 if old else 3
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
    group.create_group("labels", attributes=members if old else {"ome": {"version": version, **members}})
    group.create_group("labels/nuclei", attributes=labels if old else {"ome": {"version": version, **labels}})
    group.create_array("labels/nuclei/0", data=np.ones((3, 8, 8), "u1"))
    return path


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_the_finest_level_of_a_pyramid_is_a_dataset_in_physical_units(version: str, tmp_path: Path) -> None:
    path = write_pyramid(tmp_path / "i.zarr", version)
    with xarray.open_dataset(path, engine="zarrfs") as found:
        image = found["image"]
        assert image.dims == ("c", "z", "y", "x")
        assert image.dtype == np.dtype("u2"), "a fill value of 0 is not a missing value"
        assert image.sel(c="actin", z=102.0, y=0.5, x=1.0).item() == 64 * 3 + 64 + 8 + 2
        assert found["z"].attrs == {"units": "micrometer"}
        assert found["x"].attrs == {}
        assert list(found["x"].values) == [0.5 * n for n in range(8)]
    for location, group in ((path, "1"), (path / "1", None)):
        with xarray.open_dataset(location, engine="zarrfs", group=group) as found:
            assert found["image"].shape == (2, 3, 4, 4)
            assert list(found["y"].values) == [0.25, 1.25, 2.25, 3.25]


@pytest.mark.parametrize("version", ["0.4", "0.5"])
def test_a_pyramid_is_a_tree(version: str, tmp_path: Path) -> None:
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
def test_axes_that_do_not_fit_are_replaced(axes: Any, dims: tuple[str, ...], tmp_path: Path) -> None:
    multiscales: dict[str, Any] = {"version": "0.3", "datasets": [{"path": "0"}, {"path": "gone"}]}
    if axes is not None:
        multiscales["axes"] = axes
    path = write_pyramid(tmp_path / "i.zarr", "0.4", multiscales=[multiscales])
    with xarray.open_dataset(path, engine="zarrfs", group="0") as found:
        assert found["image"].dims == dims


def test_axes_of_any_declared_length_are_opened(tmp_path: Path) -> None:
    steps = [{"type": "scale", "scale": [1, 1]}]
    axes = [{"name": "y", "type": "space"}, {"name": "x", "type": "space"}]
    multiscales = {"axes": axes, "datasets": [{"path": "0", "coordinateTransformations": steps}]}
    group = zarrfs.create_group(
        tmp_path / "i.zarr", attributes={"ome": {"version": "0.5", "multiscales": [multiscales]}}
    )
    group.create_array("0", shape=(1 << 50, 4), chunks=(4, 4), dtype="u1")
    with xarray.open_dataset(tmp_path / "i.zarr", engine="zarrfs") as found:
        assert found["image"].shape == (1 << 50, 4)
        assert set(found.coords) == {"x"}
