"""Equal calls of zarr-python 3 and zarrfs give equal values, metadata, members and classes of errors."""

from __future__ import annotations

import itertools
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import numpy as np
import pytest
import zarr
import zarr.codecs
import zarr.storage

import zarrfs

BOTH = [zarr, zarrfs]

DATA = np.arange(24, dtype="i4").reshape(4, 6)

LITTLE = [{"name": "bytes", "configuration": {"endian": "little"}}]


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    """Suppress the deprecation warnings of zarr-python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def facts(array: Any) -> dict[str, Any]:
    return {
        "shape": array.shape,
        "chunks": array.chunks,
        "shards": array.shards,
        "dtype": array.dtype,
        "fill_value": array.fill_value,
        "cdata_shape": array.cdata_shape,
        "nchunks": array.nchunks,
        "attributes": dict(array.attrs),
        "values": np.asarray(array[...]).tolist(),
    }


def document(path: Path) -> Any:
    """Return the metadata document without optional keys."""
    for name in ("zarr.json", ".zarray"):
        if (path / name).exists():
            found = json.loads((path / name).read_text())
            if not found.get("attributes"):
                found.pop("attributes", None)
            if not found.get("storage_transformers"):
                found.pop("storage_transformers", None)
            if found.get("filters") == []:
                found["filters"] = None
            for codec in found.get("codecs", ()):
                if not codec.get("configuration"):
                    codec.pop("configuration", None)
            return found
    raise AssertionError(f"no array in {path}")


BLOSC = {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 3, "shuffle": "shuffle"}}

CREATIONS: dict[str, Callable[[Any, Path], Any]] = {
    "create_array": lambda z, p: z.create_array(
        store=p, shape=(4, 6), chunks=(2, 3), dtype="i4", compressors=None
    ),
    "create_array with a name": lambda z, p: z.create_array(
        p.parent, name=p.name, shape=(4, 6), chunks=(2, 3), dtype="i4", compressors=None
    ),
    "create_array of data": lambda z, p: z.create_array(p, data=DATA, chunks=(2, 3), compressors=None),
    "create_array without writing the data": lambda z, p: z.create_array(
        p, data=DATA, chunks=(2, 3), compressors=None, write_data=False
    ),
    "codecs of zarr-python": lambda z, p: z.create_array(
        p,
        data=DATA,
        chunks=(2, 3),
        filters=[zarr.codecs.TransposeCodec(order=(1, 0))],
        serializer=zarr.codecs.BytesCodec(endian="big"),
        compressors=[zarr.codecs.GzipCodec(level=2), zarr.codecs.Crc32cCodec()],
    ),
    "one codec": lambda z, p: z.create_array(
        p, data=DATA, chunks=(2, 3), compressors=zarr.codecs.ZstdCodec(level=3)
    ),
    "codecs of the package": lambda z, p: z.create_array(
        p,
        data=DATA,
        chunks=(2, 3),
        filters=[z.codecs.TransposeCodec(order=(1, 0))],
        compressors=[z.codecs.BloscCodec(typesize=4, cname="lz4", clevel=3, shuffle="shuffle")],
    ),
    "shards": lambda z, p: z.create_array(
        p, data=DATA, chunks=(2, 3), shards=(4, 6), compressors=[z.codecs.ZstdCodec(level=1)]
    ),
    "codecs as dictionaries": lambda z, p: z.create(
        shape=(4, 6),
        store=p,
        chunks=(2, 3),
        dtype="i4",
        codecs=[{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}],
    ),
    "chunk keys as a dictionary": lambda z, p: z.create_array(
        p, data=DATA, chunks=(2, 3), compressors=None, chunk_key_encoding={"name": "v2", "separator": "."}
    ),
    "chunk keys as a pair": lambda z, p: (
        z.create(
            shape=(4, 6), store=p, chunks=(2, 3), dtype="i4", codecs=["bytes"], chunk_key_encoding=("v2", "/")
        )
        if z is zarrfs
        else z.create(
            shape=(4, 6),
            store=p,
            chunks=(2, 3),
            dtype="i4",
            codecs=[{"name": "bytes", "configuration": {"endian": "little"}}],
            chunk_key_encoding=("v2", "/"),
        )
    ),
    "names and attributes": lambda z, p: z.create_array(
        p, data=DATA, chunks=(2, 3), compressors=None, dimension_names=("y", "x"), attributes={"a": [1, None]}
    ),
    "data type of zarr-python": lambda z, p: z.create_array(
        p, shape=(4, 6), chunks=(2, 3), dtype=zarr.dtype.Int16(), compressors=None, fill_value=-3
    ),
    "strings": lambda z, p: z.create_array(p, shape=(3,), chunks=(2,), dtype=str, compressors=None),
    "v2": lambda z, p: z.create_array(
        p,
        data=DATA,
        chunks=(2, 3),
        zarr_format=2,
        compressors=numcodecs.Zlib(3),
        filters=[numcodecs.Delta("i4")],
    ),
    "v2 by the words of v2": lambda z, p: z.create(
        shape=(4, 6),
        store=p,
        chunks=(2, 3),
        dtype="i4",
        zarr_format=2,
        compressor=numcodecs.Blosc(cname="lz4"),
        filters=[numcodecs.Delta("i4")],
        order="F",
        dimension_separator="/",
        fill_value=7,
    ),
    "v2 without compressor": lambda z, p: z.create(
        shape=(4, 6), store=p, chunks=(2, 3), dtype="i4", zarr_format=2, compressor=None
    ),
    "v2 chunk keys": lambda z, p: z.create_array(
        p,
        data=DATA,
        chunks=(2, 3),
        zarr_format=2,
        compressors=None,
        chunk_key_encoding={"name": "v2", "separator": "/"},
    ),
    "open makes": lambda z, p: z.open(
        p, mode="w", shape=(4, 6), chunks=(2, 3), dtype="i4", zarr_format=2, compressor=None
    ),
    "open_array makes": lambda z, p: z.open_array(
        p, mode="w", shape=(4, 6), chunks=(2, 3), dtype="i4", zarr_format=2, compressor=None
    ),
    "chunk_shape": lambda z, p: z.create(
        shape=(4, 6), store=p, chunk_shape=(2, 3), dtype="i4", zarr_format=3, codecs=[*LITTLE]
    ),
}


@pytest.mark.parametrize("name", CREATIONS)
def test_creating_writes_the_same_document(name: str, tmp_path: Path) -> None:
    made = {}
    for package in BOTH:
        folder = tmp_path / package.__name__
        folder.mkdir()
        array = CREATIONS[name](package, folder / "a")
        made[package.__name__] = (facts(array), document(folder / "a"))
        if name == "strings":
            made[package.__name__][0].pop("dtype")  # of NumPy's StringDType in zarr-python
        reopened = zarr.open_array(folder / "a", mode="r")
        assert np.array_equal(np.asarray(reopened[...]), np.asarray(array[...]))
    assert made["zarrfs"] == made["zarr"]


def test_config_and_write_empty_chunks(tmp_path: Path) -> None:
    for package in BOTH:
        for number, config in enumerate(({"write_empty_chunks": True}, {"write_empty_chunks": False})):
            array = package.create_array(
                tmp_path / package.__name__ / str(number), shape=(4,), chunks=(2,), dtype="i1", config=config
            )
            array[:] = 0
            assert array.nchunks_initialized == (2 if config["write_empty_chunks"] else 0)
    made = zarr.create_array({}, shape=3, dtype="i1")
    assert zarrfs.create_array({}, shape=3, dtype="i1", config=made.config).write_empty_chunks is False


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "full"])
def test_creation_routines_return_equal_arrays(name: str, zarr_format: Any, tmp_path: Path) -> None:
    extra = {"fill_value": 5} if name == "full" else {}
    found = [
        facts(
            getattr(package, name)(
                shape=(5, 7),
                store=tmp_path / package.__name__,
                chunks=(2, 3),
                zarr_format=zarr_format,
                **extra,
            )
        )
        for package in BOTH
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("model", BOTH)
@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like", "full_like"])
def test_like_routines_keep_how_an_array_is_stored(
    name: str, model: Any, zarr_format: Any, tmp_path: Path
) -> None:
    """The given array is one of zarrfs or of zarr-python."""
    if zarr_format == 2:
        options: Any = {
            "compressor": numcodecs.Zlib(4),
            "filters": [numcodecs.Delta("i4")],
            "order": "F",
            "dimension_separator": "/",
        }
    else:
        options = {
            "codecs": [*LITTLE, {"name": "gzip", "configuration": {"level": 3}}],
            "dimension_names": ("y", "x"),
            "chunk_key_encoding": {"name": "v2", "configuration": {"separator": "/"}},
        }
    source = model.create(
        shape=(4, 6),
        store=tmp_path / "source",
        chunks=(2, 3),
        dtype="i4",
        zarr_format=zarr_format,
        fill_value=9,
        **options,
    )
    extra = {"fill_value": 4} if name == "full_like" else {}
    getattr(zarrfs, name)(source, store=tmp_path / "made", **extra)
    expected = document(tmp_path / "source")
    expected["fill_value"] = {"zeros_like": 0, "ones_like": 1, "empty_like": 9, "full_like": 4}[name]
    found = document(tmp_path / "made")
    found.pop("attributes", None)
    assert found == expected


def test_like_routines_keep_shards_and_inner_codecs(tmp_path: Path) -> None:
    source = zarr.create_array(
        tmp_path / "source",
        shape=(8, 12),
        chunks=(2, 3),
        shards=(4, 6),
        dtype="u2",
        compressors=[zarr.codecs.GzipCodec(level=2)],
    )
    zarrfs.zeros_like(source, tmp_path / "made")
    assert document(tmp_path / "made") == document(tmp_path / "source")
    zarrfs.zeros_like(zarrfs.open_array(tmp_path / "source"), tmp_path / "again")
    assert document(tmp_path / "again") == document(tmp_path / "source")
    other = zarrfs.zeros_like(source, zarr_format=2)
    assert (other.chunks, other.shards, other.compressor) == ((2, 3), None, numcodecs.GZip(2))
    assert zarrfs.zeros_like(source, chunks=(4, 4)).shards is None
    assert zarrfs.zeros_like(source, shape=(3, 3)).shape == (3, 3)
    assert zarrfs.zeros_like(source, compressors=None).compressors == ()
    assert [codec.name for codec in zarrfs.zeros_like(source, compressors="auto").compressors] == ["blosc"]


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_from_array_keeps_all_properties_without_an_option(zarr_format: Any, tmp_path: Path) -> None:
    compressors = numcodecs.Zlib(2) if zarr_format == 2 else zarr.codecs.GzipCodec(level=2)
    source = zarr.create_array(
        tmp_path / "source",
        data=DATA,
        chunks=(2, 3),
        compressors=compressors,
        attributes={"a": 1},
        zarr_format=zarr_format,
    )
    kinds: list[dict[str, Any]] = [{}, {"chunks": (4, 3)}, {"write_data": False}, {"attributes": {"b": 2}}]
    for number, options in enumerate(kinds):
        found = []
        for package in BOTH:
            place = tmp_path / f"{package.__name__}{number}"
            array = package.from_array(place, data=source, **options)
            found.append((facts(array), document(place).get("compressor"), document(place).get("codecs")))
        if "attributes" not in options:
            found[0][0]["attributes"] = {"a": 1}  # zarr-python leaves them out
        assert found[0] == found[1], options
    assert np.array_equal(zarrfs.array(source)[...], DATA)
    assert zarrfs.array(zarrfs.open_array(tmp_path / "source")).chunks == (2, 3)
    group = zarrfs.group(zarr_format=zarr_format)
    group["b"] = zarrfs.open_array(tmp_path / "source")
    copied = zarrfs.open_array(tmp_path / "source").metadata
    copied.pop("storage_transformers", None)
    assert group["b"].metadata == copied


# -- arrays ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_counts_of_chunks(shards: Any) -> None:
    found = []
    for package in BOTH:
        array = package.create_array({}, shape=(8, 8), chunks=(2, 2), shards=shards, dtype="i4")
        array[:3, :3] = 1
        found.append((array.cdata_shape, array.nchunks, array.nchunks_initialized))
    assert found[0] == found[1]


def test_chunks_of_a_shard_that_overhangs_are_not_counted() -> None:
    array = zarrfs.create_array({}, shape=(5,), chunks=(1,), shards=(2,), dtype="i4")
    array[:] = 1
    assert (array.nchunks, array.nchunks_initialized) == (5, 5)
    assert (array.nshards, array.nshards_initialized) == (3, 3)


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_codec_properties(zarr_format: Any) -> None:
    if zarr_format == 2:
        options: Any = {"filters": [numcodecs.Delta("i4")], "compressors": numcodecs.Zlib(2)}
    else:
        options = {
            "filters": [zarr.codecs.TransposeCodec(order=(1, 0))],
            "compressors": [zarr.codecs.GzipCodec(level=2), zarr.codecs.ZstdCodec()],
        }
    store: Any = {}
    theirs = zarr.create_array(store, data=DATA, zarr_format=zarr_format, **options)
    ours = zarrfs.open_array(zarr.storage.MemoryStore(store), mode="r")
    assert len(ours.compressors) == len(theirs.compressors)
    if zarr_format == 2:
        assert (ours.filters, ours.compressors) == (theirs.filters, theirs.compressors)
        assert ours.compressor == theirs.compressor
        assert ours.serializer is None
    else:
        for name in ("filters", "compressors"):
            mine = [codec.to_dict() for codec in getattr(ours, name)]
            assert mine == [json.loads(json.dumps(codec.to_dict())) for codec in getattr(theirs, name)]
        assert ours.serializer.to_dict() == theirs.serializer.to_dict()
        for array in (ours, theirs):
            with pytest.raises(TypeError):
                _ = array.compressor
    again = zarrfs.create_array(
        {},
        data=DATA,
        chunks=ours.chunks,
        zarr_format=zarr_format,
        filters=ours.filters,
        compressors=ours.compressors,
        **({} if zarr_format == 2 else {"serializer": ours.serializer}),
    )
    assert again.spec.codecs == ours.spec.codecs


@pytest.mark.parametrize(
    ("selection", "shape"),
    [
        (..., (4, 6)),
        ((slice(None, None, 2), 3), (2,)),
        ((1, 2), ()),
        ((slice(3, 0, -1), slice(1, 5)), (3, 4)),
    ],
)
def test_out_is_filled(selection: Any, shape: tuple[int, ...]) -> None:
    array = zarrfs.array(DATA, chunks=(2, 3))
    for dtype in ("i4", "f8"):
        out = np.empty(shape, dtype)
        assert array.get_basic_selection(selection, out=out) is out
        assert np.array_equal(out, DATA[selection])
    with pytest.raises(ValueError, match="out has the shape"):
        array.get_basic_selection(selection, out=np.empty((9, 9), "i4"))
    with pytest.raises(TypeError, match="out must be a NumPy array"):
        array.get_basic_selection(selection, out=[])  # type: ignore[arg-type]


def outcome(operation: Callable[[], Any]) -> np.ndarray | None:
    """Return the values, or None for an expression that is refused."""
    try:
        return np.asarray(operation())
    except Exception:
        return None


def assigned(array: Any, selection: Any, value: Any) -> Any:
    array[selection] = value
    return array[...]


def test_index_expressions_with_other_results_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning is given if and only if zarr-python reads or writes other values."""
    data = np.arange(36).reshape(3, 4, 3)
    theirs, ours = (library.array(data, chunks=(2, 3, 2)) for library in BOTH)
    entries = [
        [
            1,
            slice(None),
            slice(0, 1),
            [0],
            [2, 0],
            np.array([[0, 1]]),
            np.arange(n) != 1,
            [i != 2 for i in range(n)],
        ]
        for n in data.shape
    ]
    differing = 0
    for selection in [*itertools.product(*entries), *itertools.product(*entries[:2])]:
        monkeypatch.setattr("zarrfs.engine.indexing.selections._warned", False)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = outcome(lambda index=selection: ours[index])  # type: ignore[misc]
        expected = outcome(lambda index=selection: theirs[index])  # type: ignore[misc]
        if expected is None:
            continue
        is_warned = any(item.category is zarrfs.CompatibilityWarning for item in caught)
        if result is None:
            # NumPy cannot combine these arrays as points; the message says how to select the product.
            assert outcome(lambda index=selection: data[index]) is None, selection  # type: ignore[misc]
            with pytest.raises(zarrfs.SelectionError, match=r"use \.oindex"):
                ours[selection]
            continue
        np.testing.assert_array_equal(result, data[selection])
        if is_warned:
            differing += 1
            assert caught[0].filename == __file__
            # The expression of the warning and of the documentation that gives the result of zarr-python.
            np.testing.assert_array_equal(ours.oindex[selection], expected)
        else:
            np.testing.assert_array_equal(result, expected, str(selection))
    assert differing > 20


