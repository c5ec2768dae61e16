"""Synthetic microscopy images: a stack of cells with nuclei, membranes and spots, written as OME-Zarr.

The images are for demonstrations, tests and benchmarks that need realistic data without a download. They depend on the
arguments only. Intensities contain a camera offset, shot noise, uneven illumination, and a large, nearly constant
background that compresses well. The metadata follows OME-NGFF 0.4 and 0.5; ``zarrfs.ngff`` reads it.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from zarrfs.engine.formats import api as formats

if TYPE_CHECKING:
    from zarrfs.engine.group.group import Group

__all__ = ["CHANNELS", "VOXEL_SIZE", "Channel", "Picture", "make_picture", "volume", "write_image"]

Volume = np.ndarray[Any, np.dtype[Any]]
NgffVersion = Literal["0.4", "0.5"]

VOXEL_SIZE = (1.0, 0.325, 0.325)
"""Micrometres per voxel along z, y, x: a 20x objective and a camera with 6.5 um pixels."""

CAMERA_OFFSET = 100.0
READ_NOISE = 3.0


@dataclass(frozen=True)
class Channel:
    """The display settings of a channel: its name and its ``rrggbb`` colour."""

    label: str
    color: str


CHANNELS = (Channel("nuclei", "4080ff"), Channel("membrane", "30d060"), Channel("spots", "ff4fd8"))


@dataclass(frozen=True)
class Picture:
    """A synthetic image.

    Attributes:
        intensities: uint16 with the axes (c, z, y, x), one volume per entry of CHANNELS.
        labels: uint16 with the axes (z, y, x), the number of the nucleus at each voxel, or 0 for the background.
    """

    intensities: Volume
    labels: Volume


@dataclass(frozen=True)
class _Cell:
    """An ellipsoidal nucleus: centre and radii in voxels along (z, y, x), and its relative brightness."""

    center: tuple[float, float, float]
    radii: tuple[float, float, float]
    brightness: float

    def window(self, shape: tuple[int, ...], reach: float) -> tuple[slice, ...]:
        """Return the bounding box of the voxels within ``reach`` radii of the centre."""
        return tuple(
            slice(max(0, int(c - reach * r)), max(0, min(n, int(c + reach * r) + 2)))
            for c, r, n in zip(self.center, self.radii, shape, strict=True)
        )

    def distance(self, window: tuple[slice, ...]) -> Volume:
        """Return the distance of each voxel of a window from the centre in radii. It is 1 on the surface."""
        axes = (
            (np.arange(s.start, s.stop, dtype=np.float32) - c) / r
            for s, c, r in zip(window, self.center, self.radii, strict=True)
        )
        z, y, x = np.meshgrid(*axes, indexing="ij", sparse=True)
        return np.sqrt(z * z + y * y + x * x)


def make_picture(shape: tuple[int, int, int] = (40, 512, 512), seed: int = 0) -> Picture:
    """Return an image of ``shape`` (z, y, x). This takes about one second per 10 million voxels."""
    rng = np.random.default_rng(seed)
    signal = np.zeros((len(CHANNELS), *shape), np.float32)
    labels = np.zeros(shape, np.uint16)
    for number, cell in enumerate(_place_cells(shape, rng), start=1):
        _paint_cell(signal, labels, number, cell, rng)
    illumination = _illumination(shape)
    intensities = np.empty(signal.shape, np.uint16)
    for channel in range(len(CHANNELS)):
        for z in range(shape[0]):
            intensities[channel, z] = _expose(signal[channel, z] * illumination, rng)
    return Picture(intensities, labels)


def volume(shape: tuple[int, int, int], seed: int = 0) -> Volume:
    """Return one uint16 volume of ``shape`` (z, y, x) with noisy nuclei. The benchmarks use it."""
    rng = np.random.default_rng(seed)
    signal = np.zeros(shape, np.float32)
    for cell in _place_cells(shape, rng):
        window = cell.window(shape, 1.3)
        signal[window] += _nucleus(cell.distance(window), cell.brightness)
    illumination = _illumination(shape)
    return np.stack([_expose(plane * illumination, rng) for plane in signal])


def _place_cells(shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[_Cell]:
    """Yield cells at random positions with a minimum distance, about one per 60 x 60 pixels and 30 planes."""
    depth, height, width = shape
    expected_count = max(1, height * width * max(1.0, depth / 30) / 3600)
    scale = min(1.0, min(height, width) / 80)
    centers: list[tuple[float, float, float]] = []
    for _ in range(int(expected_count * 3)):
        if len(centers) >= expected_count:
            return
        center = tuple(float(rng.uniform(0.04, 0.96) * n) for n in shape)
        radii = tuple(float(r * scale * rng.uniform(0.8, 1.25)) for r in (7.0, 17.0, 17.0))
        squared_distances = (
            ((c[0] - center[0]) / 9) ** 2 + ((c[1] - center[1]) / 20) ** 2 + ((c[2] - center[2]) / 20) ** 2
            for c in centers
        )
        if any(squared_distance < 4 * scale * scale for squared_distance in squared_distances):
            continue
        centers.append((center[0], center[1], center[2]))
        yield _Cell(centers[-1], (radii[0], radii[1], radii[2]), float(rng.uniform(0.6, 1.4)))


def _nucleus(distance: Volume, brightness: float) -> Volume:
    """Return the intensity of a nucleus: an ellipsoid with a soft edge that is darker in its centre."""
    intensity: Volume = (
        700 * brightness * _smooth_step(distance, 1, 14) * (0.7 + 0.3 * np.minimum(distance, 1))
    )
    return intensity


def _smooth_step(distance: Volume, radius: float, steepness: float) -> Volume:
    """Return a smooth step: 1 inside the radius, 0 outside."""
    edge: Volume = (1 - np.tanh((distance - radius) * (steepness / 2))) / 2
    return edge


def _paint_cell(signal: Volume, labels: Volume, number: int, cell: _Cell, rng: np.random.Generator) -> None:
    shape = labels.shape
    inner = cell.window(shape, 1.3)
    distance = cell.distance(inner)
    signal[0][inner] += _nucleus(distance, cell.brightness)
    labels[inner][(distance < 1) & (labels[inner] == 0)] = number

    outer = cell.window(shape, 2.1)
    distance = cell.distance(outer)
    shell = 420 * np.exp(-(((distance - 1.6) / 0.11) ** 2)) + 60 * _smooth_step(distance, 1.6, 12)
    np.maximum(signal[1][outer], shell, out=signal[1][outer])

    for _ in range(int(rng.poisson(7))):
        direction = rng.standard_normal(3)
        direction *= rng.uniform(1.05, 1.5) / max(float(np.linalg.norm(direction)), 1e-6)
        center = tuple(c + d * r for c, d, r in zip(cell.center, direction, cell.radii, strict=True))
        spot = _Cell((center[0], center[1], center[2]), (1.2, 1.6, 1.6), float(rng.uniform(0.5, 2)))
        window = spot.window(shape, 3.0)
        signal[2][window] += 1500 * spot.brightness * np.exp(-(spot.distance(window) ** 2))


def _illumination(shape: tuple[int, ...]) -> Volume:
    """Return relative intensities that decrease from the centre of the field of view to its corners."""
    y = np.linspace(-1, 1, shape[1], dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, shape[2], dtype=np.float32)[None, :]
    return 1 - 0.18 * (x * x + y * y)


def _expose(photons: Volume, rng: np.random.Generator) -> Volume:
    """Convert photons to 16-bit camera counts with shot noise (normal approximation), read noise and offset."""
    sigma = np.sqrt(photons + READ_NOISE**2)
    counts = photons + CAMERA_OFFSET + sigma * rng.standard_normal(photons.shape, dtype=np.float32)
    return np.clip(np.rint(counts), 0, 65535).astype(np.uint16)


# -- OME-Zarr ----------------------------------------------------------------------------------------------


def write_image(
    location: str,
    picture: Picture,
    *,
    version: NgffVersion = "0.5",
    levels: int = 3,
    chunks: tuple[int, int, int] = (16, 128, 128),
    shards: tuple[int, int, int] | None = None,
    name: str = "synthetic cells",
) -> Group:
    """Write an image as a multiscale image with the label image ``labels/nuclei``, and return its group.

    Each of the ``levels`` halves y and x. ``chunks`` and ``shards`` are (z, y, x). Version 0.5 is written as Zarr v3,
    and 0.4 as Zarr v2, which does not support shards. An existing node at the location is replaced.
    """
    import zarrfs

    zarr_format = 3 if version == "0.5" else 2
    channel_axis = [{"name": "c", "type": "channel"}]
    space_axes = [{"name": n, "type": "space", "unit": "micrometer"} for n in "zyx"]

    image = zarrfs.create_group(location, zarr_format=zarr_format, overwrite=True)
    pyramid = list(_pyramid(picture.intensities, levels, _mean_of_four))
    for level, data in enumerate(pyramid):
        _write_level(image, str(level), data, (1, *chunks), shards and (1, *shards), "czyx")
    _set_ome(
        image,
        version,
        _multiscales(version, name, channel_axis + space_axes, len(pyramid), "mean") | _omero(pyramid[-1]),
    )

    labels = image.create_group("labels")
    _set_ome(labels, version, {"labels": ["nuclei"]})
    nuclei = labels.create_group("nuclei")
    for level, data in enumerate(_pyramid(picture.labels, levels, _max_of_four)):
        _write_level(nuclei, str(level), data, chunks, shards, "zyx")
    colors = _label_colors(int(picture.labels.max()))
    label_metadata = {"image-label": {"version": version, "colors": colors, "source": {"image": "../../"}}}
    _set_ome(
        nuclei,
        version,
        _multiscales(version, "nuclei", space_axes, len(pyramid), "greatest") | label_metadata,
    )
    return image


def _write_level(
    group: Group, name: str, data: Volume, chunks: Sequence[int], shards: Sequence[int] | None, axes: str
) -> None:
    clipped = tuple(min(c, n) for c, n in zip(chunks, data.shape, strict=True))
    array = group.create_array(
        name,
        shape=data.shape,
        dtype=data.dtype,
        chunks=clipped,
        shards=None if shards is None else tuple(shards),
        dimension_names=list(axes) if formats.features(group.zarr_format).dimension_names else None,
        dimension_separator="/",
    )
    array[...] = data


def _pyramid(data: Volume, levels: int, reduce: Any) -> Iterator[Volume]:
    yield data
    for _ in range(levels - 1):
        if min(data.shape[-2:]) < 2:
            return
        data = reduce(data[..., : data.shape[-2] // 2 * 2, : data.shape[-1] // 2 * 2])
        yield data


def _subgrids(data: Volume) -> list[Volume]:
    return [data[..., y::2, x::2] for y in (0, 1) for x in (0, 1)]


def _mean_of_four(data: Volume) -> Volume:
    a, b, c, d = (subgrid.astype(np.uint32) for subgrid in _subgrids(data))
    return ((a + b + c + d + 2) // 4).astype(data.dtype)


def _max_of_four(data: Volume) -> Volume:
    a, b, c, d = _subgrids(data)
    return np.maximum(np.maximum(a, b), np.maximum(c, d))


def _multiscales(
    version: NgffVersion, name: str, axes: list[dict[str, str]], levels: int, method: str
) -> dict[str, Any]:
    leading = [1.0] * (len(axes) - 3)
    datasets = []
    for level in range(levels):
        z, y, x = VOXEL_SIZE
        factor = 2**level
        # The centre of a coarse pixel lies between the centres of the fine pixels that it combines.
        shift = (factor - 1) / 2
        scale = {"type": "scale", "scale": [*leading, z, y * factor, x * factor]}
        translation = {
            "type": "translation",
            "translation": [*(0.0 for _ in leading), 0.0, y * shift, x * shift],
        }
        datasets.append({"path": str(level), "coordinateTransformations": [scale, translation]})
    entry: dict[str, Any] = {"name": name, "axes": axes, "datasets": datasets, "type": method}
    entry["metadata"] = {"description": f"the {method} of 2 x 2 pixels", "method": "zarrfs.synthetic"}
    if version == "0.4":
        entry["version"] = version
    return {"multiscales": [entry]}


def _omero(coarsest: Volume) -> dict[str, Any]:
    """Return the display settings of the channels: colours, and contrast limits from percentiles."""
    channels = []
    for channel, data in zip(CHANNELS, coarsest, strict=True):
        start, end = (float(value) for value in np.percentile(data, (20, 99.7)))
        window = {"min": 0.0, "max": 65535.0, "start": start, "end": end}
        channels.append({"label": channel.label, "color": channel.color, "active": True, "window": window})
    return {"omero": {"channels": channels, "rdefs": {"model": "color"}}}


def _label_colors(count: int) -> list[dict[str, Any]]:
    """Return a colour for each label. The golden ratio separates the hues of consecutive labels."""
    hues = (number * 0.618034 % 1 for number in range(count))
    colors = ([round(255 * part) for part in colorsys.hsv_to_rgb(hue, 0.65, 1.0)] for hue in hues)
    return [{"label-value": number, "rgba": [*rgb, 255]} for number, rgb in enumerate(colors, start=1)]


def _set_ome(group: Group, version: NgffVersion, document: dict[str, Any]) -> None:
    """Set OME-NGFF attributes: below the attribute ``ome`` in 0.5, at the root in 0.4."""
    group.attrs.update({"ome": {"version": version, **document}} if version == "0.5" else document)
