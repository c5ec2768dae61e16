"""Arrays created by specs, beside TensorStore: the same metadata, or refused by both."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorstore
import zarrfs
from zarrfs import tensorstore as specs

SHAPE = [600, 600, 600]
_numbers = count()


def grid(*lengths: int) -> dict[str, Any]:
    return {"name": "regular", "configuration": {"chunk_shape": list(lengths)}}


def sharding(**options: Any) -> dict[str, Any]:
    return {"name": "sharding_indexed", "configuration": options}


def of_tensorstore(spec: dict[str, Any]) -> Any:
    full = {"driver": "zarr3", "kvstore": {"driver": "memory"}, **spec}
    try:
        made = tensorstore.open(full, create=True).result()
    except ValueError as error:
        return f"refused: {error}".partition("[tensorstore_spec")[0]
    return plain(made.spec().to_json()["metadata"])


def of_ours(spec: dict[str, Any]) -> Any:
    full = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"a{next(_numbers)}/"}, **spec}
    try:
        return plain(specs.open(full, create=True).metadata)
    except zarrfs.MetadataError as error:
        return f"refused: {error}"


def plain(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata without what is said or left out without a difference."""
    found = json.loads(json.dumps(metadata))
    found["chunk_key_encoding"].pop("configuration", None)
    if not found.get("attributes"):
        found.pop("attributes", None)
    identity = {"name": "transpose", "configuration": {"order": list(range(len(found["shape"])))}}
    found["codecs"] = [codec for codec in found["codecs"] if codec != identity]
    for codec in found["codecs"]:
        if codec.get("configuration", {}).get("shuffle") == "noshuffle":
            codec["configuration"].pop("typesize", None)  # of no meaning then
    return dict(found)


def base(dtype: str = "uint16", shape: list[int] = SHAPE, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"shape": shape, "data_type": dtype, **metadata}}


def with_schema(spec: dict[str, Any], **schema: Any) -> dict[str, Any]:
    return {**spec, "schema": schema}


