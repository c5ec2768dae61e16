"""zarrfs: one Zarr engine with two doors, a FUSE filesystem and a desktop viewer."""

from zarrfs._version import __version__
from zarrfs.errors import ZarrError

__all__ = ["ZarrError", "__version__"]
