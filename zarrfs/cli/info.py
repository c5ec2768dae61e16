"""``zarrfs info``: show the metadata of an array or a group."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

import zarrfs
from zarrfs.cli.console import (
    print_attributes,
    print_json,
    print_properties,
    print_table,
    progress,
    readable_bytes,
    safe,
)
from zarrfs.cli.values import location_options, parse_storage_options
from zarrfs.engine.formats import api as formats
from zarrfs.engine.hierarchy.summary import array_summary, dtype_text, group_summary, json_safe
from zarrfs.engine.hierarchy.unfinished import is_unfinished, unfinished_note
from zarrfs.errors import describe_error
from zarrfs.ngff.geometry import array_geometry
from zarrfs.ngff.members import member_names
from zarrfs.ngff.orientation import OrientedAxis
from zarrfs.ngff.parse import parse

__all__ = ["command"]

MAX_LISTED = 1000

OME_MEMBERS = ("ome", "multiscales", "omero")
"""The attributes of an image of OME-Zarr of which the text has a summary."""


@click.command()
@click.argument("location")
@click.argument("path", default="")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--no-count",
    is_flag=True,
    help="Do not determine the number and size of the stored chunks, which requires a listing of the store.",
)
@location_options
def command(
    location: str,
    path: str,
    as_json: bool,
    no_count: bool,
    storage: tuple[str, ...],
) -> None:
    """Show the metadata of the array or group at LOCATION, or at PATH below LOCATION.

    For an array: shape, data type, chunks, shards, codecs, fill value, attributes, the number and size of the stored
    chunks, and the compression ratio. For a group: its members and attributes. For an image of OME-Zarr: its axes,
    levels and channels.

    The exit code is 1 if the stored chunks of an array cannot be listed.

    \b
    Examples:
      zarrfs info image.zarr
      zarrfs info image.zarr/0
      zarrfs info survey.zarr.zip labels/0 --json
    """
    node = zarrfs.open(location, path, storage_options=parse_storage_options(storage))
    with node.store:
        properties: dict[str, Any] = {"location": node.store.url}
        if isinstance(node, zarrfs.Array):
            properties |= array_summary(node)
            if not no_count and node.store.listable:
                properties |= stored_chunks_summary(node)
        else:
            properties |= group_summary(node)
            properties["members"] = member_summaries(node)
            images = image_summaries(node)
            if images:
                properties["images"] = images
        properties |= orientation_summary(node)
        note = unfinished_note(node)
        if note is not None:
            properties["unfinished"] = note
    if as_json:
        print_json(properties)
    elif properties["kind"] == "array":
        show_array(properties)
    else:
        show_group(properties)
    if "listing_error" in properties:
        raise SystemExit(1)


def orientation_summary(node: zarrfs.Array | zarrfs.Group) -> dict[str, Any]:
    """Return the anatomical orientations of the axes of an image, or of an array with the attribute ``transform``."""
    axes: Sequence[OrientedAxis]
    if isinstance(node, zarrfs.Array):
        axes = array_geometry(node.spec).axes
    else:
        images = parse(node.attrs).multiscales
        axes = images[0].axes if images else ()
    found = {axis.name: axis.orientation for axis in axes if axis.orientation is not None}
    if not found:
        return {}
    return {"orientation": found, "oblique": any(axis.direction is not None for axis in axes)}


def image_summaries(group: zarrfs.Group) -> list[dict[str, Any]]:
    """Return a summary of each multiscale image of OME-Zarr in the attributes of a group."""
    metadata = parse(group.attrs)
    channels = [
        {
            "label": channel.label,
            "color": None if channel.color is None else bytes(channel.color).hex().upper(),
            "window": None if channel.window is None else [channel.window.start, channel.window.end],
        }
        for channel in (metadata.omero.channels if metadata.omero is not None else ())
    ]
    return [
        {
            "name": image.name,
            "version": metadata.version,
            "axes": [{"name": axis.name, "type": axis.type, "unit": axis.unit} for axis in image.axes],
            "levels": [
                {
                    "path": level.path,
                    "scale": None if level.scale is None else list(level.scale),
                    "translation": None if level.translation is None else list(level.translation),
                }
                for level in image.levels
            ],
            "channels": channels,
            "coordinate_systems": [image.system_name, *(system.name for system in image.other_systems)],
        }
        for image in metadata.multiscales
    ]


def stored_chunks_summary(array: zarrfs.Array) -> dict[str, Any]:
    """Return the number and size of the stored chunks. The cost depends on the number of stored chunks only.

    If a part of the keys cannot be listed, the number is that of the listed chunks, and the reason replaces the size.
    """
    count = 0
    try:
        for _ in progress(array.storage.stored_chunks(), "counting chunks"):
            count += 1
        usage = array.usage()
    except zarrfs.ServerError:
        raise
    except zarrfs.StoreError as error:
        return {
            "chunks_total": array.nshards,
            "chunks_initialized": count,
            "listing_error": describe_error(error),
        }
    logical = array.nbytes if not array.dtype.hasobject else 0
    return {
        "chunks_total": array.nshards,
        "chunks_initialized": count,
        "bytes_stored": usage.nbytes,
        "ratio": round(logical / usage.nbytes, 3) if usage.nbytes and logical else None,
    }


def member_summaries(group: zarrfs.Group) -> list[dict[str, Any]]:
    """Return a summary of each member. A member that cannot be opened has the reason instead."""
    members: list[dict[str, Any]] = []
    for name in member_names(group):
        try:
            node = group.get(name)
            if node is None:
                continue
            entry: dict[str, Any] = {"name": name, "kind": "group"}
            if isinstance(node, zarrfs.Array):
                entry |= member_summary(node)
            if is_unfinished(node.attrs):
                entry["unfinished"] = True
        except MemoryError:
            raise
        except Exception as error:  # an error in one member must not hide the others
            entry = {"name": name, "kind": "broken", "error": describe_error(error)}
        members.append(entry)
    return members


def member_summary(array: zarrfs.Array) -> dict[str, Any]:
    """Return the properties of an array for the table of the members of a group."""
    return {
        "kind": "array",
        "shape": list(array.shape),
        "dtype": dtype_text(array.dtype),
        "data_type": array.spec.data_type.name,
        "chunks": json_safe(array.chunks),
    }


def show_array(properties: dict[str, Any]) -> None:
    """Print the properties of an array as text."""
    rows: list[tuple[str, str | list[str]]] = [
        ("array", f"{properties['path']} in {properties['location']}"),
        ("format", _format(properties["zarr_format"])),
        ("shape", _shape(properties)),
        ("data type", _dtype(properties)),
        ("chunks", _join_lengths(properties["chunks"])),
    ]
    rows += _state(properties) + _orientation(properties)
    if properties["shards"]:
        rows.append(("shards", _join_lengths(properties["shards"])))
    rows.append(("codecs", [_codec(codec) for codec in properties["codecs"]]))
    rows.append(("fill value", json.dumps(properties["fill_value"])))
    if properties["order"] != "C":
        rows.append(("order", properties["order"]))
    if properties["nbytes"] is not None:
        rows.append(("size", _bytes(properties["nbytes"])))
    if "bytes_stored" in properties:
        rows.append(("stored", _bytes(properties["bytes_stored"]) + _ratio(properties["ratio"])))
    elif "listing_error" in properties:
        rows.append(("stored", f"unknown: {properties['listing_error']}"))
    if "chunks_total" in properties:
        total, initialized = properties["chunks_total"], properties["chunks_initialized"]
        is_minimum = "at least " if "listing_error" in properties else ""
        share = f" ({initialized / total:.1%})" if total else ""
        rows.append(("chunks stored", f"{is_minimum}{initialized:,} of {total:,}{share}"))
    print_properties(rows)
    print_attributes(properties["attributes"])


def show_group(properties: dict[str, Any]) -> None:
    """Print the properties of a group as text."""
    rows: list[tuple[str, str | list[str]]] = [
        ("group", f"{properties['path']} in {properties['location']}"),
        ("format", _format(properties["zarr_format"])),
    ]
    images = properties.get("images", [])
    for image in images:
        rows += _image(image)
    print_properties(rows + _state(properties) + _orientation(properties))
    members = properties["members"]
    scales = {level["path"]: _numbers(level["scale"]) for image in images for level in image["levels"]}
    if members:
        click.echo()
        table = [
            (
                m["name"],
                m["kind"] + (" (unfinished)" if "unfinished" in m else ""),
                _join_lengths(m.get("shape")),
                m.get("data_type", ""),
                _join_lengths(m.get("chunks")),
                *([scales.get(m["name"], "")] if images else []),
            )
            for m in members[:MAX_LISTED]
        ]
        columns = ("name", "kind", "shape", "data type", "chunks", *(("scale",) if images else ()))
        print_table(columns, table)
        if len(members) > MAX_LISTED:
            click.echo(f"... and {len(members) - MAX_LISTED:,} more")
        # Reasons are sentences, which would make a column of the table very wide.
        for member in members[:MAX_LISTED]:
            if "error" in member:
                click.echo(safe(f"{member['name']}: {member['error']}"))
    if not images:
        print_attributes(properties["attributes"])
        return
    print_attributes(
        {name: value for name, value in properties["attributes"].items() if name not in OME_MEMBERS}
    )
    click.echo("\nThe attributes of OME-Zarr are in the output of --json.")


def _image(image: dict[str, Any]) -> list[tuple[str, str | list[str]]]:
    """Return the rows of an image: its name, its axes with their units, and its channels."""
    version = f"OME-Zarr {image['version']}" if image["version"] else "OME-Zarr"
    rows: list[tuple[str, str | list[str]]] = [
        ("image", f"{image['name']}  ({version})" if image["name"] else version)
    ]
    if image["axes"]:
        axes = [axis["name"] + (f" ({axis['unit']})" if axis["unit"] else "") for axis in image["axes"]]
        rows.append(("axes", ", ".join(axes)))
    translation = image["levels"][0]["translation"] if image["levels"] else None
    if translation is not None and any(translation):
        rows.append(("translation", _numbers(translation)))
    if image["channels"]:
        channels = [
            f"{channel['label'] or number} ({channel['color']})"
            if channel["color"]
            else str(channel["label"] or number)
            for number, channel in enumerate(image["channels"])
        ]
        rows.append(("channels", ", ".join(channels)))
    if len(image["coordinate_systems"]) > 1:
        rows.append(("systems", ", ".join(image["coordinate_systems"])))
    return rows


def _numbers(values: Sequence[float] | None) -> str:
    return "" if values is None else " x ".join(f"{value:.6g}" for value in values)


def _state(properties: dict[str, Any]) -> list[tuple[str, str | list[str]]]:
    return [("state", properties["unfinished"])] if "unfinished" in properties else []


def _orientation(properties: dict[str, Any]) -> list[tuple[str, str | list[str]]]:
    if "orientation" not in properties:
        return []
    text = ", ".join(f"{name} {value}" for name, value in properties["orientation"].items())
    return [
        ("orientation", f"{text} (oblique; these are the nearest ones)" if properties["oblique"] else text)
    ]


def _format(zarr_format: int | str) -> str:
    version = f"v{zarr_format}" if isinstance(zarr_format, int) else zarr_format
    return formats.features(zarr_format).title or f"Zarr {version}"


def _join_lengths(lengths: Any) -> str:
    if lengths is None:
        return ""
    return " x ".join(str(n) for n in lengths) or "scalar"


def _shape(properties: dict[str, Any]) -> str:
    names = properties["dimension_names"]
    text = _join_lengths(properties["shape"])
    return f"{text}  ({', '.join(name or '-' for name in names)})" if names else text


def _dtype(properties: dict[str, Any]) -> str:
    return f"{properties['data_type']}  (NumPy {_dtype_text(properties['dtype'])})"


def _dtype_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _codec(codec: dict[str, Any]) -> str:
    configuration = codec.get("configuration")
    return (
        f"{codec['name']} {json.dumps(configuration, ensure_ascii=False) if configuration else ''}".rstrip()
    )


def _bytes(nbytes: int) -> str:
    return f"{readable_bytes(nbytes)} ({nbytes:,} bytes)" if nbytes >= 1024 else f"{nbytes} bytes"


def _ratio(ratio: float | None) -> str:
    """Return the ratio of decoded and stored size as text."""
    if not ratio:
        return ""
    return f", {ratio} times smaller" if ratio > 1 else f", {1 / ratio:.3f} times larger" if ratio < 1 else ""
