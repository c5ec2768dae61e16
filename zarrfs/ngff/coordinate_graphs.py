"""The graph of coordinate systems: which transformations connect them, and the transformation between any two.

The systems are the nodes, and the transformations are the edges. The array of each level has a system, too: that of its
indices. The metadata of all versions become the same graph; those before 0.6 have one system for each image. The
functions are pure; ``stored_graphs.py`` reads what a graph needs from a store. See
https://ngff.openmicroscopy.org/latest/#coord-trafo-md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zarrfs.errors import MetadataError
from zarrfs.ngff.model import (
    Axis,
    CoordinateSystem,
    CoordinateTransformation,
    Multiscales,
    Scene,
    SystemReference,
)
from zarrfs.ngff.transformations import Matrix, Scale, Transformation, Translation, sequence
from zarrfs.text import short_repr

__all__ = [
    "Composition",
    "CoordinateGraph",
    "Problem",
    "compose",
    "contradictions",
    "coordinate_graph",
    "joined_path",
    "unconnected",
    "unsuitable_reason",
]

RELATIVE_TOLERANCE = 1e-6
"""Two paths contradict each other if a number of their matrices differs by more than this, relative to its row."""

MAX_LISTED = 8
"""The number of coordinate systems that a message lists."""


class Problem(NamedTuple):
    """What is wrong with a part of a graph. ``place`` is a JSON pointer into the metadata of the group of the graph, or
    the path of another group and a pointer, or empty.
    """

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message


@dataclass(frozen=True)
class _Step:
    """One transformation of a path, in the direction in which it is used. ``edge`` is its number in the graph."""

    source: SystemReference
    target: SystemReference
    transformation: Transformation
    edge: int


def _inverse(transformation: Transformation) -> Transformation | None:
    try:
        return transformation.inverse()
    except MetadataError:  # its parameters have not been read
        return None


@dataclass(frozen=True)
class CoordinateGraph:
    """Coordinate systems, and the transformations between them.

    Attributes:
        systems: the systems by their references, whose paths are relative to one group.
        transformations: transformations between these systems. Each fits the numbers of their axes.
        problems: why other transformations are not part of the graph.
        shown: the system that the metadata recommend to display, None if they recommend none.
    """

    systems: Mapping[SystemReference, CoordinateSystem]
    transformations: tuple[CoordinateTransformation, ...]
    problems: tuple[Problem, ...] = ()
    shown: SystemReference | None = None

    @cached_property
    def steps(self) -> Mapping[SystemReference, tuple[_Step, ...]]:
        """The steps that begin at each system: the transformations, and the inverses that exist."""
        steps: dict[SystemReference, list[_Step]] = {}
        for number, edge in enumerate(self.transformations):
            steps.setdefault(edge.input, []).append(
                _Step(edge.input, edge.output, edge.transformation, number)
            )
            inverse = _inverse(edge.transformation)
            if inverse is not None:
                steps.setdefault(edge.output, []).append(_Step(edge.output, edge.input, inverse, number))
        return {reference: tuple(found) for reference, found in steps.items()}


@dataclass(frozen=True)
class Composition:
    """The transformation from one coordinate system to another.

    Attributes:
        input: the system of the points, with the names and units of their axes.
        output: the system to which they are transformed.
        transformation: the composed transformation.
        matrix: its matrix, with one row for each output axis; the last column is the translation. None if the
            transformation is not affine; then it can be applied to points.
    """

    input: CoordinateSystem
    output: CoordinateSystem
    transformation: Transformation
    matrix: Matrix | None

    def apply(self, points: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return points of shape (number, input axes) in the output system. Outside of a vector field they are NaN."""
        return self.transformation.apply(points)


def joined_path(base: str, path: str) -> str:
    """Return the path of a node, given relative to a group at ``base``, relative to the root.

    Raises MetadataError if it leaves the hierarchy.
    """
    parts: list[str] = [part for part in base.split("/") if part]
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise MetadataError(f"the path {short_repr(path)} leaves the hierarchy")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def coordinate_graph(
    images: Iterable[tuple[str, Multiscales]], scene: Scene | None = None
) -> CoordinateGraph:
    """Return the graph of images, with their paths, and of the scene of the group to which the paths are relative.

    An image contributes its systems, and those of the indices of its levels. The system to display is the first one of
    the scene; without a scene it is the one of the first image that the specification calls intrinsic.
    """
    problems: list[Problem] = []
    systems: dict[SystemReference, CoordinateSystem] = {}
    edges: list[CoordinateTransformation] = []
    shown = None
    if scene is not None:
        systems = {SystemReference("", system.name): system for system in reversed(scene.systems)}
        edges += _based(scene.transformations, "", problems)
        shown = SystemReference("", scene.systems[0].name) if scene.systems else None
    for path, image in images:
        _add_image(image, path, systems, edges, problems)
        if scene is None and shown is None:
            shown = SystemReference(path, image.system_name)
    suitable: list[CoordinateTransformation] = []
    for edge in edges:
        reason = unsuitable_reason(edge, systems)
        if reason is None:
            suitable.append(edge)
        else:
            problems.append(Problem(edge.pointer or _label(edge), reason))
    return CoordinateGraph(systems, tuple(suitable), tuple(problems), shown)


