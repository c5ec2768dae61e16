"""How the twins are run over a store, and over which.

``ZARRFS_LONGER=50`` runs fifty times as many examples.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from tests.engine.stores.every_store import STORES

__all__ = ["LONGER", "WRITABLE", "run"]

LONGER = int(os.environ.get("ZARRFS_LONGER", "1"))

WRITABLE = [name for name in STORES if name != "read-only"]

FAR = dict.fromkeys(("fsspec, s3", "fsspec, ftp", "fsspec, sftp", "fsspec, azure", "fsspec, gcs"), 2)
"""How many sequences of operations for stores where each key is a journey."""


def run(
    twin: type[RuleBasedStateMachine], store: str, examples: Mapping[str, int], others: int, **options: Any
) -> None:
    """Run a twin over a store, as often as ``examples`` says of it, ``others`` if it does not; ``options`` are
    settings of hypothesis.
    """
    machine = type("Machine", (twin,), {"make": staticmethod(STORES[store])})
    count = FAR.get(store) or examples.get(store, others)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=count * LONGER,
            deadline=None,
            **options,
        ),
    )
