"""Opening of local paths: directories, archives and databases, recognized by their content."""

from __future__ import annotations

import os
import shlex
import stat
import sys

from zarrfs.engine.stores.base import Store
from zarrfs.engine.stores.icechunk.addresses import repository_remedy
from zarrfs.engine.stores.local.store import LocalStore
from zarrfs.engine.stores.locations.databases import SUFFIXES, is_lmdb, open_database, path_status
from zarrfs.engine.stores.locations.storage_options import Options, boolean_options
from zarrfs.engine.stores.regular_files import check_regular_file, describe_file_type, open_regular_file
from zarrfs.errors import LocationError, LocationNotFoundError, MetadataError, StoreError

__all__ = ["HDF5_MAGIC", "METADATA_NAMES", "open_path", "split_reference_file"]

METADATA_NAMES = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "attributes.json")
"""The names of metadata documents of all formats, in the order of precedence of the formats."""

ZIP_MAGIC = (b"PK\x03\x04", b"PK\x05\x06")

SQLITE_MAGIC = b"SQLite format 3\0"

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"

LMDB_MAGIC = b"\xde\xc0\xef\xbe"

LMDB_MAGIC_OFFSET = 16

DBM_KINDS = ("dbm.gnu", "dbm.ndbm")

DBM_SUFFIXES = (".db", ".dat", ".pag")
"""Suffixes that libraries of dbm append to the path of a database."""

MICROSCOPE_SUFFIXES = (".czi", ".lif", ".nd2", ".oib", ".oif", ".vsi", ".dv", ".zvi")
"""The suffixes of files of microscopes that neither zarrfs nor its readers of other formats open."""

MICROSCOPE_MAGIC = (b"ZISRAWFILE", b"\xda\xce\xbe\x0a")
"""The first bytes of such files with any suffix: CZI and ND2."""

HEADER_NBYTES = 64

REFERENCE_KEYS = (b'"refs"', b'"templates"', b'/.zarray"', b'".zgroup"', b'".zarray"', b'"zarr.json"')
"""The keys that identify a JSON file with references (kerchunk, versions 0 and 1): one of them occurs at its start."""

REFERENCES_START_NBYTES = 64 * 1024

NODE_NAMES = ("zarr.json", ".zarray", ".zgroup")
"""Documents of nodes, the most frequent one first. References in Parquet files have none of them as a file."""


def open_path(path: str, mode: str, options: Options, external: bool) -> tuple[Store, str]:
    path = os.path.abspath(path)
    head, name = os.path.split(path)
    if name in METADATA_NAMES and not os.path.isdir(path):
        _check_document(path)
        path = head
    # Find the longest prefix of the path that exists. The rest is a path in it.
    ancestor, inner = path, ""
    to_create: tuple[str, str, str] | None = None
    status = path_status(ancestor)
    while status is None and ancestor != os.path.dirname(ancestor):
        if _is_being_written(ancestor):
            return _open_zip(ancestor, mode, options), inner
        suffix = os.path.splitext(ancestor)[1].lower()
        if SUFFIXES.get(suffix) == "dbm" and any(os.path.lexists(ancestor + added) for added in DBM_SUFFIXES):
            return open_database("dbm", ancestor, mode, options), inner
        if suffix in SUFFIXES:
            to_create = SUFFIXES[suffix], ancestor, inner
        ancestor, last = os.path.split(ancestor)
        inner = f"{last}/{inner}".rstrip("/")
        status = path_status(ancestor)
    if status is not None and not stat.S_ISDIR(status.st_mode):
        return _open_file(ancestor, inner, mode, options)
    if status is not None and is_lmdb(ancestor):
        return open_database("lmdb", ancestor, mode, options), inner
    if inner and status is not None and _is_root_of_nodes(ancestor, external):
        return _open_directory(ancestor, mode, options, external), inner
    if status is not None and (remedy := repository_remedy(ancestor)) is not None:
        raise LocationError(remedy)
    if status is None or inner:
        if mode not in ("a", "w"):
            raise LocationNotFoundError(f"{path}: no such file or directory{_existing_part(path)}")
        if to_create is not None:
            return _create_file(*to_create, mode, options)
    return _open_directory(path, mode, options, external), ""


def _open_directory(path: str, mode: str, options: Options, external: bool) -> Store:
    known = boolean_options("a directory", options, "durable")
    return LocalStore(path, read_only=mode == "r", allow_external=external, **known)


def _is_root_of_nodes(path: str, external: bool) -> bool:
    """Return whether a directory is a hierarchy whose nodes have no directories (the draft of 2019)."""
    from zarrfs.engine.formats import api as formats

    try:
        return formats.has_root_document(LocalStore(path, read_only=True, allow_external=external))
    except (MetadataError, StoreError):
        return False


def split_reference_file(path: str) -> tuple[str, str] | None:
    """Return the path of a JSON file or a directory of Parquet files with references (kerchunk) and the path in its
    hierarchy, or None if no part of the path is one.
    """
    if ".json" not in path.lower():
        return _split_reference_directory(path)
    file, inner = path, ""
    while not os.path.lexists(file) and file != os.path.dirname(file):
        file, last = os.path.split(file)
        inner = f"{last}/{inner}".rstrip("/")
    return (file, inner) if _is_reference_file(file) else None


def _split_reference_directory(path: str) -> tuple[str, str] | None:
    directory, inner = path, ""
    while True:
        # Most paths are those of nodes, for which this is all.
        if any(os.path.lexists(f"{directory}/{name}") for name in NODE_NAMES):
            return None
        document = f"{directory}/.zmetadata"
        if os.path.lexists(document):
            return (os.path.abspath(directory), inner) if _has_record_size(document) else None
        directory, last = os.path.split(os.path.abspath(directory))
        if not last:
            return None
        inner = f"{last}/{inner}".rstrip("/")


