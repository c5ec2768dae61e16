"""``zarrfs copy``: copy a hierarchy unchanged between any two stores."""

from __future__ import annotations

import click

from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import CopyOptions, copy_options, print_report
from zarrfs.cli.values import allows_external
from zarrfs.errors import UnsupportedError
from zarrfs.files.hdf5.conversion import is_hdf5
from zarrfs.tools import convert, from_hdf5, to_hdf5

__all__ = ["command"]


@click.command()
@click.argument("source")
@click.argument("destination")
@copy_options
def command(
    source: str,
    destination: str,
    copying: CopyOptions,
) -> None:
    """Copy the array or hierarchy at SOURCE to DESTINATION. Chunks are copied unchanged, and so are files of other
    programs beside the arrays and groups.

    SOURCE and DESTINATION can be directories, zip files, databases and URLs. Zarr 1, which cannot be written, becomes
    Zarr 2. If SOURCE or DESTINATION is an HDF5 file (.h5, .hdf5, .nc), the data is converted: each object is copied
    once, and its other names are reported. A single array becomes the dataset "data".

    Exit codes: 0 success; 1 error; 2 incorrect usage; 3 members were skipped because of --skip-broken;
    130 interrupted.

    \b
    Examples:
      zarrfs copy image.zarr image.zarr.zip
      zarrfs copy https://example.org/image.zarr image.zarr --if-exists resume
      zarrfs copy https://example.org/image.zarr part.zarr --paths 0,labels/nuclei
      zarrfs copy simulation.h5 simulation.zarr
      zarrfs copy /shared/image.zarr s3://bucket/image.zarr --dask tcp://head:8786
      zarrfs copy image.zarr/labels sqlite:///data/labels.sqldb
    """
    if is_hdf5(source) or is_hdf5(destination):
        if (
            copying["if_exists"] != "raise"
            or copying["verify"]
            or copying["dry_run"]
            or copying["dask"]
            or copying["paths"] is not None
        ):
            raise UnsupportedError(
                "--if-exists, --verify, --dry-run, --paths and --dask are not supported for HDF5 files"
            )
        _copy_hdf5(source, destination, copying["skip_broken"], copying["nodes_only"], allows_external())
        return
    with progress_bar() as progress:
        report = convert(
            source,
            destination,
            progress=progress.show,
            worker_progress=progress.show_workers,
            **copying,
        )
    print_report(report, copying["dry_run"])


def _copy_hdf5(
    source: str, destination: str, skip_broken: bool, nodes_only: bool, allow_external: bool
) -> None:
    """Copy from or to an HDF5 file."""
    if is_hdf5(source) and is_hdf5(destination):
        raise UnsupportedError("SOURCE and DESTINATION are HDF5 files; copy them with cp or h5repack")
    if is_hdf5(source):
        report = from_hdf5(source, destination, skip_broken=skip_broken, allow_external=allow_external)
    else:
        report = to_hdf5(source, destination, skip_broken=skip_broken, nodes_only=nodes_only)
    print_report(report, False)
