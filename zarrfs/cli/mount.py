"""``zarrfs mount``: show a hierarchy as files."""

from __future__ import annotations

import click

from zarrfs.cli.values import SizeType, document_option, storage_option, storage_options
from zarrfs.mount.mounting import MountOptions, serve, serve_in_background

__all__ = ["command"]


@click.command(short_help="Show a Zarr hierarchy as ordinary files.")
@click.argument("location")
@click.argument("mountpoint", type=click.Path())
@click.option("-f", "--foreground", is_flag=True, help="Stay in the foreground; Ctrl-C unmounts.")
@click.option("--path", default="", help="Mount only the group or array at this path of the hierarchy.")
@click.option(
    "--cache-size",
    type=SizeType(),
    default=None,
    help="Memory for decoded chunks, such as 500M or 8G; 0 keeps none. Default: a quarter of the memory.",
)
@click.option(
    "--views", is_flag=True, help="List every kind of file for each array, not just .npy, .raw and .json."
)
@click.option(
    "--immutable", is_flag=True, help="Promise that the data do not change: the kernel caches for good."
)
@click.option(
    "--allow-other", is_flag=True, help="Let other users read (needs user_allow_other in /etc/fuse.conf)."
)
@click.option("--log-file", type=click.Path(dir_okay=False), help="Log of a mount in the background.")
@click.option(
    "-o", "fuse_options", multiple=True, metavar="OPTION[=VALUE]", help="A further option for libfuse."
)
@document_option
@storage_option
def command(
    location: str,
    mountpoint: str,
    foreground: bool,
    path: str,
    cache_size: int | None,
    views: bool,
    immutable: bool,
    allow_other: bool,
    log_file: str | None,
    fuse_options: tuple[str, ...],
    max_document: int | None,
    storage: tuple[str, ...],
) -> None:
    """Show the Zarr hierarchy at LOCATION as files in the empty directory MOUNTPOINT.

    LOCATION is a directory, a zip file, or a path into one. Groups become directories; an array IMG becomes IMG.npy
    (for NumPy), IMG.raw (the bare elements) and IMG.json (what it is). Only the chunks that are read are decoded.
    The mount is read-only. The command returns when the files are there; `zarrfs umount MOUNTPOINT` removes them.

    \b
    Examples:
      zarrfs mount image.zarr /mnt/image
      zarrfs mount -f survey.zarr.zip /mnt/survey
      zarrfs mount image.zarr/labels /mnt/labels --cache-size 2G
      python -c "import numpy as np; print(np.load('/mnt/image/0.npy', mmap_mode='r')[0].mean())"

    A broken chunk gives an input/output error for its bytes and a line in the log
    (--log-file, by default ~/.local/state/zarrfs/mount.log; on the terminal with -f).
    """
    options = MountOptions(
        path=path,
        cache_size=cache_size,
        list_all_views=views,
        immutable=immutable,
        allow_other=allow_other,
        log_file=log_file,
        fuse_options=fuse_options,
        storage_options=storage_options(storage),
        max_document=max_document,
    )
    if foreground:
        serve(location, mountpoint, options)
    else:
        serve_in_background(location, mountpoint, options)
