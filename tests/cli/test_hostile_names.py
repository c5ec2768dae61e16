"""Control characters and forged lines in names and values are escaped by all commands and in the log of a mount."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import zarrfs
from tests.mount.mounted import mounted, needs_fuse, zarrfs_command
from zarrfs.cli.main import COMMANDS, run
from zarrfs.logs import logger

TEXT = "\x1b]0;title\x07\x9b31m\nzarrfs: forged\x85\u202e"

HOSTILE = f"{TEXT}\udcff"
"""File names need not be valid Unicode."""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A function that runs a command in this process and returns the exit code, standard output and standard error."""
    handlers, level = list(logger.handlers), logger.level

    def run_in_process(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["zarrfs", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            run()
        captured = capsys.readouterr()
        return int(exit_info.value.code or 0), captured.out, captured.err

    yield run_in_process
    logger.handlers[:] = handlers
    logger.setLevel(level)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A group, an array, a broken member and attributes with hostile names, in a directory with a hostile name."""
    path = tmp_path / f"{HOSTILE}.zarr"
    root = zarrfs.create_group(path, attributes={TEXT: TEXT, "ome": {"version": TEXT}})
    root.create_array(HOSTILE, data=np.arange(4), attributes={TEXT: [TEXT]}, dimension_names=[TEXT])
    root.create_group(f"{HOSTILE} group")
    broken = path / f"{HOSTILE} broken"
    broken.mkdir()
    (broken / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": TEXT, TEXT: TEXT}))
    return path


def assert_escaped(output: str, errors: str) -> None:
    for line in (output + errors).split("\n"):
        assert line.isprintable(), line
        assert not line.startswith("zarrfs: forged")
    for line in errors.split("\n"):
        assert len(line) < 2000


TEMPLATES = [
    ("info", "{store}"),
    ("info", "{store}", "--json"),
    ("info", "{store}", HOSTILE),
    ("info", "{store}", f"{HOSTILE} broken"),
    ("info", f"{HOSTILE}/missing"),
    ("tree", "{store}"),
    ("tree", "{store}", "--json"),
    ("check", "{store}"),
    ("check", "{store}", "--json"),
    ("check", "{store}", "--path", HOSTILE),
    ("copy", "{store}", "{new}"),
    ("copy", "{store}", "{new}", "--dry-run"),
    ("copy", "{store}", "{store}"),
    ("convert", "{store}", "{new}", "--format", "2"),
    ("convert", "{store}", "{new}", "--compressor", HOSTILE),
    ("rechunk", "{store}", "{new}", "--chunks", "2"),
    ("rechunk", "{store}", "{new}", "--chunks", HOSTILE),
    ("migrate", "{store}"),
    ("consolidate", "{store}"),
    ("consolidate", "{store}", "--check"),
    ("clean", "{store}", "--dry-run"),
    ("ls", "{store}"),
    ("ls", "{store}", "--json"),
    ("ls", "{store}", HOSTILE),
    ("du", "{store}"),
    ("du", "{store}", "--json"),
    ("cat", "{store}"),
    ("cat", "{store}", HOSTILE),
    ("export", "{store}", "{new}.npy"),
    ("export", "{store}", HOSTILE),
    ("import", HOSTILE, "{new}"),
    ("import", "{store}", "{new}"),
    ("verify", "{store}"),
    ("verify", "{store}", "{new}"),
    ("verify", "{store}", "{store}", "--json"),
    ("pyramid", "{store}"),
    ("pyramid", "{store}", HOSTILE),
    ("edit", "{store}", "--set", f"{HOSTILE}={HOSTILE}", "--dry-run"),
    ("edit", "{store}", "--delete", HOSTILE),
    ("edit", "{store}", "--scale", f"{HOSTILE}={HOSTILE}"),
    ("mount", "{store}", "{new}"),
    ("mounts",),
    ("stats", "{new}"),
    ("stats", HOSTILE, "--json"),
    ("mount", HOSTILE, "{tmp}", "--cache-size", HOSTILE),
    ("umount", "{store}"),
    ("umount", HOSTILE),
    ("view", f"--{HOSTILE}"),
    ("doctor", HOSTILE),
    ("completion", HOSTILE),
    ("completion", "bash"),
    (HOSTILE,),
    ("info", "{store}", "--storage-option", HOSTILE),
    ("info", "{store}", "--storage-option", f"{HOSTILE}={HOSTILE}"),
    ("info", f"{HOSTILE}://host/x"),
    ("info", f"https://{HOSTILE}/x"),
]


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: ascii(" ".join(template))[:60])
def test_no_command_prints_control_characters(
    template: tuple[str, ...], store: Path, tmp_path: Path, run_command: Run, caplog: pytest.LogCaptureFixture
) -> None:
    arguments = [word.format(store=store, new=tmp_path / f"{HOSTILE} new", tmp=tmp_path) for word in template]
    status, output, errors = run_command(*arguments)
    assert_escaped(output, errors)
    assert "unexpected error" not in errors
    assert "Traceback" not in errors
    assert status in (0, 1, 2, 3)
    assert output or errors or status == 0


LONG = "a" * 10**6

LONG_OBJECT = {LONG: LONG, "list": [LONG]}

LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}

LONG_MULTISCALES = [
    {
        "name": LONG,
        "axes": [{"name": LONG, "type": LONG, "unit": LONG}, {"name": "x", "type": "space", "unit": LONG}],
        "datasets": [
            {"path": LONG, "coordinateTransformations": [{"type": "scale", "scale": LONG}, {"type": LONG}]},
            {"path": "0", "coordinateTransformations": [{"type": "scale", "scale": [1, 1]}]},
        ],
    }
]

LONG_ARRAYS: dict[str, dict[str, Any]] = {
    "array": {
        "attributes": {**LONG_OBJECT, "units": LONG, "coordinates": LONG, "scale_factor": LONG},
        "dimension_names": [LONG, f"{LONG}b"],
        "codecs": [LITTLE, {"name": LONG, "must_understand": False}],
        LONG: {"must_understand": False},
    },
    "data type": {"data_type": {"name": LONG, "configuration": LONG_OBJECT}},
    "fields": {
        "data_type": {
            "name": "struct",
            "configuration": {"fields": [{"name": LONG, "data_type": "uint16"}]},
        },
        "fill_value": {LONG: 0},
    },
    "codec": {"codecs": [{"name": LONG, "configuration": LONG_OBJECT}]},
    "configuration": {"codecs": [LITTLE, {"name": "blosc", "configuration": {"cname": LONG, LONG: LONG}}]},
    "keys": {"chunk_key_encoding": {"name": LONG}},
    "grid": {"chunk_grid": {"name": LONG, "configuration": LONG_OBJECT}},
    "fill value": {"fill_value": LONG},
    "string": {"data_type": "string", "fill_value": LONG, "codecs": ["vlen-utf8"]},
    "extension": {LONG: LONG},
    "kind": {"node_type": LONG},
    "transformers": {"storage_transformers": [{"name": LONG}]},
}
"""Members of the documents of arrays of format 3."""

LONG_ATTRIBUTES: dict[str, dict[str, Any]] = {
    "image": {"ome": {"version": "0.5", "multiscales": LONG_MULTISCALES, "labels": [LONG], **LONG_OBJECT}},
    "version": {"ome": {"version": LONG, "multiscales": LONG_MULTISCALES}},
    "plate": {"ome": {"version": "0.5", "plate": {"name": LONG, "wells": [{"path": LONG}], LONG: LONG}}},
    "unfinished": {"zarrfs_unfinished": LONG_OBJECT},
}

LONG_V2: dict[str, dict[str, Any]] = {
    "array": {LONG: LONG},
    "data type": {"dtype": LONG},
    "fields": {"dtype": [[LONG, "<u2"]], "fill_value": None},
    "compressor": {"compressor": {"id": LONG, **LONG_OBJECT}},
    "filters": {"filters": [{"id": "delta", "dtype": LONG}]},
    "separator": {"dimension_separator": LONG},
    "fill value": {"fill_value": LONG},
}


@pytest.fixture(scope="module")
def long_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hierarchy with documents in which the strings have a megabyte."""
    path = tmp_path_factory.mktemp("long") / "s.zarr"
    root = zarrfs.create_group(path, attributes=LONG_OBJECT)
    for name, members in LONG_ARRAYS.items():
        root.create_array(name, data=np.arange(12, dtype="u2").reshape(3, 4), chunks=(2, 2))
        document = path / name / "zarr.json"
        document.write_text(json.dumps({**json.loads(document.read_text()), **members}))
    for name, attributes in LONG_ATTRIBUTES.items():
        root.create_group(name, attributes=attributes).create_array("0", data=np.ones((3, 4), "u2"))
    document = path / "zarr.json"
    listed = {LONG: {"zarr_format": 3, "node_type": "group"}, "b": {"zarr_format": 3, "node_type": LONG}}
    consolidated = {"kind": "inline", "must_understand": False, "metadata": listed}
    (path / "consolidated").mkdir()
    (path / "consolidated" / "zarr.json").write_text(
        json.dumps({**json.loads(document.read_text()), "consolidated_metadata": consolidated})
    )
    group = zarrfs.create_group(path / "v2", zarr_format=2, attributes=LONG_OBJECT)
    for name, members in LONG_V2.items():
        group.create_array(
            name, shape=4, dtype="<u2", attributes={**LONG_OBJECT, "_ARRAY_DIMENSIONS": [LONG]}
        )
        document = path / "v2" / name / ".zarray"
        document.write_text(json.dumps({**json.loads(document.read_text()), **members}))
    group = zarrfs.create_group(path / "n5", zarr_format="n5", attributes=LONG_OBJECT)
    n5: dict[str, dict[str, Any]] = {
        "dataType": {"dataType": LONG},
        "axes": {"axes": [LONG], "units": [LONG]},
    }
    for name, members in n5.items():
        group.create_array(name, shape=4, dtype="<u2")
        document = path / "n5" / name / "attributes.json"
        document.write_text(json.dumps({**json.loads(document.read_text()), **members}))
    return path


LONG_TEMPLATES = [
    ("copy", "{store}", "{new}", "--skip-broken"),
    ("copy", "{store}", "{new}.h5", "--skip-broken"),
    ("convert", "{store}", "{new}", "--format", "n5", "--skip-broken"),
    ("rechunk", "{store}", "{new}", "--chunks", "x=1", "--skip-broken"),
    ("clean", "{store}", "--unreachable", "--dry-run"),
    ("edit", "{store}", "--set", "a=1", "--dry-run"),
    *(("export", "{store}", f"{{new}}{suffix}") for suffix in (".npy", ".tif", ".png", ".nrrd", ".h5")),
]


@pytest.mark.parametrize("name", COMMANDS)
def test_long_texts_in_documents_have_short_messages(
    name: str, long_store: Path, tmp_path: Path, run_command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text functions that are not linear would exceed the time limit of a test."""
    templates = [template for template in [*TEMPLATES, *LONG_TEMPLATES] if template[0] == name]
    for number, template in enumerate(templates):
        for member in ("", "array", "image", "v2/array"):
            if member and not any("{store}" in word for word in template):
                continue
            words = [
                word.replace(HOSTILE, LONG).format(
                    store=f"{long_store}/{member}".rstrip("/"),
                    new=tmp_path / f"{number} {member.replace('/', ' ')}",
                    tmp=tmp_path,
                )
                for word in template
            ]
            stdout = io.TextIOWrapper(io.BytesIO(), write_through=True)
            monkeypatch.setattr(sys, "stdout", stdout)  # cat writes bytes
            status, _, errors = run_command(*words)
            output = stdout.buffer.getvalue()
            context = f"{template} of {member!r}: "
            assert status in (0, 1, 2, 3), context
            assert "unexpected error" not in errors, context + errors[:2000]
            assert "Traceback" not in errors, context + errors[:2000]
            assert max(map(len, errors.split("\n"))) < 5000, context
            if name != "cat" and "--json" not in template:
                assert max(map(len, output.split(b"\n"))) < 20_000, context


def test_every_command_is_covered() -> None:
    assert {template[0] for template in TEMPLATES} >= set(COMMANDS)


def test_long_values_are_truncated(tmp_path: Path, run_command: Run) -> None:
    text = "x" * 10**6
    zarrfs.create_group(tmp_path / "a.zarr", attributes={"long": text, "many": list(range(10_000))})
    status, output, _ = run_command("info", tmp_path / "a.zarr")
    assert status == 0
    assert len(output) < 100_000
    assert "--json prints all" in output
    status, output, _ = run_command("info", tmp_path / "a.zarr", "--json")
    assert json.loads(output)["attributes"]["long"] == text
    for arguments in (
        ("info", text),
        ("tree", tmp_path / text),
        ("info", "a", "b", text),
        ("rechunk", "a", "b", "--chunks", text),
    ):
        status, output, errors = run_command(*arguments)
        assert status in (1, 2)
        assert len(errors) < 3000


def test_an_unexpected_error_is_one_line_and_its_traceback_is_logged_at_debug_level(
    run_command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise RuntimeError(HOSTILE)

    monkeypatch.setattr(zarrfs, "open", fail)
    status, output, errors = run_command("info", tmp_path)
    assert (status, output) == (1, "")
    assert errors.count("\n") == 1
    assert errors.startswith("zarrfs: unexpected error: RuntimeError: \\x1b")
    status, output, errors = run_command("--log-level", "debug", "info", tmp_path)
    assert_escaped(output, errors)
    assert "Traceback" in errors


def test_a_broken_member_is_listed_as_broken(tmp_path: Path, run_command: Run) -> None:
    root = zarrfs.create_group(tmp_path / "a.zarr")
    root.create_array("good", data=np.arange(3))
    for name in ("fifo", "device"):
        (tmp_path / "a.zarr" / name).mkdir()
    os.mkfifo(tmp_path / "a.zarr" / "fifo" / "zarr.json")
    (tmp_path / "a.zarr" / "device" / "zarr.json").symlink_to("/dev/zero")
    for arguments in (("info",), ("tree",)):
        status, output, errors = run_command(*arguments, tmp_path / "a.zarr", "--json")
        assert (status, errors) == (0, "")
        members = json.loads(output)["members"]
        kinds = (
            {member["name"]: member["kind"] for member in members}
            if isinstance(members, list)
            else {name: member["kind"] for name, member in members.items()}
        )
        assert kinds == {"good": "array", "fifo": "broken", "device": "broken"}
        status, output, errors = run_command(*arguments, tmp_path / "a.zarr")
        assert (status, errors) == (0, "")
        assert "regular file" in output


@needs_fuse
def test_the_log_of_a_mount_contains_no_control_characters(store: Path, tmp_path: Path) -> None:
    chunk = next((store / HOSTILE / "c").iterdir())
    chunk.write_bytes(b"broken")
    with mounted(store, tmp_path / "mnt") as mnt:
        listed = os.listdir(mnt)
        assert f"{HOSTILE} broken.error.txt" in listed
        assert (mnt / f"{HOSTILE} broken.error.txt").read_text().count("\n") == 1
        with pytest.raises(OSError, match="Input/output error"):
            (mnt / f"{HOSTILE}.raw").read_bytes()
    lines = (tmp_path / "mnt.log").read_text().splitlines()
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert "\\x1b]0;title" in lines[0]


@needs_fuse
def test_the_error_of_a_failed_mount_is_one_line(store: Path, tmp_path: Path) -> None:
    (tmp_path / "mnt").mkdir()
    completed = zarrfs_command(
        "mount", store / f"{HOSTILE} broken", tmp_path / "mnt", "--log-file", tmp_path / "log"
    )
    assert completed.returncode == 1
    assert_escaped(completed.stdout, completed.stderr)
    assert completed.stderr.count("\n") == 1
    assert all(line.isprintable() for line in (tmp_path / "log").read_text().splitlines())


def test_log_records_on_the_terminal_are_escaped(
    run_command: Run, store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine logs a warning that contains a hostile name."""
    with caplog.at_level(logging.WARNING):
        status, output, errors = run_command("copy", store, store.parent / "new.zarr")
    assert_escaped(output, errors)
    assert status in (0, 1, 3)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.exceptions.Abort(), 130, "interrupted"),
        (MemoryError(), 1, "there is not enough memory"),
        (RecursionError(), 1, "the data is nested too deeply"),
        (zarrfs.StoreError("the disk is broken"), 1, "the disk is broken"),
        (OSError(5, "Input/output error"), 1, "[Errno 5] Input/output error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_the_exit_code_and_the_message_of_each_kind_of_error(
    error: BaseException,
    status: int,
    message: str,
    run_command: Run,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(zarrfs, "open", fail)
    found, output, errors = run_command("info", tmp_path)
    assert (found, output, errors.lstrip("\n")) == (status, "", f"zarrfs: {message}\n")
