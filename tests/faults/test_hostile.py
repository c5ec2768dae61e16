"""Hostile metadata and chunks give a clear error, in a moment and in little memory."""

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

SECONDS = 1.0
"""CPU seconds that one case may take: not by the clock, as the machine may be busy with other things."""

DOCUMENTS = list(documents.cases())
CHUNKS = list(chunks.cases())


def run_child(what: str, directory: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.faults.child", what, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"the process ended with {done.returncode}: {done.stderr[-2000:]}"
    outcomes: dict[str, Any] = json.loads(done.stdout)
    return outcomes


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_child("engine", tmp_path_factory.mktemp("engine"))


def check(case: Case, outcome: dict[str, Any]) -> None:
    assert outcome["ours"], f"expected a ZarrError, found {outcome['error']}: {outcome['message'][:500]}"
    assert len(outcome["message"]) > 20
    assert "\n" not in outcome["message"].strip()
    assert len(outcome["message"]) < 2000, "an error is to be read by a person"
    for word in case.words:
        assert word in outcome["message"]
    assert outcome["seconds"] < SECONDS


@pytest.mark.parametrize("case", DOCUMENTS, ids=lambda case: case.name)
def test_document(case: Case, outcomes: dict[str, Any]) -> None:
    check(case, outcomes[case.name])
    assert outcomes[case.name]["error"] != "ChunkDecodeError", "refused before any chunk is looked at"


@pytest.mark.parametrize("case", CHUNKS, ids=lambda case: case.name)
def test_chunk(case: Case, outcomes: dict[str, Any]) -> None:
    check(case, outcomes[case.name])
    assert outcomes[case.name]["error"] == "ChunkDecodeError"


@pytest.mark.parametrize(("first", "count"), [(0, 330), (2_000, 900), (9_240, 900)])
def test_any_chain_of_codecs_with_any_chunk_gives_values_or_an_error(first: int, count: int) -> None:
    """Every codec alone, some pairs, and random chains."""
    command = [sys.executable, "-m", "tests.faults.chains", str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process ended with {done.returncode} at {last}"
    outcome = json.loads(done.stdout)
    assert not outcome["wrong"]
    assert outcome["opened"] > 300
    assert outcome["read"] > 30


@pytest.mark.parametrize("seed", [1, 2])
def test_any_change_of_a_document_gives_a_node_or_an_error(seed: int) -> None:
    command = [sys.executable, "-m", "tests.faults.mutants", str(seed), "3000"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"the process ended with {done.returncode} at {last}"
    outcome = json.loads(done.stdout)
    assert not outcome["wrong"]
    assert outcome["read"] > 200


@pytest.fixture(scope="module")
def file_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_child("files", tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("case", list(files.cases()), ids=lambda case: case.name)
def test_file(case: FileCase, file_outcomes: dict[str, Any]) -> None:
    outcome = file_outcomes[case.name]
    if case.fails:
        assert outcome["ours"], f"expected a ZarrError, found {outcome['error']}: {outcome['message'][:500]}"
    else:
        assert outcome["error"] == "NoneType", outcome["message"]
    assert outcome["seconds"] < SECONDS


@pytest.fixture(scope="module")
def info_outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_child("info", tmp_path_factory.mktemp("info"))


@pytest.mark.parametrize("case", DOCUMENTS, ids=lambda case: case.name)
def test_info_on_a_document(case: Case, info_outcomes: dict[str, Any]) -> None:
    outcome = info_outcomes[case.name]
    assert outcome["ours"], f"{outcome['error']}: {outcome['message'][:500]}"
    assert outcome["message"].startswith("zarrfs: ")
    assert "\n" not in outcome["message"]
    assert outcome["seconds"] < SECONDS


@pytest.mark.parametrize("name", [*(case.name for case in CHUNKS), "endless"])
def test_info_looks_at_no_chunk(name: str, info_outcomes: dict[str, Any]) -> None:
    """Nor does it mind a petabyte of absent chunks."""
    assert info_outcomes[name]["error"] == "NoneType", info_outcomes[name]["message"]
    assert info_outcomes[name]["seconds"] < SECONDS


def test_no_command_fails_unexpectedly_or_prints_control_characters(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.faults.commands", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == []
