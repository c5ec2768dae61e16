"""``zarrfs clean``: remove what killed writers left behind."""

from __future__ import annotations

import click

from zarrfs.cli.console import safe
from zarrfs.cli.values import storage_option, storage_options
from zarrfs.tools import clean

__all__ = ["command"]


@click.command(short_help="Remove what killed writers left behind.")
@click.argument("location")
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
@storage_option
def command(location: str, dry_run: bool, storage: tuple[str, ...]) -> None:
    """Remove the hidden files below the directory LOCATION, or beside the archive, that writers left behind.

    A value is written to a hidden file that is renamed when it is complete. A writer that is killed leaves that file:
    it is never shown, but takes room. What a living process writes is left alone; what another machine wrote counts
    as left behind after a day.

    \b
    Examples:
      zarrfs clean survey.zarr --dry-run
      zarrfs clean survey.zarr
    """
    found = clean(location, dry_run=dry_run, storage_options=storage_options(storage))
    for path in found:
        click.echo(safe(path))
    click.echo(
        f"{len(found)} {'file' if len(found) == 1 else 'files'} {'left behind' if dry_run else 'removed'}"
    )
