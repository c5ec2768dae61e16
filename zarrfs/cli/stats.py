"""``zarrfs stats``: show the statistics of a mount."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import click

from zarrfs.cli.console import print_json, print_properties, readable_bytes
from zarrfs.cli.values import MountedPath
from zarrfs.mount.process.listing import read_statistics

__all__ = ["command"]


@click.command()
@click.argument("mountpoint", type=MountedPath())
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(mountpoint: str, as_json: bool) -> None:
    """Show the statistics of the mount at MOUNTPOINT, or of the mount that contains it.

    The statistics are: requests, hit rates of the caches, decoded chunks and bytes, blocks that were read ahead,
    requests in progress, memory, and errors. The file .zarrfs/stats.json in the mount contains the same as JSON.

    \b
    Example:
      zarrfs stats /mnt/image
    """
    statistics = read_statistics(mountpoint)
    if as_json:
        print_json(statistics)
    else:
        print_properties(statistics_rows(statistics))


def statistics_rows(statistics: dict[str, Any]) -> Iterator[tuple[str, str | list[str]]]:
    """Yield the lines of the table: name and value."""
    mount, queue = statistics["mount"], statistics["queue"]
    chunks, blocks, memory = statistics["chunk_cache"], statistics["blocks"], statistics["memory"]
    yield "source", list(map(str, mount["sources"])) or "-"
    if mount.get("unfinished"):
        yield "unfinished", list(map(str, mount["unfinished"]))
    yield "mount point", mount["mountpoint"]
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(mount["since"]))
    yield "process", f"{mount['pid']}, since {since} ({mount['uptime']:.0f} s)"
    yield "requests", _counts(statistics["requests"])
    yield "in progress", f"{queue['active']} (at most {queue['max_active']})"
    yield "read", readable_bytes(statistics["read_nbytes"])
    if statistics["written_nbytes"]:
        yield "written", readable_bytes(statistics["written_nbytes"])
    server = statistics["server"]
    if server["requests"]:
        yield (
            "server",
            f"{server['requests']} requests, {server['retries']} repeated, {server['in_progress']} in progress; "
            f"{readable_bytes(server['nbytes'])}",
        )
    yield (
        "decoded",
        f"{statistics['decoded']['chunks']} chunks, {readable_bytes(statistics['decoded']['nbytes'])}",
    )
    yield "chunk cache", _cache(chunks, f"{chunks['hits']} hits, {chunks['misses']} misses")
    yield (
        "blocks",
        _cache(
            blocks,
            f"{blocks['hits']} hits, {blocks['assembled']} assembled, {blocks['read_ahead']} of them ahead, "
            f"{blocks['evicted']} evicted, {blocks['stale']} outdated",
        ),
    )
    resident = memory["resident_nbytes"]
    yield (
        "memory",
        (
            f"{'-' if resident is None else readable_bytes(resident)} "
            f"(at most {readable_bytes(memory['max_resident_nbytes'])}); "
            f"metadata {readable_bytes(memory['metadata_nbytes'])}"
        ),
    )
    yield "errors", _counts(statistics["errors"])


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"


def _cache(cache: dict[str, Any], text: str) -> str:
    rate = cache["hit_rate"]
    share = "" if rate is None else f"{100 * rate:.1f} % hits; "
    return f"{share}{text}; {readable_bytes(cache['nbytes'])} of {readable_bytes(cache['capacity'])}"
