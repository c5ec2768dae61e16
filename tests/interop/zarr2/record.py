"""Writes ``recorded.tar.xz``: what zarr-python 2.18 writes and returns. It cannot be installed with zarr-python 3.

    python -m venv zarr2 && zarr2/bin/pip install "zarr==2.18.7" "numcodecs<0.16" "numpy<2.3" msgpack fsspec lmdb h5py
    zarr2/bin/python -m tests.interop.zarr2.record           # in the directory of the checkout

Run it again after a change of ``cases.py``. The archive contains stores (``arrays/``, ``stores/``), values that differ
from those that were written (``values/``), and ``results.json``.
"""

from __future__ import annotations

import dbm.dumb
import json
import os
import tarfile
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ["ZARR_V3_EXPERIMENTAL_API"] = "1"

import h5py
import numcodecs
import numpy as np
import zarr
import zarr._storage.v3
import zarr.n5
import zarr.storage

from tests.interop.zarr2 import cases
from tests.interop.zarr2.cases import Case

MODULES = (zarr.storage, zarr.n5, zarr._storage.v3)


@contextmanager
def opened(kind: str, **options: Any) -> Iterator[Any]:
    if kind == "DBMStore":
        options["open"] = dbm.dumb.open
    store = next(getattr(module, kind) for module in MODULES if hasattr(module, kind))(**options)
    try:
        yield store
    finally:
        if hasattr(store, "close"):
            store.close()


