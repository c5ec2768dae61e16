"""Arrays created by specs have the same metadata as those of TensorStore, or both reject the spec."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorstore
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from zarrfs import tensorstore as specs

SHAPE = [600, 600, 600]
_numbers = count()


def grid(*lengths: int) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(lengths)}}


def sharding(**options: Any) -> dict[str, Any]:
    return {"name": "sharding_indexed", "configuration": options}


def metadata_by_tensorstore(spec: dict[str, Any]) -> Any:
    full = {"driver": "zarr3", "kvstore": {"driver": "memory"}, **spec}
    try:
        array = tensorstore.open(full, create=True).result()
    except ValueError as error:
        return f"refused: {error}".partition("[tensorstore_spec")[0]
    return normalised(array.spec().to_json()["metadata"])


def metadata_by_zarrfs(spec: dict[str, Any]) -> Any:
    full = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"a{next(_numbers)}/"}, **spec}
    try:
        return normalised(specs.open(full, create=True).metadata)
    except zarrfs.MetadataError as error:
        return f"refused: {error}"


def normalised(metadata: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata without members that have no effect."""
    normalised_metadata = json.loads(json.dumps(metadata))
    normalised_metadata["chunk_key_encoding"].pop("configuration", None)
    if not normalised_metadata.get("attributes"):
        normalised_metadata.pop("attributes", None)
    identity = {
        "name": "transpose",
        "configuration": {"order": list(range(len(normalised_metadata["shape"])))},
    }
    normalised_metadata["codecs"] = [codec for codec in normalised_metadata["codecs"] if codec != identity]
    for codec in normalised_metadata["codecs"]:
        if codec.get("configuration", {}).get("shuffle") == "noshuffle":
            codec["configuration"].pop("typesize", None)  # has no effect without shuffling
    return dict(normalised_metadata)


def spec_of(dtype: str = "uint16", shape: list[int] = SHAPE, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"shape": shape, "data_type": dtype, **metadata}}


def with_schema(spec: dict[str, Any], **schema: Any) -> dict[str, Any]:
    return {**spec, "schema": schema}


SPECS: dict[str, dict[str, Any]] = {
    "defaults": spec_of(),
    "chunk grid of the metadata is the write chunk": spec_of(chunk_grid=grid(512, 512, 512)),
    "codecs without shards": spec_of(chunk_grid=grid(512, 512, 512), codecs=["gzip"]),
    "codecs without shards, and a write chunk": with_schema(
        spec_of(codecs=["gzip"]), chunk_layout={"write_chunk": {"shape": [512] * 3}}
    ),
    "codecs without shards, and a read chunk": with_schema(
        spec_of(codecs=[{"name": "bytes"}, "gzip"]), chunk_layout={"read_chunk": {"shape": [64] * 3}}
    ),
    "blosc of two bytes": spec_of(codecs=["blosc"]),
    "blosc of one byte": spec_of("uint8", codecs=["blosc"]),
    "blosc in part": spec_of(codecs=[{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1}}]),
    "zstd and a checksum": spec_of("uint8", codecs=["zstd", "crc32c"]),
    "big endian": spec_of(codecs=[{"name": "bytes", "configuration": {"endian": "big"}}]),
    "transpose by letter": spec_of(codecs=[{"name": "transpose", "configuration": {"order": "F"}}]),
    "identity transpose by letter": spec_of(codecs=[{"name": "transpose", "configuration": {"order": "C"}}]),
    "transpose by numbers": spec_of(codecs=[{"name": "transpose", "configuration": {"order": [2, 0, 1]}}]),
    "shards by name": spec_of(codecs=["sharding_indexed"]),
    "shards in part": spec_of(
        chunk_grid=grid(512, 256, 128),
        codecs=[sharding(chunk_shape=[32, 32, 32], codecs=["gzip"], index_location="start")],
    ),
    "a checksum for the index": spec_of(
        chunk_grid=grid(64, 64, 64),
        codecs=[sharding(chunk_shape=[32, 32, 32], index_codecs=["bytes", "crc32c"])],
    ),
    "an inner order": with_schema(spec_of(fill_value=7), chunk_layout={"inner_order": [2, 0, 1]}),
    "an inner order of shards": with_schema(
        spec_of(), chunk_layout={"inner_order": [2, 1, 0], "read_chunk": {"elements": 1000}}
    ),
    "units, labels and a fill value": with_schema(
        spec_of(), fill_value=3, dimension_units=["4nm", None, [2, "nm"]], domain={"labels": ["x", "y", ""]}
    ),
    "all by the schema": {
        "schema": {"dtype": "int8", "domain": {"shape": SHAPE}, "codec": {"driver": "zarr3"}}
    },
    "codecs of the schema": {
        "schema": {
            "dtype": "uint16",
            "domain": {"shape": SHAPE},
            "codec": {"driver": "zarr3", "codecs": ["gzip"]},
        }
    },
    "codecs of both": with_schema(
        spec_of(codecs=["gzip"]),
        codec={"driver": "zarr3", "codecs": [{"name": "gzip", "configuration": {"level": 2}}]},
    ),
    "the driver of another format": with_schema(spec_of(), codec={"driver": "n5"}),
    "a nonzero domain origin": {
        "schema": {"dtype": "uint16", "domain": {"inclusive_min": [1, 0, 0], "exclusive_max": SHAPE}}
    },
    "a domain by inclusive_max": {
        "schema": {"dtype": "uint16", "domain": {"inclusive_min": [0, 0], "inclusive_max": [9, 19]}}
    },
    "a rank and no domain": {"schema": {"dtype": "uint16", "rank": 3}},
    "ranks that differ": {"schema": {"dtype": "uint16", "rank": 2, "domain": {"shape": SHAPE}}},
    "data types that differ": with_schema(spec_of(), dtype="uint8"),
    "shapes that differ": with_schema(spec_of(), domain={"shape": [1, 2, 3]}),
    "chunks that differ": with_schema(
        spec_of(chunk_grid=grid(10, 10, 10)), chunk_layout={"write_chunk": {"shape": [20, 20, 20]}}
    ),
    "a soft constraint that cannot be met": with_schema(
        spec_of(chunk_grid=grid(10, 10, 10)), chunk_layout={"chunk": {"shape_soft_constraint": [20, 20, 20]}}
    ),
    "a soft constraint that is met": with_schema(
        spec_of(), chunk_layout={"read_chunk": {"elements_soft_constraint": 1000}}
    ),
    "a chunk for both": with_schema(spec_of(), chunk_layout={"chunk": {"shape": [20, 20, 20]}}),
    "elements and ratios": with_schema(
        spec_of(), chunk_layout={"chunk": {"elements": 1000, "aspect_ratio": [1, 1, 2]}}
    ),
    "a nonzero grid origin": with_schema(spec_of(), chunk_layout={"grid_origin": [1, 0, 0]}),
    "attributes": spec_of(
        attributes={"a": 1, "dimension_units": ["1 nm", "", "um"]}, dimension_names=["a", None, "c"]
    ),
    "v2 keys": spec_of(chunk_key_encoding={"name": "v2"}),
    "a scalar": spec_of("float32", [], fill_value="NaN"),
    "an empty array": spec_of("float32", [0, 10]),
    "32 dimensions": spec_of("uint8", [1] * 32),
    "33 dimensions": spec_of("uint8", [1] * 33),
    "a member that does not exist": spec_of(chunk_shape=[1, 2, 3]),
    "two array to bytes codecs": spec_of(codecs=["bytes", "sharding_indexed"]),
    "codecs in the wrong order": spec_of(codecs=["gzip", "bytes"]),
    "an unknown codec": spec_of(codecs=["no such codec"]),
    "an unknown data type": spec_of("uint17"),
    "rectilinear chunks": spec_of(chunk_grid={"name": "rectilinear"}),
}


