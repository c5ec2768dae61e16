"""Stores as other programs write them: the same keys and documents, with few values.

The layouts are those of AnnData 0.12 (format 2, consolidated), SpatialData 0.7 (format 3, consolidated, with a table in
Parquet files), WEBKNOSSOS 4.3 (format 3, sharded, with a list of layers), netCDF-C 4.8 (NCZarr: format 2 with further
members in its documents) and GDAL 3.8 (format 2, with statistics in an auxiliary file).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import zarrfs

__all__ = ["WRITERS", "Writer", "write_anndata", "write_nczarr", "write_spatialdata"]

Writer = Callable[[Path], list[str]]


def _write(folder: Path, documents: dict[str, Any]) -> None:
    """Write files: bytes as they are, other values as JSON."""
    for name, content in documents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def _zarray(values: np.ndarray[Any, Any], **members: Any) -> dict[str, Any]:
    return {
        "shape": list(values.shape),
        "chunks": list(values.shape),
        "dtype": values.dtype.str,
        "fill_value": 0,
        "order": "C",
        "filters": None,
        "dimension_separator": ".",
        "compressor": None,
        "zarr_format": 2,
        **members,
    }


def write_anndata(folder: Path) -> list[str]:
    """A sparse matrix with names of rows. Groups have an empty member ``consolidated_metadata``."""
    group = {
        "zarr_format": 2,
        "consolidated_metadata": {"metadata": {}, "must_understand": False, "kind": "inline"},
    }
    data, indices, pointers = np.ones(3, "<f4"), np.arange(3, dtype="<i4"), np.arange(4, dtype="<i4")
    documents: dict[str, Any] = {
        ".zgroup": {"zarr_format": 2},
        ".zattrs": {"encoding-type": "anndata", "encoding-version": "0.1.0"},
        "X/.zgroup": group,
        "X/.zattrs": {"shape": [3, 3], "encoding-type": "csr_matrix", "encoding-version": "0.1.0"},
        "obs/.zgroup": group,
        "obs/.zattrs": {"column-order": [], "_index": "_index", "encoding-type": "dataframe"},
        "obs/_index/.zarray": _zarray(
            np.zeros(3, "u1"), dtype="|O", fill_value="", filters=[{"id": "vlen-utf8"}]
        ),
        "obs/_index/.zattrs": {"encoding-type": "string-array", "encoding-version": "0.2.0"},
        "uns/.zgroup": group,
        "uns/.zattrs": {"encoding-type": "dict", "encoding-version": "0.1.0"},
    }
    for name, values in (("data", data), ("indices", indices), ("indptr", pointers)):
        documents |= {f"X/{name}/.zarray": _zarray(values), f"X/{name}/.zattrs": {}}
    _write(folder, {**documents, ".zmetadata": {"metadata": documents, "zarr_consolidated_format": 1}})
    texts = b"\x03\0\0\0" + b"".join(b"\x01\0\0\0" + letter for letter in (b"x", b"y", b"z"))
    chunks = {
        f"X/{n}/0": v.tobytes() for n, v in (("data", data), ("indices", indices), ("indptr", pointers))
    }
    _write(folder, {**chunks, "obs/_index/0": texts})
    return []


def write_spatialdata(folder: Path) -> list[str]:
    """An image, points in a Parquet file, and shapes in another one, below groups of their own."""

    def group(attributes: dict[str, Any]) -> dict[str, Any]:
        return {"attributes": attributes, "zarr_format": 3, "node_type": "group"}

    version = {"spatialdata_attrs": {"version": "0.2"}}
    empty = {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": {}}}
    members: dict[str, Any] = {
        "images": group({}),
        "images/im": group(
            {"ome": {"version": "0.5-dev-spatialdata", "multiscales": [{"datasets": [{"path": "s0"}]}]}}
        ),
        "points": group({}),
        "points/pts": group({"encoding-type": "ngff:points", "axes": ["x", "y"], **version}),
        "shapes": group({}),
        "shapes/cells": group({"encoding-type": "ngff:shapes", "axes": ["x", "y"], **version}),
    }
    root = group({"spatialdata_attrs": {"version": "0.2", "spatialdata_software_version": "0.7.3"}})
    _write(
        folder, {"zarr.json": root, **{f"{path}/zarr.json": document for path, document in members.items()}}
    )
    image = zarrfs.create_array(
        folder,
        "images/im/s0",
        data=np.arange(64, dtype="u1").reshape(1, 8, 8),
        dimension_names=["c", "y", "x"],
    )
    members = {path: {**document, **empty} for path, document in members.items()}
    members["images/im/s0"] = dict(image.spec.document)
    section = {"kind": "inline", "must_understand": False, "metadata": members}
    files = {
        "points/pts/points.parquet/part.0.parquet": b"PAR1 points PAR1",
        "points/pts/points.parquet/part.1.parquet": b"PAR1 more PAR1",
        "shapes/cells/shapes.parquet": b"PAR1 shapes PAR1",
    }
    _write(folder, {"zarr.json": {**root, "consolidated_metadata": section}, **files})
    return sorted(files)


def write_webknossos(folder: Path) -> list[str]:
    """A layer with one resolution, in shards whose values are in Fortran order, and the list of the layers."""
    zarrfs.create_group(folder)
    zarrfs.create_group(folder, path="color")
    zarrfs.create_array(
        folder,
        "color/1",
        data=np.arange(512, dtype="u1").reshape(1, 8, 8, 8),
        chunks=(1, 4, 4, 4),
        shards=(1, 8, 8, 8),
        order="F",
        dimension_names=["c", "x", "y", "z"],
    )
    layer = {
        "name": "color",
        "category": "color",
        "dataFormat": "zarr3",
        "mags": [{"mag": [1, 1, 1], "path": "./color/1"}],
    }
    files = {
        "datasource-properties.json": {"id": {"name": "d", "team": ""}, "dataLayers": [layer], "version": 1}
    }
    _write(folder, files)
    return sorted(files)


def write_nczarr(folder: Path) -> list[str]:
    """A variable and its dimension. Groups and arrays have members that only netCDF-C reads."""
    temperature, latitude = np.arange(12, dtype="<f4").reshape(3, 4), np.arange(3, dtype="<f4")
    group = {"dims": {"lat": 3, "lon": 4}, "vars": ["lat", "temperature"], "groups": ["inner"]}
    _write(
        folder,
        {
            ".zgroup": {"zarr_format": 2, "_NCZARR_SUPERBLOCK": {"version": "2.0.0"}, "_NCZARR_GROUP": group},
            ".zattrs": {"title": "t", "_NCZARR_ATTR": {"types": {"title": "<S1"}}},
            "inner/.zgroup": {"zarr_format": 2, "_NCZARR_GROUP": {"dims": {}, "vars": [], "groups": []}},
            "temperature/.zarray": _zarray(
                temperature, _NCZARR_ARRAY={"dimrefs": ["/lat", "/lon"], "storage": "chunked"}
            ),
            "temperature/.zattrs": {"_ARRAY_DIMENSIONS": ["lat", "lon"], "_NCZARR_ATTR": {"types": {}}},
            "temperature/0.0": temperature.tobytes(),
            "lat/.zarray": _zarray(latitude, _NCZARR_ARRAY={"dimrefs": ["/lat"], "storage": "contiguous"}),
            "lat/0": latitude.tobytes(),
        },
    )
    return []


def write_gdal(folder: Path) -> list[str]:
    """A raster with a coordinate system, and its statistics in an auxiliary file."""
    raster = np.arange(12, dtype="|u1").reshape(3, 4)
    documents: dict[str, Any] = {
        ".zgroup": {"zarr_format": 2},
        "raster/.zarray": _zarray(raster, fill_value=None),
        "raster/.zattrs": {
            "_ARRAY_DIMENSIONS": ["Y", "X"],
            "_CRS": {"url": "http://www.opengis.net/def/crs/EPSG/0/4326"},
        },
    }
    files = {"raster/pam.aux.xml": b"<PAMDataset><Array><Statistics/></Array></PAMDataset>\n"}
    consolidated = {"zarr_consolidated_format": 1, "metadata": documents}
    _write(folder, {**documents, ".zmetadata": consolidated, "raster/0.0": raster.tobytes(), **files})
    return sorted(files)


WRITERS: dict[str, Writer] = {
    "AnnData": write_anndata,
    "SpatialData": write_spatialdata,
    "WEBKNOSSOS": write_webknossos,
    "NCZarr": write_nczarr,
    "GDAL": write_gdal,
}
"""The writers by the name of the program. Each returns the keys of the files that belong to no node."""
