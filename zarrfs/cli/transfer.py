"""The common parts of the commands that copy: options, progress bar, report and interruption."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypedDict, TypeVar

import click

from zarrfs.cli.console import readable_bytes, safe, safe_message
from zarrfs.cli.creation_options import creation_option
from zarrfs.cli.progress import worker_lines
from zarrfs.cli.values import (
    SizeType,
    location_options,
    message_option,
    parse_axis_names,
    parse_numbers,
    parse_storage_options,
)
from zarrfs.tools.copying.cluster.results import Statistics
from zarrfs.tools.copying.reports import ArrayEstimate, CopyReport

__all__ = [
    "CopyOptions",
    "ImageOptions",
    "block_options",
    "copy_options",
    "dask_options",
    "execution_options",
    "image_options",
    "print_report",
    "print_workers",
]

F = TypeVar("F", bound=Callable[..., Any])

INCOMPLETE_STATUS = 3
"""The exit code of a copy that skipped members because of --skip-broken."""

MAX_LINES = 40


class CopyOptions(TypedDict):
    """The options of all commands that copy, as arguments of ``tools.convert``."""

    if_exists: Any
    verify: bool
    dry_run: bool
    sample_writes: bool
    skip_broken: bool
    paths: list[str] | None
    nodes_only: bool
    memory: int
    dask: str | None
    task_timeout: float | None
    storage_options: dict[str, Any] | None


class ImageOptions(TypedDict):
    """The options of the commands that write images, as arguments of ``import_files`` and ``build_pyramid``."""

    axes: list[str] | None
    scale: list[float] | None
    unit: str | None
    name: str | None
    levels: int | None
    method: Any
    chunks: Any
    shards: Any
    compressors: Any
    if_exists: Any


def dask_options(function: F) -> F:
    """Add the options of all commands that can run on a Dask cluster."""
    return _with_options(
        function,
        click.option(
            "--dask",
            metavar="ADDRESS",
            help="Use the Dask cluster with this scheduler address, such as tcp://host:8786.",
        ),
        click.option(
            "--task-timeout",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help="With --dask: a worker whose task takes longer is closed, and its tasks run on others.",
        ),
    )


def copy_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all commands that copy. The command receives them as the argument ``copying``."""

    @functools.wraps(command)
    def function(**values: Any) -> None:
        copying = {name: values.pop(name) for name in CopyOptions.__annotations__ if name in values}
        copying["paths"] = None if copying["paths"] is None else copying["paths"].split(",")
        copying["storage_options"] = parse_storage_options(values.pop("storage"))
        command(**values, copying=copying)

    return _with_options(
        execution_options(function),
        click.option(
            "--if-exists",
            type=click.Choice(["raise", "replace", "skip", "resume"]),
            default="raise",
            show_default=True,
            help="What to do if the destination exists. resume continues an interrupted copy.",
        ),
        click.option(
            "--skip-broken",
            is_flag=True,
            help="Skip members that cannot be copied, list them, and exit with 3, instead of failing.",
        ),
        click.option(
            "--paths",
            help="Copy only the members at these paths, such as 0,labels/nuclei, with the groups above and all nodes "
            "below them. They are found also if a server cannot list.",
        ),
        click.option(
            "--nodes-only",
            is_flag=True,
            help="Copy arrays and groups only, and no files that other programs store beside them.",
        ),
    )


def execution_options(function: F) -> F:
    """Add the options of all commands that write arrays block by block, in threads or on a Dask cluster."""
    return dask_options(block_options(function))


def block_options(function: F) -> F:
    """Add the options of all commands that write arrays block by block."""
    return _with_options(
        message_option(location_options(function)),
        click.option(
            "--verify", is_flag=True, help="Read source and destination afterwards and compare them."
        ),
        click.option("--dry-run", is_flag=True, help="Show what would be done without changing anything."),
        click.option(
            "--sample-writes",
            is_flag=True,
            help="With --dry-run: measure writing with temporary keys of the destination, which are deleted.",
        ),
        click.option(
            "--memory",
            type=SizeType(),
            default=256 << 20,
            help="Memory for decoded values per thread, such as 1GiB. Default: 256MiB.",
        ),
    )


