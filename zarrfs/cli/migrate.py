"""``zarrfs migrate``: write the metadata documents of a newer format in place."""

from __future__ import annotations

import click

from zarrfs.cli.transfer import print_report
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.tools import migrate

__all__ = ["command"]


@click.command()
@click.argument("location")
@click.option(
    "--to",
    "zarr_format",
    type=click.Choice(["2", "3"]),
    default="3",
    show_default=True,
    help="The Zarr format to migrate to.",
)
@click.option(
    "--remove-old", is_flag=True, help="Delete the old documents after all new documents have been written."
)
@click.option("--dry-run", is_flag=True, help="Show what would be done without changing anything.")
@click.option("--keep-ngff", is_flag=True, help="Do not change the version of OME-NGFF metadata.")
@location_options
def command(
    location: str,
    zarr_format: str,
    remove_old: bool,
    dry_run: bool,
    keep_ngff: bool,
    storage: tuple[str, ...],
) -> None:
    """Migrate the hierarchy at LOCATION from Zarr 1 or 2 to Zarr 2 or 3 in place. Chunks are not changed.

    All nodes are checked before anything is written. Dimension names and missing values are stored where xarray
    expects them in the new format, and OME-NGFF 0.4 becomes 0.5 in format 3. Until the old documents are removed,
    programs that support only the old format can still read the hierarchy.

    \b
    Examples:
      zarrfs migrate survey.zarr --dry-run
      zarrfs migrate survey.zarr --to 3 --remove-old
    """
    report = migrate(
        location,
        int(zarr_format),
        remove_old=remove_old,
        dry_run=dry_run,
        keep_ngff=keep_ngff,
        storage_options=parse_storage_options(storage),
    )
    print_report(report or [f"all nodes already have format {zarr_format}"], dry_run and bool(report))
