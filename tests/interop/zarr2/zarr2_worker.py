"""The worker in the environment of zarr-python 2: it receives function calls on stdin and sends the results to stdout.

A store is specified by its class and arguments: ``("DirectoryStore", {"path": ...})``. It is opened for each call and
closed afterwards, so that calls share only the stored data. Codecs are specified by numcodecs configurations.
"""

from __future__ import annotations

import dbm.dumb
import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
import numcodecs
import numpy as np
import zarr
import zarr._storage.v3
import zarr.n5
import zarr.storage
from zarr2_messages import receive, send

MODULES = (zarr.storage, zarr.n5, zarr._storage.v3)

FUNCTIONS = {
    name
    for name, value in vars(zarr).items()
    if not name.startswith("_")
    and callable(value)
    and getattr(value, "__module__", "").startswith(("zarr.", "numcodecs."))
}

StoreName = tuple[str, dict[str, Any]]


@contextmanager
def opened(name: StoreName) -> Iterator[Any]:
    kind, options = name
    if kind == "DBMStore":
        options = {"open": dbm.dumb.open, **options}
    made = next(getattr(module, kind) for module in MODULES if hasattr(module, kind))
    store = made(**options)
    try:
        yield store
    finally:
        if hasattr(store, "close"):
            store.close()


