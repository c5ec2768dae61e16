"""Chunks that are truncated, have false headers, or decompress to too many bytes.

Reading each of them raises ChunkDecodeError.
"""

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

from tests.documents import named, sharding
from tests.faults import hostile
from tests.faults.hostile import GIGABYTE, NBYTES, Case, little, sharded, v2, v3

MISSING_CHUNK = (2**64 - 1, 2**64 - 1)
JUNK = bytes(range(256))


def cases() -> Iterator[Case]:
    yield from _corrupt_chunks()
    yield from _decompression_bombs()
    yield from _inconsistent_blosc_headers()
    yield from _shards()
    yield from _invalid_lengths()


def _v2_codec(identity: str, **options: Any) -> dict[str, Any]:
    return {"compressor": {"id": identity, **options}}


def _corrupt_chunks() -> Iterator[Case]:
    """Yield for each codec an empty chunk, arbitrary bytes, a truncated chunk, and chunks that decode to a wrong
    size.
    """
    valid = bytes(range(NBYTES))
    for name in ("zlib", "gzip", "bz2", "lzma", "lz4", "zstd", "blosc"):
        encode = numcodecs.get_codec({"id": name}).encode
        whole, longer = bytes(encode(valid)), bytes(encode(valid + bytes(2)))
        over: dict[str, Any] = _v2_codec(name)
        variants = {
            "nothing": b"",
            "junk": JUNK,
            "cut": whole[:-5],
            "one byte": whole[:1],
            "too long": longer,
        }
        variants["too short"] = bytes(encode(valid[:-2]))
        for variant, chunk in variants.items():
            yield Case(f"v2 {name} {variant}", partial(v2, **over, chunk=chunk), ("0.0",))
    blosc_options = named("blosc", cname="lz4", clevel=5, shuffle="shuffle", typesize=2, blocksize=0)
    tails: dict[str, tuple[dict[str, Any], Any]] = {
        "gzip": (named("gzip", level=5), numcodecs.GZip(5).encode),
        "zstd": (named("zstd", level=3, checksum=False), numcodecs.Zstd(3).encode),
        "blosc": (blosc_options, numcodecs.Blosc("lz4").encode),
        "crc32c": ({"name": "crc32c"}, lambda data: data + bytes(4)),
    }
    for name, (entry, encode) in tails.items():
        whole = bytes(encode(valid))
        chain = [little(), entry]
        variants = {
            "nothing": b"",
            "junk": JUNK,
            "cut": whole[:-5],
            "too long": bytes(encode(valid + bytes(2))),
        }
        for variant, chunk in variants.items():
            yield Case(
                f"v3 {name} {variant}",
                partial(v3, codecs=chain, chunk=chunk),
                ("c/0/0",),
            )
    for variant, chunk in (("nothing", b""), ("cut", valid[:-1]), ("too long", valid + b"\0")):
        yield Case(f"v3 uncompressed {variant}", partial(v3, chunk=chunk), ("c/0/0",))
        yield Case(f"v2 uncompressed {variant}", partial(v2, chunk=chunk), ("0.0",))
    for name in ("crc32", "crc32c", "adler32", "fletcher32", "jenkins_lookup3"):
        over = {"filters": [{"id": name}]}
        wrong = valid + b"\1\2\3\4"
        yield Case(f"v2 {name} of other data", partial(v2, **over, chunk=wrong))
        yield Case(f"v2 {name} nothing", partial(v2, **over, chunk=b""))


