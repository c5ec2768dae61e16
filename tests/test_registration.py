"""Commands, views, codecs, stores, formats, data types and panels: each module is registered; most are documented and
covered by a contract suite.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import click
import pytest
from zarrfs_viewer.qt.window.panels import PANELS

import zarrfs.cli
import zarrfs.engine.codecs
import zarrfs.engine.dtypes
import zarrfs.engine.formats
import zarrfs.engine.stores
import zarrfs.files
import zarrfs.storage
from tests.test_architecture import SOURCES, module_imports
from zarrfs.cli.main import COMMANDS, MODULES
from zarrfs.engine.codecs.base import ArrayArrayCodec, ArrayBytesCodec, BytesBytesCodec, Codec
from zarrfs.engine.codecs.numcodecs.table import ADAPTERS, adapter_class
from zarrfs.engine.codecs.registry import BUILT_IN, codec_class
from zarrfs.engine.dtypes.base import DataTypeFamily
from zarrfs.engine.dtypes.registry import families
from zarrfs.engine.formats.base import Format
from zarrfs.engine.formats.registry import all_formats
from zarrfs.engine.stores.base import Store
from zarrfs.files.view import View
from zarrfs.files.views import all_kinds

PUBLIC_MODULES = {
    "zarrfs.__main__",
    "zarrfs.cli.mount_helper",
    "zarrfs.dask",
    "zarrfs.ext",
    "zarrfs.mount.__main__",
    "zarrfs.storage",
    "zarrfs.codecs",
    "zarrfs.tools.xarray.backend",
    "zarrfs_viewer.__main__",
}
"""Modules that users, ``python -m`` and entry points import."""

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"

CODEC_BASES = {"NumcodecsArrayCodec", "NumcodecsBytesCodec", "NumcodecsObjectCodec"}
"""Classes of codecs whose subclasses are registered."""

UNREGISTERED_STORES = {
    "ClosedStore": "replaces a store of an array that is closed",
    "PluginStore": "wraps the stores of other packages",
    "PrefetchingStore": "for the requests of one read",
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


def test_every_view_is_registered_and_documented() -> None:
    views = all_kinds()
    used = {type(view).__name__ for view in views}
    defined = [
        name
        for name, view in concrete_classes(zarrfs.files, View).items()
        if isinstance(getattr(view, "suffix", None), str)  # otherwise it is the base of other views
    ]
    assert [name for name in defined if name not in used] == [], "BUILT_IN in zarrfs/files/views.py"
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
    registered = list(families().values())
    classes = {kind.__name__ for family in registered for kind in type(family).__mro__}
    missing = set(concrete_classes(zarrfs.engine.dtypes, DataTypeFamily)) - classes
    missing |= {
        name
        for module in modules(zarrfs.engine.dtypes)
        for name, value in vars(module).items()
        if isinstance(value, DataTypeFamily) and all(value is not family for family in registered)
    }
    assert missing == set(), "_FAMILIES in zarrfs/engine/dtypes/registry.py"


def test_every_store_is_public_and_covered_by_the_contract() -> None:
    defined = concrete_classes(zarrfs.engine.stores, Store)
    suite = (ROOT / "tests/engine/stores/every_store.py").read_text(encoding="utf-8")
    # Stores that are opened by others have their tests there.
    others = ("test_remote.py", "test_zip_archives.py", "test_icechunk.py")
    tests = suite + "".join((ROOT / "tests/engine/stores" / name).read_text("utf-8") for name in others)
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


def unused_modules(imports: Mapping[str, Collection[str]], used: Collection[str]) -> set[str]:
    """Return the modules that no other module imports and that are not in ``used``. Packages with modules are used."""
    imported = set().union(*imports.values(), used)
    parents = {module.rpartition(".")[0] for module in imports}
    return {
        module
        for module in set(imports) - imported - parents
        if not any(module.startswith(f"{name}.") for name in used)
    }


def test_every_module_is_used() -> None:
    """A module without a registry has to be imported by the module that uses it."""
    assert unused_modules(module_imports(), registered_modules()) == set()


def registered_modules() -> set[str]:
    """Return the public modules, and the modules that the registries of commands and codecs name."""
    commands = {f"zarrfs.cli.{MODULES.get(name, name)}" for name in COMMANDS}
    codecs = {codec_class(name) for name in BUILT_IN} | {adapter_class(name) for name in ADAPTERS}
    codecs.add(codec_class("imagecodecs_png"))  # the names of this package are not in a table
    panels = {f"zarrfs_viewer.qt.panels.{name}" for name, _ in PANELS}
    return PUBLIC_MODULES | commands | panels | {codec.__module__ for codec in codecs if codec is not None}


def panel_classes(sources: Mapping[str, str]) -> set[tuple[str, str]]:
    """Return (module of ``zarrfs_viewer.qt.panels``, class) of the classes that derive from ``Panel``."""
    prefix = "zarrfs_viewer.qt.panels."
    return {
        (module.removeprefix(prefix), name)
        for module, source in sources.items()
        if module.startswith(prefix)
        for name in re.findall(r"^class (\w+)\(Panel\):", source, re.MULTILINE)
    }


def test_every_panel_of_the_viewer_is_registered() -> None:
    assert panel_classes(SOURCES) == set(PANELS)
    unregistered = {"zarrfs_viewer.qt.panels.new": "class New(Panel):\n    pass\n"}
    assert panel_classes(unregistered) == {("new", "New")}


def test_modules_that_are_not_used_are_found() -> None:
    panel = "zarrfs_viewer.qt.panels.unregistered"
    assert unused_modules({**module_imports(), panel: set()}, registered_modules()) == {panel}
    imports: dict[str, set[str]] = {"a": set(), "a.b": {"a.c"}, "a.c": set(), "a.d": set(), "a.d.e": set()}
    assert unused_modules(imports, {"a.b"}) == {"a.d.e"}
    assert unused_modules(imports, {"a.b", "a.d"}) == set()


NOT_REGISTERED: dict[str, tuple[ModuleType, str, Callable[[], None]]] = {
    "command": (
        zarrfs.cli,
        "import click\n\n@click.command()\ndef command(): pass\n",
        test_every_module_with_a_command_is_registered,
    ),
    "view": (
        zarrfs.files,
        """
