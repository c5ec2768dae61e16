"""``zarrfs tree``: the hierarchy at a glance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import zarrfs
from zarrfs.cli.console import print_json, safe
from zarrfs.cli.values import storage_option, storage_options
from zarrfs.engine.summary import array_summary
from zarrfs.errors import MetadataError, NodeNotFoundError, StoreError, ZarrError
from zarrfs.ngff.members import member_names

__all__ = ["command"]


@click.command(short_help="Draw the hierarchy.")
@click.argument("location")
@click.argument("path", default="")
@click.option("--depth", type=click.IntRange(min=1), help="How many levels to go down; all by default.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: nested objects with 'members'.")
@storage_option
def command(location: str, path: str, depth: int | None, as_json: bool, storage: tuple[str, ...]) -> None:
    """Draw the hierarchy at LOCATION (and PATH below it): groups, and arrays with shape, data type and chunks.

    A member whose metadata are broken is shown with the reason.

    \b
    Examples:
      zarrfs tree image.zarr
      zarrfs tree survey.zarr.zip --depth 2
    """
    node = zarrfs.open(location, path, storage_options=storage_options(storage))
    with node.store:
        if as_json:
            print_json(as_object(node, depth))
            return
        click.echo(safe(node.store.url + (f"/{node.path}" if node.path else "")) + suffix(node))
        for line in branches(node, "", depth):
            click.echo(line)


def members(
    node: zarrfs.Array | zarrfs.Group,
) -> Iterator[tuple[str, zarrfs.Array | zarrfs.Group | ZarrError]]:
    """Yield each member, or why it cannot be opened."""
    if isinstance(node, zarrfs.Array):
        return
    for name in member_names(node):
        try:
            yield name, node[name]
        except NodeNotFoundError:
            continue
        except (MetadataError, StoreError) as error:
            yield name, error


def branches(node: zarrfs.Array | zarrfs.Group, indent: str, depth: int | None) -> Iterator[str]:
    """Yield the lines below a node."""
    if depth == 0:
        return
    found = list(members(node))
    for position, (name, member) in enumerate(found):
        last = position == len(found) - 1
        head = f"{indent}{'└── ' if last else '├── '}{safe(name)}"
        if isinstance(member, ZarrError):
            yield head + click.style(f"  broken: {safe(str(member))}", fg="red")
            continue
        yield head + suffix(member)
        yield from branches(
            member, indent + ("    " if last else "│   "), None if depth is None else depth - 1
        )


def suffix(node: zarrfs.Array | zarrfs.Group) -> str:
    """Return what stands behind an array's name."""
    if isinstance(node, zarrfs.Group):
        return ""
    facts = array_summary(node)
    shape = " x ".join(map(str, facts["shape"])) or "scalar"
    chunks = " x ".join(map(str, facts["chunks"])) or "one"
    shards = f", shards {' x '.join(map(str, facts['shards']))}" if facts["shards"] else ""
    return click.style(f"  {shape} {facts['data_type']}, chunks {chunks}{shards}", fg="cyan")


def as_object(node: zarrfs.Array | zarrfs.Group, depth: int | None) -> dict[str, Any]:
    """Return the hierarchy as nested objects."""
    if isinstance(node, zarrfs.Array):
        facts = array_summary(node)
        return {key: facts[key] for key in ("kind", "path", "shape", "data_type", "chunks", "shards")}
    entry: dict[str, Any] = {"kind": "group", "path": node.name}
    if depth != 0:
        entry["members"] = {
            name: {"kind": "broken", "error": str(member)}
            if isinstance(member, ZarrError)
            else as_object(member, None if depth is None else depth - 1)
            for name, member in members(node)
        }
    return entry
