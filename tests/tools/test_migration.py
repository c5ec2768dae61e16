"""In-place migration, and writing and checking consolidated metadata."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr
from click.testing import CliRunner

import zarrfs
from zarrfs.cli.main import main
from zarrfs.errors import UnsupportedError
from zarrfs.tools import consolidate_metadata, migrate, stale_consolidation

DATA = np.arange(30 * 20, dtype="i4").reshape(30, 20)


def create_hierarchy(path: Path) -> None:
    group = zarrfs.create_group(path, zarr_format=2, attributes={"a": 1})
    group.create_array("dots", data=DATA, chunks=(7, 7), attributes={"unit": "m"})
    group.create_array("inner/slashes", data=DATA, chunks=(7, 7), dimension_separator="/", order="F")
    group.create_array("gzip", data=DATA, chunks=(30, 20), compressors="gzip", attributes={"x": 1})


def assert_data_unchanged(path: Path) -> None:
    for name in ("dots", "inner/slashes", "gzip"):
        assert np.array_equal(zarrfs.open_array(path, name)[...], DATA)


@pytest.mark.parametrize("remove_old", [True, False])
def test_v2_migrates_to_v3_without_changing_chunks(
    remove_old: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_hierarchy(tmp_path)
    documents = (".zarray", ".zgroup", ".zattrs", "zarr.json")
    chunks = {f: f.read_bytes() for f in tmp_path.rglob("*") if f.is_file() and f.name not in documents}
    assert migrate(tmp_path, dry_run=True)[0] == "/: format 2 to 3"
    assert not list(tmp_path.rglob("zarr.json"))
    assert len(migrate(tmp_path, remove_old=remove_old)) == 5
    assert_data_unchanged(tmp_path)
    assert {f: f.read_bytes() for f in chunks} == chunks
    assert bool(list(tmp_path.rglob(".zarray"))) is not remove_old
    by_zarr_python = zarr.open_group(str(tmp_path), mode="r", zarr_format=3)
    assert np.array_equal(np.asarray(by_zarr_python["inner/slashes"][...]), DATA)
    assert dict(by_zarr_python["dots"].attrs) == {"unit": "m"}
    if remove_old:
        assert migrate(tmp_path) == []
    else:
        assert "v3 is used" in caplog.text
        caplog.clear()


def test_an_unsupported_migration_changes_nothing(tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path)
    with pytest.raises(UnsupportedError, match="nothing was changed"):
        migrate(tmp_path, 2)
    create_hierarchy(tmp_path / "two")
    zarrfs.create_array(tmp_path / "two", "extra", data=DATA, zarr_format=3)
    with pytest.raises(UnsupportedError, match="format 3"):
        migrate(tmp_path / "two", 2)


def test_v1_migrates_to_v2_and_v3(tmp_path: Path) -> None:
    meta = {
        "zarr_format": 1,
        "shape": [30, 20],
        "chunks": [30, 20],
        "dtype": "<i4",
        "compression": None,
        "compression_opts": None,
        "fill_value": 0,
        "order": "C",
    }
    for target_format in (2, 3):
        path = tmp_path / str(target_format)
        path.mkdir()
        (path / "meta").write_text(json.dumps(meta))
        (path / "attrs").write_text('{"old": true}')
        (path / "0.0").write_bytes(DATA.tobytes())
        migrate(path, target_format, remove_old=True)
        array = zarrfs.open_array(path)
        assert array.zarr_format == target_format
        assert np.array_equal(array[...], DATA)
        assert dict(array.attrs) == {"old": True}
        assert np.array_equal(np.asarray(zarr.open_array(str(path), mode="r")[...]), DATA)
        assert not (path / "meta").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_consolidated_metadata_is_written_and_checked(
    zarr_format: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create_hierarchy(tmp_path)
    if zarr_format == 3:
        migrate(tmp_path, remove_old=True)
    assert stale_consolidation(zarrfs.open_group(tmp_path)) == []
    assert consolidate_metadata(tmp_path).nmembers(None) == 4
    group = zarrfs.open_group(tmp_path, mode="r+")
    assert stale_consolidation(group) == []
    by_zarr_python = zarr.open_consolidated(str(tmp_path), zarr_format=zarr_format)  # type: ignore[arg-type]
    assert np.array_equal(np.asarray(by_zarr_python["inner/slashes"][...]), DATA)
    group.create_array("new", data=DATA)
    del group["dots"]
    group["gzip"].attrs["changed"] = True
    problems = "\n".join(stale_consolidation(group))
    for expected_text in (
        "dots",
        "but not in the store",
        "new",
        "exists but is missing from",
        "gzip",
        "differs from its",
    ):
        assert expected_text in problems
    result = CliRunner().invoke(main, ["consolidate", str(tmp_path), "--check"])
    assert result.exit_code == 1
    assert "out of date" in result.output
    assert CliRunner().invoke(main, ["consolidate", str(tmp_path)]).exit_code == 0
    assert CliRunner().invoke(main, ["consolidate", str(tmp_path), "--check"]).output == "up to date\n"


def test_the_migrate_command(tmp_path: Path) -> None:
    create_hierarchy(tmp_path)
    result = CliRunner().invoke(main, ["migrate", str(tmp_path), "--remove-old"])
    assert result.exit_code == 0
    assert "dots: format 2 to 3" in result.output
    assert_data_unchanged(tmp_path)
    result = CliRunner().invoke(main, ["migrate", str(tmp_path)])
    assert "already" in result.output


def test_a_zip_file_is_complete_after_consolidation_and_migration(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    group = zarrfs.create_group(path, zarr_format=2)
    group.create_array("a", data=DATA)
    group.store.close()
    assert consolidate_metadata(path).nmembers(None) == 1
    assert ".zmetadata" in zipfile.ZipFile(path).namelist()
    migrate(path)
    assert "a/zarr.json" in zipfile.ZipFile(path).namelist()
