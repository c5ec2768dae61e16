"""Traversal of a hierarchy to be copied, including nodes that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from zarrfs.engine.array.array import Array
from zarrfs.engine.group.group import Group
from zarrfs.engine.stores.locations import METADATA_NAMES
from zarrfs.errors import IncompleteCopyError, NodeNotFoundError, ServerError, StoreError
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


def _named(group: Group, paths: Sequence[str]) -> Iterator[tuple[str, Array | Group | Exception]]:
    """Yield what ``walk`` yields of the members at some paths: also the groups above them, and all nodes below them."""
    seen: set[str] = set()
    for named in dict.fromkeys(path.strip("/") for path in paths):
        parts = named.split("/")
        for depth in range(1, len(parts) + 1):
            path = "/".join(parts[:depth])
            if path in seen:
                continue
            seen.add(path)
            node: Array | Group | Exception
            try:
                node = group[path]
            except ServerError:
                raise
            except Exception as error:  # any error is reported as an error of the member
                node = error
            yield path, node
            if isinstance(node, Exception):
                break
            if depth == len(parts) and isinstance(node, Group):
                for below, member in walk(node):
                    full = path if below == "/" else f"{path}/{below}"
                    if full not in seen or isinstance(member, Exception):
                        seen.add(full)
                        yield full, member


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
    group: Group,
    skip_broken: bool,
    report: CopyReport,
    depth: int | None = None,
    paths: Sequence[str] | None = None,
) -> list[tuple[str, Array | Group]]:
    """Return (path relative to the group, node) of all readable nodes below a group. Others are added to ``report``.

    ``paths`` are those of members: only these, what is below them, and the groups above them are returned. Members are
    found there also if the store cannot list.

    Raises IncompleteCopyError if members cannot be read, unless ``skip_broken`` is set.
    """
    nodes: list[tuple[str, Array | Group]] = []
    groups = {"/"}
    for path, node in walk(group, depth) if paths is None else _named(group, paths):
        if isinstance(node, Group):
            groups.add(path)
        if isinstance(node, Exception):
            if path in groups and not group.store.listable:
                raise IncompleteCopyError(
                    f"{group.store.url}: nothing was written; the members of {path} are unknown, because the store "
                    "cannot list and no metadata name them. Consolidate the metadata where the hierarchy is stored "
                    "(zarrfs consolidate), or name the members: paths='0,1'"
                ) from node
            report.skipped[path] = str(node) or type(node).__name__
            report.append(f"{path}: skipped: {report.skipped[path]}")
        else:
            nodes.append((path, node))
    if report.skipped and not skip_broken:
        raise incomplete_copy_error(group.store.url, "nothing was written", report.skipped)
    return nodes