def _add_image(
    image: Multiscales,
    path: str,
    systems: dict[SystemReference, CoordinateSystem],
    edges: list[CoordinateTransformation],
    problems: list[Problem],
) -> None:
    axes = image.axes or _unnamed_axes(image)
    intrinsic = SystemReference(path, image.system_name)
    systems.setdefault(intrinsic, CoordinateSystem(image.system_name, axes))
    for system in image.other_systems:
        systems.setdefault(SystemReference(path, system.name), system)
    indices = CoordinateSystem("", tuple(replace(axis, unit=None, discrete=True) for axis in axes))
    for level in image.levels:
        try:
            array = SystemReference(joined_path(path, level.path))
        except MetadataError as error:
            problems.append(Problem(path, str(error)))
            continue
        systems[array] = indices
        steps: list[Transformation] = []
        if level.scale is not None:
            steps.append(Scale(level.scale))
        if level.translation is not None and any(level.translation):
            steps.append(Translation(level.translation))
        edges.append(CoordinateTransformation(array, intrinsic, sequence(tuple(steps))))
    edges += _based(image.transformations, path, problems)


def unsuitable_reason(
    edge: CoordinateTransformation, systems: Mapping[SystemReference, CoordinateSystem]
) -> str | None:
    """Return why a transformation cannot connect its systems; None if it can."""
    for reference in (edge.input, edge.output):
        if reference not in systems:
            return f"the coordinate system {reference} does not exist{_known(systems)}"
    if edge.input == edge.output:
        return f"its input and its output are the same coordinate system, {edge.input}"
    inputs, outputs = len(systems[edge.input].axes), len(systems[edge.output].axes)
    try:
        found = edge.transformation.output_rank(inputs)
    except MetadataError as error:
        return str(error)
    if found != outputs:
        return (
            f"transformation {edge.transformation.kind!r} has {found} output axes for {inputs} input axes, but "
            f"{edge.output} has {outputs} axes"
        )
    return None


def compose(graph: CoordinateGraph, source: SystemReference, target: SystemReference) -> Composition:
    """Return the transformation from the points of one coordinate system to those of another.

    Raises MetadataError if a system does not exist, if no path of transformations leads from one to the other, or if
    two paths contradict each other.
    """
    for reference in (source, target):
        if reference not in graph.systems:
            reasons = "".join(f"; {problem}" for problem in graph.problems[:MAX_LISTED])
            raise MetadataError(
                f"the coordinate system {reference} does not exist{_known(graph.systems)}{reasons}"
            )
    tree, others = _search(graph, source)
    if target not in tree:
        raise MetadataError(_no_path_reason(graph, set(tree), source, target))
    steps = _path(tree, target)
    _check_consistency(graph, tree, others, steps)
    transformation = sequence(tuple(step.transformation for step in steps))
    rank = len(graph.systems[source].axes)
    found = transformation.matrix(rank)
    matrix = None if found is None else tuple(tuple(float(value) + 0.0 for value in row) for row in found)
    return Composition(graph.systems[source], graph.systems[target], transformation, matrix)


def contradictions(graph: CoordinateGraph) -> Iterator[Problem]:
    """Yield the transformations that contradict others of the graph."""
    seen: set[SystemReference] = set()
    for reference in graph.systems:
        if reference in seen:
            continue
        tree, others = _search(graph, reference)
        for other in others:
            message = None if other.target in seen else _contradiction(graph, tree, other)
            if message is not None:
                yield Problem(graph.transformations[other.edge].pointer, message)
        seen |= set(tree)


def unconnected(graph: CoordinateGraph) -> list[SystemReference]:
    """Return the systems that no path of transformations, in any direction, connects with the first one."""
    neighbours: dict[SystemReference, list[SystemReference]] = {}
    for edge in graph.transformations:
        neighbours.setdefault(edge.input, []).append(edge.output)
        neighbours.setdefault(edge.output, []).append(edge.input)
    queue = list(graph.systems)[:1]
    reached = set(queue)
    for reference in queue:
        for other in neighbours.get(reference, ()):
            if other not in reached:
                reached.add(other)
                queue.append(other)
    return [reference for reference in graph.systems if reference not in reached]


Tree = dict[SystemReference, _Step | None]
"""The step that leads to each system that can be reached; None for the first system."""


def _search(graph: CoordinateGraph, source: SystemReference) -> tuple[Tree, list[_Step]]:
    """Return the shortest paths from a system to all that can be reached, and the steps that are on none of them."""
    tree: Tree = {source: None}
    others: list[_Step] = []
    used: set[int] = set()
    queue = [source]
    for reference in queue:
        for step in graph.steps.get(reference, ()):
            if step.target not in tree:
                tree[step.target] = step
                used.add(step.edge)
                queue.append(step.target)
            else:
                others.append(step)
    unique = {step.edge: step for step in reversed(others) if step.edge not in used}
    return tree, list(unique.values())


