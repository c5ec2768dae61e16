"""Single-file OME-Zarr (``.ozx``): the recommendations of RFC-9 of OME-NGFF for zip files with one hierarchy.

All ``zarr.json`` documents are at the beginning of the file and of the central directory, that of the root first and
the others breadth-first. Members are not compressed, the archive has zip64 records, and its comment is a JSON object
with the version of OME-Zarr and the mark ``jsonFirst``. Then a reader finds all metadata without reading the whole
directory.

See https://ngff.openmicroscopy.org/rfc/9/index.html.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from zipfile import ZIP_STORED

from zarrfs.engine.stores.base import Buffer
from zarrfs.engine.stores.zip.directory import Directory

__all__ = [
    "SUFFIX",
    "Layout",
    "breadth_first",
    "has_documents_first",
    "inspect",
    "is_document",
    "is_single_file",
    "single_file_layout",
    "stated_ome",
]

SUFFIX = ".ozx"

DOCUMENT = "zarr.json"

ARCHIVE_SUFFIXES = (SUFFIX, ".zip")

MAX_NAMES = 3
"""The number of members that a message names."""


class Layout(NamedTuple):
    """What precedes the other members of an archive, and its comment."""

    documents: list[tuple[str, Buffer]]
    comment: bytes


class Problem(NamedTuple):
    """A requirement (``is_error``) or recommendation that an archive does not follow, as a sentence."""

    message: str
    is_error: bool = False


def is_single_file(path: str) -> bool:
    """Return whether a path has the suffix of single-file OME-Zarr."""
    return path.lower().endswith(SUFFIX)


def is_document(key: str) -> bool:
    """Return whether a key is that of a metadata document of format 3."""
    return key.rpartition("/")[2] == DOCUMENT


def breadth_first(keys: Iterable[str]) -> list[str]:
    """Return the keys of documents, that of the root first, and the others by depth and name."""
    return sorted(filter(is_document, keys), key=lambda key: (key.count("/"), key))


def single_file_layout(keys: Iterable[str], read: Callable[[str], Buffer | None], comment: bytes) -> Layout:
    """Return the layout of an archive with these keys. ``comment`` is that of the existing archive.

    ``read`` returns the value of a key.
    """
    values = ((key, read(key)) for key in breadth_first(keys))
    documents = [(key, value) for key, value in values if value is not None]
    root = documents[0][1] if documents and documents[0][0] == DOCUMENT else b""
    return Layout(documents, _comment(root, comment))


def _comment(root: Buffer, existing: bytes) -> bytes:
    """Return the comment for an archive. If the root has no version of OME-Zarr, the existing one is kept."""
    ome = _member(_member(_parsed(root), "attributes"), "ome")
    version = ome.get("version")
    if not isinstance(version, str):
        return existing
    document = _parsed(existing)
    stated = _member(document, "ome")
    zip_file = _member(stated, "zipFile")
    directory = {**_member(zip_file, "centralDirectory"), "jsonFirst": True}
    stated = {**stated, "version": version, "zipFile": {**zip_file, "centralDirectory": directory}}
    return json.dumps({**document, "ome": stated}).encode()


def _parsed(text: Buffer) -> dict[str, Any]:
    """Return a JSON object, which NUL characters may follow; an empty one for anything else."""
    try:
        value = json.loads(bytes(text).rstrip(b"\0").decode())
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _member(value: dict[str, Any], name: str) -> dict[str, Any]:
    member = value.get(name)
    return member if isinstance(member, dict) else {}


def stated_ome(comment: bytes) -> dict[str, Any]:
    """Return the object ``ome`` of the comment of an archive; an empty one if there is none."""
    return _member(_parsed(comment), "ome")


def has_documents_first(comment: bytes) -> bool:
    """Return whether the comment of an archive states that all documents are at the beginning of the directory."""
    zip_file = _member(stated_ome(comment), "zipFile")
    return _member(zip_file, "centralDirectory").get("jsonFirst") is True


def inspect(directory: Directory, path: str, version: str | None) -> list[Problem]:
    """Return what an archive does not follow. ``path`` is its location, and ``version`` the OME-Zarr version of its
    root. Archives in several parts cannot be opened.
    """
    members = list(directory.members())
    keys = [key for key, _ in members]
    problems = [
        Problem(f"the archive contains another archive, {key}, which RFC-9 does not allow", True)
        for key in keys
        if key.lower().endswith(ARCHIVE_SUFFIXES)
    ]
    if DOCUMENT not in keys:
        problems.append(
            Problem("the root of the archive has no zarr.json, so it is no OME-Zarr hierarchy", True)
        )
    in_directory = _begin_with_documents(keys)
    by_offset = [key for key, _ in sorted(members, key=lambda item: item[1].offset)]
    if has_documents_first(directory.comment) and not in_directory:
        problems.append(
            Problem(
                "the comment of the archive states jsonFirst, but the zarr.json documents are not the first entries of "
                "the central directory in breadth-first order; programs that rely on it do not find all nodes",
                True,
            )
        )
    elif not in_directory:
        problems.append(
            Problem(
                "the zarr.json documents are not the first entries of the central directory, breadth-first"
            )
        )
    if not _begin_with_documents(by_offset):
        problems.append(
            Problem("the zarr.json documents are not the first members of the file, breadth-first")
        )
    compressed = [key for key, member in members if member.method != ZIP_STORED]
    if compressed:
        problems.append(Problem(f"{_named(compressed)} compressed by zip; use the codecs of Zarr instead"))
    if not directory.is_zip64:
        problems.append(Problem("the archive has no zip64 records"))
    stated = stated_ome(directory.comment)
    if not isinstance(stated.get("version"), str):
        problems.append(
            Problem('the comment of the archive is not a JSON object with {"ome": {"version": ...}}')
        )
    elif version is not None and stated["version"] != version:
        problems.append(
            Problem(
                f"the comment of the archive states version {stated['version']!r}, the root has {version!r}"
            )
        )
    elif not has_documents_first(directory.comment):
        problems.append(Problem("the comment of the archive does not state jsonFirst"))
    if not is_single_file(path):
        problems.append(Problem(f"the name of the file does not end with {SUFFIX}"))
    return problems


def _begin_with_documents(keys: list[str]) -> bool:
    """Return whether all documents precede the other keys, with increasing depth."""
    count = sum(map(is_document, keys))
    depths = [key.count("/") for key in keys[:count]]
    return all(map(is_document, keys[:count])) and depths == sorted(depths)


def _named(keys: list[str]) -> str:
    names = ", ".join(keys[:MAX_NAMES])
    more = f" and {len(keys) - MAX_NAMES} more members" if len(keys) > MAX_NAMES else ""
    return f"{names}{more} {'is' if len(keys) == 1 else 'are'}"
