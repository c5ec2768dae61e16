"""``zarrfs copy``: copy a hierarchy as it is, between any two stores."""

from __future__ import annotations

import click

from zarrfs.cli.transfer import copy_options, progress_bar, say_lines
from zarrfs.cli.values import storage_options
from zarrfs.tools import convert

__all__ = ["command"]


@click.command(short_help="Copy between stores.")
@click.argument("source")
@click.argument("destination")
@copy_options
def command(
    source: str,
    destination: str,
    if_exists: str,
    verify: bool,
    dry_run: bool,
    memory: int,
    storage: tuple[str, ...],
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION, chunks as they are.

    Between directories, zip files, databases and URLs of any kind. (What is no longer written, Zarr 1, becomes 2.)

    \b
    Examples:
      zarrfs copy image.zarr image.zarr.zip
      zarrfs copy https://example.org/image.zarr image.zarr --if-exists resume
      zarrfs copy image.zarr/labels sqlite:///data/labels.sqldb
    """
    with progress_bar() as progress:
        done = convert(
            source,
            destination,
            if_exists=if_exists,  # type: ignore[arg-type]
            verify=verify,
            memory=memory,
            dry_run=dry_run,
            progress=progress,
            storage_options=storage_options(storage),
        )
    say_lines(done, dry_run)
