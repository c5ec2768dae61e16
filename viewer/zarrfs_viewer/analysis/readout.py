"""The values at the pointer, from cached tiles, and the scale bar. Pure functions; nothing is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from zarrfs.ngff.units import convert
from zarrfs_viewer.display.overlay import level_map
from zarrfs_viewer.display.resolve import DisplayState, Layer
from zarrfs_viewer.images.chunk_keys import chunk_key
from zarrfs_viewer.images.image import Image
from zarrfs_viewer.images.resampling import ResampledArray
from zarrfs_viewer.images.tile_grid import ALL, PlaneKey, TileKey
from zarrfs_viewer.images.values import component, time_value
from zarrfs_viewer.streaming.streamer import TileStreamer

__all__ = [
    "LabelReadout",
    "LayerReadout",
    "LayersReadout",
    "Readout",
    "ScaleBar",
    "Unreadable",
    "exact_text",
    "format_bytes",
    "format_coordinate",
    "format_value",
    "readout",
    "scale_bar",
    "short_unit",
]


@dataclass(frozen=True)
class Unreadable:
    """In the place of a value that could not be read, with the message of the error."""

    reason: str

    @property
    def summary(self) -> str:
        """The reason without the location at its beginning, which is long."""
        return self.reason.partition(": ")[2] or self.reason


@dataclass(frozen=True)
class LabelReadout:
    """The label of one label image at a point. ``value`` is None if its tile is not cached or could not be read;
    ``error`` is the reason of the latter. ``properties`` are the properties of the label.
    """

    name: str
    value: int | None
    properties: Mapping[str, Any]
    error: Unreadable | None = None


SEPARATOR = " · "


@dataclass(frozen=True)
class Readout:
    """The values at one point.

    ``pixel`` is the index per axis in ``level``, 0 for the channel axis; of a sampled plane it is the pixel that was
    read, at or before the point. ``physical`` has (axis, value, unit) of all axes with a name except channels, and
    ``steps`` the pixel size of each in level 0. ``values`` has (label, value) of each drawn channel. The value is None
    if its tile is not cached, ``Unreadable`` if it could not be read, and a time of NumPy for times. ``chunk`` is the
    store key of the chunk of the first drawn channel, or None. ``unit`` is that of the values. ``stored`` has the
    stored number of each value that is stored in packed form, else None. ``value_step`` is the distance of values of
    adjacent stored numbers, or None.
    """

    pixel: tuple[int, ...]
    physical: tuple[tuple[str, float, str | None], ...]
    steps: tuple[float, ...]
    level: int
    values: tuple[tuple[str, Any], ...]
    labels: tuple[LabelReadout, ...]
    chunk: str | None
    unit: str | None = None
    stored: tuple[Any, ...] = ()
    value_step: float | None = None

    def text(self) -> str:
        """Return the readout as one line for the status bar."""
        return SEPARATOR.join((*self.position_parts(), *self.value_parts()))

    def position_parts(self) -> list[str]:
        """Return the physical coordinates as texts."""
        return [
            f"{name} {format_coordinate(value, step)}{' ' + short_unit(unit) if unit else ''}"
            for (name, value, unit), step in zip(self.physical, self.steps, strict=True)
        ]

    def value_parts(self) -> list[str]:
        """Return the indices, the values and the chunk as texts."""
        parts = [f"pixel ({', '.join(map(str, self.pixel))}) of level {self.level}"]
        for number, (name, value) in enumerate(self.values):
            text = self.value_text(value, self.stored[number] if self.stored else None)
            parts.append(f"{name}: {text}" if name else text)
        for label in self.labels:
            if label.error is not None:
                parts.append(f"{label.name}: {format_value(label.error)}")
            elif label.value:
                properties = ", ".join(f"{key}={value}" for key, value in label.properties.items())
                parts.append(f"{label.name}: {label.value}{f' ({properties})' if properties else ''}")
        if self.chunk is not None:
            parts.append(f"chunk {self.chunk}")
        return parts

    def value_text(self, value: Any, stored: Any) -> str:
        """Return a value with its unit, and the number by which it is stored."""
        if self.value_step is not None and isinstance(value, float):
            text = "no data" if math.isnan(value) else format_coordinate(value, self.value_step)
        else:
            text = format_value(value)
        if self.unit and isinstance(value, int | float | complex) and value == value:
            text += f" {self.unit}"
        return text if stored is None else f"{text} (stored {stored})"


def format_coordinate(value: float, step: float) -> str:
    """Return a coordinate with at least 6 digits, and with a digit more than the pixel size ``step`` needs."""
    digits = 6
    if value and step and math.isfinite(value) and math.isfinite(step):
        digits = math.ceil(math.log10(abs(value)) - math.log10(abs(step))) + 2
    return f"{value:.{min(max(digits, 6), 15)}g}"


def format_value(value: Any) -> str:
    """Return a value as text: all digits of integers, 6 digits of floats, ISO 8601 for dates, ``…`` for None, and the
    reason if it is unreadable.
    """
    if value is None:
        return "…"
    if isinstance(value, Unreadable):
        return f"unreadable: {value.summary}"
    if isinstance(value, tuple):
        return f"({', '.join(map(format_value, value))})"
    if isinstance(value, bool | int | str | np.datetime64 | np.timedelta64):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.6g}"
    return f"{value:.6g}"


def exact_text(value: Any) -> str:
    """Return a value as text with as many digits as its data type needs, so that it can be used in other programs."""
    if isinstance(value, tuple):
        return f"({', '.join(map(exact_text, value))})"
    return value if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class LayerReadout:
    """The values of a layer at a point."""

    name: str
    values: Readout


@dataclass(frozen=True)
class LayersReadout:
    """The values of the first image at a point, None outside of it, and those of the layers over it."""

    first: Readout | None
    layers: tuple[LayerReadout, ...]

    def text(self) -> str:
        """Return the position and the values as one line for the status bar."""
        found = [] if self.first is None else [self.first.text()]
        if self.first is None and self.layers:
            # All layers are at the same position of the coordinate system that is shown.
            found = self.layers[0].values.position_parts()
        for layer in self.layers[:MAX_LAYERS]:
            found.append(f"{layer.name}: {', '.join(layer.values.value_parts())}")
        if len(self.layers) > MAX_LAYERS:
            found.append(f"{len(self.layers) - MAX_LAYERS} more layers")
        return SEPARATOR.join(found)


MAX_LAYERS = 8
"""The number of layers whose values the status bar lists."""


def readout(state: DisplayState, streamer: TileStreamer, row: float, column: float) -> Readout | None:
    """Return the readout at a point of the displayed plane in data coordinates, or None outside of the image."""
    image, displayed = state.image, state.settings.displayed
    for axis, value in zip(displayed, (row, column), strict=True):
        if not -0.5 <= value < image.shape[axis] - 0.5:
            return None
    displayed_position = dict(zip(displayed, (row, column), strict=True))
    position = [displayed_position.get(axis, value) for axis, value in enumerate(state.settings.position)]
    if _is_outside(state, position):
        return None
    steps = dict(zip(displayed, state.grid.steps, strict=True))
    pixel = tuple(
        0
        if axis in (image.channel_axis, image.rgb_axis)
        else image.level_index(state.level, axis, value) // steps.get(axis, 1) * steps.get(axis, 1)
        for axis, value in enumerate(position)
    )
    level, pixel = _stored_pixel(state, position, pixel)
    named = [axis for axis in image.slider_axes if image.axes[axis].name]
    physical = tuple(
        (image.axes[axis].name, image.to_physical(axis, position[axis]), image.axes[axis].unit)
        for axis in named
    )
    channel_layers = [layer for layer in state.layers if layer.channel is not None]
    values = tuple(
        (layer.channel.label, _value(state, streamer, layer, row, column))
        for layer in channel_layers
        if layer.channel
    )
    return Readout(
        pixel,
        physical,
        tuple(image.levels[0].scale[axis] for axis in named),
        level,
        values,
        tuple(_labels(state, streamer, row, column)),
        _chunk_key(state, channel_layers, row, column),
        image.value_unit,
        tuple(_stored_number(image, state, value) for _, value in values),
        None if image.packing is None else image.packing.scale,
    )


def _stored_pixel(
    state: DisplayState, position: list[float], pixel: tuple[int, ...]
) -> tuple[int, tuple[int, ...]]:
    """Return the level and the indices of a pixel in the stored array: of a resampled image, those of the nearest
    element.
    """
    image = state.image
    array = image.levels[state.level].array
    if not isinstance(array, ResampledArray):
        return state.level, pixel
    places = tuple(image.to_level(state.level, axis, position[axis]) for axis in array.axes)
    stored = list(pixel)
    for axis, place in zip(array.axes, array.source_positions(places), strict=True):
        stored[axis] = min(max(math.floor(place + 0.5 + 1e-9), 0), array.source.shape[axis] - 1)
    # Levels that are finer than the pyramid have the path of its finest level.
    paths = list(dict.fromkeys(level.path for level in image.levels))
    return paths.index(image.levels[state.level].path), tuple(stored)


def _is_outside(state: DisplayState, position: list[float]) -> bool:
    """Return whether a position in the box of a resampled image is outside of the image."""
    array = state.image.levels[0].array
    if not isinstance(array, ResampledArray):
        return False
    return not bool(array.covers(tuple(np.float64(position[axis]) for axis in array.axes)))


def _stored_number(image: Image, state: DisplayState, value: Any) -> Any:
    """Return the number by which a value of the image is stored, or None if it is not packed or is a projection."""
    if image.packing is None or state.settings.projection is not None or not isinstance(value, float):
        return None
    return image.packing.stored_number(value)


def _labels(state: DisplayState, streamer: TileStreamer, row: float, column: float) -> Iterator[LabelReadout]:
    for layer in state.layers:
        if layer.labels is None:
            continue
        stored_value = _value(state, streamer, layer, row, column)
        if isinstance(stored_value, Unreadable):
            yield LabelReadout(layer.image.name, None, {}, stored_value)
            continue
        label = None if stored_value is None else int(stored_value)
        properties = layer.image.image_label.properties if layer.image.image_label is not None else {}
        yield LabelReadout(layer.image.name, label, properties.get(label, {}) if label is not None else {})


def _value(state: DisplayState, streamer: TileStreamer, layer: Layer, row: float, column: float) -> Any:
    """Return the value in the displayed level, ``Unreadable`` if it could not be read, or None if it is not in the
    cache: a value of a coarser level, which is drawn meanwhile, is not that of the pixel. Complex numbers are returned
    unchanged.
    """
    plane = layer.planes[-1]
    pixel = _pixel(state, layer.image, plane, row, column)
    if pixel is None:
        return None
    row_pixel, column_pixel = pixel[0] // plane.steps[0], pixel[1] // plane.steps[1]
    tile_shape = layer.image.grid(plane.level, plane.displayed, plane.steps).tile
    key = TileKey(plane, row_pixel // tile_shape[0], column_pixel // tile_shape[1])
    for error in streamer.failures([key]):
        if error.contains(row_pixel, column_pixel):
            return Unreadable(error.message)
    tile = streamer.get(key)
    if tile is None:
        return None
    value = tile[row_pixel % tile_shape[0], column_pixel % tile_shape[1]]
    if tile.ndim == 3:
        return tuple(value.tolist())
    dtype = layer.image.dtype
    if tile.dtype.names is not None and layer.channel is not None:
        field = layer.channel.field
        value = component(np.array([value], tile.dtype), "value", field)[0]
        dtype = dtype[field] if field is not None else dtype
    if dtype.kind in "mM":
        return time_value(value.item(), dtype)
    packing = layer.image.packing if plane.slab is None else None
    return value.item() if packing is None else packing.exact(value.item())


def _pixel(
    state: DisplayState, image: Image, plane: PlaneKey, row: float, column: float
) -> tuple[int, int] | None:
    """Return the (row, column) of a plane's pixel at a point, or None outside of the plane."""
    pixels = []
    sides = zip(state.settings.displayed, plane.displayed, (row, column), strict=True)
    for front_axis, axis, value in sides:
        factor, offset = level_map(state.image, image, plane.level, front_axis, axis)
        pixel = math.floor(factor * value + offset + 0.5 + 1e-9)
        length = image.levels[plane.level].shape[axis]
        if image is state.image:
            pixel = min(max(pixel, 0), length - 1)
        if not 0 <= pixel < length:
            return None
        pixels.append(pixel)
    return pixels[0], pixels[1]


