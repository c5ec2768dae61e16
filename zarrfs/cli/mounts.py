"""``zarrfs mounts``: list the mounts."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from zarrfs.cli.console import print_json, print_table, readable_bytes
from zarrfs.mount.process.listing import list_mounts

__all__ = ["command"]

HEADER = ("source", "mount point", "state", "pid", "cache size", "since")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the mounts of zarrfs: source, mount point, state, process, size of the cache, and time of mounting.

    A mount is stale if its process no longer exists; `zarrfs umount` removes it. For mounts of other users, only
    source and mount point are shown.

    \b
    Example:
      zarrfs mounts
    """
    listed = list_mounts()
    if as_json:
        print_json([asdict(mount) for mount in listed])
        return
    rows = [
        (
            " ".join(mount.sources),
            mount.mountpoint,
            mount.state,
            "-" if mount.pid is None else str(mount.pid),
            "-" if mount.cache_size is None else readable_bytes(mount.cache_size),
            "-" if mount.since is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(mount.since)),
        )
        for mount in listed
    ]
    if rows:
        print_table(HEADER, rows)
    else:
        click.echo("Nothing is mounted.")
