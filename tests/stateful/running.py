"""Runs state machines on a store, and lists the stores.

``ZARRFS_LONGER=50`` runs fifty times as many examples.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.engine.stores.every_store import STORES

__all__ = ["EXAMPLES_FACTOR", "WRITABLE", "run"]

EXAMPLES_FACTOR = int(os.environ.get("ZARRFS_LONGER", "1"))

WRITABLE = [name for name in STORES if name != "read-only"]

HIGH_LATENCY = dict.fromkeys(
    ("s3", "azure", "gs", "fsspec, s3", "fsspec, ftp", "fsspec, sftp", "fsspec, azure", "fsspec, gcs"), 2
)
"""The number of sequences of operations for high-latency stores."""


def run(
    machine: type[RuleBasedStateMachine],
    store: str,
    examples: Mapping[str, int],
    default: int,
    **options: Any,
) -> None:
    """Run a state machine on a store.

    Args:
        examples: the number of sequences of operations for each store.
        default: the number for other stores.
        options: settings of hypothesis.
    """
    machine_on_store = type("Machine", (machine,), {"make": staticmethod(STORES[store])})
    count = HIGH_LATENCY.get(store) or examples.get(store, default)
    run_state_machine_as_test(
        machine_on_store,
        settings=settings(
            max_examples=count * EXAMPLES_FACTOR,
            deadline=None,
            **options,
        ),
    )