def test_a_warning_of_an_index_expression_is_given_once(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = np.array([True, False, True, False])
    for expression in (
        lambda array: array[mask, [0, 1]],
        lambda array: assigned(array, (mask, mask), 5),
        lambda array: array.astype("f8")[mask, mask],
    ):
        monkeypatch.setattr("zarrfs.engine.indexing.selections._warned", False)
        array = zarrfs.array(np.arange(16).reshape(4, 4))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            expression(array)
            expression(array)
            array.oindex[mask, mask] = 1
            array.vindex[mask, mask]
        assert [(item.category, item.filename) for item in caught] == [
            (zarrfs.CompatibilityWarning, __file__)
        ]


def test_out_of_the_other_selections() -> None:
    array = zarrfs.array(DATA, chunks=(2, 3))
    out = np.zeros(3, "i4")
    array.get_coordinate_selection(([0, 1, 3], [5, 0, 2]), out=out)
    assert np.array_equal(out, DATA[[0, 1, 3], [5, 0, 2]])
    mask = DATA % 8 == 0
    array.get_mask_selection(mask, out=out)
    assert np.array_equal(out, DATA[mask])
    block = np.zeros((2, 3), "i4")
    array.get_block_selection((1, 1), out=block)
    assert np.array_equal(block, DATA[2:, 3:])
    outer = np.zeros((2, 2), "i4")
    array.get_orthogonal_selection(([0, 3], [1, 4]), out=outer)
    assert np.array_equal(outer, DATA[np.ix_([0, 3], [1, 4])])
    records = zarrfs.array(np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "f8")]))
    field = np.zeros(2, "f8")
    assert records.get_basic_selection(..., out=field, fields="b").tolist() == [2, 4]


