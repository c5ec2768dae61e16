"""The functions of the native library, and how it is loaded."""

from __future__ import annotations

import os
import sys
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import google_crc32c
import numcodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zarrfs
from tests.engine.native.executors import require_library
from tests.processes import TIMEOUT, output_of
from zarrfs.engine.native import library as loading
from zarrfs.engine.native.build import BuildError, compile_library
from zarrfs.engine.native.library import DISABLING_VARIABLE, NativeLibrary, describe, load_library

DECODERS = ["blosc", "zstd", "lz4", "gzip", "zlib"]


@pytest.fixture(scope="module")
def library() -> NativeLibrary:
    return require_library()


def encode(decoder: str, data: bytes) -> bytes:
    if decoder in ("gzip", "zlib"):
        encoder = zlib.compressobj(6, zlib.DEFLATED, 31 if decoder == "gzip" else 15)
        return encoder.compress(data) + encoder.flush()
    return bytes(numcodecs.get_codec({"id": decoder}).encode(data))


@given(data=st.binary(max_size=3000))
def test_crc32c_is_that_of_another_implementation(data: bytes) -> None:
    library = require_library()
    expected = google_crc32c.value(data)
    assert library.crc32c(data, len(data)) == expected
    assert library.crc32c_tables(data, len(data)) == expected


@pytest.mark.parametrize("decoder", DECODERS)
def test_the_libraries_of_this_environment_have_all_functions(library: NativeLibrary, decoder: str) -> None:
    assert library.unsupported_reason(decoder) == ""


@pytest.mark.parametrize("decoder", DECODERS)
def test_decoders_accept_only_the_declared_size(library: NativeLibrary, decoder: str) -> None:
    data = bytes(i * i % 251 for i in range(10_000))
    encoded = encode(decoder, data)
    assert library.decode(decoder, encoded, len(data)) == data
    for size in (1, len(data) - 1, len(data) + 1, 2 * len(data), 2**31):
        assert library.decode(decoder, encoded, min(size, 1 << 24)) is None
    for length in {0, 1, 4, 5, 15, 16, 17, len(encoded) // 2, len(encoded) - 1}:
        assert library.decode(decoder, encoded[:length], len(data)) is None


@pytest.mark.parametrize("decoder", ["gzip", "zlib"])
def test_checksums_of_streams_are_verified(library: NativeLibrary, decoder: str) -> None:
    data = bytes(range(256)) * 9
    encoded = bytearray(encode(decoder, data))
    encoded[-5 if decoder == "gzip" else -1] ^= 1
    assert library.decode(decoder, bytes(encoded), len(data)) is None


@pytest.mark.parametrize("decoder", DECODERS)
@settings(deadline=None, max_examples=80)
@given(
    data=st.binary(min_size=1, max_size=600),
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), max_size=6),
    cut=st.integers(0, 40),
)
def test_corrupt_data_never_leave_the_buffers(
    decoder: str, data: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    library = require_library()
    encoded = bytearray(encode(decoder, data * 7))
    for position, value in changes:
        encoded[position % len(encoded)] = value
    decoded = library.decode(decoder, bytes(encoded[: len(encoded) - cut]), 7 * len(data))
    assert decoded is None or len(decoded) == 7 * len(data)


def test_the_environment_disables_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DISABLING_VARIABLE, "0")
    found, reason = load_library()
    assert found is None
    assert DISABLING_VARIABLE in reason


def test_a_missing_library_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DISABLING_VARIABLE, raising=False)
    assert load_library(tmp_path / "missing.so") == (
        None,
        "not built: no C compiler was found when the package was installed",
    )


def test_a_file_that_is_not_the_library_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DISABLING_VARIABLE, raising=False)
    path = tmp_path / "libzarrfs_native.so"
    path.write_bytes(b"not a library")
    assert load_library(path)[0] is None
    # A library without our functions.
    assert load_library(Path(str(numcodecs.blosc.__file__)))[0] is None


def test_a_library_of_another_version_is_not_used(tmp_path: Path) -> None:
    require_library()
    path = tmp_path / "libzarrfs_native.so"
    compile_library(path, ["-DZARRFS_NATIVE_VERSION=999"])
    with pytest.raises(OSError, match="version 999"):
        NativeLibrary(path)


def test_without_a_compiler_the_build_fails_with_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(BuildError, match="no C compiler was found"):
        compile_library(tmp_path / "library.so")
    assert list(tmp_path.iterdir()) == []


def test_a_failing_compiler_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(BuildError, match="failed"):
        compile_library(tmp_path / "library.so")


def test_a_decoder_whose_functions_are_missing_is_not_supported(monkeypatch: pytest.MonkeyPatch) -> None:
    library = NativeLibrary(require_library().path)
    provider = loading._PROVIDERS["blosc"]
    for changed in (
        provider._replace(module="no_such_module"),
        provider._replace(functions={"blosc_decompress_ctx": "no_such_symbol"}),
        provider._replace(version=lambda shared: "3.0"),
        provider._replace(encoded=b"x" * 40),
    ):
        monkeypatch.setitem(loading._PROVIDERS, "blosc", changed)
        library._supported.pop("blosc", None)
        assert not library.supports("blosc")


@pytest.mark.parametrize("name", ["blosc", "lz4", "zstd"])
def test_the_known_buffer_of_a_decoder_is_what_numcodecs_decodes(name: str) -> None:
    codec = numcodecs.get_codec({"id": name})
    assert bytes(codec.decode(loading._PROVIDERS[name].encoded)) == loading.SAMPLE


def test_reading_with_the_library_does_not_import_numcodecs(tmp_path: Path) -> None:
    require_library()
    program = "import sys, zarrfs\n"
    blosc = {"cname": "zstd", "clevel": 5, "shuffle": "shuffle", "typesize": 8, "blocksize": 0}
    for name, configuration in ("zstd", {"level": 0, "checksum": False}), ("blosc", blosc):
        path = tmp_path / name
        codecs = [{"name": name, "configuration": configuration}]
        zarrfs.create_array(path, data=np.arange(4096), chunks=(1024,), compressors=codecs)
        program += f"assert zarrfs.open({str(path)!r})[:].tolist() == list(range(4096))\n"
    program += "assert 'numcodecs' not in sys.modules"
    output_of([sys.executable, "-c", program], cwd=None, env=os.environ)


def test_the_description_names_the_file_or_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    library = require_library()
    monkeypatch.setattr(loading, "_loaded", lambda: (library, ""))
    assert describe() == (True, str(library.path))
    monkeypatch.setattr(loading, "_loaded", lambda: (None, "a reason"))
    assert describe() == (False, "a reason")


def test_threads_that_load_the_library_at_once_use_the_same_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of one object with the functions of another one would call functions that are not loaded."""
    barrier = threading.Barrier(2, timeout=TIMEOUT)

    def load() -> tuple[Any, str]:
        barrier.wait()
        return object(), ""

    monkeypatch.setattr(loading, "_loaded_library", {})
    monkeypatch.setattr(loading, "load_library", load)
    with ThreadPoolExecutor(2) as pool:
        libraries = [future.result() for future in [pool.submit(loading.native_library) for _ in range(2)]]
    assert libraries[0] is not None
    assert libraries[0] is libraries[1]
