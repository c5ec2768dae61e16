"""References in Parquet files (kerchunk, VirtualiZarr), compared with the reader and writer of fsspec."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from fsspec.implementations.reference import LazyReferenceMapper
from hypothesis import given
from hypothesis import strategies as st

import zarrfs
from tests.engine.stores.servers import web_server
from zarrfs.engine.stores.remote.store import RemoteStore
from zarrfs.errors import LocationError, StoreError, ZarrError

DATA = np.arange(35, dtype="<u2").reshape(5, 7)


def array_document(shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str = "<u2") -> str:
    return json.dumps(
        {
            "zarr_format": 2,
            "shape": shape,
            "chunks": chunks,
            "dtype": dtype,
            "compressor": None,
            "fill_value": 0,
            "order": "C",
            "filters": None,
        }
    )


def write_references(
    path: Path, references: dict[str, Any], record_size: int = 4, engine: Any = "pyarrow"
) -> Path:
    """Write references in the order of JSON references with the writer of fsspec."""
    writer = LazyReferenceMapper.create(str(path), record_size=record_size, engine=engine)
    for key, value in references.items():
        writer[key] = value
    writer.flush()
    return path


def write_image(folder: Path, target: str | None = None) -> Path:
    """Write an array to a binary file with one chunk for each row, and references to it."""
    (folder / "data").mkdir(parents=True)
    (folder / "data/rows.bin").write_bytes(DATA.tobytes())
    place = target or f"{folder}/data/rows.bin"
    references: dict[str, Any] = {
        ".zgroup": '{"zarr_format": 2}',
        "g/.zgroup": '{"zarr_format": 2}',
        "g/x/.zarray": array_document(DATA.shape, (1, 7)),
        "g/x/.zattrs": '{"unit": "m"}',
        **{f"g/x/{row}.0": [place, 14 * row, 14] for row in range(5)},
        "inline/.zarray": array_document((3,), (2,), "|u1"),
        "inline/0": b"ab",
        "whole/.zarray": array_document(DATA.shape, DATA.shape),
        "whole/0.0": [place],
        "scalar/.zarray": array_document((), (), "|u1"),
        "scalar/0": b"\x07",
    }
    return write_references(folder / "refs.parq", references)


def check_image(location: Any, **options: Any) -> None:
    with zarrfs.open_group(location, **options) as group:
        np.testing.assert_array_equal(group["g/x"][...], DATA)
        np.testing.assert_array_equal(group["whole"][...], DATA)
        assert group["inline"][...].tolist() == [97, 98, 0]
        assert group["scalar"][()] == 7
        assert group["g/x"].attrs["unit"] == "m"


def read_first_row(path: Path) -> Any:
    with zarrfs.open_array(path / "g/x") as array:
        return array[0]


@pytest.mark.parametrize("form", ["{}", "{}/", "reference::{}", "reference::file://{}", "reference://{}"])
def test_a_directory_with_references_is_a_location(tmp_path: Path, form: str) -> None:
    check_image(form.format(write_image(tmp_path)))


def test_members_are_listed_and_paths_point_into_the_references(tmp_path: Path) -> None:
    path = write_image(tmp_path)
    with zarrfs.open_group(path) as group:
        assert list(group) == ["g", "inline", "scalar", "whole"]
        assert list(group["g"]) == ["x"]
        assert group.store.list_dir("g") == ([".zgroup"], ["x"])
        assert group.store.list_dir("inline") == ([".zarray", "0"], [])
        assert len(list(group.store.list_prefix())) == len(set(group.store.list_prefix())) == 15
        assert group.store.size("g/x/3.0") == 14
        assert group.store.get("g/x/9.0") is None
        assert group.store.get("inline/1") is None
    for inner in ("g", "g/x"):
        with zarrfs.open(f"{path}/{inner}") as node:
            assert node.path == inner
    with pytest.raises(LocationError, match="cannot be changed"):
        zarrfs.open(path, mode="r+")


def test_references_on_a_web_server_are_read(tmp_path: Path) -> None:
    write_image(tmp_path)
    with web_server(tmp_path) as web:
        site = write_image(tmp_path / "site", f"{web.url}/data/rows.bin")
        assert site.exists()
        location = f"reference::{web.url}/site/refs.parq"
        check_image(location)
        check_image(location, access=zarrfs.Access(allow_external=True))


def test_relative_targets_are_relative_to_the_directory_of_the_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_image(tmp_path / "a", "data/rows.bin")
    monkeypatch.chdir(tmp_path)
    check_image(path)


def test_targets_at_other_locations_need_allow_external(tmp_path: Path) -> None:
    write_image(tmp_path / "other")
    path = write_image(tmp_path / "a", f"file://{tmp_path}/other/data/rows.bin")
    with zarrfs.open_group(path) as group, pytest.raises(StoreError, match="allow_external=True"):
        group["g/x"][...]
    check_image(path, access=zarrfs.Access(allow_external=True))


def test_a_file_that_does_not_exist_has_only_missing_chunks_and_a_damaged_one_is_an_error(
    tmp_path: Path,
) -> None:
    path = write_image(tmp_path)
    (path / "g/x/refs.1.parq").unlink()
    with zarrfs.open_array(path / "g/x") as array:
        np.testing.assert_array_equal(array[:4], DATA[:4])
        assert not array[4].any()
    (path / "g/x/refs.0.parq").write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(StoreError, match=r"refs\.0\.parq is damaged"):
        read_first_row(path)


def test_a_file_with_too_many_references_is_an_error(tmp_path: Path) -> None:
    path = write_image(tmp_path)
    table = pyarrow.table({"path": ["x"] * 5, "offset": [0] * 5, "size": [1] * 5})
    pyarrow.parquet.write_table(table, path / "g/x/refs.0.parq")
    with pytest.raises(StoreError, match="5 references in"):
        read_first_row(path)


@pytest.mark.parametrize(
    "document",
    ['{"metadata": {}, "record_size": 0}', '{"metadata": 1, "record_size": 5}', '{"record_size": 5}', "[1"],
)
def test_a_wrong_directory_is_an_error(tmp_path: Path, document: str) -> None:
    path = write_image(tmp_path)
    (path / ".zmetadata").write_text(document)
    with pytest.raises(LocationError, match=r"\.zmetadata"):
        zarrfs.open(f"reference::file://{path}")


def test_the_package_is_an_optional_dependency(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from zarrfs import libraries

    path = write_image(tmp_path)
    libraries._complete.discard("pyarrow.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(LocationError, match=r"'pyarrow.parquet', which is not installed: pip install"):
        zarrfs.open(path)


def test_consolidated_directories_are_no_references(tmp_path: Path) -> None:
    with zarrfs.create_group(tmp_path / "a", zarr_format=2) as group:
        group.create_array("x", data=DATA)
        group.attrs["record_size"] = 1
    zarrfs.consolidate_metadata(tmp_path / "a").close()
    with zarrfs.open_group(tmp_path / "a") as group:
        assert group.store.directory == str(tmp_path / "a")
        np.testing.assert_array_equal(group["x"][...], DATA)


@st.composite
def reference_sets(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """Return references of one array, and the number of references in a file."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    chunks = tuple(draw(st.integers(1, length)) for length in shape)
    reference = st.one_of(
        st.none(),
        st.binary(min_size=1, max_size=6).filter(lambda value: not value.startswith(b"base64:")),
        st.tuples(st.sampled_from(["/a", "/b"]), st.integers(0, 99), st.integers(1, 99)).map(list),
        st.just(["/c"]),
    )
    references: dict[str, Any] = {
        ".zgroup": '{"zarr_format": 2}',
        "a/b/.zarray": array_document(shape, chunks),
    }
    counts = [-(-length // chunk) for length, chunk in zip(shape, chunks, strict=True)]
    for coords in itertools.product(*map(range, counts)):
        value = draw(reference)
        if value is not None:
            references[f"a/b/{'.'.join(map(str, coords))}"] = value
    return references, draw(st.integers(1, 7))


@given(reference_sets())
def test_the_references_are_those_that_fsspec_wrote(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[dict[str, Any], int]
) -> None:
    references, record_size = case
    path = write_references(tmp_path_factory.mktemp("case") / "refs.parq", references, record_size)
    with RemoteStore(f"reference::file://{path}", read_only=True) as store:
        read: Any = vars(store._backend)["file_system"].references
        assert dict(read).keys() == references.keys()
        fsspec_reader = LazyReferenceMapper(str(path), engine="pyarrow")
        for key, value in references.items():
            if key.endswith((".zgroup", ".zarray")):
                assert json.loads(read[key]) == json.loads(value)
            else:
                assert read[key] == value
                assert list(fsspec_reader[key]) == list(value)


def test_only_zarr_errors_are_raised_for_arrays_with_damaged_documents(tmp_path: Path) -> None:
    path = write_image(tmp_path)
    document = json.loads((path / ".zmetadata").read_text())
    for damage in ({"shape": "x"}, {"chunks": [0, 0]}, {"chunks": [1]}):
        changed = document["metadata"] | {"g/x/.zarray": document["metadata"]["g/x/.zarray"] | damage}
        (path / ".zmetadata").write_text(json.dumps({**document, "metadata": changed}))
        with pytest.raises(ZarrError):
            zarrfs.open_array(path / "g/x")