def image_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of the commands that write OME-NGFF images. The command receives them as ``image``."""

    @functools.wraps(command)
    def function(
        *,
        axes: str | None,
        scale: str | None,
        **values: Any,
    ) -> None:
        image = ImageOptions(
            axes=None if axes is None else parse_axis_names(axes),
            scale=None if scale is None else parse_numbers(scale, "--scale"),
            unit=values.pop("unit"),
            name=values.pop("name"),
            levels=values.pop("levels"),
            method=values.pop("method"),
            chunks=values.pop("chunks"),
            shards=values.pop("shards"),
            compressors=values.pop("compressors"),
            if_exists=values.pop("if_exists"),
        )
        command(**values, image=image)

    return _with_options(
        function,
        click.option("--axes", help="The names of the dimensions of the source: czyx, or c,z,y,x."),
        click.option(
            "--scale",
            help="The distance between neighbouring elements along each dimension, such as 1,0.5,0.2,0.2.",
        ),
        click.option("--unit", help="The unit of the spatial dimensions, such as micrometer."),
        click.option("--name", help="The name of the image."),
        click.option("--levels", type=click.IntRange(1), help="The number of levels, including level 0."),
        click.option(
            "--method",
            type=click.Choice(["auto", "mean", "median", "max", "min", "mode", "nearest"]),
            default="auto",
            show_default=True,
            help="How elements are combined: auto is mode for labels, otherwise mean.",
        ),
        creation_option("chunks", "--chunks", default="that of the source, or auto for image files"),
        creation_option("shards", "--shards"),
        creation_option("compressors", "--compressor", default="that of the source, or zstd for image files"),
        click.option(
            "--if-exists",
            type=click.Choice(["raise", "replace", "resume"]),
            default="raise",
            show_default=True,
            help="What to do if the destination or a level exists. resume continues an interrupted run.",
        ),
    )


def _with_options(function: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def print_report(lines: Sequence[str], dry_run: bool) -> None:
    """Print the lines of a report, the estimates of a dry run, and the statistics of the workers of a cluster.

    Exits with INCOMPLETE_STATUS if members were skipped.
    """
    if isinstance(lines, CopyReport) and lines.source:
        click.echo(safe(lines.source))
    for line in lines[:MAX_LINES]:
        click.echo(("would be " if dry_run else "") + safe_message(line))
    if len(lines) > MAX_LINES:
        click.echo(f"... and {len(lines) - MAX_LINES} more")
    if isinstance(lines, CopyReport):
        _print_estimates(lines.estimates)
        print_workers(lines.workers)
        for note in lines.notes:
            click.echo(f"zarrfs: note: {safe_message(note)}", err=True)
    skipped = lines.skipped if isinstance(lines, CopyReport) else {}
    for path, reason in skipped.items():
        click.echo(f"zarrfs: skipped: {safe(path)}: {safe_message(reason)}", err=True)
    if skipped:
        raise SystemExit(INCOMPLETE_STATUS)


def print_workers(workers: Statistics) -> None:
    """Print the throughput of the workers of a cluster to standard error."""
    for line in worker_lines(workers):
        click.echo(line, err=True)


def _print_estimates(estimates: Sequence[ArrayEstimate]) -> None:
    for estimate in estimates[:MAX_LINES]:
        parts = [
            f"{estimate.tasks} tasks",
            f"{readable_bytes(estimate.nbytes_read)} read",
            f"{readable_bytes(estimate.nbytes_written)} written",
            f"{readable_bytes(estimate.nbytes_per_thread)} of memory per thread",
            f"{estimate.seconds:.1f} s on {estimate.threads} threads"
            + ("" if estimate.not_written is None else " without writing"),
        ]
        measured = f"({estimate.sampled} tasks measured)"
        click.echo(f"plan {safe(estimate.path or '/')}: {', '.join(parts)} {measured}")
    for reason in sorted({item.not_written for item in estimates if item.not_written is not None}):
        click.echo(f"plan: writing to the destination was not measured: {safe_message(reason)}")
    if len(estimates) > 1:
        click.echo(
            f"plan in total: {sum(item.tasks for item in estimates)} tasks, "
            f"{readable_bytes(sum(item.nbytes_read for item in estimates))} read, "
            f"{readable_bytes(sum(item.nbytes_written for item in estimates))} written, "
            f"{sum(item.seconds for item in estimates):.1f} s"
        )
    if estimates:
        click.echo(
            "plan: the time does not contain the start of the command, listing the source and --verify"
        )
