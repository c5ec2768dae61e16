"""The names of members in stores that cannot list."""

from __future__ import annotations

from typing import Any

import pytest

import zarrfs
from zarrfs.engine.stores.base import Listing
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import StoreError
from zarrfs.ngff import member_names
from zarrfs.tools import consolidate_metadata


class UnlistedStore(WrapperStore):
    """A store that cannot list, like a web server, or whose listing fails."""

    def __init__(self, store: MemoryStore, listable: bool = False) -> None:
        super().__init__(store)
        self.listable = listable

    def list_dir(self, prefix: str = "") -> Listing:
        raise StoreError(f"{prefix!r} cannot be listed")


def group(attributes: dict[str, Any], *members: str, listable: bool = False) -> zarrfs.Group:
    store = MemoryStore()
    zarrfs.create_group(store, attributes=attributes)
    for member in members:
        zarrfs.create_group(store, member)
    return zarrfs.open_group(UnlistedStore(store, listable))


def ome(**parts: Any) -> dict[str, Any]:
    return {"ome": {"version": "0.5", **parts}}


IMAGE = {"axes": ["y", "x"], "datasets": [{"path": "0"}, {"path": "s/1"}]}


@pytest.mark.parametrize(
    ("attributes", "members", "expected"),
    [
        (ome(multiscales=[IMAGE]), (), ["0", "s"]),
        (ome(multiscales=[IMAGE]), ("labels",), ["0", "labels", "s"]),
        (ome(labels=["b", "a/c"]), (), ["a", "b"]),
        (ome(labels=["b"]), ("labels",), ["b"]),
        (ome(plate={"rows": [], "columns": [], "wells": [{"path": "A/1"}, {"path": "B/1"}]}), (), ["A", "B"]),
        (ome(well={"images": [{"path": "1"}, {"path": "0"}]}), (), ["0", "1"]),
        (ome(**{"bioformats2raw.layout": 3, "series": ["x", "y"]}), (), ["x", "y"]),
    ],
)
def test_member_names_are_read_from_ome_metadata(
    attributes: dict[str, Any], members: tuple[str, ...], expected: list[str]
) -> None:
    assert member_names(group(attributes, *members)) == expected


def test_the_images_of_a_scene_are_members() -> None:
    steps = [
        {"type": "identity", "input": {"path": f"tiles/{name}", "name": "p"}, "output": {"name": "w"}}
        for name in "ab"
    ]
    steps.append(
        {"type": "affine", "path": "m/x", "input": {"path": "c", "name": "p"}, "output": {"name": "w"}}
    )
    names = member_names(group(ome(scene={"coordinateTransformations": steps})))
    assert names == ["c", "m", "tiles"]


@pytest.mark.parametrize("attributes", [{}, {"a": 1}, ome(multiscales=[])])
def test_unknown_members_are_a_warning(attributes: dict[str, Any], caplog: pytest.LogCaptureFixture) -> None:
    assert member_names(group(attributes, "labels")) == []
    (record,) = caplog.records
    assert "the members of / are unknown" in record.getMessage()
    assert record.levelname == "WARNING"


def test_member_names_are_read_from_consolidated_metadata() -> None:
    store = MemoryStore()
    root = zarrfs.create_group(store)
    root.create_group("a")
    consolidate_metadata(store)
    assert member_names(zarrfs.open_group(UnlistedStore(store))) == ["a"]


def test_a_failed_listing_is_an_error() -> None:
    with pytest.raises(StoreError, match="cannot be listed"):
        member_names(group(ome(multiscales=[IMAGE]), listable=True))
