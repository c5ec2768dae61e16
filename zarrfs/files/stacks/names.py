"""The names of the files of a stack: which number or text in them is the position along which axis. No I/O.

A pattern describes the names: ``{z}``, ``{t}`` and ``{c}`` stand for the number (or the text) of the position along an
axis, ``*`` for any text. Patterns are recognized from the names, or given by the user.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from zarrfs.errors import LocationError, OptionError, UnsupportedError

__all__ = ["STACK_AXES", "StackLayout", "natural_order", "recognized_pattern", "stack_layout"]

STACK_AXES = "tcz"
"""The axes along which files are put together, in the order of the result."""

POSITION = "position"
"""The class of numbers that denote different images: positions of the stage, fields, tiles."""

WORDS = {
    **dict.fromkeys(("t", "time", "timepoint", "tp", "frame"), "t"),
    **dict.fromkeys(("c", "ch", "channel", "w", "wavelength"), "c"),
    **dict.fromkeys(("z", "slice", "sl", "section", "plane", "depth", "layer"), "z"),
    **dict.fromkeys(("p", "pos", "position", "s", "series", "xy", "f", "field", "fov", "site"), POSITION),
    **dict.fromkeys(("well", "tile", "x", "y", "row", "col", "column"), POSITION),
}
"""What a number means, by the word before it."""

TOKEN = re.compile(r"\d+|[^\W\d_]+|[\W_]+")
"""Numbers, words, and what separates them."""

PLACEHOLDER = re.compile(r"\{([^{}]*)\}|(\*)")

MAX_NAMED = 3
"""The maximum number of files or positions that an error names."""


@dataclass(frozen=True)
class StackLayout:
    """The positions of the files of a stack.

    Attributes:
        pattern: the pattern of the names.
        axes: the axes along which the files are put together, in the order t, c, z.
        values: for each axis the texts at its place in the names, in order.
        files: the paths of the files, in C order of their positions.
    """

    pattern: str
    axes: str
    values: tuple[tuple[str, ...], ...]
    files: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of positions along each axis."""
        return tuple(map(len, self.values))

    def __str__(self) -> str:
        parts = []
        for axis, values in zip(self.axes, self.values, strict=True):
            listed = ", ".join(values) if len(values) <= MAX_NAMED else f"{values[0]} to {values[-1]}"
            parts.append(f"{axis} {len(values)} ({listed})")
        return (
            f"a stack of {len(self.files)} files with names of the pattern {self.pattern}: {', '.join(parts)}"
        )


