"""Invalid and hostile metadata and chunks raise a clear error, quickly and with little memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults import chunks, documents, files
from tests.faults.files import FileCase
from tests.faults.hostile import Case
from tests.processes import TIMEOUT

MAX_CPU_SECONDS = 1.0
"""CPU seconds of one case. The elapsed time depends on the load of the machine."""

DOCUMENTS = list(documents.cases())
CHUNKS = list(chunks.cases())


def run_child(mode: str, directory: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.child", mode, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"the process exited with {done.returncode}: {done.stderr[-2000:]}"
    outcomes: dict[str, Any] = json.loads(done.stdout)
    return outcomes


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_child("engine", tmp_path_factory.mktemp("engine"))


def check(case: Case, outcome: dict[str, Any]) -> None:
    assert outcome["is_zarr_error"], (
        f"expected a ZarrError, found {outcome['error']}: {outcome['message'][:500]}"
    )
    assert len(outcome["message"]) > 20
    assert "\n" not in outcome["message"].strip()
    assert len(outcome["message"]) < 2000, "the message is too long to be readable"
    for word in case.words:
        assert word in outcome["message"]
    assert outcome["seconds"] < MAX_CPU_SECONDS


@pytest.mark.parametrize("case", DOCUMENTS, ids=lambda case: case.name)
def test_an_invalid_document_raises_a_zarr_error(case: Case, outcomes: dict[str, Any]) -> None:
    check(case, outcomes[case.name])
    assert outcomes[case.name]["error"] != "ChunkDecodeError", "a chunk was read"


@pytest.mark.parametrize("case", CHUNKS, ids=lambda case: case.name)
def test_a_corrupt_chunk_raises_a_chunk_decode_error(case: Case, outcomes: dict[str, Any]) -> None:
    check(case, outcomes[case.name])
    assert outcomes[case.name]["error"] == "ChunkDecodeError"


@pytest.mark.parametrize(("first", "count"), [(0, 330), (2_000, 900), (9_240, 900)])
def test_random_codec_chains_and_chunks_return_values_or_raise_a_zarr_error(first: int, count: int) -> None:
    """Every codec alone, some pairs, and random chains."""
    command = [sys.executable, "-m", "tests.faults.chains", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process exited with {done.returncode} at {last}"
    outcome = json.loads(done.stdout)
    assert not outcome["problems"]
    assert outcome["opened"] > 300
    assert outcome["read"] > 30


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_documents_return_a_node_or_raise_a_zarr_error(seed: int) -> None:
    command = [sys.executable, "-m", "tests.faults.mutants", str(seed), "3000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process exited with {done.returncode} at {last}"
    outcome = json.loads(done.stdout)
    assert not outcome["problems"]
    assert outcome["read"] > 200


def test_a_megabyte_of_text_in_a_document_has_a_short_message() -> None:
    command = [sys.executable, "-m", "tests.faults.long_texts"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process exited with {done.returncode} at {last}"
    assert json.loads(done.stdout) == []


@pytest.fixture(scope="module")
def file_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_child("files", tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("case", list(files.cases()), ids=lambda case: case.name)
def test_unusual_files_raise_a_zarr_error_or_are_read(case: FileCase, file_outcomes: dict[str, Any]) -> None:
    outcome = file_outcomes[case.name]
    if case.fails:
        assert outcome["is_zarr_error"], (
            f"expected a ZarrError, found {outcome['error']}: {outcome['message'][:500]}"
        )
    else:
        assert outcome["error"] == "NoneType", outcome["message"]
    assert outcome["seconds"] < MAX_CPU_SECONDS


@pytest.fixture(scope="module")
def info_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_child("info", tmp_path_factory.mktemp("info"))


@pytest.mark.parametrize("case", DOCUMENTS, ids=lambda case: case.name)
def test_info_reports_an_invalid_document_in_one_line(case: Case, info_outcomes: dict[str, Any]) -> None:
    outcome = info_outcomes[case.name]
    assert outcome["is_zarr_error"], f"{outcome['error']}: {outcome['message'][:500]}"
    assert outcome["message"].startswith("zarrfs: ")
    assert "\n" not in outcome["message"]
    assert outcome["seconds"] < MAX_CPU_SECONDS


@pytest.mark.parametrize("name", [*(case.name for case in CHUNKS), "endless"])
def test_info_reads_no_chunk(name: str, info_outcomes: dict[str, Any]) -> None:
    """The array "endless" has a petabyte of missing chunks."""
    assert info_outcomes[name]["error"] == "NoneType", info_outcomes[name]["message"]
    assert info_outcomes[name]["seconds"] < MAX_CPU_SECONDS


def test_no_command_fails_unexpectedly_or_prints_control_characters(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.commands", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == []
