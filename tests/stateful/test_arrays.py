"""Arrays driven by random operations over every store, beside a NumPy array that undergoes the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck

from tests.engine.stores.every_store import end_servers
from tests.stateful.array_twin import ArrayTwin
from tests.stateful.running import LONGER, WRITABLE, run

EXAMPLES = {"memory": 100, "local": 50}
"""How many sequences of operations for a store: many where they cost little."""

OTHERS = 10


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    end_servers()


@pytest.mark.timeout(300 * LONGER)
@pytest.mark.parametrize("store", WRITABLE)
def test_any_sequence_of_operations(store: str) -> None:
    run(ArrayTwin, store, EXAMPLES, OTHERS, stateful_step_count=15, suppress_health_check=list(HealthCheck))