@pytest.mark.parametrize("name", SPECS)
def test_metadata_equals_that_of_tensorstore(name: str) -> None:
    by_zarrfs, by_tensorstore = metadata_by_zarrfs(SPECS[name]), metadata_by_tensorstore(SPECS[name])
    if isinstance(by_zarrfs, str) or isinstance(by_tensorstore, str):
        assert isinstance(by_zarrfs, str), f"only TensorStore rejects the spec: {by_tensorstore}"
        assert isinstance(by_tensorstore, str), f"only zarrfs rejects the spec: {by_zarrfs}"
    else:
        assert by_zarrfs == by_tensorstore


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    ],
)
def test_every_documented_data_type_is_supported(dtype: str) -> None:
    """The names are those in the section "Data type" of the documentation of the zarr3 driver."""
    assert metadata_by_zarrfs(spec_of(dtype, [10, 10])) == metadata_by_tensorstore(spec_of(dtype, [10, 10]))


def test_specs_that_only_zarrfs_accepts() -> None:
    """Chosen chunks are multiples of given inner chunks, and strings are supported."""
    assert metadata_by_zarrfs(spec_of(codecs=[sharding(chunk_shape=[32, 32, 32])]))["chunk_grid"] == grid(
        96, 96, 96
    )
    assert metadata_by_zarrfs(spec_of("string", [10]))["codecs"] == [{"name": "vlen-utf8"}]


codecs_in_part = st.lists(
    st.sampled_from(
        [
            "gzip",
            "zstd",
            "crc32c",
            "blosc",
            {"name": "gzip", "configuration": {"level": 3}},
            {"name": "blosc", "configuration": {"shuffle": "noshuffle"}},
        ]
    ),
    max_size=2,
)
serializers = st.sampled_from([[], ["bytes"], ["sharding_indexed"], [sharding(codecs=["gzip"])]])
layouts = st.fixed_dictionaries(
    {},
    optional={
        "inner_order": st.permutations([0, 1, 2]),
        "chunk": st.sampled_from([{"elements": 1000}, {"aspect_ratio": [1, 1, 1]}, {"shape": [10, 0, 0]}]),
        "read_chunk": st.sampled_from([{"shape": [10, 0, 0]}, {"elements": 2000}, {"shape": [0, 0, -1]}]),
        "write_chunk": st.sampled_from(
            [{"shape": [100, 0, 0]}, {"elements": 10**7}, {"shape": [-1, 100, 100]}]
        ),
    },
)


