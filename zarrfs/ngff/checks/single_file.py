"""Single-file OME-Zarr: the requirements and recommendations of RFC-9 for the zip file that contains a hierarchy.

See https://ngff.openmicroscopy.org/rfc/9/index.html.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from zarrfs.engine.stores.base import Store, ValueTooLargeError
from zarrfs.engine.stores.wrappers.wrapper import unwrapped
from zarrfs.engine.stores.zip.archive import ArchiveStore
from zarrfs.engine.stores.zip.single_file import breadth_first, inspect, is_single_file, stated_ome
from zarrfs.errors import StoreError
from zarrfs.ngff.checks.report import Finding
from zarrfs.ngff.load import Node

__all__ = ["single_file_findings"]

MAX_DOCUMENT_NBYTES = 1 << 20

MAX_DOCUMENTS = 1000
"""The number of documents that are examined for sharding."""


def single_file_findings(node: Node, version: str | None) -> Iterator[Finding]:
    """Yield what the archive whose root is the node does not follow; nothing for nodes that are no root of an archive.

    ``version`` is the OME-NGFF version of the root, None if it has none. Reads the documents of the archive. Zip files
    that are neither named ``.ozx`` nor have the comment of such files are no single-file OME-Zarr.
    """
    store = getattr(node, "store", None)
    archive = unwrapped(store) if isinstance(store, Store) else None
    if not isinstance(archive, ArchiveStore) or getattr(node, "path", None):
        return
    directory = archive.central_directory
    if directory is None or not (is_single_file(archive.url) or stated_ome(directory.comment)):
        return
    for problem in inspect(directory, archive.url, version):
        yield Finding("", problem.message, problem.is_error)
    for key in breadth_first(archive.list_prefix())[:MAX_DOCUMENTS]:
        count = _unsharded_chunks(archive, key)
        if count > 1:
            yield Finding("", f"the array {key.rpartition('/')[0] or '/'} has {count} chunks and no shards")


def _unsharded_chunks(store: Store, key: str) -> int:
    """Return the number of chunks of an array without shards; 0 for groups, other arrays and unreadable documents."""
    try:
        document: Any = json.loads(bytes(store.get_within(key, MAX_DOCUMENT_NBYTES) or b""))
        if document["node_type"] != "array" or any(_is_sharding(codec) for codec in document["codecs"]):
            return 0
        chunks = document["chunk_grid"]["configuration"]["chunk_shape"]
        return math.prod(
            math.ceil(length / chunk) for length, chunk in zip(document["shape"], chunks, strict=True)
        )
    except (
        StoreError,
        ValueTooLargeError,
        ValueError,
        KeyError,
        TypeError,
        ZeroDivisionError,
        RecursionError,
    ):
        return 0  # other tiers report it


def _is_sharding(codec: Any) -> bool:
    return (codec.get("name") if isinstance(codec, dict) else codec) == "sharding_indexed"
