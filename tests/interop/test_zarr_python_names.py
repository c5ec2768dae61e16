"""Every public name of zarr-python exists in zarrfs or is listed as omitted in the documentation."""

from __future__ import annotations

import inspect
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zarr
import zarr.api.synchronous
import zarr.codecs
import zarr.storage

import zarrfs
import zarrfs.codecs
import zarrfs.storage
from zarrfs.engine.create.array_options import ArrayOptions, OpenNodeOptions, described

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coming-from-zarr-python.md"

OURS = {
    "zarr": zarrfs,
    "Array": zarrfs.Array,
    "Group": zarrfs.Group,
    "storage": zarrfs.storage,
    "codecs": zarrfs.codecs,
}

NEWER = {
    *("codecs.CastValue", "codecs.ScaleOffset", "codecs.SubchunkWriteOrder", "storage.ManagedMemoryStore"),
    *("Array.read_chunk_sizes", "Array.write_chunk_sizes", "Group.get_array", "Group.get_group"),
}
"""Names that zarr-python has since 3.2 or later, which need Python 3.12."""

REMOVED = {"Array.create"}
"""Names that zarr-python 3.4 no longer has."""

STORAGE_LIKE = ("WrapperStore", "StoreLike")


def omitted() -> set[str]:
    """Return the names in the first column of the table in the section "Omitted"."""
    text = PAGE.read_text(encoding="utf-8").split("## Omitted")[1]
    rows = re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w.]+)`", row)}


def names_of_zarr_3() -> Iterator[str]:
    for name in {*zarr.__all__, *zarr.api.synchronous.__all__}:
        yield f"zarr.{name}"
    for name in zarr.storage.__all__:
        yield f"storage.{name}"
    for name in zarr.codecs.__all__:
        yield f"codecs.{name}"
    for kind in (zarr.Array, zarr.Group):
        for name in dir(kind):
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}"


def exists(name: str) -> bool:
    owner, _, attribute = name.partition(".")
    return hasattr(OURS[owner], attribute)


OMITTED = omitted()
NAMES = sorted(names_of_zarr_3())


def test_public_names_are_found() -> None:
    assert len(NAMES) > 150
    assert len(OMITTED) > 30


def test_names_of_zarr_python_3_exist_or_are_listed_as_omitted() -> None:
    assert [name for name in NAMES if exists(name) == (name in OMITTED)] == []


def names_of_zarr_2() -> list[str]:
    with tarfile.open(Path(__file__).parent / "zarr2" / "recorded.tar.xz") as archive:
        results = archive.extractfile("results.json")
        assert results is not None
        names: list[str] = json.load(results)["names"]
        return names


def test_names_of_zarr_python_2_exist_or_are_listed_as_omitted() -> None:
    names = names_of_zarr_2()
    assert len(names) > 150
    assert sorted(name for name in names if exists(name) == (name in OMITTED)) == []
    assert OMITTED - set(NAMES) - set(names) - NEWER - REMOVED == set()


def parameters(function: Any) -> set[str]:
    found = inspect.signature(function).parameters.values()
    return {p.name for p in found if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)} - {"self"}


NOT_TAKEN = {"prototype", "storage_options", "use_consolidated_for_children", "cls"}
"""Parameters of methods that zarrfs does not have. ``storage_options`` has no effect in methods of groups."""

NOT_TAKEN_BY_FUNCTIONS = {"create": {"data", "mode"}}
"""Parameters since zarr-python 3.2 or later: ``array`` has ``data``, and ``open_array`` has ``mode``."""

FUNCTIONS = sorted(
    name
    for name in {*zarr.__all__, *zarr.api.synchronous.__all__}
    if inspect.isfunction(getattr(zarr, name)) and f"zarr.{name}" not in OMITTED
)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_parameters_of_zarr_python_3(name: str) -> None:
    theirs = parameters(getattr(zarr, name))
    assert theirs - parameters(getattr(zarrfs, name)) - NOT_TAKEN_BY_FUNCTIONS.get(name, set()) == set()


METHODS = sorted(
    name
    for name in NAMES
    if name.partition(".")[0] in ("Array", "Group")
    and name not in OMITTED
    and inspect.isfunction(
        inspect.getattr_static(getattr(zarr, name.partition(".")[0]), name.partition(".")[2])
    )
)


@pytest.mark.parametrize("name", METHODS)
def test_methods_have_the_parameters_of_zarr_python_3(name: str) -> None:
    owner, _, method = name.partition(".")
    ours = getattr(OURS[owner], method)
    if name in ("Group.get", "Group.keys"):
        return  # of Mapping
    theirs = parameters(getattr(getattr(zarr, owner), method)) - NOT_TAKEN
    assert theirs - parameters(ours) == set()


def test_each_option_is_described_or_refers_to_one_that_is() -> None:
    options = described(OpenNodeOptions)
    for name, option in options.items():
        if option.alias_of is not None:
            assert options[option.alias_of].help, name
        else:
            assert bool(option.help) == (option.has_effect and not option.unsupported), name
        assert option.help in str(zarrfs.open.__doc__)
    assert options["shards"].help in str(zarrfs.zeros_like.__doc__)
    assert options["cache_size"].help not in str(zarrfs.Group.zeros.__doc__)


def test_signatures_list_every_option_for_arrays() -> None:
    for function in (zarrfs.create_array, zarrfs.open, zarrfs.open_array, zarrfs.Group.create_array):
        assert set(ArrayOptions.__annotations__) <= parameters(function)
    for name in zarrfs.__all__:
        function = getattr(zarrfs, name)
        if inspect.isfunction(function) and name not in ("save", "save_group", "copy", "copy_all"):
            kinds = {p.kind for p in inspect.signature(function).parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, name