@given(codecs_in_part, serializers, layouts, st.sampled_from(["uint8", "uint16", "float32"]))
@settings(deadline=None, max_examples=150)
def test_chunk_layouts_and_codecs_combine_as_in_tensorstore(
    bytes_codecs: list[Any], serializer_codecs: list[Any], layout: Any, dtype: str
) -> None:
    codecs: dict[str, Any] = (
        {} if not (bytes_codecs or serializer_codecs) else {"codecs": [*serializer_codecs, *bytes_codecs]}
    )
    if serializer_codecs and serializer_codecs != ["bytes"]:
        codecs["codecs"] = (
            serializer_codecs  # TensorStore does not support bytes -> bytes codecs after sharding
        )
    spec = with_schema(spec_of(dtype, [100, 200, 300], **codecs), chunk_layout=layout)
    by_zarrfs, by_tensorstore = metadata_by_zarrfs(spec), metadata_by_tensorstore(spec)
    if isinstance(by_tensorstore, str) and not isinstance(by_zarrfs, str):
        # zarrfs finds a shape where TensorStore considers only the outer chunks.
        assert "divide" in by_tensorstore or "multiple" in by_tensorstore
    else:
        assert isinstance(by_zarrfs, str) == isinstance(by_tensorstore, str), (by_zarrfs, by_tensorstore)
        if not isinstance(by_zarrfs, str):
            assert by_zarrfs == by_tensorstore


def test_arrays_are_exchanged_with_tensorstore(tmp_path: Path) -> None:
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/ours/"},
        **with_schema(
            spec_of("uint16", [30, 40, 50], codecs=["sharding_indexed"]),
            chunk_layout={"read_chunk": {"shape": [5, 5, 5]}, "write_chunk": {"shape": [20, 20, 20]}},
        ),
    }
    data = np.random.default_rng(0).integers(0, 999, (30, 40, 50)).astype("u2")
    by_zarrfs = specs.open(spec, create=True)
    by_zarrfs[...] = data
    by_tensorstore = tensorstore.open(spec, open=True).result()
    assert (by_tensorstore.read().result() == data).all()
    by_tensorstore[:7] = 3
    assert (by_zarrfs[...] == np.concatenate([np.full((7, 40, 50), 3), data[7:]])).all()
    # The spec that TensorStore returns, with its transform, can be opened.
    opened = specs.open(by_tensorstore.spec().to_json())
    assert (opened[...] == by_zarrfs[...]).all()


@pytest.mark.parametrize("rank", [0, 1, 31, 32])
def test_arrays_of_any_supported_rank(rank: int) -> None:
    shape = [2 if axis < 5 else 1 for axis in range(rank)]
    spec = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"r{rank}"}, **spec_of("int16", shape)}
    array = specs.open(spec, create=True)
    data = np.arange(int(np.prod(shape)), dtype="i2").reshape(shape)
    array[...] = data
    assert (np.asarray(array[...]) == data).all()
    assert bytes(array.read_bytes(0, array.nbytes)) == data.tobytes()


V2 = {
    "plain": {"shape": [10, 20], "dtype": "<u2", "chunks": [5, 7], "compressor": None},
    "defaults": {"shape": [10, 20], "dtype": "<u2"},
    "zlib": {"shape": [10, 20], "dtype": ">f4", "chunks": [5, 7], "compressor": {"id": "zlib", "level": 2}},
    "F order": {"shape": [10, 20], "dtype": "|u1", "order": "F", "fill_value": 3, "compressor": None},
    "separator": {"shape": [10, 20], "dtype": "|b1", "dimension_separator": "/", "compressor": None},
}


@pytest.mark.parametrize("name", V2)
def test_v2_metadata_equals_that_of_tensorstore(name: str, tmp_path: Path) -> None:
    def spec(where: str) -> dict[str, Any]:
        return {
            "driver": "zarr",
            "kvstore": {"driver": "file", "path": f"{tmp_path}/{where}/"},
            "metadata": V2[name],
        }

    by_tensorstore = tensorstore.open(spec("theirs"), create=True).result()
    by_zarrfs = specs.open(spec("ours"), create=True)
    for document in (by_zarrfs.metadata, json.loads((tmp_path / "theirs" / ".zarray").read_text())):
        document.setdefault("filters", None)
    first, second = by_zarrfs.metadata, json.loads((tmp_path / "theirs" / ".zarray").read_text())
    for key in ("shape", "chunks", "dtype", "order", "zarr_format", "filters"):
        assert first[key] == second[key]
    assert first.get("dimension_separator", ".") == second.get("dimension_separator", ".")
    by_zarrfs[...] = np.arange(200).reshape(10, 20) % 2
    again = tensorstore.open({**spec("ours"), "metadata": V2[name]}).result()
    assert (again.read().result() == by_zarrfs[...]).all()
    assert specs.open(spec("theirs")).shape == tuple(by_tensorstore.shape)
