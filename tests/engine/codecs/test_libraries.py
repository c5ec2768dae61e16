"""Importing codec libraries from several threads at the same time."""

from __future__ import annotations

import ast
import importlib
import json
import lzma
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numcodecs.abc
import numcodecs.registry
import numpy as np
import pytest

import zarrfs
from zarrfs.engine.codecs.bytes_to_bytes.blosc import BloscCodec
from zarrfs.engine.codecs.registry import codec_from_json
from zarrfs.errors import ChunkDecodeError, UnsupportedError

FIRST_USE = """
import sys, threading
import zarrfs
from zarrfs.engine.codecs.registry import codec_from_json
from zarrfs.engine.formats.v2_codecs import chain_from_v2

COUNT = 24
NAMES = [
    "zstd", "blosc", "gzip", "n5_lz4", "numcodecs.zlib", "numcodecs.lz4", "numcodecs.bz2", "numcodecs.shuffle",
    "numcodecs.crc32", "numcodecs.delta", "vlen-array", "numcodecs.pcodec",
]
OPTIONS = {
    "blosc": {"cname": "lz4", "clevel": 1, "shuffle": "noshuffle"},
    "gzip": {"level": 1},
    "numcodecs.delta": {"dtype": "<u2"},
    "vlen-array": {"dtype": "<u2"},
}
first = int(sys.argv[1])
ready = threading.Barrier(COUNT)
errors = []


def use(name):
    ready.wait()
    try:
        codec = codec_from_json({"name": name, "configuration": OPTIONS.get(name, {})}, "here")
        if name in ("zstd", "blosc", "n5_lz4", "numcodecs.lz4"):
            assert codec.decode(codec.encode(bytes(1000)), 1000) == bytes(1000)
    except BaseException as error:
        errors.append(f"{name}: {error!r}")


assert not [name for name in sys.modules if name.startswith("numcodecs")]
threads = [threading.Thread(target=use, args=(NAMES[(first + i) % len(NAMES)],)) for i in range(COUNT)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(errors)
"""


