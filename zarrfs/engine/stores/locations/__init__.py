"""Locations: paths, URLs and objects -> a store, and a path in it."""

from zarrfs.engine.stores.locations.databases import DATABASES, SUFFIXES
from zarrfs.engine.stores.locations.local import HDF5_MAGIC, METADATA_NAMES
from zarrfs.engine.stores.locations.opening import Location, open_store, split_options

__all__ = [
    "DATABASES",
    "HDF5_MAGIC",
    "METADATA_NAMES",
    "SUFFIXES",
    "Location",
    "open_store",
    "split_options",
]
