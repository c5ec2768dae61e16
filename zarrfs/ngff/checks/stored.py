"""The part of the semantic tier that reads from the store: consistency of document and store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from zarrfs.errors import NodeNotFoundError, ZarrError
from zarrfs.ngff.checks.report import Finding, pointer
from zarrfs.ngff.checks.semantic_0_6 import axis_findings, unconnected_findings
from zarrfs.ngff.coordinate_graphs import contradictions
from zarrfs.ngff.load import Node
from zarrfs.ngff.model import Level
from zarrfs.ngff.parse import parse
from zarrfs.ngff.stored_graphs import load_graph
from zarrfs.ngff.version_0_6 import VERSION_0_6, axes_of
from zarrfs.text import short_repr

__all__ = ["stored_findings"]


def stored_findings(node: Node, document: Mapping[str, Any], version: str) -> Iterator[Finding]:
    """Yield the inconsistencies between the store and the document. Reads from the store."""
    yield from _format(node, version)
    for number, item in enumerate(_list(document.get("multiscales"))):
        if isinstance(item, Mapping):
            yield from _levels(node, item, pointer("multiscales", number), document, version)
    if version == VERSION_0_6:
        yield from _graph(node)
    yield from _members(node, document)


def _graph(node: Node) -> Iterator[Finding]:
    """Yield what is wrong with the transformations between coordinate systems, and with what they refer to."""
    graph = load_graph(node)
    for place, message in (*graph.problems, *contradictions(graph)):
        place = place.removeprefix("/ome")
        is_pointer = place.startswith("/")
        yield Finding(place if is_pointer else "", message if is_pointer else f"{place}: {message}", True)
    for edge in graph.transformations:
        yield from axis_findings(edge, graph.systems)
    if not graph.problems:
        yield from unconnected_findings(graph, "")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _format(node: Any, version: str) -> Iterator[Finding]:
    found = getattr(node, "zarr_format", None)
    expected = 3 if version >= "0.5" else 2
    if found is not None and found != expected:
        yield Finding("", f"OME-NGFF {version} requires Zarr format {expected}, found format {found}")


def _open(node: Any, path: str, location: str, node_kind: str) -> tuple[Any, list[Finding]]:
    try:
        member = node[path.strip("/")] if path.strip("/") else node
    except (NodeNotFoundError, KeyError, TypeError):
        return None, [Finding(location, f"{node_kind} {short_repr(path)} does not exist in the store")]
    except ZarrError as error:
        return None, [Finding(location, f"{node_kind} {short_repr(path)} cannot be opened: {error}")]
    return member, []


def _levels(
    node: Node, item: Mapping[str, Any], location: str, document: Mapping[str, Any], version: str
) -> Iterator[Finding]:
    arrays: list[tuple[str, Any]] = []
    found: list[tuple[str, Any]] = []
    for number, dataset in enumerate(_list(item.get("datasets"))):
        path = dataset.get("path") if isinstance(dataset, Mapping) else None
        if not isinstance(path, str):
            continue
        array_location = location + pointer("datasets", number, "path")
        array, findings = _open(node, path, array_location, "array")
        yield from findings
        if array is None:
            continue
        if not hasattr(array, "dtype"):
            yield Finding(array_location, f"expected an array at {short_repr(path)}, found a group")
            continue
        arrays.append((array_location, array))
        found.append((path, array))
        yield from _level(array, array_location, item, version)
    yield from _level_pairs(arrays)
    yield from _extents(item, dict(found), location)
    if arrays and "image-label" in document and arrays[0][1].dtype.kind not in "iu":
        yield Finding(
            arrays[0][0], f"label images must have an integer data type, found {arrays[0][1].dtype}"
        )
    if arrays:
        yield from _channels(arrays[0][1], item, document)


def _level(array: Any, array_location: str, item: Mapping[str, Any], version: str) -> Iterator[Finding]:
    axes = axes_of(item) or (list("tczyx") if version < "0.3" else [])
    rank = len(array.shape)
    if axes and rank != len(axes):
        yield Finding(array_location, f"the array has {rank} dimensions, but there are {len(axes)} axes")
    names = getattr(array, "dimension_names", None)
    axis_names = [axis.get("name") if isinstance(axis, Mapping) else axis for axis in axes]
    if version >= "0.5" and names is not None and rank == len(axes) and list(names) != axis_names:
        yield Finding(
            array_location, f"the array's dimension names {list(names)} differ from the axes {axis_names}"
        )
    separator = getattr(array, "metadata", {}).get("dimension_separator", ".")
    if getattr(array, "zarr_format", None) == 2 and version >= "0.2" and separator != "/" and rank > 1:
        yield Finding(
            array_location,
            f"chunk keys must be separated by '/' since OME-NGFF 0.2, found {short_repr(separator)}",
        )


def _level_pairs(arrays: list[tuple[str, Any]]) -> Iterator[Finding]:
    for (_, finer), (array_location, coarser) in pairwise(arrays):
        if coarser.dtype != finer.dtype:
            yield Finding(
                array_location,
                f"levels must have the same data type, found {coarser.dtype} after {finer.dtype}",
            )
        if len(coarser.shape) == len(finer.shape) and any(
            b > a for a, b in zip(finer.shape, coarser.shape, strict=True)
        ):
            yield Finding(
                array_location,
                f"levels must not increase in size, but shape {coarser.shape} follows {finer.shape}",
            )


def _extents(item: Mapping[str, Any], arrays: Mapping[str, Any], location: str) -> Iterator[Finding]:
    """Yield the levels that do not cover the same region as the level before.

    Sizes and positions may differ by one pixel of the coarser level, because the sizes of levels are rounded, and
    because some writers state the same position for the first elements of all levels. Rounding errors add up over the
    levels, so adjacent ones are compared.
    """
    images = parse({"ome": {"multiscales": [item]}}).multiscales
    axes = images[0].axes if images else ()
    levels = [
        level
        for level in (images[0].levels if images else ())
        if level.path in arrays
        and level.scale is not None
        and len(level.scale) == len(arrays[level.path].shape)
    ]
    for finer, coarser in pairwise(levels):
        shapes = arrays[finer.path].shape, arrays[coarser.path].shape
        if len(shapes[0]) != len(shapes[1]):
            continue
        for axis in range(len(shapes[0])):
            message = _extent_message(finer, coarser, (shapes[0][axis], shapes[1][axis]), axis)
            if message is not None:
                name = axes[axis].name if axis < len(axes) else axis
                number = next(
                    i
                    for i, dataset in enumerate(_list(item.get("datasets")))
                    if isinstance(dataset, Mapping) and dataset.get("path") == coarser.path
                )
                yield Finding(
                    location + pointer("datasets", number), f"along axis {short_repr(name)} {message}", True
                )


def _extent_message(finer: Level, coarser: Level, sizes: tuple[int, int], axis: int) -> str | None:
    """Return how the regions of two levels differ along an axis; None if they differ by at most a pixel."""
    steps = [abs(level.scale[axis]) if level.scale else 1.0 for level in (finer, coarser)]
    origins = [level.translation[axis] if level.translation else 0.0 for level in (finer, coarser)]
    if 0 in sizes:
        return None
    lengths = [size * step for size, step in zip(sizes, steps, strict=True)]
    pixel = max(steps)
    limit = pixel + 1e-6 * max(lengths)
    if abs(lengths[0] - lengths[1]) > limit:
        return (
            f"{sizes[1]} pixels of {steps[1]:g} cover {lengths[1]:g}, but {sizes[0]} pixels of {steps[0]:g} of the "
            f"level before cover {lengths[0]:g}: the levels do not overlap, so a scale is not right"
        )
    # The edges of the first pixels, and their centres.
    edges = [origin - step / 2 for origin, step in zip(origins, steps, strict=True)]
    if min(abs(origins[0] - origins[1]), abs(edges[0] - edges[1])) > limit:
        return (
            f"the first pixel is at {origins[1]:g}, but that of the level before is at {origins[0]:g}: the levels do "
            "not overlap, so a translation is not right"
        )
    return None


def _channels(array: Any, item: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Finding]:
    omero = document.get("omero")
    channels = omero.get("channels") if isinstance(omero, Mapping) else None
    axes = [axis for axis in axes_of(item) if isinstance(axis, Mapping)]
    channel_axes = [number for number, axis in enumerate(axes) if axis.get("type") == "channel"]
    if not isinstance(channels, list) or len(channel_axes) != 1 or len(axes) != len(array.shape):
        return
    length = array.shape[channel_axes[0]]
    if len(channels) != length:
        yield Finding(
            "/omero/channels", f"{len(channels)} channels are described, but the array has {length}"
        )


def _members(node: Node, document: Mapping[str, Any]) -> Iterator[Finding]:
    for number, path in enumerate(_list(document.get("labels"))):
        if isinstance(path, str):
            yield from _open(node, path, pointer("labels", number), "label image")[1]
    for part, key, node_kind in (("plate", "wells", "well"), ("well", "images", "image")):
        holder = document.get(part)
        for number, item in enumerate(_list(holder.get(key)) if isinstance(holder, Mapping) else []):
            path = item.get("path") if isinstance(item, Mapping) else None
            if isinstance(path, str):
                yield from _open(node, path, pointer(part, key, number, "path"), node_kind)[1]
