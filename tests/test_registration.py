"""Commands, views, codecs, stores, formats and data types: each module is registered; most are documented and covered
by a contract suite.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

import zarrfs.cli
import zarrfs.engine.codecs
import zarrfs.engine.dtypes
import zarrfs.engine.formats
import zarrfs.engine.stores
import zarrfs.mount.views
import zarrfs.storage
from zarrfs.cli.main import COMMANDS, MODULES
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrfs.engine.codecs.numcodecs.table import ADAPTERS, adapter_class
from zarrfs.engine.codecs.registry import BUILT_IN, codec_class
from zarrfs.engine.dtypes.base import DataTypeFamily
from zarrfs.engine.dtypes.registry import families
from zarrfs.engine.formats.base import Format
from zarrfs.engine.formats.registry import all_formats
from zarrfs.engine.stores.base import Store
from zarrfs.mount.views.base import DirectoryView, View
from zarrfs.mount.views.registry import DIRECTORY_VIEWS, all_views

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

CODEC_BASES = {"NumcodecsArrayCodec", "NumcodecsBytesCodec", "NumcodecsObjectCodec"}
"""Classes of codecs whose subclasses are registered."""

UNREGISTERED_STORES = {
    "ClosedStore": "replaces a store of an array that is closed",
    "PluginStore": "wraps the stores of other packages",
    "UndoStore": "for the creation of one node",
}
"""Stores that are parts of operations, with their use. They have no contract of their own."""


def modules(package: ModuleType) -> Iterator[ModuleType]:
    """Yield all modules of a package, imported."""
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield importlib.import_module(info.name)


def concrete_classes(package: ModuleType, base: type) -> dict[str, type]:
    """Return the public classes that the modules of a package define and that can be created, by name."""
    return {
        name: value
        for module in modules(package)
        for name, value in vars(module).items()
        if inspect.isclass(value)
        and issubclass(value, base)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
        and not name.startswith("_")
    }


def test_every_module_with_a_command_is_registered() -> None:
    commands = {
        module.__name__.rpartition(".")[2]
        for module in modules(zarrfs.cli)
        if isinstance(getattr(module, "command", None), click.Command)
    }
    assert commands == {MODULES.get(name, name) for name in COMMANDS}, "COMMANDS in zarrfs/cli/main.py"
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"\n## zarrfs {name}\n" not in page] == [], "docs/command-line.md"


@pytest.mark.parametrize(
    ("base", "registered"), [(View, all_views), (DirectoryView, lambda: DIRECTORY_VIEWS)]
)
def test_every_view_is_registered_and_documented(base: type, registered: Any) -> None:
    views = registered()
    used = {type(view).__name__ for view in views}
    defined = [
        name
        for name, view in concrete_classes(zarrfs.mount.views, base).items()
        if isinstance(getattr(view, "suffix", None), str)  # otherwise it is the base of other views
    ]
    assert [name for name in defined if name not in used] == [], "BUILT_IN in zarrfs/mount/views/registry.py"
    page = (DOCS / "mount-files.md").read_text(encoding="utf-8")
    assert [view.suffix for view in views if f"img{view.suffix}" not in page] == [], "docs/mount-files.md"


def test_every_codec_is_registered_and_covered_by_the_contract() -> None:
    registered = {codec_class(name) for name in BUILT_IN} | {adapter_class(name) for name in ADAPTERS}
    names = {codec.__name__ for codec in registered if codec is not None}
    defined = concrete_classes(zarrfs.engine.codecs, Codec)
    missing = {name for name in defined if name not in names} - CODEC_BASES
    assert missing == set(), "BUILT_IN in registry.py, or ADAPTERS in numcodecs/table.py"
    kinds = (ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec)
    assert all(issubclass(codec, kinds) for codec in registered if codec is not None)
    suite = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/engine").rglob("test_*.py"))
    assert [name for name in BUILT_IN if f'"{name}"' not in suite] == [], (
        "tests/engine/codecs/test_contract.py"
    )


def test_every_format_is_registered() -> None:
    registered = {type(form).__name__ for _, form in all_formats()}
    defined = concrete_classes(zarrfs.engine.formats, Format)
    assert set(defined) - registered == set(), "_BUILT_IN in zarrfs/engine/formats/registry.py"


def test_every_data_type_is_registered() -> None:
    registered = {kind.__name__ for family in families().values() for kind in type(family).__mro__}
    defined = concrete_classes(zarrfs.engine.dtypes, DataTypeFamily)
    assert set(defined) - registered == set(), "_FAMILIES in zarrfs/engine/dtypes/registry.py"


def test_every_store_is_public_and_covered_by_the_contract() -> None:
    defined = concrete_classes(zarrfs.engine.stores, Store)
    suite = (ROOT / "tests/engine/stores/every_store.py").read_text(encoding="utf-8")
    tests = suite + (ROOT / "tests/engine/stores/test_remote.py").read_text(encoding="utf-8")
    uncovered = {name for name in defined if f"{name}(" not in tests and f"{name})" not in tests}
    assert uncovered == set(UNREGISTERED_STORES), "tests/engine/stores/every_store.py"
    public = {name for name in zarrfs.storage.__all__ if name.endswith("Store")}
    assert {
        name for name in public if getattr(zarrfs.storage, name).__name__ not in (*defined, "Store")
    } == set()
    page = (DOCS / "stores.md").read_text(encoding="utf-8")
    schemes = (
        "temporary",
        "sqlite",
        "lmdb",
        "dbm",
        "redis",
        "mongodb",
        "s3",
        "gs",
        "abfs",
        "sftp",
        "ftp",
        "memory",
    )
    assert [scheme for scheme in schemes if f"{scheme}://" not in page] == [], "docs/stores.md"