def _path(tree: Tree, target: SystemReference) -> list[_Step]:
    steps = []
    while (step := tree[target]) is not None:
        steps.append(step)
        target = step.source
    return steps[::-1]


def _check_consistency(graph: CoordinateGraph, tree: Tree, others: list[_Step], steps: list[_Step]) -> None:
    """Raise MetadataError if a cycle that contains a step of the path is not the identity.

    Each step outside of the tree closes one cycle with it. Two steps are on a common cycle if such cycles connect them,
    so that a contradiction elsewhere in the graph does not matter. Steps that are not affine are not compared.
    """
    groups: dict[SystemReference, SystemReference] = {}

    def group(reference: SystemReference) -> SystemReference:
        while (parent := groups.get(reference, reference)) != reference:
            groups[reference] = groups.get(parent, parent)
            reference = parent
        return reference

    # The path of each system ends at the first one. A step of the tree is identified by the system to which it leads.
    ends = []
    for other in others:
        one, two = _path(tree, other.source), _path(tree, other.target)
        shared = 0
        while shared < min(len(one), len(two)) and one[shared] == two[shared]:
            shared += 1
        cycle = [step.target for step in (*one[shared:], *two[shared:])]
        for member in cycle[1:]:
            groups[group(member)] = group(cycle[0])
        ends.append(cycle[0] if cycle else None)
    relevant = {group(step.target) for step in steps}
    for other, end in zip(others, ends, strict=True):
        if end is not None and group(end) in relevant:
            contradiction = _contradiction(graph, tree, other)
            if contradiction is not None:
                raise MetadataError(contradiction)


def _contradiction(graph: CoordinateGraph, tree: Tree, other: _Step) -> str | None:
    """Return how a step differs from the path to its target in the tree; None if it does not."""
    first = _path(tree, other.target)
    second = [*_path(tree, other.source), other]
    start = (first or second)[0].source
    rank = len(graph.systems[start].axes)
    one, two = (
        sequence(tuple(step.transformation for step in path)).matrix(rank) for path in (first, second)
    )
    if one is None or two is None:
        return None
    largest = np.maximum(np.abs(one), np.abs(two)).max(axis=1, keepdims=True)
    if np.all(np.abs(one - two) <= RELATIVE_TOLERANCE * largest):
        return None
    edge = graph.transformations[other.edge]
    return (
        f"two paths from {start} to {other.target} contradict each other: the first element is at "
        f"{_position(one)} by {_names(graph, first)}, and at {_position(two)} by {_names(graph, second)} "
        f"(see {edge.pointer or edge.name or edge.transformation.kind})"
    )


def _position(matrix: npt.NDArray[np.float64]) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in matrix[:, -1]) + ")"


def _names(graph: CoordinateGraph, steps: list[_Step]) -> str:
    if not steps:
        return "no transformation"
    return ", ".join(_label(graph.transformations[step.edge]) for step in steps[:MAX_LISTED])


def _label(edge: CoordinateTransformation) -> str:
    return short_repr(edge.name) if edge.name else f"{edge.input} -> {edge.output}"


def _no_path_reason(
    graph: CoordinateGraph,
    reached: set[SystemReference],
    source: SystemReference,
    target: SystemReference,
) -> str:
    blocked = [
        f"{edge.transformation.kind} from {edge.input} to {edge.output} has no inverse"
        for edge in graph.transformations
        if edge.output in reached and edge.input not in reached
    ]
    reasons = [*blocked, *map(str, graph.problems)][:MAX_LISTED]
    why = "; ".join(reasons) or "no transformations connect them"
    return f"there is no transformation from {source} to {target}: {why}"


def _known(systems: Mapping[SystemReference, CoordinateSystem]) -> str:
    named = [str(reference) for reference in systems if reference.name]
    if not named:
        return ""
    more = f" and {len(named) - MAX_LISTED} more" if len(named) > MAX_LISTED else ""
    return f" (existing: {', '.join(named[:MAX_LISTED])}{more})"


def _based(
    edges: Iterable[CoordinateTransformation], path: str, problems: list[Problem]
) -> Iterator[CoordinateTransformation]:
    """Yield transformations whose references are relative to the root instead of a group at ``path``."""
    for edge in edges:
        edge = replace(edge, pointer=f"{path}{edge.pointer}")
        try:
            yield replace(
                edge,
                input=edge.input._replace(path=joined_path(path, edge.input.path)),
                output=edge.output._replace(path=joined_path(path, edge.output.path)),
            )
        except MetadataError as error:
            problems.append(Problem(edge.pointer, str(error)))


def _unnamed_axes(image: Multiscales) -> tuple[Axis, ...]:
    """Return the axes of an image whose metadata do not list them, as many as its scales have numbers."""
    known: Any = next((level.scale for level in image.levels if level.scale is not None), ())
    return tuple(Axis(f"axis {number}") for number in range(len(known)))
