"""Help for the tests of programs that use zarrfs, and of packages that extend it.

``CountingStore``, ``LatencyStore`` and ``FailingStore`` wrap a store. They count its operations, delay them, or make
them fail. ``StoreTests``, ``CodecTests``, ``FormatTests`` and ``ViewTests`` are the contracts that stores, codecs,
formats and views keep, as classes of tests for pytest; ``check_store``, ``check_codec``, ``check_format`` and
``check_view`` run them without pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from zarrfs.testing.store_contract import StoreTests, check_store
from zarrfs.testing.stores import CountingStore, FailingStore, LatencyStore

if TYPE_CHECKING:
    from zarrfs.testing.codec_contract import CodecTests, check_codec
    from zarrfs.testing.format_contract import FormatTests, check_format
    from zarrfs.testing.view_contract import ViewTests, check_view

__all__ = [
    "CodecTests",
    "CountingStore",
    "FailingStore",
    "FormatTests",
    "LatencyStore",
    "StoreTests",
    "ViewTests",
    "check_codec",
    "check_format",
    "check_store",
    "check_view",
]

LAZY_MODULES = {
    "CodecTests": "codec_contract",
    "check_codec": "codec_contract",
    "FormatTests": "format_contract",
    "check_format": "format_contract",
    "ViewTests": "view_contract",
    "check_view": "view_contract",
}
"""Name -> module that is imported on first use: views need the mount, which tests of stores do not."""


def __getattr__(name: str) -> Any:
    if name not in LAZY_MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"zarrfs.testing.{LAZY_MODULES[name]}"), name)
