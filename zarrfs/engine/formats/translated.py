"""The base class of read-only formats that are described by Zarr v3 metadata."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from zarrfs.engine.formats import v3, v3_arrays
from zarrfs.engine.formats.base import Format, NodeKind
from zarrfs.engine.formats.features import FormatFeatures
from zarrfs.engine.formats.json_document import location
from zarrfs.engine.formats.paths import join
from zarrfs.engine.model import NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import UnsupportedError

__all__ = ["TranslatedFormat"]


class TranslatedFormat(Format):
    """A read-only format. Subclasses state the Zarr v3 metadata that describe their nodes.

    The codecs, the chunk grid and the chunk key encoding of the metadata can be those of other packages, so that any
    layout of chunks can be described. Copies of nodes are Zarr v3.

    Attributes:
        name: the ``zarr_format`` of the nodes, which is the name of the entry point.
        document_names: the names of the documents of a node, relative to its path.
    """

    name: ClassVar[str]
    document_names: ClassVar[tuple[str, ...]]
    features = FormatFeatures(writable=False, writable_format=3, dimension_names=True)

    @abstractmethod
    def metadata(self, store: Store, path: str) -> Mapping[str, Any] | None:
        """Return the content of the ``zarr.json`` that describes the node at the path, or None if there is no node of
        this format.

        Documents are read with ``zarrfs.ext.formats.read_object``. Raises MetadataError.
        """

    def kind(self, store: Store, path: str) -> NodeKind | None:
        document = self.metadata(store, path)
        return None if document is None else v3_arrays.node_type(document, location(store, path))

    def read(self, store: Store, path: str, allow_pickle: bool, use_consolidated: bool) -> NodeSpec | None:
        document = self.metadata(store, path)
        if document is None:
            return None
        return replace(v3.parse_node(document, location(store, path)), zarr_format=self.name)

    def document_keys(self, store: Store, path: str, kind: NodeKind) -> tuple[str, ...]:
        return tuple(join(path, name) for name in self.document_names)

    def check(self, spec: NodeSpec) -> None:
        raise UnsupportedError(
            f"the format {self.name} is read-only; copy the array or group with zarrfs copy, and change the copy"
        )

    def write(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        return spec

    def write_attributes(self, store: Store, path: str, spec: NodeSpec) -> NodeSpec:
        self.check(spec)
        return spec
