"""Open and read nodes of every format with a megabyte of text in place of each string and name of their documents.

Run as ``python -m tests.faults.long_texts``. The output is a JSON list of problems. The processor time of the process
is limited: a text function that is not linear would not end.
"""

from __future__ import annotations

import copy
import json
import logging
import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import zarrfs
from tests.documents import named
from tests.faults.hostile import StoreDict, little, v2, v3
from tests.faults.mutants import paths_of_values, read, valid_stores
from zarrfs import tensorstore

TEXT = "a" * 10**6

MAX_CPU_SECONDS = 120
"""Processor time of all cases, which need less than ten seconds."""

MAX_ARGUMENT = 4000
"""Characters of the arguments of an exception. Its message is shortened further, in the middle, where it loses what was
expected and what to do if a document was quoted at full length."""

V3_CODECS: list[list[Any]] = [
    [named("reshape", shape=[[0, 1]]), little()],
    [
        named("cast_value", data_type="uint8", rounding="towards-zero", out_of_range="clamp", scalar_map={}),
        little(),
    ],
    [little(), named("blosc", cname="lz4", clevel=1, shuffle="shuffle", typesize=2, blocksize=0)],
    [named("numcodecs.delta", dtype="<u2", astype="<u2"), little()],
    [named("numcodecs.quantize", dtype="<f4", astype="<f4", digits=1), little()],
    [named("numcodecs.astype", encode_dtype="<u2", decode_dtype="<u4"), little()],
    [named("numcodecs.fixedscaleoffset", dtype="<f4", astype="<f4", scale=1, offset=0), little()],
    [little(), named("numcodecs.lzma", format=1, check=-1, preset=None, filters=None)],
    [little(), named("numcodecs.shuffle", elementsize=2)],
    [named("zfp", mode="fixed_rate", rate=8.0)],
    [named("pcodec", level=8, mode_spec="auto", delta_spec="auto")],
    [named("conditional", conditions=[], codecs=[little()])],
]

V2_CODECS: list[dict[str, Any]] = [
    {"id": "blosc", "cname": "lz4", "clevel": 1, "shuffle": 1, "blocksize": 0},
    {"id": "lzma", "format": 1, "check": -1, "preset": None, "filters": None},
    {"id": "zfpy", "mode": 4, "tolerance": -1, "rate": -1, "precision": -1},
]

V2_OBJECT_CODECS: list[dict[str, Any]] = [
    {"id": "json2", "encoding": "utf-8", "indent": None, "sort_keys": True, "separators": [",", ":"]},
    {"id": "msgpack2", "raw": False, "use_bin_type": True},
    {"id": "categorize", "labels": ["a"], "dtype": "|O", "astype": "|u1"},
    {"id": "vlen-array", "dtype": "<u2"},
]

SPEC: dict[str, Any] = {
    "driver": "zarr3",
    "kvstore": {"driver": "memory", "path": "a/"},
    "context": {"cache_pool": {"total_bytes_limit": 100}, "data_copy_concurrency": {"limit": "shared"}},
    "recheck_cached_data": "open",
    "create": True,
    "transform": {"input_rank": 1, "input_labels": ["x"], "output": [{"input_dimension": 0}]},
    "metadata": {
        "shape": [4],
        "data_type": "uint16",
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [little(), "crc32c"],
        "dimension_names": ["x"],
    },
    "schema": {
        "dtype": "uint16",
        "dimension_units": ["4 nm"],
        "chunk_layout": {"grid_origin": [0], "read_chunk": {"shape": [4]}},
        "codec": {"driver": "zarr3", "codecs": ["crc32c"]},
    },
}


def stores() -> Iterator[StoreDict]:
    yield from valid_stores()
    for codecs in V3_CODECS:
        yield v3(codecs=codecs, data_type="float32" if codecs[0] != little() else "uint16", chunk=None)
    for compressor in V2_CODECS:
        yield v2(compressor=compressor, chunk=None)
    for entry in V2_OBJECT_CODECS:
        yield v2(dtype="|O", fill_value=None, filters=[entry], chunk=None)
    rectilinear = {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[4], [6]]}}
    yield v3(chunk_grid=rectilinear, chunk=None)
    yield v3(data_type="float32", fill_value="NaN", attributes={"x": {"y": "z"}}, chunk=None)
    yield v3(data_type="r16", fill_value="AAA=", storage_transformers=[{"name": "x"}], chunk=None)
    yield v2(dtype="<M8[ns]", fill_value="NaT", dimension_separator=".", chunk=None)
    yield {**v2(chunk=None), ".zattrs": json.dumps({"_ARRAY_DIMENSIONS": ["y", "x"]}).encode()}
    for zarr_format in (2, 3):
        store: dict[str, bytes] = {}
        zarrfs.create_group(store, zarr_format=zarr_format).create_array("b", shape=4, chunks=2)
        zarrfs.consolidate_metadata(store)
        yield {key: bytes(value) for key, value in store.items()}


def with_long_texts(document: Any) -> Iterator[tuple[tuple[Any, ...], str, Any]]:
    """Yield copies of a document with the long text in place of one string or null, in place of one name, and as one
    more member: the path of the change, its kind, and the copy.
    """
    for path in paths_of_values(document):
        value = _at(document, path)
        if isinstance(value, str | None):
            yield path, "value", _changed(document, path[:-1], partial(_set, key=path[-1]))
        if isinstance(path[-1], str):
            yield path, "name", _changed(document, path[:-1], partial(_rename, key=path[-1]))
    for path in [(), *paths_of_values(document)]:
        if isinstance(_at(document, path), dict):
            yield path, "member", _changed(document, path, partial(_set, key=TEXT))


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for part in path:
        document = document[part]
    return document


def _changed(document: Any, path: tuple[Any, ...], change: Callable[[Any], object]) -> Any:
    document = copy.deepcopy(document)
    change(_at(document, path))
    return document


def _set(owner: Any, key: Any) -> None:
    owner[key] = TEXT


def _rename(owner: dict[str, Any], key: str) -> None:
    owner[TEXT] = owner.pop(key)


def problem(action: Callable[[], object]) -> str | None:
    """Call a function. Returns what is wrong with the error that it raises, or None."""
    try:
        action()
    except zarrfs.ZarrError as error:
        length = sum(len(str(argument)) for argument in error.args)
        return f"a message of {length:,} characters: {error}" if length > MAX_ARGUMENT else None
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def cases() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the name and the action of each case. A change that another document had too is not repeated."""
    seen = set()
    for store in stores():
        for key, value in store.items():
            if value[:1] != b"{":
                continue
            document = json.loads(value)
            for path, kind, changed in with_long_texts(document):
                identity = (key, path, kind, json.dumps(_at(document, path[:1])))
                if identity not in seen:
                    seen.add(identity)
                    text = json.dumps(changed).encode()
                    yield f"{kind} at {path} of {key}", partial(read, {**store, key: text})
    for path, kind, spec in with_long_texts(SPEC):
        yield f"{kind} at {path} of a spec", partial(tensorstore.open, spec)


def main() -> None:
    logging.getLogger("zarrfs").setLevel(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS + 1))
    tensorstore.open(SPEC)
    problems = []
    for name, action in cases():
        print(name, file=sys.stderr, flush=True)
        found = problem(action)
        if found is not None:
            problems.append(f"{name}: {found}")
    json.dump(problems, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