def _chunk_key(state: DisplayState, channel_layers: list[Layer], row: float, column: float) -> str | None:
    layer = next(iter(channel_layers), next(iter(state.layers), None))
    if layer is None:
        return None
    plane = layer.planes[-1]
    pixel = _pixel(state, layer.image, plane, row, column)
    if pixel is None:
        return None
    element = [0 if index == ALL else index for index in plane.indices]
    element[plane.displayed[0]], element[plane.displayed[1]] = pixel
    return chunk_key(layer.image.levels[plane.level].array, element)


@dataclass(frozen=True)
class ScaleBar:
    """A scale bar: its length in device pixels, and its text."""

    pixels: float
    text: str


PREFIXES = {-5: "f", -4: "p", -3: "n", -2: "µ", -1: "m", 0: "", 1: "k"}
SYMBOLS = {"angstrom": "Å", "centimeter": "cm", "minute": "min", "hour": "h", "day": "d"}
"""The symbols of units that are not a power of 1000 of the metre or the second."""


@lru_cache(maxsize=256)
def _si_unit(unit: str) -> tuple[str, float] | None:
    """Return the symbol and the multiple of the SI unit of a decimal unit of length or time; None for other units."""
    for base, name in (("m", "meter"), ("s", "second")):
        size = convert(1.0, unit, name)
        if size is not None and abs(math.log10(size) - round(math.log10(size))) < 1e-9:
            return base, size
    return None


