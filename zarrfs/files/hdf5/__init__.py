"""HDF5 and netCDF-4."""
