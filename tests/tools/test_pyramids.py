"""Building multiscale images: values, geometry and metadata, blocks, interruption, and refused requests."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise, product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import zarrfs
from zarrfs.cli.main import main
from zarrfs.errors import (
    MetadataError,
    NodeExistsError,
    NodeTypeError,
    OptionError,
    StoreError,
    UnsupportedError,
    ZarrError,
)
from zarrfs.ngff import load
from zarrfs.ngff.checks import check_node
from zarrfs.ngff.geometry import ArrayAxis
from zarrfs.storage import MemoryStore
from zarrfs.testing import CountingStore, FailingStore
from zarrfs.tools import build_pyramid
from zarrfs.tools.pyramids import downsampling, tasks
from zarrfs.tools.pyramids.downsampling import METHODS, Method, downsample
from zarrfs.tools.pyramids.levels import level_paths, plan_levels
from zarrfs.tools.pyramids.passes import LevelGrid, Pass, plan_passes
from zarrfs.tools.pyramids.tasks import BuildBlock, LevelTarget, block_nbytes

Values = np.ndarray[Any, Any]


def reduced_window(window: Values, method: Method) -> Any:
    """Return the reduction of one window, computed with Python integers where they are exact."""
    elements = window.ravel().tolist()
    if method == "nearest":
        return elements[0]
    elements = [element for element in elements if element == element] or [float("nan")]
    if method == "mode":
        return min(elements, key=lambda element: (-elements.count(element), element))
    if method in ("max", "min"):
        return (max if method == "max" else min)(elements)
    if method == "median":
        ordered = sorted(elements)
        elements = [ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]]
    if window.dtype.kind == "f":
        return sum(elements) / len(elements)
    return (2 * sum(elements) + len(elements)) // (2 * len(elements))


def reference(values: Values, factors: tuple[int, ...], method: Method) -> Values:
    shape = tuple(-(-n // f) for n, f in zip(values.shape, factors, strict=True))
    result = np.empty(shape, values.dtype)
    for index in product(*map(range, shape)):
        window = values[tuple(slice(i * f, (i + 1) * f) for i, f in zip(index, factors, strict=True))]
        result[index] = reduced_window(window, method)
    return result


@st.composite
def arrays_and_factors(draw: st.DrawFn) -> tuple[Values, tuple[int, ...]]:
    dtype = draw(st.sampled_from(["u1", "i1", "<u2", ">i2", "u4", "i4", "u8", "i8", "?", "f4", ">f8"]))
    shape = draw(npst.array_shapes(min_dims=1, max_dims=3, max_side=7))
    elements = st.integers(-3, 3).map(float) if dtype.lstrip("<>")[0] == "f" else None
    values = draw(npst.arrays(np.dtype(dtype), shape, elements=elements))
    if values.dtype.kind == "f" and draw(st.booleans()):
        values = np.where(values > 2, np.nan, values).astype(values.dtype)
    return values, tuple(draw(st.integers(1, 4)) for _ in shape)


@given(arrays_and_factors(), st.sampled_from(METHODS), st.sampled_from([1, 100, downsampling.PART_NBYTES]))
def test_each_method_reduces_each_window(
    case: tuple[Values, tuple[int, ...]], method: Method, part_nbytes: int
) -> None:
    values, factors = case
    if values.dtype.kind == "f" and method == "mode":
        values = np.nan_to_num(values)
    with mock.patch.object(downsampling, "PART_NBYTES", part_nbytes):
        result = downsample(values, factors, method)
    assert result.dtype == values.dtype
    np.testing.assert_array_equal(result, reference(values, factors, method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("shape", [(64, 512, 512), (1, 16, 1 << 20)])
def test_intermediate_results_of_a_method_are_small(shape: tuple[int, ...], method: Method) -> None:
    """Of the values as a whole, the mode would need ten times their memory."""
    values = np.zeros(shape, "u2")
    tracemalloc.start()
    try:
        downsample(values, (1, 2, 2), method)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < values.nbytes // 4 + 10 * downsampling.PART_NBYTES


def test_the_mean_of_64_bit_integers_does_not_overflow() -> None:
    largest = np.full((4, 4), np.iinfo(np.uint64).max)
    np.testing.assert_array_equal(downsample(largest, (2, 2), "mean"), largest[:2, :2])
    smallest = np.full((4, 4), np.iinfo(np.int64).min)
    np.testing.assert_array_equal(downsample(smallest, (3, 2), "mean"), smallest[:2, :2])


@pytest.mark.parametrize("method", ["mean", "median", "max"])
def test_a_method_that_is_not_defined_for_a_type_is_refused(method: Method) -> None:
    with pytest.raises(UnsupportedError, match="use the method nearest"):
        downsample(np.zeros(4, "S3"), (2,), method)


# -- levels ----------------------------------------------------------------------------------------------------


def axes(names: str, *scale: float) -> list[ArrayAxis]:
    kinds = {"t": "time", "c": "channel"}
    return [
        ArrayAxis(name, kinds.get(name, "space"), None, size) for name, size in zip(names, scale, strict=True)
    ]


def test_anisotropic_images_become_isotropic_first() -> None:
    levels = plan_levels((3, 40, 400, 400), axes("czyx", 1, 4, 1, 1), "mean", max_length=16)
    assert [level.factors for level in levels[1:]] == [(1, 1, 2, 2), (1, 1, 2, 2), (1, 2, 2, 2)] + [
        (1, 2, 2, 2)
    ] * 2
    assert levels[-1].shape == (3, 5, 13, 13)
    assert levels[-1].scale == (1, 32, 32, 32)


def test_the_translation_is_that_of_the_centre_of_a_window() -> None:
    (axis,) = axes("x", 0.5)
    (_, level, last) = plan_levels((64,), [axis], "mean", factors=(4,), count=3)
    assert (level.scale, level.translation) == ((2.0,), (0.75,))
    assert (last.scale, last.translation) == ((8.0,), (3.75,))
    (_, level, _) = plan_levels((64,), [axis], "nearest", factors=(4,), count=3)
    assert level.translation == (0.0,)


def test_dimensions_of_length_1_are_not_downsampled_and_levels_end_where_nothing_is_smaller() -> None:
    levels = plan_levels((1, 4, 4), axes("zyx", 1, 1, 1), "mean", count=10)
    assert [level.shape for level in levels] == [(1, 4, 4), (1, 2, 2), (1, 1, 1)]


@pytest.mark.parametrize("factors", [(2,), (0, 2), (1, 1), (2, (2, 2)), [(2, 2), (2,)], (2.0, 2)])
def test_factors_that_do_not_fit_are_refused(factors: Any) -> None:
    with pytest.raises(OptionError, match="factors"):
        plan_levels((8, 8), axes("yx", 1, 1), "mean", factors=factors)


def test_levels_are_named_after_the_first_one() -> None:
    assert level_paths("0", 3) == ["0", "1", "2"]
    assert level_paths("s0", 2) == ["s0", "s1"]
    assert level_paths("scale10", 2) == ["scale10", "scale10_1"]
    assert level_paths("a/full", 2) == ["a/full", "a/full_1"]


@given(
    st.lists(st.tuples(st.integers(1, 200), st.integers(1, 40), st.integers(1, 3)), min_size=1, max_size=3),
    st.integers(1, 5),
    st.integers(0, 1 << 16),
    st.booleans(),
)
def test_blocks_of_a_pass_have_whole_chunks_of_all_its_levels(
    dimensions: list[tuple[int, int, int]], count: int, memory: int, writes_first: bool
) -> None:
    shape, chunks, factors = (tuple(column) for column in zip(*dimensions, strict=True))
    grids = [LevelGrid(shape, chunks, (1,) * len(shape))]
    for _ in range(count):
        previous = grids[-1].shape
        grids.append(
            LevelGrid(tuple(-(-n // f) for n, f in zip(previous, factors, strict=True)), chunks, factors)
        )
    built = []
    for pass_ in plan_passes(grids, writes_first, chunks, 2, memory):
        base = pass_.source or 0
        for number in range(pass_.first, pass_.last + 1):
            built.append(number)
            for axis, step in enumerate(pass_.block):
                factor = factors[axis] ** (number - base)
                whole = step >= grids[base].shape[axis]
                assert whole or step % (factor * grids[number].chunks[axis]) == 0
        if pass_.last > pass_.first:
            assert np.prod(pass_.block) * 2 * 2 <= max(memory, 0)
    assert built == list(range(0 if writes_first else 1, count + 1))


# -- images ----------------------------------------------------------------------------------------------------


def new_array(store: Any, values: Values, **options: Any) -> zarrfs.Array:
    array = zarrfs.create_array(store, data=values, **options)
    assert isinstance(array, zarrfs.Array)
    return array


def volume(shape: tuple[int, ...] = (20, 50, 70), dtype: str = "u2") -> Values:
    return np.random.default_rng(3).integers(0, 60000, shape).astype(dtype)


def level_values(image: zarrfs.Group) -> list[Values]:
    return [np.asarray(image[level.path]) for level in load(image).multiscales[0].levels]


def assert_is_pyramid(image: zarrfs.Group, values: Values, method: Method = "mean") -> None:
    """Check the metadata of an image, and that each level is computed from the previous one."""
    report = check_node(image)
    assert report.valid
    assert not report.messages
    levels = level_values(image)
    np.testing.assert_array_equal(levels[0], values)
    assert len(levels) > 1
    for finer, coarser in pairwise(levels):
        factors = tuple(-(-n // m) for n, m in zip(finer.shape, coarser.shape, strict=True))
        np.testing.assert_array_equal(coarser, downsample(finer, factors, method))


@pytest.mark.parametrize("version", ["0.4", "0.5"])
@pytest.mark.parametrize("memory", [1, 1 << 16, 1 << 28])
def test_a_new_image_has_the_values_of_the_array_at_all_levels(version: str, memory: int) -> None:
    values, target = volume(), MemoryStore()
    source = new_array(MemoryStore(), values, chunks=(8, 16, 16))
    lines = build_pyramid(
        source,
        target,
        version=version,
        axes="zyx",
        scale=(2, 0.5, 0.5),
        unit="micrometer",
        max_length=8,
        memory=memory,
        verify=True,
    )
    image = zarrfs.open_group(target)
    assert_is_pyramid(image, values)
    multiscales = load(image).multiscales[0]
    assert [axis.unit for axis in multiscales.axes] == ["micrometer"] * 3
    assert multiscales.levels[1].scale == (2, 1, 1)
    assert multiscales.type == "mean"
    assert len(lines) == len(multiscales.levels)
    assert image["1"].zarr_format == {"0.4": 2, "0.5": 3}[version]
    if version == "0.5":
        assert image["1"].spec.dimension_names == ("z", "y", "x")


def test_shards_compressors_and_chunks_are_those_of_the_options() -> None:
    values, target = volume((40, 40)), MemoryStore()
    build_pyramid(
        new_array(MemoryStore(), values),
        target,
        chunks=(4, 4),
        shards=(16, 16),
        compressors={"name": "gzip", "configuration": {"level": 1}},
        max_length=10,
        memory=1,
    )
    image = zarrfs.open_group(target)
    assert_is_pyramid(image, values)
    assert (image["1"].shards, image["1"].chunks) == ((16, 16), (4, 4))


def test_levels_are_added_to_the_group_of_an_array_of_version_2() -> None:
    store, values = MemoryStore(), volume((2, 30, 30), "u1")
    group = zarrfs.open_group(store, mode="w", zarr_format=2, attributes={"note": "kept"})
    group.create_array("s0", data=values, chunks=(1, 8, 8), dimension_separator="/")
    build_pyramid(zarrfs.open(store, path="s0", mode="r+"), axes="cyx", max_length=8, levels=3)
    image = zarrfs.open_group(store)
    assert_is_pyramid(image, values)
    assert sorted(image) == ["s0", "s1", "s2"]
    assert image.attrs["note"] == "kept"
    assert load(image).version == "0.4"


def test_the_first_level_of_version_3_gets_the_names_of_the_axes() -> None:
    store, values = MemoryStore(), volume((30, 30))
    zarrfs.open_group(store, mode="w").create_array("0", data=values, chunks=(8, 8), attributes={"a": 1})
    build_pyramid(zarrfs.open(store, path="0", mode="r+"), max_length=8)
    image = zarrfs.open_group(store)
    assert_is_pyramid(image, values)
    assert image["0"].spec.dimension_names == ("y", "x")
    assert image["0"].attrs["a"] == 1


def test_chunk_keys_that_the_specification_does_not_allow_are_reported() -> None:
    store = MemoryStore()
    zarrfs.open_group(store, mode="w", zarr_format=2).create_array("0", data=volume((30, 30)), chunks=(8, 8))
    (line, *_) = build_pyramid(zarrfs.open(store, path="0", mode="r+"), max_length=8)
    assert "chunk keys are separated by '.'" in line


def test_an_image_with_levels_is_built_again_with_another_method() -> None:
    store, values = MemoryStore(), volume((64, 64))
    build_pyramid(new_array(MemoryStore(), values, chunks=(8, 8)), store, max_length=8)
    assert len(level_values(zarrfs.open_group(store))) == 4
    with pytest.raises(NodeExistsError, match="if_exists='replace'"):
        build_pyramid(store, method="max", levels=3)
    build_pyramid(store, method="max", levels=3, if_exists="replace", name="new")
    image = zarrfs.open_group(store)
    assert_is_pyramid(image, values, "max")
    assert sorted(image) == ["0", "1", "2"]
    assert load(image).multiscales[0].name == "new"


def test_rendering_settings_and_geometry_are_those_of_the_source_image() -> None:
    values, source, target = volume((3, 24, 24)), MemoryStore(), MemoryStore()
    omero = {"channels": [{"color": "FF0000", "window": {"min": 0, "max": 9, "start": 0, "end": 9}}] * 3}
    build_pyramid(
        new_array(MemoryStore(), values), source, axes="cyx", scale=(1, 2, 2), unit="meter", levels=2
    )
    group = zarrfs.open_group(source, mode="r+")
    group.attrs["ome"] = {**group.attrs["ome"], "omero": omero}
    build_pyramid(group, target, version="0.4", levels=2)
    image = zarrfs.open_group(target)
    assert image.attrs["omero"] == omero
    assert load(image).multiscales[0].axes == load(group).multiscales[0].axes


def test_labels_are_reduced_by_their_mode(tmp_path: Path) -> None:
    labels = volume((20, 20)) % 4
    zarrfs.create_group(tmp_path / "image.zarr" / "labels" / "cells").create_array("0", data=labels)
    build_pyramid(tmp_path / "image.zarr" / "labels" / "cells", max_length=4)
    assert_is_pyramid(zarrfs.open_group(tmp_path / "image.zarr" / "labels" / "cells"), labels, "mode")


def test_blocks_without_stored_chunks_are_not_read() -> None:
    inner = MemoryStore()
    array = zarrfs.create_array(inner, shape=(1 << 40, 8), chunks=(8, 8), dtype="u1", fill_value=7)
    array[:8] = 1
    array[1 << 39] = 2
    store, target = CountingStore(inner), MemoryStore()
    build_pyramid(store, target, levels=2, factors=(2, 1), memory=1)
    level = zarrfs.open_array(target, path="1")
    assert level.shape == (1 << 39, 8)
    assert (level[:4] == 1).all()
    assert (level[4:12] == 7).all()
    assert level[1 << 38, 0] == (2 + 7 + 1) // 2
    assert store.calls["get"] + store.calls["get_into"] < 20


# -- interruption ----------------------------------------------------------------------------------------------


def failing_store(store: Any, after: int) -> FailingStore:
    """Return a store in which writing chunks fails after some calls."""
    calls = iter(range(after))

    def failure(method: str, key: str) -> Exception | None:
        if method == "set" and "/c/" in key and next(calls, None) is None:
            return StoreError("the disk is full")
        return None

    return FailingStore(store, failure)


@pytest.mark.parametrize("after", [0, 5, 30])
def test_an_interrupted_run_is_resumed(after: int) -> None:
    values, store = volume((64, 64)), MemoryStore()
    source = new_array(MemoryStore(), values, chunks=(8, 8))
    with pytest.raises(StoreError, match="disk is full"):
        build_pyramid(source, failing_store(store, after), max_length=8, memory=1)
    unfinished = zarrfs.open_group(store)
    assert not load(unfinished).multiscales, "metadata are written when all levels are complete"
    with pytest.raises(NodeExistsError, match="resume"):
        build_pyramid(source, store, max_length=8, memory=1)
    with pytest.raises(MetadataError, match="not the result of an interrupted run with these options"):
        build_pyramid(source, store, max_length=8, memory=1, method="max", if_exists="resume")
    build_pyramid(source, store, max_length=8, memory=1, if_exists="resume")
    assert_is_pyramid(zarrfs.open_group(store), values)
    assert set(zarrfs.open_group(store).attrs) == {"ome"}


def test_resuming_a_complete_image_writes_no_chunk() -> None:
    source = new_array(MemoryStore(), volume((64, 64)) + 1, chunks=(8, 8))
    store = MemoryStore()
    build_pyramid(source, store, max_length=8)
    build_pyramid(source, failing_store(store, 0), max_length=8, if_exists="resume")
    with pytest.raises(StoreError, match="disk is full"):
        build_pyramid(source, failing_store(store, 0), max_length=8, if_exists="replace")


def test_levels_of_another_origin_are_not_resumed() -> None:
    store = MemoryStore()
    group = zarrfs.open_group(store, mode="w")
    group.create_array("0", data=volume((32, 32)), chunks=(8, 8))
    group.create_array("1", data=np.zeros((16, 16), "u2"), chunks=(8, 8))
    with pytest.raises(MetadataError, match="other levels"):
        build_pyramid(zarrfs.open_array(store, path="0", mode="r+"), levels=2, if_exists="resume")


def test_a_failed_replacement_leaves_the_old_image() -> None:
    store, values = MemoryStore(), volume((64, 64))
    source = new_array(MemoryStore(), values, chunks=(8, 8))
    build_pyramid(source, store, max_length=8)
    old = {key: bytes(store.get(key) or b"") for key in store.list_prefix()}
    for places in ((failing_store(store, 7),), (source, failing_store(store, 7))):
        with pytest.raises(StoreError, match="disk is full"):
            build_pyramid(*places, method="max", max_length=8, if_exists="replace")
        assert {key: bytes(store.get(key) or b"") for key in store.list_prefix()} == old


def test_verification_finds_a_wrong_value() -> None:
    class WrongStore(FailingStore):
        def set(self, key: str, value: Any) -> None:
            super().set(key, bytes(8) if key.startswith("1/c/") else value)

    store = WrongStore(MemoryStore(), lambda method, key: None)
    source = new_array(MemoryStore(), np.full((8, 8), 9, "u1"), chunks=(2, 4), compressors=None)
    with pytest.raises(StoreError, match="differs"):
        build_pyramid(source, store, levels=2, verify=True)


# -- refused requests ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "options", "error", "message"),
    [
        ((8,), {}, UnsupportedError, "2 to 5 dimensions"),
        ((2,) * 6, {}, UnsupportedError, "2 to 5 dimensions"),
        ((8, 8), {"axes": "zyx"}, OptionError, "axes: expected 2"),
        ((8, 8), {"axes": "xx"}, UnsupportedError, "have to differ"),
        ((8, 8), {"axes": "tx"}, UnsupportedError, "2 or 3 axes of space"),
        ((4, 8, 8), {"axes": "ycx"}, UnsupportedError, "then at most one of channels"),
        ((8, 8), {"scale": (1, 0)}, OptionError, "positive"),
        ((8, 8), {"scale": (1, float("nan"))}, OptionError, "positive"),
        ((8, 8), {"version": "0.3"}, OptionError, r"0.4, 0.5 or 0.6"),
        ((8, 8), {"method": "cubic"}, OptionError, "method"),
        ((8, 8), {"levels": 0}, OptionError, "levels"),
        ((8, 8), {"if_exists": "skip"}, OptionError, "if_exists"),
        ((8, 8), {"chunks": (3, 3, 3)}, MetadataError, "chunks"),
    ],
)
def test_invalid_requests_are_refused_before_anything_is_written(
    shape: tuple[int, ...], options: dict[str, Any], error: type[ZarrError], message: str
) -> None:
    source, target = new_array(MemoryStore(), np.zeros(shape)), MemoryStore()
    with pytest.raises(error, match=message):
        build_pyramid(source, target, **options)
    assert not list(target.list_prefix())


def test_an_array_outside_of_a_group_needs_a_target() -> None:
    with pytest.raises(MetadataError, match="give a target"):
        build_pyramid(new_array(MemoryStore(), volume((8, 8))), levels=2)


def test_a_group_with_several_arrays_is_not_an_image() -> None:
    group = zarrfs.open_group(MemoryStore(), mode="w")
    group.create_array("a", data=volume((8, 8)))
    group.create_array("b", data=volume((8, 8)))
    with pytest.raises(NodeTypeError, match=r"2 arrays \(a, b\)"):
        build_pyramid(group, levels=2)


def test_a_broken_member_of_a_group_with_one_array_is_an_error() -> None:
    """It could be the array that is meant."""
    store = MemoryStore()
    group = zarrfs.create_group(store)
    group.create_array("a", data=np.zeros((4, 4)))
    store.set("b/zarr.json", b'{"zarr_format": 3, "node_type": "array"}')
    with pytest.raises(MetadataError, match=r"b/zarr\.json"):
        build_pyramid(group, MemoryStore())


def test_the_report_states_chunks_and_shards() -> None:
    source = zarrfs.create_array(MemoryStore(), data=volume((8, 8)), chunks=(2, 4))
    (line,) = build_pyramid(source, MemoryStore(), levels=1, shards=(8, 8))
    assert "chunks 2 x 4, shards 8 x 8, level 0" in line
    (line,) = build_pyramid(source, MemoryStore(), levels=1)
    assert "chunks 2 x 4, level 0" in line


def test_an_array_is_not_replaced_with_its_own_image(tmp_path: Path) -> None:
    new_array(tmp_path / "a.zarr", volume((8, 8)))
    with pytest.raises(NodeExistsError, match="built from"):
        build_pyramid(tmp_path / "a.zarr", tmp_path / "a.zarr", levels=2, if_exists="replace")


# -- command ---------------------------------------------------------------------------------------------------


def test_the_command_builds_an_image_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    values = volume((4, 40, 40))
    new_array(tmp_path / "a.zarr", values, chunks=(2, 16, 16))
    arguments = ["pyramid", str(tmp_path / "a.zarr"), str(tmp_path / "b.zarr"), "--axes", "zyx"]
    arguments += ["--factors", "1,2,2", "--factors", "2,2,2", "--scale", "2,1,1", "--unit", "micrometer"]
    result = CliRunner().invoke(main, [*arguments, "--dry-run"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("would be 0: 4 x 40 x 40, scale 2 x 1 x 1")
    assert "\nplan levels 0, 1, 2: " in result.output
    assert not (tmp_path / "b.zarr").exists()
    result = CliRunner().invoke(main, [*arguments, "--verify"])
    assert result.exit_code == 0, result.output
    assert_is_pyramid(zarrfs.open_group(tmp_path / "b.zarr"), values)


@pytest.mark.parametrize(("option", "value"), [("--factors", "a,2"), ("--scale", "1,x")])
def test_the_command_explains_invalid_numbers(tmp_path: Path, option: str, value: str) -> None:
    new_array(tmp_path / "a.zarr", volume((8, 8)))
    result = CliRunner().invoke(
        main, ["pyramid", str(tmp_path / "a.zarr"), str(tmp_path / "b"), option, value]
    )
    assert result.exit_code == 2
    assert "expected" in result.output


def test_a_dry_run_plans_tasks_bytes_and_time(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 60000, (16, 128, 64), "u2")
    new_array(tmp_path / "a.zarr", values, chunks=(4, 16, 16), compressors=None)
    options: dict[str, Any] = {"axes": "zyx", "levels": 3, "factors": [2, 2, 2]}
    (whole,) = build_pyramid(tmp_path / "a.zarr", tmp_path / "b.zarr", dry_run=True, **options).estimates
    built = sum(values.size // 8**level for level in range(3)) * values.itemsize
    assert (whole.path, whole.tasks) == ("levels 0, 1, 2", 2)  # a task has a whole chunk of level 2
    assert (whole.nbytes_read, whole.nbytes_written) == (values.nbytes, built)
    assert whole.nbytes_per_thread >= values.nbytes // whole.tasks
    assert whole.seconds > 0
    assert whole.sampled == whole.tasks
    assert not (tmp_path / "b.zarr").exists()


def test_a_dry_run_plans_later_passes_from_the_first_one(tmp_path: Path) -> None:
    values = np.random.default_rng(0).integers(0, 60000, (16, 64, 64), "u2")
    group = zarrfs.create_group(tmp_path / "g.zarr")
    group.create_array("0", data=values, chunks=(4, 16, 16), compressors=None)
    before = sorted(tmp_path.rglob("*"))
    options: dict[str, Any] = {"axes": "zyx", "levels": 4, "factors": [2, 2, 2], "memory": 1}
    report = build_pyramid(tmp_path / "g.zarr", dry_run=True, **options)
    assert [estimate.path for estimate in report.estimates] == ["level 1", "level 2", "level 3"]
    assert [estimate.nbytes_read for estimate in report.estimates] == [
        values.nbytes // 8**n for n in range(3)
    ]
    assert [estimate.nbytes_written for estimate in report.estimates] == [
        values.nbytes // 8**n for n in (1, 2, 3)
    ]
    times = [estimate.seconds for estimate in report.estimates]
    assert times == sorted(times, reverse=True)
    assert [estimate.sampled > 0 for estimate in report.estimates] == [True, False, False]
    assert sorted(tmp_path.rglob("*")) == before


def test_a_dry_run_plans_the_stored_part_of_an_array_with_more_blocks_than_a_copy_may_have() -> None:
    store = MemoryStore()
    array = zarrfs.create_array(store, shape=(1 << 40, 1 << 40), chunks=(4, 4), dtype="u2")
    array[1, 2] = 3
    options: dict[str, Any] = {"axes": "yx", "levels": 2, "factors": [2, 2], "memory": 1}
    plan = build_pyramid(array, MemoryStore(), dry_run=True, **options).estimates[0]
    assert (plan.tasks, plan.sampled) == (1, 1)


def test_each_thread_processes_blocks_of_an_array_that_fits_into_the_memory() -> None:
    grids = [LevelGrid((256 >> n,) * 3, (64, 64, 64), (1 if n == 0 else 2,) * 3) for n in range(4)]
    chunks, memory = (64, 64, 64), 256 << 20
    whole, half = (256,) * 3, (128,) * 3
    assert plan_passes(grids, True, chunks, 2, memory) == [Pass(None, 0, 3, whole)]
    assert plan_passes(grids, True, chunks, 2, memory, threads=2) == [
        Pass(None, 0, 1, half),
        Pass(1, 2, 3, half),
    ]
    small = [LevelGrid((64 >> n,) * 3, (16, 16, 16), (1 if n == 0 else 2,) * 3) for n in range(2)]
    alone = plan_passes(small, True, (16, 16, 16), 2, memory)
    assert plan_passes(small, True, (16, 16, 16), 2, memory, threads=8) == alone


@pytest.mark.parametrize("method", ["mean", "max", "mode", "nearest"])
@pytest.mark.parametrize("shape", [(24, 33, 20), (5, 40, 41)])
@pytest.mark.parametrize("nbytes", [1, 100, 3000])
def test_large_blocks_are_read_in_parts(
    nbytes: int, shape: tuple[int, ...], method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block has whole shards of a level, which can be larger than the memory."""
    monkeypatch.setattr(tasks, "MIN_PART_NBYTES", nbytes)
    values, target = volume(shape), MemoryStore()
    build_pyramid(
        new_array(MemoryStore(), values, chunks=(4, 8, 8)),
        target,
        axes="zyx",
        chunks=(4, 4, 4),
        shards=(8, 16, 16),
        levels=3,
        factors=(1, 2, 3) if shape[0] == 5 else (2, 2, 2),
        method=method,
        memory=1,
        verify=True,
    )
    levels = [zarrfs.open_group(target)[str(number)][...] for number in range(3)]
    np.testing.assert_array_equal(levels[0], values)
    for finer, coarser in pairwise(levels):
        factors = (1, 2, 3) if shape[0] == 5 else (2, 2, 2)
        np.testing.assert_array_equal(coarser, downsample(finer, factors, method))


def test_a_level_with_large_shards_is_built_in_bounded_memory() -> None:
    memory, shape = 4 << 20, (64, 512, 512)
    source = zarrfs.create_array(MemoryStore(), shape=shape, dtype="u2", chunks=(8, 128, 128), fill_value=7)
    source[:, 0, 0] = 1
    level = zarrfs.create_array(MemoryStore(), shape=(32, 256, 256), dtype="u2", chunks=(32, 256, 256))
    block = tuple(slice(0, length) for length in shape)
    build = BuildBlock(source, (LevelTarget(level, (2, 2, 2)),), "mean", memory, False)
    tracemalloc.start()
    try:
        build(block)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < block_nbytes(shape, (2, 2, 2), 2, memory) + source.nbytes // 8 < source.nbytes
    np.testing.assert_array_equal(level[...], downsample(source[...], (2, 2, 2), "mean"))