def _decompression_bombs() -> Iterator[Case]:
    """Yield small chunks that decompress to a gigabyte or more."""
    gzip = [little(), named("gzip", level=5)]
    zstd = [little(), named("zstd", level=3, checksum=False)]
    yield Case("v3 gzip bomb", partial(v3, codecs=gzip, chunk=partial(hostile.gzip_bomb, GIGABYTE)))
    yield Case("v2 gzip bomb", partial(v2, **_v2_codec("gzip"), chunk=partial(hostile.gzip_bomb, GIGABYTE)))
    yield Case("v2 zlib bomb", partial(v2, **_v2_codec("zlib"), chunk=partial(hostile.zlib_bomb, GIGABYTE)))
    for declare in (True, False):
        name = f"bomb, size {'declared' if declare else 'not declared'}"
        for size in (GIGABYTE, 64 * GIGABYTE):
            yield Case(
                f"v3 zstd {name}, {size >> 30} GiB",
                partial(v3, codecs=zstd, chunk=partial(hostile.zstd_bomb, size, declare=declare)),
            )
        yield Case(
            f"v2 zstd {name}",
            partial(v2, **_v2_codec("zstd"), chunk=partial(hostile.zstd_bomb, GIGABYTE, declare=declare)),
        )
    for declared in (NBYTES + 1, 2**40, 2**63, 2**64 - 1):
        yield Case(
            f"v3 zstd with declared size {declared}",
            partial(v3, codecs=zstd, chunk=partial(hostile.zstd_declaring, declared)),
        )
    for declared in (0, 1, 2**31 - 1, 2**31, 2**32 - 1):
        yield Case(
            f"v2 lz4 with declared size {declared}",
            partial(v2, **_v2_codec("lz4"), chunk=hostile.lz4(declared)),
        )
    yield Case("v2 lz4 bomb", partial(v2, **_v2_codec("lz4"), chunk=partial(hostile.lz4_bomb, GIGABYTE)))
    yield Case("v2 bz2 bomb", partial(v2, **_v2_codec("bz2"), chunk=_bz2_bomb))
    yield Case("v2 lzma bomb", partial(v2, **_v2_codec("lzma"), chunk=_lzma_bomb))
    yield Case(
        "v2 xz with a dictionary of gigabytes",
        partial(v2, **_v2_codec("lzma"), chunk=_xz_with_huge_dictionary()),
    )
    yield Case("v2 blosc bomb", partial(v2, **_v2_codec("blosc"), chunk=_blosc_bomb))
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
            chunk=partial(hostile.gzip_bomb, GIGABYTE // 8),
        ),
    )
    max_length = 2**63 - 1
    for dtype, order in (("<u2", "C"), ("<u2", "F"), ("|u1", "F"), ("<M8[s]", "C")):
        shape = {
            "shape": [4, 6],
            "chunks": [2, max_length],
            "dtype": dtype,
            "order": order,
            "fill_value": None,
        }
        yield Case(f"v2 longest chunks of {dtype} in order {order}", partial(v2, **shape, chunk=b"x"))
        yield Case(
            f"v2 longest chunks of {dtype} in order {order}, compressed",
            partial(v2, **shape, **_v2_codec("zlib"), chunk=zlib.compress(JUNK)),
        )
    long = {"shape": [4, max_length], **hostile.grid(4, max_length)}
    yield Case(
        "v3 longest chunks", partial(v3, **long, codecs=gzip, chunk=partial(hostile.gzip_bomb, 1 << 20))
    )
    yield Case(
        "v2 chunk of terabytes, inconsistent blosc header",
        partial(
            v2,
            shape=[10**6, 10**6],
            chunks=[10**6, 10**6],
            **_v2_codec("blosc"),
            chunk=hostile.blosc(nbytes=2**31 - 1),
        ),
    )


# Compressing takes a second, so it is done when a case is used, and not when the tests are collected.


def _bz2_bomb() -> bytes:
    return bz2.compress(bytes(1 << 28))


def _lzma_bomb() -> bytes:
    return lzma.compress(bytes(1 << 28), preset=0)


def _blosc_bomb() -> bytes:
    return bytes(numcodecs.Blosc("zstd", 9, 0).encode(bytes(1 << 28)))


def _xz_with_huge_dictionary() -> bytes:
    """Return a valid stream whose block header declares a dictionary of four gigabytes."""
    data = bytearray(lzma.compress(bytes(NBYTES)))
    header = slice(12, 12 + (data[12] + 1) * 4)
    block = data[header]
    block[4] = 40
    data[header] = block[:-4] + struct.pack("<I", zlib.crc32(block[:-4]))
    return bytes(data)