from zarrfs.files.json_view import JsonView

class unregistered(JsonView):
    suffix = ".unregistered"
""",
        test_every_view_is_registered_and_documented,
    ),
    "codec": (
        zarrfs.engine.codecs,
        """
from zarrfs.engine.codecs.bytes_to_bytes.crc32c import Crc32cCodec

class unregistered(Crc32cCodec):
    pass
""",
        test_every_codec_is_registered_and_covered_by_the_contract,
    ),
    "format": (
        zarrfs.engine.formats,
        """
from zarrfs.engine.formats.v3 import V3Format

class unregistered(V3Format):
    pass
""",
        test_every_format_is_registered,
    ),
    "data type": (
        zarrfs.engine.dtypes,
        """
from zarrfs.engine.dtypes.integers import INTEGERS

class unregistered(type(INTEGERS)):
    pass
""",
        test_every_data_type_is_registered,
    ),
    "instance of a data type": (
        zarrfs.engine.dtypes,
        """
import copy
from zarrfs.engine.dtypes.integers import INTEGERS

unregistered = copy.copy(INTEGERS)
""",
        test_every_data_type_is_registered,
    ),
    "store": (
        zarrfs.engine.stores,
        """
from zarrfs.engine.stores.memory import MemoryStore

class unregistered(MemoryStore):
    pass
""",
        test_every_store_is_public_and_covered_by_the_contract,
    ),
}
"""Kind -> its package, the source of a module named ``unregistered``, and the test that has to name it."""


@pytest.mark.parametrize("kind", NOT_REGISTERED)
def test_what_is_not_registered_is_named(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, source, test = NOT_REGISTERED[kind]
    (tmp_path / "unregistered.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    try:
        with pytest.raises(AssertionError, match="unregistered"):
            test()
    finally:
        sys.modules.pop(f"{package.__name__}.unregistered", None)
        vars(package).pop("unregistered", None)