ALIKE: dict[str, dict[str, Any]] = {
    "nothing said": base(),
    "chunks of the metadata are what is written as one": base(chunk_grid=grid(512, 512, 512)),
    "codecs without shards": base(chunk_grid=grid(512, 512, 512), codecs=["gzip"]),
    "codecs without shards, and a write chunk": with_schema(
        base(codecs=["gzip"]), chunk_layout={"write_chunk": {"shape": [512] * 3}}
    ),
    "codecs without shards, and a read chunk": with_schema(
        base(codecs=[{"name": "bytes"}, "gzip"]), chunk_layout={"read_chunk": {"shape": [64] * 3}}
    ),
    "blosc of two bytes": base(codecs=["blosc"]),
    "blosc of one byte": base("uint8", codecs=["blosc"]),
    "blosc in part": base(codecs=[{"name": "blosc", "configuration": {"cname": "zstd", "clevel": 1}}]),
    "zstd and a checksum": base("uint8", codecs=["zstd", "crc32c"]),
    "big endian": base(codecs=[{"name": "bytes", "configuration": {"endian": "big"}}]),
    "transposed, by a letter": base(codecs=[{"name": "transpose", "configuration": {"order": "F"}}]),
    "not transposed, by a letter": base(codecs=[{"name": "transpose", "configuration": {"order": "C"}}]),
    "transposed, by numbers": base(codecs=[{"name": "transpose", "configuration": {"order": [2, 0, 1]}}]),
    "shards by name": base(codecs=["sharding_indexed"]),
    "shards in part": base(
        chunk_grid=grid(512, 256, 128),
        codecs=[sharding(chunk_shape=[32, 32, 32], codecs=["gzip"], index_location="start")],
    ),
    "a checksum for the index": base(
        chunk_grid=grid(64, 64, 64),
        codecs=[sharding(chunk_shape=[32, 32, 32], index_codecs=["bytes", "crc32c"])],
    ),
    "an inner order": with_schema(base(fill_value=7), chunk_layout={"inner_order": [2, 0, 1]}),
    "an inner order of shards": with_schema(
        base(), chunk_layout={"inner_order": [2, 1, 0], "read_chunk": {"elements": 1000}}
    ),
    "units, labels and a fill value": with_schema(
        base(), fill_value=3, dimension_units=["4nm", None, [2, "nm"]], domain={"labels": ["x", "y", ""]}
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
        base(codecs=["gzip"]),
        codec={"driver": "zarr3", "codecs": [{"name": "gzip", "configuration": {"level": 2}}]},
    ),
    "the driver of another format": with_schema(base(), codec={"driver": "n5"}),
    "a domain that starts elsewhere": {
        "schema": {"dtype": "uint16", "domain": {"inclusive_min": [1, 0, 0], "exclusive_max": SHAPE}}
    },
    "a domain by its last elements": {
        "schema": {"dtype": "uint16", "domain": {"inclusive_min": [0, 0], "inclusive_max": [9, 19]}}
    },
    "a rank and no domain": {"schema": {"dtype": "uint16", "rank": 3}},
    "ranks that differ": {"schema": {"dtype": "uint16", "rank": 2, "domain": {"shape": SHAPE}}},
    "data types that differ": with_schema(base(), dtype="uint8"),
    "shapes that differ": with_schema(base(), domain={"shape": [1, 2, 3]}),
    "chunks that differ": with_schema(
        base(chunk_grid=grid(10, 10, 10)), chunk_layout={"write_chunk": {"shape": [20, 20, 20]}}
    ),
    "a wish that gives way": with_schema(
        base(chunk_grid=grid(10, 10, 10)), chunk_layout={"chunk": {"shape_soft_constraint": [20, 20, 20]}}
    ),
    "a wish that is heard": with_schema(
        base(), chunk_layout={"read_chunk": {"elements_soft_constraint": 1000}}
    ),
    "a chunk for both": with_schema(base(), chunk_layout={"chunk": {"shape": [20, 20, 20]}}),
    "elements and ratios": with_schema(
        base(), chunk_layout={"chunk": {"elements": 1000, "aspect_ratio": [1, 1, 2]}}
    ),
    "a grid that starts elsewhere": with_schema(base(), chunk_layout={"grid_origin": [1, 0, 0]}),
    "attributes": base(
        attributes={"a": 1, "dimension_units": ["1 nm", "", "um"]}, dimension_names=["a", None, "c"]
    ),
    "v2 keys": base(chunk_key_encoding={"name": "v2"}),
    "a scalar": base("float32", [], fill_value="NaN"),
    "an empty array": base("float32", [0, 10]),
    "32 dimensions": base("uint8", [1] * 32),
    "33 dimensions": base("uint8", [1] * 33),
    "a member that does not exist": base(chunk_shape=[1, 2, 3]),
    "two codecs that make bytes": base(codecs=["bytes", "sharding_indexed"]),
    "codecs in the wrong order": base(codecs=["gzip", "bytes"]),
    "an unknown codec": base(codecs=["no such codec"]),
    "an unknown data type": base("uint17"),
    "rectilinear chunks": base(chunk_grid={"name": "rectilinear"}),
}


@pytest.mark.parametrize("name", ALIKE)
def test_the_metadata_are_those_of_tensorstore(name: str) -> None:
    ours, theirs = of_ours(ALIKE[name]), of_tensorstore(ALIKE[name])
    if isinstance(ours, str) or isinstance(theirs, str):
        assert isinstance(ours, str), f"TensorStore says {theirs}"
        assert isinstance(theirs, str), f"we say {ours}"
    else:
        assert ours == theirs


