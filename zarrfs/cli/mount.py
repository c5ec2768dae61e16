"""``zarrfs mount``: mount hierarchies as files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from zarrfs.cli.creation_options import creation_option
from zarrfs.cli.mount_options import OptionCommand
from zarrfs.cli.values import (
    SizeType,
    document_option,
    parse_storage_options,
    storage_option,
)
from zarrfs.credentials import register_secrets, register_url
from zarrfs.errors import MountError
from zarrfs.logs import logger
from zarrfs.mount.options import DEFAULT_RETRIES, DEFAULT_TIMEOUT_SECONDS, CreationOptions, MountOptions
from zarrfs.mount.process.process_arguments import hide_credentials_in_arguments
from zarrfs.text import short_repr

__all__ = ["PASSWORD_VARIABLE", "command"]

PASSWORD_VARIABLE = "ZARRFS_PASSWORD"
"""The environment variable with the password, if --password-file is not given."""

MAX_PASSWORD_NBYTES = 64 << 10

MAX_TIMEOUT_SECONDS = 24 * 3600.0

WRITABLE = "With --rw"


class ViewsType(click.ParamType):  # type: ignore[type-arg]  # generic only to newer versions of click
    """Names of views, separated by commas, or by colons in a list of mount options."""

    name = "views"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(
            name.strip().removeprefix(".") for name in str(value).replace(":", ",").split(",") if name.strip()
        )
        if not names:
            self.fail(
                f"{short_repr(value)} names no view; expected names such as npy,raw,nii or all", param, ctx
            )
        return names


class OctalType(click.ParamType):  # type: ignore[type-arg]
    """Permission bits in octal notation."""

    name = "octal"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            bits = int(str(value), 8)
        except ValueError:
            bits = -1
        if not 0 <= bits <= 0o777:
            self.fail(f"{short_repr(value)} is not a umask; expected an octal number such as 022", param, ctx)
        return bits


@click.command(cls=OptionCommand)
@click.argument("locations", metavar="LOCATION... [MOUNTPOINT]", nargs=-1, required=True)
@click.option("-f", "--foreground", is_flag=True, help="Run in the foreground. Ctrl-C unmounts.")
@click.option("--path", default="", help="Mount only the group or array at this path of the hierarchy.")
@click.option(
    "--cache-size",
    type=SizeType(),
    default=None,
    help="Size of the cache of decoded chunks, such as 500M or 8G; 0 disables it. Default: a quarter of the memory.",
)
@click.option(
    "--views",
    type=ViewsType(),
    default=None,
    help="The kinds of files that are listed, such as npy,raw,nii, or all. Default: npy,raw,json. "
    "Files of other kinds can still be opened.",
)
@click.option(
    "--order",
    type=click.Choice(["C", "F"], case_sensitive=False),
    default="C",
    show_default=True,
    help="The memory order of the listed files of elements: C lists IMG.npy and IMG.raw, F lists IMG.F.npy and "
    "IMG.F.raw (the first dimension varies fastest) instead. It does not apply with --views.",
)
@click.option(
    "--immutable",
    is_flag=True,
    help="The data never changes, so the kernel may cache it without revalidation.",
)
@click.option(
    "--allow-other",
    is_flag=True,
    help="Allow other users to read the files (needs user_allow_other in /etc/fuse.conf). The kernel checks the "
    "permissions, which are those of the store.",
)
@click.option("--rw", "writable", is_flag=True, help="Files can be changed, created and removed.")
@click.option(
    "--synchronizer",
    type=click.Path(file_okay=False),
    help="With --rw: the directory of the ProcessSynchronizer of other programs that write to the store.",
)
@creation_option(
    "zarr_format", "--create-format", "create_format", condition=WRITABLE, default="that of the group"
)
@creation_option("chunks", "--create-chunks", "create_chunks", condition=WRITABLE, default="auto")
@creation_option("compressors", "--create-codec", "create_codec", condition=WRITABLE, default="auto")
@click.option("--uid", type=click.IntRange(0, 2**32 - 2), help="The user ID of the owner of all files.")
@click.option("--gid", type=click.IntRange(0, 2**32 - 2), help="The group ID of all files.")
@click.option(
    "--umask", type=OctalType(), help="Permission bits that no file has, in octal notation such as 027."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, MAX_TIMEOUT_SECONDS, min_open=True),
    default=DEFAULT_TIMEOUT_SECONDS,
    show_default=True,
    help="The maximum time of a request to a server in seconds, including retries.",
)
@click.option(
    "--retries",
    type=click.IntRange(0, 100),
    default=DEFAULT_RETRIES,
    show_default=True,
    help="How often a failed request to a server is repeated.",
)
@click.option(
    "--on-error",
    type=click.Choice(["eio", "fill"]),
    default="eio",
    show_default=True,
    help="What a corrupt chunk reads as: an input/output error, or the fill value.",
)
@click.option("--log-file", type=click.Path(dir_okay=False), help="Log file of a background mount.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    help="The minimum level of messages in the log.",
)
@click.option(
    "--metrics",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve statistics as Prometheus text at http://127.0.0.1:PORT/metrics.",
)
@click.option(
    "--password-file",
    metavar="FILE",
    help="Read the password for the user in LOCATION from the first line of FILE; - is standard input. "
    f"Default: ${PASSWORD_VARIABLE}.",
)
@click.option("-d", "--debug", is_flag=True, help="Print each request of the kernel. Implies -f.")
@click.option(
    "-o",
    "fuse_options",
    multiple=True,
    metavar="OPTION[=VALUE],...",
    help="Options in the form of mount(8): those of this command (cache_size=2G), and those of libfuse. Repeatable.",
)
@document_option()
@storage_option
def command(
    locations: tuple[str, ...],
    foreground: bool,
    cache_size: int | None,
    debug: bool,
    password_file: str | None,
    storage: tuple[str, ...],
    create_format: int | str | None,
    create_chunks: Any,
    create_codec: Any,
    **mount_options: Any,
) -> None:
    """Mount the Zarr hierarchy at LOCATION as files in the empty directory MOUNTPOINT. They are read-only without --rw.

    LOCATION is a directory, a zip file, a URL, or a path inside one of them. Groups become directories. An array IMG
    becomes IMG.npy (a NumPy file), IMG.raw (the elements without a header) and IMG.json (its metadata). Only the
    chunks that are read are decoded. The command returns when the mount is ready, and the mount runs in the
    background. Use `zarrfs umount MOUNTPOINT` to unmount.

    With several locations each becomes a directory of the mount. Without MOUNTPOINT a directory with the name of the
    location is created in the current directory, and removed with the mount.

    \b
    Examples:
      zarrfs mount image.zarr /mnt/image
      zarrfs mount image.zarr
      zarrfs mount -f survey.zarr.zip /mnt/survey
      zarrfs mount first.zarr second.zarr /mnt/both
      zarrfs mount image.zarr/labels /mnt/labels --cache-size 2G
      python -c "import numpy as np; print(np.load('/mnt/image/0.npy', mmap_mode='r')[0].mean())"

    Reading bytes of a corrupt chunk fails with an input/output error. The log contains the reason (--log-file, by
    default ~/.local/state/zarrfs/mount.log; standard error with -f).
    """
    _use_utf_8()
    *sources, last = locations
    sources = sources or [last]
    options = MountOptions(
        cache_size=cache_size,
        debug=debug,
        password=_password(password_file),
        storage_options=parse_storage_options(storage),
        creation=CreationOptions(create_format, create_chunks, create_codec),
        **mount_options,
    )
    for source in sources:
        register_url(source)
    register_secrets(options.storage_options)
    hide_credentials_in_arguments()
    if debug:
        logger.setLevel("DEBUG")
    elif options.log_level is not None:
        logger.setLevel(options.log_level.upper())
    mountpoint, is_created = (last, False) if len(locations) > 1 else _derive(last)
    try:
        if foreground or debug:
            from zarrfs.mount.process.serving import serve

            serve(sources, mountpoint, options, is_created=is_created)
        else:
            from zarrfs.mount.process.background import serve_in_background

            serve_in_background(sources, mountpoint, options, is_created=is_created)
    except BaseException:
        _remove(mountpoint, is_created)
        raise
    if len(locations) == 1 and not (foreground or debug):
        click.echo(mountpoint)


def _use_utf_8() -> None:
    """Start the command again in the UTF-8 mode of Python if the locale has another encoding.

    Names in the metadata and in the store are UTF-8, and could not be the names of files in other encodings.
    """
    mode = ["-X", "utf8"]
    if sys.getfilesystemencoding() != "utf-8" and sys.orig_argv[1:3] != mode:
        os.execv(sys.executable, [sys.executable, *mode, *sys.orig_argv[1:]])


def _derive(location: str) -> tuple[str, bool]:
    from zarrfs.mount.process.mountpoints import derive_mountpoint
    from zarrfs.mount.process.sources import source_names

    return derive_mountpoint(source_names([location])[0])


def _remove(mountpoint: str, is_created: bool) -> None:
    """Remove a mount point that was created for a mount that failed."""
    if is_created:
        try:
            os.rmdir(mountpoint)  # A mount point cannot be removed, and the mount is not accessed.
        except OSError as error:
            logger.debug("%s was not removed: %s", mountpoint, error)


def _password(path: str | None) -> str | None:
    """Return the password from a file, standard input (``-``) or the environment, or None. Raises MountError."""
    # Programs that the mount starts do not need it.
    value = os.environ.pop(PASSWORD_VARIABLE, None)
    if path is not None:
        try:
            with sys.stdin.buffer if path == "-" else Path(path).expanduser().open("rb") as file:
                line = file.readline(MAX_PASSWORD_NBYTES)
        except OSError as error:
            raise MountError(f"the password file {path} cannot be read: {error.strerror}") from error
        try:
            value = line.rstrip(b"\r\n").decode()
        except UnicodeDecodeError:
            raise MountError(f"the first line of the password file {path} is not UTF-8 text") from None
        if not value:
            raise MountError(f"the first line of the password file {path} is empty; expected a password")
    register_secrets({"password": value} if value else None)
    return value or None