def codecs(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an array, with codecs made from their configurations."""
    made = dict(options)
    for name in ("compressor", "object_codec"):
        if isinstance(made.get(name), dict):
            made[name] = numcodecs.get_codec(made[name])
    if made.get("filters"):
        made["filters"] = [numcodecs.get_codec(entry) for entry in made["filters"]]
    return made


# -- arrays --------------------------------------------------------------------------------------------------


def record_arrays(folder: Path) -> dict[str, Any]:
    return {
        "checksums": {str(case): _record_array(folder, case) for case in cases.array_cases()},
        "objects": {str(case): _record_objects(folder, case) for case in cases.object_cases()},
        "fills": {name: _record_fill(folder, name, *pair) for name, pair in cases.fill_cases().items()},
    }


def _record_array(folder: Path, case: Case) -> str:
    array = zarr.create(store=str(folder / "arrays" / str(case)), **codecs(case.theirs))
    array[...] = case.data
    array.attrs.put(cases.ATTRIBUTES)
    if case.lossy:
        np.save(folder / "values" / f"{case}.npy", array[...])
    return str(array.hexdigest())


def _record_objects(folder: Path, case: Case) -> dict[str, Any]:
    array = zarr.create(store=str(folder / "arrays" / str(case)), **codecs(case.theirs))
    missing = array[0, 0]
    array[...] = case.data
    values = array[...].ravel().tolist() if case.mixed_up else None
    return {"checksum": array.hexdigest(), "values": values, "missing": missing}


def _record_fill(folder: Path, name: str, dtype: Any, fill: Any) -> str:
    options = cases.fill_options(dtype, fill)
    array = zarr.create(store=str(folder / "arrays" / name), compressor=None, **options)
    if fill is not None:
        np.save(folder / "values" / f"{name}.npy", array[...])
    return str(array.hexdigest())


def record_pickled(folder: Path) -> None:
    root = zarr.open_group(str(folder / "arrays" / "pickled"))
    for order in "CF":
        root.array(
            f"inner/{order}",
            cases.PICKLED,
            chunks=(2, 2),
            order=order,
            object_codec=numcodecs.Pickle(protocol=4),
        )


# -- stores --------------------------------------------------------------------------------------------------


def record_stores(folder: Path) -> None:
    for name, (kind, option, more) in cases.STORES.items():
        with opened(kind, **{option: str(folder / "stores" / name)}, **more) as store:
            root = zarr.group(store)
            for path, options in cases.nodes(name).items():
                given = dict(options)
                attributes = given.pop("attributes")
                node = (
                    root.create_dataset(path, **codecs(given)) if given else root.require_group(path or "/")
                )
                node.attrs.update(attributes)
            if name in cases.CONSOLIDATED:
                zarr.consolidate_metadata(store)
    with opened("N5FSStore", url=str(folder / "stores" / "compressors.n5")) as store:
        for name, (data, compressor) in cases.n5_arrays().items():
            options = codecs({"chunks": (3, 2), "compressor": compressor})
            zarr.group(store).create_dataset(name, data=data, **options)
    with opened("DirectoryStoreV3", path=str(folder / "stores" / "experimental.zarr")) as store:
        for path, options in cases.EXPERIMENTAL.items():
            array = zarr.create(store=store, path=path, zarr_version=3, **codecs(options))
            array[...] = cases.NUMBERS
            array.attrs.put(cases.ATTRIBUTES)
    with tempfile.NamedTemporaryFile(suffix=".h5") as file:
        cases.write_hdf5(h5py, file.name)
        with h5py.File(file.name) as source:
            zarr.copy_all(source, zarr.open_group(str(folder / "stores" / "copied from hdf5.zarr")))


# -- results -------------------------------------------------------------------------------------------------


def record_selections() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, (data, chunks, requests) in cases.TABLES.items():
        array = zarr.array(data, chunks=chunks)
        got = [_attempt(_select, array, *request) for request in requests]
        set_ = []
        for request in requests:
            set_.append(_attempt(_assign, array, *request, cases.ASSIGNED[name]))
            array[...] = data
        found[name] = {"get": got, "set": set_}
    return found


def _attempt(function: Any, *arguments: Any) -> str | None:
    """Return the description of the values, or None for an error."""
    try:
        return cases.describe(function(*arguments))
    except Exception:
        return None


def _select(array: Any, kind: str, selection: Any, fields: Any) -> Any:
    if kind in ("brackets", *cases.INDEXERS):
        return (array if kind == "brackets" else getattr(array, kind))[selection]
    return getattr(array, f"get_{kind}_selection")(selection, fields=fields)


def _assign(array: Any, kind: str, selection: Any, fields: Any, value: Any) -> Any:
    if kind in ("brackets", *cases.INDEXERS):
        (array if kind == "brackets" else getattr(array, kind))[selection] = value
    else:
        getattr(array, f"set_{kind}_selection")(selection, value, fields=fields)
    return array[...]


def record_copies(folder: Path) -> list[Any]:
    """Return, for each call and each ``if_exists``, the counts and log lines (None for an error) and the files."""
    with opened("DirectoryStore", path=str(folder / "stores" / cases.COPIED)) as source:
        found = []
        for number, (name, options, again) in enumerate(cases.copies()):
            target = str(folder / "copies" / str(number))
            with opened("DirectoryStore", path=target) as dest:
                results = [_attempt_copy(name, source, dest, options, mode) for mode in cases.modes_of(again)]
            found.append([results, cases.files(Path(target))])
    return found


def _attempt_copy(name: str, source: Any, dest: Any, options: dict[str, Any], if_exists: str) -> Any:
    lines: list[str] = []
    given = {**options, "if_exists": if_exists, "log": lines.append}
    inner, target = given.pop("source_path", ""), given.pop("dest_path", "")
    try:
        if name == "copy_store":
            counts = zarr.copy_store(source, dest, inner, target, **given)
        else:
            node = zarr.open(source, mode="r")
            counts = getattr(zarr, name)(node[inner] if inner else node, zarr.group(dest), **given)
    except zarr.errors.CopyError:
        return None
    return [counts, lines]


def record_modes(folder: Path) -> dict[str, Any]:
    found = {}
    for number, (function, mode, state) in enumerate(cases.openings()):
        place = str(folder / "modes" / str(number))
        if state == "an array":
            zarr.save_array(place, np.array([1, 2, 3]))
        elif state == "a group":
            zarr.open_group(place, mode="w").create_group("inner")
        try:
            node = getattr(zarr, function)(
                zarr.DirectoryStore(place), mode=mode, **cases.creation(function, mode)
            )
        except Exception:
            found[f"{function} {mode} {state}"] = None
            continue
        is_array = isinstance(node, zarr.Array)
        found[f"{function} {mode} {state}"] = [
            node[...].tolist() if is_array else sorted(node),
            node.read_only,
        ]
    return found


def record_tree(folder: Path) -> str:
    return str(zarr.open_group(str(folder / "stores" / cases.COPIED), mode="r").tree())


def public_names() -> list[str]:
    """Return the public names of the package, and of its arrays, groups and stores."""
    packages = ("zarr.", "numcodecs.")
    names = [
        f"zarr.{name}"
        for name, value in vars(zarr).items()
        if not name.startswith("_")
        and callable(value)
        and getattr(value, "__module__", "").startswith(packages)
    ]
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


def main() -> None:
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("arrays", "stores", "values"):
            (folder / part).mkdir()
        record_pickled(folder)
        record_stores(folder)
        results = {
            "versions": {
                "zarr": zarr.__version__,
                "numcodecs": numcodecs.__version__,
                "numpy": np.__version__,
            },
            "names": public_names(),
            "selections": record_selections(),
            "copies": record_copies(folder),
            "modes": record_modes(folder),
            "tree": record_tree(folder),
            **record_arrays(folder),
        }
        (folder / "results.json").write_text(json.dumps(results, indent=1))
        with tarfile.open(Path(__file__).with_name("recorded.tar.xz"), "w:xz", preset=9) as archive:
            for part in ("arrays", "results.json", "stores", "values"):
                archive.add(folder / part, part, filter=_without_owner)


def _without_owner(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    main()
