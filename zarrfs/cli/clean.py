"""``zarrfs clean``: remove temporary files of writers that were killed."""

from __future__ import annotations

import click

from zarrfs.cli.console import safe
from zarrfs.cli.values import parse_storage_options, storage_option
from zarrfs.tools import clean

__all__ = ["command"]


@click.command()
@click.argument("location")
@click.option("--dry-run", is_flag=True, help="List the files, but do not remove them.")
@storage_option
def command(location: str, dry_run: bool, storage: tuple[str, ...]) -> None:
    """Remove temporary files of killed writers below the directory LOCATION, or next to the archive LOCATION.

    A value is written to a hidden temporary file, which is renamed when it is complete. If the writer is killed, the
    file remains. It is never part of the hierarchy, but it occupies disk space. Files of running processes are not
    removed. Files of other machines are removed if they have not been modified for a day.

    \b
    Examples:
      zarrfs clean survey.zarr --dry-run
      zarrfs clean survey.zarr
    """
    paths = clean(location, dry_run=dry_run, storage_options=parse_storage_options(storage))
    for path in paths:
        click.echo(safe(path))
    noun = "temporary file" if len(paths) == 1 else "temporary files"
    click.echo(f"{len(paths)} {noun} {'found' if dry_run else 'removed'}")
