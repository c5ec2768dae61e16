"""Files of arrays without pixel sizes: NumPy, raw and HDF5."""