def natural_order(path: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts the numbers in file names by their value: ``z2.png`` before ``z10.png``."""
    return tuple(
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path) if part
    )


def stack_layout(names: Sequence[str], pattern: str | None, how_to_name: str) -> StackLayout:
    """Return the positions of files by their names, which are paths with ``/``.

    ``pattern`` is that of the user, or None to recognize it. Then the numbers of an axis have equal distances, because
    a gap is a missing file. ``how_to_name`` names the option of the pattern, for errors.

    Raises OptionError for a pattern that is not valid, UnsupportedError if the names do not determine positions, and
    LocationError, which names the positions, if files are missing.
    """
    is_given = pattern is not None
    pattern = recognized_pattern(names, how_to_name) if pattern is None else pattern
    axes, expression = _expression(pattern)
    found: dict[tuple[str, ...], str] = {}
    for name in names:
        match = expression.fullmatch(name)
        if match is None:
            raise OptionError(
                f"{name} does not match the pattern {pattern}; select the files of the stack with a pattern of the "
                f"shell, or change {how_to_name}"
            )
        place = tuple(_value(match[axis]) for axis in axes)
        if place in found:
            raise UnsupportedError(
                f"{found[place]} and {name} have the same position by the pattern {pattern}: "
                f"{_described(axes, place)}; correct {how_to_name}"
            )
        found[place] = name
    values = tuple(tuple(sorted(set(column), key=natural_order)) for column in zip(*found, strict=True))
    if not is_given:
        _check_steps(axes, values, how_to_name)
    missing = [place for place in itertools.product(*values) if place not in found]
    if missing:
        listed = "; ".join(_described(axes, place) for place in missing[:MAX_NAMED])
        more = f", and {len(missing) - MAX_NAMED} more" if len(missing) > MAX_NAMED else ""
        raise LocationError(
            f"files of the stack are missing by the pattern {pattern} ({len(missing)} of "
            f"{math.prod(map(len, values))}): {listed}{more}"
        )
    files = tuple(found[place] for place in itertools.product(*values))
    return StackLayout(pattern, axes, values, files)


def recognized_pattern(names: Sequence[str], how_to_name: str) -> str:
    """Return the pattern of the names of a stack. Raises UnsupportedError if it is not clear."""
    rows = [TOKEN.findall(name) for name in names]
    by_form = {tuple(map(_form, row)): name for row, name in zip(rows, names, strict=True)}
    if len(by_form) > 1:
        first, second = itertools.islice(by_form.values(), 2)
        raise UnsupportedError(
            f"the names of the files do not have one form: {first} and {second}; select the files of the stack with a "
            f"pattern of the shell, or describe the names: {how_to_name}"
        )
    columns = list(zip(*rows, strict=True))
    varying = [number for number, column in enumerate(columns) if len(set(column)) > 1]
    places: dict[str, int] = {}
    """The column of each axis."""
    numbers = [number for number in varying if columns[number][0].isdecimal()]
    words = [number for number in varying if number not in numbers]
    for number in numbers:
        meaning = _meaning(rows[0], number)
        if meaning == POSITION:
            raise UnsupportedError(
                f"the files belong to several images, at the positions {_listed(columns[number])} of "
                f"{''.join(rows[0][:number])}*; import the files of each one, or describe the names: {how_to_name}"
            )
        if meaning in places:
            raise _unclear(names, how_to_name)
        if meaning:
            places[meaning] = number
    unlabelled = [number for number in numbers if number not in places.values()]
    if not _distinguish(columns, places.values()) and words and "c" not in places:
        places["c"] = words[0]
    if not _distinguish(columns, places.values()) and len(unlabelled) == 1:
        free = [axis for axis in "zt" if axis not in places]
        if free:
            places[free[0]] = unlabelled[0]
    if not places or not _distinguish(columns, places.values()):
        raise _unclear(names, how_to_name)
    parts = [column[0] for column in columns]
    for number in varying:
        parts[number] = "*"
    for axis, number in places.items():
        parts[number] = f"{{{axis}}}"
        if axis == "c" and number + 1 in words:
            parts[number + 1] = ""  # w1DAPI: the number and the name of the channel
    return "".join(parts)


def _form(token: str) -> str:
    """Return what all files of a stack have in common at this place."""
    return "0" if token.isdecimal() else "a" if token.isalpha() else token


def _meaning(tokens: Sequence[str], number: int) -> str:
    """Return the axis of a number, or POSITION, by the word before it; an empty string if there is none."""
    before = number - 1
    if before > 0 and tokens[before] in ("_", "-", "=", " "):
        before -= 1
    if before < 0 or not tokens[before].isalpha():
        return ""
    word = tokens[before]
    capital = word[-1:] if len(word) > 1 and word[-2].islower() and word[-1].isupper() else ""  # stackZ01
    return WORDS.get(word.lower(), "") or WORDS.get(capital.lower(), "")


def _distinguish(columns: Sequence[Sequence[str]], chosen: Iterable[int]) -> bool:
    """Return whether the tokens of some columns differ for all files."""
    picked = [columns[number] for number in chosen]
    return bool(picked) and len(set(zip(*picked, strict=True))) == len(columns[0])


def _unclear(names: Sequence[str], how_to_name: str) -> UnsupportedError:
    return UnsupportedError(
        f"the positions of the files are not clear from their names, such as {names[0]} and {names[-1]}; describe "
        f"them: {how_to_name}"
    )


def _expression(pattern: str) -> tuple[str, re.Pattern[str]]:
    """Return the axes of a pattern in the order t, c, z, and the regular expression for names."""
    axes: list[str] = []
    parts, end = ["(?:.*/)?"], 0
    for match in PLACEHOLDER.finditer(pattern):
        parts.append(re.escape(pattern[end : match.start()]))
        end = match.end()
        if match[2]:
            parts.append("[^/]*")
            continue
        axis = match[1]
        if axis not in tuple(STACK_AXES) or axis in axes:
            raise OptionError(
                f"pattern: {{{axis}}} in {pattern} is not valid; expected {{t}}, {{c}} and {{z}}, each at most once, "
                "and * for any text"
            )
        axes.append(axis)
        parts.append(rf"(?P<{axis}>\d+|[^/]+?)")
    if not axes:
        raise OptionError(f"pattern: {pattern} has none of {{t}}, {{c}} and {{z}}, the positions of a file")
    parts.append(re.escape(pattern[end:]))
    return "".join(sorted(axes, key=STACK_AXES.index)), re.compile("".join(parts), re.DOTALL)


def _value(text: str) -> str:
    """Return the text of a position without leading zeros."""
    return str(int(text)) if text.isascii() and text.isdecimal() else text


def _check_steps(axes: str, values: Sequence[Sequence[str]], how_to_name: str) -> None:
    """Raise LocationError if numbers along time or z are missing."""
    for axis, texts in zip(axes, values, strict=True):
        if axis == "c" or not all(text.isdecimal() for text in texts):
            continue
        numbers = [int(text) for text in texts]
        step = functools.reduce(
            math.gcd, (after - before for before, after in itertools.pairwise(numbers)), 0
        )
        gap = next(((a, b) for a, b in itertools.pairwise(numbers) if b - a > step), None)
        if gap is not None:
            raise LocationError(
                f"the files with {axis} {gap[0]} and {axis} {gap[1]} are not consecutive: {axis} {gap[0] + step} is "
                f"missing. Add the file, or accept gaps by describing the names: {how_to_name}"
            )


def _described(axes: str, place: Sequence[str]) -> str:
    return ", ".join(f"{axis} {text}" for axis, text in zip(axes, place, strict=True))


def _listed(texts: Iterable[str]) -> str:
    found = sorted(set(texts), key=natural_order)
    return ", ".join(found[:MAX_NAMED]) + (", ..." if len(found) > MAX_NAMED else "")
