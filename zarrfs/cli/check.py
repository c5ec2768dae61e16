"""``zarrfs check``: validate OME-NGFF metadata offline, and compare consolidated metadata with the hierarchy."""

from __future__ import annotations

import click

import zarrfs
from zarrfs.cli.console import MAX_LINE, print_json, safe
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.ngff import Report, check_node
from zarrfs.tools import stale_consolidation

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
@location_options
def command(location: str, path: str, as_json: bool, storage: tuple[str, ...]) -> None:
    """Validate the OME-NGFF metadata (versions 0.1 to 0.5) of the group at LOCATION. No network access is needed.

    There are three tiers: schema (errors that make the metadata invalid), strict (recommendations), and semantic
    (rules of the specification that its schemas do not express, and differences between the metadata and the
    content of the store). Each message contains the JSON pointer of its location in the attributes.

    The consolidated metadata of the group and of the groups below it are compared with the metadata documents.

    The exit code is 1 if the schema tier reports an error or if consolidated metadata is out of date, otherwise 0.

    \b
    Examples:
      zarrfs check image.ome.zarr
      zarrfs check plate.ome.zarr --path A/1/0 --json
    """
    node = zarrfs.open(location, path, storage_options=parse_storage_options(storage))
    report = check_node(node)
    stale = stale_consolidation(node) if isinstance(node, zarrfs.Group) else []
    if as_json:
        print_json({**report.to_json(), "stale": stale})
    else:
        click.echo(_format_report(report))
        if stale:
            click.echo("\nconsolidated metadata is out of date (zarrfs consolidate writes it again):")
        for problem in stale:
            click.echo(safe(f"  {problem}"))
    if stale or not report.valid:
        raise SystemExit(1)


def _format_report(report: Report) -> str:
    version = "no OME-NGFF metadata" if report.version is None else f"OME-NGFF {report.version}"
    lines = [f"{version}: {'valid' if report.valid else 'NOT valid'}"]
    for tier, description in TIERS.items():
        messages = [message for message in report.messages if message.tier == tier]
        if messages:
            lines.append(f"\n{tier} ({description}):")
            lines += [
                safe(f"  {message.pointer or '/'}: {message.message}", MAX_LINE) for message in messages
            ]
    return "\n".join(lines)
