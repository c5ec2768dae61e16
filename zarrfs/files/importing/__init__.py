"""Importing files of other formats: images become OME-Zarr images, other arrays and hierarchies Zarr hierarchies."""

from zarrfs.files.importing.importing import import_files

__all__ = ["import_files"]
