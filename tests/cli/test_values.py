"""Values of options: exit codes and messages for wrong values, compressors, and the limit of documents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import zarrfs
from tests.cli.test_commands import run
from zarrfs.cli.console import with_command_options
from zarrfs.cli.creation_options import CompressorType, ShapeType
from zarrfs.cli.main import main
from zarrfs.cli.values import parse_numbers
from zarrfs.errors import MetadataError, OptionError
from zarrfs.tools import build_pyramid

LIMIT = "ZARRFS_MAX_DOCUMENT"


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image.zarr"
    array = zarrfs.create_array(tmp_path / "a.zarr", data=np.zeros((8, 8), "u2"), chunks=(4, 4))
    build_pyramid(array, path, levels=1)
    return path


def placed(arguments: list[str], image: Path, folder: Path) -> list[str]:
    """Return arguments with the paths of the image and of a new file or hierarchy."""
    return [text.replace("IMAGE", str(image)).replace("NEW", str(folder / "new")) for text in arguments]


@pytest.mark.parametrize(("command", "suffix"), [("copy", ".zarr"), ("copy", ".h5"), ("convert", ".zarr")])
def test_what_is_copied_is_printed(command: str, suffix: str, tmp_path: Path) -> None:
    zarrfs.create_group(tmp_path / "a.zarr").create_array("x", data=[1, 2, 3])
    arguments = [command, str(tmp_path / "a.zarr"), str(tmp_path / f"b{suffix}")]
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "x: " in result.output


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("use if_exists='skip', or skip_broken=True", "use --if-exists skip, or --skip-broken"),
        (
            "shards=False disables it; see the option dtype",
            "--shards none disables it; see the option --dtype",
        ),
        ("with allow_external=True (--allow-external)", "with --allow-external"),
        (
            "/data/if_exists='skip', mode='a', an option of x",
            "/data/if_exists='skip', mode='a', an option of x",
        ),
    ],
)
def test_messages_name_the_options_of_the_command(message: str, shown: str) -> None:
    names = ("--if-exists", "--skip-broken", "--shards", "--dtype", "--allow-external")
    command = click.Command("x", params=[click.Option([name]) for name in names])
    assert with_command_options(message, command) == shown


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["edit", "IMAGE", "--scale", "x=0"], 2, "above 0"),
        (["edit", "IMAGE", "--scale", "x=a"], 2, "'--scale': expected numbers"),
        (["edit", "IMAGE", "--scale", "q=1"], 2, "no axis 'q'"),
        (["edit", "IMAGE", "--set", "x"], 2, "--set: expected a name, = and a value"),
        (["edit", "IMAGE", "--contrast", "0=5,1"], 2, "ascending order"),
        (["cat", "IMAGE/0[a]"], 2, "not an index"),
        (["cat", "IMAGE/0[9]"], 1, "outside of dimension 0"),
        (["cat", "IMAGE/0", "-o", "IMAGE/zarr.json"], 1, "exists"),
        (["rechunk", "IMAGE", "NEW", "--chunks", "0"], 2, "'--chunks': '0' is not a shape"),
        (["convert", "IMAGE", "NEW", "--compressor", "x"], 2, "'--compressor': 'x': unknown codec"),
        (["pyramid", "IMAGE/0", "NEW", "--scale", "0,1"], 2, "scale: expected positive numbers"),
        (["export", "IMAGE", "NEW.tif", "--dtype", "U5"], 2, "--dtype: expected a data type of numbers"),
        (
            ["info", "IMAGE", "--storage-option", "x=1"],
            2,
            "a directory does not accept the storage option 'x'",
        ),
        (["consolidate", "IMAGE/0"], 1, "image.zarr/0 is an array; consolidated metadata belong to a group"),
        (["consolidate", "IMAGE/0", "--check"], 1, "is an array; consolidated metadata belong to a group"),
        (["edit", "NEW", "--set", "x=1"], 1, "no such file or directory"),
    ],
)
def test_wrong_values_have_the_exit_code_of_wrong_usage(
    arguments: list[str], status: int, message: str, image: Path, tmp_path: Path
) -> None:
    completed = run(*placed(arguments, image, tmp_path))
    assert completed.returncode == status
    assert message in completed.stderr


@pytest.mark.parametrize("text", ["x", "0", "1,-2", "", "1.5"])
def test_a_wrong_shape_names_its_option(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a shape") as caught:
        ShapeType().convert(text, click.Option(["--shards"]), None)
    assert "Invalid value for '--shards'" in caught.value.format_message()
    with pytest.raises(click.BadParameter, match="expected numbers"):
        parse_numbers("x", "--scale")


@pytest.mark.parametrize(
    ("text", "codecs"),
    [
        ("zstd:7", {2: ("numcodecs.zstd", "level", 7), 3: ("zstd", "level", 7)}),
        ("blosc:9", {2: ("numcodecs.blosc", "clevel", 9), 3: ("blosc", "clevel", 9)}),
        ("lz4:3", dict.fromkeys((2, 3), ("numcodecs.lz4", "acceleration", 3))),
        ("bz2:2", dict.fromkeys((2, 3), ("numcodecs.bz2", "level", 2))),
    ],
)
def test_the_level_of_a_compressor_is_used(text: str, codecs: dict[int, tuple[str, str, int]]) -> None:
    for zarr_format, (name, parameter, level) in codecs.items():
        options: dict[str, Any] = {
            "zarr_format": zarr_format,
            "compressors": CompressorType().convert(text, None, None),
        }
        array = zarrfs.create_array({}, data=np.arange(100), **options)
        codec = array.spec.codecs[-1]
        assert (codec.name, codec.configuration()[parameter]) == (name, level)
        assert array[99] == 99


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gzip:99", "expected an integer from 0 to 9"),
        ("zstd:x", "a name and a level"),
        ("bytes", "'bytes' is not a compressor"),
        ("crc33", "unknown codec"),
    ],
)
def test_wrong_compressors_are_refused(text: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=message):
        CompressorType().convert(text, None, None)


@pytest.mark.parametrize(
    "arguments",
    [
        ["cat", "IMAGE/0", "-o", "NEW.npy"],
        ["copy", "IMAGE", "NEW.zarr"],
        ["convert", "IMAGE", "NEW.zarr"],
        ["export", "IMAGE", "NEW.tif"],
        ["verify", "IMAGE"],
        ["pyramid", "IMAGE/0", "NEW.zarr"],
        ["edit", "IMAGE", "--set", "a=1"],
        ["info", "IMAGE"],
        ["ls", "IMAGE"],
        ["tree", "IMAGE"],
        ["du", "IMAGE"],
    ],
)
def test_the_limit_of_documents_applies_to_each_command(
    arguments: list[str], image: Path, tmp_path: Path
) -> None:
    texts = placed(arguments, image, tmp_path)
    with pytest.raises(MetadataError, match="at most 10 bytes"):
        CliRunner().invoke(main, [*texts, "--max-document", "10"], catch_exceptions=False)
    assert LIMIT not in os.environ
    assert CliRunner().invoke(main, [*texts, "--max-document", "1M"]).exit_code == 0


@pytest.mark.parametrize(
    "location",
    ["IMAGE", "IMAGE.zip", "sqlite://IMAGE.sqldb", "sftp://127.0.0.1:1/x", "memory://x"],
)
def test_unknown_storage_options_have_the_exit_code_of_incorrect_usage(
    location: str, image: Path, tmp_path: Path
) -> None:
    for suffix in (".zip", ".sqldb"):
        zarrfs.create_group(f"{image}{suffix}").close()
    name = "durable" if location.startswith("memory") else "unknown"
    with pytest.raises(OptionError, match=f"the storage option '{name}'"):
        CliRunner().invoke(
            main,
            ["info", location.replace("IMAGE", str(image)), "--storage-option", f"{name}=1"],
            catch_exceptions=False,
        )
