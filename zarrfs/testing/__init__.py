"""Help for the tests of programs that use zarrfs, and of packages that add stores to it.

``CountingStore``, ``LatencyStore`` and ``FailingStore`` wrap a store. They count its operations, delay them, or make
them fail. ``StoreTests`` is the contract that each store of zarrfs keeps, as a class of tests for pytest;
``check_store`` runs it without pytest.
"""

from __future__ import annotations

from zarrfs.testing.store_contract import StoreTests, check_store
from zarrfs.testing.stores import CountingStore, FailingStore, LatencyStore

__all__ = ["CountingStore", "FailingStore", "LatencyStore", "StoreTests", "check_store"]
