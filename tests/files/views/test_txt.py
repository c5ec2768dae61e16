"""Text files of arrays of strings."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.files.views.presented import make_array, present, refused, write_file
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError
from zarrfs.files.tables import txt_view as txt
from zarrfs.mount.tree.entries import VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore


def strings(values: Any, **options: Any) -> zarrfs.Array:
    data = np.array(values, dtype=object)
    return zarrfs.create_array(
        options.pop("store", MemoryStore()), "img", data=data, dtype="string", **options
    )


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_each_element_is_a_line(zarr_format: int, tmp_path: Path) -> None:
    array = strings(["a", "größe", "", " b "], chunks=3, zarr_format=zarr_format)
    assert write_file(array, ".txt", tmp_path).read_bytes() == "a\ngröße\n\n b \n".encode()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["U5", "S5", ">U5"])
def test_text_of_fixed_length(dtype: str, order: str, tmp_path: Path) -> None:
    data = np.array([["a", "bc", ""], ["d e", "f", "12345"]], dtype)
    path = write_file(make_array(data, order=order), ".txt", tmp_path)
    assert path.read_text() == "a\nbc\n\nd e\nf\n12345\n"


def test_line_breaks_are_escaped(tmp_path: Path) -> None:
    path = write_file(strings(["a\nb", "c\\n", "\r"]), ".txt", tmp_path)
    assert path.read_bytes() == rb"a\nb" b"\n" rb"c\\n" b"\n" rb"\r" b"\n"


def test_a_scalar_is_the_text_itself(tmp_path: Path) -> None:
    document = "line 1\nline 2\\"
    array = zarrfs.create_array(MemoryStore(), "img", shape=(), dtype="string")
    array[...] = document
    assert write_file(array, ".txt", tmp_path).read_text() == document


def test_bytes_that_are_not_utf_8_are_escaped() -> None:
    content = present(make_array(np.array([b"\xff\xfe", b"ok"])), ".txt")
    assert content.read(0, content.size) == b"\\\\xff\\\\xfe\nok\n"


def test_empty_and_missing_elements() -> None:
    assert present(strings([]), ".txt").size == 0
    array = zarrfs.create_array(MemoryStore(), "img", shape=4, chunks=2, dtype="string")
    assert present(array, ".txt").read(0, 100) == b"\n" * 4


def test_changes_are_noticed(tmp_path: Path) -> None:
    group = zarrfs.create_group(tmp_path / "s.zarr")
    array = group.create_array("words", shape=4, chunks=2, dtype="string")
    tree = Tree(zarrfs.open_group(tmp_path / "s.zarr"))

    def text() -> bytes:
        file = tree.lookup("/words.txt")
        assert isinstance(file, VirtualFile)
        return file.content.read(0, file.content.size)

    assert text() == b"\n" * 4
    array[...] = np.array(["a", "b", "c", "d"], object)
    assert text() == b"a\nb\nc\nd\n"
    array[3] = "a longer text"
    assert text() == b"a\nb\nc\na longer text\n"


def test_unchanged_elements_are_read_once(tmp_path: Path) -> None:
    zarrfs.create_array(tmp_path / "s.zarr", data=np.array(["a", "b"], object), dtype="string", chunks=1)
    store = CountingStore(zarrfs.open_array(tmp_path / "s.zarr").store)
    array = zarrfs.open_array(store)
    first = present(array, ".txt").read(0, 100)
    bytes_read = store.bytes_read
    assert present(array, ".txt").read(0, 100) == first == b"a\nb\n"
    assert store.bytes_read == bytes_read


def test_texts_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(txt, "MAX_CACHE_NBYTES", 250)
    view = txt.TxtView()
    group = zarrfs.create_group(tmp_path / "s.zarr")
    for number in range(5):
        array = group.create_array(f"a{number}", data=np.array(["x" * 99], object), dtype="string")
        assert view._text(array) == b"x" * 99 + b"\n"
    assert len(view._texts) == 2
    assert view._nbytes == 200


def test_long_texts_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(txt, "MAX_TEXT_NBYTES", 100)
    with pytest.raises(StoreError, match="exceeds the maximum size") as caught:
        present(strings(["x" * 60, "y" * 60]), ".txt")
    assert caught.value.errno == errno.EFBIG


def test_absent_texts() -> None:
    assert "are not text" in refused(make_array(np.zeros(3)), ".txt")
    many = zarrfs.create_array(MemoryStore(), "img", shape=1 << 19, chunks=1 << 19, dtype="string")
    assert "elements exceed" in refused(many, ".txt")
    chunks = zarrfs.create_array(MemoryStore(), "img", shape=5000, chunks=1, dtype="string")
    assert "chunks exceed" in refused(chunks, ".txt")
    assert "bytes exceed" in refused(make_array(np.zeros(2, "U3000000")), ".txt")


def test_the_limits_of_texts_are_the_largest_that_are_presented(monkeypatch: pytest.MonkeyPatch) -> None:
    array = make_array(np.zeros(4, "S3"))
    for name, value, unit in (
        ("MAX_ELEMENTS", 4, "elements"),
        ("MAX_TEXT_NBYTES", 12, "bytes"),
        ("MAX_CHUNKS", 2, "chunks"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(txt, name, value)
            present(array, ".txt")
            patch.setattr(txt, name, value - 1)
            assert f"{unit} exceed" in refused(array, ".txt")
    monkeypatch.setattr(txt, "MAX_TEXT_NBYTES", 16)
    assert present(strings(["a" * 7, "b" * 7]), ".txt").size == 16
    with pytest.raises(StoreError, match="exceeds the maximum size"):
        present(strings(["a" * 7, "b" * 8]), ".txt")
