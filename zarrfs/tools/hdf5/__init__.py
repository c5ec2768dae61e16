"""Copying from and to HDF5 files."""