def _has_record_size(path: str) -> bool:
    """Return whether a document ``.zmetadata`` is that of references in Parquet files."""
    try:
        fd = open_regular_file(path)
        try:
            end = os.fstat(fd).st_size
            # fsspec writes "record_size" last; other writers may write it first.
            parts = (
                os.pread(fd, REFERENCES_START_NBYTES, start)
                for start in (0, max(0, end - REFERENCES_START_NBYTES))
            )
            return any(b'"record_size"' in part for part in parts)
        finally:
            os.close(fd)
    except (OSError, StoreError):
        return False


def _is_reference_file(path: str) -> bool:
    name = os.path.basename(path)
    if not name.lower().endswith(".json") or name in METADATA_NAMES:
        return False
    try:
        fd = open_regular_file(path)
        try:
            start = os.pread(fd, REFERENCES_START_NBYTES, 0)
        finally:
            os.close(fd)
    except (OSError, StoreError):
        return False
    return start.lstrip().startswith(b"{") and any(key in start for key in REFERENCE_KEYS)


def _check_document(path: str) -> None:
    """Raise LocationError if a metadata document that is given as a location is a FIFO, a socket or a device."""
    try:
        check_regular_file(path)
    except StoreError as error:
        raise LocationError(str(error)) from error
    except OSError:
        return


def _is_being_written(path: str) -> bool:
    """Return whether a store of this process is writing an archive at the path. The file exists only after a flush."""
    if "zarrfs.engine.stores.zip.writer" not in sys.modules:
        return False
    from zarrfs.engine.stores.zip.writer import is_being_written

    return is_being_written(path)


def _create_file(kind: str, path: str, inner: str, mode: str, options: Options) -> tuple[Store, str]:
    """Create an archive or a database."""
    if kind == "zip":
        return _open_zip(path, mode, options), inner
    return open_database(kind, path, mode, options), inner


def _open_file(path: str, inner: str, mode: str, options: Options) -> tuple[Store, str]:
    """Open an archive or a database, which is recognized by the first bytes of the file."""
    try:
        fd = open_regular_file(path)
        try:
            header = os.pread(fd, HEADER_NBYTES, 0)
            size = os.fstat(fd).st_size
        finally:
            os.close(fd)
    except StoreError as error:
        raise LocationError(
            f"{path} is {describe_file_type(os.stat(path).st_mode)}; expected a directory, a zip file or a database"
        ) from error
    except OSError as error:
        raise LocationError(f"{path} cannot be opened: {error.strerror}") from error
    if header.startswith(SQLITE_MAGIC):
        return open_database("dbm" if _is_dbm_sqlite3(path) else "sqlite", path, mode, options), inner
    if header[:4] in ZIP_MAGIC:
        return _open_zip(path, mode, options), inner
    if header[LMDB_MAGIC_OFFSET:].startswith(LMDB_MAGIC):
        return open_database("lmdb", path, mode, options), inner
    if size and _dbm_kind(path) in DBM_KINDS:
        return open_database("dbm", path, mode, options), inner
    if size == 0 and mode in ("a", "w") and SUFFIXES.get(os.path.splitext(path)[1].lower()) == "sqlite":
        return open_database("sqlite", path, mode, options), inner
    if header.startswith(HDF5_MAGIC):
        raise LocationError(
            f"{path} is an HDF5 file; copy it to a Zarr hierarchy first: zarrfs copy {shlex.quote(path)} NEW.zarr"
        )
    remedy = microscope_remedy(path)
    if remedy:
        raise LocationError(f"{path} is a file of a microscope, which zarrfs does not read{remedy}")
    problem = "is empty"
    if size:
        problem = "is neither a zip file nor a database"
        remedy = (
            f". Convert TIFF, NIfTI, NumPy and other files first: zarrfs import {shlex.quote(path)} NEW.zarr"
        )
    raise LocationError(
        f"{path} {problem}; expected a directory, a zip file or a database that contains a Zarr hierarchy{remedy}"
    )


def microscope_remedy(path: str) -> str:
    """Return what to do with a file of a microscope, for an error; an empty string for other files. Blocks."""
    try:
        with open(path, "rb") as stream:
            header = stream.read(HEADER_NBYTES)
    except OSError:
        header = b""
    if not path.lower().endswith(MICROSCOPE_SUFFIXES) and not header.startswith(MICROSCOPE_MAGIC):
        return ""
    return (
        ". Convert it to OME-Zarr with bioformats2raw (https://github.com/glencoesoftware/bioformats2raw), or export "
        "it from the program of the microscope as OME-TIFF"
    )


def _dbm_kind(path: str) -> str | None:
    from zarrfs.engine.stores.databases.dbm import find_library_name

    return find_library_name(path)


def _is_dbm_sqlite3(path: str) -> bool:
    from zarrfs.engine.stores.databases.dbm_sqlite3 import is_dbm_sqlite3

    return is_dbm_sqlite3(path)


def _open_zip(path: str, mode: str, options: Options) -> Store:
    from zarrfs.engine.stores.zip.store import ZipStore

    return ZipStore(path, "a" if mode == "r+" else mode, **boolean_options("an archive", options, "durable"))


def _existing_part(path: str) -> str:
    """Return the part of a message that names the existing directory of a path, to help find a misspelt name."""
    ancestor = os.path.dirname(path)
    while ancestor != os.path.dirname(ancestor) and not os.path.isdir(ancestor):
        ancestor = os.path.dirname(ancestor)
    return f"; {ancestor} exists" if ancestor != os.path.dirname(path) else ""
