"""``zarrfs verify``: decode every chunk, and compare with another location."""

from __future__ import annotations

import click

from zarrfs.cli.console import print_json, safe_message
from zarrfs.cli.progress import progress_bar
from zarrfs.cli.transfer import dask_options, print_workers
from zarrfs.cli.values import SizeType, location_options, parse_storage_options
from zarrfs.tools import Problem, VerificationReport, verify

__all__ = ["command"]

MAX_LINES = 1000


@click.command(short_help="Decode every chunk and report the broken ones.")
@click.argument("location")
@click.argument("other", required=False)
@click.option(
    "--metadata",
    is_flag=True,
    help="With OTHER: also compare groups, attributes, dimension names and fill values.",
)
@click.option("--strict", is_flag=True, help="Exit with 1 for missing chunks as well.")
@click.option(
    "--report", "report_file", metavar="FILE", help="Write the problems to this file as JSON lines."
)
@click.option("--resume", is_flag=True, help="Continue an interrupted run with the same --report file.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option(
    "--memory",
    type=SizeType(),
    default=256 << 20,
    help="Memory for decoded values per thread, such as 1GiB. Default: 256MiB.",
)
@dask_options
@location_options
def command(
    location: str,
    other: str | None,
    metadata: bool,
    strict: bool,
    report_file: str | None,
    resume: bool,
    as_json: bool,
    memory: int,
    dask: str | None,
    task_timeout: float | None,
    storage: tuple[str, ...],
) -> None:
    """Decode every stored chunk of the array or hierarchy at LOCATION, and report the problems.

    With OTHER, the values are compared with those of the arrays at the same paths there. The chunks and the
    compression may differ. Files of other programs beside the arrays and groups are compared, too.

    A chunk is corrupt if it cannot be decoded, and missing if it is not stored although all neighbouring chunks are.
    Missing chunks can be intentional, because programs do not store chunks that contain only the fill value. Keys are
    unreachable if they resemble those of chunks, but no chunk of the array has them, for example because the
    metadata have the wrong dimension separator.

    Exit codes: 0 no problems, apart from missing chunks without --strict; 1 problems or another error; 2 incorrect
    usage; 130 interrupted.

    \b
    Examples:
      zarrfs verify image.zarr
      zarrfs verify image.zarr s3://bucket/image.zarr --report verify.jsonl
    """
    if metadata and other is None:
        raise click.UsageError("--metadata needs OTHER, whose metadata are compared")
    if resume and report_file is None:
        raise click.UsageError("--resume needs the --report file of the interrupted run")
    with progress_bar("with --resume" if report_file else None) as progress:
        report = verify(
            location,
            other,
            metadata=metadata,
            report_file=report_file,
            resume=resume,
            memory=memory,
            progress=progress.show,
            worker_progress=progress.show_workers,
            storage_options=parse_storage_options(storage),
            dask=dask,
            task_timeout=task_timeout,
        )
    print_workers(report.workers)
    if as_json:
        print_json(report.to_json())
    else:
        _print_report(report)
    if not report.is_intact or (strict and report.problems):
        raise SystemExit(1)


def _print_report(report: VerificationReport) -> None:
    for problem in report.problems[:MAX_LINES]:
        click.echo(safe_message(_line(problem)))
    if len(report.problems) > MAX_LINES:
        click.echo(f"... and {len(report.problems) - MAX_LINES} more; --json or --report lists all")
    counts = [
        f"{report.count(kind)} {kind}"
        for kind in ("corrupt", "different", "missing", "unfinished", "unreachable", "unreadable")
        if report.count(kind)
    ]
    resumed = f", {report.resumed} of them by an earlier run" if report.resumed else ""
    files = f" and {_number(report.files, 'other file')}" if report.files else ""
    click.echo(
        f"{_number(report.chunks, 'chunk')} of {_number(report.arrays, 'array')}{files} verified{resumed}: "
        f"{', '.join(counts) or 'no problems'}"
    )


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _line(problem: Problem) -> str:
    chunk = "" if problem.chunk is None else f" chunk {problem.chunk} (key {problem.key!r})"
    return f"{problem.kind}: {problem.path}{chunk}: {problem.message}"