def test_setting_the_shape_resizes(tmp_path: Path) -> None:
    for package in BOTH:
        array = package.create_array(tmp_path / package.__name__, data=DATA, chunks=(2, 3))
        array.shape = (6, 3)
        assert array.shape == (6, 3)
        assert np.array_equal(array[:4], DATA[:, :3])
        assert package.open_array(tmp_path / package.__name__, mode="r").shape == (6, 3)


def test_attributes_are_updated_together() -> None:
    for package in BOTH:
        array = package.create_array({}, shape=3, dtype="i1", attributes={"a": 1})
        assert dict(array.update_attributes({"b": 2}).attrs) == {"a": 1, "b": 2}
        group = (
            package.group(attributes={"a": 1})
            if package is zarrfs
            else package.group({}, attributes={"a": 1})
        )
        assert dict(group.update_attributes({"a": 3}).attrs) == {"a": 3}


def test_numbers_of_arrays_of_one_element() -> None:
    array = zarrfs.array(np.array(2.5))
    assert (float(array), int(array), complex(array)) == (2.5, 2, 2.5)
    assert float(zarrfs.array([7])) == 7
    for function in (float, int, complex):
        with pytest.raises(TypeError, match="one element"):
            function(zarrfs.array([1, 2]))
    assert np.array_equal(zarrfs.array(DATA).T, DATA.T)


