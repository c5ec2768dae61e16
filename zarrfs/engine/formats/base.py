"""The base class of on-disk formats. A format translates between its documents and the internal model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal, NamedTuple

from zarrfs.engine.dtypes import DataType, default_fill
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.paths import join
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Listing, Store
from zarrfs.engine.values import fill_scalar

__all__ = ["Format", "NodeKeys", "NodeKind"]

NodeKind = Literal["array", "group"]


class NodeKeys(NamedTuple):
    """The keys and prefixes under which a node and all nodes below it are stored.

    The entries for two paths in one store correspond one to one.
    """

    keys: tuple[str, ...]
    prefixes: tuple[str, ...]


class Format(ABC):
    """An on-disk format. Stateless. ``path`` is always a normalized path in the store, empty for the root."""

    features: ClassVar[FormatFeatures]

    @abstractmethod
    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        """Return the node at the path, or None if there is no node of this format. Raises MetadataError."""

    @abstractmethod
    def kind(self, store: Store, path: str) -> NodeKind | None:
        """Return the kind of the node at the path, or None, reading as little as possible."""

    def new_fill_value(self, value: Any, data_type: DataType) -> Any:
        """Return the fill value of a new array for an option. None means that the value is undefined."""
        return default_fill(data_type) if value is None else fill_scalar(value, data_type)

    @abstractmethod
    def check(self, spec: NodeSpec) -> None:
        """Raise UnsupportedError if this format cannot represent ``spec``."""

    def check_path(self, store: Store, path: str) -> None:  # noqa: B027 - not every format has rules
        """Raise KeyNameError if the format does not allow a new node at the path. Writes nothing."""

    @abstractmethod
    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        """Write the documents of the node; return ``spec`` with the written document as its ``document``."""

    @abstractmethod
    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        """Write the attributes of an existing node; return the updated ``spec``."""

    def with_prescribed_encoding(self, spec: ArraySpec) -> ArraySpec:
        """Return the ``spec`` of a new array with the chunk key encoding and codecs that this format prescribes.

        The compressor is unchanged. Chunks that were written with ``spec`` cannot be read with the result.
        """
        return spec

    @abstractmethod
    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        """Return the keys of a node's own documents, attributes last. The documents need not exist."""

    def node_keys(self, store: Store, path: str) -> NodeKeys:
        """Return where the node and all nodes below it are stored."""
        return NodeKeys((), (path,))

    def consolidating_paths(self, path: str) -> list[str]:
        """Return the paths of the groups whose consolidated metadata, if any, contains the node at the path."""
        return []

    def is_consolidated(self, store: Store, path: str) -> bool:
        """Return whether the group at the path has consolidated metadata."""
        return False

    def child_names(
        self, store: Store, path: str, spec: GroupSpec, listing: Listing | None = None
    ) -> list[str]:
        """Return the names below a group that may be nodes. Needs one listing.

        ``listing`` is that of the path, if it is known.
        """
        return (store.list_dir(path) if listing is None else listing).prefixes

    def chunk_prefix(self, path: str, spec: ArraySpec) -> str:
        """Return the prefix of the chunk keys of the array at the path: empty, or ending with a slash."""
        return join(path, "") if path else ""