def _codecs(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an array, with codecs created from configurations and a synchronizer for its directory."""
    made = dict(options)
    for name in ("compressor", "object_codec"):
        if isinstance(made.get(name), dict):
            made[name] = numcodecs.get_codec(made[name])
    if made.get("filters"):
        made["filters"] = [numcodecs.get_codec(entry) for entry in made["filters"]]
    if isinstance(made.get("synchronizer"), str):
        made["synchronizer"] = zarr.ProcessSynchronizer(made["synchronizer"])
    return made


def facts(array: Any) -> dict[str, Any]:
    """Return the properties of an array as plain values."""
    return {
        "shape": array.shape,
        "chunks": array.chunks,
        "dtype": array.dtype.str if array.dtype.names is None else array.dtype.descr,
        "order": array.order,
        "fill_value": array.fill_value,
        "compressor": None if array.compressor is None else array.compressor.get_config(),
        "filters": None if not array.filters else [codec.get_config() for codec in array.filters],
        "attrs": array.attrs.asdict(),
        "nchunks_initialized": array.nchunks_initialized,
        "hexdigest": array.hexdigest(),
    }


# -- arrays --------------------------------------------------------------------------------------------------


def create(store: StoreName, path: str = "", data: Any = None, attributes: Any = None, **options: Any) -> Any:
    """Create an array, write the data, and return its properties."""
    with opened(store) as place:
        array = zarr.create(store=place, path=path or None, **_codecs(options))
        if data is not None:
            array[...] = data
        if attributes:
            array.attrs.put(attributes)
        return facts(array)


def read(store: StoreName, path: str = "", **options: Any) -> Any:
    """Return all values of an array and its properties."""
    with opened(store) as place:
        array = zarr.open_array(place, path=path or None, mode="r", **options)
        return array[...], facts(array)


def change(store: StoreName, path: str, changes: list[tuple[str, Any]], **options: Any) -> Any:
    """Resize an array, append to it or set values. Returns its values."""
    with opened(store) as place:
        array = zarr.open_array(place, path=path or None, mode="r+", **_codecs(options))
        for what, value in changes:
            if what == "resize":
                array.resize(*value)
            elif what == "append":
                array.append(value[0], axis=value[1])
            elif what == "set":
                array[value[0]] = value[1]
            elif what == "attributes":
                array.attrs.update(value)
            else:
                raise ValueError(what)
        return array[...]


def select(store: StoreName, path: str, asked: list[tuple[str, Any, Any]]) -> list[Any]:
    """Return the result of each selection (kind, selection, fields): ``("values", ...)`` or ``("error", ...)``."""
    with opened(store) as place:
        array = zarr.open_array(place, path=path or None, mode="r")
        return [attempt(_selected, array, *entry) for entry in asked]


def assign(store: StoreName, path: str, asked: list[tuple[str, Any, Any]], value: Any) -> list[Any]:
    """Return all values after each assignment to a selection of the original values, or an error."""
    with opened(store) as place:
        array = zarr.open_array(place, path=path or None, mode="r+")
        before = array[...]
        found = []
        for kind, selection, fields in asked:
            found.append(attempt(_assigned, array, kind, selection, fields, value))
            array[...] = before
        return found


def attempt(function: Any, *arguments: Any) -> tuple[str, Any]:
    try:
        return "values", function(*arguments)
    except Exception as error:
        return "error", f"{type(error).__name__}: {error}"


def _selected(array: Any, kind: str, selection: Any, fields: Any) -> Any:
    if kind == "brackets":
        return array[selection]
    if kind in ("oindex", "vindex", "blocks"):
        return getattr(array, kind)[selection]
    return getattr(array, f"get_{kind}_selection")(selection, fields=fields)


def _assigned(array: Any, kind: str, selection: Any, fields: Any, value: Any) -> Any:
    if kind == "brackets":
        array[selection] = value
    elif kind in ("oindex", "vindex", "blocks"):
        getattr(array, kind)[selection] = value
    else:
        getattr(array, f"set_{kind}_selection")(selection, value, fields=fields)
    return array[...]


def views(store: StoreName, path: str, dtype: Any) -> Any:
    """Return the results of ``astype``, iteration and ``islice``."""
    with opened(store) as place:
        array = zarr.open_array(place, path=path or None, mode="r")
        return array.astype(dtype)[...], list(array), list(array.islice(2, 4))


# -- groups --------------------------------------------------------------------------------------------------


def build(store: StoreName, nodes: list[tuple[str, str, Any]], consolidate: bool = False) -> None:
    """Create a hierarchy of nodes: (path, kind, attributes and for arrays ``data``)."""
    with opened(store) as place:
        root = zarr.group(place)
        for path, kind, given in nodes:
            options = dict(given)
            attributes = options.pop("attributes", {})
            if kind == "array":
                node = root.create_dataset(path, **_codecs(options))
            else:
                node = root.require_group(path) if path else root
            node.attrs.update(attributes)
        if consolidate:
            zarr.consolidate_metadata(place)


def walk(store: StoreName, consolidated: bool = False) -> dict[str, Any]:
    """Return the attributes of every node by path, and the values of arrays."""
    with opened(store) as place:
        root = zarr.open_consolidated(place) if consolidated else zarr.open_group(place, mode="r")
        found: dict[str, Any] = {"": (root.attrs.asdict(), None)}

        def visit(name: str, node: Any) -> None:
            found[name] = (node.attrs.asdict(), node[...] if isinstance(node, zarr.Array) else None)

        root.visititems(visit)
        return found


def describe(store: StoreName) -> Any:
    """Return the tree as text, the lines of ``info`` of the group and the names of members."""
    with opened(store) as place:
        root = zarr.open_group(place, mode="r")
        info = {str(key): value for key, value in root.info_items()}
        members = {name: list(getattr(root, name)()) for name in ("array_keys", "group_keys")}
        return str(root.tree()), info, members


def copy_hdf5(file: str, store: StoreName) -> None:
    """Copy a whole HDF5 file into a group."""
    with opened(store) as place, h5py.File(file, "r") as source:
        zarr.copy_all(source, zarr.group(place))


def copies(function: str, source: StoreName, dest: StoreName, *arguments: Any, **options: Any) -> Any:
    """Call ``copy``, ``copy_all`` or ``copy_store``; return the counts and the lines of the log."""
    lines: list[str] = []
    inner, target = options.pop("source_path", ""), options.pop("dest_path", "")
    with opened(source) as old, opened(dest) as new:
        if function == "copy_store":
            counts = zarr.copy_store(old, new, inner, target, log=lines.append, **options)
        else:
            node = zarr.open(old, mode="r")
            counts = getattr(zarr, function)(
                node[inner] if inner else node, zarr.group(new), *arguments, log=lines.append, **options
            )
        return counts, lines


def array_info(store: StoreName, path: str) -> dict[str, Any]:
    """Return the items of ``info`` of an array."""
    with opened(store) as place:
        array = zarr.open_array(place, path=path or None, mode="r")
        return {str(key): value for key, value in array.info_items()}


def rearrange(store: StoreName, steps: list[tuple[str, Any]]) -> None:
    """Move, delete and require nodes."""
    with opened(store) as place:
        root = zarr.open_group(place, mode="r+")
        for what, value in steps:
            if what == "move":
                root.move(*value)
            elif what == "delete":
                del root[value]
            elif what == "require_group":
                root.require_group(value)
            elif what == "attributes":
                root[value[0]].attrs.update(value[1])
            else:
                raise ValueError(what)


def open_mode(store: StoreName, function: str, mode: str, **options: Any) -> Any:
    """Call ``open_array``, ``open_group`` or ``open``. Returns the resulting nodes."""
    with opened(store) as place:
        node = getattr(zarr, function)(place, mode=mode, **options)
        if isinstance(node, zarr.Array):
            return "array", node.shape, node[...].tolist(), node.read_only
        return "group", sorted(node), None, node.read_only


def routine(name: str, store: StoreName, *arguments: Any, **options: Any) -> Any:
    """Call a creation routine. Returns the values and properties of the array."""
    with opened(store) as place:
        array = getattr(zarr, name)(*arguments, store=place, **_codecs(options))
        return array[...], facts(array)


def like(name: str, store: StoreName, source: StoreName, *arguments: Any, **options: Any) -> Any:
    """Call a creation routine that copies the properties of another array."""
    with opened(store) as place, opened(source) as model:
        array = getattr(zarr, name)(zarr.open_array(model, mode="r"), *arguments, store=place, **options)
        return array[...], facts(array)


# -- stores, locks and names ---------------------------------------------------------------------------------


def temporary(data: Any, copy_to: str) -> str:
    """Write an array to a TempStore, and copy its directory before it is deleted."""
    store = zarr.storage.TempStore()
    zarr.array(data, store=store)
    shutil.copytree(store.path, copy_to)
    return str(store.path)


def write_cells(path: str, locks: str, own: int, of: int, side: int) -> None:
    """Write every ``of``-th row of a square array, two cells at a time, with a ProcessSynchronizer."""
    synchronizer = zarr.ProcessSynchronizer(locks)
    array = zarr.open_array(path, mode="r+", synchronizer=synchronizer)
    for row in range(own, side, of):
        for column in range(0, side, 2):
            array[row, column : column + 2] = row * side + column + 1


def append_blocks(path: str, locks: str, numbers: list[int], rows: int, columns: int) -> None:
    """Append a block of each number, and set an attribute of its name, with a ProcessSynchronizer. By default
    it does not look whether the shape has changed.
    """
    synchronizer = zarr.ProcessSynchronizer(locks)
    array = zarr.open_array(path, mode="r+", synchronizer=synchronizer, cache_metadata=False)
    for number in numbers:
        array.append(np.full((rows, columns), number, array.dtype))
        array.attrs[str(number)] = number


def lock_is_free(locks: str, key: str) -> bool:
    """Return whether the lock of a key can be acquired without waiting."""
    lock = zarr.ProcessSynchronizer(locks)[key]
    if not lock.acquire(blocking=False):
        return False
    lock.release()
    return True


def hold_lock(locks: str, key: str) -> None:
    """Acquire the lock of a key and hold it."""
    lock = zarr.ProcessSynchronizer(locks)[key]
    lock.acquire()
    HELD[key] = lock


def release_lock(key: str) -> None:
    """Release the held lock."""
    HELD.pop(key).release()


HELD: dict[str, Any] = {}


def public_names() -> list[str]:
    """Return the public names of the package, and of its arrays, groups and stores."""
    names = [f"zarr.{name}" for name in FUNCTIONS]
    names += [
        f"storage.{name}"
        for name, value in vars(zarr.storage).items()
        if isinstance(value, type)
        and value.__module__.startswith("zarr.")
        and name.endswith(("Store", "Cache"))
    ]
    for kind in (zarr.Array, zarr.Group):
        names += [f"{kind.__name__}.{name}" for name in dir(kind) if not name.startswith("_")]
    # Names with V3 belong to an experiment that requires an environment variable.
    return sorted({name for name in names if not name.endswith("V3")})


def versions() -> dict[str, str]:
    return {"zarr": zarr.__version__, "numcodecs": numcodecs.__version__, "numpy": np.__version__}


def main() -> None:
    # Messages use duplicates of stdin and stdout, so that output of libraries does not corrupt them.
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    while True:
        try:
            name, arguments, options = receive(incoming)
        except EOFError:
            return
        try:
            answer: tuple[str, Any] = ("value", globals()[name](*arguments, **options))
        except Exception as error:
            answer = ("error", (type(error).__name__, str(error), traceback.format_exc()))
        send(answer, outgoing)


if __name__ == "__main__":
    sys.exit(main())
