"""Operations on hierarchies: copying, converting, migrating, rechunking, consolidating and cleaning. They use the
engine and are used by the command line.
"""

from zarrfs.files.hdf5.conversion import from_hdf5, to_hdf5
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
