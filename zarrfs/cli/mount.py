"""``zarrfs mount``: mount a hierarchy as files."""

from __future__ import annotations

import click

from zarrfs.cli.values import (
    SizeType,
    compression,
    document_option,
    format_name,
    lengths,
    storage_option,
    storage_options,
)
from zarrfs.mount.background import serve_in_background
from zarrfs.mount.options import CreationOptions, MountOptions
from zarrfs.mount.serving import serve

__all__ = ["command"]


@click.command(short_help="Mount a Zarr hierarchy as files.")
@click.argument("location")
@click.argument("mountpoint", type=click.Path())
@click.option("-f", "--foreground", is_flag=True, help="Run in the foreground. Ctrl-C unmounts.")
@click.option("--path", default="", help="Mount only the group or array at this path of the hierarchy.")
@click.option(
    "--cache-size",
    type=SizeType(),
    default=None,
    help="Size of the cache of decoded chunks, such as 500M or 8G; 0 disables it. Default: a quarter of the memory.",
)
@click.option(
    "--views", is_flag=True, help="List all kinds of files of each array, not only .npy, .raw and .json."
)
@click.option(
    "--immutable",
    is_flag=True,
    help="The data never changes, so the kernel may cache it without revalidation.",
)
@click.option(
    "--allow-other",
    is_flag=True,
    help="Allow other users to read the files (needs user_allow_other in /etc/fuse.conf).",
)
@click.option("--rw", "writable", is_flag=True, help="Files can be changed, created and removed.")
@click.option(
    "--synchronizer",
    type=click.Path(file_okay=False),
    help="With --rw: the directory of the ProcessSynchronizer of other programs that write to the store.",
)
@click.option("--create-format", help="With --rw: the Zarr format of new arrays. Default: that of the group.")
@click.option("--create-chunks", help="With --rw: the chunk shape of new arrays, such as 64,64,64, or auto.")
@click.option("--create-codec", help="With --rw: the compression of new arrays, such as zstd or none.")
@click.option("--log-file", type=click.Path(dir_okay=False), help="Log file of a background mount.")
@click.option(
    "-o",
    "fuse_options",
    multiple=True,
    metavar="OPTION[=VALUE]",
    help="An additional option for libfuse. Repeatable.",
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
    writable: bool,
    synchronizer: str | None,
    create_format: str | None,
    create_chunks: str | None,
    create_codec: str | None,
    log_file: str | None,
    fuse_options: tuple[str, ...],
    max_document: int | None,
    storage: tuple[str, ...],
) -> None:
    """Mount the Zarr hierarchy at LOCATION as files in the empty directory MOUNTPOINT. They are read-only without --rw.

    LOCATION is a directory, a zip file, a URL, or a path inside one of them. Groups become directories. An array IMG
    becomes IMG.npy (a NumPy file), IMG.raw (the elements without a header) and IMG.json (its metadata). Only the
    chunks that are read are decoded. The command returns when the mount is ready, and the mount runs in the
    background. Use `zarrfs umount MOUNTPOINT` to unmount.

    \b
    Examples:
      zarrfs mount image.zarr /mnt/image
      zarrfs mount -f survey.zarr.zip /mnt/survey
      zarrfs mount image.zarr/labels /mnt/labels --cache-size 2G
      python -c "import numpy as np; print(np.load('/mnt/image/0.npy', mmap_mode='r')[0].mean())"

    Reading bytes of a corrupt chunk fails with an input/output error. The log contains the reason (--log-file, by
    default ~/.local/state/zarrfs/mount.log; standard error with -f).
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
        writable=writable,
        synchronizer=synchronizer,
        creation=CreationOptions(
            format_name(create_format), lengths(create_chunks), compression(create_codec)
        ),
    )
    if foreground:
        serve(location, mountpoint, options)
    else:
        serve_in_background(location, mountpoint, options)
