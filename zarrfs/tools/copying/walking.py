"""Traversal of a hierarchy to be copied, including nodes that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from zarrfs.engine.locations import METADATA_NAMES
from zarrfs.engine.nodes.array import Array
from zarrfs.engine.nodes.group import Group
from zarrfs.errors import NodeNotFoundError, ServerError, StoreError
from zarrfs.tools.copying.reports import CopyReport, incomplete_copy_error

__all__ = ["readable_nodes", "walk"]


def walk(group: Group, depth: int | None = None) -> Iterator[tuple[str, Array | Group | Exception]]:
    """Yield (path relative to the group, node or exception) of all nodes below a group, groups before their members,
    down to ``depth`` levels. An exception states why a node cannot be read. If the members of a group cannot be
    listed, its path is yielded a second time with the exception. Raises ServerError, which concerns all nodes.
    """
    stack = [iter(_members("", group))]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        yield entry
        path, node = entry
        if isinstance(node, Group) and (depth is None or len(stack) < depth):
            stack.append(iter(_members(path, node)))


def _members(parent: str, group: Group) -> Iterator[tuple[str, Array | Group | Exception]]:
    try:
        names = group.names()
    except ServerError:
        raise
    except Exception as error:  # any error is reported as an error of the group
        yield parent or "/", error
        return
    for name in names:
        path = f"{parent}/{name}" if parent else name
        try:
            yield path, group[name]
        except NodeNotFoundError:
            document = _irregular_document(group, name)
            if document is not None:
                yield path, StoreError(f"{group.store.url}/{document} is not a regular file")
        except ServerError:
            raise
        except Exception as error:
            yield path, error


def _irregular_document(group: Group, name: str) -> str | None:
    """Return the key of an entry that is named like a metadata document but is not a file; None if there is none."""
    if not group.store.listable:
        return None
    prefix = f"{group.path}/{name}".strip("/")
    listing = group.store.list_dir(prefix)
    entry = sorted({*listing.prefixes, *listing.keys} & set(METADATA_NAMES) - {".zattrs"})
    return f"{prefix}/{entry[0]}" if entry else None


def readable_nodes(
    group: Group, skip_broken: bool, report: CopyReport, depth: int | None = None
) -> list[tuple[str, Array | Group]]:
    """Return (path relative to the group, node) of all readable nodes below a group. Others are added to ``report``.

    Raises IncompleteCopyError if members cannot be read, unless ``skip_broken`` is set.
    """
    nodes: list[tuple[str, Array | Group]] = []
    for path, node in walk(group, depth):
        if isinstance(node, Exception):
            report.skipped[path] = str(node) or type(node).__name__
            report.append(f"{path}: skipped: {report.skipped[path]}")
        else:
            nodes.append((path, node))
    if report.skipped and not skip_broken:
        raise incomplete_copy_error(group.store.url, "nothing was written", report.skipped)
    return nodes
