"""``zarrfs clean``: remove temporary files and keys of processes that were killed."""

from __future__ import annotations

import click

from zarrfs.cli.console import safe
from zarrfs.cli.values import parse_storage_options, storage_option
from zarrfs.tools import clean

__all__ = ["command"]


@click.command()
@click.argument("location")
@click.option("--dry-run", is_flag=True, help="List the files, but do not remove them.")
@click.option(
    "--other-machines",
    is_flag=True,
    help="Also remove .zarrfs-copy-... names of other machines. None of them may be writing to LOCATION.",
)
@click.option(
    "--unreachable",
    is_flag=True,
    help="Also remove keys that resemble chunks of an array, but that no chunk of it has.",
)
@storage_option
def command(
    location: str, dry_run: bool, other_machines: bool, unreachable: bool, storage: tuple[str, ...]
) -> None:
    """Remove temporary files of killed writers below the directory LOCATION, or next to the archive LOCATION.

    A value is written to a hidden temporary file, which is renamed when it is complete. If the writer is killed, the
    file remains. It is never part of the hierarchy, but it occupies disk space. Files of running processes are not
    removed. Files of other machines are removed if they have not been modified for a day.

    Replacements of nodes, dry runs with --sample-writes and checks of a cluster write to names that begin with
    .zarrfs-copy-. Those of killed processes of this machine are removed below a directory, and in the root of any other
    store. A dry run writes next to a destination that is a directory: clean the directory that contains it.

    With --unreachable, keys that zarrfs verify reports as unreachable are removed as well: chunks outside of the grid
    of an array, and those of another dimension separator. They are kept if no chunk of the array is stored, because
    its metadata are probably wrong then.

    \b
    Examples:
      zarrfs clean survey.zarr --dry-run
      zarrfs clean survey.zarr --unreachable --dry-run
      zarrfs clean survey.zarr
    """
    paths = clean(
        location,
        dry_run=dry_run,
        other_machines=other_machines,
        unreachable=unreachable,
        storage_options=parse_storage_options(storage),
    )
    for path in paths:
        click.echo(safe(path))
    noun = ("" if unreachable else "temporary ") + ("file" if len(paths) == 1 else "files")
    click.echo(f"{len(paths)} {noun} {'found' if dry_run else 'removed'}")
