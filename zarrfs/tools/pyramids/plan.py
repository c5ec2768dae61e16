"""The plan of a multiscale image: the arrays and the metadata of its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from zarrfs.engine.array.array import Array
from zarrfs.engine.cache import ChunkCache
from zarrfs.engine.chunks.chunk_grids import RegularGrid
from zarrfs.engine.chunks.chunk_key_encodings import DefaultKeys, V2Keys
from zarrfs.engine.formats import api as formats
from zarrfs.engine.hierarchy.unfinished import UNFINISHED
from zarrfs.engine.model import ArraySpec
from zarrfs.engine.stores.memory import MemoryStore
from zarrfs.errors import UnsupportedError
from zarrfs.ngff.parse import parse
from zarrfs.ngff.version_0_6 import VERSION_0_6
from zarrfs.ngff.versions import zarr_format_of
from zarrfs.tools.copying.planning import TargetOptions, spec_for_reencoding
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.pyramids.downsampling import Method, check_method
from zarrfs.tools.pyramids.images import SourceImage
from zarrfs.tools.pyramids.levels import Factors, PyramidLevel, level_paths, plan_levels
from zarrfs.tools.pyramids.metadata import multiscales_attributes

__all__ = ["PyramidPlan", "plan_pyramid"]


@dataclass(frozen=True)
class PyramidPlan:
    """The arrays and the metadata to write.

    Attributes:
        paths, levels, specs: the path, geometry and array metadata of each level, level 0 first.
        attributes: the attributes of the group after all levels are written.
        removed: the paths of levels of the source's image that are not part of the new one.
        writes_first: whether level 0 is written.
    """

    version: str
    method: Method
    paths: Sequence[str]
    levels: Sequence[PyramidLevel]
    specs: Sequence[ArraySpec]
    attributes: Mapping[str, Any]
    removed: Sequence[str]
    writes_first: bool

    @property
    def new_paths(self) -> Sequence[str]:
        """The paths of the arrays that are written."""
        return self.paths if self.writes_first else self.paths[1:]

    def signature(self) -> dict[str, Any]:
        """Return what determines the values of the levels, as JSON: the description of a pyramid that is unfinished."""
        return {
            "command": "pyramid",
            "method": self.method,
            "factors": [list(level.factors) for level in self.levels[1:]],
        }

    def report(self) -> CopyReport:
        report = CopyReport()
        for path, level, spec in zip(self.paths, self.levels, self.specs, strict=True):
            shape = " x ".join(map(str, level.shape))
            size = " x ".join(f"{length:g}" for length in level.scale)
            how = (
                f"{self.method} of {' x '.join(map(str, level.factors))}"
                if path != self.paths[0]
                else "level 0"
            )
            array = Array(MemoryStore(), "", spec, ChunkCache(0), True)
            chunks = " x ".join(map(str, array.chunks))
            if array.shards is not None:
                chunks += f", shards {' x '.join(map(str, array.shards))}"
            report.append(f"{path}: {shape}, scale {size}, chunks {chunks}, {how}")
        keys = self.specs[0].chunk_key_encoding
        if isinstance(keys, V2Keys) and keys.separator != "/":
            report[0] += (
                "; its chunk keys are separated by '.', and OME-NGFF requires '/': give a target to write a copy "
                "with that separator"
            )
        return report


def plan_pyramid(
    image: SourceImage,
    *,
    in_place: bool,
    version: str | None,
    method: Method,
    axes: Sequence[Any],
    factors: Factors,
    count: int | None,
    max_length: int,
    name: str | None,
    default_name: str,
    target_options: TargetOptions,
) -> PyramidPlan:
    """Return the plan of a multiscale image. Nothing is read except the metadata in ``image``, and nothing is written.

    ``in_place`` adds the levels next to the array; otherwise a new image with a copy of the array is planned. ``axes``
    are those of ``image_axes``. ``factors``, ``count`` and ``max_length`` are those of ``plan_levels``.

    Raises OptionError for factors that do not fit the array, UnsupportedError for a version that does not match the
    Zarr format or a method that is not defined for the data type, and MetadataError for chunks, shards or compressors
    that do not fit.
    """
    source = image.array
    check_method(source.dtype, method)
    version = version or _default_version(image, in_place)
    zarr_format = zarr_format_of(version)
    if in_place and source.zarr_format != zarr_format:
        raise UnsupportedError(
            f"OME-NGFF {version} is stored in Zarr format {zarr_format}, the array has format {source.zarr_format}; "
            "give a target for the image"
        )
    levels = plan_levels(source.shape, axes, method, factors, count, max_length)
    paths = level_paths(image.array_path if in_place else "0", len(levels))
    first = _first_spec(
        source, replace(target_options, zarr_format=zarr_format), [axis.name for axis in axes]
    )
    specs = [replace(first, shape=level.shape) for level in levels]
    if in_place:
        specs[0] = source.spec
    previous = image.attributes if in_place else _shared_attributes(image.attributes, version)
    previous = {key: value for key, value in previous.items() if key != UNFINISHED}
    attributes = multiscales_attributes(version, name or default_name, axes, paths, levels, method, previous)
    removed = [path for path in image.levels[1:] if path not in paths] if in_place else []
    return PyramidPlan(version, method, paths, levels, specs, attributes, removed, not in_place)


def _default_version(image: SourceImage, in_place: bool) -> str:
    if in_place and parse(image.attributes).version == VERSION_0_6:
        return "0.6"
    return "0.4" if in_place and formats.features(image.array.zarr_format).filters else "0.5"


def _first_spec(source: Array, options: TargetOptions, names: Sequence[str]) -> ArraySpec:
    """Return the spec of level 0 of a new image. The other levels differ in their shape only."""
    if options.chunks is None and not isinstance(source.spec.chunk_grid, RegularGrid):
        options = replace(options, chunks="auto")  # the levels cannot have the irregular chunks of the source
    spec = replace(source.spec, attributes={}, dimension_names=tuple(names), dimension_units=None)
    target = spec_for_reencoding(source, spec, options)
    keys = V2Keys("/") if formats.features(target.zarr_format).filters else DefaultKeys("/")
    return replace(target, chunk_key_encoding=keys, document={})


def _shared_attributes(attributes: Mapping[str, Any], version: str) -> dict[str, Any]:
    """Return the rendering settings and label properties of an image, in the place where a version stores them."""
    ome = attributes.get("ome")
    found = ome if isinstance(ome, Mapping) else attributes
    shared = {key: found[key] for key in ("omero", "image-label") if isinstance(found.get(key), Mapping)}
    if version == "0.4":
        return {
            key: {"version": version, **value} if key == "image-label" else value
            for key, value in shared.items()
        }
    return {"ome": {key: {k: v for k, v in value.items() if k != "version"} for key, value in shared.items()}}
