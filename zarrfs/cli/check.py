"""``zarrfs check``: hold OME-NGFF metadata against their specification, offline, and consolidated metadata against the
hierarchy.
"""

from __future__ import annotations

import click

import zarrfs
from zarrfs.cli.console import MAX_LINE, print_json, safe
from zarrfs.cli.values import storage_option, storage_options
from zarrfs.ngff import Report, check_node
from zarrfs.tools import stale_consolidation

__all__ = ["command"]

TIERS = {
    "schema": "the JSON schema demands",
    "strict": "the strict JSON schema recommends",
    "semantic": "the specification's text demands, or the store lacks",
}


@click.command(short_help="Check OME-NGFF metadata.")
@click.argument("location")
@click.option("--path", default="", help="Check the group or array at this path of the hierarchy.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@storage_option
def command(location: str, path: str, as_json: bool, storage: tuple[str, ...]) -> None:
    """Check the OME-NGFF metadata of the group at LOCATION, versions 0.1 to 0.5, without any network.

    There are three tiers: schema (what makes metadata invalid), strict (what is recommended), and semantic
    (what the specification says beyond its schemas, and whether the store holds what the metadata say). Each
    message has the JSON pointer of its place in the attributes.

    Consolidated metadata of the group, and of groups below it, are compared with the documents themselves.

    The exit code is 0 for valid metadata and 1 for invalid or stale ones, whatever the other two tiers find.

    \b
    Examples:
      zarrfs check image.ome.zarr
      zarrfs check plate.ome.zarr --path A/1/0 --json
    """
    node = zarrfs.open(location, path, storage_options=storage_options(storage))
    report = check_node(node)
    stale = stale_consolidation(node) if isinstance(node, zarrfs.Group) else []
    if as_json:
        print_json({**report.to_json(), "stale": stale})
    else:
        click.echo(_text(report))
        if stale:
            click.echo("\nconsolidated metadata are out of date (zarrfs consolidate writes them anew):")
        for problem in stale:
            click.echo(safe(f"  {problem}"))
    if stale or not report.valid:
        raise SystemExit(1)


def _text(report: Report) -> str:
    version = "no OME-NGFF metadata" if report.version is None else f"OME-NGFF {report.version}"
    lines = [f"{version}: {'valid' if report.valid else 'NOT valid'}"]
    for tier, meaning in TIERS.items():
        found = [message for message in report.messages if message.tier == tier]
        if found:
            lines.append(f"\n{tier} ({meaning}):")
            lines += [safe(f"  {message.pointer or '/'}: {message.message}", MAX_LINE) for message in found]
    return "\n".join(lines)