def test_info_complete_contains_the_stored_size() -> None:
    array = zarrfs.create_array({}, shape=(4, 6), chunks=(2, 3), dtype="i4")
    array[:2] = 1
    info = array.info_complete()
    assert (info["chunks_initialized"], info["chunks_total"]) == (2, 4)
    assert info["nbytes_stored"] == array.nbytes_stored() > 0
    root = zarrfs.group()
    root.create_array("a/b", shape=2)
    info = root.info_complete()
    theirs = zarr.group()
    theirs.create_array("a/b", shape=2, dtype="i1")
    assert f"No. members : {info['members']}" in str(theirs.info_complete())
    assert (info["arrays"], info["groups"]) == (1, 1)


def test_unsupported_options_are_refused() -> None:
    for name in ("chunk_store", "meta_array"):
        with pytest.raises(zarrfs.UnsupportedError, match=name):
            zarrfs.create(shape=3, **{name: np.empty(0)})
        with pytest.raises(zarrfs.UnsupportedError, match=name):
            zarrfs.group(**{name: {}})
    with pytest.raises(zarrfs.MetadataError, match="either compressors or compressor"):
        zarrfs.create(shape=3, compressor=None, compressors=[])
    with pytest.raises(zarrfs.OptionError, match="either path or name"):
        zarrfs.create_array({}, "a", name="b", shape=3)


