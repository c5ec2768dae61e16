"""Arrays as stacks of planes along the axes z, c and t, for formats of microscopy.

The plane consists of the axes y and x, or of the last two dimensions if the array has no such axes. Dimensions that are
neither of x, y, z, c and t belong to t: they change more slowly than the time axis. The values of an RGB image are the
samples of its pixels, where the format has such pixels.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Literal

from zarrfs.engine.array.array import Array
from zarrfs.files.content.content import ArraySegment
from zarrfs.files.tiff.directories import ImageTags, TiffForm, fraction_tag_values
from zarrfs.files.view import PresentedArray, fixed_size_unsupported_reason
from zarrfs.ngff.geometry import Role

__all__ = ["ImageStack", "image_stack", "plane_resolution", "plane_tags", "stack_unsupported_reason"]

MAX_LENGTH = 2**31 - 1
"""The maximum width and height of an image."""

CENTIMETER = 3
"""The value of the tag ResolutionUnit."""

STACK_ROLES: tuple[Role, ...] = ("t", "z", "c")

RGB = ((255, 0, 0), (0, 255, 0), (0, 0, 255))
"""The colours of the channels of an RGB image, if its metadata state colours. A fourth channel is the opacity."""


@dataclass(frozen=True)
class ImageStack:
    """An array as a stack of planes.

    Attributes:
        order: the dimensions of the array, from the slowest to the fastest one.
        dimensions: the dimension with each role, for those that exist.
        sizes: the length of each of the axes x, y, z, c and t; 1 for an axis that does not exist.
        stack_axes: the axes z, c and t, from the slowest to the fastest one.
        samples: the number of values of a pixel: 3 or 4 for an RGB image, whose axis c has the length 1 then.
    """

    order: tuple[int, ...]
    dimensions: Mapping[Role, int]
    sizes: Mapping[Role, int]
    stack_axes: tuple[Role, ...]
    samples: int = 1

    @property
    def plane_count(self) -> int:
        """The number of planes."""
        return self.sizes["z"] * self.sizes["c"] * self.sizes["t"]

    def segment(self, array: Array) -> ArraySegment:
        """Return the elements of the array, plane by plane."""
        return ArraySegment(array, "C" if self.order == tuple(range(array.ndim)) else self.order)


def image_stack(
    presented: PresentedArray, *, keep_order: bool = False, may_be_rgb: bool = False
) -> ImageStack:
    """Return an array as a stack of planes: t changes slowest, then z, then c.

    With ``keep_order`` these axes are in the order of the array instead, unless dimensions have to be merged. With
    ``may_be_rgb`` the values along c are the samples of pixels if the array is an RGB image.
    """
    shape, geometry = presented.array.shape, presented.geometry
    found = {role: geometry.find(role) for role in ("x", "y", "z", "c", "t")}
    dimensions: dict[Role, int] = {
        axis.role: number for number, axis in enumerate(geometry.axes) if axis.role is not None
    }
    if found["x"] is None or found["y"] is None:
        plane = {len(shape) - 1, len(shape) - 2}
        dimensions = {
            role: number for role, number in dimensions.items() if number not in plane and role in "zct"
        }
        if len(shape) > 0:
            dimensions["x"] = len(shape) - 1
        if len(shape) > 1:
            dimensions["y"] = len(shape) - 2
    samples = shape[-1] if may_be_rgb and _is_rgb(presented) else 1
    last = (dimensions.pop("c"),) if samples > 1 else ()
    others = [number for number in range(len(shape)) if number not in (*dimensions.values(), *last)]
    stack_axes = STACK_ROLES
    if keep_order and not others:
        present = sorted((dimensions[role], role) for role in STACK_ROLES if role in dimensions)
        stack_axes = (
            *(role for role in STACK_ROLES if role not in dimensions),
            *(role for _, role in present),
        )
    roles: tuple[Role, ...] = (*stack_axes, "y", "x")
    sizes: dict[Role, int] = {role: shape[dimensions[role]] if role in dimensions else 1 for role in roles}
    sizes["t"] *= prod(shape[number] for number in others)
    if last:
        stack_axes = (*(role for role in stack_axes if role != "c"), "c")  # the samples change fastest
    order = (*others, *(dimensions[role] for role in roles if role in dimensions), *last)
    return ImageStack(order, dimensions, sizes, stack_axes, samples)


def _is_rgb(presented: PresentedArray) -> bool:
    """Return whether an array has the axes y, x and c at its end, with 3 or 4 values of 8 bits, which are colours."""
    shape, geometry = presented.array.shape, presented.geometry
    if presented.array.dtype.name != "uint8" or len(shape) < 3 or shape[-1] not in (len(RGB), len(RGB) + 1):
        return False
    if [geometry.find(role) for role in ("y", "x", "c")] != [len(shape) - 3, len(shape) - 2, len(shape) - 1]:
        return False
    colors = [channel.color for channel in geometry.channels[: len(RGB)]]
    return not colors or colors == list(RGB)


def stack_unsupported_reason(array: Array, types: Container[str], program: str) -> str | None:
    """Return why an array cannot be presented as a stack of planes of one of the types, which are names of dtypes."""
    unsupported_reason = fixed_size_unsupported_reason(array)
    if unsupported_reason is not None:
        return unsupported_reason
    if array.dtype.name not in types:
        return f"{program} has no data type for its elements ({array.spec.data_type.name})"
    if array.size == 0:
        return "it has no elements"
    return None


def plane_resolution(
    scale: Mapping[Literal["x", "y"], float],
) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """Return the elements per unit in x and y as the values of RATIONAL tags, or None if they are out of range."""
    values = [fraction_tag_values(1 / abs(Fraction(repr(scale[axis])))) for axis in ("x", "y")]
    return None if values[0] is None or values[1] is None else (values[0], values[1])


def plane_tags(presented: PresentedArray, stack: ImageStack, form: TiffForm) -> ImageTags:
    """Return the tags of one plane. The resolution is per centimetre, if the unit of the axes is known."""
    roles: list[Role] = [role for role in ("x", "y") if role in stack.dimensions]
    grid = presented.geometry.physical_grid([stack.dimensions[role] for role in roles], "centimeter")
    resolution = None
    if roles == ["x", "y"] and grid.unit is not None:
        resolution = plane_resolution({"x": grid.scale[0], "y": grid.scale[1]})
    unit = CENTIMETER if resolution is not None else 1
    width, height = stack.sizes["x"], stack.sizes["y"]
    return ImageTags(form, presented.array.dtype, width, height, resolution, unit, stack.samples)
