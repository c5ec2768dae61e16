"""Data that an HDF5 file names in other files: external links, external storage and virtual datasets.

The HDF5 library opens such files without a question, whatever they are. Before a file is copied all of it is looked
through, without following what leads out of it.
"""

from __future__ import annotations

from typing import Any

from zarrfs.errors import StoreError

__all__ = ["check_no_external_data"]

MAX_NAMED = 5


def check_no_external_data(h5py: Any, source: Any) -> None:
    """Raise StoreError if an open file names data of other files."""
    found = _external(h5py, source)
    if found:
        named = "; ".join(found[:MAX_NAMED])
        more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
        raise StoreError(
            f"{source.filename} names data of other files, which are not read: {named}{more}. Copy it with "
            "allow_external=True (--allow-external) if you trust this file"
        )


def _external(h5py: Any, source: Any) -> list[str]:
    """Return a line for each link and dataset that names another file. Each object is visited once."""
    found: list[str] = []
    seen = {h5py.h5o.get_info(source.id).addr}
    pending = [("", source)]
    while pending:
        path, group = pending.pop()
        for name in group:
            at = f"{path}/{name}"
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                found.append(f"{at} is a link to {link.filename}")
            if not isinstance(link, h5py.HardLink):
                continue  # What a soft link leads to is met at its own place, or is behind an external link.
            item = group[name]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                continue
            seen.add(address)
            if isinstance(item, h5py.Group):
                pending.append((at, item))
            elif isinstance(item, h5py.Dataset):
                found.extend(f"{at} {what}" for what in _external_storage(item))
    return found


def _external_storage(dataset: Any) -> list[str]:
    """Return in which other files the values of a dataset are stored."""
    stored = [f"is stored in {file}" for file, _, _ in dataset.external or ()]
    if dataset.is_virtual:
        # A dot stands for the file itself.
        names = dict.fromkeys(source.file_name for source in dataset.virtual_sources())
        stored += [f"is a virtual dataset of {name}" for name in names if name != "."]
    return stored