def test_options_of_zarr_python_2_are_accepted() -> None:
    store: Any = {}
    array = zarrfs.create(
        shape=(3,),
        store=store,
        dtype=object,
        object_codec=numcodecs.VLenUTF8(),
        zarr_version=2,
        cache_metadata=False,
    )
    array[:] = ["a", "bc", ""]
    zarrfs.open_array(store, mode="r+").resize(2)
    assert array[...].tolist() == ["a", "bc"]
    made = zarrfs.zeros(3, read_only=True, cache_attrs=False)
    with pytest.raises(zarrfs.ReadOnlyError):
        made[0] = 1
    assert zarrfs.open_array(store, mode="r+", cache_metadata=False).access.recheck_metadata is True
    synchronizer = zarrfs.ThreadSynchronizer()
    assert zarrfs.zeros(3, synchronizer=synchronizer).synchronizer is synchronizer
    assert zarrfs.zeros(3).synchronizer is None


# -- groups ----------------------------------------------------------------------------------------------------


def build(package: Any) -> Any:
    root = package.group({})
    root.create_group("x")
    root.require_group("a/deep")
    # zarr-python has no create_dataset, require_dataset and array since 3.4.
    getattr(root, "create_dataset", root.create_array)("a/b", shape=(3,), dtype="f4")
    getattr(root, "require_dataset", root.require_array)("c", shape=(4,), dtype="i8")
    root.zeros(name="zeros", shape=(2,))
    root.ones(name="ones", shape=(2,))
    root.full(name="full", shape=(2,), fill_value=7)
    root.empty(name="empty", shape=(2,))
    source = package.zeros(shape=(3, 4), chunks=(2, 2), dtype="u1")
    for name in ("zeros_like", "ones_like", "empty_like"):
        getattr(root, name)(name=name, data=source)
    root.full_like(name="full_like", data=source, fill_value=3)
    if hasattr(root, "array"):
        root.array("array", shape=(4, 6), dtype="i4", data=DATA)
    else:
        root.create_array("array", data=DATA.astype("i4"))
    root.require_groups("p", "q/r")
    return root


def test_groups_have_the_same_members() -> None:
    theirs, ours = (build(package) for package in BOTH)
    for depth in (0, 1, None):
        assert sorted(name for name, _ in ours.members(max_depth=depth)) == sorted(
            name for name, _ in theirs.members(max_depth=depth)
        )
        assert ours.nmembers(max_depth=depth) == theirs.nmembers(max_depth=depth)
    for name in ("array_keys", "group_keys", "keys"):
        assert sorted(getattr(ours, name)()) == sorted(getattr(theirs, name)())
    for name in ("array_values", "group_values"):
        assert sorted(node.name for node in getattr(ours, name)()) == sorted(
            node.name for node in getattr(theirs, name)()
        )
    for name, array in theirs.arrays():
        assert np.array_equal(ours[name][...], np.asarray(array[...])), name
        assert (ours[name].dtype, ours[name].shape) == (array.dtype, array.shape)
        if name.endswith("_like"):
            assert ours[name].chunks == (2, 2)
    assert len(ours) == len(theirs)
    assert str(ours.tree()) == str(theirs.tree()).rstrip("\n")
    # zarr-python 2 counts the displayed levels, zarr-python 3 the expanded ones.
    assert repr(ours.tree(level=1)) == str(theirs.tree(level=0)).rstrip("\n")
    assert zarrfs.tree(ours) == ours.tree()
    with pytest.raises(ValueError, match="max_depth"):
        ours.members(max_depth=-1)


def test_a_large_tree_is_truncated() -> None:
    root = zarrfs.group()
    root.create_groups(*"abcdef")
    assert len(root.tree(max_nodes=3).splitlines()) == 1 + 3 + 1
    assert "only 3 nodes" in root.tree(max_nodes=3)
    assert len(root.tree(max_nodes=6).splitlines()) == 1 + 6
    assert len(root.tree(max_nodes=None).splitlines()) == 1 + 6


def test_members_are_attributes_with_completion() -> None:
    root = zarrfs.group()
    root.create_array("images/first", shape=(3,))
    root.create_group("not an identifier")
    assert getattr(root, "images").first == root["images/first"]  # noqa: B009
    assert "images" in dir(root)
    assert "not an identifier" not in dir(root)
    assert root._ipython_key_completions_() == ["images", "not an identifier"]
    with pytest.raises(AttributeError, match="no such member"):
        getattr(root, "missing")  # noqa: B009
    assert not hasattr(root, "dtype")


def test_names_of_array_attributes_are_not_attributes_of_groups() -> None:
    """``hasattr(node, "shape")`` distinguishes arrays from groups, even if a group has a member with this name."""
    root = zarrfs.group()
    root.create_array("shape", shape=(3,))
    assert not hasattr(root, "shape")
    assert root["shape"].shape == (3,)


