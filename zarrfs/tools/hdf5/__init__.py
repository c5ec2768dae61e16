"""Conversion from and to HDF5 files."""