@pytest.mark.parametrize("first", range(3))
def test_the_first_use_of_codecs_from_several_threads_succeeds(first: int) -> None:
    command = [sys.executable, "-c", FIRST_USE, str(first)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "[]"


LIBRARIES = ("numcodecs", "zstandard", "zfpy", "pcodec", "msgpack", "xxhash")


def test_codec_libraries_are_imported_only_by_import_library() -> None:
    imports = []
    for path in Path(zarrfs.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            imports += [f"{path.name}:{names}" for name in names if name.partition(".")[0] in LIBRARIES]
    assert not imports


def test_the_setting_for_threads_of_blosc_is_left_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    blosc = importlib.import_module("numcodecs.blosc")
    seen: list[Any] = []
    for setting in (None, True, False):
        monkeypatch.setattr(blosc, "use_threads", setting)
        decompress = blosc.decompress
        with monkeypatch.context() as patch:
            patch.setattr(
                blosc, "decompress", lambda *a, run=decompress: seen.append(blosc.use_threads) or run(*a)
            )
            codec = BloscCodec()
            assert codec.decode(codec.encode(bytes(1000)), 1000) == bytes(1000)
        assert blosc.use_threads is setting
    assert seen == [False, True, False]


def test_a_missing_package_of_a_codec_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = importlib.import_module("numcodecs.registry")
    for name, extra in (("msgpack2", "msgpack"), ("pcodec", "pcodec")):
        monkeypatch.delitem(registry.codec_registry, name, raising=False)
        monkeypatch.delitem(registry.entries, name, raising=False)
        with pytest.raises(UnsupportedError, match=rf"zarrfs\[{extra}\]|{extra}"):
            codec_from_json({"name": f"numcodecs.{name}"}, "here")


def test_codecs_of_imagecodecs_are_registered_when_they_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = tmp_path / "a"
    array = zarrfs.create_array(location, data=np.arange(10), chunks=5, zarr_format=2, compressors=None)
    document = json.loads((location / ".zarray").read_text())
    (location / ".zarray").write_text(json.dumps({**document, "compressor": {"id": "imagecodecs_test"}}))
    monkeypatch.setitem(sys.modules, "imagecodecs.numcodecs", None)
    with pytest.raises(UnsupportedError, match="pip install imagecodecs"):
        zarrfs.open_array(location)

    class TestCodec(numcodecs.abc.Codec):  # type: ignore[misc]
        codec_id = "imagecodecs_test"

        def encode(self, buf: Any) -> bytes:
            return bytes(buf)

        def decode(self, buf: Any, out: Any = None) -> bytes:
            return bytes(buf)

    def register_codecs(names: list[str], verbose: bool) -> None:
        registered = {"imagecodecs_test": TestCodec} if names == ["imagecodecs_test"] else {}
        for name, codec in registered.items():
            monkeypatch.setitem(numcodecs.registry.codec_registry, name, codec)

    monkeypatch.setitem(
        sys.modules, "imagecodecs.numcodecs", types.SimpleNamespace(register_codecs=register_codecs)
    )
    assert zarrfs.open_array(location)[:].tolist() == array[:].tolist()


def test_codecs_of_imagecodecs_encode_images_and_bytes_in_v3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is replaced by codecs that store the shape of an image, and bytes unchanged."""

    class Image(numcodecs.abc.Codec):  # type: ignore[misc]
        codec_id = "imagecodecs_png"

        def encode(self, buf: Any) -> bytes:
            return bytes(buf.shape) + bytes(buf)

        def decode(self, buf: Any, out: Any = None) -> Any:
            if tuple(buf[:2]) != out.shape:
                raise ValueError(f"invalid output shape {out.shape}")
            out[:] = np.frombuffer(buf[2:], out.dtype).reshape(out.shape)
            return out

    class Bytes(numcodecs.abc.Codec):  # type: ignore[misc]
        codec_id = "imagecodecs_lz4f"

        def encode(self, buf: Any) -> bytes:
            return bytes(buf)

        def decode(self, buf: Any, out: Any = None) -> bytes:
            return bytes(buf)

    for codec in (Image, Bytes):
        monkeypatch.setitem(numcodecs.registry.codec_registry, codec.codec_id, codec)
    data = np.arange(24, dtype="u2").reshape(1, 4, 6)
    codecs = [{"name": "imagecodecs_png"}, {"name": "imagecodecs_lz4f"}]
    array = zarrfs.create_array(tmp_path / "a", data=data, chunks=(1, 2, 3), codecs=codecs)
    assert (tmp_path / "a/c/0/0/1").read_bytes() == bytes([2, 3]) + data[0, :2, 3:].tobytes()
    assert np.array_equal(zarrfs.open_array(tmp_path / "a")[:], data)
    (tmp_path / "a/c/0/0/1").write_bytes(bytes([3, 2]) + data[0, :2, 3:].tobytes())
    with pytest.raises(ChunkDecodeError, match="invalid output shape"):
        array[:]
    with pytest.raises(UnsupportedError, match="unknown codec 'imagecodecs_delta'"):
        codec_from_json({"name": "imagecodecs_delta"}, "here")


@pytest.mark.parametrize("compressor", [{"id": "lzma", "preset": 6, "delta": 2}, {"id": "lzma", "delta": 1}])
def test_lzma_of_gdal_has_a_delta_filter(compressor: dict[str, Any], tmp_path: Path) -> None:
    location, data = tmp_path / "a", np.arange(1000, dtype="<u2")
    zarrfs.create_array(location, data=data, chunks=1000, zarr_format=2, compressors=None)
    document = json.loads((location / ".zarray").read_text())
    (location / ".zarray").write_text(json.dumps({**document, "compressor": compressor}))
    filters = [
        {"id": lzma.FILTER_DELTA, "dist": compressor["delta"]},
        {"id": lzma.FILTER_LZMA2, "preset": compressor.get("preset", lzma.PRESET_DEFAULT)},
    ]
    encoded = lzma.compress(data.tobytes(), filters=filters)
    (location / "0").write_bytes(encoded)
    array = zarrfs.open_array(location, mode="r+")
    assert np.array_equal(array[:], data)
    array[:] = data
    assert (location / "0").read_bytes() == encoded
    array.update_attributes({"a": 1})
    assert json.loads((location / ".zarray").read_text())["compressor"] == compressor