# -- opening, saving, errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_saved_arrays_are_loaded(zarr_format: Any, tmp_path: Path) -> None:
    for name in ("one", "one.zip"):
        for writer, reader in ((zarrfs, zarrfs), (zarr, zarrfs), (zarrfs, zarr)):
            place = tmp_path / f"{writer.__name__}-{reader.__name__}-{name}"
            writer.save(str(place), DATA, zarr_format=zarr_format)
            if name.endswith(".zip") and reader is zarr:
                continue  # a path is a directory to it
            assert np.array_equal(reader.load(str(place)), DATA)
    place = tmp_path / "several"
    zarrfs.save(place, DATA, DATA[0], other=DATA[1], zarr_format=zarr_format)
    loaded = zarrfs.load(place)
    assert sorted(loaded) == ["arr_0", "arr_1", "other"]
    assert len(loaded) == 3
    assert "other" in loaded
    assert np.array_equal(loaded["other"], DATA[1])
    assert loaded["other"] is loaded["other"]
    assert repr(loaded) == "<zarrfs.SavedArrays: arr_0, arr_1, other>"
    assert np.array_equal(zarr.open_group(place, mode="r")["arr_1"][...], DATA[0])
    zarrfs.save(place, DATA, path="deep/er", zarr_format=zarr_format)
    assert np.array_equal(zarrfs.load(place, "deep/er"), DATA)
    assert isinstance(zarrfs.load(place)["deep"], type(loaded))
    zarrfs.save(place, one=DATA)
    assert list(zarrfs.load(place)) == ["one"]
    zarrfs.save_array(place, DATA, chunks=(2, 2), compressor=None, zarr_format=2)
    assert zarrfs.open_array(place).chunks == (2, 2)
    zarrfs.save_group(tmp_path / "below", DATA, path="x")
    assert np.array_equal(zarrfs.load(tmp_path / "below", "x/arr_0"), DATA)


