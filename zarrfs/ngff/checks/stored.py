"""The semantic tier, as far as the store must be asked: whether it holds what the document says. Blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from zarrfs.errors import NodeNotFoundError, ZarrError
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.load import Node
from zarrfs.text import short_repr

__all__ = ["stored_findings"]


def stored_findings(node: Node, document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield where the store and the document disagree."""
    yield from _format(node, version)
    for number, item in enumerate(_list(document.get("multiscales"))):
        if isinstance(item, Mapping):
            yield from _levels(node, item, pointer("multiscales", number), document, version)
    yield from _members(node, document)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _format(node: Any, version: str) -> Iterator[Finding]:
    found = getattr(node, "zarr_format", None)
    expected = 3 if version == "0.5" else 2
    if found is not None and found != expected:
        yield Finding("", f"OME-NGFF {version} is stored in Zarr format {expected}, found format {found}")


def _open(node: Any, path: str, place: str, what: str) -> tuple[Any, list[Finding]]:
    try:
        member = node[path.strip("/")] if path.strip("/") else node
    except (NodeNotFoundError, KeyError, TypeError):
        return None, [Finding(place, f"there is no {what} {short_repr(path)} in the store")]
    except ZarrError as error:
        return None, [Finding(place, f"{what} {short_repr(path)} cannot be opened: {error}")]
    return member, []


def _levels(
    node: Node, item: Mapping[str, Any], place: str, document: Mapping[str, Any], version: str
) -> Iterator[Finding]:
    arrays: list[tuple[str, Any]] = []
    for number, dataset in enumerate(_list(item.get("datasets"))):
        path = dataset.get("path") if isinstance(dataset, Mapping) else None
        if not isinstance(path, str):
            continue
        spot = place + pointer("datasets", number, "path")
        array, findings = _open(node, path, spot, "array")
        yield from findings
        if array is None:
            continue
        if not hasattr(array, "dtype"):
            yield Finding(spot, f"{short_repr(path)} is a group, an array was expected")
            continue
        arrays.append((spot, array))
        yield from _level(array, spot, item, version)
    yield from _together(arrays)
    if arrays and "image-label" in document and arrays[0][1].dtype.kind not in "iu":
        yield Finding(arrays[0][0], f"labels must be integers, found data type {arrays[0][1].dtype}")
    if arrays:
        yield from _channels(arrays[0][1], item, document)


def _level(array: Any, spot: str, item: Mapping[str, Any], version: str) -> Iterator[Finding]:
    axes = _list(item.get("axes")) or (list("tczyx") if version < "0.3" else [])
    rank = len(array.shape)
    if axes and rank != len(axes):
        yield Finding(spot, f"the array has {rank} dimensions for {len(axes)} axes")
    names = getattr(array, "dimension_names", None)
    wanted = [axis.get("name") if isinstance(axis, Mapping) else axis for axis in axes]
    if version == "0.5" and names is not None and rank == len(axes) and list(names) != wanted:
        yield Finding(spot, f"the array's dimension names {list(names)} differ from the axes {wanted}")
    separator = getattr(array, "metadata", {}).get("dimension_separator", ".")
    if getattr(array, "zarr_format", None) == 2 and version >= "0.2" and separator != "/" and rank > 1:
        yield Finding(
            spot, f"chunk keys must be separated by '/' since OME-NGFF 0.2, found {short_repr(separator)}"
        )


def _together(arrays: list[tuple[str, Any]]) -> Iterator[Finding]:
    for (_, finer), (spot, coarser) in pairwise(arrays):
        if coarser.dtype != finer.dtype:
            yield Finding(spot, f"levels must share a data type, found {coarser.dtype} after {finer.dtype}")
        if len(coarser.shape) == len(finer.shape) and any(
            b > a for a, b in zip(finer.shape, coarser.shape, strict=True)
        ):
            yield Finding(spot, f"levels must not grow, but shape {coarser.shape} follows {finer.shape}")


def _channels(array: Any, item: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Finding]:
    omero = document.get("omero")
    channels = omero.get("channels") if isinstance(omero, Mapping) else None
    axes = [axis for axis in _list(item.get("axes")) if isinstance(axis, Mapping)]
    places = [number for number, axis in enumerate(axes) if axis.get("type") == "channel"]
    if not isinstance(channels, list) or len(places) != 1 or len(axes) != len(array.shape):
        return
    length = array.shape[places[0]]
    if len(channels) != length:
        yield Finding("/omero/channels", f"{len(channels)} channels are described, the array has {length}")


def _members(node: Node, document: Mapping[str, Any]) -> Iterator[Finding]:
    for number, path in enumerate(_list(document.get("labels"))):
        if isinstance(path, str):
            yield from _open(node, path, pointer("labels", number), "label image")[1]
    for part, key, what in (("plate", "wells", "well"), ("well", "images", "image")):
        holder = document.get(part)
        for number, item in enumerate(_list(holder.get(key)) if isinstance(holder, Mapping) else []):
            path = item.get("path") if isinstance(item, Mapping) else None
            if isinstance(path, str):
                yield from _open(node, path, pointer(part, key, number, "path"), what)[1]
