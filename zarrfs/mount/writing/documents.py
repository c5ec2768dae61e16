"""Changes by the JSON files of a mount: the attributes of an existing node, and the metadata of a new array."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.hierarchy.summary import array_metadata_summary, group_metadata_summary, json_safe
from zarrfs.mount.fuse.error_numbers import RefusedError

__all__ = [
    "COPIED_OPTIONS",
    "CREATION_OPTIONS",
    "copied_attributes",
    "edited_attributes",
    "has_other_layout",
    "is_copied_document",
    "new_array_options",
    "parse_document",
]

MAX_DOCUMENT_NBYTES = 64 << 20

CREATION_OPTIONS = (
    "shape",
    "dtype",
    "chunks",
    "shards",
    "fill_value",
    "order",
    "zarr_format",
    "filters",
    "serializer",
    "compressors",
    "codecs",
    "dimension_names",
)
"""The members of a JSON file that creates an array, and the extended attributes of a new file (``user.zarr.*``)."""

DESCRIPTION = (
    "shape",
    "dtype",
    "fill_value",
    "chunks",
    "shards",
    "dimension_names",
    "dimension_units",
    "attributes",
)
"""The members of the JSON file of an array in a mount that describe a copy of it."""

COPIED_OPTIONS = ("chunks", "shards", "fill_value", "dimension_names")
"""The creation options that apply to a file that is copied from a mount with its extended attributes. The target may
have another format, to which the others do not apply.
"""

DERIVED = ("views", "not_available")
"""Members of the JSON file of an array that are not metadata. They are ignored."""


def parse_document(path: str, content: bytes) -> dict[str, Any]:
    """Return the JSON object in a file. Raises RefusedError."""
    if len(content) > MAX_DOCUMENT_NBYTES:
        raise RefusedError(
            f"{path}: expected at most {MAX_DOCUMENT_NBYTES} bytes, found {len(content)}", errno.EFBIG
        )
    try:
        document = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"{path}: it is not valid JSON: {error}", errno.EINVAL) from error
    if not isinstance(document, dict):
        raise RefusedError(f"{path}: expected a JSON object, found {type(document).__name__}", errno.EINVAL)
    return document


def edited_attributes(path: str, document: Mapping[str, Any], node: Array | Group) -> dict[str, Any]:
    """Return the member ``attributes`` of an edited JSON file. Raises RefusedError if another member was changed."""
    present = _summary(node)
    for name, value in document.items():
        if name == "attributes" or name in DERIVED:
            continue
        if name not in present or present[name] != value:
            raise RefusedError(
                f"{path}: only the member 'attributes' can be changed; {name!r} is {value!r}, expected "
                f"{present.get(name)!r}",
                errno.EINVAL,
            )
    return _attributes(path, document)


def is_copied_document(document: Mapping[str, Any], node: Array | Group, is_new: bool) -> bool:
    """Return whether the JSON file of a node is not an edited one, but that of another node of which it is a copy.

    ``is_new`` states whether the node was created by another file of the copy.
    """
    present = _summary(node)
    return document.get("kind", present["kind"]) == present["kind"] and (
        is_new or document.get("path", present["path"]) != present["path"]
    )


def copied_attributes(path: str, document: Mapping[str, Any], node: Array | Group) -> dict[str, Any]:
    """Return the member ``attributes`` of a copied JSON file. Raises RefusedError if the array differs."""
    present = _summary(node)
    for name in ("shape", "dtype"):
        if name in document and document[name] != present.get(name):
            raise RefusedError(
                f"{path}: the file describes an array whose {name} is {document[name]!r}; that of the array is "
                f"{present.get(name)!r}. Remove the array, or copy its other files first",
                errno.EINVAL,
            )
    return _attributes(path, document)


def has_other_layout(document: Mapping[str, Any], node: Array) -> bool:
    """Return whether a copied JSON file describes other chunks, another fill value or other dimensions."""
    present = _summary(node)
    described = {name: document[name] for name in DESCRIPTION if name in document and name != "attributes"}
    if any(isinstance(side, list) for side in described.get("chunks", ())):
        described = {name: value for name, value in described.items() if name not in ("chunks", "shards")}
    # NaN differs from itself.
    return any(json.dumps(value) != json.dumps(present.get(name)) for name, value in described.items())


def _summary(node: Array | Group) -> dict[str, Any]:
    """Return the members of the JSON file of a node, as they are read from the file."""
    summary = array_metadata_summary(node) if isinstance(node, Array) else group_metadata_summary(node)
    document: dict[str, Any] = json.loads(json.dumps(json_safe(summary)))
    return document


def _attributes(path: str, document: Mapping[str, Any]) -> dict[str, Any]:
    attributes = document.get("attributes")
    if not isinstance(attributes, dict):
        raise RefusedError(f"{path}: expected a member 'attributes' that is a JSON object", errno.EINVAL)
    return attributes


def new_array_options(path: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the array that a new JSON file describes. Raises RefusedError.

    The file has at least the members ``shape`` and ``dtype``. In the JSON file of an array of another mount, members
    that are derived from others are ignored, and so are the format and the codecs, which the other format may not have.
    """
    if document.get("kind") == "array" and "data_type" in document:
        document = {name: document[name] for name in DESCRIPTION if document.get(name) is not None}
        if any(isinstance(side, list) for side in document.get("chunks", ())):
            document = {name: value for name, value in document.items() if name not in ("chunks", "shards")}
    missing = [name for name in ("shape", "dtype") if name not in document]
    if missing:
        raise RefusedError(
            f"{path}: a JSON file of a new array needs the members 'shape' and 'dtype'; "
            f"missing: {', '.join(missing)}",
            errno.EINVAL,
        )
    unknown = [name for name in document if name not in (*CREATION_OPTIONS, *DESCRIPTION)]
    if unknown:
        raise RefusedError(
            f"{path}: unknown members of a new array: {', '.join(map(repr, unknown))}; expected "
            f"{', '.join((*CREATION_OPTIONS, 'attributes'))}",
            errno.EINVAL,
        )
    fields = {"dtype": _dtype_option(document["dtype"])}
    if isinstance(document["dtype"], list) and isinstance(document.get("fill_value"), list):
        fields["fill_value"] = tuple(document["fill_value"])
    return {**document, **fields}


def _dtype_option(value: Any) -> Any:
    """Return the fields of a structured data type as NumPy expects them: tuples instead of the lists of JSON."""
    if not isinstance(value, list):
        return value
    return [
        (field[0], _dtype_option(field[1]), *(tuple(shape) for shape in field[2:]))
        if isinstance(field, list) and len(field) in (2, 3)
        else field
        for field in value
    ]
