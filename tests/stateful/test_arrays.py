"""Random operations on arrays in every store, compared with the same operations on a NumPy array."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck

from tests.engine.stores.every_store import stop_all_servers
from tests.stateful.array_machine import ArrayMachine
from tests.stateful.running import EXAMPLES_FACTOR, WRITABLE, run

EXAMPLES = {"memory": 100, "local": 50}
"""The number of sequences of operations for fast stores."""

DEFAULT_EXAMPLES = 10


@pytest.fixture(scope="module", autouse=True)
def servers() -> Iterator[None]:
    yield
    stop_all_servers()


@pytest.mark.timeout(1200 * EXAMPLES_FACTOR)
@pytest.mark.parametrize("store", WRITABLE)
def test_any_sequence_of_operations_agrees_with_numpy(store: str) -> None:
    run(
        ArrayMachine,
        store,
        EXAMPLES,
        DEFAULT_EXAMPLES,
        stateful_step_count=15,
        suppress_health_check=list(HealthCheck),
    )
