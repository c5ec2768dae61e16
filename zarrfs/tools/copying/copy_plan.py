"""The plan of a copy: one step per node, decided before anything is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Literal

from zarrfs.engine.array.array import Array
from zarrfs.engine.create.array_spec import array_spec
from zarrfs.engine.formats import api as formats
from zarrfs.engine.formats.paths import join
from zarrfs.engine.group.group import Group
from zarrfs.engine.model import ArraySpec, GroupSpec, NodeSpec
from zarrfs.engine.parallel import CORES, for_each
from zarrfs.engine.stores.base import Store
from zarrfs.errors import (
    KeyNameError,
    MetadataError,
    NodeExistsError,
    NodeTypeError,
    OptionError,
    UnsupportedError,
)
from zarrfs.ngff.versions import VersionChange, for_zarr_format, to_version
from zarrfs.tools.copying.conventions import convert_conventions, effective_fill_value
from zarrfs.tools.copying.executors import Executor, ThreadExecutor
from zarrfs.tools.copying.planning import (
    TargetOptions,
    describe_losses,
    spec_for_chunk_copy,
    spec_for_reencoding,
)
from zarrfs.tools.copying.progress import Progress
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.copying.stored_keys import conflicting_keys, foreign_keys
from zarrfs.tools.copying.unfinished import check_not_unfinished, warn_of_unfinished
from zarrfs.tools.copying.walking import readable_nodes

__all__ = [
    "CACHE_NBYTES",
    "CopyOptions",
    "CopyPlan",
    "CopyStep",
    "IfExists",
    "group_replaces_array",
    "have_equal_fill_values",
    "plan_copy",
]

IfExists = Literal["raise", "replace", "skip", "resume"]
"""What to do if a node exists at the destination: raise an error, replace it, keep it, or resume an interrupted copy of
the same array. On resume, chunks that exist are not copied again.
"""

CACHE_NBYTES = 256 << 20

MAX_NAMED_NODES = 10
"""The maximum number of nodes that an error names."""


@dataclass(frozen=True)
class CopyOptions:
    """The options of ``convert``, and the executor."""

    target: TargetOptions
    if_exists: IfExists
    verify: bool = False
    memory: int = CACHE_NBYTES
    progress: Progress | None = None
    dry_run: bool = False
    skip_broken: bool = False
    keep_ngff: bool = False
    ome_version: str | None = None
    paths: Sequence[str] | None = None
    nodes_only: bool = False
    executor: Executor = field(default_factory=ThreadExecutor)


@dataclass(frozen=True)
class CopyStep:
    """One node of a copy.

    Attributes:
        path: the path of the copy in its store.
        node: the source.
        spec: the spec of the copy; None if the existing node is kept.
        replaces: whether an existing node is replaced.
        resumes: whether an interrupted copy is resumed.
        copies_chunks: whether encoded chunks are copied unchanged.
        lossy: whether the copy has another data type.
    """

    path: str
    node: Array | Group
    spec: NodeSpec | None
    replaces: bool = False
    resumes: bool = False
    copies_chunks: bool = False
    lossy: bool = False


@dataclass(frozen=True)
class CopyPlan:
    """What a copy does.

    Attributes:
        steps: one step for each node, groups before their members. The first one is that of the copied node.
        files: the keys that belong to no node, relative to the copied node. They are copied unchanged.
        consolidated: the paths of the copies of groups that have consolidated metadata, members before their groups.
    """

    steps: list[CopyStep]
    files: list[str]
    consolidated: list[str]


def plan_copy(
    node: Array | Group, store: Store, path: str, options: CopyOptions, report: CopyReport
) -> CopyPlan:
    """Return the plan of a copy to ``path`` of a store, and add a line for each node to the report. Writes nothing.

    Raises the errors of ``convert`` that are raised before anything is written.
    """
    _check_not_nested(node, store, path)
    if options.paths is not None and (isinstance(node, Array) or not all(options.paths)):
        raise OptionError(
            f"paths: expected paths of members of a group, found {','.join(options.paths)!r}"
            + (f"; {node.store.url}{node.name} is an array" if isinstance(node, Array) else "")
        )
    members = (
        readable_nodes(node, options.skip_broken, report, paths=options.paths)
        if isinstance(node, Group)
        else []
    )
    pairs = [(path, node), *((join(path, below), member) for below, member in members)]
    if options.if_exists == "raise":
        _check_no_nodes(store, [path_in_target for path_in_target, _ in pairs])
    _check_compressors(options.target)
    if options.if_exists == "skip":
        check_not_unfinished(store, path)
    warn_of_unfinished(node)
    replaces_all = options.if_exists == "replace" and group_replaces_array(node, store, path)
    steps: list[CopyStep] = []
    rejected: dict[str, str] = {}
    axes: dict[str, tuple[str, ...]] = {}
    skipped_paths: list[str] = []
    for path_in_target, member in pairs:
        if any(path_in_target.startswith(f"{skipped}/") for skipped in skipped_paths):
            continue  # it is below a node that is skipped and reported
        kind = None if replaces_all else formats.read_kind(store, path_in_target)
        try:
            formats.check_path(store, path_in_target, options.target.format_of(member.zarr_format))
            if isinstance(member, Group):
                step, line = _group_step(member, path_in_target, kind, options, axes)
            else:
                step, line = _array_step(member, path_in_target, kind, options, axes.get(path_in_target))
        except (UnsupportedError, KeyNameError) as error:
            rejected[path_in_target or "/"] = str(error)
            skipped_paths.append(path_in_target)
            continue
        except MetadataError as error:
            raise MetadataError(f"{member.name}: {error}; nothing was written") from error
        steps.append(step)
        report.append(f"{path_in_target or '/'}: {line}")
    _check_dimensions(pairs, axes, options)
    files: list[str] = []
    if not options.nodes_only:
        excluded = {*report.skipped, *(p.removeprefix(path).strip("/") for p in skipped_paths)}
        files, conflicts = _foreign_files(node, members, excluded, steps[0] if steps else None, report)
        if options.paths is not None:
            # The other members, whose keys are like those of other programs, are not known.
            selected = tuple(f"{selected_path.strip('/')}/" for selected_path in options.paths)
            files, conflicts = ([k for k in keys if k.startswith(selected)] for keys in (files, conflicts))
        rejected |= {join(path, key): "a metadata document of the copy has this name" for key in conflicts}
    if rejected and not (options.skip_broken and path not in rejected and (path or "/") not in rejected):
        raise _rejection_error(node, rejected)
    for path_in_target, reason in rejected.items():
        report.skipped[path_in_target] = reason
        report.append(f"{path_in_target}: skipped: {reason}")
    if files and options.if_exists == "raise" and not replaces_all:
        _check_no_keys(store, [join(path, key) for key in files])
    if files:
        count = "1 file that belongs" if len(files) == 1 else f"{len(files)} files that belong"
        report.append(f"{path or '/'}: {count} to no node: copied unchanged")
    report.files = [join(path, key) for key in files]
    return CopyPlan(steps, files, [step.path for step in reversed(steps) if _is_consolidated(step, options)])


def _foreign_files(
    node: Array | Group,
    members: list[tuple[str, Array | Group]],
    excluded: Collection[str],
    top: CopyStep | None,
    report: CopyReport,
) -> tuple[list[str], list[str]]:
    """Return the foreign keys below a node, and those that cannot be copied because of the format of the copy.

    Adds a note to the report if the store cannot list.
    """
    if not node.store.listable:
        if isinstance(node, Group):
            report.notes.append(
                f"{node.store.url} cannot be listed: files beside the arrays and groups are not found, and not copied"
            )
        return [], []
    files = foreign_keys(node, members, excluded)
    zarr_format = node.zarr_format if top is None or top.spec is None else top.spec.zarr_format
    conflicts = conflicting_keys(files, {"", *(below for below, _ in members)}, zarr_format)
    return [key for key in files if key not in conflicts], conflicts


def _is_consolidated(step: CopyStep, options: CopyOptions) -> bool:
    """Return whether a group of the source has consolidated metadata, which the format of the copy has as well."""
    node = step.node
    if not isinstance(node, Group) or node.spec.consolidated is None:
        return False
    # Consolidated metadata of a group above can state that this one has them, too.
    has_own = formats.is_consolidated(node.store, node.path, node.zarr_format)
    return has_own and formats.consolidation(options.target.format_of(node.zarr_format)) is not None


def _rejection_error(node: Array | Group, rejected: Mapping[str, str]) -> UnsupportedError:
    """Return the error for nodes that the destination cannot represent."""
    reasons = "; ".join(
        f"{rejected_path}: {reason}" for rejected_path, reason in list(rejected.items())[:MAX_NAMED_NODES]
    )
    more = f"; and {len(rejected) - MAX_NAMED_NODES} more" if len(rejected) > MAX_NAMED_NODES else ""
    advice = ". Skip such members with skip_broken=True" if isinstance(node, Group) else ""
    return UnsupportedError(
        f"{node.store.url}: these nodes cannot be written, and nothing was written: {reasons}{more}{advice}"
    )


def _check_no_nodes(store: Store, paths_in_target: Sequence[str]) -> None:
    """Raise NodeExistsError if a node exists at one of the paths."""
    for path_in_target in paths_in_target:
        if formats.read_kind(store, path_in_target) is not None:
            raise NodeExistsError(
                f"{store.url}: a node exists at {path_in_target or '/'!r}; use if_exists='replace', "
                "if_exists='skip' or if_exists='resume'"
            )


def _check_no_keys(store: Store, keys: Sequence[str]) -> None:
    """Raise NodeExistsError if one of the keys exists."""
    existing: list[str] = []

    def check(key: str) -> None:
        if store.exists(key):
            existing.append(key)

    for_each(check, keys, max(CORES, store.concurrency))
    if existing:
        more = f" and {len(existing) - 1} more" if len(existing) > 1 else ""
        raise NodeExistsError(
            f"{store.url}: the file {min(existing)!r}{more} exists; use if_exists='replace' or "
            "if_exists='skip', or copy the arrays and groups only with nodes_only=True"
        )


def _check_compressors(options: TargetOptions) -> None:
    """Raise MetadataError for compressors that are invalid for every array."""
    if options.compressors is not None and options.compressors != "none":
        array_spec(shape=(1,), dtype="u1", chunks=(1,), compressors=options.compressors, zarr_format=3)


def _group_step(
    group: Group,
    path_in_target: str,
    kind: str | None,
    options: CopyOptions,
    axes: dict[str, tuple[str, ...]],
) -> tuple[CopyStep, str]:
    target_format = options.target.format_of(group.zarr_format)
    change = _ngff_change(group, target_format, options)
    axes.update(
        {"/".join(p for p in (path_in_target, below) if p): names for below, names in change.axes.items()}
    )
    if kind == "array":
        raise NodeTypeError(
            f"the destination has an array at {path_in_target or '/'!r}, where the source has a group; nothing was "
            "written. Delete the array, or copy to another location"
        )
    if kind is not None:
        return CopyStep(path_in_target, group, None), "group"
    # Members of the document that other programs added, such as _NCZARR_GROUP.
    document = formats.own_document(group.spec) if target_format == group.zarr_format else {}
    spec = GroupSpec(target_format, change.attributes, document=document)
    formats.check_writable(spec)
    return CopyStep(path_in_target, group, spec), f"group; {change.note}" if change.note else "group"


def _ngff_change(group: Group, target_format: int | str, options: CopyOptions) -> VersionChange:
    """Raises UnsupportedError if the metadata cannot be converted to the version of the options."""
    version = options.ome_version
    if version is not None:
        change = to_version(group.attrs, group.basename, version)
        if change.refused:
            raise UnsupportedError(change.note)
        if change.lost and not options.target.allow_loss:
            raise UnsupportedError(
                f"OME-NGFF {version} cannot state {', '.join(change.lost)}; allow_loss=True leaves it out"
            )
        return (
            replace(change, note=f"{change.note}, without {', '.join(change.lost)}")
            if change.lost
            else change
        )
    if options.keep_ngff or target_format == formats.writable_format(group.zarr_format):
        return VersionChange(dict(group.attrs))
    return for_zarr_format(group.attrs, group.basename, target_format)


def _array_step(
    source: Array, path_in_target: str, kind: str | None, options: CopyOptions, axes: tuple[str, ...] | None
) -> tuple[CopyStep, str]:
    if kind is not None and options.if_exists == "skip":
        return CopyStep(path_in_target, source, None), "skipped: it exists"
    replaces = kind is not None and options.if_exists == "replace"
    resumes = kind is not None and options.if_exists == "resume"
    target_format = options.target.format_of(source.zarr_format)
    spec = convert_conventions(source.spec, target_format, lambda: _all_stored(source))
    if (
        formats.features(target_format).dimension_names
        and axes is not None
        and spec.dimension_names is None
        and len(axes) == len(spec.shape)
    ):
        spec = replace(spec, dimension_names=axes)
    target = options.target.for_dimensions(source, _names(spec, axes))
    same_chunks_spec = spec_for_chunk_copy(spec, target) if _missing_chunks_read_equal(source, spec) else None
    if same_chunks_spec is not None:
        return CopyStep(
            path_in_target, source, same_chunks_spec, replaces, resumes, True
        ), "chunks copied unchanged"
    target_spec = spec_for_reencoding(source, spec, target)
    if not options.target.allow_loss and target_spec.data_type.name != source.spec.data_type.name:
        raise UnsupportedError(
            f"format {target_format} does not support data type {source.spec.data_type.name}; "
            f"allow_loss=True converts it to {target_spec.data_type.name}"
        )
    losses = describe_losses(source, target_spec, target)
    lossy = target_spec.data_type.name != source.spec.data_type.name
    line = "; ".join(["re-encoded", *losses])
    return CopyStep(path_in_target, source, target_spec, replaces, resumes, False, lossy), line


def _names(spec: ArraySpec, axes: tuple[str, ...] | None) -> tuple[str | None, ...] | None:
    """Return the dimension names of an array, by default those that OME-NGFF metadata define."""
    if spec.dimension_names is not None or axes is None or len(axes) != len(spec.shape):
        return spec.dimension_names
    return axes


def _check_dimensions(
    members: Iterable[tuple[str, Array | Group]], axes: Mapping[str, tuple[str, ...]], options: CopyOptions
) -> None:
    """Raise MetadataError if chunk sizes are given for a dimension that no array has. Writes nothing."""
    if not isinstance(options.target.chunks, Mapping):
        return
    found = {
        name
        for path, member in members
        if isinstance(member, Array)
        for name in _names(member.spec, axes.get(path)) or ()
        if name is not None
    }
    unknown = sorted(set(options.target.chunks) - found)
    if unknown:
        raise MetadataError(
            f"chunks: no array has a dimension named {', '.join(map(repr, unknown))}; the dimensions are "
            f"{', '.join(sorted(found)) or 'not named'}"
        )


def _all_stored(array: Array) -> bool:
    storage = array.storage
    return array.store.listable and sum(1 for _ in storage.stored_chunks()) == prod(storage.grid_shape)


def _missing_chunks_read_equal(source: Array, spec: ArraySpec) -> bool:
    """Return whether missing chunks read the same in a copy with the fill value of ``spec``, or none are missing."""
    return have_equal_fill_values(source.spec, spec) or _all_stored(source)


def have_equal_fill_values(one: ArraySpec, other: ArraySpec) -> bool:
    # The repr of NaN equals that of NaN, and the reprs of 0.0 and -0.0 differ.
    return repr(effective_fill_value(one)) == repr(effective_fill_value(other))


def group_replaces_array(node: Array | Group, store: Store, path: str) -> bool:
    """Return whether a group would replace an array."""
    return isinstance(node, Group) and formats.read_kind(store, path) == "array"


def _check_not_nested(node: Array | Group, store: Store, path: str) -> None:
    """Raise NodeExistsError if the target is the source or below it: such a copy would not terminate."""
    source_url, target_url = (
        f"{s.url.rstrip('/')}/{p}".rstrip("/") + "/" for s, p in ((node.store, node.path), (store, path))
    )
    if target_url.startswith(source_url):
        raise NodeExistsError(f"{store.url}: {node.path or '/'!r} cannot be copied to itself or into itself")
