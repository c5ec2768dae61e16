"""Open and read arrays and groups of every format whose documents were changed in one to three places.

Run as ``python -m tests.faults.mutants SEED COUNT``. The memory of the process is limited. Every case must succeed or
raise ZarrError in a short time. The output is one JSON object with the number of stores that were read, and the
problems.
"""

from __future__ import annotations

import copy
import json
import logging
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import zarrfs
from tests.faults import child
from tests.faults.hostile import StoreDict

MEMORY_LIMIT_NBYTES = 256 << 20
MAX_CPU_SECONDS = 2.0

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63 - 1,
    2**63,
    2**64,
    10**400,
    0.5,
    -0.0,
    float("nan"),
    float("inf"),
    1e308,
    "",
    "\0",
    "\ud800",
    "é" * 3,
    "a/b",
    "..",
    "x" * 300,
    [],
    [0],
    [[]],
    [2**63 - 1, 2**63 - 1],
    [None],
    ["a", "b"],
    [1] * 40,
    {},
    {"name": "bytes"},
    {"id": []},
    {"id": "zlib"},
    {"name": []},
    {"configuration": []},
    {"must_understand": False},
]

NAMES = [
    *(
        "gzip",
        "zstd",
        "blosc",
        "bytes",
        "crc32c",
        "transpose",
        "sharding_indexed",
        "vlen-utf8",
        "packbits",
        "zfp",
    ),
    *(
        "cast_value",
        "scale_offset",
        "reshape",
        "bitround",
        "conditional",
        "n5_default",
        "n5_lz4",
        "numcodecs.zlib",
    ),
    *(
        "numcodecs.delta",
        "numcodecs.json2",
        "numcodecs.categorize",
        "vlen-array",
        "zlib",
        "lz4",
        "shuffle",
        "delta",
    ),
    *(
        "regular",
        "rectilinear",
        "default",
        "v2",
        "string",
        "uint8",
        "float64",
        "int4",
        "struct",
        "r16",
        "<u2",
        "|O",
    ),
    *(
        "|V0",
        "|S0",
        "<M8[ns]",
        "fixed_length_utf32",
        "numpy.datetime64",
        "float8_e4m3fn",
        "complex64",
        "little",
    ),
]


def valid_stores() -> list[StoreDict]:
    """Return valid stores of every format, with chunks."""
    stores: list[StoreDict] = []
    data = np.arange(24, dtype="<u2").reshape(4, 6)

    def add(**options: Any) -> None:
        store: StoreDict = {}
        zarrfs.create_array(store, **({"data": data, "chunks": (2, 3)} | options))
        stores.append({key: bytes(value) for key, value in store.items()})

    little = {"name": "bytes", "configuration": {"endian": "little"}}
    add()
    add(shards=(4, 6))
    add(dtype="float64", fill_value=float("nan"), dimension_names=["y", "x"], attributes={"units": ["m"]})
    add(codecs=[{"name": "transpose", "configuration": {"order": [1, 0]}}, little, {"name": "crc32c"}])
    add(codecs=[{"name": "scale_offset", "configuration": {"offset": 1, "scale": 2}}, little], dtype="f8")
    add(codecs=[{"name": "reshape", "configuration": {"shape": [[0, 1]]}}, "packbits"])
    add(codecs=[{"name": "cast_value", "configuration": {"data_type": "uint8"}}, "bytes"])
    add(data=np.array(["a", "bc"], object), chunks=2, dtype=str)
    add(data=np.array([(1, 2.0)], [("a", "<u2"), ("b", "<f4")]), chunks=1)
    add(data=np.array([1, 2], "<M8[ns]"), chunks=2)
    for over in (
        {"compressors": {"id": "blosc"}, "filters": [{"id": "delta", "dtype": "<u2"}]},
        {"compressors": None, "order": "F"},
        {"compressors": {"id": "zlib"}, "filters": [{"id": "shuffle", "elementsize": 2}]},
        {"data": np.array(["a", "bc"], object), "chunks": 2, "dtype": str},
        {"data": np.array([(1, 2.0)], [("a", "<u2"), ("b", "<f4")]), "chunks": 1},
    ):
        add(zarr_format=2, **over)
    for compressor in ("gzip", "zstd", "blosc"):
        add(zarr_format="n5", compressors=compressor)
    add(zarr_format="draft2019", compressors="gzip")
    store: StoreDict = {}
    group = zarrfs.create_group(store, attributes={"a": 1})
    group.create_array("b", data=data, chunks=(2, 3))
    stores.append({key: bytes(value) for key, value in store.items()})
    return stores


def paths_of_values(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a document."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from paths_of_values(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from paths_of_values(inner, (*path, index))


def mutate(document: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    document = copy.deepcopy(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(list(paths_of_values(document)) or [("a",)])
        holder: Any = document
        for part in path[:-1]:
            holder = holder[part]
        key = path[-1]
        kind = rng.randrange(8)
        if kind == 0 and isinstance(holder, dict):
            holder.pop(key, None)
        elif kind == 1 and isinstance(holder, list):
            del holder[key]
        elif kind == 2:
            holder[key] = [holder.get(key) if isinstance(holder, dict) else holder[key]]
        elif kind == 3 and isinstance(holder, dict):
            holder[rng.choice(["x", "must_understand", "configuration", "name", "id", "dtype"])] = (
                copy.deepcopy(rng.choice(VALUES))
            )
        elif kind == 4:
            holder[key] = rng.choice(NAMES)
        elif kind == 5:
            other_path = rng.choice(list(paths_of_values(document)))
            other: Any = document
            for part in other_path:
                other = other[part]
            holder[key] = copy.deepcopy(other)
        else:
            holder[key] = copy.deepcopy(rng.choice(VALUES))
    return document


def read(store: StoreDict) -> None:
    node = zarrfs.open(store, cache_size=0)
    repr(node)
    dict(node.attrs)
    if isinstance(node, zarrfs.Array):
        node[(slice(0, 3),) * node.ndim]
        if node.size < 10**6:
            node[...]
        return
    for _, member in node.walk():
        read_member(member)


def read_member(member: Any) -> None:
    repr(member)
    if isinstance(member, zarrfs.Array):
        member[(slice(0, 3),) * member.ndim]


def main(seed: int, count: int) -> None:
    logging.getLogger("zarrfs").setLevel(logging.CRITICAL)
    rng = random.Random(seed)
    valid = valid_stores()
    child.initialize_lazy_state()
    for store in valid:
        read(dict(store))
    child.limit_memory(MEMORY_LIMIT_NBYTES)
    read_count = 0
    problems: list[str] = []
    for _ in range(count):
        store = dict(rng.choice(valid))
        keys = [key for key, value in store.items() if value[:1] == b"{"]
        key = rng.choice(keys)
        document = mutate(json.loads(store[key]), rng)
        store[key] = json.dumps(document).encode("utf-8", "surrogatepass")
        print(key, store[key], file=sys.stderr, flush=True)
        start = time.process_time()
        try:
            read(store)
            read_count += 1
        except zarrfs.ZarrError:
            pass
        except BaseException as error:
            problems.append(f"{key} {json.dumps(document)}: {error!r}")
        if time.process_time() - start > MAX_CPU_SECONDS:
            problems.append(f"{key} {json.dumps(document)}: {time.process_time() - start:.1f} s")
    json.dump({"read": read_count, "problems": problems}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
