"""Sample values that reveal errors: extremes of each dtype, signed zeros, infinities, NaNs, unusual text. A selection
of cases that contains each pair of factors.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from heapq import heapify, heappop, heappush
from itertools import combinations
from typing import Any, Protocol, TypeVar

import numpy as np

Data = np.ndarray[Any, np.dtype[Any]]

Factors = tuple[tuple[Hashable, ...], ...]


class _HasFactors(Protocol):
    @property
    def factors(self) -> Factors: ...


Case = TypeVar("Case", bound=_HasFactors)

TEXTS = ["", "a", "Ångström µm", "零", "🧬 cells", "x" * 40, "tab\there", "e\u0301"]
BLOBS = [b"", b"\0", b"abc", b"\xff\xfe", b"\0\0\0", bytes(range(30)), b"trailing\0", b"z"]


def sample(dtype: Any, shape: tuple[int, ...]) -> Data:
    """Return a deterministic array of the dtype. ``"text"`` and ``"blobs"`` return object arrays of str and bytes."""
    size = int(np.prod(shape, dtype=int))
    if isinstance(dtype, str) and dtype in ("text", "blobs"):
        values = TEXTS if dtype == "text" else BLOBS
        data = np.empty(size, object)
        for index in range(size):
            data[index] = values[index % len(values)]
        return data.reshape(shape)
    dtype = np.dtype(dtype)
    if dtype.names is not None:
        data = np.zeros(shape, dtype)
        for name in dtype.names:
            data[name] = sample(dtype[name].base, shape + dtype[name].shape)
        return data
    rng = np.random.default_rng(size)
    if dtype.isbuiltin == 2:
        return _of_ml_dtypes(dtype, shape, rng)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "U":
        return np.resize(np.array(TEXTS).astype(dtype), shape)
    if dtype.kind in "SV":
        return np.frombuffer(rng.bytes(dtype.itemsize * size), dtype).reshape(shape)
    if dtype.kind in "Mm":
        count = rng.integers(-(10**6), 10**6, shape)
        data = count.astype("i8").view(dtype.newbyteorder("=")).astype(dtype)
        data.reshape(-1)[3::7] = "NaT"
        return data
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        data = rng.integers(info.min, info.max, shape, dtype.newbyteorder("="), endpoint=True).astype(dtype)
        data.reshape(-1)[:2] = (info.min, info.max)[: min(2, size)]
        return data
    if dtype.kind in "fc":
        data = (rng.standard_normal(shape) * 1000).astype(dtype)
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).tiny]).astype(dtype)
        data.reshape(-1)[: min(6, size)] = special[: min(6, size)]
        return data
    raise TypeError(f"no sample of {dtype}")


def _of_ml_dtypes(dtype: np.dtype[Any], shape: tuple[int, ...], rng: np.random.Generator) -> Data:
    """Return random values of a dtype of ml_dtypes, with all bit patterns of the small ones."""
    import ml_dtypes

    if "int" in dtype.name:
        info = ml_dtypes.iinfo(dtype)
        return rng.integers(int(info.min), int(info.max), shape, endpoint=True).astype(dtype)
    if dtype.itemsize == 2:
        return rng.standard_normal(shape).astype(np.float32).astype(dtype)
    bits = ml_dtypes.finfo(dtype).bits
    return rng.integers(0, 1 << bits, shape).astype(np.uint8).view(dtype)


def same_bits(found: Any, expected: Any) -> bool:
    """Return whether shape, dtype (except for its byte order) and all bits are equal."""
    found, expected = np.asarray(found), np.asarray(expected)
    if found.shape != expected.shape:
        return False
    if expected.dtype.kind in "OT":
        return all(a == b and type(a) is type(b) for a, b in zip(found.flat, expected.flat, strict=True))
    if found.dtype.newbyteorder("=") != expected.dtype.newbyteorder("="):
        return False
    return found.astype(expected.dtype, copy=False).tobytes() == expected.tobytes()


def pairwise(cases: Iterable[Case]) -> list[Case]:
    """Return a selection of the cases in which each pair of values of two factors occurs that occurs in any case.

    ``factors`` of a case contains groups of such values, for example data type and codec. Pairs are formed within each
    group.
    """
    everything = list(cases)
    pairs = [all_pairs([case]) for case in everything]
    # Next comes the case with the most pairs that are missing. The numbers in the heap are upper bounds, because the
    # number of missing pairs of a case only decreases.
    heap = [(-len(entry), index) for index, entry in enumerate(pairs)]
    heapify(heap)
    covered: set[tuple[Hashable, ...]] = set()
    selected = []
    while heap:
        _, index = heappop(heap)
        missing = len(pairs[index] - covered)
        if missing and heap and -missing > heap[0][0]:
            heappush(heap, (-missing, index))
        elif missing:
            covered |= pairs[index]
            selected.append(index)
    return [everything[index] for index in sorted(selected)]


def all_pairs(cases: Iterable[Case]) -> set[tuple[Hashable, ...]]:
    """Return the pairs of all cases, with the positions of the group and of the factors."""
    return {
        (number, *pair)
        for case in cases
        for number, group in enumerate(case.factors)
        for pair in combinations(enumerate(group), 2)
    }
