"""Attributes of files as the structure ``stat`` of the system.

The bindings set the fields of the structure one by one, which takes as long as all other work for a listed file.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import Any

__all__ = ["StatusLayout"]

NANOSECONDS = 1_000_000_000

INTEGERS = (
    "st_ino",
    "st_mode",
    "st_nlink",
    "st_uid",
    "st_gid",
    "st_rdev",
    "st_size",
    "st_blksize",
    "st_blocks",
)

TIMES = ("st_atime", "st_mtime", "st_ctime")

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""The codes of the module struct for unsigned integers by their size."""


class StatusLayout:
    """Where the attributes of a file are in a structure of a FUSE binding.

    The field of an integer has the name of the attribute (``st_size``), the field of a time that name with the ending
    ``spec`` (``st_mtimespec``). All other bytes are set to 0.
    """

    def __init__(self, structure: type[ctypes.Structure]) -> None:
        kinds: dict[str, tuple[int, Any]] = {
            name: (getattr(structure, name).offset, kind) for name, kind, *_ in structure._fields_
        }
        integers = sorted((name for name in INTEGERS if name in kinds), key=lambda name: kinds[name][0])
        self._names = tuple(integers)
        self._integers = _packer(structure, [kinds[name] for name in integers])
        self._entry_names = [name for name in self._names if name in ("st_ino", "st_mode")]
        self._entry = _packer(structure, [kinds[name] for name in self._entry_names])
        self._times: list[tuple[str, int, struct.Struct]] = []
        for name in TIMES:
            if name + "spec" in kinds:
                offset, kind = kinds[name + "spec"]
                parts = [(getattr(kind, part).offset, part_kind) for part, part_kind in kind._fields_]
                self._times.append((name, offset, _packer(kind, parts, is_signed=True)))

    def write(self, attributes: Mapping[str, Any], target: ctypes.Structure) -> None:
        """Set the fields of a structure to attributes: integers, and times in nanoseconds since the epoch.

        Attributes that are absent become 0. Raises struct.error if a value does not fit into its field.
        """
        get = attributes.get
        self._integers.pack_into(target, 0, *[get(name, 0) for name in self._names])
        converted, parts = 0, (0, 0)
        for name, offset, packer in self._times:
            value = get(name, 0)
            if value != converted:  # All times of a file are usually equal.
                converted, parts = value, divmod(value, NANOSECONDS)
            packer.pack_into(target, offset, *parts)

    def write_entry(self, mode: int, inode: int, target: ctypes.Structure) -> None:
        """Set what the entry of a directory has: the mode, which contains the type, and the inode number.

        All other bytes are set to 0.
        """
        self._entry.pack_into(
            target, 0, *[mode if name == "st_mode" else inode for name in self._entry_names]
        )


def _packer(
    structure: type[ctypes.Structure], fields: list[tuple[int, Any]], *, is_signed: bool = False
) -> struct.Struct:
    """Return a packer of integers at some offsets of a structure, in ascending order. Other bytes become 0."""
    layout = "="
    end = 0
    for offset, kind in fields:
        nbytes = ctypes.sizeof(kind)
        code = CODES[nbytes].lower() if is_signed else CODES[nbytes]
        layout += f"{offset - end}x{code}"
        end = offset + nbytes
    return struct.Struct(f"{layout}{ctypes.sizeof(structure) - end}x")
