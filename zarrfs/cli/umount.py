"""``zarrfs umount``: remove a mount."""

from __future__ import annotations

import click

from zarrfs.mount.mounting import unmount

__all__ = ["command"]


@click.command(short_help="Remove a mount made by zarrfs mount.")
@click.argument("mountpoint", type=click.Path())
@click.option(
    "--lazy", is_flag=True, help="Remove it although files are open; they stay readable until closed."
)
def command(mountpoint: str, lazy: bool) -> None:
    """Remove the mount at MOUNTPOINT, also one whose process is gone ("Transport endpoint is not connected").

    \b
    Example:
      zarrfs umount /mnt/image
    """
    unmount(mountpoint, lazy=lazy)
