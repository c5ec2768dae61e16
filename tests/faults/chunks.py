"""Chunks that are truncated, lie, or unpack to far more than they may. Reading each one is a ChunkDecodeError."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numcodecs

from tests.faults import hostile
from tests.faults.hostile import GIGABYTE, NBYTES, Case, codec, little, sharded, sharding, v2, v3

ABSENT = (2**64 - 1, 2**64 - 1)
JUNK = bytes(range(256))


def cases() -> Iterator[Case]:
    yield from _broken_by_codec()
    yield from _bombs()
    yield from _blosc()
    yield from _shards()
    yield from _variable_length()


def _v2_codec(identity: str, **options: Any) -> dict[str, Any]:
    return {"compressor": {"id": identity, **options}}


def _broken_by_codec() -> Iterator[Case]:
    """For each codec: nothing, junk, an honest chunk cut short, and one that is too long."""
    honest = bytes(range(NBYTES))
    for name in ("zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc"):
        encode = numcodecs.get_codec({"id": name}).encode
        whole, longer = bytes(encode(honest)), bytes(encode(honest + bytes(2)))
        over = _v2_codec(name)
        variants = {
            "nothing": b"",
            "junk": JUNK,
            "cut": whole[:-5],
            "one byte": whole[:1],
            "too long": longer,
        }
        variants["too short"] = bytes(encode(honest[:-2]))
        for variant, chunk in variants.items():
            yield Case(f"v2 {name} {variant}", partial(v2, **over, chunk=chunk), ("0.0",))
    blosc_options = codec("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=2, blocksize=0)
    tails: dict[str, tuple[dict[str, Any], Any]] = {
        "gzip": (codec("gzip", level=5), numcodecs.GZip(5).encode),
        "zstd": (codec("zstd", level=3, checksum=False), numcodecs.Zstd(3).encode),
        "blosc": (blosc_options, numcodecs.Blosc("lz4").encode),
        "crc32c": ({"name": "crc32c"}, lambda data: data + bytes(4)),
    }
    for name, (entry, encode) in tails.items():
        whole = bytes(encode(honest))
        chain = [little(), entry]
        variants = {
            "nothing": b"",
            "junk": JUNK,
            "cut": whole[:-5],
            "too long": bytes(encode(honest + bytes(2))),
        }
        for variant, chunk in variants.items():
            yield Case(
                f"v3 {name} {variant}",
                partial(v3, codecs=chain, chunk=chunk),
                ("c/0/0",),
            )
    for variant, chunk in (("nothing", b""), ("cut", honest[:-1]), ("too long", honest + b"\0")):
        yield Case(f"v3 uncompressed {variant}", partial(v3, chunk=chunk), ("c/0/0",))
        yield Case(f"v2 uncompressed {variant}", partial(v2, chunk=chunk), ("0.0",))
    for name in ("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"):
        over: dict[str, Any] = {"filters": [{"id": name}]}
        wrong = honest + b"\1\2\3\4"
        yield Case(f"v2 {name} of other data", partial(v2, **over, chunk=wrong))
        yield Case(f"v2 {name} nothing", partial(v2, **over, chunk=b""))


def _bombs() -> Iterator[Case]:
    """Small chunks that would unpack to a gigabyte and more."""
    gzip = [little(), codec("gzip", level=5)]
    zstd = [little(), codec("zstd", level=3, checksum=False)]
    yield Case("v3 gzip bomb", partial(v3, codecs=gzip, chunk=partial(hostile.zeros_gzip, GIGABYTE)))
    yield Case("v2 gzip bomb", partial(v2, **_v2_codec("gzip"), chunk=partial(hostile.zeros_gzip, GIGABYTE)))
    yield Case("v2 zlib bomb", partial(v2, **_v2_codec("zlib"), chunk=partial(hostile.zeros_zlib, GIGABYTE)))
    for declare in (True, False):
        name = f"bomb, size {'declared' if declare else 'not declared'}"
        for size in (GIGABYTE, 64 * GIGABYTE):
            yield Case(
                f"v3 zstd {name}, {size >> 30} GiB",
                partial(v3, codecs=zstd, chunk=partial(hostile.zeros_zstd, size, declare=declare)),
            )
        yield Case(
            f"v2 zstd {name}",
            partial(v2, **_v2_codec("zstd"), chunk=partial(hostile.zeros_zstd, GIGABYTE, declare=declare)),
        )
    for declared in (NBYTES + 1, 2**40, 2**63, 2**64 - 1):
        yield Case(
            f"v3 zstd that declares {declared}",
            partial(v3, codecs=zstd, chunk=partial(hostile.lying_zstd, declared)),
        )
    for declared in (0, 1, 2**31 - 1, 2**31, 2**32 - 1):
        yield Case(
            f"v2 lz4 that declares {declared}",
            partial(v2, **_v2_codec("lz4"), chunk=hostile.lz4(declared)),
        )
    yield Case("v2 lz4 bomb", partial(v2, **_v2_codec("lz4"), chunk=partial(hostile.zeros_lz4, GIGABYTE)))
    yield Case("v2 bz2 bomb", partial(v2, **_v2_codec("bz2"), chunk=bz2.compress(bytes(1 << 28))))
    yield Case(
        "v2 lzma bomb", partial(v2, **_v2_codec("lzma"), chunk=lzma.compress(bytes(1 << 28), preset=0))
    )
    yield Case(
        "v2 xz that wants a dictionary of gigabytes", partial(v2, **_v2_codec("lzma"), chunk=_greedy_xz())
    )
    honest = numcodecs.Blosc("zstd", 9, 0).encode(bytes(1 << 28))
    yield Case("v2 blosc bomb", partial(v2, **_v2_codec("blosc"), chunk=bytes(honest)))
    yield Case(
        "v3 chunk of terabytes with ten bytes",
        partial(v3, shape=[10**6, 10**6], **hostile.grid(10**6, 10**6), codecs=gzip, chunk=b"0123456789"),
    )
    yield Case(
        "v3 chunk of terabytes, gzip bomb",
        partial(
            v3,
            shape=[10**6, 10**6],
            **hostile.grid(10**6, 10**6),
            codecs=gzip,
            chunk=partial(hostile.zeros_gzip, GIGABYTE // 8),
        ),
    )
    most = 2**63 - 1
    for dtype, order in (("<u2", "C"), ("<u2", "F"), ("|u1", "F"), ("<M8[s]", "C")):
        shape = {"shape": [4, 6], "chunks": [2, most], "dtype": dtype, "order": order, "fill_value": None}
        yield Case(f"v2 longest chunks of {dtype} in order {order}", partial(v2, **shape, chunk=b"x"))
        yield Case(
            f"v2 longest chunks of {dtype} in order {order}, compressed",
            partial(v2, **shape, **_v2_codec("zlib"), chunk=zlib.compress(JUNK)),
        )
    long = {"shape": [4, most], **hostile.grid(4, most)}
    yield Case(
        "v3 longest chunks", partial(v3, **long, codecs=gzip, chunk=partial(hostile.zeros_gzip, 1 << 20))
    )
    yield Case(
        "v2 chunk of terabytes, lying blosc",
        partial(
            v2,
            shape=[10**6, 10**6],
            chunks=[10**6, 10**6],
            **_v2_codec("blosc"),
            chunk=hostile.blosc(nbytes=2**31 - 1),
        ),
    )


def _greedy_xz() -> bytes:
    """An honest stream whose block header asks for a dictionary of four gigabytes."""
    data = bytearray(lzma.compress(bytes(NBYTES)))
    header = slice(12, 12 + (data[12] + 1) * 4)
    block = data[header]
    block[4] = 40
    data[header] = block[:-4] + struct.pack("<I", zlib.crc32(block[:-4]))
    return bytes(data)


def _blosc() -> Iterator[Case]:
    """Headers that disagree with what follows; the library behind must not be led outside its buffers."""
    lies: dict[str, dict[str, int]] = {
        "nbytes far too large": {"nbytes": 2**31 - 1},
        "nbytes negative": {"nbytes": 2**32 - 1},
        "nbytes zero": {"nbytes": 0},
        "cbytes too large": {"cbytes": 2**31 - 1},
        "cbytes zero": {"cbytes": 0},
        "cbytes negative": {"cbytes": 2**32 - 16},
        "blocksize zero": {"blocksize": 0},
        "blocksize one": {"blocksize": 1},
        "blocksize negative": {"blocksize": 2**32 - 1},
        "blocksize huge": {"blocksize": 2**31 - 1},
        "typesize zero": {"typesize": 0},
        "version of tomorrow": {"version": 99},
        "other compressor": {"flags": 0xE0},
    }
    size = NBYTES * 40
    shape = {"shape": [size // 12, 6], "chunks": [size // 12, 6]}
    for name, fields in lies.items():
        yield Case(
            f"v2 blosc {name}",
            partial(v2, **_v2_codec("blosc"), **shape, chunk=hostile.blosc(**fields)),
        )
    honest = hostile.blosc()
    for offset in (0, 1, 15, 2**31 - 1, 2**32 - 1):
        chunk = honest[:16] + struct.pack("<I", offset) + honest[20:]
        yield Case(
            f"v2 blosc block at {offset}",
            partial(v2, **_v2_codec("blosc"), **shape, chunk=chunk),
        )


def _shards() -> Iterator[Case]:
    good = [(0, 12), (12, 12), (24, 12), (36, 12)]
    lies: dict[str, tuple[int, int]] = {
        "past the end": (10**6, 12),
        "across the end": (44 + 68 - 4, 12),
        "at the end of all numbers": (2**64 - 2, 12),
        "that wraps around": (2**64 - 12, 24),
        "of endless size": (0, 2**64 - 2),
        "of a terabyte": (0, 10**12),
        "of no bytes": (0, 0),
        "half absent": (2**64 - 1, 12),
        "absent with offset": (0, 2**64 - 1),
        "that is too short": (0, 11),
        "that is too long": (0, 13),
    }
    for name, entry in lies.items():
        yield Case(f"shard with a chunk {name}", partial(sharded, [entry, *good[1:]]), ("c/0/0",))
    yield Case("shard with a broken checksum", partial(_spoilt, sharded(good), -1))
    yield Case("shard with a spoilt index", partial(_spoilt, sharded(good), -30))
    for length in (0, 1, 67):
        yield Case(f"shard of {length} bytes", partial(_cut, sharded(good), length))
    inner = [little(), codec("gzip", level=1)]
    bomb = hostile.zeros_gzip(GIGABYTE // 4)
    index = struct.pack("<8Q", 0, len(bomb), *ABSENT, *ABSENT, *ABSENT)
    yield Case(
        "shard with a bomb",
        partial(v3, codecs=[sharding([2, 3], inner, [little()])], chunk=bomb + index),
    )


def _spoilt(store: dict[str, bytes], position: int) -> dict[str, bytes]:
    chunk = bytearray(store["c/0/0"])
    chunk[position] ^= 0xFF
    return {**store, "c/0/0": bytes(chunk)}


def _cut(store: dict[str, bytes], length: int) -> dict[str, bytes]:
    return {**store, "c/0/0": store["c/0/0"][:length]}


def json2_options() -> dict[str, Any]:
    return {"dtype": "|O", "filters": [{"id": "json2"}], "fill_value": None}


def _variable_length() -> Iterator[Case]:
    """Counts and lengths that promise more than there is."""
    honest = struct.pack("<I", 24) + b"".join(struct.pack("<I", 2) + b"ab" for _ in range(24))
    chunks = {
        "nothing": b"",
        "too few": struct.pack("<I", 23) + honest[4:],
        "too many": struct.pack("<I", 25) + honest[4:],
        "endless count": struct.pack("<I", 2**32 - 1) + honest[4:],
        "endless length": struct.pack("<II", 24, 2**32 - 1) + honest[8:],
        "cut": honest[:-1],
        "junk": JUNK,
    }
    for name, chunk in chunks.items():
        for text in ("vlen-utf8", "vlen-bytes"):
            options: dict[str, Any] = {"dtype": "|O", "filters": [{"id": text}], "fill_value": None}
            yield Case(f"v2 {text} {name}", partial(v2, **options, chunk=chunk))
        three = {"data_type": "string", "fill_value": "", "codecs": [codec("vlen-utf8")]}
        yield Case(f"v3 vlen-utf8 {name}", partial(v3, **three, chunk=chunk))
    ragged: dict[str, Any] = {
        "dtype": "|O",
        "filters": [{"id": "vlen-array", "dtype": "<u2"}],
        "fill_value": None,
    }
    lies = {
        "2^28 items": struct.pack("<III", 2**28, 0, 0),
        "an endless item": struct.pack("<II", 24, 2**32 - 1) + bytes(100),
        "half an element": struct.pack("<I", 24) + b"".join(struct.pack("<I", 3) + b"abc" for _ in range(24)),
    }
    for name, chunk in lies.items():
        yield Case(f"v2 vlen-array {name}", partial(v2, **ragged, chunk=chunk))
    endless = b'[0,"|O",[1000000000]]'
    yield Case(
        "v2 json2 that declares a billion", partial(v2, **json2_options(), chunk=endless), ("1000000000",)
    )
    wide = b'["a","<U100000000",[24]]'
    yield Case("v2 json2 that declares wide elements", partial(v2, **json2_options(), chunk=wide))
    nested = hostile.zeros_zlib(GIGABYTE // 4)
    chain = {"filters": [{"id": "zlib"}] * 3, "compressor": {"id": "zlib"}}
    for _ in range(3):
        nested = zlib.compress(nested, 9)
    yield Case("v2 zlib bomb in zlib in zlib in zlib", partial(v2, **chain, chunk=nested))
    members = gzip.compress(b"") * 200_000
    yield Case("v2 gzip of many empty members", partial(v2, **_v2_codec("gzip"), chunk=members))
    streams = bz2.compress(b"") * 200_000
    yield Case("v2 bz2 of many empty streams", partial(v2, **_v2_codec("bz2"), chunk=streams))
    bad_text = struct.pack("<I", 24) + b"".join(struct.pack("<I", 2) + b"\xff\xfe" for _ in range(24))
    options = {"dtype": "|O", "filters": [{"id": "vlen-utf8"}], "fill_value": None}
    yield Case("v2 vlen-utf8 that is no UTF-8", partial(v2, **options, chunk=bad_text))
    for name, chunk in (
        ("no JSON", b"{"),
        ("nested deep", b"[" * 100_000),
        ("of other shape", b'["a", "|O", [3]]'),
    ):
        json2 = {**options, "filters": [{"id": "json2"}]}
        yield Case(f"v2 json2 {name}", partial(v2, **json2, chunk=chunk))
    for name, chunk in (
        ("junk", b"\xc1" * 9),
        ("endless", b"\xdd\xff\xff\xff\xff"),
        ("nested", b"\x91" * 100_000),
    ):
        msgpack2 = {**options, "filters": [{"id": "msgpack2"}]}
        yield Case(f"v2 msgpack2 {name}", partial(v2, **msgpack2, chunk=chunk))
    yield Case(
        "v2 vlen-utf8 zlib bomb",
        partial(v2, **options, **_v2_codec("zlib"), chunk=partial(hostile.zeros_zlib, GIGABYTE)),
    )
