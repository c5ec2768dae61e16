"""``zarrfs tree``: show the hierarchy as a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click

import zarrfs
from zarrfs.cli.console import print_json, print_lines, safe
from zarrfs.cli.garbage import garbage_collection_paused
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.engine.hierarchy.summary import json_safe
from zarrfs.engine.hierarchy.unfinished import is_unfinished, unfinished_note
from zarrfs.engine.model import ArraySpec
from zarrfs.errors import describe_error

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
@location_options
def command(
    location: str,
    path: str,
    depth: int | None,
    as_json: bool,
    consolidated: bool,
    storage: tuple[str, ...],
) -> None:
    """Show the hierarchy at LOCATION, or at PATH below LOCATION: groups, and arrays with shape, data type and chunks.

    A member with invalid metadata is listed with the error.

    \b
    Examples:
      zarrfs tree image.zarr
      zarrfs tree survey.zarr.zip --depth 2
    """
    with garbage_collection_paused():
        node = zarrfs.open(
            location,
            path,
            storage_options=parse_storage_options(storage),
            use_consolidated=True if consolidated else None,
        )
        with node.store:
            if as_json:
                print_json(as_object(node, depth))
            else:
                print_lines(lines(node, depth))


@dataclass(frozen=True)
class UnreadableMember:
    """A member that cannot be opened, with the reason."""

    reason: str


@dataclass(frozen=True, eq=False)
class ListedArray:
    """The properties of an array that a listing shows, as JSON values, without the path."""

    properties: dict[str, Any]

    @property
    def shape(self) -> str:
        """The shape as text."""
        return " x ".join(map(str, self.properties["shape"])) or "scalar"

    @property
    def data_type(self) -> str:
        """The name of the data type."""
        return str(self.properties["data_type"])

    @property
    def chunks(self) -> str:
        """The chunk shape as text."""
        return " x ".join(map(str, self.properties["chunks"])) or "one"

    @cached_property
    def suffix(self) -> str:
        """The text after the name in a tree."""
        shards = self.properties["shards"]
        sharded = f", shards {' x '.join(map(str, shards))}" if shards else ""
        text = click.style(f"  {self.shape} {self.data_type}, chunks {self.chunks}{sharded}", fg="cyan")
        return text + unfinished_suffix("unfinished" in self.properties)


def listed_array(array: zarrfs.Array) -> ListedArray:
    """Return the properties of an array that a listing shows."""
    return ListedArray(
        {
            "shape": list(array.shape),
            "data_type": array.spec.data_type.name,
            "chunks": json_safe(array.chunks),
            "shards": json_safe(array.shards),
            **({"unfinished": True} if is_unfinished(array.attrs) else {}),
        }
    )


class Hierarchy:
    """The members of groups. An array in consolidated metadata is not opened if it differs from an opened array only in
    its attributes.
    """

    def __init__(self) -> None:
        # The templates are referenced because their identities are the keys.
        self._known: dict[int, tuple[ArraySpec, ListedArray]] = {}

    def members(self, group: zarrfs.Group) -> Iterator[tuple[str, Member]]:
        """Yield the name of each member, and what a listing shows of it."""
        template_of = group.array_templates()
        for name in _names(group):
            known = self._known.get(id(template_of(name)))
            if known is not None:
                yield name, known[1]
                continue
            member: Member | None
            try:
                member = self._open_member(group, name)
            except (MemoryError, zarrfs.ServerError):
                raise
            except Exception as error:  # an error in one member must not hide the others
                member = UnreadableMember(describe_error(error))
            if member is not None:
                yield name, member

    def _open_member(self, group: zarrfs.Group, name: str) -> Member | None:
        node: zarrfs.Array | zarrfs.Group | None = group.get(name)
        if not isinstance(node, zarrfs.Array):
            return node
        array = listed_array(node)
        template = group.array_templates()(name)
        if template is not None:
            self._known[id(template)] = template, array
        return array

    def lines(self, group: zarrfs.Group, indent: str, depth: int | None) -> Iterator[str]:
        """Yield the lines below a group, of ``depth`` levels; None for all."""
        if depth == 0:
            return
        entries = list(self.members(group))
        for position, (name, member) in enumerate(entries):
            last = position == len(entries) - 1
            head = f"{indent}{'└── ' if last else '├── '}{safe(name)}"
            if isinstance(member, ListedArray):
                yield head + member.suffix
                continue
            if isinstance(member, UnreadableMember):
                yield head + error_suffix(member.reason)
                continue
            yield head + unfinished_suffix(is_unfinished(member.attrs))
            member_indent = indent + ("    " if last else "│   ")
            try:
                yield from self.lines(member, member_indent, None if depth is None else depth - 1)
            except zarrfs.ServerError:
                raise
            except OSError as error:
                # The group exists, but its members cannot be listed.
                yield f"{member_indent}└──{error_suffix(describe_error(error))}"

    def as_object(self, group: zarrfs.Group, depth: int | None) -> dict[str, Any]:
        """Return a group and ``depth`` levels below it as nested objects; None for all."""
        entry = group_object(group)
        if depth != 0:
            below = None if depth is None else depth - 1
            entry["members"] = {
                name: self._member_object(f"{group.name.rstrip('/')}/{name}", member, below)
                for name, member in self.members(group)
            }
        return entry

    def _member_object(self, path: str, member: Member, depth: int | None) -> dict[str, Any]:
        """Return a member as nested objects. The object of a member that cannot be read contains the reason."""
        if not isinstance(member, zarrfs.Group):
            return member_object(path, member)
        try:
            return self.as_object(member, depth)
        except (MemoryError, zarrfs.ServerError):
            raise
        except Exception as error:
            return member_object(path, UnreadableMember(describe_error(error)))


Member = zarrfs.Group | ListedArray | UnreadableMember


def _names(group: zarrfs.Group) -> list[str]:
    """Return the sorted names of possible members of a group; as ``member_names``."""
    if group.store.listable:
        return group.names()
    # Most stores can list, and the import takes as long as listing hundreds of nodes.
    from zarrfs.ngff.members import member_names

    return member_names(group)


def as_object(node: zarrfs.Array | zarrfs.Group, depth: int | None) -> dict[str, Any]:
    """Return a node and ``depth`` levels below it as nested objects; None for all levels."""
    if isinstance(node, zarrfs.Array):
        return member_object(node.name, listed_array(node))
    return Hierarchy().as_object(node, depth)


def lines(node: zarrfs.Array | zarrfs.Group, depth: int | None) -> Iterator[str]:
    """Yield the lines of a node and of ``depth`` levels below it; None for all levels."""
    head = safe(node.store.url + (f"/{node.path}" if node.path else ""))
    if isinstance(node, zarrfs.Array):
        yield head + listed_array(node).suffix
        return
    yield head + unfinished_suffix(unfinished_note(node) is not None)
    yield from Hierarchy().lines(node, "", depth)


def error_suffix(reason: str) -> str:
    """Return the text after the name of a broken member."""
    return click.style(f"  broken: {safe(reason)}", fg="red")


def unfinished_suffix(is_shown: bool) -> str:
    """Return the text after the name of a node that a command has not completed; empty for others."""
    return click.style("  unfinished", fg="yellow") if is_shown else ""


def member_object(path: str, member: Member) -> dict[str, Any]:
    """Return a member as an object without its own members. A broken member has the reason."""
    if isinstance(member, UnreadableMember):
        return {"kind": "broken", "error": member.reason}
    if isinstance(member, ListedArray):
        return {"kind": "array", "path": path, **member.properties}
    return group_object(member)


def group_object(group: zarrfs.Group) -> dict[str, Any]:
    """Return a group as an object without its members."""
    return {
        "kind": "group",
        "path": group.name,
        **({"unfinished": True} if is_unfinished(group.attrs) else {}),
    }
