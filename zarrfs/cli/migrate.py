"""``zarrfs migrate``: new documents for old chunks, in place."""

from __future__ import annotations

import click

from zarrfs.cli.transfer import say_lines
from zarrfs.cli.values import storage_option, storage_options
from zarrfs.tools import migrate

__all__ = ["command"]


@click.command(short_help="Give a hierarchy the documents of a newer format.")
@click.argument("location")
@click.option(
    "--to", "zarr_format", type=click.Choice(["2", "3"]), default="3", show_default=True, help="The format."
)
@click.option("--remove-old", is_flag=True, help="Delete the old documents when all new ones are there.")
@click.option("--dry-run", is_flag=True, help="Say what would be done; change nothing.")
@click.option("--keep-ngff", is_flag=True, help="Leave the version of OME-NGFF metadata as it is.")
@storage_option
def command(
    location: str,
    zarr_format: str,
    remove_old: bool,
    dry_run: bool,
    keep_ngff: bool,
    storage: tuple[str, ...],
) -> None:
    """Migrate the hierarchy at LOCATION from Zarr 1 or 2 to 2 or 3, in place. No chunk is touched.

    All is checked before anything is written. Dimension names and missing values are put where xarray looks for them in
    the new format, and OME-NGFF 0.4 becomes 0.5 in format 3. Until the old documents are removed, programs that know
    only the old format still read them.

    \b
    Examples:
      zarrfs migrate survey.zarr --dry-run
      zarrfs migrate survey.zarr --to 3 --remove-old
    """
    done = migrate(
        location,
        int(zarr_format),
        remove_old=remove_old,
        dry_run=dry_run,
        keep_ngff=keep_ngff,
        storage_options=storage_options(storage),
    )
    say_lines(done or [f"all is in format {zarr_format} already"], dry_run and bool(done))
