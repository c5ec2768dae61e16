"""In-place migration of a hierarchy to another format: new metadata documents are added, chunks are unchanged.

All nodes are checked before anything is written. The documents of the leaves are written first and that of the root
last. An interrupted migration therefore leaves a hierarchy that opens as before and can be migrated again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.api.open import Location
from zarrfs.api.open import open as open_node
from zarrfs.engine.array.array import Array
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group.group import Group
from zarrfs.engine.model import GroupSpec, NodeSpec
from zarrfs.engine.stores.base import Store
from zarrfs.errors import UnsupportedError
from zarrfs.ngff.versions import VersionChange, for_zarr_format
from zarrfs.tools.copying.conventions import convert_conventions
from zarrfs.tools.copying.planning import TargetOptions, spec_for_chunk_copy
from zarrfs.tools.copying.walking import walk

__all__ = ["migrate"]


@dataclass(frozen=True)
class _Step:
    path: str
    old_format: int | str
    spec: NodeSpec
    note: str


def migrate(
    location: Location,
    zarr_format: int = 3,
    *,
    remove_old: bool = False,
    dry_run: bool = False,
    keep_ngff: bool = False,
    storage_options: dict[str, Any] | None = None,
) -> list[str]:
    """Write metadata documents of another format for the node at a location and all nodes below it. Chunks are
    unchanged.

    Supported migrations are v1 to v2 or v3, and v2 to v3. ``remove_old`` deletes the old documents after all new ones
    are written. Without it both exist, and readers use the newest format that they support.

    Dimension names and missing values are stored as xarray expects them in the new format. OME-NGFF 0.4 is converted
    to 0.5 in format 3, unless ``keep_ngff`` is set.

    Returns one line for each node. Raises UnsupportedError before anything is written; it names every node that cannot
    be read, or whose chunks the format cannot describe.
    """
    node = open_node(location, mode="r+", storage_options=storage_options)
    # Closing the store completes a zip file.
    with nullcontext() if isinstance(location, Store | Mapping) else node.store:
        return _migrate(node, zarr_format, remove_old, dry_run, keep_ngff)


def _migrate(
    node: Array | Group, zarr_format: int, remove_old: bool, dry_run: bool, keep_ngff: bool
) -> list[str]:
    nodes: list[tuple[str, Array | Group | Exception]] = [(node.path, node)]
    if isinstance(node, Group):
        nodes += [(join(node.path, below), member) for below, member in walk(node)]
    has_names = formats.features(zarr_format).dimension_names
    steps: list[_Step] = []
    rejected: list[str] = []
    axes: dict[str, tuple[str, ...]] = {}
    for path, member in nodes:
        if isinstance(member, Exception):
            rejected.append(f"{path or '/'} cannot be read: {member}")
            continue
        old_format = member.zarr_format
        if old_format == zarr_format:
            continue
        if zarr_format not in formats.features(old_format).migrations:
            rejected.append(
                f"{path or '/'} has format {old_format}, which cannot be migrated to {zarr_format} in place"
            )
            continue
        note = ""
        spec: NodeSpec | None
        if isinstance(member, Array):
            converted = convert_conventions(member.spec, zarr_format, lambda: False)
            if has_names and converted.dimension_names is None:
                names = axes.get(path, ())
                converted = replace(converted, dimension_names=names if len(names) == member.ndim else None)
            spec = spec_for_chunk_copy(converted, TargetOptions(zarr_format), in_place=True)
        else:
            change = VersionChange(dict(member.attrs))
            if not keep_ngff:
                change = for_zarr_format(member.attrs, member.basename, zarr_format)
            axes.update({join(path, below): names for below, names in change.axes.items()})
            spec, note = GroupSpec(zarr_format, change.attributes), change.note
        if spec is None:
            rejected.append(
                f"{path or '/'} has codecs, a data type or keys that format {zarr_format} cannot describe"
            )
        else:
            steps.append(_Step(path, old_format, spec, note))
    if rejected:
        raise UnsupportedError(
            f"{node.store.url} cannot be migrated; nothing was changed: {'; '.join(rejected)}. "
            "Use zarrfs convert to create a re-encoded copy"
        )
    if not dry_run:
        for step in reversed(steps):
            formats.write_node(node.store, step.path, step.spec)  # type: ignore[type-var]
        if remove_old:
            for step in steps:
                for name in formats.features(step.old_format).migrated_documents:
                    node.store.delete(join(step.path, name))
    return [
        f"{step.path or '/'}: format {step.old_format} to {zarr_format}{f'; {step.note}' if step.note else ''}"
        for step in steps
    ]
