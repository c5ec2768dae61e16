"""The order of packages and modules, the exported names, and the cost of importing the package."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

import zarrfs

ROOT = Path(__file__).resolve().parent.parent

EXPORTS = [
    "Access",
    "Array",
    "ChunkConstraint",
    "ChunkDecodeError",
    "ChunkEncodeError",
    "CompatibilityWarning",
    "ConflictError",
    "DataError",
    "DataShapeError",
    "FillValueError",
    "Group",
    "KeyNameError",
    "LocationError",
    "LocationNotFoundError",
    "MetadataError",
    "MissingChunkError",
    "MountError",
    "NodeExistsError",
    "NodeNotFoundError",
    "NodeTypeError",
    "OptionError",
    "ProcessSynchronizer",
    "ReadOnlyError",
    "ReadWriteOptions",
    "SelectionError",
    "ServerError",
    "StoreError",
    "ThreadSynchronizer",
    "UnsupportedError",
    "ZarrError",
    "__version__",
    "array",
    "codecs",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "storage",
    "tree",
    "zeros",
    "zeros_like",
]

ORDER = (
    "zarrfs._version",
    "zarrfs.text",
    "zarrfs.credentials",
    "zarrfs.errors",
    "zarrfs.logs",
    "zarrfs.plugins",
    "zarrfs.libraries",
    # The engine.
    "zarrfs.engine",
    "zarrfs.engine.json_checks",
    "zarrfs.engine.json_memory",
    "zarrfs.engine.counters",
    "zarrfs.engine.read_limits",
    "zarrfs.engine.parallel",
    "zarrfs.engine.cache",
    "zarrfs.engine.dtypes",
    "zarrfs.engine.stores",
    "zarrfs.engine.stores.base",
    "zarrfs.engine.stores.regular_files",
    "zarrfs.engine.stores.temporary_files",
    "zarrfs.engine.stores.locks",
    "zarrfs.engine.stores.memory",
    "zarrfs.engine.stores.local",
    "zarrfs.engine.stores.local.symbolic_links",
    "zarrfs.engine.stores.local.files",
    "zarrfs.engine.stores.local.directories",
    "zarrfs.engine.stores.local.store",
    "zarrfs.engine.stores.local.temporary",
    "zarrfs.engine.stores.zarr_python",
    "zarrfs.engine.stores.icechunk",
    "zarrfs.engine.stores.icechunk.addresses",
    "zarrfs.engine.stores.icechunk.repositories",
    "zarrfs.engine.stores.icechunk.store",
    "zarrfs.engine.stores.wrappers",
    "zarrfs.engine.stores.databases",
    "zarrfs.engine.stores.remote",
    "zarrfs.engine.stores.zip",
    "zarrfs.engine.codecs",
    "zarrfs.engine.codecs.base",
    "zarrfs.engine.codecs.configuration",
    "zarrfs.engine.codecs.limits",
    "zarrfs.engine.codecs.fill_values",
    "zarrfs.engine.codecs.array_to_array",
    "zarrfs.engine.codecs.array_to_bytes",
    "zarrfs.engine.codecs.bytes_to_bytes",
    "zarrfs.engine.codecs.pipeline",
    "zarrfs.engine.codecs.numcodecs",
    "zarrfs.engine.codecs.registry",
    "zarrfs.engine.codecs.conditional",
    "zarrfs.engine.codecs.sharding",
    "zarrfs.engine.codecs.n5",
    "zarrfs.engine.native",
    "zarrfs.engine.values",
    "zarrfs.engine.indexing",
    "zarrfs.engine.chunks",
    "zarrfs.engine.model",
    "zarrfs.engine.formats",
    "zarrfs.engine.stores.locations",
    "zarrfs.engine.access",
    "zarrfs.engine.array_context",
    "zarrfs.engine.read",
    "zarrfs.engine.write",
    "zarrfs.engine.create",
    "zarrfs.engine.create.array_options",
    "zarrfs.engine.create.chunk_shapes",
    "zarrfs.engine.create.codec_chain",
    "zarrfs.engine.create.array_spec",
    "zarrfs.engine.hierarchy",
    "zarrfs.engine.array",
    "zarrfs.engine.create.similar_arrays",
    "zarrfs.engine.create.new_nodes",
    "zarrfs.engine.group",
    # What stands on the engine.
    "zarrfs.api",
    "zarrfs.codecs",
    "zarrfs.storage",
    "zarrfs.dask",
    "zarrfs.ngff",
    "zarrfs.cf_times",
    "zarrfs.tools.member_arrays",
    "zarrfs.tools.consolidation",
    "zarrfs.tools.copying",
    "zarrfs.tools.cleaning",
    "zarrfs.tools.verification",
    "zarrfs.tools.pyramids",
    "zarrfs.tools.migration",
    "zarrfs.tools.zarr2_copies",
    "zarrfs.tools.output",
    "zarrfs.tools.editing",
    "zarrfs.tools.xarray",
    "zarrfs",
    "zarrfs.synthetic",
    "zarrfs.tensorstore",
    "zarrfs.files.content",
    "zarrfs.files",
    "zarrfs.files.recognition",
    "zarrfs.files.importing",
    "zarrfs.files.exporting",
    "zarrfs.tools",
    "zarrfs.mount",
    "zarrfs.mount.options",
    "zarrfs.mount.statistics",
    "zarrfs.mount.tree",
    "zarrfs.mount.fuse",
    "zarrfs.mount.writing",
    "zarrfs.mount.process",
    "zarrfs.mount.__main__",
    "zarrfs.ext",
    "zarrfs.testing",
    "zarrfs.cli",
    "zarrfs.__main__",
    # The viewer.
    "zarrfs_viewer",
    "zarrfs_viewer.locations",
    "zarrfs_viewer.process_memory",
    "zarrfs_viewer.state",
    "zarrfs_viewer.url_credentials",
    "zarrfs_viewer.images",
    "zarrfs_viewer.streaming",
    "zarrfs_viewer.display",
    "zarrfs_viewer.rendering",
    "zarrfs_viewer.analysis",
    "zarrfs_viewer.export",
    "zarrfs_viewer.saved_views",
    "zarrfs_viewer.mount_guard",
    "zarrfs_viewer.mounts",
    "zarrfs_viewer.qt",
    "zarrfs_viewer.qt.support",
    "zarrfs_viewer.qt.displayed_image",
    "zarrfs_viewer.qt.session",
    "zarrfs_viewer.qt.canvas",
    "zarrfs_viewer.qt.panels",
    "zarrfs_viewer.qt.window",
    "zarrfs_viewer.desktop",
    "zarrfs_viewer.main",
    "zarrfs_viewer.__main__",
)
"""Packages and modules from the lowest layer to the highest. A module belongs to the longest entry that contains it. It
imports modules of its own entry and of entries before it, wherever in the file the import is.
"""

HEAVY = [
    "numcodecs",
    "click",
    "rich",
    "fsspec",
    "h5py",
    "mfusepy",
    "fuse",
    "PyQt6",
    "pyqtgraph",
    "dask",
    "distributed",
    "xarray",
]
HEAVY += ["ml_dtypes", "asyncio", "importlib.metadata", "zarr", "tensorstore"]

MAX_IMPORTED_MODULES = 176 if sys.version_info < (3, 13) else 180
"""What opening an array loads besides NumPy, empty modules of packages included. The modules of newer versions of
Python load a few more modules of the standard library."""

FUSE_BINDINGS = {"mfusepy", "fuse"}


def modules() -> Iterator[tuple[str, Path]]:
    """Yield each of our modules with its file."""
    for parent, package in ((ROOT, "zarrfs"), (ROOT / "viewer", "zarrfs_viewer")):
        for path in sorted((parent / package).rglob("*.py")):
            parts = path.relative_to(parent).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


MODULES = dict(modules())

SOURCES = {name: path.read_text(encoding="utf-8") for name, path in MODULES.items()}


@cache
def nodes_of(source: str) -> list[ast.AST]:
    """Return the nodes of the syntax tree of a module. Parsing all modules takes seconds, so each is parsed once."""
    return list(ast.walk(ast.parse(source)))


def imported_names(source: str) -> Iterator[str]:
    """Yield each name that a module imports, wherever in it: ``package.module`` or ``package.module.name``."""
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(source: str, known: Collection[str] = MODULES) -> set[str]:
    """Return the modules of ours that a module imports."""
    found = set()
    for name in imported_names(source):
        if name.partition(".")[0] in ("zarrfs", "zarrfs_viewer"):
            while name not in known:
                name = name.rpartition(".")[0]
            found.add(name)
    return found


@cache
def module_imports() -> dict[str, set[str]]:
    """Return the modules of ours that each module imports. This parses all modules, which takes seconds."""
    return {name: own_imports(source) - {name} for name, source in SOURCES.items()}


def layer(module: str) -> int:
    """Return the position of the entry of ``ORDER`` that a module belongs to."""
    entries = [i for i, entry in enumerate(ORDER) if module == entry or module.startswith(f"{entry}.")]
    assert entries, f"{module} belongs to no entry of ORDER: add its package"
    return max(entries, key=lambda i: len(ORDER[i]))


def upward_imports(module: str, imported: Collection[str]) -> list[str]:
    """Return the imported modules of higher layers. A package may import its own modules."""
    here = layer(module)
    return sorted(
        name for name in imported if layer(name) > here and not ORDER[layer(name)].startswith(f"{module}.")
    )


def cycles(graph: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        pending = list(graph[start])
        while pending:
            module = pending.pop()
            if module not in seen:
                seen.add(module)
                pending.extend(graph.get(module, ()))
        reach[start] = seen
    groups = {
        tuple(sorted(m for m in reach[start] if start in reach.get(m, ())))
        for start in graph
        if start in reach[start]
    }
    return [list(group) for group in sorted(groups)]


def imports_at_the_start(source: str, known: Collection[str] = MODULES) -> set[str]:
    """Return the modules of ours that are imported when a module is: with the packages that contain them."""
    outside = [node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)]
    found = own_imports(ast.unparse(ast.Module(outside, [])), known)
    return {parent for name in found for parent in (name, *_packages_of(name)) if parent in known}


def _packages_of(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def is_in(module: str, packages: Sequence[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def test_imports_go_to_lower_layers_only() -> None:
    upward = {name: upward_imports(name, module_imports()[name]) for name in MODULES if name != "zarrfs"}
    assert {name: imported for name, imported in upward.items() if imported} == {}


def test_no_modules_import_each_other() -> None:
    assert cycles(module_imports()) == []


def test_every_module_can_be_imported_first() -> None:
    """Importing a module imports the packages above it first: these must not import what is being imported."""
    graph = {
        name: {each for each in imports_at_the_start(source) if each not in (name, *_packages_of(name))}
        for name, source in SOURCES.items()
    }
    assert cycles(graph) == []


def test_violations_are_found() -> None:
    source = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from zarrfs.engine.array.array import Array\n"
    assert own_imports(source) == {"zarrfs.engine.array.array"}
    assert upward_imports("zarrfs.engine.read.reading", own_imports(source)) == ["zarrfs.engine.array.array"]
    assert upward_imports("zarrfs.engine.group.group", own_imports(source)) == []
    function = "def read():\n    from zarrfs.mount import tree\n"
    assert upward_imports("zarrfs.api.open", own_imports(function)) == ["zarrfs.mount.tree"]
    assert cycles({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) == [["a", "b", "c"]]
    assert cycles({"a": ["b"], "b": ["c"], "c": []}) == []
    known = ("zarrfs", "zarrfs.tools", "zarrfs.tools.edit")
    assert imports_at_the_start("from zarrfs.tools.edit import edit\n", known) == set(known)
    assert imports_at_the_start(function, known) == set()


def c_functions(source: str) -> set[str]:
    """Return the functions that a C file defines for other files: a definition begins in the first column."""
    definitions = re.findall(r"^(?!static)\w[\w \t*]*?\b(\w+)\([^;{]*\)\s*\{", source, re.MULTILINE)
    return set(definitions)


def c_calls(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """Return, for each C file, the other files whose functions it calls."""
    code = {name: re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL) for name, source in sources.items()}
    owners = {function: name for name, source in code.items() for function in c_functions(source)}
    return {
        name: {owners[word] for word in re.findall(r"\b(\w+)\(", source) if word in owners} - {name}
        for name, source in code.items()
    }


def test_no_c_files_call_each_other() -> None:
    directory = ROOT / "zarrfs" / "engine" / "native"
    calls = c_calls({path.name: path.read_text(encoding="utf-8") for path in directory.glob("*.c")})
    assert {"shards.c", "chunks.c"} <= calls["reading.c"], "the calls are found"
    assert cycles(calls) == []


def test_calls_between_c_files_are_found() -> None:
    sources = {
        "a.c": "int first(int n) { return second(n); }\nstatic int only_here(void) { return 0; }\n",
        "b.c": "/* first() */\nunsigned char *second(\n    int n) {\n    return only_here() + third(n); }\n",
        "c.c": "int third(int n) { return first(n); }\n",
    }
    assert c_calls(sources) == {"a.c": {"b.c"}, "b.c": {"c.c"}, "c.c": {"a.c"}}
    assert cycles(c_calls(sources)) == [["a.c", "b.c", "c.c"]]


def test_every_entry_of_the_order_exists() -> None:
    assert [entry for entry in ORDER if entry not in MODULES] == []
    assert len(set(ORDER)) == len(ORDER)


def imported_by_name(source: str) -> set[str]:
    """Return the strings of a module that it may pass to ``import_module``; none if it does not call it."""
    nodes = nodes_of(source)
    functions = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
    if not functions & {"import_module", "importlib.import_module", "__import__"}:
        return set()
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def test_only_one_module_of_the_mount_imports_the_fuse_binding() -> None:
    users = set()
    for module, source in SOURCES.items():
        names = {name.partition(".")[0] for name in imported_names(source)}
        if FUSE_BINDINGS & (names | imported_by_name(source)):
            users.add(module)
    assert users == {"zarrfs.mount.fuse.binding"}


def test_only_the_qt_package_imports_qt() -> None:
    for module, source in SOURCES.items():
        names = imported_names(source)
        if {name.partition(".")[0] for name in names} & {"PyQt6", "pyqtgraph"}:
            assert is_in(module, ["zarrfs_viewer.qt"]), module


FORMAT_MODULES = {
    f"zarrfs.engine.formats.{name}"
    for name in ("v1", "v2", "v2_arrays", "v3", "v3_arrays", "n5", "draft2019", "draft2019_arrays")
}

RULES_FOR_ONE_FORMAT = {
    "zarrfs.ngff.checks.stored",
    "zarrfs.ngff.versions",
    "zarrfs.tensorstore.metadata",
    "zarrfs_viewer.images.n5_pyramid",
}
"""Modules for other specifications, which have rules for one format: OME-NGFF, TensorStore, and n5-viewer."""

ZARR_FORMATS = {1, 2, 3, "n5", "draft2019"}


def names_a_format(*expressions: ast.expr) -> bool:
    """Return whether expressions contain ``zarr_format``, or a name like ``target_format``."""
    parts = [part for expression in expressions for part in ast.walk(expression)]
    names = [getattr(part, "id", getattr(part, "attr", getattr(part, "value", ""))) for part in parts]
    return any(isinstance(name, str) and name.endswith("_format") for name in names)


def constants_of(expressions: Collection[ast.expr | None]) -> set[int | str]:
    return {
        part.value
        for part in expressions
        if isinstance(part, ast.Constant) and isinstance(part.value, int | str) and part.value is not True
    }


def format_comparisons(source: str) -> list[str]:
    """Return the expressions that compare a ``zarr_format`` with a constant, or select by it from a dictionary."""
    nodes = nodes_of(source)
    tables = {
        ast.unparse(target)
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)
        if constants_of(node.value.keys) & ZARR_FORMATS
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    }

    def is_table(expression: ast.expr) -> bool:
        if isinstance(expression, ast.Dict):
            return bool(constants_of(expression.keys) & ZARR_FORMATS)
        return ast.unparse(expression) in tables

    found = []
    for node in nodes:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
            groups = [
                part.elts if isinstance(part, ast.Tuple | ast.List | ast.Set) else [part] for part in operands
            ]
            is_branch = bool(constants_of([part for group in groups for part in group]) & ZARR_FORMATS)
            is_branch = is_branch and names_a_format(*operands)
        elif isinstance(node, ast.Subscript):
            is_branch = is_table(node.value) and names_a_format(node.slice)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            is_branch = is_table(node.func.value) and names_a_format(*node.args)
        elif isinstance(node, ast.Match):
            is_branch = names_a_format(node.subject)
        else:
            continue
        if is_branch:
            found.append(ast.unparse(node))
    return found


def test_only_the_formats_distinguish_formats() -> None:
    others = [
        name
        for name in MODULES
        if name not in RULES_FOR_ONE_FORMAT and not is_in(name, ["zarrfs.engine.formats"])
    ]
    comparisons = {name: format_comparisons(SOURCES[name]) for name in others}
    assert {name: found for name, found in comparisons.items() if found} == {}
    assert [name for name in others if module_imports()[name] & FORMAT_MODULES] == []
    assert set(MODULES) >= FORMAT_MODULES
    exceptions = [name for name in RULES_FOR_ONE_FORMAT if not format_comparisons(SOURCES[name])]
    assert [name for name in exceptions if not module_imports()[name] & FORMAT_MODULES] == [], (
        "exceptions that are no longer needed"
    )


def test_comparisons_of_formats_are_found() -> None:
    assert format_comparisons("x = spec.zarr_format == 3") == ["spec.zarr_format == 3"]
    assert format_comparisons("if 2 != target_format: pass") == ["2 != target_format"]
    assert format_comparisons("old_format in (1, 'n5')") == ["old_format in (1, 'n5')"]
    assert format_comparisons("d.get('zarr_format') == 2") == ["d.get('zarr_format') == 2"]
    assert format_comparisons("names = {3: 'a', 2: 'b'}; names.get(spec.zarr_format)") == [
        "names.get(spec.zarr_format)"
    ]
    assert format_comparisons("T: dict[int, str] = {2: 'b'}\nx = T[zarr_format]") == ["T[zarr_format]"]
    assert format_comparisons("{'n5': 'N5'}.get(zarr_format, 'Zarr')") == [
        "{'n5': 'N5'}.get(zarr_format, 'Zarr')"
    ]
    assert len(format_comparisons("match zarr_format:\n    case 2: pass")) == 1
    assert format_comparisons("names = {3: 'a'}; names[ndim]; other[zarr_format]") == []
    assert format_comparisons("node.zarr_format != zarr_format; len(zarr_format_names) == 2") == []


def test_exports_are_pinned() -> None:
    assert sorted(zarrfs.__all__) == EXPORTS
    assert all(hasattr(zarrfs, name) for name in zarrfs.__all__)


def loaded_modules(program: str) -> set[str]:
    """Return the modules that a program has loaded when it ends."""
    program = f"import sys\ntry:\n    {program}\nexcept SystemExit:\n    pass\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


SERVER_LIBRARIES = ["http", "ssl", "email", "xml", "urllib.request", "multiprocessing", "csv", "unittest"]

NOT_LOADED = {
    "import zarrfs": ["numpy", "zarrfs.engine", "zarrfs.mount", *HEAVY],
    "import zarrfs; zarrfs.open": HEAVY,
    "sys.argv[1:] = ['--help']; import zarrfs.cli.main; zarrfs.cli.main.run()": [
        "numpy",
        "zarrfs.engine",
        "zarrfs.mount",
        *(name for name in HEAVY if name != "click"),
    ],
    "import zarrfs_viewer.qt.window.application": [
        "numpy",
        "zarrfs.engine",
        "zarrfs.mount",
        "zarrfs.ngff",
        "zarrfs.tools",
        "zarrfs_viewer.images",
        "zarrfs_viewer.qt.canvas",
        "zarrfs_viewer.qt.panels",
        "zarrfs_viewer.qt.session",
        "numcodecs",
        "pyqtgraph",
    ],
    "from zarrfs_viewer.qt.window.main_window import MainWindow as W; [__import__(m) for m in W.part_modules]": [
        "zarrfs.engine.array",
        "zarrfs.api.open",
        "zarrfs.mount",
        "zarrfs.ngff.checks",
        "zarrfs.tools",
        "numcodecs",
        "pyqtgraph",
        "hashlib",
        "email",
    ],
    "from zarrfs_viewer.images.opening import import_engine; import_engine()": [
        "asyncio",
        "ssl",
        "hashlib",
        "zarrfs.mount",
    ],
    "import zarrfs.mount.process.serving": [
        *HEAVY,
        *SERVER_LIBRARIES,
        "zarrfs.mount.process.metrics",
        "zarrfs.mount.writing.operations",
        "zarrfs.ngff.checks",
        "zarrfs.tools",
    ],
}
"""Program -> modules that it must not load: each costs time when a command, or the viewer, starts."""


@pytest.mark.parametrize("program", NOT_LOADED)
def test_commands_start_without_modules_that_they_do_not_need(program: str) -> None:
    assert [name for name in loaded_modules(program) if is_in(name, NOT_LOADED[program])] == []


def test_modules_that_must_not_be_loaded_exist() -> None:
    """A name that has changed would make the test above pass."""
    own = {name for names in NOT_LOADED.values() for name in names if name.startswith("zarrfs")}
    assert own <= set(MODULES)
    assert "zarrfs.engine.array" in loaded_modules("import zarrfs; zarrfs.open")


def test_importing_is_light() -> None:
    loaded = loaded_modules("import zarrfs; zarrfs.open") - loaded_modules("import numpy")
    assert len(loaded) <= MAX_IMPORTED_MODULES, sorted(loaded)


def named_files(text: str) -> set[str]:
    """Return the paths that a document names in backticks, outside of blocks."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return {
        name.rstrip("/") for name in re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9.]+)+/?|[a-z_0-9]+\.py)`", text)
    }


def test_the_files_that_architecture_names_exist() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    names = named_files(text)
    assert {"read/planning.py", "local/store.py", "write/writing.py"} <= names
    folders = ("zarrfs", "viewer", "tests")
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*")]
    assert [name for name in names if not any(f.endswith((f"/{name}", f"/{name}.py")) for f in files)] == []
    layout = re.search(r"^```\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert layout is not None
    missing = [
        name
        for name in MODULES
        if SOURCES[name] and MODULES[name].name == "__init__.py"
        if not re.search(rf"\b{name.rpartition('.')[2]}/", layout[1])
    ]
    assert missing == [], "packages that the layout does not contain"


def test_tests_look_up_programs_by_what_they_are() -> None:
    """A program with the name of another one must not run; ``tests.programs`` asks each for its identity."""
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tests").rglob("*.py")
        if "shutil.which" in path.read_text(encoding="utf-8") and path.name != Path(__file__).name
    ]
    assert found == ["tests/programs.py"]
