"""Servers that stop after a listing: an error is never an empty or a shorter result."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from tests.engine.stores.servers import WebServer, web_server
from tests.mount.mounted import mounted, needs_fuse
from zarrfs.cli.main import main
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.engine.stores.wrappers.wrapper import WrapperStore
from zarrfs.errors import ServerError
from zarrfs.mount.tree.entries import Directory
from zarrfs.mount.tree.tree import Tree
from zarrfs.ngff import member_names
from zarrfs.tools import convert

IMAGE = {
    "version": "0.5",
    "multiscales": [{"axes": ["y", "x"], "datasets": [{"path": "0"}, {"path": "1"}]}],
}


def write_image(path: Path) -> None:
    """Write a group whose members are named by its OME-NGFF metadata."""
    root = zarrfs.create_group(path, attributes={"ome": IMAGE})
    for level in range(2):
        root.create_array(str(level), data=np.arange(100, dtype="u2").reshape(10, 10))
    labels = root.create_group("labels", attributes={"ome": {"version": "0.5", "labels": ["cells"]}})
    labels.create_group("cells").create_array("0", data=np.ones((10, 10), "u1"))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[WebServer]:
    write_image(tmp_path / "site" / "image.zarr")
    with web_server(tmp_path / "site") as server:
        yield server


class DyingStore(WrapperStore):
    """A store of a server that fails after ``operations`` more operations."""

    def __init__(self, store: MemoryStore, operations: int) -> None:
        super().__init__(store)
        self.operations = operations

    def _count(self) -> None:
        self.operations -= 1
        if self.operations < 0:
            raise ServerError("connection refused")

    def get(self, key: str) -> Any:
        self._count()
        return super().get(key)

    def get_within(self, key: str, max_nbytes: int | None) -> Any:
        self._count()
        return super().get_within(key, max_nbytes)

    def get_ranges(self, key: str, ranges: Any) -> Any:
        self._count()
        return super().get_ranges(key, ranges)

    def size(self, key: str) -> int | None:
        self._count()
        return super().size(key)

    def list_dir(self, prefix: str = "") -> Any:
        self._count()
        return super().list_dir(prefix)


def dying_group(operations: int) -> zarrfs.Group:
    """Return an open group of 3 members, two of them groups, whose server fails after some operations."""
    store = MemoryStore()
    root = zarrfs.create_group(store)
    root.create_array("x", data=np.zeros(4))
    for name in ("a", "b"):
        root.create_group(name).create_array("y", data=np.zeros(4))
    dying = DyingStore(store, 1000)
    group = zarrfs.open_group(dying, mode="r")
    dying.operations = operations
    return group


COMPLETE = ["a", "a/y", "b", "b/y", "x"]

LISTINGS: dict[str, Callable[[zarrfs.Group], list[str]]] = {
    "members": lambda group: [path for path, _ in group.members(max_depth=None)],
    "walk": lambda group: [path for path, _ in group.walk()],
    "copy": lambda group: [path for path, _ in copied(group, skip_broken=False).members(max_depth=None)],
    "copy --skip-broken": lambda group: [
        path for path, _ in copied(group, skip_broken=True).members(max_depth=None)
    ],
}


def copied(group: zarrfs.Group, *, skip_broken: bool) -> zarrfs.Group:
    target = MemoryStore()
    convert(group, target, skip_broken=skip_broken)
    return zarrfs.open_group(target, mode="r")


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_is_complete_or_an_error(listing: str) -> None:
    operations = 0
    while True:
        try:
            listed = LISTINGS[listing](dying_group(operations))
        except ServerError:
            operations += 1
            continue
        assert listed == COMPLETE
        break
    assert operations > len(COMPLETE), "the server did not fail during the listing"


@pytest.mark.parametrize("read", [list, len, lambda group: list(group.arrays()), member_names], ids=range(4))
def test_members_of_a_server_that_has_stopped_are_an_error(
    read: Callable[[zarrfs.Group], Any], web: WebServer
) -> None:
    with zarrfs.open_group(f"{web.url}/image.zarr") as group:
        assert member_names(group) == ["0", "1", "labels"]
        web.status_for = lambda path: 503
        with pytest.raises(ServerError, match="503"):
            read(group)


@pytest.mark.parametrize("command", ["ls", "tree", "info"])
def test_commands_fail_if_the_server_fails_after_the_first_document(command: str, web: WebServer) -> None:
    arguments = [command, f"{web.url}/image.zarr"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    web.status_for = lambda path: None if path == "/image.zarr/zarr.json" else 503
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, ServerError)


def test_optional_members_may_be_refused(web: WebServer) -> None:
    """Servers that do not permit listing refuse requests for missing keys."""
    web.status_for = lambda path: 403 if "/labels/" in path or "/OME/" in path else None
    with zarrfs.open_group(f"{web.url}/image.zarr") as group:
        assert member_names(group) == ["0", "1"]


def test_a_directory_of_a_mount_is_complete_or_an_error() -> None:
    """A file with the reason in place of the files of an array would be copied without an error."""
    complete = None
    for operations in range(100, -1, -1):
        tree = Tree(dying_group(operations))
        directory = tree.lookup("/")
        assert isinstance(directory, Directory)
        try:
            names = [entry.name for entry in tree.list_entries(directory)]
        except OSError:
            continue
        complete = names if complete is None else complete
        assert names == complete
    assert complete is not None


@needs_fuse
def test_directories_of_a_mount_are_never_empty_after_the_server_has_stopped(tmp_path: Path) -> None:
    write_image(tmp_path / "site" / "image.zarr")
    with web_server(tmp_path / "site") as web:
        options = ["--retries", "0"]
        with mounted(f"{web.url}/image.zarr", tmp_path / "mnt", *options) as mnt:
            known = sorted(os.listdir(mnt))
            assert {"0.npy", "labels"} <= set(known)
            web.close()
            for _ in range(2):
                assert sorted(os.listdir(mnt)) == known
            with pytest.raises(OSError, match="Input/output error"):
                os.listdir(mnt / "labels")