def _inconsistent_blosc_headers() -> Iterator[Case]:
    """Yield Blosc buffers with inconsistent headers. The library must not access memory outside its buffers."""
    header_fields: dict[str, dict[str, int]] = {
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
        "unknown version": {"version": 99},
        "other compressor": {"flags": 0xE0},
    }
    size = NBYTES * 40
    shape = {"shape": [size // 12, 6], "chunks": [size // 12, 6]}
    for name, fields in header_fields.items():
        yield Case(
            f"v2 blosc {name}",
            partial(v2, **_v2_codec("blosc"), **shape, chunk=hostile.blosc(**fields)),
        )
    valid = hostile.blosc()
    for offset in (0, 1, 15, 2**31 - 1, 2**32 - 1):
        chunk = valid[:16] + struct.pack("<I", offset) + valid[20:]
        yield Case(
            f"v2 blosc block at {offset}",
            partial(v2, **_v2_codec("blosc"), **shape, chunk=chunk),
        )


def _shards() -> Iterator[Case]:
    good = [(0, 12), (12, 12), (24, 12), (36, 12)]
    entries: dict[str, tuple[int, int]] = {
        "past the end": (10**6, 12),
        "across the end": (44 + 68 - 4, 12),
        "at the largest offset": (2**64 - 2, 12),
        "with an integer overflow": (2**64 - 12, 24),
        "of exabytes": (0, 2**64 - 2),
        "of a terabyte": (0, 10**12),
        "of no bytes": (0, 0),
        "with a missing offset": (2**64 - 1, 12),
        "with a missing size": (0, 2**64 - 1),
        "that is too short": (0, 11),
        "that is too long": (0, 13),
    }
    for name, entry in entries.items():
        yield Case(f"shard with a chunk {name}", partial(sharded, [entry, *good[1:]]), ("c/0/0",))
    yield Case("shard with a wrong checksum", partial(_with_flipped_byte, sharded(good), -1))
    yield Case("shard with a corrupt index", partial(_with_flipped_byte, sharded(good), -30))
    for length in (0, 1, 67):
        yield Case(f"shard of {length} bytes", partial(_truncated, sharded(good), length))
    inner = [little(), named("gzip", level=1)]
    bomb = hostile.gzip_bomb(GIGABYTE // 4)
    index = struct.pack("<8Q", 0, len(bomb), *MISSING_CHUNK, *MISSING_CHUNK, *MISSING_CHUNK)
    yield Case(
        "shard with a decompression bomb",
        partial(v3, codecs=[sharding([2, 3], inner, index_codecs=[little()])], chunk=bomb + index),
    )


def _with_flipped_byte(store: dict[str, bytes], position: int) -> dict[str, bytes]:
    chunk = bytearray(store["c/0/0"])
    chunk[position] ^= 0xFF
    return {**store, "c/0/0": bytes(chunk)}


def _truncated(store: dict[str, bytes], length: int) -> dict[str, bytes]:
    return {**store, "c/0/0": store["c/0/0"][:length]}


def json2_options() -> dict[str, Any]:
    return {"dtype": "|O", "filters": [{"id": "json2"}], "fill_value": None}


def _invalid_lengths() -> Iterator[Case]:
    """Yield chunks of variable-length elements whose counts or lengths are wrong."""
    valid = struct.pack("<I", 24) + b"".join(struct.pack("<I", 2) + b"ab" for _ in range(24))
    chunks = {
        "nothing": b"",
        "too few": struct.pack("<I", 23) + valid[4:],
        "too many": struct.pack("<I", 25) + valid[4:],
        "huge count": struct.pack("<I", 2**32 - 1) + valid[4:],
        "huge length": struct.pack("<II", 24, 2**32 - 1) + valid[8:],
        "cut": valid[:-1],
        "junk": JUNK,
    }
    for name, chunk in chunks.items():
        for text in ("vlen-utf8", "vlen-bytes"):
            options: dict[str, Any] = {"dtype": "|O", "filters": [{"id": text}], "fill_value": None}
            yield Case(f"v2 {text} {name}", partial(v2, **options, chunk=chunk))
        three = {"data_type": "string", "fill_value": "", "codecs": [named("vlen-utf8")]}
        yield Case(f"v3 vlen-utf8 {name}", partial(v3, **three, chunk=chunk))
    ragged: dict[str, Any] = {
        "dtype": "|O",
        "filters": [{"id": "vlen-array", "dtype": "<u2"}],
        "fill_value": None,
    }
    ragged_chunks = {
        "2^28 items": struct.pack("<III", 2**28, 0, 0),
        "a huge item": struct.pack("<II", 24, 2**32 - 1) + bytes(100),
        "half an element": struct.pack("<I", 24) + b"".join(struct.pack("<I", 3) + b"abc" for _ in range(24)),
    }
    for name, chunk in ragged_chunks.items():
        yield Case(f"v2 vlen-array {name}", partial(v2, **ragged, chunk=chunk))
    huge = b'[0,"|O",[1000000000]]'
    yield Case(
        "v2 json2 with a billion elements", partial(v2, **json2_options(), chunk=huge), ("1000000000",)
    )
    wide = b'["a","<U100000000",[24]]'
    yield Case("v2 json2 with wide elements", partial(v2, **json2_options(), chunk=wide))
    nested = hostile.zlib_bomb(GIGABYTE // 4)
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
    yield Case("v2 vlen-utf8 that is not UTF-8", partial(v2, **options, chunk=bad_text))
    for name, chunk in (
        ("invalid JSON", b"{"),
        ("nested deeply", b"[" * 100_000),
        ("of another shape", b'["a", "|O", [3]]'),
    ):
        json2 = {**options, "filters": [{"id": "json2"}]}
        yield Case(f"v2 json2 {name}", partial(v2, **json2, chunk=chunk))
    for name, chunk in (
        ("junk", b"\xc1" * 9),
        ("huge count", b"\xdd\xff\xff\xff\xff"),
        ("nested", b"\x91" * 100_000),
    ):
        msgpack2 = {**options, "filters": [{"id": "msgpack2"}]}
        yield Case(f"v2 msgpack2 {name}", partial(v2, **msgpack2, chunk=chunk))
    yield Case(
        "v2 vlen-utf8 zlib bomb",
        partial(v2, **options, **_v2_codec("zlib"), chunk=partial(hostile.zlib_bomb, GIGABYTE)),
    )
