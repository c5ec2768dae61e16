"""The fixture of the tests that execute examples."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.documentation.servers import SharedServers


@pytest.fixture(scope="module")
def servers() -> Iterator[SharedServers]:
    shared = SharedServers()
    yield shared
    shared.close()
