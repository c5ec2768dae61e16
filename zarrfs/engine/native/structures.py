"""The structures of ``native.h`` for ctypes. Both files change together."""

from __future__ import annotations

from ctypes import Structure, c_char_p, c_int32, c_int64, c_void_p

from zarrfs.engine.read_limits import (
    INNER_CHUNK_GAP,
    MAX_PIECE_NBYTES,
    MAX_REQUEST_NBYTES,
    MAX_SMALL_VALUE_NBYTES,
    MIN_NBYTES_PER_RANGE,
    MIN_SKIPPED_NBYTES,
    NATIVE_DECODING,
)

__all__ = [
    "DECODERS",
    "LIMITS",
    "MAX_NDIM",
    "MAX_STEPS",
    "STRUCTURES",
    "VERSION",
    "ChainStructure",
    "DimensionStructure",
    "FunctionsStructure",
    "LimitsStructure",
    "ReadStructure",
    "ShardStructure",
]

VERSION = 10
MAX_NDIM = 16
MAX_STEPS = 4

DECODERS = {"blosc": 1, "zstd": 2, "lz4": 3, "gzip": 4, "zlib": 5, "crc32c": 6}
"""The numbers of the decoding steps (``STEP_...``)."""

_PerDimension = c_int64 * MAX_NDIM


class FunctionsStructure(Structure):
    """Addresses of functions of codec libraries; NULL where they were not loaded."""

    _fields_ = [
        (name, c_void_p)
        for name in (
            "blosc_decompress_ctx",
            "blosc_lz4_decompress",
            "blosc_zstd_create_context",
            "blosc_zstd_free_context",
            "blosc_zstd_decompress",
            "zstd_create_context",
            "zstd_free_context",
            "zstd_decompress",
            "zstd_begin",
            "zstd_next_size",
            "zstd_continue",
            "lz4_decompress_safe",
            "isal_inflate_init",
            "isal_inflate_stateless",
            "isal_crc32",
            "isal_adler32",
        )
    ]


class ChainStructure(Structure):
    """How a chunk, or an inner chunk, is encoded."""

    _fields_ = [
        ("ndim", c_int32),
        ("step_count", c_int32),
        ("steps", c_int32 * MAX_STEPS),
        ("n5", c_int32),
        ("element", c_int32),
        ("itemsize", c_int64),
        ("nbytes", c_int64),
        ("max_encoded", c_int64),
        ("shape", _PerDimension),
        ("axes", _PerDimension),
        ("n5_axes", _PerDimension),
    ]


class ShardStructure(Structure):
    """The index of a shard. ``present`` is 0 for arrays that are not sharded."""

    _fields_ = [
        ("present", c_int32),
        ("index_at_start", c_int32),
        ("index_has_checksum", c_int32),
        ("unused", c_int32),
        ("index_nbytes", c_int64),
        ("grid", _PerDimension),
    ]


class LimitsStructure(Structure):
    """The thresholds of a read."""

    _fields_ = [
        (name, c_int64)
        for name in (
            "gap",
            "min_partial",
            "min_partial_compressed",
            "min_rest",
            "max_piece",
            "max_small_value",
            "min_skipped",
            "min_per_range",
            "inner_gap",
            "max_request",
        )
    ]


LIMITS = LimitsStructure(
    NATIVE_DECODING.gap,
    NATIVE_DECODING.min_nbytes,
    NATIVE_DECODING.min_compressed_nbytes,
    round(1 / (1 - NATIVE_DECODING.max_fraction)),
    MAX_PIECE_NBYTES,
    MAX_SMALL_VALUE_NBYTES,
    MIN_SKIPPED_NBYTES,
    MIN_NBYTES_PER_RANGE,
    INNER_CHUNK_GAP,
    MAX_REQUEST_NBYTES,
)
"""The thresholds of ``read_limits.py`` for the native library."""


class DimensionStructure(Structure):
    """The chunks that the selection intersects in one dimension."""

    _fields_ = [
        ("entry_count", c_int64),
        ("value_count", c_int64),
        ("step", c_int64),
        ("chunk", c_void_p),
        ("start", c_void_p),
        ("length", c_void_p),
        ("target", c_void_p),
        ("value", c_void_p),
        ("first", c_void_p),
    ]


class ReadStructure(Structure):
    """A read. It contains addresses only; the caller keeps the memory alive until the read has ended."""

    _fields_ = [
        ("functions", c_void_p),
        ("chain", c_void_p),
        ("shard", c_void_p),
        ("limits", c_void_p),
        ("head", c_char_p),
        ("directory", c_int32),
        ("separator", c_int32),
        ("names_reversed", c_int32),
        ("missing_falls_back", c_int32),
        ("fill", c_char_p),
        ("out", c_void_p),
        ("out_shape", _PerDimension),
        ("out_strides", _PerDimension),
        ("dimensions", DimensionStructure * MAX_NDIM),
        ("kept", c_void_p),
        ("stamps", c_void_p),
        ("unread", c_void_p),
        ("value_count", c_int64),
        ("parts", c_int64),
        ("next", c_int64),
        ("budget_ns", c_int64),
        ("threads", c_int32),
        ("unused", c_int32),
    ]


STRUCTURES = (
    ReadStructure,
    ChainStructure,
    ShardStructure,
    DimensionStructure,
    FunctionsStructure,
    LimitsStructure,
)
"""In the order of ``zarrfs_structure_sizes``, which is compared with their sizes when the library is loaded."""
