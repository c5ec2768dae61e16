"""Migrating a hierarchy in place: new documents beside the old ones, chunks untouched.

Everything is planned and checked before anything is written. Documents of the leaves come first and the root's last, so
that an interrupted migration leaves a hierarchy that opens as it did before, and may be begun again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import join
from zarrfs.engine.model import GroupSpec, NodeSpec
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.engine.open import Location
from zarrfs.engine.open import open as open_node
from zarrfs.engine.stores.base import Store
from zarrfs.errors import UnsupportedError
from zarrfs.ngff.versions import VersionChange, for_zarr_format
from zarrfs.tools.copying.conventions import carried
from zarrfs.tools.copying.planning import Form, same_chunks
from zarrfs.tools.copying.walking import walk

__all__ = ["migrate"]

OLD_DOCUMENTS = {1: ("meta", "attrs"), 2: (".zarray", ".zgroup", ".zattrs", ".zmetadata")}


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
    """Give every node at and below a location the documents of another format, in place; chunks stay as they are.

    v1 to v2 or v3, and v2 to v3. ``remove_old`` deletes the old documents once all new ones are there; without it both
    are there, and the newer format is taken by readers that know it.

    Names of dimensions and missing values are put where xarray looks for them in the new format. In format 3 OME-NGFF
    0.4 becomes 0.5, unless ``keep_ngff``.

    Returns a line for each node. Raises UnsupportedError, naming every node that cannot be read or whose chunks the
    format cannot describe, before anything is written.
    """
    node = open_node(location, mode="r+", storage_options=storage_options)
    try:
        return _migrate(node, zarr_format, remove_old, dry_run, keep_ngff)
    finally:
        if not isinstance(location, Store | Mapping):
            node.store.close()  # of a zip file, it is complete only then


def _migrate(
    node: Array | Group, zarr_format: int, remove_old: bool, dry_run: bool, keep_ngff: bool
) -> list[str]:
    nodes: list[tuple[str, Array | Group | Exception]] = [(node.path, node)]
    if isinstance(node, Group):
        nodes += [(join(node.path, below), inner) for below, inner in walk(node)]
    steps: list[_Step] = []
    refused: list[str] = []
    axes: dict[str, tuple[str, ...]] = {}
    for path, inner in nodes:
        if isinstance(inner, Exception):
            refused.append(f"{path or '/'} cannot be read: {inner}")
            continue
        old = inner.zarr_format
        if old == zarr_format:
            continue
        if old not in (1, 2) or (old == 2 and zarr_format != 3):
            refused.append(f"{path or '/'} is in format {old}, which cannot become {zarr_format} in place")
            continue
        note = ""
        spec: NodeSpec | None
        if isinstance(inner, Array):
            carrying = carried(inner.spec, zarr_format, lambda: False)
            if zarr_format == 3 and carrying.dimension_names is None:
                names = axes.get(path, ())
                carrying = replace(carrying, dimension_names=names if len(names) == inner.ndim else None)
            spec = same_chunks(carrying, Form(zarr_format), in_place=True)
        else:
            change = VersionChange(dict(inner.attrs))
            if zarr_format == 3 and not keep_ngff:
                change = for_zarr_format(inner.attrs, inner.basename, 3)
            axes.update({join(path, below): names for below, names in change.axes.items()})
            spec, note = GroupSpec(zarr_format, change.attributes), change.note
        if spec is None:
            refused.append(
                f"{path or '/'} has codecs, a data type or keys that format {zarr_format} cannot describe"
            )
        else:
            steps.append(_Step(path, old, spec, note))
    if refused:
        raise UnsupportedError(
            f"{node.store.url} cannot be migrated; nothing was changed: {'; '.join(refused)}. "
            "zarrfs convert makes a copy that is encoded anew"
        )
    if not dry_run:
        for step in reversed(steps):
            formats.write_node(node.store, step.path, step.spec)  # type: ignore[type-var]
        if remove_old:
            for step in steps:
                for name in OLD_DOCUMENTS.get(int(step.old_format), ()):
                    node.store.delete(join(step.path, name))
    return [
        f"{step.path or '/'}: {step.old_format} to {zarr_format}{f'; {step.note}' if step.note else ''}"
        for step in steps
    ]
