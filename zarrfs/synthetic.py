"""Microscopy that never was: a stack of cells with nuclei, membranes and spots, written as OME-Zarr.

For demonstrations, tests and benchmarks that need a believable picture and no download: the same arguments
give the same picture. Intensities have what real ones have: a camera offset, shot noise, uneven
illumination, and much near-constant background that compresses well. What the documents mean is defined by
OME-NGFF 0.4 and 0.5; reading them back is the business of ``zarrfs.ngff``.
"""

from __future__ import annotations

import colorsys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from zarrfs.engine.nodes.group import Group

__all__ = ["CHANNELS", "VOXEL_SIZE", "Channel", "Picture", "make_picture", "volume", "write_image"]

Volume = np.ndarray[Any, np.dtype[Any]]
NgffVersion = Literal["0.4", "0.5"]

VOXEL_SIZE = (1.0, 0.325, 0.325)
"""Micrometres per voxel along z, y, x: a 20x objective on a camera with 6.5 um pixels."""

OFFSET = 100.0
READ_NOISE = 3.0


@dataclass(frozen=True)
class Channel:
    """How one channel is shown: its name and ``rrggbb`` colour."""

    label: str
    color: str


CHANNELS = (Channel("nuclei", "4080ff"), Channel("membrane", "30d060"), Channel("spots", "ff4fd8"))


@dataclass(frozen=True)
class Picture:
    """``intensities`` (c, z, y, x) uint16, one volume per entry of CHANNELS, and ``labels`` (z, y, x)
    uint16, the number of the nucleus at each voxel or 0 for none.
    """

    intensities: Volume
    labels: Volume


@dataclass(frozen=True)
class _Cell:
    """An ellipsoidal nucleus: centre and radii in voxels (z, y, x), and how bright it is."""

    center: tuple[float, float, float]
    radii: tuple[float, float, float]
    brightness: float

    def window(self, shape: tuple[int, ...], reach: float) -> tuple[slice, ...]:
        """The box of voxels within ``reach`` radii of the centre."""
        return tuple(
            slice(max(0, int(c - reach * r)), max(0, min(n, int(c + reach * r) + 2)))
            for c, r, n in zip(self.center, self.radii, shape, strict=True)
        )

    def distance(self, window: tuple[slice, ...]) -> Volume:
        """Distance from the centre in radii (1 on the surface), for each voxel of a window."""
        axes = (
            (np.arange(s.start, s.stop, dtype=np.float32) - c) / r
            for s, c, r in zip(window, self.center, self.radii, strict=True)
        )
        z, y, x = np.meshgrid(*axes, indexing="ij", sparse=True)
        return np.sqrt(z * z + y * y + x * x)


def make_picture(shape: tuple[int, int, int] = (40, 512, 512), seed: int = 0) -> Picture:
    """Make a stack of ``shape`` (z, y, x). Takes about a second for each 10 million voxels."""
    rng = np.random.default_rng(seed)
    signal = np.zeros((len(CHANNELS), *shape), np.float32)
    labels = np.zeros(shape, np.uint16)
    for number, cell in enumerate(_place_cells(shape, rng), start=1):
        _paint_cell(signal, labels, number, cell, rng)
    light = _illumination(shape)
    intensities = np.empty(signal.shape, np.uint16)
    for channel in range(len(CHANNELS)):
        for z in range(shape[0]):
            intensities[channel, z] = _expose(signal[channel, z] * light, rng)
    return Picture(intensities, labels)


def volume(shape: tuple[int, int, int], seed: int = 0) -> Volume:
    """One uint16 volume (z, y, x) of noisy nuclei: what benchmarks read and write."""
    rng = np.random.default_rng(seed)
    signal = np.zeros(shape, np.float32)
    for cell in _place_cells(shape, rng):
        window = cell.window(shape, 1.3)
        signal[window] += _nucleus(cell.distance(window), cell.brightness)
    light = _illumination(shape)
    return np.stack([_expose(plane * light, rng) for plane in signal])


