"""The nodes of a hierarchy that is to be copied, the broken ones included."""

from __future__ import annotations

from collections.abc import Iterator

from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.errors import NodeNotFoundError, StoreError
from zarrfs.tools.copying.reports import CopyReport, incomplete

__all__ = ["readable_nodes", "walk"]


def walk(group: Group, depth: int | None = None) -> Iterator[tuple[str, Array | Group | Exception]]:
    """Yield (path relative to the group, node, or why it cannot be read) of everything below, groups before their
    members, down to ``depth`` levels. Where the members of a group cannot be listed, its path is yielded again with
    the error.
    """
    stack = [iter(_members("", group))]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        yield found
        path, node = found
        if isinstance(node, Group) and (depth is None or len(stack) < depth):
            stack.append(iter(_members(path, node)))


def _members(above: str, group: Group) -> Iterator[tuple[str, Array | Group | Exception]]:
    try:
        names = group.names()
    except Exception as error:  # whatever is wrong with one member is reported as that member's
        yield above or "/", error
        return
    for name in names:
        path = f"{above}/{name}" if above else name
        try:
            yield path, group[name]
        except NodeNotFoundError:
            document = _irregular_document(group, name)
            if document is not None:
                yield path, StoreError(f"{group.store.url}/{document} is not a regular file")
        except Exception as error:
            yield path, error


def _irregular_document(group: Group, name: str) -> str | None:
    """Return the key of what has the name of a metadata document and is none, in what is not a node."""
    if not group.store.listable:
        return None
    prefix = f"{group.path}/{name}".strip("/")
    listing = group.store.list_dir(prefix)
    found = sorted({*listing.prefixes, *listing.keys} & set(METADATA_NAMES) - {".zattrs"})
    return f"{prefix}/{found[0]}" if found else None


def readable_nodes(
    group: Group, skip_broken: bool, report: CopyReport, depth: int | None = None
) -> list[tuple[str, Array | Group]]:
    """Return (path relative to the group, node) of everything below; what cannot be read is put into ``report``.

    Raises IncompleteCopyError for members that cannot be read, unless ``skip_broken``.
    """
    nodes: list[tuple[str, Array | Group]] = []
    for path, node in walk(group, depth):
        if isinstance(node, Exception):
            report.missing[path] = str(node) or type(node).__name__
            report.append(f"{path}: left out: {report.missing[path]}")
        else:
            nodes.append((path, node))
    if report.missing and not skip_broken:
        raise incomplete(group.store.url, "nothing was written", report.missing)
    return nodes
