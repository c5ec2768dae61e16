"""``zarrfs mounts``: list the mounts, and commit the changes of a mounted branch."""

from __future__ import annotations

import time
from dataclasses import asdict

import click

from zarrfs.cli.console import print_json, print_table, readable_bytes, safe_message
from zarrfs.cli.values import MountedPath
from zarrfs.mount.process.commits import commit_mount
from zarrfs.mount.process.listing import list_mounts

__all__ = ["command"]

HEADER = ("source", "mount point", "state", "pid", "cache size", "since")


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """List the mounts of zarrfs: source, mount point, state, process, size of the cache, and time of mounting.

    A mount is stale if its process no longer exists; `zarrfs umount` removes it. For mounts of other users, only
    source and mount point are shown.

    \b
    Examples:
      zarrfs mounts
      zarrfs mounts commit /mnt/repository --message "New labels"
    """
    if context.invoked_subcommand is not None:
        return
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


@command.command("commit")
@click.argument("mountpoint", type=MountedPath())
@click.option("--message", default="", metavar="TEXT", help="The message of the snapshot.")
def commit(mountpoint: str, message: str) -> None:
    """Commit what was written through the writable mount of a branch of an Icechunk repository.

    What is written to files that are still open is a part of the snapshot. Unmounting commits, too.

    \b
    Example:
      zarrfs mounts commit /mnt/repository --message "New labels"
    """
    click.echo(safe_message(commit_mount(mountpoint, message)))
