"""``zarrfs tree``: show the hierarchy as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

import zarrfs
from zarrfs.cli.console import MAX_LINE, print_json, safe
from zarrfs.cli.values import document_option, parse_storage_options, storage_option
from zarrfs.engine.nodes.summary import json_safe
from zarrfs.errors import describe_error
from zarrfs.ngff.members import member_names

__all__ = ["command"]


@click.command()
@click.argument("location")
@click.argument("path", default="")
@click.option("--depth", type=click.IntRange(min=1), help="The maximum number of levels. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: nested objects with 'members'.")
@click.option(
    "--consolidated",
    is_flag=True,
    help="Use the consolidated metadata, which can be out of date. Default: of remote stores only.",
)
@document_option
@storage_option
def command(
    location: str,
    path: str,
    depth: int | None,
    as_json: bool,
    consolidated: bool,
    max_document: int | None,
    storage: tuple[str, ...],
) -> None:
    """Show the hierarchy at LOCATION, or at PATH below LOCATION: groups, and arrays with shape, data type and chunks.

    A member with invalid metadata is listed with the error.

    \b
    Examples:
      zarrfs tree image.zarr
      zarrfs tree survey.zarr.zip --depth 2
    """
    access = zarrfs.Access(max_document=max_document)
    node = zarrfs.open(
        location,
        path,
        storage_options=parse_storage_options(storage),
        access=access,
        use_consolidated=True if consolidated else None,
    )
    with node.store:
        if as_json:
            print_json(as_object(node, depth))
            return
        click.echo(safe(node.store.url + (f"/{node.path}" if node.path else "")) + suffix(node))
        for line in tree_lines(node, "", depth):
            click.echo(line)


@dataclass(frozen=True)
class UnreadableMember:
    """A member that cannot be opened, with the reason."""

    reason: str


def members(
    node: zarrfs.Array | zarrfs.Group,
) -> Iterator[tuple[str, zarrfs.Array | zarrfs.Group | UnreadableMember]]:
    """Yield the name and the node of each member. A member that cannot be opened is an UnreadableMember."""
    if isinstance(node, zarrfs.Array):
        return
    for name in member_names(node):
        member: zarrfs.Array | zarrfs.Group | UnreadableMember | None
        try:
            member = node.get(name)
        except MemoryError:
            raise
        except Exception as error:  # an error in one member must not hide the others
            member = UnreadableMember(describe_error(error))
        if member is not None:
            yield name, member


def tree_lines(node: zarrfs.Array | zarrfs.Group, indent: str, depth: int | None) -> Iterator[str]:
    """Yield the lines below a node."""
    if depth == 0:
        return
    entries = list(members(node))
    for position, (name, member) in enumerate(entries):
        last = position == len(entries) - 1
        head = f"{indent}{'└── ' if last else '├── '}{safe(name, MAX_LINE)}"
        try:
            line = error_suffix(member.reason) if isinstance(member, UnreadableMember) else suffix(member)
        except MemoryError:
            raise
        except Exception as error:
            member = UnreadableMember(describe_error(error))
            line = error_suffix(member.reason)
        yield head + line
        if isinstance(member, UnreadableMember):
            continue
        member_indent = indent + ("    " if last else "│   ")
        try:
            yield from tree_lines(member, member_indent, None if depth is None else depth - 1)
        except OSError as error:
            # The group exists, but its members cannot be listed.
            yield f"{member_indent}└──{error_suffix(describe_error(error))}"


def error_suffix(reason: str) -> str:
    """Return the text after the name of a broken member."""
    return click.style(f"  broken: {safe(reason)}", fg="red")


def array_properties(array: zarrfs.Array) -> dict[str, Any]:
    """Return the properties of an array that are shown, as JSON values."""
    return {
        "kind": "array",
        "path": array.name,
        "shape": list(array.shape),
        "data_type": array.spec.data_type.name,
        "chunks": json_safe(array.chunks),
        "shards": json_safe(array.shards),
    }


def suffix(node: zarrfs.Array | zarrfs.Group) -> str:
    """Return the text after the name of a node: the properties of an array, or nothing for a group."""
    if isinstance(node, zarrfs.Group):
        return ""
    properties = array_properties(node)
    shape = " x ".join(map(str, properties["shape"])) or "scalar"
    chunks = " x ".join(map(str, properties["chunks"])) or "one"
    shards = f", shards {' x '.join(map(str, properties['shards']))}" if properties["shards"] else ""
    return click.style(f"  {shape} {properties['data_type']}, chunks {chunks}{shards}", fg="cyan")


def as_object(node: zarrfs.Array | zarrfs.Group, depth: int | None) -> dict[str, Any]:
    """Return the hierarchy as nested objects."""
    if isinstance(node, zarrfs.Array):
        return array_properties(node)
    entry: dict[str, Any] = {"kind": "group", "path": node.name}
    if depth != 0:
        entry["members"] = {
            name: member_object(member, None if depth is None else depth - 1)
            for name, member in members(node)
        }
    return entry


def member_object(
    member: zarrfs.Array | zarrfs.Group | UnreadableMember, depth: int | None
) -> dict[str, Any]:
    """Return a member as nested objects. A broken member has the reason."""
    if isinstance(member, UnreadableMember):
        return {"kind": "broken", "error": member.reason}
    try:
        return as_object(member, depth)
    except MemoryError:
        raise
    except Exception as error:
        return {"kind": "broken", "error": describe_error(error)}
