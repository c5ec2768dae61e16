"""``zarrfs copy``: copy a hierarchy as it is, between any two stores."""

from __future__ import annotations

import click

from zarrfs.cli.transfer import copy_options, progress_bar, say_lines
from zarrfs.cli.values import allows_external, storage_options
from zarrfs.errors import UnsupportedError
from zarrfs.tools import convert, from_hdf5, to_hdf5
from zarrfs.tools.copying.advice import command_line
from zarrfs.tools.hdf5.conversion import is_hdf5

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
    skip_broken: bool,
    memory: int,
    dask: str | None,
    storage: tuple[str, ...],
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION, chunks as they are.

    Between directories, zip files, databases and URLs of any kind. (What is no longer written, Zarr 1, becomes 2.)
    An HDF5 file on one side (.h5, .hdf5, .nc) is translated: each object once, other names of it are reported.

    Exit codes: 0 all was copied; 1 an error, named in one line; 2 wrong use; 3 members were left out because of
    --skip-broken; 130 interrupted.

    \b
    Examples:
      zarrfs copy image.zarr image.zarr.zip
      zarrfs copy https://example.org/image.zarr image.zarr --if-exists resume
      zarrfs copy simulation.h5 simulation.zarr
      zarrfs copy /shared/image.zarr s3://bucket/image.zarr --dask tcp://head:8786
      zarrfs copy image.zarr/labels sqlite:///data/labels.sqldb
    """
    if is_hdf5(source) or is_hdf5(destination):
        if if_exists != "raise" or verify or dry_run or dask is not None:
            raise UnsupportedError(
                "HDF5 is copied whole and anew: without --if-exists, --verify, --dry-run and --dask"
            )
        _copy_hdf5(source, destination, skip_broken, allows_external())
        return
    with progress_bar() as progress:
        done = convert(
            source,
            destination,
            if_exists=if_exists,  # type: ignore[arg-type]
            verify=verify,
            memory=memory,
            dry_run=dry_run,
            skip_broken=skip_broken,
            progress=progress,
            dask=dask,
            storage_options=storage_options(storage),
        )
    say_lines(done, dry_run)


def _copy_hdf5(source: str, destination: str, skip_broken: bool, allow_external: bool) -> None:
    """Translate an HDF5 file, or into one."""
    if is_hdf5(source) and is_hdf5(destination):
        raise UnsupportedError("both are HDF5 files: copy them with cp, or repack them with h5repack")
    with command_line():
        if is_hdf5(source):
            done = from_hdf5(source, destination, skip_broken=skip_broken, allow_external=allow_external)
        else:
            done = to_hdf5(source, destination, skip_broken=skip_broken)
    say_lines(done, False)
