"""Open options of specs: opening, creating, deleting, assumed metadata, caches and rechecks."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore

import zarrfs
from zarrfs import tensorstore as specs


def spec(path: Path, **members: Any) -> dict[str, Any]:
    return {"driver": "zarr3", "kvstore": {"driver": "file", "path": f"{path}/"}, **members}


def create_array(path: Path, **members: Any) -> zarrfs.Array:
    array = specs.open(spec(path, create=True, **members), shape=[8, 6], dtype="int32")
    array[...] = np.arange(48).reshape(8, 6)
    return array


# -- open, create, delete --------------------------------------------------------------------------------------


def test_open_is_the_default(tmp_path: Path) -> None:
    with pytest.raises((zarrfs.NodeNotFoundError, zarrfs.LocationError)):
        specs.open(spec(tmp_path / "a"))
    create_array(tmp_path / "a")
    assert specs.open(spec(tmp_path / "a"))[0, 1] == 1
    specs.open(spec(tmp_path / "a"))[0, 1] = 5
    assert specs.open(spec(tmp_path / "a"), read_only=True)[0, 1] == 5
    with pytest.raises(zarrfs.ReadOnlyError):
        specs.open(spec(tmp_path / "a"), read_only=True)[0, 1] = 5


def test_create_rejects_existing_arrays_unless_open_is_set(tmp_path: Path) -> None:
    create_array(tmp_path / "a")
    with pytest.raises(zarrfs.NodeExistsError, match="delete_existing"):
        create_array(tmp_path / "a")
    open_or_create = spec(tmp_path / "a", open=True, create=True)
    assert specs.open(open_or_create, shape=[8, 6], dtype="int32")[7, 5] == 47
    other = spec(tmp_path / "b", open=True, create=True)
    assert specs.open(other, shape=[8, 6], dtype="int32")[7, 5] == 0


def test_delete_existing_deletes_only_for_a_valid_spec(tmp_path: Path) -> None:
    create_array(tmp_path / "a")
    (tmp_path / "a" / "other").write_text("x")
    wrong = spec(tmp_path / "a", create=True, delete_existing=True, schema={"dtype": "uint17"})
    with pytest.raises(zarrfs.MetadataError):
        specs.open(wrong, shape=[2])
    assert specs.open(spec(tmp_path / "a"))[7, 5] == 47  # an invalid spec deletes nothing
    array = specs.open(spec(tmp_path / "a", create=True, delete_existing=True), shape=[3], dtype="uint8")
    assert array[...].tolist() == [0, 0, 0]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["zarr.json"]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"delete_existing": True}, "delete_existing"),
        ({"delete_existing": True, "create": True, "open": True}, "delete_existing"),
        ({"open": False}, "either open or create"),
        ({"assume_metadata": True, "create": True, "open": False}, "assume_metadata"),
        ({"open": 1}, "open: expected true or false"),
        ({"colour": 1}, "spec/colour: unknown key"),
        ({"recheck_cached_data": "often"}, "recheck_cached_data"),
        ({"cache_pool": "no_pool"}, "cache_pool"),
        ({"cache_pool": "cache_pool#mine"}, "cache_pool#mine"),
        ({"cache_pool": {"total_bytes_limit": -1}}, "total_bytes_limit"),
        ({"data_copy_concurrency": {"limit": 0}}, "limit"),
        ({"driver": "n5"}, "driver: expected one of zarr3"),
        ({"kvstore": {"driver": "tape"}}, "kvstore/driver: expected one of"),
        ({"kvstore": {"driver": "file", "path": 3}}, "kvstore/path"),
        ({"kvstore": 3}, "kvstore"),
        ({"transform": {"input_inclusive_min": [1, 0]}}, "transform"),
        ({"transform": {"output": [{"input_dimension": 1}]}}, "index the array"),
        ({"metadata": []}, "metadata"),
        ({"metadata": {"zarr_format": 2}}, "zarr_format"),
        ({"schema": {"chunk_layout": {"inner_order": [0, 0]}}}, "inner_order"),
        ({"schema": {"chunk_layout": {"read_chunk": {"elements": 0}}}}, "elements"),
        ({"schema": {"dimension_units": "nm"}}, "dimension_units"),
        ({"schema": {"dimension_units": [True]}}, "dimension_units/0"),
        ({"rank": 33}, "rank"),
    ],
)
def test_an_invalid_spec_is_an_error_that_names_the_member(
    members: dict[str, Any], message: str, tmp_path: Path
) -> None:
    create_array(tmp_path / "a")
    with pytest.raises(zarrfs.MetadataError, match=message):
        specs.open({**spec(tmp_path / "a"), **members})


# -- constraints on existing arrays ----------------------------------------------------------------------------


def sharding(**options: Any) -> dict[str, Any]:
    return {"name": "sharding_indexed", "configuration": options}


REGULAR_GRID = {"name": "regular", "configuration": {"chunk_shape": [4, 6]}}

MATCHING_SPECS: list[dict[str, Any]] = [
    {"metadata": {"shape": [8, 6], "data_type": "int32", "chunk_grid": REGULAR_GRID}},
    {"metadata": {"codecs": ["sharding_indexed"], "attributes": {"a": 1}}},
    {"metadata": {"dimension_names": ["y", None]}},
    {"schema": {"rank": 2, "dtype": "int32", "domain": {"shape": [8, 6], "labels": ["y", ""]}}},
    {"schema": {"domain": {"exclusive_max": [[8], ["+inf"]]}}},
    {"schema": {"chunk_layout": {"read_chunk": {"shape": [2, 3]}, "write_chunk": {"shape": [4, 6]}}}},
    {"schema": {"chunk_layout": {"read_chunk": {"shape_soft_constraint": [1, 1]}, "inner_order": [0, 1]}}},
    {"schema": {"fill_value": 7, "dimension_units": ["4nm", None]}},
    {"schema": {"codec": {"driver": "zarr3", "codecs": ["sharding_indexed"]}}},
    {"transform": {"input_inclusive_min": [0, 0], "input_exclusive_max": [[8], [6]]}},
]

CONFLICTING_SPECS: list[tuple[dict[str, Any], str]] = [
    ({"metadata": {"shape": [8, 7]}}, "shape"),
    ({"metadata": {"data_type": "int8"}}, "expected dtype 'int8', found 'int32'"),
    ({"metadata": {"data_type": "int32", "fill_value": 8}}, "fill_value"),
    ({"metadata": {"chunk_grid": {"configuration": {"chunk_shape": [2, 6]}}}}, "write_chunk shape of dimension 0"),
    ({"metadata": {"codecs": ["gzip"]}}, "expected the bytes -> bytes codecs"),
    ({"metadata": {"codecs": [sharding(index_location="start")]}}, "index_location"),
    ({"metadata": {"codecs": ["bytes"]}}, "expected codec 'bytes', found 'sharding_indexed'"),
    ({"metadata": {"attributes": {"a": 2}}}, "expected attribute 'a' 2, found 1"),
    ({"metadata": {"attributes": {"b": 1}}}, "attribute 'b'"),
    ({"metadata": {"dimension_names": ["y", "x"]}}, "dimension_names"),
    ({"metadata": {"chunk_key_encoding": {"name": "v2"}}}, "chunk_key_encoding"),
    ({"schema": {"rank": 3}}, "expected rank 3, found 2"),
    ({"schema": {"domain": {"shape": [8, 5]}}}, "shape"),
    ({"schema": {"domain": {"labels": ["z", ""]}}}, "labels"),
    ({"schema": {"chunk_layout": {"read_chunk": {"shape": [2, 2]}}}}, "expected read_chunk shape of dimension 1 2"),
    ({"schema": {"chunk_layout": {"inner_order": [1, 0]}}}, "inner_order"),
    ({"schema": {"dimension_units": ["5nm", None]}}, "dimension_units"),
    ({"schema": {"codec": {"driver": "zarr"}}}, "codec/driver"),
]  # fmt: skip


@pytest.fixture
def constrained(tmp_path: Path) -> Path:
    metadata = {
        "shape": [8, 6],
        "data_type": "int32",
        "chunk_grid": REGULAR_GRID,
        "codecs": [{"name": "sharding_indexed", "configuration": {"chunk_shape": [2, 3]}}],
        "fill_value": 7,
        "attributes": {"a": 1, "dimension_units": ["4 nm", None]},
        "dimension_names": ["y", None],
    }
    specs.open(spec(tmp_path / "a", create=True, metadata=metadata))
    return tmp_path / "a"


@pytest.mark.parametrize("members", MATCHING_SPECS, ids=json.dumps)
def test_a_matching_spec_opens_the_array(members: dict[str, Any], constrained: Path) -> None:
    assert specs.open(spec(constrained, **members)).shape == (8, 6)
    tensorstore.open(spec(constrained, **members)).result()


@pytest.mark.parametrize(
    ("members", "message"), CONFLICTING_SPECS, ids=[json.dumps(entry[0]) for entry in CONFLICTING_SPECS]
)
def test_a_conflicting_spec_is_an_error_that_names_the_constraint(
    members: dict[str, Any], message: str, constrained: Path
) -> None:
    with pytest.raises(zarrfs.MetadataError, match=message):
        specs.open(spec(constrained, **members))
    with pytest.raises(ValueError, match=r".+"):
        tensorstore.open(spec(constrained, **members)).result()


def members_of_specs(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a spec."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from members_of_specs(inner, (*path, key))


WRONG_VALUES: list[Any] = [None, True, 0, -1, 1.5, "x", "", [], [1], ["x"], {}, {"a": 1}, [[]], [{}], 2**70]

SHARDS = {"chunk_shape": [1], "codecs": ["bytes"], "index_codecs": ["bytes"]}

FULL_SPECS: list[dict[str, Any]] = [
    {
        "driver": "zarr3",
        "kvstore": {"driver": "memory", "path": "a/"},
        "context": {"cache_pool": {"total_bytes_limit": 9}, "data_copy_concurrency": {"limit": "shared"}},
        "recheck_cached_data": "open",
        "transform": {"input_rank": 1, "input_labels": ["x"], "output": [{"input_dimension": 0}]},
        "metadata": {
            "shape": [4],
            "data_type": "uint16",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "codecs": ["bytes", "crc32c"],
            "dimension_names": ["x"],
        },
    },
    {
        "driver": "zarr3",
        "kvstore": "memory://b/",
        "schema": {
            "dtype": "uint8",
            "domain": {"inclusive_min": [0], "exclusive_max": [4], "labels": ["x"]},
            "chunk_layout": {"write_chunk": {"shape": [2]}, "inner_order": [0], "grid_origin": [0]},
            "codec": {"driver": "zarr3", "codecs": [{"name": "sharding_indexed", "configuration": SHARDS}]},
            "dimension_units": ["4 nm"],
        },
    },
    {
        "driver": "zarr",
        "kvstore": {"driver": "memory", "path": "c/"},
        "metadata": {"shape": [4], "chunks": [2], "dtype": "<u2", "compressor": {"id": "zlib", "level": 1}},
        "schema": {"fill_value": 0, "codec": {"driver": "zarr", "filters": None}},
    },
]


@pytest.mark.parametrize("full_spec", FULL_SPECS, ids=["metadata", "schema", "v2"])
def test_a_member_of_a_wrong_type_is_an_error_of_this_package(full_spec: dict[str, Any]) -> None:
    """Or it is accepted, such as null for most members."""
    options = {"create": True, "delete_existing": True}
    specs.open({**full_spec, **options}, context=specs.Context())
    for path in members_of_specs(full_spec):
        for value in WRONG_VALUES:
            changed = json.loads(json.dumps(full_spec))
            owner = changed
            for part in path[:-1]:
                owner = owner[part]
            owner[path[-1]] = value
            with contextlib.suppress(zarrfs.ZarrError):
                specs.open({**changed, **options}, context=specs.Context())


def test_a_group_or_another_format_is_an_error(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "g")
    with pytest.raises(zarrfs.NodeTypeError, match="expected an array, found a group"):
        specs.open(spec(tmp_path / "g"))
    zarrfs.create_array(tmp_path / "two", data=np.arange(3), zarr_format=2)
    with pytest.raises(zarrfs.MetadataError, match="expected zarr_format 3, found 2"):
        specs.open(spec(tmp_path / "two"))
    assert specs.open(spec(tmp_path / "two", driver="auto"))[2] == 2


# -- assumed metadata ------------------------------------------------------------------------------------------


def test_assumed_metadata_is_neither_read_nor_written(tmp_path: Path) -> None:
    assumed = spec(tmp_path / "a", assume_metadata=True, metadata={"shape": [4, 4], "data_type": "uint8"})
    array = specs.open(assumed)
    array[...] = 3
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["c"]
    assert (specs.open(assumed)[...] == 3).all()
    for change in (
        lambda: array.resize(5, 5),
        lambda: array.append(np.zeros((1, 4))),
        lambda: array.attrs.put({}),
    ):
        with pytest.raises(zarrfs.UnsupportedError, match="only assumed"):
            change()
    with pytest.raises(zarrfs.MetadataError, match="needs a data type"):
        specs.open(spec(tmp_path / "a", assume_metadata=True, metadata={"shape": [4, 4]}))


def test_assumed_cached_metadata_is_read_before_a_change(tmp_path: Path) -> None:
    assumed = {"shape": [4, 4], "data_type": "uint8", "chunk_grid": REGULAR_GRID}
    members = {"assume_cached_metadata": True, "metadata": assumed}
    array = specs.open(spec(tmp_path / "a", **members))
    array[...] = 3
    with pytest.raises(zarrfs.NodeNotFoundError, match="were deleted"):
        array.resize(5, 5)
    specs.open(spec(tmp_path / "a", create=True, metadata={**assumed, "shape": [6, 4]}))
    array = specs.open(spec(tmp_path / "a", **members))
    array.append(np.ones((2, 4), "u1"))
    assert specs.open(spec(tmp_path / "a")).shape == (8, 4)
    other = specs.open(spec(tmp_path / "a", **{**members, "metadata": {**assumed, "data_type": "uint16"}}))
    with pytest.raises(zarrfs.MetadataError, match="data type has changed"):
        other.resize(9, 4)


# -- caches ----------------------------------------------------------------------------------------------------


def test_cached_metadata_is_reused_unless_rechecked(tmp_path: Path) -> None:
    context = specs.Context({"metadata_cache_pool": {"total_bytes_limit": 100_000}})
    array = create_array(tmp_path / "a")
    specs.open(spec(tmp_path / "a"), context=context)
    array.resize(9, 6)
    shape = {
        name: specs.open(spec(tmp_path / "a", recheck_cached_metadata=bound), context=context).shape
        for name, bound in (("never", False), ("past", 1.0))
    }
    assert shape == {"never": (8, 6), "past": (8, 6)}
    for bound in (True, "open", time.time() + 100):
        array.resize(array.shape[0] + 1, 6)
        opened = specs.open(spec(tmp_path / "a", recheck_cached_metadata=bound), context=context)
        assert opened.shape == array.shape
    fresh = specs.open(spec(tmp_path / "a", recheck_cached_metadata=False), context=specs.Context())
    assert fresh.shape == array.shape


def test_metadata_is_rechecked_before_each_use(tmp_path: Path) -> None:
    array = create_array(tmp_path / "a")
    rechecking_array = specs.open(spec(tmp_path / "a", recheck_cached_metadata=True))
    array.resize(2, 6)
    assert rechecking_array[...].shape == (2, 6)
    with pytest.raises(zarrfs.SelectionError):
        rechecking_array[5]


def test_cache_pools_are_shared_by_name(tmp_path: Path) -> None:
    create_array(tmp_path / "a")
    context = specs.Context({"cache_pool": {"total_bytes_limit": 1 << 20}, "cache_pool#none": {}})
    one, other = (specs.open(spec(tmp_path / "a"), context=context) for _ in range(2))
    uncached = specs.open(spec(tmp_path / "a", cache_pool="cache_pool#none"), context=context)
    own_cache = specs.open(spec(tmp_path / "a", cache_pool={"total_bytes_limit": 5000}), context=context)
    with_own_context = specs.open(
        spec(tmp_path / "a", context={"cache_pool": {"total_bytes_limit": 77}}), context=context
    )
    caches = [array.storage.cache for array in (one, other, uncached, own_cache, with_own_context)]
    assert caches[0] is caches[1]
    assert [cache.capacity for cache in caches] == [1 << 20, 1 << 20, 0, 5000, 77]
    _ = one[...]
    assert len(caches[0]) == 1
    _ = uncached[...]
    assert len(caches[2]) == 0


def test_a_full_metadata_cache_evicts_entries(tmp_path: Path) -> None:
    context = specs.Context({"metadata_cache_pool": {"total_bytes_limit": 10}})
    array = create_array(tmp_path / "a")
    specs.open(spec(tmp_path / "a"), context=context)
    array.resize(9, 6)
    assert specs.open(spec(tmp_path / "a", recheck_cached_metadata=False), context=context).shape == (9, 6)


def test_cached_data_is_rechecked_as_specified(tmp_path: Path) -> None:
    array = create_array(tmp_path / "a")
    readers = {
        bound: specs.open(spec(tmp_path / "a", recheck_cached_data=bound)) for bound in (True, False, "open")
    }
    for reader in readers.values():
        assert reader[0, 1] == 1
        assert reader[...].sum() == 48 * 47 // 2
    array[...] = 0
    assert {bound: int(reader[...].sum()) for bound, reader in readers.items()} == {
        True: 0,
        False: 1128,
        "open": 1128,
    }
    without_rechecks = specs.open(spec(tmp_path / "a", recheck_cached=False))
    assert without_rechecks.access == zarrfs.Access(recheck_metadata=False, recheck_data=False)


def test_concurrency_and_missing_data_options(tmp_path: Path) -> None:
    members = {
        "fill_missing_data_reads": False,
        "store_data_equal_to_fill_value": True,
        "context": {"data_copy_concurrency": {"limit": 1}},
    }
    array = specs.open(spec(tmp_path / "a", create=True, **members), shape=[4], dtype="uint8")
    assert array.access.concurrency == 1
    with pytest.raises(zarrfs.MissingChunkError):
        array[...]
    array[...] = 0
    assert array[...].tolist() == [0, 0, 0, 0]
    assert (tmp_path / "a" / "c" / "0").exists()
    assert (
        tensorstore.open({**spec(tmp_path / "a"), "fill_missing_data_reads": False})
        .result()
        .read()
        .result()
        .sum()
        == 0
    )


# -- key-value stores ------------------------------------------------------------------------------------------


def test_urls_and_zip_files_are_opened(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "a.zip", "inner/x", data=np.arange(5)).store.close()
    url = f"file://{tmp_path}/a.zip|zip:inner/x/|zarr3:"
    array = specs.open(url, read_only=True)
    assert array[...].tolist() == [0, 1, 2, 3, 4]
    array.store.close()
    nested = {"driver": "zip", "base": f"file://{tmp_path}/a.zip", "path": "inner"}
    array = specs.open({"driver": "zarr3", "kvstore": nested, "path": "x"}, read_only=True)
    assert array[4] == 4
    array.store.close()
    create_array(tmp_path / "b")
    assert specs.open(f"file://{tmp_path}/b/")[0, 1] == 1
    assert specs.open({"driver": "zarr3", "kvstore": f"file://{tmp_path}", "path": "b"})[0, 1] == 1
    with pytest.raises(zarrfs.MetadataError, match="expected nothing after driver"):
        specs.open(f"file://{tmp_path}/b/|zarr3:|zip:")
    with pytest.raises(zarrfs.MetadataError, match="is not a URL"):
        specs.open("just/a/path")


def test_a_memory_store_belongs_to_its_context() -> None:
    memory_spec = {"driver": "zarr3", "kvstore": "memory://x/"}
    one, other = specs.Context(), specs.Context()
    specs.open(memory_spec, context=one, create=True, shape=[3], dtype="uint8")[...] = 1
    assert specs.open(memory_spec, context=one)[...].tolist() == [1, 1, 1]
    with pytest.raises(zarrfs.NodeNotFoundError):
        specs.open(memory_spec, context=other)


def test_an_array_on_a_web_server_is_read_only(tmp_path: Path) -> None:
    from tests.engine.stores.servers import web_server

    create_array(tmp_path / "a")
    with web_server(tmp_path) as server:
        kvstore = {"driver": "http", "base_url": server.url, "path": "a"}
        array = specs.open({"driver": "zarr3", "kvstore": kvstore})
        assert array[...].sum() == 1128
        with pytest.raises(zarrfs.ReadOnlyError):
            array[...] = 0
        array.store.close()
