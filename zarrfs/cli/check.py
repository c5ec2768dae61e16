"""``zarrfs check``: validate OME-NGFF metadata offline, and compare consolidated metadata with the hierarchy."""

from __future__ import annotations

from dataclasses import replace

import click

import zarrfs
from zarrfs.cli.console import print_json, safe
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.errors import describe_error
from zarrfs.ngff import Report, check_node
from zarrfs.ngff.checks.report import Message
from zarrfs.tools import stale_consolidation
from zarrfs.tools.copying.walking import walk

__all__ = ["command"]

TIERS = {
    "schema": "violations of the JSON schema",
    "strict": "violations of the strict JSON schema (recommendations)",
    "semantic": "violations of the text of the specification, or differences from the content of the store",
}


@click.command()
@click.argument("location")
@click.option("--path", default="", help="Check the group or array at this path of the hierarchy.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--strict", is_flag=True, help="Regard warnings as errors.")
@location_options
def command(location: str, path: str, as_json: bool, strict: bool, storage: tuple[str, ...]) -> None:
    """Validate the OME-NGFF metadata (versions 0.1 to 0.6rc0) of the group at LOCATION. No network access is needed.

    There are three tiers: schema (errors that make the metadata invalid), strict (recommendations), and semantic
    (rules of the specification that its schemas do not express, and differences between the metadata and the
    content of the store). Messages of the last two tiers are warnings. Levels of an image that do not overlap, and
    transformations between coordinate systems that cannot be used, are errors. Each message contains the JSON pointer
    of its location in the attributes.

    If the group has no such metadata, as a container of images, the groups and arrays below it are checked.

    The consolidated metadata of the group and of the groups below it are compared with the metadata documents.

    The exit code is 1 if there is an error (with --strict also a warning) or if consolidated metadata is out of date,
    otherwise 0.

    \b
    Examples:
      zarrfs check image.ome.zarr
      zarrfs check plate.ome.zarr --path A/1/0 --json
    """
    node = zarrfs.open(location, path, storage_options=parse_storage_options(storage))
    reports, count = _reports(node)
    if strict:
        reports = {
            below: replace(report, valid=report.valid and not report.messages)
            for below, report in reports.items()
        }
    stale = stale_consolidation(node) if isinstance(node, zarrfs.Group) else []
    if as_json:
        result = reports.get("", Report(True, None, ())).to_json()
        members = {below: report.to_json() for below, report in reports.items() if below}
        valid = all(report.valid for report in reports.values())
        print_json({**result, "valid": valid, **({"members": members} if members else {}), "stale": stale})
    else:
        for below, report in reports.items():
            click.echo(_format_report(report, f"{safe(below)}: " if below else ""))
        if "" not in reports:
            nodes = "1 array or group" if count == 1 else f"{count} arrays and groups"
            number = sum(report.version is not None for report in reports.values())
            found = f"{number} of {nodes} have" if number else f"none of {nodes} has"
            click.echo(f"{found} OME-NGFF metadata" + ("" if number else ": there is nothing to check"))
        if stale:
            click.echo("\nconsolidated metadata is out of date (zarrfs consolidate writes it again):")
        for problem in stale:
            click.echo(safe(f"  {problem}"))
    if stale or not all(report.valid for report in reports.values()):
        raise SystemExit(1)


def _reports(node: zarrfs.Array | zarrfs.Group) -> tuple[dict[str, Report], int]:
    """Return the reports of a node, or of the nodes below a group that has no metadata, by path; and how many nodes
    were examined. Nodes below one with metadata are not examined: the check of its metadata includes them.
    """
    report = check_node(node)
    if report.version is not None:
        return {"": report}, 1
    reports: dict[str, Report] = {}
    archive = tuple(message for message in report.messages if message.tier == "semantic")
    # The root of a single-file OME-Zarr can have no metadata of its own, such as a container of images.
    if archive:
        reports[""] = Report(not any(message.is_error for message in archive), None, archive)
    count = 1
    for path, member in walk(node) if isinstance(node, zarrfs.Group) else ():
        if any(above and path.startswith(f"{above}/") for above in reports):
            continue
        count += 1
        if isinstance(member, Exception):
            message = f"it cannot be read: {describe_error(member)}"
            reports[path] = Report(False, None, (Message("schema", "", message, True),))
            continue
        report = check_node(member)
        if report.version is not None:
            reports[path] = report
    return reports, count


def _format_report(report: Report, label: str = "") -> str:
    is_archive = report.version is None and all(message.tier == "semantic" for message in report.messages)
    version = "unreadable" if report.version is None else f"OME-NGFF {report.version}"
    if is_archive:
        version = "the archive"
    counts = [
        f"{count} {name}{'' if count == 1 else 's'}"
        for name, count in (("error", len(report.messages) - report.warnings), ("warning", report.warnings))
        if count
    ]
    lines = [f"{label}{version}: {', '.join(['valid' if report.valid else 'NOT valid', *counts])}"]
    for tier, description in TIERS.items():
        messages = [message for message in report.messages if message.tier == tier]
        if messages:
            lines.append(f"\n{tier} ({description}):")
            lines += [
                safe(f"  {_mark(message)}{message.pointer or '/'}: {message.message}") for message in messages
            ]
    return "\n".join(lines)


def _mark(message: Message) -> str:
    """Return the mark of an error in a tier whose other messages are warnings."""
    return "error: " if message.is_error and message.tier != "schema" else ""