def test_open_consolidated(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for zarr_format in (2, 3):
        place = tmp_path / str(zarr_format)
        root = zarrfs.group(place, zarr_format=zarr_format)
        root.create_array("a/b", shape=(3,))
        for package in BOTH:
            with pytest.raises((ValueError, KeyError)):
                package.open_group(place, mode="r", use_consolidated=True)
        assert sorted(zarrfs.consolidate_metadata(place)) == ["a"]
        for package in BOTH:
            found = package.open_consolidated(place)
            assert sorted(found["a"]) == ["b"]
        consolidated = zarrfs.open_consolidated(place)
        warned = zarrfs.open_group(place, mode="r+", use_consolidated=False)
        warned.create_group("new")
        assert "are out of date" in caplog.text
        assert sorted(zarrfs.open_group(place)) == ["a", "new"]
        assert sorted(consolidated) == ["a"], "the members do not come from the consolidated metadata"
        assert sorted(zarrfs.open_group(place, use_consolidated=False)) == ["a", "new"]


def test_modes(tmp_path: Path) -> None:
    for package in BOTH:
        place = tmp_path / package.__name__
        assert package.open(place, mode="w", shape=3, dtype="i1").shape == (3,)
        for mode in ("r", "r+", "a"):
            assert package.open(place, mode=mode).shape == (3,)
        assert package.open_group(place / "g", mode="w-").name == "/"
        with pytest.raises((ValueError, FileExistsError)):
            package.open_group(place / "g", mode="w-")
        assert package.open_group(mode="w").nmembers() == 0
        assert package.group(place / "new", attributes={"a": 1}).attrs["a"] == 1
        assert package.group(place / "new").attrs["a"] == 1
        assert dict(package.group(place / "new", overwrite=True).attrs) == {}
    with pytest.raises(zarrfs.NodeExistsError):
        zarrfs.open(tmp_path / "zarrfs", mode="x", shape=3)
    assert zarrfs.open(tmp_path / "created", shape=3).shape == (3,)
    with pytest.raises(zarrfs.NodeNotFoundError, match="to set the mode, use mode='r'"):
        zarrfs.open(tmp_path / "created", "r")
    with pytest.raises(zarrfs.NodeNotFoundError, match="zarr_format 3, expected 2"):
        zarrfs.open(tmp_path / "created", zarr_format=2)
    assert zarrfs.open(tmp_path / "created", zarr_format=3).shape == (3,)
    with pytest.raises(zarrfs.OptionError, match="needs a location"):
        zarrfs.open(mode="r")


ERRORS: dict[str, tuple[Callable[[Any, Any, Path], Any], type[Exception]]] = {
    "a member that is missing": (lambda z, g, p: g["missing"], KeyError),
    "an attribute that is missing": (lambda z, g, p: g.missing, AttributeError),
    "opening a missing path": (lambda z, g, p: z.open(p / "no", mode="r"), FileNotFoundError),
    "opening a missing array": (
        lambda z, g, p: z.open_array(g.store, path="no", mode="r"),
        FileNotFoundError,
    ),
    "opening a missing group": (
        lambda z, g, p: z.open_group(g.store, path="no", mode="r"),
        FileNotFoundError,
    ),
    "creating a group twice": (lambda z, g, p: g.create_group("g"), ValueError),
    "creating an array twice": (lambda z, g, p: g.create_array("a", shape=1, dtype="i1"), ValueError),
    "an array where a group is": (lambda z, g, p: z.open_array(g.store, path="g", mode="r"), ValueError),
    "a group where an array is": (lambda z, g, p: z.open_group(g.store, path="a", mode="r"), ValueError),
    "requiring a group where an array is": (lambda z, g, p: g.require_group("a"), TypeError),
    "requiring an array where a group is": (lambda z, g, p: g.require_array("g", shape=3), TypeError),
    "requiring another shape": (lambda z, g, p: g.require_array("a", shape=4), TypeError),
    "requiring another dtype": (lambda z, g, p: g.require_array("a", shape=3, dtype="M8[s]"), TypeError),
    "an index out of bounds": (lambda z, g, p: g["a"][5], IndexError),
    "too many indices": (lambda z, g, p: g["a"][0, 0], IndexError),
    "writing to what is read": (
        lambda z, g, p: z.open_array(g.store, path="a", mode="r").__setitem__(0, 1),
        ValueError,
    ),
    "saving nothing": (lambda z, g, p: z.save(p / "x"), ValueError),
    "saving what is no array": (lambda z, g, p: z.save(p / "x", object()), TypeError),
    "creating without a shape": (lambda z, g, p: g.create_array("n"), ValueError),
    "chunks of another rank": (
        lambda z, g, p: g.create_array("n", shape=(4,), chunks=(2, 2), dtype="i1"),
        ValueError,
    ),
    "consolidated metadata that are missing": (lambda z, g, p: z.open_consolidated(g.store), ValueError),
}


CHANGES: dict[str, Callable[[Any], Any]] = {
    "grow": lambda a: a.resize((9, 8)),
    "shrink": lambda a: a.resize((4, 3)),
    "shrink and grow": lambda a: (a.resize((3, 2)), a.resize((7, 6))),
    "nothing left": lambda a: (a.resize((0, 6)), a.resize((2, 2))),
    "append rows": lambda a: a.append(MORE[:2]),
    "append columns": lambda a: (a.append(MORE[:, :5], axis=1), a.append(MORE[:, 1:2], axis=1)),
    "append to nothing": lambda a: (a.resize((0, 6)), a.append(MORE[2:5])),
    "values": lambda a: (
        a.__setitem__((slice(1, 5), 3), 9),
        a.__setitem__(..., -5),
        a.__setitem__((6, 5), 1),
    ),
    "attributes": lambda a: (a.attrs.update({"x": [1, {"y": None}]}), a.attrs.update({"z": "é"})),
}
MORE = np.arange(100, 142, dtype="<i4").reshape(7, 6)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("name", CHANGES)
def test_changes_of_an_array_of_the_other_library_have_equal_effects(
    name: str, zarr_format: Any, tmp_path: Path
) -> None:
    places = [tmp_path / "changed by zarrfs", tmp_path / "changed by zarr-python"]
    for writer, opener, place in zip(BOTH, reversed(BOTH), places, strict=True):
        options = {"chunks": (3, 2), "fill_value": -5, "zarr_format": zarr_format}
        writer.create_array(place, shape=(7, 6), dtype="<i4", **options)[...] = MORE - 100
        CHANGES[name](opener.open_array(place, mode="r+"))
    for library in BOTH:
        found = [library.open_array(place, mode="r") for place in places]
        assert facts(found[0]) == facts(found[1])
    keys = [{path.relative_to(place) for path in place.rglob("*") if path.is_file()} for place in places]
    assert keys[0] - {Path(".zattrs")} == keys[1] - {Path(".zattrs")}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_the_same_built_in_base_class(name: str, tmp_path: Path) -> None:
    call, kind = ERRORS[name]
    for package in BOTH:
        group = package.group(tmp_path / package.__name__)
        group.create_group("g")
        group.create_array("a", shape=3, dtype="i4")
        with pytest.raises(kind):
            call(package, group, tmp_path)


@pytest.mark.parametrize("location", ["start", "end"])
def test_shards_with_the_location_of_their_index(location: str, tmp_path: Path) -> None:
    shards: Any = {"shape": (4, 6), "index_location": location}
    for library, place in zip(BOTH, (tmp_path / "theirs", tmp_path / "ours"), strict=True):
        library.create_array(place, data=DATA, chunks=(2, 3), shards=shards)
    codecs = [document(tmp_path / name)["codecs"][0] for name in ("theirs", "ours")]
    assert [codec["configuration"]["index_location"] for codec in codecs] == [location] * 2
    ours = zarrfs.open_array(tmp_path / "ours")
    assert np.array_equal(zarr.open_array(tmp_path / "ours", mode="r")[...], DATA)
    assert zarrfs.zeros_like(ours).metadata["codecs"][0]["configuration"]["index_location"] == location
    for invalid in (
        {"shape": (4, 6), "index_location": "middle"},
        {"index_location": "start"},
        {"shape": 4, "x": 1},
    ):
        with pytest.raises(zarrfs.MetadataError, match="shards: "):
            zarrfs.create_array(shape=(4, 6), chunks=(2, 3), shards=invalid)


def test_chunks_of_length_0_in_empty_dimensions() -> None:
    array = zarrfs.create_array(shape=(0, 3), chunks=(0, 3))
    assert (array.shape, array.chunks, array[...].shape) == ((0, 3), (1, 3), (0, 3))
    with pytest.raises(zarrfs.MetadataError, match="positive"):
        zarrfs.create_array(shape=(3, 3), chunks=(0, 3))


def test_parameters_of_blosc_follow_from_the_data_type(tmp_path: Path) -> None:
    """zarr-python has placeholders in its codec objects until the data type is known."""
    for dtype in ("u1", "u2", "f8"):
        codecs: Any = [zarr.codecs.BytesCodec(), zarr.codecs.BloscCodec(cname="lz4")]
        sharding = zarr.codecs.ShardingCodec(chunk_shape=(2, 3), codecs=codecs)
        for name, options in {
            "chunks": {"compressors": [zarr.codecs.BloscCodec()]},
            "given": {"compressors": [zarr.codecs.BloscCodec(typesize=1, shuffle="noshuffle")]},
            "shards": {"serializer": sharding, "compressors": None},
        }.items():
            found = []
            for library in BOTH:
                place = tmp_path / f"{library.__name__} {name} {dtype}"
                library.create_array(place, shape=(4, 6), chunks=(4, 6), dtype=dtype, **options)
                part = document(place)["codecs"]
                part = part[0]["configuration"]["codecs"] if name == "shards" else part
                found.append(part[-1]["configuration"])
            assert found[0] == found[1], (dtype, name)


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("codec", ["blosc", "zstd", "gzip", "zlib", "bz2", "lzma", "lz4"])
def test_unknown_parameters_of_compressors_are_refused(codec: str, zarr_format: Any) -> None:
    with pytest.raises(zarrfs.MetadataError, match=f"codec '{codec}' has no parameter 'foo'"):
        zarrfs.create_array(
            shape=(4,), dtype="u2", compressor={"id": codec, "foo": 1}, zarr_format=zarr_format
        )
    zarrfs.create_array(shape=(4,), dtype="u2", compressor={"id": codec}, zarr_format=zarr_format)


@pytest.mark.parametrize("library", BOTH)
def test_like_functions_call_their_argument_a(library: Any, tmp_path: Path) -> None:
    array = library.array(DATA)
    assert library.zeros_like(a=array).shape == library.ones_like(a=array).shape == DATA.shape
    assert library.empty_like(a=array).dtype == library.full_like(a=array, fill_value=3).dtype == DATA.dtype
    assert library.open_like(a=array, path=str(tmp_path / "like")).shape == DATA.shape


def test_the_path_of_open_like_is_the_location_without_a_store(tmp_path: Path) -> None:
    zarrfs.open_like(DATA, path=str(tmp_path / "like"))[...] = 5
    assert (zarrfs.open_array(tmp_path / "like")[...] == 5).all()
    with pytest.raises(zarrfs.OptionError, match="location"):
        zarrfs.open_like(DATA)


@pytest.mark.parametrize("write_data", [True, False])
def test_from_array_of_a_list(write_data: bool) -> None:
    theirs, ours = (library.from_array({}, data=[[1, 2], [3, 4]], write_data=write_data) for library in BOTH)
    assert facts(ours)["values"] == facts(theirs)["values"]
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    assert zarrfs.from_array(None, data=["a"], write_data=False).spec.data_type.name == "string"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"compression": "zlib", "compression_opts": 3}, {"id": "zlib", "level": 3}),
        ({"compression": "gzip", "compression_opts": {"level": 2}}, {"id": "gzip", "level": 2}),
        ({"compression": "bz2"}, {"id": "bz2"}),
        ({"compression": numcodecs.BZ2(2)}, {"id": "bz2", "level": 2}),
        ({"compression": "none"}, None),
        ({"compression": None}, None),
        ({"compression": "default", "compressor": numcodecs.BZ2(4)}, {"id": "bz2", "level": 4}),
    ],
)
def test_the_names_of_h5py_for_compression_and_fill_value(options: Any, expected: Any) -> None:
    array = zarrfs.group(zarr_format=2).create_dataset("a", shape=(10,), fillvalue=7, **options)
    found = array.metadata["compressor"]
    assert (found if expected is None else {key: found[key] for key in expected}) == expected
    assert array[0] == 7


