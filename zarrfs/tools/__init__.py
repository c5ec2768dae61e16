"""Operations on hierarchies: copying, converting, migrating, rechunking, consolidating and cleaning. They use the
engine and are used by the command line.
"""

from typing import TYPE_CHECKING, Any

from zarrfs.tools.cleaning import clean
from zarrfs.tools.consolidation import consolidate_metadata, stale_consolidation
from zarrfs.tools.copying.conversion import convert, rechunk
from zarrfs.tools.copying.reports import CopyReport
from zarrfs.tools.editing.editing import EditReport, edit
from zarrfs.tools.migration import migrate
from zarrfs.tools.pyramids.building import build_pyramid
from zarrfs.tools.verification.problems import Problem, VerificationReport
from zarrfs.tools.verification.verification import verify
from zarrfs.tools.zarr2_copies import copy, copy_all, copy_store

if TYPE_CHECKING:
    from zarrfs.files.hdf5.conversion import from_hdf5, to_hdf5

__all__ = [
    "CopyReport",
    "EditReport",
    "Problem",
    "VerificationReport",
    "build_pyramid",
    "clean",
    "consolidate_metadata",
    "convert",
    "copy",
    "copy_all",
    "copy_store",
    "edit",
    "from_hdf5",
    "migrate",
    "rechunk",
    "stale_consolidation",
    "to_hdf5",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Import the conversions of HDF5 on first use: ``zarrfs.files.hdf5`` imports modules of this package."""
    if name in ("from_hdf5", "to_hdf5"):
        from zarrfs.files.hdf5 import conversion

        return getattr(conversion, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
