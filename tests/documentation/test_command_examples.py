"""The examples of the pages with the most commands; see ``test_examples.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documentation.running import page_parameters, run_examples
from tests.documentation.servers import SharedServers
from tests.mount.mounted import needs_fuse


@needs_fuse
@page_parameters(of_commands=True)
def test_the_examples_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, servers: SharedServers
) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(page, tmp_path, servers)
