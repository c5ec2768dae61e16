"""``zarrfs umount``: unmount a hierarchy."""

from __future__ import annotations

import click

from zarrfs.mount.unmounting import unmount

__all__ = ["command"]


@click.command(short_help="Unmount a hierarchy that zarrfs mount has mounted.")
@click.argument("mountpoint", type=click.Path())
@click.option(
    "--lazy",
    is_flag=True,
    help="Unmount even if files are open. Open files remain readable until they are closed.",
)
def command(mountpoint: str, lazy: bool) -> None:
    """Unmount MOUNTPOINT. Stale mounts ("Transport endpoint is not connected") are removed too.

    \b
    Example:
      zarrfs umount /mnt/image
    """
    unmount(mountpoint, lazy=lazy)
