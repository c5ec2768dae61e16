"""Paths of the mount -> directories and virtual files. Knows nothing of FUSE, and is tested without it.

A group is a directory. An array ``img`` shows as ``img.npy``, ``img.raw``, ``img.json`` beside its siblings. Each
directory has ``.group.json``; a member that cannot be opened, for whatever reason, shows as ``NAME.error.txt`` with the
reason, so that it hides nothing else. The name of a real directory wins over that of a view.

What was learnt of nodes is kept in one LRU that is bounded in bytes.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace

from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.formats.api import read_node
from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.engine.model import ArraySpec, GroupSpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group, make_node
from zarrfs.engine.stores.base import Usage
from zarrfs.errors import KeyNameError, MetadataError, StoreError, ZarrError, describe_error
from zarrfs.logs import logger
from zarrfs.mount.content import BytesSegment, VirtualFileContent
from zarrfs.mount.held import held_nbytes
from zarrfs.mount.views.json import group_json
from zarrfs.mount.views.registry import View, all_views, make_layout, refusal
from zarrfs.ngff.members import member_names

__all__ = ["MAX_KEPT_ATTRIBUTES", "MAX_METADATA", "Directory", "Entry", "Tree", "VirtualFile"]

GROUP_DOCUMENT = ".group.json"
ERROR_SUFFIX = ".error.txt"

FRESH_SECONDS = 1.0
"""How long what was learnt of a node is taken to hold before the store is asked again."""

USAGE_REFRESH_FACTOR = 20.0
"""The bytes that an array occupies are counted anew after this many times what the counting took."""

MAX_METADATA = 128 << 20
"""Bytes of memory for what is kept of nodes: metadata, and the virtual files that are made of them."""

MAX_KEPT_ATTRIBUTES = 2 << 20
"""A node whose documents take more bytes of memory than this is kept without its user attributes. They are read again
when a file is made of them. As text they are longer than an extended attribute can be.
"""

NODE_NBYTES = 16 << 10
"""What a node with small documents takes in memory."""

ABSENCE_NBYTES = 512
"""What the knowledge takes that there is no node at a path."""

ABSENT = (None,) * len(METADATA_NAMES)

MAX_NAME = 255
MAX_REPORTED = 10_000


@dataclass(frozen=True)
class Directory:
    """A group, or the root.

    Attributes:
        node: the group; the root may be an array.
        modified: seconds since the epoch, None where the store does not tell.
        complete: whether ``node`` has its user attributes; large ones are not kept.
    """

    node: Group | Array
    modified: float | None = None
    complete: bool = True


@dataclass(frozen=True)
class VirtualFile:
    """A file that is made as it is read.

    Attributes:
        layout: its bytes.
        stored: how many bytes of the store it stands for.
        modified: newest change of what it is made of, seconds since the epoch; None where the store does not tell.
        node: the array or group it shows; None for one that could not be opened.
        complete: whether ``node`` has its user attributes; large ones are not kept.
    """

    layout: VirtualFileContent
    stored: int
    modified: float | None
    node: Array | Group | None
    complete: bool = True


Entry = Directory | VirtualFile


@dataclass(frozen=True)
class _Broken:
    """Why a node cannot be opened. ``errno`` is None where the reason is in its metadata.

    Not the exception: its traceback would keep the document alive.
    """

    reason: str
    errno: int | None = None

    def error(self) -> StoreError:
        return StoreError(self.reason, self.errno)


_Node = Array | Group | _Broken | None


@dataclass
class _Known:
    """What was learnt of a node, and when.

    ``stamps`` are those of its documents, from before they were read; None where the store has none. ``complete`` says
    whether ``node`` has its user attributes. ``layouts`` are files that were made of it, by suffix. ``nbytes`` is what
    all of this takes.
    """

    path: str
    node: _Node
    learnt: float
    nbytes: int
    stamps: Hashable | None = None
    complete: bool = True
    layouts: dict[str, VirtualFileContent] = field(default_factory=dict)
    usage: Usage | None = None
    usage_until: float = 0.0


class Tree:
    """The files and directories that a node of a store shows.

    Safe to use from several threads. With ``immutable`` nothing that was learnt is asked again.
    ``max_metadata`` is the memory for what is kept, in bytes.
    """

    def __init__(
        self,
        root: Array | Group,
        root_name: str = "array",
        *,
        list_all_views: bool = False,
        immutable: bool = False,
        max_metadata: int = MAX_METADATA,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root_name = root.basename or root_name
        self._list_all = list_all_views
        self._immutable = immutable
        self._clock = clock
        self._kept = ChunkCache(max_metadata)
        self._root = self._learnt("", root)
        self._too_long: set[str] = set()

    @property
    def root(self) -> Array | Group:
        """The node that the mount shows, without its user attributes where they are very large."""
        assert isinstance(self._root.node, Array | Group)
        return self._root.node

    @property
    def kept_nbytes(self) -> int:
        """Bytes of memory that are taken by what is kept."""
        return self._kept.nbytes

    # -- nodes -------------------------------------------------------------------------------------------------

    def _look(self, path: str) -> _Known:
        """Return what is known of the node at a path of the store below the root, asked anew when it is not fresh."""
        if not path:
            return self._root
        now = self._clock()
        known: _Known | None = self._kept.get(path, None)
        if known is not None and (self._immutable or now - known.learnt < FRESH_SECONDS):
            return known
        stamps = self._stamps(path)
        unchanged = known is not None and stamps is not None and known.stamps == stamps
        if known is not None and unchanged and not isinstance(known.node, _Broken):
            known.learnt = now
            return known
        found = self._learnt(path, self._open(path), stamps)
        if known is not None and _same(known, found):
            # The node that we had keeps what is cached for it.
            known.learnt, known.stamps = now, stamps
            return known
        self._kept.put(path, None, found, found.nbytes)
        return found

    def _stamps(self, path: str) -> Hashable | None:
        """Return what is the same as long as no metadata document at the path changes; None where that is not known.

        It is not asked of far-off stores, where it costs as much as reading the documents.
        """
        store = self.root.store
        if store.concurrency > 1:
            return None
        place = "/".join(part for part in (self.root.path, path) if part)
        try:
            stamps = tuple(store.stamp(f"{place}/{name}") for name in METADATA_NAMES)
        except Exception:  # opening the node shows what is wrong
            return None
        return None if stamps == ABSENT else stamps

    def _open(self, path: str) -> _Node:
        root = self.root
        if isinstance(root, Array):
            return None
        try:
            node: Array | Group | None = root.get(path)
        except KeyNameError:
            return None
        except MetadataError as error:
            return _Broken(describe_error(error))
        except OSError as error:
            denied = error.errno in (errno.EACCES, errno.EPERM)
            return _Broken(describe_error(error), errno.EACCES if denied else errno.EIO)
        except MemoryError:
            return _Broken("there is not enough memory to read its metadata", errno.ENOMEM)
        except Exception as error:
            # Whatever is wrong with one member, the others must stay in reach.
            if not isinstance(error, ZarrError):
                logger.exception("%s: opening it failed unexpectedly", path)
            return _Broken(describe_error(error), errno.EIO)
        return node

    def _learnt(self, path: str, node: _Node, stamps: Hashable | None = None) -> _Known:
        """Return what is to be kept of a node: without its documents where they are large."""
        now = self._clock()
        if node is None:
            return _Known(path, None, now, ABSENCE_NBYTES, stamps)
        if isinstance(node, _Broken):
            return _Known(path, node, now, ABSENCE_NBYTES + 4 * len(node.reason), stamps)
        spec: ArraySpec | GroupSpec = node.spec
        own = {key: value for key, value in spec.document.items() if key != "attributes"}
        own_nbytes = held_nbytes(own, self._kept.capacity)
        nbytes = own_nbytes + held_nbytes(spec.attributes, MAX_KEPT_ATTRIBUTES)
        if nbytes <= MAX_KEPT_ATTRIBUTES:
            return _Known(path, node, now, NODE_NBYTES + nbytes, stamps)
        lean: ArraySpec | GroupSpec
        if isinstance(spec, ArraySpec):
            # What was made of the document, such as a long list of chunk lengths, is still there.
            lean, nbytes = replace(spec, document={}, attributes={}), own_nbytes
        else:
            consolidated = spec.consolidated if not path else None
            lean, nbytes = replace(spec, document={}, attributes={}, consolidated=consolidated), 0
        kept = make_node(node.store, node.path, lean, node._cache, True, node.access)
        return _Known(path, kept, now, NODE_NBYTES + nbytes, stamps, complete=False)

    def _complete(self, known: _Known) -> Array | Group:
        """Return the node with its user attributes, read again where they were not kept."""
        node = known.node
        assert isinstance(node, Array | Group)
        if known.complete:
            return node
        spec = read_node(node.store, node.path, **node.access.reading)
        if spec is None:
            raise StoreError(f"{node.store.url}: {node.name} is gone", errno.ENOENT)
        return make_node(node.store, node.path, spec, node._cache, True, node.access)

    def _usage(self, known: _Known) -> Usage:
        """Return what the node occupies in the store; counted again after a while, the rarer the longer it takes."""
        now = self._clock()
        if known.usage is not None and (self._immutable or now < known.usage_until):
            return known.usage
        node = known.node
        nbytes = node.nbytes if isinstance(node, Array) else 0
        if not isinstance(node, Array) or not node.store.listable or node.store.concurrency > 1:
            # Far-off stores are not walked for a listing of a directory.
            known.usage, known.usage_until = Usage(0, nbytes, None), float("inf")
            return known.usage
        try:
            known.usage = node.usage()
        except Exception as error:
            # The array is there, and may be readable in part: only its size on disk is not known.
            if known.usage is None:
                logger.warning("%s: what it occupies cannot be counted: %s", node.name, describe_error(error))
            known.usage = Usage(0, nbytes, None)
        took = self._clock() - now
        known.usage_until = now + took + max(FRESH_SECONDS, USAGE_REFRESH_FACTOR * took)
        return known.usage

    # -- looking up --------------------------------------------------------------------------------------------

    def find(self, path: str) -> Entry | None:
        """Return what is at a path of the mount (``/a/b.npy``), or None.

        Raises StoreError, with the number of the error, where the store could not be asked.
        """
        clean = path.strip("/")
        if not clean:
            return Directory(self.root, complete=self._root.complete)
        parent, _, name = clean.rpartition("/")
        if isinstance(self.root, Array):
            return self._view_file("", self._root_name, name) if not parent else None
        above = self._look(parent)
        if isinstance(above.node, _Broken) and above.node.errno is not None:
            raise above.node.error()
        if not isinstance(above.node, Group):
            return None
        if name == GROUP_DOCUMENT:
            return self._group_document(above)
        known = self._look(clean)
        if isinstance(known.node, Group):
            return Directory(known.node, complete=known.complete)
        if name.endswith(ERROR_SUFFIX):
            broken = self._look(clean.removesuffix(ERROR_SUFFIX)).node
            if isinstance(broken, _Broken):
                text = f"{broken.reason}\n".encode()
                return VirtualFile(VirtualFileContent([BytesSegment(text)]), len(text), None, None)
        return self._member_view(parent, name, known.node)

    def _group_document(self, known: _Known) -> VirtualFile:
        assert isinstance(known.node, Group)
        layout = known.layouts.get(GROUP_DOCUMENT)
        if layout is None:
            group = self._complete(known)
            assert isinstance(group, Group)
            layout = VirtualFileContent([BytesSegment(group_json(group))])
            self._keep_layout(known, GROUP_DOCUMENT, layout)
        return VirtualFile(layout, layout.size, None, known.node, known.complete)

    def _member_view(self, parent: str, name: str, node: _Node) -> VirtualFile | None:
        """Return the file ``name`` if it is a view of a member. ``node`` is what was found at the name itself."""
        broken = [node]
        for view in all_views():
            stem = name.removesuffix(view.suffix)
            if stem and stem != name:
                path = f"{parent}/{stem}" if parent else stem
                found = self._view_file(path, stem, name)
                if found is not None:
                    return found
                broken.append(self._look(path).node)
        for candidate in broken:
            # It may be there, but the store does not tell.
            if isinstance(candidate, _Broken) and candidate.errno is not None:
                raise candidate.error()
        return None

    def _view_file(self, path: str, stem: str, name: str) -> VirtualFile | None:
        """Return the file ``name`` if it is a view of the array at ``path``, whose name is ``stem``."""
        known = self._look(path)
        array = known.node
        if not isinstance(array, Array):
            return None
        for view in all_views():
            if name == stem + view.suffix and refusal(view, array) is None:
                layout = self._layout(known, array, view, stem)
                usage = self._usage(known)
                stored = usage.nbytes if layout.size > usage.nbytes or view.listed else layout.size
                return VirtualFile(layout, stored, usage.modified, array, known.complete)
        return None

    def _layout(self, known: _Known, array: Array, view: View, stem: str) -> VirtualFileContent:
        layout = known.layouts.get(view.suffix)
        if layout is None:
            complete = self._complete(known) if view.needs_attributes else array
            assert isinstance(complete, Array)
            layout = make_layout(view, complete, stem)
            if complete is array or layout.in_memory:
                self._keep_layout(known, view.suffix, layout)
        return layout

    def _keep_layout(self, known: _Known, suffix: str, layout: VirtualFileContent) -> None:
        nbytes = known.nbytes + ABSENCE_NBYTES + layout.held_nbytes
        if nbytes > self._kept.capacity // 2:
            return
        known.layouts[suffix] = layout
        known.nbytes = nbytes
        if known is not self._root:
            self._kept.put(known.path, None, known, nbytes)

    # -- listing -----------------------------------------------------------------------------------------------

    def names(self, directory: Directory) -> list[str]:
        """Return the names in a directory, sorted. Raises StoreError where the store cannot list it."""
        node = directory.node
        if isinstance(node, Array):
            return sorted(self._view_names(node, self._root_name))
        base = self._relative(node)
        if not directory.complete and not node.store.listable:
            # Attributes may tell the names.
            complete = self._complete(self._look(base))
            node = complete if isinstance(complete, Group) else node
        names = {GROUP_DOCUMENT}
        views: set[str] = set()
        for name in member_names(node):
            member = self._look(f"{base}/{name}" if base else name).node
            if isinstance(member, Group):
                names.add(name)
            elif isinstance(member, Array):
                views.update(self._view_names(member, name))
            elif isinstance(member, _Broken):
                names.add(name + ERROR_SUFFIX)
        return sorted(name for name in names | views if self._fits(name))

    def _relative(self, node: Group) -> str:
        return node.path[len(self.root.path) :].strip("/") if self.root.path else node.path

    def _view_names(self, array: Array, stem: str) -> list[str]:
        wanted: list[View] = [view for view in all_views() if view.listed or self._list_all]
        return [stem + view.suffix for view in wanted if refusal(view, array) is None]

    def _fits(self, name: str) -> bool:
        length = len(name.encode("utf-8", "surrogateescape"))
        if length <= MAX_NAME:
            return True
        if name not in self._too_long:
            if len(self._too_long) >= MAX_REPORTED:
                self._too_long.clear()
            self._too_long.add(name)
            logger.warning(
                "%r is not listed: its name has %d bytes, a file system takes %d", name, length, MAX_NAME
            )
        return False


def _same(old: _Known, new: _Known) -> bool:
    """Whether a node that was opened again says the same, so that the old one can stay."""
    if not (old.complete and new.complete):
        return False  # the documents are not there to be compared
    if isinstance(old.node, Array | Group) and isinstance(new.node, Array | Group):
        before, after = old.node.spec, new.node.spec
        return (
            type(before) is type(after)
            and before.document == after.document
            and before.attributes == after.attributes
        )
    return old.node == new.node
