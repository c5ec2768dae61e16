"""Paths of the mount -> directories and virtual files. Knows nothing of FUSE, and is tested without it.

A group is a directory. An array ``img`` shows as ``img.npy``, ``img.raw``, ``img.json`` beside its siblings. Each
directory has ``.group.json``; a member whose metadata are broken shows as ``NAME.error.txt`` with the reason, so that
it hides nothing else. The name of a real directory wins over that of a view.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from zarrfs.engine.array import Array
from zarrfs.engine.group import Group
from zarrfs.engine.stores.base import Usage
from zarrfs.errors import KeyNameError, MetadataError, NodeNotFoundError
from zarrfs.logs import logger
from zarrfs.mount.byte_layout import ByteLayout, BytesPiece
from zarrfs.mount.views import View, all_views
from zarrfs.mount.views.json import group_json
from zarrfs.ngff.members import member_names

__all__ = ["Directory", "Entry", "Tree", "VirtualFile"]

GROUP_DOCUMENT = ".group.json"
ERROR_SUFFIX = ".error.txt"

FRESH_SECONDS = 1.0
"""How long what was learnt of a node is taken to hold before the store is asked again."""

USAGE_PATIENCE = 20.0
"""The bytes that an array occupies are counted anew after this many times what the counting took."""

MOST_NODES = 4096
LONGEST_NAME = 255


@dataclass(frozen=True)
class Directory:
    """A group, or the root. ``modified`` is seconds since the epoch, None where the store does not tell."""

    node: Group | Array
    modified: float | None = None


@dataclass(frozen=True)
class VirtualFile:
    """A file that is made as it is read.

    Attributes:
        layout: its bytes.
        stored: how many bytes of the store it stands for.
        modified: newest change of what it is made of, seconds since the epoch; None where the store does not tell.
        node: the array or group it shows; None for one that could not be opened.
        identity: equal for two looks at the same contents.
    """

    layout: ByteLayout
    stored: int
    modified: float | None
    node: Array | Group | None


Entry = Directory | VirtualFile


@dataclass
class _Known:
    """What was learnt of a node, and when."""

    node: Array | Group | MetadataError | None
    learnt: float
    usage: Usage | None = None
    usage_until: float = 0.0
    layouts: dict[str, ByteLayout] = field(default_factory=dict)


class Tree:
    """The files and directories that a node of a store shows.

    Safe to use from several threads. With ``immutable`` nothing that was learnt is asked again.
    """

    def __init__(
        self,
        root: Array | Group,
        root_name: str = "array",
        *,
        list_all_views: bool = False,
        immutable: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.root = root
        self._root_name = root.basename or root_name
        self._list_all = list_all_views
        self._immutable = immutable
        self._clock = clock
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = threading.Lock()
        self._too_long: set[str] = set()

    # -- nodes -------------------------------------------------------------------------------------------------

    def _look(self, path: str) -> _Known:
        """Return what is known of the node at a path of the store below the root, asked anew when it is not fresh."""
        now = self._clock()
        with self._lock:
            known = self._known.get(path)
            if known is not None:
                self._known.move_to_end(path)
                if self._immutable or now - known.learnt < FRESH_SECONDS:
                    return known
        node = self._open(path)
        if known is not None and _same(known.node, node):
            # The node that we had keeps what is cached for it.
            known.learnt = now
            return known
        known = _Known(node, now)
        with self._lock:
            self._known[path] = known
            while len(self._known) > MOST_NODES:
                self._known.popitem(last=False)
        return known

    def _open(self, path: str) -> Array | Group | MetadataError | None:
        if isinstance(self.root, Array):
            return self.root if not path else None
        try:
            return self.root[path] if path else self.root
        except (NodeNotFoundError, KeyNameError):
            return None
        except MetadataError as error:
            return error

    def _usage(self, known: _Known) -> Usage:
        """Return what the node occupies in the store; counted again after a while, the rarer the longer it takes."""
        now = self._clock()
        if known.usage is not None and (self._immutable or now < known.usage_until):
            return known.usage
        node = known.node
        if not isinstance(node, Array) or not node.store.listable or node.store.concurrency > 1:
            # Far-off stores are not walked for a listing of a directory.
            nbytes = node.nbytes if isinstance(node, Array) else 0
            known.usage, known.usage_until = Usage(0, nbytes, None), float("inf")
            return known.usage
        known.usage = node.usage()
        took = self._clock() - now
        known.usage_until = now + took + max(FRESH_SECONDS, USAGE_PATIENCE * took)
        return known.usage

    # -- looking up --------------------------------------------------------------------------------------------

    def find(self, path: str) -> Entry | None:
        """Return what is at a path of the mount (``/a/b.npy``), or None."""
        clean = path.strip("/")
        if not clean:
            return Directory(self.root)
        parent, _, name = clean.rpartition("/")
        if isinstance(self.root, Array):
            return self._view_file("", self._root_name, name) if not parent else None
        directory = self._look(parent).node
        if not isinstance(directory, Group):
            return None
        if name == GROUP_DOCUMENT:
            document = group_json(directory)
            return VirtualFile(ByteLayout([BytesPiece(document)]), len(document), None, directory)
        node = self._look(clean).node
        if isinstance(node, Group):
            return Directory(node)
        if name.endswith(ERROR_SUFFIX):
            broken = self._look(clean.removesuffix(ERROR_SUFFIX)).node
            if isinstance(broken, MetadataError):
                text = f"{broken}\n".encode("utf-8", "surrogateescape")
                return VirtualFile(ByteLayout([BytesPiece(text)]), len(text), None, None)
        return self._member_view(parent, name)

    def _member_view(self, parent: str, name: str) -> VirtualFile | None:
        for view in all_views():
            stem = name.removesuffix(view.suffix)
            if stem and stem != name:
                found = self._view_file(f"{parent}/{stem}" if parent else stem, stem, name)
                if found is not None:
                    return found
        return None

    def _view_file(self, path: str, stem: str, name: str) -> VirtualFile | None:
        """Return the file ``name`` if it is a view of the array at ``path``, whose name is ``stem``."""
        known = self._look(path)
        array = known.node
        if not isinstance(array, Array):
            return None
        for view in all_views():
            if name == stem + view.suffix and view.refusal(array) is None:
                layout = known.layouts.get(view.suffix)
                if layout is None:
                    layout = known.layouts[view.suffix] = view.layout(array, stem)
                usage = self._usage(known)
                stored = usage.nbytes if layout.size > usage.nbytes or view.listed else layout.size
                return VirtualFile(layout, stored, usage.modified, array)
        return None

    # -- listing -----------------------------------------------------------------------------------------------

    def names(self, directory: Directory) -> list[str]:
        """Return the names in a directory, sorted."""
        node = directory.node
        if isinstance(node, Array):
            return sorted(self._view_names(node, self._root_name))
        base = self._relative(node)
        names = {GROUP_DOCUMENT}
        views: set[str] = set()
        for name in member_names(node):
            member = self._look(f"{base}/{name}" if base else name).node
            if isinstance(member, Group):
                names.add(name)
            elif isinstance(member, Array):
                views.update(self._view_names(member, name))
            elif isinstance(member, MetadataError):
                names.add(name + ERROR_SUFFIX)
        return sorted(name for name in names | views if self._fits(name))

    def _relative(self, node: Group) -> str:
        return node.path[len(self.root.path) :].strip("/") if self.root.path else node.path

    def _view_names(self, array: Array, stem: str) -> list[str]:
        wanted: list[View] = [view for view in all_views() if view.listed or self._list_all]
        return [stem + view.suffix for view in wanted if view.refusal(array) is None]

    def _fits(self, name: str) -> bool:
        length = len(name.encode("utf-8", "surrogateescape"))
        if length <= LONGEST_NAME:
            return True
        if name not in self._too_long:
            self._too_long.add(name)
            logger.warning(
                "%r is not listed: its name has %d bytes, a file system takes %d", name, length, LONGEST_NAME
            )
        return False


def _same(old: object, new: object) -> bool:
    """Whether a node that was opened again says the same, so that the old one can stay."""
    if (isinstance(old, Array) and isinstance(new, Array)) or (
        isinstance(old, Group) and isinstance(new, Group)
    ):
        return old.spec.document == new.spec.document and old.spec.attributes == new.spec.attributes
    return (
        str(old) == str(new)
        if isinstance(old, MetadataError) and isinstance(new, MetadataError)
        else old is new
    )
