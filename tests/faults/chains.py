"""Read arrays with combinations of v2 codecs and data types, and with random, corrupt and valid chunks.

Run as ``python -m tests.faults.chains FIRST COUNT``. The memory of the process is limited. The output is one JSON
object with the number of arrays that were opened and read, and the problems. Each document is written to stderr
before it is opened, so that the last line names the array that crashed or blocked the process.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

import zarrfs
from tests.faults import child
from tests.faults.hostile import StoreDict

MEMORY_LIMIT_NBYTES = 192 << 20
MAX_CPU_SECONDS = 2.0
SEED = 4711

CODECS: dict[str, list[dict[str, Any]]] = {
    "zlib": [{}, {"level": "x"}],
    "gzip": [{}, {"level": 100}],
    "bz2": [{}],
    "lzma": [
        {},
        {"format": 3, "filters": [{"id": 33, "dict_size": 4096}]},
        {"format": 3, "filters": [{"id": 3, "dist": 4}]},
    ],
    "blosc": [{}, {"shuffle": 2, "cname": "zstd"}],
    "zstd": [{}, {"level": 100}],
    "lz4": [{}],
    "base64": [{}],
    "shuffle": [{}, {"elementsize": 0}, {"elementsize": -3}, {"elementsize": 2**31 - 1}],
    "crc32": [{}, {"location": "end"}],
    "crc32c": [{}, {"location": "start"}],
    "adler32": [{}],
    "fletcher32": [{}],
    "jenkins_lookup3": [{}, {"initval": 2**40}, {"prefix": "x"}],
    "delta": [{}, {"dtype": "<u8"}, {"dtype": "<f4", "astype": "<i1"}, {"dtype": "|O"}],
    "astype": [
        {"encode_dtype": "<f8"},
        {"encode_dtype": "|S8", "decode_dtype": "<u8"},
        {"encode_dtype": "|O"},
        {"encode_dtype": "|V2000000000"},
    ],
    "quantize": [{"digits": 2, "dtype": "<f8"}, {"digits": 10**9, "dtype": "<f4", "astype": "<f2"}],
    "fixedscaleoffset": [
        {"scale": 10, "offset": 1, "dtype": "<f8", "astype": "|u1"},
        {"scale": 0, "offset": 1e308, "dtype": "<u8"},
    ],
    "packbits": [{}],
    "bitround": [{"keepbits": 3}, {"keepbits": -1}],
    "categorize": [
        {"labels": ["a", "b"], "dtype": "|O"},
        {"labels": ["a"], "dtype": "<U100000000", "astype": "<u8"},
        {"labels": ["a"] * 300, "dtype": "<U4"},
    ],
    "json2": [{}, {"encoding": "punycode"}, {"encoding": "utf-16", "strict": False}],
    "msgpack2": [{}, {"raw": True}],
    "vlen-utf8": [{}],
    "vlen-bytes": [{}],
    "vlen-array": [{"dtype": "<u2"}, {"dtype": "|O"}, {"dtype": "|V0"}, {"dtype": "|b1"}],
    "pcodec": [{}],
    "zfpy": [{}, {"mode": 2, "rate": 8}, {"mode": 99}],
    "pickle": [{}],
    "\0": [{}],
    "nobody_knows": [{}],
}

DTYPES = ["|u1", "<u8", ">i4", "<f4", "<f8", "|b1", "<U4", "|O", "<M8[s]", "|V3"]

SHAPES = [[6], [2, 3], [3, 2, 1, 1], [4000]]


def documents(rng: random.Random) -> Iterator[dict[str, Any]]:
    """Yield each single codec and each pair of codecs with each data type, then random chains, endlessly."""
    names = list(CODECS)
    for length in (1, 2):
        for chain in itertools.product(names, repeat=length):
            for dtype in DTYPES:
                yield document(rng, chain, dtype)
    while True:
        chain = tuple(rng.choices(names, k=rng.choice((1, 2, 3, 3, 4, 6))))
        yield document(rng, chain, rng.choice(DTYPES))


def store_of(document: dict[str, Any], chunk: bytes | None) -> StoreDict:
    store = {".zarray": json.dumps({"zarr_format": 2, **document}).encode()}
    if chunk is not None:
        store[".".join("0" for _ in document["shape"])] = chunk
    return store


def document(rng: random.Random, chain: tuple[str, ...], dtype: str) -> dict[str, Any]:
    entries = [{"id": name, **rng.choice(CODECS[name])} for name in chain]
    last = rng.random() < 0.7
    shape = rng.choice(SHAPES)
    return {
        "shape": shape,
        "chunks": shape,
        "dtype": dtype,
        "fill_value": None,
        "order": rng.choice("CF"),
        "compressor": entries.pop() if last else None,
        "filters": entries or None,
    }


def values(document: dict[str, Any], rng: random.Random) -> np.ndarray[Any, Any]:
    dtype = np.dtype(document["dtype"])
    count = int(np.prod(document["shape"]))
    if dtype == np.dtype(object):
        codec_ids = str(document["filters"]) + str(document["compressor"])
        makers = {"vlen-array": lambda i: np.arange(i % 3), "vlen-bytes": lambda i: b"x" * (i % 5)}
        make: Any = next((m for name, m in makers.items() if name in codec_ids), lambda i: "ab"[i % 2])
        array = np.empty(count, object)
        for i in range(count):
            array[i] = make(i)
        return array.reshape(document["shape"])
    data = rng.randbytes(count * dtype.itemsize) if dtype.kind not in "Ufb" else None
    if dtype.kind == "U":
        return np.array(["a", "b"] * count, dtype)[:count].reshape(document["shape"])
    array = np.frombuffer(data, dtype) if data is not None else (np.arange(count) % 7).astype(dtype)
    return array.reshape(document["shape"])


def corrupt(rng: random.Random, chunk: bytes) -> bytes:
    data = bytearray(chunk)
    for _ in range(rng.choice((1, 1, 2, 8))):
        start = rng.randrange(len(data)) if data else 0
        kind = rng.randrange(6)
        if kind == 0:
            data[start : start + 1] = rng.randbytes(1)
        elif kind == 1:
            del data[start:]
        elif kind == 2:
            data[start:start] = rng.randbytes(rng.choice((1, 4, 40)))
        elif kind == 3:
            data[start : start + 4] = rng.choice((0, 1, 2**28, 2**31 - 1, 2**32 - 1)).to_bytes(4, "little")
        elif kind == 4:
            data[: min(len(data), 8)] = rng.randbytes(min(len(data), 8))
        else:
            data += data[start : start + 100]
    return bytes(data)


def chunks(rng: random.Random, valid: bytes | None) -> Iterator[bytes]:
    yield b""
    yield rng.randbytes(rng.choice((1, 4, 12, 40, 500)))
    yield (2**28).to_bytes(4, "little") + bytes(8)
    if valid is not None:
        yield valid
        for _ in range(4):
            yield corrupt(rng, valid)


def valid_chunk(document: dict[str, Any], rng: random.Random) -> bytes | None:
    """Return a chunk that the engine has written for an array; None if its values cannot be written."""
    store = store_of(document, None)
    try:
        array = zarrfs.open_array(store, mode="r+")
        array[...] = values(document, rng)
    except (zarrfs.ZarrError, TypeError, ValueError):
        return None
    return next((value for key, value in store.items() if key != ".zarray"), None)


def causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def main(first: int, count: int) -> None:
    rng = random.Random(SEED)
    child.initialize_lazy_state()
    child.limit_memory(MEMORY_LIMIT_NBYTES)
    problems: list[str] = []
    opened = read = 0
    for number, spec in enumerate(itertools.islice(documents(rng), first, first + count)):
        rng.seed(SEED + first + number)
        print(first + number, json.dumps(spec), file=sys.stderr, flush=True)
        valid = valid_chunk(spec, rng)
        for chunk in chunks(rng, valid):
            start = time.process_time()
            try:
                array = zarrfs.open_array(store_of(spec, chunk), cache_size=0)
            except zarrfs.ZarrError:
                break
            except BaseException as error:
                problems.append(f"{json.dumps(spec)}: opening it: {error!r}")
                break
            opened += 1
            try:
                result = array[...]
                read += 1
                if isinstance(result, np.ndarray) and list(result.shape) != spec["shape"]:
                    problems.append(f"{json.dumps(spec)}: shape {result.shape}")
            except zarrfs.ZarrError as error:
                if any(isinstance(cause, MemoryError) for cause in causes(error)):
                    problems.append(f"{json.dumps(spec)}: {chunk[:100]!r}: {error!r}")
            except BaseException as error:
                problems.append(f"{json.dumps(spec)}: {chunk[:100]!r}: {error!r}")
            if time.process_time() - start > MAX_CPU_SECONDS:
                problems.append(f"{json.dumps(spec)}: {chunk[:100]!r}: {time.process_time() - start:.1f} s")
    json.dump({"opened": opened, "read": read, "problems": problems}, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
