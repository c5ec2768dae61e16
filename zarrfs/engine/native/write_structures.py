"""The structures of ``writing.h`` for ctypes. Both files change together, with the version of ``structures.py``."""

from __future__ import annotations

from ctypes import Structure, c_char, c_char_p, c_int32, c_int64, c_void_p

from zarrfs.engine.native.structures import MAX_NDIM, MAX_STEPS, ReadStructure

__all__ = ["WRITE_STRUCTURES", "EncodersStructure", "StepOptionsStructure", "WriteStructure"]


class EncodersStructure(Structure):
    """Addresses of functions of codec libraries; NULL where they were not loaded."""

    _fields_ = [
        (name, c_void_p)
        for name in (
            "blosc_compress_ctx",
            "zstd_create_context",
            "zstd_free_context",
            "zstd_set_parameter",
            "zstd_compress",
            "zstd_bound",
            "zstd_is_error",
            "lz4_compress_fast",
        )
    ]


class StepOptionsStructure(Structure):
    """The parameters of one encoding step."""

    _fields_ = [
        ("level", c_int32),
        ("shuffle", c_int32),
        ("typesize", c_int32),
        ("checksum", c_int32),
        ("blocksize", c_int64),
        ("cname", c_char * 16),
    ]


class WriteStructure(Structure):
    """A write. It contains addresses only; the caller keeps the memory alive until the write has ended."""

    _fields_ = [
        ("read", ReadStructure),
        ("encoders", c_void_p),
        ("options", StepOptionsStructure * MAX_STEPS),
        ("stored_fill", c_char_p),
        ("temporary", c_char_p),
        ("shape", c_int64 * MAX_NDIM),
        ("max_stored", c_int64),
        ("parts", c_int64),
        ("next", c_int64),
        ("limit", c_int64),
        ("delete_filled", c_int32),
        ("durable", c_int32),
        ("failed", c_int32),
        ("pruned", c_int32),
        ("writers", c_void_p),
        ("writer_count", c_int64),
    ]


WRITE_STRUCTURES = (WriteStructure, EncodersStructure, StepOptionsStructure)
"""In the order of ``zarrfs_write_structure_sizes``, which is compared with their sizes when they are first used."""
