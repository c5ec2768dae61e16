"""Extended attributes: the metadata of the node that a file or directory presents."""

from __future__ import annotations

import json

from zarrfs.engine.array.array import Array
from zarrfs.engine.hierarchy.summary import array_metadata_summary, group_metadata_summary, json_safe
from zarrfs.mount.tree.entries import Entry

__all__ = ["XATTR_PREFIX", "extended_attributes"]

MAX_XATTR_NBYTES = 64 << 10
"""The maximum size of an extended attribute in Linux."""

XATTR_PREFIX = "user.zarr."


def extended_attributes(entry: Entry) -> dict[str, bytes]:
    """Return the extended attributes of an entry by name. Those that are too large are omitted."""
    node = entry.node
    if node is None:
        return {}
    summary = array_metadata_summary(node) if isinstance(node, Array) else group_metadata_summary(node)
    if entry.has_attributes:  # attributes that are not cached are larger than MAX_XATTR_NBYTES
        summary["attributes"] = json_safe(node.attrs.asdict())
    texts = {
        XATTR_PREFIX + key: (value if isinstance(value, str) else json.dumps(value)).encode()
        for key, value in summary.items()
        if value is not None
    }
    return {key: text for key, text in texts.items() if len(text) <= MAX_XATTR_NBYTES}