@lru_cache(maxsize=256)
def short_unit(unit: str) -> str:
    """Return the symbol of a unit name of OME-NGFF, such as ``µm`` for ``micrometer``. Other names are unchanged."""
    si_unit = _si_unit(unit)
    if si_unit is not None:
        base, size = si_unit
        exponent = math.log10(size) / 3
        if abs(exponent - round(exponent)) < 1e-9 and round(exponent) in PREFIXES:
            return PREFIXES[round(exponent)] + base
    return SYMBOLS.get(unit, unit)


def scale_bar(image: Image, axis: int, zoom: float, target: float = 120.0) -> ScaleBar:
    """Return the longest bar of at most ``target`` device pixels whose length is 1, 2 or 5 times a power of ten.

    ``zoom`` is the number of device pixels per data pixel along ``axis``. The length has a suitable SI prefix:
    2 mm, not 2000 µm. The length along an axis without a unit is in pixels.
    """
    unit = image.axes[axis].unit
    size = abs(image.levels[0].scale[axis]) if unit else 1.0
    si_unit = None if unit is None else _si_unit(unit)
    if si_unit is not None:
        return _si_scale_bar(si_unit[0], size * si_unit[1] / zoom, target)
    length = _round_below(target * size / zoom)
    return ScaleBar(length * zoom / size, f"{length:g} {unit or 'px'}")


def _round_below(value: float) -> float:
    """Return the largest 1, 2 or 5 times a power of ten that is not above ``value``."""
    power: float = 10.0 ** math.floor(math.log10(value) + 1e-12)
    return max(step for step in (1, 2, 5) if step * power <= value * (1 + 1e-9)) * power


def _si_scale_bar(base: str, units_per_pixel: float, target: float) -> ScaleBar:
    length = _round_below(target * units_per_pixel)
    exponent = min(max(math.floor(math.log10(length) / 3 + 1e-9), min(PREFIXES)), max(PREFIXES))
    if base == "s":
        exponent = min(exponent, 0)
    return ScaleBar(length / units_per_pixel, f"{length / 1000.0**exponent:.6g} {PREFIXES[exponent]}{base}")


def format_bytes(nbytes: float) -> str:
    """Return a number of bytes with a binary prefix, such as ``1.5 GiB``."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if nbytes < 1024 or unit == "TiB":
            break
        nbytes /= 1024
    return f"{nbytes:.4g} {unit}"