def test_impossible_names_of_h5py_are_refused() -> None:
    options: Any
    for options in (
        {"compression_opts": 3},
        {"compression": "zlib", "compression_opts": {"foo": 1}},
        {"fillvalue": 1, "fill_value": 1},
    ):
        with pytest.raises(zarrfs.MetadataError):
            zarrfs.create((10,), **options)


def test_bytes_are_the_bytes_of_a_record() -> None:
    dtype = [("a", "<i4"), ("b", "S2")]
    assert zarrfs.create((1,), dtype=dtype, fill_value=b"")[0].tolist() == (0, b"")
    assert zarrfs.create((1,), dtype=dtype, fill_value=b"\1\0\0\0x")[0].tolist() == (1, b"x")
    with pytest.raises(zarrfs.FillValueError, match="7 bytes for a record of 6"):
        zarrfs.create((1,), dtype=dtype, fill_value=b"1234567")


def test_arrays_of_groups_below() -> None:
    root = zarrfs.group()
    for name in ("b", "x/y", "x/z/c"):
        root.create_array(name, shape=(2,))
    assert [name for name, _ in root.arrays(recurse=True)] == ["b", "y", "c"]
    assert list(root.array_keys(recurse=True)) == ["b", "y", "c"]
    assert list(root.array_keys()) == [name for name, _ in root.arrays()] == ["b"]


def test_a_missing_node_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no such file"):
        zarrfs.open(tmp_path / "missing")
    with pytest.raises(ValueError, match="no array or group"):
        zarrfs.open_group(tmp_path / "group", mode="w")["missing"]