def _place_cells(shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[_Cell]:
    """Cells at random places that keep a little distance, about one for each 40 x 40 pixels and 30 planes."""
    depth, height, width = shape
    wanted = max(1, height * width * max(1.0, depth / 30) / 3600)
    scale = min(1.0, min(height, width) / 80)
    taken: list[tuple[float, float, float]] = []
    for _ in range(int(wanted * 3)):
        if len(taken) >= wanted:
            return
        center = tuple(float(rng.uniform(0.04, 0.96) * n) for n in shape)
        radii = tuple(float(r * scale * rng.uniform(0.8, 1.25)) for r in (7.0, 17.0, 17.0))
        gaps = (
            ((c[0] - center[0]) / 9) ** 2 + ((c[1] - center[1]) / 20) ** 2 + ((c[2] - center[2]) / 20) ** 2
            for c in taken
        )
        if any(gap < 4 * scale * scale for gap in gaps):
            continue
        taken.append((center[0], center[1], center[2]))
        yield _Cell(taken[-1], (radii[0], radii[1], radii[2]), float(rng.uniform(0.6, 1.4)))


def _nucleus(distance: Volume, brightness: float) -> Volume:
    """A soft-edged ball, a little hollow in its middle as chromatin is."""
    ball: Volume = 700 * brightness * _inside(distance, 1, 14) * (0.7 + 0.3 * np.minimum(distance, 1))
    return ball


def _inside(distance: Volume, radius: float, steepness: float) -> Volume:
    """1 well inside the radius, 0 well outside."""
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
    shell = 420 * np.exp(-(((distance - 1.6) / 0.11) ** 2)) + 60 * _inside(distance, 1.6, 12)
    np.maximum(signal[1][outer], shell, out=signal[1][outer])

    for _ in range(int(rng.poisson(7))):
        direction = rng.standard_normal(3)
        direction *= rng.uniform(1.05, 1.5) / max(float(np.linalg.norm(direction)), 1e-6)
        center = tuple(c + d * r for c, d, r in zip(cell.center, direction, cell.radii, strict=True))
        spot = _Cell((center[0], center[1], center[2]), (1.2, 1.6, 1.6), float(rng.uniform(0.5, 2)))
        window = spot.window(shape, 3.0)
        signal[2][window] += 1500 * spot.brightness * np.exp(-(spot.distance(window) ** 2))


def _illumination(shape: tuple[int, ...]) -> Volume:
    """Brighter in the middle of the field of view than in its corners."""
    y = np.linspace(-1, 1, shape[1], dtype=np.float32)[:, None]
    x = np.linspace(-1, 1, shape[2], dtype=np.float32)[None, :]
    return 1 - 0.18 * (x * x + y * y)


def _expose(light: Volume, rng: np.random.Generator) -> Volume:
    """Photons to camera counts: shot noise (its normal approximation), read noise, offset, 16 bits."""
    sigma = np.sqrt(light + READ_NOISE**2)
    counts = light + OFFSET + sigma * rng.standard_normal(light.shape, dtype=np.float32)
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
    """Write the picture as a multiscale image with a label image ``labels/nuclei``, and return its group.

    Each of the ``levels`` halves y and x. ``chunks`` and ``shards`` are (z, y, x); shards need version 0.5,
    which is written as Zarr v3, while 0.4 is Zarr v2. What is at the location already is replaced.
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
    for level, data in enumerate(_pyramid(picture.labels, levels, _greatest_of_four)):
        _write_level(nuclei, str(level), data, chunks, shards, "zyx")
    colors = _label_colors(int(picture.labels.max()))
    about = {"image-label": {"version": version, "colors": colors, "source": {"image": "../../"}}}
    _set_ome(nuclei, version, _multiscales(version, "nuclei", space_axes, len(pyramid), "greatest") | about)
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
        dimension_names=list(axes) if group.zarr_format == 3 else None,
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


def _quarters(data: Volume) -> list[Volume]:
    return [data[..., y::2, x::2] for y in (0, 1) for x in (0, 1)]


def _mean_of_four(data: Volume) -> Volume:
    a, b, c, d = (quarter.astype(np.uint32) for quarter in _quarters(data))
    return ((a + b + c + d + 2) // 4).astype(data.dtype)


def _greatest_of_four(data: Volume) -> Volume:
    a, b, c, d = _quarters(data)
    return np.maximum(np.maximum(a, b), np.maximum(c, d))


def _multiscales(
    version: NgffVersion, name: str, axes: list[dict[str, str]], levels: int, method: str
) -> dict[str, Any]:
    leading = [1.0] * (len(axes) - 3)
    datasets = []
    for level in range(levels):
        z, y, x = VOXEL_SIZE
        factor = 2**level
        # The centre of the first coarse pixel lies between the fine ones that it sums up.
        shift = (factor - 1) / 2
        scale = {"type": "scale", "scale": [*leading, z, y * factor, x * factor]}
        move = {"type": "translation", "translation": [*(0.0 for _ in leading), 0.0, y * shift, x * shift]}
        datasets.append({"path": str(level), "coordinateTransformations": [scale, move]})
    entry: dict[str, Any] = {"name": name, "axes": axes, "datasets": datasets, "type": method}
    entry["metadata"] = {"description": f"the {method} of 2 x 2 pixels", "method": "zarrfs.synthetic"}
    if version == "0.4":
        entry["version"] = version
    return {"multiscales": [entry]}


def _omero(coarsest: Volume) -> dict[str, Any]:
    """Channel colours, and a window for each that shows its structures well."""
    channels = []
    for channel, data in zip(CHANNELS, coarsest, strict=True):
        start, end = (float(value) for value in np.percentile(data, (20, 99.7)))
        window = {"min": 0.0, "max": 65535.0, "start": start, "end": end}
        channels.append({"label": channel.label, "color": channel.color, "active": True, "window": window})
    return {"omero": {"channels": channels, "rdefs": {"model": "color"}}}


def _label_colors(count: int) -> list[dict[str, Any]]:
    """A colour for each label; the golden angle between hues keeps neighbours in number apart."""
    hues = (number * 0.618034 % 1 for number in range(count))
    colors = ([round(255 * part) for part in colorsys.hsv_to_rgb(hue, 0.65, 1.0)] for hue in hues)
    return [{"label-value": number, "rgba": [*rgb, 255]} for number, rgb in enumerate(colors, start=1)]


def _set_ome(group: Group, version: NgffVersion, document: dict[str, Any]) -> None:
    """0.5 keeps everything below the attribute ``ome``, 0.4 at the root."""
    group.attrs.update({"ome": {"version": version, **document}} if version == "0.5" else document)
