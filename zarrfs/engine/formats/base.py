"""The contract of an on-disk format: its documents to the internal model and back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple

from zarrfs.engine.formats.paths import join
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Store

__all__ = ["Format", "NodeKeys", "NodeKind"]

NodeKind = Literal["array", "group"]


class NodeKeys(NamedTuple):
    """Where a node and all below it are stored: single keys, and prefixes with everything below them.

    Branches of two paths in one store correspond entry by entry.
    """

    keys: tuple[str, ...]
    prefixes: tuple[str, ...]


class Format(ABC):
    """One format. Stateless. ``path`` is a normalised path in the store, empty for the root."""

    @abstractmethod
    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        """Return the node at the path, or None when this format has none there. Raises MetadataError."""

    @abstractmethod
    def kind(self, store: Store, path: str) -> NodeKind | None:
        """Return what is at the path by looking at no more than that takes."""

    @abstractmethod
    def check(self, spec: NodeSpec) -> None:
        """Raise UnsupportedError if this format cannot say what ``spec`` asks for."""

    def check_path(self, store: Store, path: str) -> None:  # noqa: B027 - not every format has rules
        """Raise KeyNameError if a new node may not be at the path: a name in it breaks a rule. Writes nothing."""

    @abstractmethod
    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        """Write the documents of the node; return ``spec`` with what was written as its ``document``."""

    @abstractmethod
    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        """Write the attributes of a node that is there; return ``spec`` as it then is."""

    def adapted(self, spec: ArraySpec) -> ArraySpec:
        """Return a new array's ``spec`` with the chunk keys and codecs that this format has no choice in.

        The compressor stays. Chunks that were written by ``spec`` are not those of the result.
        """
        return spec

    @abstractmethod
    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        """Return the keys of a node's own documents, attributes last, whether they are there or not."""

    def branch(self, store: Store, path: str) -> NodeKeys:
        """Return where the node and all below it are stored."""
        return NodeKeys((), (path,))

    def consolidating_paths(self, path: str) -> list[str]:
        """Return the paths of the groups whose consolidated metadata mention the node at the path, if they have any."""
        return []

    def is_consolidated(self, store: Store, path: str) -> bool:
        """Tell whether the group at the path carries consolidated metadata."""
        return False

    def child_names(self, store: Store, path: str, spec: GroupSpec) -> list[str]:
        """Return the names below a group that may be nodes. Costs a listing."""
        return store.list_dir(path).prefixes

    def chunk_prefix(self, path: str, spec: ArraySpec) -> str:
        """Return what stands before the chunk keys of the array at the path."""
        return join(path, "") if path else ""
