"""``zarrfs ls``: list the members of a group."""

from __future__ import annotations

import click

import zarrfs
from zarrfs.cli.console import print_json, print_table, safe
from zarrfs.cli.tree import Hierarchy, Member, UnreadableMember, as_object, listed_array, member_object
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.engine.hierarchy.unfinished import is_unfinished, unfinished_note

__all__ = ["command"]


@click.command(short_help="List the members of a group.")
@click.argument("location")
@click.argument("path", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: an object with the members.")
@location_options
def command(location: str, path: str, as_json: bool, storage: tuple[str, ...]) -> None:
    """List the members of the group at LOCATION, or at PATH below LOCATION, with their shape, data type and chunks.

    If LOCATION is an array, the array itself is listed. A member with invalid metadata is listed with the error.
    zarrfs tree lists all levels.

    \b
    Examples:
      zarrfs ls survey.zarr
      zarrfs ls survey.zarr.zip labels
    """
    node = zarrfs.open(location, path, storage_options=parse_storage_options(storage))
    with node:
        if isinstance(node, zarrfs.Array):
            name = node.basename or "/"
            entries: list[tuple[str, Member]] = [(name, listed_array(node))]
            members = {name: as_object(node, 0)}
        else:
            entries = list(Hierarchy().members(node))
            members = {
                name: member_object(f"{node.name.rstrip('/')}/{name}", member) for name, member in entries
            }
        if as_json:
            print_json(members)
            return
        print_table(
            ("name", "kind", "shape", "data type", "chunks"), [_row(name, item) for name, item in entries]
        )
        note = unfinished_note(node)
    if note is not None:
        click.echo(safe(f"{location}: {note}"), err=True)
    # Reasons are sentences, which would make the columns of the table very wide.
    for name, item in entries:
        if isinstance(item, UnreadableMember):
            click.echo(safe(f"{name}: {item.reason}"), err=True)


def _kind(kind: str, is_unfinished: bool) -> str:
    return f"{kind} (unfinished)" if is_unfinished else kind


def _row(name: str, member: Member) -> tuple[str, ...]:
    if isinstance(member, UnreadableMember):
        return name, "broken", "", "", ""
    if isinstance(member, zarrfs.Group):
        return name, _kind("group", is_unfinished(member.attrs)), "", "", ""
    return (
        name,
        _kind("array", "unfinished" in member.properties),
        member.shape,
        member.data_type,
        member.chunks,
    )