@pytest.mark.parametrize(
    "dtype",
    [
        *("bool", "int4", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    ],
)
def test_every_data_type_of_the_document(dtype: str) -> None:
    """ "Data type", zarr3 driver: the list of names."""
    assert of_ours(base(dtype, [10, 10])) == of_tensorstore(base(dtype, [10, 10]))


def test_what_tensorstore_refuses_and_we_can() -> None:
    """Chunks that are chosen fit the inner chunks that are given, and strings have a form in v3."""
    assert of_ours(base(codecs=[sharding(chunk_shape=[32, 32, 32])]))["chunk_grid"] == grid(96, 96, 96)
    assert of_ours(base("string", [10]))["codecs"] == [{"name": "vlen-utf8"}]


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
middle = st.sampled_from([[], ["bytes"], ["sharding_indexed"], [sharding(codecs=["gzip"])]])
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


@given(codecs_in_part, middle, layouts, st.sampled_from(["uint8", "uint16", "float32"]))
@settings(deadline=None, max_examples=150)
def test_any_layout_with_any_codecs(after: list[Any], made: list[Any], layout: Any, dtype: str) -> None:
    codecs: dict[str, Any] = {} if not (after or made) else {"codecs": [*made, *after]}
    if made and made != ["bytes"]:
        codecs["codecs"] = made  # bytes after shards are no business of TensorStore's
    spec = with_schema(base(dtype, [100, 200, 300], **codecs), chunk_layout=layout)
    ours, theirs = of_ours(spec), of_tensorstore(spec)
    if isinstance(theirs, str) and not isinstance(ours, str):
        # What fits is found where TensorStore looks at the outer chunks alone.
        assert "divide" in theirs or "multiple" in theirs
    else:
        assert isinstance(ours, str) == isinstance(theirs, str), (ours, theirs)
        if not isinstance(ours, str):
            assert ours == theirs


def test_an_array_of_ours_is_opened_by_tensorstore_and_the_other_way_round(tmp_path: Path) -> None:
    spec = {
        "driver": "zarr3",
        "kvstore": {"driver": "file", "path": f"{tmp_path}/ours/"},
        **with_schema(
            base("uint16", [30, 40, 50], codecs=["sharding_indexed"]),
            chunk_layout={"read_chunk": {"shape": [5, 5, 5]}, "write_chunk": {"shape": [20, 20, 20]}},
        ),
    }
    data = np.random.default_rng(0).integers(0, 999, (30, 40, 50)).astype("u2")
    made = specs.open(spec, create=True)
    made[...] = data
    theirs = tensorstore.open(spec, open=True).result()
    assert (theirs.read().result() == data).all()
    theirs[:7] = 3
    assert (made[...] == np.concatenate([np.full((7, 40, 50), 3), data[7:]])).all()
    # Its own JSON of the array, transform and all, opens it here.
    opened = specs.open(theirs.spec().to_json())
    assert (opened[...] == made[...]).all()


@pytest.mark.parametrize("rank", [0, 1, 31, 32])
def test_any_rank(rank: int) -> None:
    shape = [2 if axis < 5 else 1 for axis in range(rank)]
    spec = {"driver": "zarr3", "kvstore": {"driver": "memory", "path": f"r{rank}"}, **base("int16", shape)}
    array = specs.open(spec, create=True)
    data = np.arange(int(np.prod(shape)), dtype="i2").reshape(shape)
    array[...] = data
    assert (np.asarray(array[...]) == data).all()
    assert bytes(array.read_bytes(0, array.nbytes)) == data.tobytes()


V2 = {
    "plain": {"shape": [10, 20], "dtype": "<u2", "chunks": [5, 7], "compressor": None},
    "as it comes": {"shape": [10, 20], "dtype": "<u2"},
    "zlib": {"shape": [10, 20], "dtype": ">f4", "chunks": [5, 7], "compressor": {"id": "zlib", "level": 2}},
    "F order": {"shape": [10, 20], "dtype": "|u1", "order": "F", "fill_value": 3, "compressor": None},
    "separator": {"shape": [10, 20], "dtype": "|b1", "dimension_separator": "/", "compressor": None},
}


@pytest.mark.parametrize("name", V2)
def test_v2(name: str, tmp_path: Path) -> None:
    def spec(where: str) -> dict[str, Any]:
        return {
            "driver": "zarr",
            "kvstore": {"driver": "file", "path": f"{tmp_path}/{where}/"},
            "metadata": V2[name],
        }

    theirs = tensorstore.open(spec("theirs"), create=True).result()
    ours = specs.open(spec("ours"), create=True)
    for document in (ours.metadata, json.loads((tmp_path / "theirs" / ".zarray").read_text())):
        document.setdefault("filters", None)
    first, second = ours.metadata, json.loads((tmp_path / "theirs" / ".zarray").read_text())
    for key in ("shape", "chunks", "dtype", "order", "zarr_format", "filters"):
        assert first[key] == second[key]
    assert first.get("dimension_separator", ".") == second.get("dimension_separator", ".")
    ours[...] = np.arange(200).reshape(10, 20) % 2
    again = tensorstore.open({**spec("ours"), "metadata": V2[name]}).result()
    assert (again.read().result() == ours[...]).all()
    assert specs.open(spec("theirs")).shape == tuple(theirs.shape)
