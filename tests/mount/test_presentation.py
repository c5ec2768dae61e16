"""Which files present an array: the geometry that views receive, names with several dots, and sizes on disk."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import zarrfs
from tests.threads import Clock
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import StoreError
from zarrfs.files import views as registry
from zarrfs.files.content.content import BytesSegment, VirtualFileContent
from zarrfs.files.content.freshness import REVALIDATION_SECONDS
from zarrfs.files.view import PresentedArray, View
from zarrfs.mount.tree.entries import Directory, VirtualFile
from zarrfs.mount.tree.tree import Tree
from zarrfs.testing import CountingStore
from zarrfs.testing.stores import ObservedStore


class ScaleView(View):
    """The scale of the dimensions as text."""

    suffix = ".scale"

    def unsupported_reason(self, presented: PresentedArray) -> str | None:
        return "it has no x" if presented.geometry.find("x") is None else None

    def content(self, presented: PresentedArray) -> VirtualFileContent:
        text = " ".join(f"{axis.scale:g}" for axis in presented.geometry.axes)
        return VirtualFileContent([BytesSegment(text.encode())])


@pytest.fixture
def _scale_view(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "BUILT_IN", (*registry.BUILT_IN, ScaleView))
    registry.all_views.cache_clear()
    registry._views_by_suffix.cache_clear()
    registry.all_kinds.cache_clear()
    yield
    registry.all_views.cache_clear()
    registry._views_by_suffix.cache_clear()
    registry.all_kinds.cache_clear()


def image_attributes(*scale: float, axis_type: str = "space", path: str = "0") -> dict[str, Any]:
    transformation = {"type": "scale", "scale": list(scale)}
    return {
        "multiscales": [
            {
                "version": "0.4",
                "axes": [{"name": name, "type": axis_type} for name in "yx"],
                "datasets": [{"path": path, "coordinateTransformations": [transformation]}],
            }
        ]
    }


def find_file(tree: Tree, path: str) -> VirtualFile:
    file = tree.lookup(path)
    assert isinstance(file, VirtualFile), path
    return file


def text_of(tree: Tree, path: str) -> str:
    content = find_file(tree, path).content
    return content.read(0, content.size).decode()


@pytest.mark.usefixtures("_scale_view")
def test_files_follow_the_metadata_of_the_groups_that_contain_the_array() -> None:
    store, clock = CountingStore(MemoryStore()), Clock()
    root = zarrfs.create_group(store, zarr_format=2)
    image = root.create_group("image", attributes=image_attributes(2, 3))
    image.create_array("0", data=np.zeros((4, 5), "u1"))
    tree = Tree(zarrfs.open(store), clock=clock)

    assert text_of(tree, "/image/0.scale") == "2 3"
    raw = find_file(tree, "/image/0.raw")
    store.reset()
    assert text_of(tree, "/image/0.scale") == "2 3"
    assert sum(store.calls.values()) == 0, "the geometry is cached"

    image.attrs.update(image_attributes(4, 5))
    clock.now += 10 * REVALIDATION_SECONDS
    assert text_of(tree, "/image/0.scale") == "4 5"
    assert find_file(tree, "/image/0.raw").content is raw.content, "it does not depend on the geometry"
    assert "0.scale" in json.loads(text_of(tree, "/image/0.json"))["views"]

    image.attrs.update(image_attributes(4, 5, axis_type="channel"))
    clock.now += 10 * REVALIDATION_SECONDS
    assert tree.lookup("/image/0.scale") is None
    assert "it has no x" in json.loads(text_of(tree, "/image/0.json"))["not_available"]["0.scale"]


@pytest.mark.usefixtures("_scale_view")
def test_the_geometry_needs_no_chunk() -> None:
    store = CountingStore(MemoryStore())
    image = zarrfs.create_group(store, attributes={"ome": {"version": "0.5", **image_attributes(2, 3)}})
    image.create_array("0", data=np.ones((4, 5), "u1"))
    store.reset()
    assert text_of(Tree(zarrfs.open(store)), "/0.scale") == "2 3"
    assert store.calls
    assert not any("/c/" in key for key in store.keys)


@pytest.mark.usefixtures("_scale_view")
def test_large_attributes_contain_the_geometry_too() -> None:
    store = MemoryStore()
    attributes = {**image_attributes(2, 3), "table": [[str(i)] * 20 for i in range(20_000)]}
    zarrfs.create_group(store, attributes=attributes).create_array("0", data=np.ones((4, 5), "u1"))
    tree = Tree(zarrfs.open(store))
    for _ in range(2):
        assert text_of(tree, "/0.scale") == "2 3"


@pytest.mark.usefixtures("_scale_view")
@pytest.mark.parametrize("error_number", [errno.EIO, errno.EACCES])
def test_a_group_that_cannot_be_read_is_not_treated_as_a_group_without_metadata(error_number: int) -> None:
    class FailingStore(ObservedStore):
        fails = False

        def _before(self, operation: str, key: str) -> None:
            if self.fails and key.startswith("a/") and key.count("/") == 1:
                raise StoreError("no answer", error_number)

    store, clock = FailingStore(MemoryStore()), Clock()
    group = zarrfs.create_group(store).create_group("a", attributes=image_attributes(2, 3, path="b/0"))
    group.create_group("b").create_array("0", data=np.zeros((4, 5), "u1"))
    store.fails = True
    tree = Tree(zarrfs.open(store), clock=clock)
    if error_number == errno.EACCES:
        assert text_of(tree, "/a/b/0.scale") == "1 1"
    else:
        for name in ("0.scale", "0.json"):
            with pytest.raises(StoreError, match="no answer"):
                tree.lookup(f"/a/b/{name}")
    store.fails = False
    clock.now += 10 * REVALIDATION_SECONDS
    assert text_of(tree, "/a/b/0.scale") == "2 3"
    assert "0.scale" in json.loads(text_of(tree, "/a/b/0.json"))["views"]


def test_the_array_with_the_longest_name_provides_a_file_with_several_dots() -> None:
    root = zarrfs.create_group(MemoryStore())
    root.create_array("a", data=np.zeros((2, 2), "u1"))
    root.create_array("a.npy", data=np.zeros((3, 3), "u1"))
    root.create_group("b.raw")
    root.create_array("b", data=np.zeros(3, "u1"))
    tree = Tree(root)
    assert find_file(tree, "/a.raw").content.size == 4
    assert find_file(tree, "/a.npy.raw").content.size == 9
    assert find_file(tree, "/a.npy").content.size == 128 + 4
    assert tree.lookup("/.raw") is None
    assert isinstance(tree.lookup("/b.raw"), Directory), "a member takes precedence over a file"


def test_the_stored_size_counts_once() -> None:
    root = zarrfs.create_group(MemoryStore())
    root.create_array("a", data=np.random.default_rng(0).random(10_000))
    root.create_array("words", data=np.array(["a", "b"], object), dtype="string")
    tree = Tree(root)
    assert find_file(tree, "/a.raw").stored_nbytes == root["a"].nbytes_stored() > 50_000
    assert find_file(tree, "/a.npy").stored_nbytes == 128
    assert find_file(tree, "/a.json").stored_nbytes == find_file(tree, "/a.json").content.size
    assert find_file(tree, "/words.json").stored_nbytes == root["words"].nbytes_stored()
