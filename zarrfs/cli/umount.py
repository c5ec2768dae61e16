"""``zarrfs umount``: unmount hierarchies."""

from __future__ import annotations

import click

from zarrfs.cli.values import MountedPath
from zarrfs.errors import MountError
from zarrfs.mount.process.unmounting import unmount

__all__ = ["command"]


@click.command()
@click.argument("mountpoints", metavar="MOUNTPOINT...", type=MountedPath(), nargs=-1, required=True)
@click.option(
    "--lazy",
    is_flag=True,
    help="Unmount even if files are open. Open files remain readable until they are closed.",
)
def command(mountpoints: tuple[str, ...], lazy: bool) -> None:
    """Unmount each MOUNTPOINT. Stale mounts ("Transport endpoint is not connected") are removed too.

    If one of them cannot be unmounted, the others are still unmounted, and the exit code is 1.

    \b
    Example:
      zarrfs umount /mnt/image /mnt/labels
    """
    failures = []
    for mountpoint in mountpoints:
        try:
            unmount(mountpoint, lazy=lazy)
        except MountError as error:
            failures.append(str(error))
    if failures:
        raise MountError("; ".join(failures))
