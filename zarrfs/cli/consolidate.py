"""``zarrfs consolidate``: write consolidated metadata, or check whether it is up to date."""

from __future__ import annotations

import click

from zarrfs.cli.console import safe
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.tools import consolidate_metadata, stale_consolidation
from zarrfs.tools.consolidation import group_to_consolidate

__all__ = ["command"]


@click.command()
@click.argument("location")
@click.option(
    "--check", "only_check", is_flag=True, help="Only check whether it is up to date. Exit with 1 if not."
)
@location_options
def command(location: str, only_check: bool, storage: tuple[str, ...]) -> None:
    """Write the metadata of all nodes of the group at LOCATION to one document.

    A web server cannot list names, so a hierarchy can be browsed there only with consolidated metadata. Format 2
    stores it in .zmetadata, and format 3 inline in zarr.json, as zarr-python does. Run the command again after every
    change of the hierarchy.

    \b
    Examples:
      zarrfs consolidate survey.zarr
      zarrfs consolidate survey.zarr --check
    """
    options = parse_storage_options(storage)
    if not only_check:
        group = consolidate_metadata(location, storage_options=options)
        count = sum(1 for path in group.spec.consolidated or () if path)
        click.echo(f"{count} {'node' if count == 1 else 'nodes'}")
        return
    problems = stale_consolidation(group_to_consolidate(location, storage_options=options))
    for problem in problems:
        click.echo(safe(problem))
    click.echo("out of date" if problems else "up to date")
    if problems:
        raise SystemExit(1)
