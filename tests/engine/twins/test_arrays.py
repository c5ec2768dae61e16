"""Arrays driven by random operations over every store, beside a NumPy array that undergoes the same.

``ZARRFS_LONGER=50`` runs fifty times as many examples.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.engine.stores.every_store import STORES, end_servers
from tests.engine.twins.array_twin import ArrayTwin

LONGER = int(os.environ.get("ZARRFS_LONGER", "1"))

FAR = dict.fromkeys(("fsspec, s3", "fsspec, ftp", "fsspec, sftp", "fsspec, azure", "fsspec, gcs"), 2)
EXAMPLES = {"memory": 100, "local": 50, **FAR}
"""How many sequences of operations for a store: many where they cost little, two where each key is a journey."""

WRITABLE = [name for name in STORES if name != "read-only"]

OTHERS = 10


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    end_servers()


@pytest.mark.timeout(300 * LONGER)
@pytest.mark.parametrize("store", WRITABLE)
def test_any_sequence_of_operations(store: str) -> None:
    class Machine(ArrayTwin):
        make = staticmethod(STORES[store])

    examples = EXAMPLES.get(store, OTHERS) * LONGER
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=15,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
