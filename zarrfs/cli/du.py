"""``zarrfs du``: the stored size of the arrays of a hierarchy."""

from __future__ import annotations

from typing import Any

import click

import zarrfs
from zarrfs.cli.console import print_json, print_table, readable_bytes
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.errors import UnsupportedError, describe_error
from zarrfs.tools.copying.walking import walk

__all__ = ["command"]


@click.command(short_help="Show the stored size of arrays.")
@click.argument("location")
@click.argument("path", default="")
@click.option("--depth", type=click.IntRange(min=1), help="The maximum number of levels. Default: all.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with sizes in bytes.")
@location_options
def command(
    location: str,
    path: str,
    depth: int | None,
    as_json: bool,
    storage: tuple[str, ...],
) -> None:
    """Show the stored size of each array at LOCATION, or at PATH below LOCATION, and the sum.

    The stored size includes metadata. The ratio is the size of the decoded values divided by the stored size. The
    keys of the arrays are listed; no chunk is read.

    The exit code is 1 if the size of an array cannot be determined. A web server does not list keys.

    \b
    Examples:
      zarrfs du survey.zarr
      zarrfs du s3://bucket/image.zarr --json
    """
    node = zarrfs.open(location, path, storage_options=parse_storage_options(storage))
    with node:
        if not node.store.listable:
            raise UnsupportedError(
                f"{node.store.url}: the stored size is unknown, because a web server does not list its files. Use the "
                "location of the same data in a file system or bucket. zarrfs info shows the decoded size of an array"
            )
        rows: list[dict[str, Any]] = []
        for name, member in [("/", node)] if isinstance(node, zarrfs.Array) else walk(node, depth):
            if isinstance(member, zarrfs.Group):
                continue
            try:
                if isinstance(member, Exception):
                    raise member
                rows.append(_sizes(name, member))
            except MemoryError:
                raise
            except Exception as error:  # an error of one array must not hide the others
                rows.append({"path": name, "error": describe_error(error)})
    total = {
        key: sum(row.get(key) or 0 for row in rows) for key in ("stored", "decoded", "chunks", "chunks_total")
    }
    if as_json:
        print_json({"arrays": rows, "total": total})
    else:
        header = ("stored", "decoded", "ratio", "chunks", "path")
        print_table(header, [*map(_row, rows), _row({"path": "total", **total})])
    if any("error" in row for row in rows):
        raise SystemExit(1)


def _sizes(name: str, array: zarrfs.Array) -> dict[str, Any]:
    return {
        "path": name,
        "stored": array.nbytes_stored(),
        "decoded": None if array.dtype.hasobject else array.nbytes,
        "chunks": array.nchunks_initialized,
        "chunks_total": array.nchunks,
    }


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    if "error" in row:
        return "", "", "", "", f"{row['path']}: {row['error']}"
    stored, decoded = row["stored"], row["decoded"]
    ratio = f"{decoded / stored:.1f}" if stored and decoded is not None else ""
    chunks = f"{row['chunks']} of {row['chunks_total']}"
    text = "" if decoded is None else readable_bytes(decoded)
    return readable_bytes(stored), text, ratio, chunks, row["path"]
